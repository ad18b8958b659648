"""Codes by each kind of division of kernels, and scales of square tiles, by hand."""

from __future__ import annotations

import re
from bisect import bisect_left
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import normal, same
from tests.reference.codec import decode_code
from tests.reference.formats import FORMATS
from tf32dtype import blocks
from tf32dtype.blocks import BlockArray

F32 = np.float32
DIVISIONS = ("exact", "divide", "reciprocal")


def halves(shape, seed=0):
    """Return numbers of bfloat16, whose quotients are often near ties."""
    return normal(shape, seed).astype(td.bfloat16).astype(F32)


def value(name: str, code: int) -> Fraction:
    if name in ("int8", "mxint8"):
        unit = 64 if name == "mxint8" else 1
        return Fraction(code - 256 if code > 127 else code, unit)
    exact = decode_code(FORMATS[name], code)
    magnitude = exact.integer * Fraction(2) ** exact.exponent
    return -magnitude if exact.negative else magnitude


@cache
def magnitudes(name: str) -> list[Fraction]:
    """Return the values of the codes without a sign, in order, without Inf and NaN."""
    if name in ("int8", "mxint8"):
        return [value(name, code) for code in range(128)]
    codes = range(1 << (td.formats[name].bits - 1))
    finite = np.isfinite(td.from_bits(np.array(codes), name).astype(F32))
    return [value(name, code) for code in codes if finite[code]]


def nearest_code(name: str, q: Fraction, negative: bool) -> int:
    """Return the code nearest to a quotient, ties to even, at most the largest."""
    known = magnitudes(name)
    after = bisect_left(known, abs(q))
    near = [code for code in (after - 1, after) if 0 <= code < len(known)]
    best = min(near, key=lambda code: (abs(known[code] - abs(q)), code & 1))
    if not negative:
        return best
    if name in ("int8", "mxint8"):
        return -best & 255
    return best | 1 << (td.formats[name].bits - 1)


def quotient(x: Any, s: Any, division: str) -> Fraction:
    x, s = F32(x), F32(s)
    if division == "exact":
        return Fraction(float(x)) / Fraction(float(s))
    return Fraction(float(x / s if division == "divide" else x * (F32(1) / s)))


def raw(elements: Any) -> Any:
    return elements.view(np.uint8)


# -- tiles -------------------------------------------------------------------


@pytest.mark.parametrize("division", [*DIVISIONS, "amax"])
@pytest.mark.parametrize("format", ["float8_e4m3fn", "float4_e2m1fn", "int8"])
def test_tiles(format, division):
    x = halves((64, 256))
    t = blocks.quantize_tiles(x, format, (1, 128), division=division)
    most = F32(127 if format == "int8" else td.formats[format].max)
    g = x.reshape(64, 2, 128)
    amax = np.abs(g).max(-1, keepdims=True)
    s = amax / most
    same(t.scales, s[..., 0])
    if division == "exact":
        y: Any = g.astype(np.float64) / s
    else:
        ways = {"divide": g / s, "reciprocal": g * (F32(1) / s)}
        y = (ways | {"amax": g * (most / amax)})[division]
        assert y.dtype == F32
    y = y.clip(-most, most).reshape(x.shape)
    wanted = np.rint(y) if format == "int8" else y
    same(t.elements, wanted.astype(t.elements.dtype))
    for i, k in [(0, 0), (13, 77), (63, 255)]:
        q = Fraction(float(y[i, k]))
        assert raw(t.elements)[i, k] == nearest_code(format, q, x[i, k] < 0)


