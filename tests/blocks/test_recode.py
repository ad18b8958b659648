"""Exact conversions of codes, compared with the values of all codes as fractions."""

from __future__ import annotations

import re
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
from tf32dtype.blocks import BlockArray, TileArray, recode

NAMES = [f.name for f in td.formats.values() if f.itemsize == 1 and f.signed]
NAMES += ["int8"]
F32 = np.float32


def value(name: str, code: int) -> Fraction | str:
    """Return the exact value of a code, or the name of NaN or Inf."""
    if name == "int8":
        return Fraction(code - 256 if code > 127 else code)
    exact = decode_code(FORMATS[name], code)
    if exact.special:
        return "nan" if exact.special == "nan" else "+-"[exact.negative] + "inf"
    magnitude = exact.integer * Fraction(2) ** exact.exponent
    return -magnitude if exact.negative else magnitude


@cache
def values(name: str) -> list[Fraction | str]:
    bits = 8 if name == "int8" else td.formats[name].bits
    return [value(name, code) for code in range(1 << bits)]


def exponents(name: str, other: str, codes: Any) -> list[int]:
    """Return each e such that 2^e times the codes' values are values of `other`."""
    known = set(values(other))
    wanted = {values(name)[code] for code in codes}
    return [
        e
        for e in range(-50, 51)
        if all(
            (x if isinstance(x, str) else x * Fraction(2) ** e) in known for x in wanted
        )
    ]


def finite(name: str) -> list[int]:
    return [c for c, x in enumerate(values(name)) if not isinstance(x, str)]


def tiles(name: str, codes: Any, scales: Any) -> TileArray:
    raw = np.asarray(codes, np.uint8)
    items = raw.view(np.int8) if name == "int8" else raw
    return TileArray.from_codes(name, items, scales, (1, None))


def raw(t: TileArray) -> Any:
    return t.elements.view(np.uint8)


def check(t: TileArray, other: str, exponent: int) -> None:
    found = recode(t, other)
    assert (found.format, found.scale_format) == (other, t.scale_format)
    assert found.tile == t.tile
    same(
        found.scales,
        np.ldexp(t.scales.astype(np.float64), -exponent).astype(t.scales.dtype),
    )
    for at in np.ndindex(*t.shape):
        before = values(t.format)[raw(t)[at]]
        after = values(other)[raw(found)[at]]
        if isinstance(before, str):
            assert after == before
        else:
            assert after == before * Fraction(2) ** exponent
    has_minus = other != "int8" and "fnuz" not in other
    signs = np.signbit(found.dequantize())
    zeros = t.dequantize() == 0
    wanted = np.signbit(t.dequantize()) if has_minus else np.zeros(t.shape, bool)
    assert (signs[zeros] == wanted[zeros]).all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_all_numbers(name, other):
    codes = finite(name)
    ways = exponents(name, other, codes)
    t = tiles(name, [codes], [[F32(0.7)]])
    if not ways:
        with pytest.raises(ValueError, match=rf"must have a code in {other}; got"):
            recode(t, other)
        return
    nearest = min(map(abs, ways))
    found = recode(t, other)
    ratio = float(t.scales[0, 0]) / float(found.scales[0, 0])
    exponent = int(np.log2(ratio))
    assert exponent in ways
    assert abs(exponent) == nearest
    check(t, other, exponent)
    if name == other:
        assert found == t


