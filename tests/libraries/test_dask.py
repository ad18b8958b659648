"""dask arrays of our formats: results of chunks equal NumPy's of the whole array."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

pytest.importorskip("dask.array")

import dask
import dask.array as da
from dask.base import tokenize

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

FORMATS = pytest.mark.parametrize("name", td.formats)
#: Precisions as in `td.interop.dask`, with their keywords.
PRECISIONS: list[tuple[str, dict[str, Any]]] = [
    ("f32", {}),
    ("tf32", {"rounding": "toward_zero"}),
    ("bf16", {}),
    ("f16", {}),
    ("tf32x3", {}),
    ("bf16x3", {}),
    ("bf16x6", {"special_values": "saturate"}),
    ("bf16x9", {}),
    ("fp8_e4m3", {}),
    ("fp8_e5m2", {"scale": "row"}),
]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        # Overflow and NaN, which some formats have.
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def numbers(shape: tuple[int, ...], name: str, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).standard_normal(shape)
    form = td.formats[name]
    return (values if form.signed else abs(values)).astype(form.dtype)


def chunked(x: Any, *lengths: int) -> Any:
    return da.from_array(x, chunks=lengths)


def assert_same(got: Any, want: Any) -> None:
    """Check that a dask array's result has NumPy's dtype, shape and bits."""
    assert got.dtype == np.asarray(want).dtype
    assert got.shape == np.shape(want)
    result, want = np.asarray(got.compute()), np.asarray(want)
    assert result.dtype == want.dtype
    assert result.shape == want.shape
    assert result.tobytes() == want.tobytes()


# -- sums ------------------------------------------------------------------------------


REDUCTIONS = "sum prod mean var std min max average".split()
OF_NAN = "nansum nanprod nanmean nanvar nanstd nanmin nanmax".split()


@FORMATS
def test_reductions_are_those_of_the_whole(name: str) -> None:
    x = numbers((70, 90), name)
    d = chunked(x, 32, 25)
    for function in REDUCTIONS:
        for axis in (None, 0):
            want = getattr(np, function)(x, axis=axis)
            assert_same(getattr(da, function)(d, axis=axis), want)


@FORMATS
def test_methods_and_numpy_functions_too(name: str) -> None:
    x = numbers((70, 90), name)
    d = chunked(x, 32, 25)
    for function in "sum prod mean var std min max".split():
        want = getattr(x, function)(axis=0, keepdims=True)
        assert_same(getattr(d, function)(axis=0, keepdims=True), want)
        assert_same(getattr(np, function)(d), getattr(np, function)(x))
    for function in ("cumsum", "cumprod"):
        want = getattr(np, function)(x, axis=1)
        assert_same(getattr(d, function)(axis=1), want)
    assert_same(da.linalg.norm(d, axis=1), np.linalg.norm(x, axis=1))
    assert_same(d.sum(dtype=np.float32), x.sum(dtype=np.float32))
    assert_same(da.var(d, axis=1, ddof=1), np.var(x, axis=1, ddof=1))


def test_sums_are_rounded_once() -> None:
    """Round each sum once, while dask's own function rounds each sum of a chunk."""
    x = (1 + np.random.default_rng(0).random((30, 4000))).astype(td.bf16)
    exact = [sum(map(Fraction, row.astype(float).tolist())) for row in x]

    def largest_error(function: Any) -> float:
        """Return the largest error of the rows' sums, in eps."""
        got = function(chunked(x, 30, 31), axis=1, split_every=2).compute()
        errors = [
            abs(Fraction(float(one)) / truth - 1)
            for one, truth in zip(got, exact, strict=True)
        ]
        return float(max(errors)) / td.formats["bf16"].eps

    assert largest_error(da.sum) <= 0.5
    assert largest_error(da.sum.__wrapped__) > 0.6
    ones = da.ones(1 << 25, dtype=td.bf16, chunks=1 << 21)
    assert float(ones.sum().compute()) == 1 << 25