def test_tiles_differ():
    """Find codes that differ next to ties, by one rounding of the quotient or two."""
    x = halves((512, 1024))
    found = {
        division: raw(
            blocks.quantize_tiles(x, tile=(1, 128), division=division).elements
        )
        for division in ("exact", "divide", "reciprocal", "amax")
    }
    differ = [int((codes != found["exact"]).sum()) for codes in found.values()]
    assert differ[0] == 0
    assert min(differ[1:]) > 100
    assert max(differ[1:]) < x.size // 100
    i, k = (int(a[0]) for a in np.nonzero(found["exact"] != found["divide"]))
    t = blocks.quantize_tiles(x, tile=(1, 128))
    s = t.scales[i, k // 128]
    for division in DIVISIONS:
        q = quotient(x[i, k], s, division)
        wanted = nearest_code("float8_e4m3fn", q, q < 0)
        assert found[division][i, k] == wanted


@pytest.mark.parametrize("scales", ["float8_e8m0fnu", "bfloat16", "float16"])
def test_tiles_with_narrow_scales(scales):
    x = halves((32, 96))
    for division in DIVISIONS:
        t = blocks.quantize_tiles(
            x, tile=(16, 32), scale_format=scales, division=division
        )
        s = np.repeat(np.repeat(t.scales.astype(F32), 16, 0), 32, 1)
        y = {"divide": x / s, "reciprocal": x * (F32(1) / s)}.get(
            division, x / s.astype(np.float64)
        )
        same(t.elements, y.astype(td.float8_e4m3fn))
        if scales == "float8_e8m0fnu":
            assert t == blocks.quantize_tiles(x, tile=(16, 32), scale_format=scales)


def test_tiles_of_zeros_and_of_tiny_numbers():
    x = np.zeros((2, 4), F32)
    for division in ("exact", "divide", "reciprocal", "amax"):
        t = blocks.quantize_tiles(x, tile=(1, 4), division=division)
        assert t == blocks.quantize_tiles(x, tile=(1, 4))
    x[0, 0] = 2.0**-140
    assert blocks.quantize_tiles(x, division="divide").dequantize()[0, 0] > 0
    for division in ("reciprocal", "amax"):
        with pytest.raises(ValueError, match="within the range of float32; got inf"):
            blocks.quantize_tiles(x, division=division)


# -- blocks ------------------------------------------------------------------


@pytest.mark.parametrize("division", ["divide", "reciprocal"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("format", "scale_format"),
    [("nvfp4", None), ("tcfp8", "ue3m5"), ("int8", "ue3m5"), ("mxfp8_e4m3", None)],
)
def test_blocks(format, scale_format, axis, division):
    x = halves((48, 40), 1)
    x[3] = 0
    options: Any = {"scale_format": scale_format, "scale": "floor"}
    b = blocks.quantize(x, format, axis, division=division, **options)
    plain = blocks.quantize(x, format, axis, **options)
    same(b.scales, plain.scales)
    assert b.tensor_scale == plain.tensor_scale
    s = b.block_scales
    lines = x if axis == 1 else x.T
    codes = raw(b.elements if axis == 1 else np.ascontiguousarray(b.elements.T))
    element = blocks.formats[format].element
    for i, k in np.ndindex(*lines.shape):
        scale = s[i, k // b.block_size]
        q = quotient(lines[i, k], scale, division) if scale else Fraction(0)
        if not np.any(lines[i, k // b.block_size * b.block_size :][: b.block_size]):
            q = Fraction(0)
        assert codes[i, k] == nearest_code(element, q, lines[i, k] < 0)


@pytest.mark.parametrize("format", ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp4"])
def test_powers_of_two_agree(format):
    x = halves((16, 64)) * np.exp2(np.arange(16) - 130)[:, None].astype(F32)
    for division in DIVISIONS:
        b = blocks.quantize(x, format, division=division)
        assert b == blocks.quantize(x, format)


def test_divisions_of_blocks_differ():
    """Quantize numbers next to 3.5 S, the tie of 3 and 4, with one rounding or two."""
    found = set()
    for m in range(100):
        x = np.zeros((2, 16), F32)
        x[0, 0], x[1, 0] = 100 + m, 20
        scale = blocks.quantize(x, "nvfp4").block_scales[1, 0]
        x[1, 1] = F32(3.5) * scale
        codes = []
        for division in DIVISIONS:
            b = blocks.quantize(x, "nvfp4", division=division)
            assert b.block_scales[1, 0] == scale
            q = quotient(x[1, 1], scale, division)
            codes.append(int(raw(b.elements)[1, 1]))
            assert codes[-1] == nearest_code("float4_e2m1fn", q, False)
        found.add(tuple(codes))
    assert {codes[0] == codes[1] for codes in found} == {True, False}
    assert {codes[1] == codes[2] for codes in found} == {True, False}


@pytest.mark.parametrize("rounding", ["toward_zero", "ties_to_away", "stochastic"])
@pytest.mark.parametrize("axis", [0, 1])
def test_other_roundings(rounding, axis):
    """Compare tiles of one line with blocks: equal scales and codes."""
    x = normal((32, 48))
    made = []
    for tile in (None, (1, 16) if axis == 1 else (16, 1)):
        rng = np.random.default_rng(7) if rounding == "stochastic" else None
        made.append(
            blocks.quantize(x, "nvfp4", axis, tile=tile, rounding=rounding, rng=rng)
        )
    assert made[0] == made[1]


def test_special_values():
    x = normal((32, 64))
    x[1, 5], x[30, 40] = np.nan, -np.inf
    b = blocks.quantize(x, "mxfp8_e4m3", tile=(32, 32))
    assert np.isnan(b.dequantize()).all()
    for axis in (0, 1):
        b = blocks.quantize(x, "mxfp8_e4m3", axis, division="divide")
        assert b == blocks.quantize(x, "mxfp8_e4m3", axis)
        b = blocks.quantize(x, "mxfp8_e4m3", axis, tile=(32, 32), overflow="saturate")
        values = b.dequantize()
        assert np.isnan(values[1, 5])
        assert values[30, 40] == values.T[40, 30] < -2
        assert np.isfinite(np.delete(values, 1, 0)).all()
        for options in ({"tile": (16, 16)}, {"division": "divide"}):
            with pytest.raises(ValueError, match=r"got nan at x\[1, 5\]"):
                blocks.quantize(x, "nvfp4", axis, **options)
            with pytest.raises(ValueError, match=r"got nan at x\[1, 5\]"):
                blocks.quantize(x, "nvfp4", axis, overflow="saturate", **options)


# -- square tiles ------------------------------------------------------------


@pytest.mark.parametrize(("format", "side"), [("nvfp4", 16), ("mxfp8", 32)])
@pytest.mark.parametrize("shape", [(64, 96), (50, 37), (3, 40, 20), (1, 1), (0, 16)])
def test_transposes_are_alike(format, side, shape):
    x = normal(shape) * F32(3)
    b = blocks.quantize(x, format, tile=(side, side))
    c = blocks.quantize(x.swapaxes(-1, -2), format, tile=(side, side))
    assert b.shape == x.shape
    assert b.tensor_scale == c.tensor_scale
    same(b.dequantize(), np.ascontiguousarray(c.dequantize().swapaxes(-1, -2)))
    same(b.elements, np.ascontiguousarray(c.elements.swapaxes(-1, -2)))
    assert blocks.quantize(x.swapaxes(-1, -2), format, -2, tile=(side, side)).mT == b


def test_scales_of_square_tiles():
    """Compute nvfp4's scale by hand: A / 6 over the tensor's scale, as E4M3."""
    x = halves((40, 70)) * np.exp2(np.arange(70) % 7).astype(F32)
    b = blocks.quantize(x, "nvfp4", tile=(16, 16))
    amax = Fraction(float(np.abs(x).max()))
    tensor = F32(float(amax)) / F32(448 * 6)
    assert b.tensor_scale == tensor
    for r, c in np.ndindex(*b.scales.shape):
        top = 16 * (r // 16)
        a = Fraction(float(np.abs(x[top : top + 16, 16 * c : 16 * c + 16]).max()))
        q = a / 6 / Fraction(float(tensor))
        assert b.scales[r, c] == nearest_code("float8_e4m3fn", q, False)
    s = np.repeat(b.block_scales, 16, 1)[:, :70]
    codes = raw(b.elements)
    for i, k in np.ndindex(*x.shape):
        q = quotient(x[i, k], s[i, k], "exact")
        assert codes[i, k] == nearest_code("float4_e2m1fn", q, x[i, k] < 0)
    again = BlockArray.from_codes(
        "nvfp4", b.codes, b.scales, shape=b.shape, tensor_scale=b.tensor_scale
    )
    assert again == b


def test_tiles_of_other_shapes():
    x = normal((48, 64))
    whole = blocks.quantize(x, "nvfp4", tile=(None, 16))
    assert (whole.scales == whole.scales[:1]).all()
    same(whole.scales, blocks.quantize(x, "nvfp4", tile=(10**9, 16)).scales)
    d = blocks.quantize(x, "nvfp4", tile=(16, 16), division="divide")
    same(d.scales, blocks.quantize(x, "nvfp4", tile=(16, 16)).scales)


def test_errors():
    x = normal((32, 64))
    q, t = blocks.quantize, blocks.quantize_tiles
    wrong: list[tuple[Any, type[Exception], str]] = [
        (lambda: t(x, division="float32"), ValueError, "got 'float32'"),
        (lambda: t(x, division=1), ValueError, "got 1"),
        (
            lambda: t(x, division="amax", scale_format="bfloat16"),
            ValueError,
            "scale_format must be 'float32' for division='amax'",
        ),
        (lambda: q(x, "nvfp4", division="amax"), ValueError, "got 'amax'"),
        (lambda: q(x, "nvfp4", division=["x"]), ValueError, "got ['x']"),
        (lambda: q(x, "tcfp16", division="divide"), ValueError, "got tcfp16"),
        (
            lambda: q(x, "int8", division="divide", rounding="toward_zero"),
            ValueError,
            "rounding must be 'ties_to_even' for int8 with tile or division",
        ),
        (
            lambda: q(x, "nvfp4", tile=(16, 32)),
            ValueError,
            "tile must be 16 long on the block axis, one of the last two; got (16, 32)"
            " for axis 1 of shape (32, 64)",
        ),
        (lambda: q(x, "nvfp4", 0, tile=(32, 16)), ValueError, "16 long on the block"),
        (lambda: q(x[None], "nvfp4", 0, tile=(16, 16)), ValueError, "for axis 0"),
        (lambda: q(x[0], "nvfp4", tile=(16, 16)), ValueError, "at least two axes"),
        (lambda: q(x, "nvfp4", tile=16), TypeError, "tile must be two integers"),
        (lambda: q(x, "tcfp8", tile=(32, 32)), ValueError, "got 'mse'"),
        (lambda: q(x, "nvfp4", tile=(16, 16), scale="nf"), ValueError, "got 'nf'"),
    ]
    for call, kind, text in wrong:
        with pytest.raises(kind, match=re.escape(text)):
            call()