def test_e4m3fn_to_fnuz():
    """Keep the codes and double the scale; -0 becomes 0, as 0x80 is NaN in FNUZ."""
    codes = np.arange(256, dtype=np.uint8)
    codes[[0x7F, 0xFF]] = 0
    t = tiles("float8_e4m3fn", codes.reshape(2, 128), F32([[0.7], [3]]))
    found = recode(t, "float8_e4m3fnuz")
    codes[0x80] = 0
    assert (raw(found).reshape(-1) == codes).all()
    same(found.scales, F32([[1.4], [6]]))
    with_nan = tiles("float8_e4m3fn", [[0x7F, 0xFF, 1]], F32([[1]]))
    assert raw(recode(with_nan, "float8_e4m3fnuz")).tolist() == [[0x80, 0x80, 1]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_some_numbers(name):
    """Recode some codes: `recode` finds the exact power of two, or raises an error."""
    rng = np.random.default_rng(0)
    taken = refused = 0
    for other in NAMES:
        for size in (1, 2, 3, 5):
            codes = rng.choice(finite(name), size)
            ways = exponents(name, other, codes)
            t = tiles(name, [codes], [[F32(1)]])
            if ways:
                scale = float(recode(t, other).scales[0, 0])
                exponent = -int(np.log2(scale))
                assert exponent in ways
                if not exponents(name, other, finite(name)):
                    assert abs(exponent) == min(map(abs, ways))
                check(t, other, exponent)
                taken += 1
            else:
                with pytest.raises(ValueError, match="which has none"):
                    recode(t, other)
                refused += 1
    assert taken
    assert refused or name == "float4_e2m1fn"  # the others have all values of FP4


@pytest.mark.parametrize("scales", ["float32", "bfloat16", "float16", "float8_e8m0fnu"])
def test_scales(scales):
    x = normal((6, 40))
    t = blocks.quantize_tiles(x, "float8_e4m3fn", (2, 16), scale_format=scales)
    for part in (t, t.mT, t[2:4]):
        found = recode(part, "float8_e4m3fnuz")
        assert found.tile == part.tile
        same(found.scales, (part.scales.astype(F32) * 2).astype(part.scales.dtype))
        same(
            found.dequantize(np.float64),
            np.abs(0.0) + part.dequantize(np.float64) + 0.0,
        )
    most = {"float32": 2.0**127, "bfloat16": 2.0**127, "float16": 2.0**15}
    dtype = getattr(td, scales, scales)
    greatest = np.full((1, 1), most.get(scales, 2.0**127)).astype(dtype)
    t = TileArray.from_codes("float8_e4m3fn", [[1, 0x7E]], greatest)
    with pytest.raises(ValueError, match=f"scales must have {scales} codes"):
        recode(t, "float8_e4m3fnuz")


def test_another_power_for_the_scales():
    """Half of E4M3FN's numbers have codes that need no larger scale."""
    greatest = F32([[np.finfo(F32).max]])
    t = TileArray.from_codes("float8_e4m3fn", [[1, 0x76]], greatest)
    check(t, "float8_e4m3fnuz", 0)
    check(
        TileArray.from_codes(t.format, t.elements, greatest / 2), "float8_e4m3fnuz", -1
    )


# -- blocks ------------------------------------------------------------------

PAIRS = [
    ("mxfp4", "mxfp8_e4m3"),
    ("mxfp4", "mxfp8_e5m2"),
    ("mxfp4", "mxfp6_e2m3"),
    ("mxfp4", "mxfp6_e3m2"),
    ("mxfp4", "mxint8"),
    ("mxfp4", "int8"),
    ("mxfp6_e2m3", "mxfp8_e4m3"),
    ("mxfp6_e2m3", "mxint8"),
    ("mxfp6_e3m2", "mxfp8_e5m2"),
    ("mxfp6_e3m2", "tcfp8"),
    ("mxint8", "int8"),
    ("int8", "mxint8"),
    ("nvfp4", "tcfp8"),
]


@pytest.mark.parametrize(("name", "other"), PAIRS)
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks(name, other, axis):
    x = normal((40, 50)) * np.exp2(np.arange(50) % 9 - 4).astype(F32)
    b = blocks.quantize(x, name, axis)
    c = recode(b, other)
    assert c.format == other
    for fact in ("shape", "axis", "block_size", "scale_format"):
        assert getattr(c, fact) == getattr(b, fact)
    assert (c.dequantize(np.float64) == b.dequantize(np.float64)).all()
    assert recode(b, name) == b


def test_blocks_by_a_power_of_two():
    """Recode mxint8, whose elements are 2^-6 times integers, by hand."""
    b = BlockArray.from_codes(
        "mxint8", np.uint8([[65, 0xFF] + 30 * [0]]), np.uint8([[100]]), shape=(1, 32)
    )
    c = recode(b, "int8")
    assert c.codes.reshape(-1)[:2].tolist() == [65, 0xFF]
    assert c.scales.tolist() == [[94]]
    assert recode(c, "mxint8") == b
    for low in (5, 0):
        b = BlockArray.from_codes(
            "mxint8", np.uint8([[65] + 31 * [0]]), np.uint8([[low]]), shape=(1, 32)
        )
        with pytest.raises(ValueError, match="scales must have float8_e8m0fnu codes"):
            recode(b, "int8")


def test_blocks_with_a_tensor_scale():
    b = blocks.quantize(normal((4, 64)), "int8", scale_format="ue3m5")
    c = recode(b, "mxint8")
    same(c.scales, b.scales)
    assert c.tensor_scale == b.tensor_scale * 64


def test_blocks_that_are_nan():
    x = normal((2, 64))
    x[0, 3] = np.nan
    c = recode(blocks.quantize(x, "mxfp4"), "mxfp8_e4m3")
    assert np.isnan(c.dequantize()[0, :32]).all()
    assert np.isfinite(c.dequantize()[0, 32:]).all()


def test_no_numbers():
    t = blocks.quantize_tiles(np.ones((0, 4), F32))
    assert recode(t, "float8_e4m3fnuz").shape == (0, 4)
    assert recode(blocks.quantize(np.ones((0, 32)), "mxfp4"), "mxint8").size == 0


def test_errors():
    t = tiles("float8_e4m3fnuz", [[1, 0x7F]], F32([[1]]))
    b = blocks.quantize(normal((2, 64)), "mxfp8_e4m3")
    wrong: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: recode(t, "float8_e4m3fn"),
            ValueError,
            "each element times one power of two must have a code in float8_e4m3fn; got"
            " 0.000976562 of float8_e4m3fnuz, which has none",
        ),
        (
            lambda: recode(tiles("float8_e5m2", [[0x7C]], F32([[1]])), "fp8_e4m3"),
            ValueError,
            "got inf of float8_e5m2",
        ),
        (
            lambda: recode(tiles("float8_e5m2", [[1, 0x7F]], F32([[1]])), "int8"),
            ValueError,
            "got nan of float8_e5m2",
        ),
        (lambda: recode(t, "bfloat16"), ValueError, "format of tiles"),
        (lambda: recode(b, "float8_e4m3fnuz"), ValueError, "block format"),
        (lambda: recode(b, "mxfp4"), ValueError, "must have a code in float4_e2m1fn"),
        (lambda: recode(b, "int12"), ValueError, "without residuals; got int12"),
        (lambda: recode(b, "tcfp12"), ValueError, "without residuals; got tcfp12"),
        (
            lambda: recode(blocks.quantize(normal((2, 64)), "tcfp16"), "tcfp8"),
            ValueError,
            "without residuals; got tcfp16",
        ),
        (
            lambda: recode(np.ones(3), "fp8_e4m3"),
            TypeError,
            "BlockArray or a TileArray",
        ),
    ]
    for call, kind, text in wrong:
        with pytest.raises(kind, match=re.escape(text)):
            call()