@pytest.mark.parametrize("name", ["tf32", "bfloat16"])
def test_products_do_not_leave_the_range_on_the_way(name: str) -> None:
    x = np.repeat(np.array([1e37, 1e-37]), 500).astype(td.formats[name].dtype)
    exact = math.prod(map(Fraction, x.astype(float).tolist()))
    got = Fraction(float(chunked(x, 100).prod().compute()))
    eps = Fraction(td.formats[name].eps)
    assert abs(got / exact - 1) <= eps * Fraction(52, 100)
    assert float(chunked(x[:0], 1).prod().compute()) == 1


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e8m0fnu"])
def test_nan_and_infinity(name: str) -> None:
    x = numbers((40, 50), name)
    x[3, 4], x[5] = np.nan, np.nan
    x[9, 9] = np.copysign(np.nan, -1)
    for functions in (OF_NAN, REDUCTIONS):
        d = chunked(x, 16, 16)
        for function in functions:
            for axis in (None, 1):
                want = getattr(np, function)(x, axis=axis)
                assert_same(getattr(da, function)(d, axis=axis), want)
        x[7, 8], x[7, 9], x[8, 8] = np.inf, -np.inf, np.inf


def test_averages_and_options() -> None:
    x, weights = numbers((40, 50), "bfloat16"), numbers((50,), "float8_e8m0fnu", 1)
    d = chunked(x, 16, 16)
    assert_same(
        da.average(d, 1, weights.astype(td.bf16)),
        np.average(x, 1, weights.astype(td.bf16)),
    )
    # Elements are first rounded to the dtype, as in NumPy.
    single = np.random.default_rng(0).standard_normal((40, 50), dtype=np.float32)
    assert_same(chunked(single, 16, 16).sum(dtype=td.bf16), single.sum(dtype=td.bf16))
    out = da.zeros(40, dtype=td.bf16)
    assert d.sum(axis=1, out=out) is out
    assert_same(out, x.sum(axis=1))
    assert_same(d.sum(axis=1, split_every=2), x.sum(axis=1))
    assert_same(chunked(single, 16, 16).max(), single.max())


@FORMATS
def test_ufuncs_go_by_chunks(name: str) -> None:
    x, y = numbers((40, 50), name), numbers((40, 50), name, 1)
    d, e = chunked(x, 16, 16), chunked(y, 10, 50)
    for function in (np.add, np.multiply, np.maximum):
        assert_same(function(d, e), function(x, y))
    assert_same(np.exp(d).astype(np.float32), np.exp(x).astype(np.float32))
    assert_same(da.where(d > e, d, e), np.where(x > y, x, y))
    assert_same(d.argmax(axis=1), x.argmax(axis=1))


# -- products --------------------------------------------------------------------------


@FORMATS
def test_products_have_the_bits_of_the_whole(name: str) -> None:
    x, y = numbers((20, 1000), name), numbers((1000, 30), name, 1)
    d, e = chunked(x, 8, 300), chunked(y, 170, 20)
    assert_same(d @ e, x @ y)
    assert_same(d @ y, x @ y)
    assert_same(x @ e, x @ y)
    assert_same(np.matmul(d, e), x @ y)
    assert_same(da.dot(d, e), x @ y)
    assert_same(da.tensordot(d, e, 1), x @ y)
    assert_same(d[0] @ e, x[0] @ y)
    assert_same(d @ e[:, 0], x @ y[:, 0])
    assert_same(da.vdot(d[0], e[:, 0]), np.vdot(x[0], y[:, 0]))
    want = np.matmul(x, y, dtype=np.float32)
    assert_same(td.interop.dask.matmul(d, e, dtype=np.float32), want)


def test_products_of_two_formats() -> None:
    x, y = numbers((20, 1000), "float8_e4m3fn"), numbers((1000, 30), "float8_e5m2")
    assert_same(chunked(x, 8, 300) @ chunked(y, 300, 20), x @ y)
    wide = y.astype(np.float32)  # computed by NumPy and dask
    got = chunked(x, 20, 1000) @ chunked(wide, 1000, 30)
    assert got.dtype == np.float32


@pytest.mark.parametrize(("precision", "options"), PRECISIONS)
def test_products_in_a_precision(precision: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 10000), dtype=np.float32)
    y = rng.standard_normal((10000, 12), dtype=np.float32)
    x[3, 77], x[4, 9000], y[5, 3] = np.inf, np.nan, -np.inf
    x[7], y[:, 7] = -1e-25, 1e-20  # subnormal products, and -0
    d, e = chunked(x, 8, 3000), chunked(y, 900, 10)
    want = td.matmul(x, y, precision=precision, **options)
    got = td.interop.dask.matmul(d, e, precision=precision, **options)
    assert_same(got, want)
    with td.matmul_precision(precision, **options):
        got, of_vector = d @ e, d[0] @ e
        over_axis, whole = da.tensordot(d, e, 1), np.tensordot(x, y, 1)
    assert_same(got, want)  # computed after the scope
    assert_same(over_axis, whole)
    assert_same(of_vector, td.matmul(x[0], y, precision=precision, **options))


