"""`blocks.round` equals `quantize` followed by `dequantize`, bit for bit."""

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype import blocks
from tf32dtype.blocks.formats import RULES


def assert_same(a, b):
    assert a.dtype == b.dtype == np.float32
    assert a.shape == b.shape
    assert np.array_equal(a.view(np.uint32), b.view(np.uint32))


def values(shape, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, shape)
    x[rng.random(shape) < 0.05] = 0
    x[rng.random(shape) < 0.02] *= -0.0
    return x.astype(np.float32)


@pytest.mark.parametrize("scale", [None, *RULES])
@pytest.mark.parametrize("form", blocks.formats)
def test_equal_to_both_steps(form, scale):
    if scale == "published" and not form.startswith("tcfp"):
        pytest.skip("of the tcfp formats alone")
    for shape in ((7, 100), (3, 2, 64), (33,), (1, 1), (0, 5), (4, 0)):
        x = values(shape)
        expected = blocks.quantize(x, form, scale=scale).dequantize()
        assert_same(blocks.round(x, form, scale=scale), expected)
        assert_same(blocks.round(x, form, scale=scale, out=x), expected)


@pytest.mark.parametrize("rounding", ["toward_zero", "to_odd", "stochastic"])
@pytest.mark.parametrize("form", ["tcfp8", "tcfp16", "nvfp4", "mxint8"])
def test_options(form, rounding):
    x = values((6, 50))
    options = {"block_size": 16, "scale_format": "ue4m4", "rounding": rounding}
    results = []
    for function in (blocks.round, blocks.quantize):
        if rounding == "stochastic":
            options["rng"] = np.random.default_rng(5)
        results.append(function(x, form, 0, **options))
    assert_same(results[0], results[1].dequantize())


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_layouts(axis):
    x = values((40, 6, 70)).transpose(2, 0, 1)[::2, ::-1, 1:]
    expected = blocks.quantize(x, "tcfp12", axis).dequantize()
    assert_same(blocks.round(x, "tcfp12", axis), expected)
    for out in (
        np.empty(x.shape, np.float32),
        np.empty(x.shape, np.float32, order="F"),
        np.empty((*x.shape[:-1], 9), np.float32)[..., 2:7],
    ):
        assert blocks.round(x, "tcfp12", axis, out=out) is out
        assert_same(out.copy(), expected)
    x = np.ascontiguousarray(x)
    assert blocks.round(x, "tcfp12", axis, out=x) is x
    assert_same(x, expected)


@pytest.mark.parametrize("dtype", ["f2", "f8", "i4", "?", td.bfloat16, td.float8_e5m2])
def test_other_numbers(dtype):
    x = values((5, 40), 2).clip(-1000, 1000).astype(dtype)
    expected = blocks.quantize(x, "tcfp16").dequantize()
    assert_same(blocks.round(x, "tcfp16"), expected)


def test_what_is_not_finite():
    x = values((3, 70))
    x[1, 40] = np.nan
    assert_same(
        blocks.round(x, "mxfp6_e2m3"), blocks.quantize(x, "mxfp6_e2m3").dequantize()
    )
    out = np.full(x.shape, 7, np.float32)
    with pytest.raises(ValueError, match=r"got nan at x\[1, 40\]"):
        blocks.round(x, "tcfp8", out=out)
    assert (out == 7).all()
    x[1, 40] = -np.inf
    found = blocks.round(x, "tcfp8", overflow="saturate")
    assert_same(found, blocks.quantize(x, "tcfp8", overflow="saturate").dequantize())
    assert np.isfinite(found).all()


def test_an_out_that_cannot_be():
    x = np.ones((2, 32), np.float32)
    for out, error, text in (
        (np.empty((2, 32)), TypeError, "float32 array; got float64"),
        ([[0.0] * 32] * 2, TypeError, "float32 array; got list"),
        (np.empty((32, 2), np.float32), ValueError, r"\(2, 32\); got \(32, 2\)"),
        (np.broadcast_to(np.float32(0), (2, 32)), ValueError, "read-only"),
    ):
        with pytest.raises(error, match=text):
            blocks.round(x, "tcfp8", out=out)


def test_large_arrays_on_all_threads():
    x = values((300, 1025))
    assert_same(blocks.round(x, "tcfp16"), blocks.quantize(x, "tcfp16").dequantize())