def test_products_of_a_device() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 600), dtype=np.float32)
    d = chunked(x, 4, 100)
    for precision, options in [("bf16", {}), ("fp8_e4m3", {"scale": "row"})]:
        options |= {"device": "H100"}
        want = td.matmul(x, x.T, precision=precision, **options)
        got = td.interop.dask.matmul(d, d.T, precision=precision, **options)
        assert_same(got, want)


def test_scopes_of_more_than_float32() -> None:
    x = np.random.default_rng(0).standard_normal((9, 600))
    d = chunked(x, 4, 100)
    with td.matmul_precision("bf16", float64=True, min_size=500):
        want, got = x @ x.T, d @ d.T
        plain = d[:, :50] @ d[:, :50].T
    assert_same(got, want)
    assert np.abs(plain.compute() - x[:, :50] @ x[:, :50].T).max() < 1e-12


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((4, 1, 6, 300), (3, 300, 5)),
        ((3, 6, 300), (300, 5)),
        ((6, 300), (3, 300, 5)),
        ((300,), (3, 300, 5)),
        ((3, 6, 300), (300,)),
        ((2, 0), (0, 3)),
    ],
)
def test_stacks_of_matrices(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    x, y = numbers(one, "bfloat16"), numbers(other, "bfloat16", 1)
    d = chunked(x, *(max(1, length // 2) for length in one))
    e = chunked(y, *(max(1, length // 3) for length in other))
    assert_same(d @ e, x @ y)
    assert_same(da.dot(d, e), np.dot(x, y))
    x, y = x.astype(np.float32), y.astype(np.float32)
    d, e = d.astype(np.float32), e.astype(np.float32)
    for options in ({"scale": "row"}, {"scale": "tensor"}):
        want = td.matmul(x, y, precision="fp8_e4m3", **options)
        got = td.interop.dask.matmul(d, e, precision="fp8_e4m3", **options)
        assert_same(got, want)


@pytest.mark.parametrize("axes", [([3, 2], [0, 1]), ([2, 3], [1, 0]), (3, 0), 0])
def test_tensordot_over_axes(axes: Any) -> None:
    x, y = numbers((2, 3, 20, 30), "bfloat16"), numbers((30, 20, 4), "bfloat16", 1)
    if axes == 0:
        x, y = x[0, 0], y[0]
    d = chunked(x, *(2, 2, 7, 11)[-x.ndim :])
    e = chunked(y, *(9, 8, 4)[-y.ndim :])
    assert_same(da.tensordot(d, e, axes), np.tensordot(x, y, axes))


def test_any_order_and_einsum_round_once() -> None:
    x, y = numbers((20, 5000), "bfloat16"), numbers((5000, 30), "bfloat16", 1)
    d, e = chunked(x, 8, 300), chunked(y, 300, 20)
    exact = x.astype(float) @ y.astype(float)
    size = abs(x.astype(float)) @ abs(y.astype(float))
    most = abs(exact) * td.formats["bf16"].eps * 0.5 + size * 2.0**-23
    for got in (
        td.interop.dask.matmul(d, e, order="any"),
        da.einsum("ij,jk->ik", d, e),
    ):
        assert got.dtype == td.bf16
        assert (abs(got.compute().astype(float) - exact) <= most).all()


D = np.zeros((4, 6), np.float32)


@pytest.mark.parametrize(
    ("operands", "options", "error", "words"),
    [
        ((D, D), {"precision": "bf16"}, ValueError, "must have the same k"),
        ((D, D.T), {}, TypeError, "with a precision, float32"),
        ((D, D.T), {"precision": "bf17"}, ValueError, "precision must be"),
        (
            (D, D.T),
            {"precision": "bf16", "order": "x"},
            ValueError,
            "order must be .*got 'x'",
        ),
        ((D, D.T.astype("f8")), {"precision": "bf16"}, TypeError, "float64"),
        ((D, 3.0), {"precision": "bf16"}, TypeError, "float64"),
        ((D, np.float32(3)), {"precision": "bf16"}, ValueError, "at least one axis"),
        (
            (D.astype(td.bf16), D.T.astype(td.bf16)),
            {"precision": "bf16"},
            TypeError,
            "precision must be None for bfloat16",
        ),
        (
            (D, D.T),
            {"precision": "fp8_e4m3", "device": "H100"},
            ValueError,
            "scale must be 'row' .*got 'tensor'",
        ),
        ((D, D.T), {"precison": "bf16"}, TypeError, "precison"),
    ],
)
def test_what_no_product_is(
    operands: Any, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        td.interop.dask.matmul(*operands, **options)


def test_unknown_chunks_are_named() -> None:
    x = chunked(numbers((20, 30), "bfloat16"), 5, 5)
    x = x[:, x[0] > 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        x @ x.T


# -- names, and other processes --------------------------------------------------------


def test_formats_have_names_of_their_own() -> None:
    """Give formats different names, although dtype.str is '|V1' for all of one byte."""
    x = chunked(np.linspace(0, 3, 50, dtype=np.float32), 20)
    one, other = x.astype(td.fp8_e4m3), x.astype(td.fp8_e5m2)
    assert one.name != other.name
    got = dask.compute(one.astype(np.float32), other.astype(np.float32))
    assert (got[0] != got[1]).any()
    tokens = {tokenize(form.dtype) for form in td.formats.values()}
    assert len(tokens) == len(td.formats)
    a = numbers((9,), "bfloat16")
    again = tokenize(a.copy(), ensure_deterministic=True)
    assert tokenize(a, ensure_deterministic=True) == again != tokenize(a.view("u2"))
    assert tokenize(a[0]) == tokenize(a[:1].copy()[0])


@FORMATS
def test_arrays_are_sent(name: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from distributed.protocol import deserialize, serialize
    from distributed.protocol.serialize import deserialize_bytes, serialize_bytes

    a = numbers((400, 8), name)
    for x in (a, a[0, 0], a[:1, 0].reshape(()), a[::2], a.T, a[:0], a[:1] + a[:0, :1]):
        for got in (
            deserialize(*serialize(x)),
            deserialize_bytes(serialize_bytes(x, compression="zlib")),
        ):
            assert got.dtype == x.dtype
            assert got.tobytes() == x.tobytes()
            assert got.shape == x.shape
    mapped = np.memmap(tmp_path / "a", a.dtype, "w+", shape=a.shape)
    mapped[:] = a
    got = deserialize(*serialize(mapped))
    assert got.dtype == a.dtype
    assert got.tobytes() == a.tobytes()
    assert tokenize(mapped) == tokenize(mapped.copy())
    spread = np.broadcast_to(a[:1], a.shape)
    assert deserialize(*serialize(spread)).tobytes() == spread.tobytes()
    masked = np.ma.masked_array(a, a > a[0, 0])
    got = deserialize(*serialize(masked))
    assert got.dtype == a.dtype
    assert (got.mask == masked.mask).all()
    both = np.zeros(3, [("a", a.dtype), ("b", np.int8)])
    assert deserialize(*serialize(both)).dtype == both.dtype


def test_arrays_are_spilled(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from distributed.spill import SpillBuffer

    buffer = SpillBuffer(str(tmp_path), target=1)
    a = numbers((400, 8), "bfloat16")
    blocks = td.blocks.quantize(a, "mxfp4", 0)
    buffer["a"], buffer["blocks"] = a, blocks
    assert not buffer.memory.keys() & {"a"}
    got = buffer["a"]
    assert got.dtype == a.dtype
    assert got.tobytes() == a.tobytes()
    assert buffer["blocks"] == blocks


@pytest.mark.parametrize("first", ["tf32dtype", "dask.array"])
def test_it_does_not_matter_which_is_imported_first(first: str) -> None:
    """Import neither package by the other, and accept both orders."""
    second = "dask.array" if first == "tf32dtype" else "tf32dtype"
    program = f"""
import sys
import {first}
assert {second!r} not in sys.modules
import {second}
import dask.array as da, numpy as np, tf32dtype as td
assert "distributed" not in sys.modules
x = da.full(1 << 16, 1, dtype=td.bf16, chunks=1000)
assert float(x.sum().compute()) == 1 << 16
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


# -- arrays of blocks ------------------------------------------------------------------


@pytest.mark.parametrize("name", td.blocks.formats)
def test_blocks_are_those_of_the_whole(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 200), dtype=np.float32)
    w = rng.standard_normal((200, 20), dtype=np.float32)
    options: Any = {"scale_format": "float8_e8m0fnu"}
    whole = td.blocks.quantize(x, name, **options)
    weights = td.blocks.quantize(w, name, 0, **options)
    d, e = chunked(x, 8, 64), chunked(w, 50, 7)
    q = td.interop.dask.quantize(d, name, **options)
    p = td.interop.dask.quantize(e, name, 0, **options)
    assert q.chunks == ((8, 8, 8, 6), (200,))
    assert q.compute() == whole
    assert q.persist().compute() == whole
    assert p.compute() == weights
    assert_same(q.dequantize(), whole.dequantize())
    assert_same(q.dequantize(td.bf16), whole.dequantize(td.bf16))
    for one, other, host in [
        (q, p, whole @ weights),
        (q, e, whole @ w),
        (q, w, whole @ w),
        (d, p, x @ weights),
        (x, p, x @ weights),
        (q, weights, whole @ weights),
        (q, w[:, 0], whole @ w[:, 0]),
        (x[0], p, x[0] @ weights),
    ]:
        assert_same(one @ other, host)


def test_blocks_of_a_host_in_chunks() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6, 8, 64), dtype=np.float32)
    chunks = (2, 4, 3, 16)
    for axis in range(4):
        whole = td.blocks.quantize(x, "mxfp6_e2m3", axis)
        q = td.interop.dask.from_blocks(whole, chunks)
        assert q.compute() == whole
        assert (q.format, q.axis, q.shape) == ("mxfp6_e2m3", axis, x.shape)
        one = td.interop.dask.quantize(chunked(x, *chunks), "mxfp6_e2m3", axis)
        assert one.chunks == q.chunks
        assert one.compute() == whole


def test_what_blocks_refuse() -> None:
    x = chunked(np.random.default_rng(0).standard_normal((30, 64)), 8, 64)
    q = td.interop.dask.quantize(x, "nvfp4")
    with pytest.raises(ValueError, match=r"must have one scale_format .*dequantize"):
        q.compute()
    assert q.dequantize().compute().shape == x.shape
    with pytest.raises(
        ValueError, match=r"b must have its blocks along k, .*got axis 1"
    ):
        q @ q
    with pytest.raises(ValueError, match="must have the same k"):
        q @ x
    with pytest.raises(ValueError, match="block format must be"):
        td.interop.dask.quantize(x, "mxfp9")
    with pytest.raises(ValueError, match=r"axis must be .*got 5"):
        td.interop.dask.quantize(x, "mxfp4", 5)
    with pytest.raises(ValueError, match="rng"):
        td.interop.dask.quantize(x, "mxfp4", rng=np.random.default_rng())
    with pytest.raises(TypeError, match="block_sise"):
        td.interop.dask.quantize(x, "mxfp4", block_sise=32)
    with pytest.raises(TypeError, match="ufuncs"):
        np.add(q, 1)
    with pytest.raises(TypeError, match="BlockArray; got an array"):
        td.interop.dask.from_blocks(np.zeros(3))


def test_arrays_with_scales_are_no_arrays_of_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    blocks = td.blocks.quantize(x, "mxfp8_e4m3")
    columns = td.blocks.quantize(x, "mxfp8_e4m3", axis=0)
    tiles = td.blocks.quantize_tiles(x, "float8_e4m3fn", (1, 32))
    lazy, host = td.interop.dask.from_blocks(columns), td.blocks.matmul(blocks, columns)
    assert_same(blocks @ lazy, host)  # the operator of dask's array
    for function in (td.interop.dask.matmul, td.interop.dask.tensordot):
        for scaled in (blocks, tiles, lazy):
            with pytest.raises(TypeError, match=r"a must be an array .*got a .*Array"):
                function(scaled, x)
            with pytest.raises(TypeError, match=r"b must be .*Array.*dequantize\(\)"):
                function(x, scaled)
    rows = td.interop.dask.from_blocks(blocks)
    for product in (lambda: tiles @ lazy, lambda: rows @ tiles.T):
        with pytest.raises(TypeError, match=r"got a TileArray.*dequantize"):
            product()
    for scaled in (blocks, tiles, lazy):
        with pytest.raises(TypeError, match=r"x must be .*Array.*dequantize"):
            td.interop.dask.quantize(scaled, "mxfp4")
