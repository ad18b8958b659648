"""Input of td.blocks.quantize: every dtype, NaN and Inf, the edges of float32."""

import bisect
import struct
from fractions import Fraction
from math import inf, nan
from typing import get_args

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import NAMES, normal, same
from tests.reference import codec
from tests.reference.formats import FORMATS
from tf32dtype import blocks
from tf32dtype.blocks.formats import Rule
from tf32dtype.blocks.lines import as_lines, to_float32

# -- input -------------------------------------------------------------------


def odd(value):
    """Round a Fraction to float32, to odd, at most to the largest float32."""
    size = abs(value)
    exponent = -126
    while Fraction(2) ** (exponent + 1) <= size and exponent < 127:
        exponent += 1
    unit = Fraction(2) ** (exponent - 23)
    count = min(size // unit, (1 << 24) - 1)
    count |= count * unit != size
    return float(count * unit) * (-1 if value < 0 else 1)


def awkward():
    rng = np.random.default_rng(3)
    yield from rng.normal(size=200)
    yield from np.ldexp(rng.normal(size=300), rng.integers(-160, 140, 300))
    for x in (1.0, 2.0**-149, 2.0**-126, 3.4028234663852886e38, 1e300, 5e-324):
        yield from (x, -x, float(np.nextafter(x, 0)), float(np.nextafter(-x, -inf)))


def test_float64_is_rounded_to_odd():
    values = np.array(list(awkward()))
    got = to_float32(values)
    assert got.dtype == np.float32
    assert got.tolist() == [odd(Fraction(x)) for x in values.tolist()]
    special = to_float32(np.array([inf, -inf, -0.0, nan]))
    assert special[:2].tolist() == [inf, -inf]
    assert struct.pack("<f", special[2]) == b"\0\0\0\x80"
    assert np.isnan(special[3])


def test_longdouble_is_rounded_to_odd():
    values = np.array(list(awkward()), np.longdouble) * (1 + np.longdouble(2) ** -60)
    want = [odd(Fraction(*x.as_integer_ratio())) for x in values]
    assert to_float32(values).tolist() == want


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_integers_are_rounded_to_odd(dtype):
    rng = np.random.default_rng(4)
    if dtype == "?":
        values = np.array([False, True])
    else:
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, 150, dtype, endpoint=True)
        values = np.concatenate(
            [wide, wide >> (info.bits // 3), wide >> info.bits // 2]
        )
        edges = [
            info.min,
            info.max,
            info.max - 1,
            *(2**k for k in range(info.bits - 1)),
        ]
        edges += [x + d for x in edges[3:] for d in (-1, 1) if x > 1]
        values = np.concatenate([values, np.array(edges, dtype)])
    got = to_float32(values)
    assert got.dtype == np.float32
    assert got.tolist() == [odd(Fraction(int(x))) for x in values]


def test_one_rounding_of_float64():
    # Above a tie of E4M3 by less than float32 resolves: rounded up, not to even.
    x = [448, 1.0625 + 2.0**-40, 1.0625 - 2.0**-40, -1.0625 - 2.0**-40]
    b = blocks.quantize(x, "mxfp8_e4m3")
    assert b.dequantize().tolist() == [448, 1.125, 1, -1.125]


INTEGERS = {"int8": (7, 0), "mxint8": (7, 6), "int12": (11, 0), "int16": (15, 0)}


def grid(element):
    """Return the magnitudes of an element, ascending; even ones have even indices."""
    if element in INTEGERS:
        bits, fraction = INTEGERS[element]
        return [Fraction(i, 1 << fraction) for i in range(1 << bits)]
    f = FORMATS[element]
    codes = range(f.max_code + 1)
    return [codec.to_fraction(codec.decode_code(f, code)) for code in codes]


def place(magnitudes, x):
    """Return the index of the magnitude nearest to |x|, ties to even."""
    above = min(bisect.bisect_left(magnitudes, abs(x)), len(magnitudes) - 1)
    below = max(above - 1, 0)
    rest, gap = 2 * (abs(x) - magnitudes[below]), magnitudes[above] - magnitudes[below]
    return above if rest > gap or (rest == gap and above % 2 == 0) else below


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wide", [np.float64, np.longdouble])
def test_every_code_is_rounded_once(name, wide):
    """Round values next to a tie to the element nearest to x / S.

    Float32 does not resolve the distance to the tie. Scales of ue4m3 have all bits of
    float32: ties are between float32 numbers, and x is first rounded to float32, to
    odd.
    """
    rng = np.random.default_rng(8)
    magnitudes = grid(blocks.formats[name].element)
    unit = 2 ** -INTEGERS.get(blocks.formats[name].element, (0, 0))[1]
    for scale in ("amax", "floor", "even"):
        x = normal((2, 64)).astype(wide)
        b = blocks.quantize(x, name, scale=scale)
        scales = np.repeat(b.block_scales, b.block_size, -1)
        elements = np.asarray(b.elements, np.float64) * unit
        for i in np.ndindex(x.shape):
            low = bisect.bisect_left(magnitudes, abs(elements[i]))
            if low < len(magnitudes) // 2:  # keep the largest magnitudes
                tie = float(magnitudes[low] + magnitudes[low + 1]) / 2
                beside = 1 + wide(2) ** -40 * rng.choice([-1, 0, 1])
                x[i] = rng.choice([-1, 1]) * wide(scales[i]) * tie * beside
        again = blocks.quantize(x, name, scale=scale)
        assert np.array_equal(again.block_scales, b.block_scales)
        found = np.asarray(again.elements, np.float64) * unit
        taken = to_float32(x) if b.scale_format == "ue4m3" else x
        for i in np.ndindex(x.shape):
            exact = Fraction(*taken[i].as_integer_ratio()) / Fraction(float(scales[i]))
            assert abs(found[i]) == magnitudes[place(magnitudes, exact)], (x[i], i)
            assert found[i] == 0 or (found[i] < 0) == (x[i] < 0)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_beyond_float32_is_as_overflow_says(name):
    for rule in get_args(Rule):
        if rule != "published" or name.startswith("tcfp"):
            for number in (1e300, -1e300, 2.0**128, 3.4028236e38):
                check_overflow(name, rule, number)


def check_overflow(name, rule, number):
    what = rule, number
    x = np.array([1.0, 0.5, number, 1] * 16)
    for y in (x, x.astype(np.longdouble)):
        saturated = blocks.quantize(y, name, scale=rule, overflow="saturate")
        greatest = np.copysign(np.float64(np.finfo(np.float32).max), number)
        clipped = np.where(np.abs(x) > 1, greatest, x).astype(np.float32)
        assert saturated == blocks.quantize(clipped, name, scale=rule), what
        if blocks.formats[name].poisons:
            poisoned = blocks.quantize(y, name, scale=rule)
            infinite = np.where(np.abs(x) > 1, np.inf, x)
            assert poisoned == blocks.quantize(infinite, name, scale=rule), what
            assert np.isnan(poisoned.dequantize()).all(), what
            continue
        with pytest.raises(
            ValueError, match=r"within the range of float32; got .* at x\[2\]"
        ):
            blocks.quantize(y, name, scale=rule)
        with pytest.raises(
            ValueError, match=r"within the range of float32; got .* at x\[2\]"
        ):
            blocks.round(y, name, scale=rule)
    # The limit is the largest float64 below the numbers that float32 rounds to Inf.
    limit = np.nextafter(2.0**128 - 2.0**103, 0)
    found = blocks.quantize([1.0, limit], name, scale=rule).dequantize(np.float64)
    assert np.isfinite(found).all(), what


@pytest.mark.parametrize("name", list(td.formats))
def test_our_dtypes_are_exact(name):
    form = td.formats[name]
    x = np.array([1, 2, 4, 0.5, 0.25, 4], form.dtype)
    want = blocks.quantize(x.astype(np.float32), "mxfp8_e4m3")
    assert blocks.quantize(x, "mxfp8_e4m3") == want


def test_ml_dtypes_and_block_arrays_are_numbers_too():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = normal((4, 40))
    b = blocks.quantize(x.astype(ml_dtypes.bfloat16), "tcfp8")
    assert b == blocks.quantize(x.astype(td.bfloat16), "tcfp8")
    again = blocks.quantize(blocks.quantize(x, "mxfp4"), "mxfp4")
    assert again == blocks.quantize(x, "mxfp4")
    with pytest.raises(TypeError, match=r"real numbers; got int4"):
        blocks.quantize(np.zeros(3, ml_dtypes.int4), "tcfp8")


@pytest.mark.parametrize(
    "x", [[1j], ["a"], [None], [2**70], np.zeros(2, "M8[s]"), np.zeros(2, "f4,i4")]
)
def test_what_is_no_array_of_real_numbers(x):
    with pytest.raises(TypeError, match="array of real numbers; got"):
        blocks.quantize(x, "tcfp8")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, td.tf32])
def test_unaligned_input(dtype):
    x = (normal((3, 64)) * 100).astype(dtype)
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    unaligned = raw.view(dtype).reshape(x.shape)
    unaligned[...] = x
    assert not unaligned.flags.aligned
    assert as_lines(unaligned, -1).flags.aligned
    for name in ("tcfp8", "mxfp4"):
        assert blocks.quantize(unaligned, name) == blocks.quantize(x, name)


def test_the_input_is_left_alone():
    x = np.array([[inf, 1, nan], [1, 2, 3]])
    copy = x.copy()
    blocks.quantize(x, "mxfp4")
    blocks.quantize(x, "tcfp8", overflow="saturate")
    np.testing.assert_array_equal(x, copy)


# -- not finite --------------------------------------------------------------

PLAIN = [name for name, row in blocks.formats.items() if not row.poisons]
POISONED = [name for name, row in blocks.formats.items() if row.poisons]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_the_first_number_that_is_not_finite_is_named(name, value):
    x = np.ones((3, 4, 5), np.float16)
    x[1, 2, 3] = value
    x[1, 3, 0] = x[2, 0, 0] = nan
    for axis in (0, 1, 2):
        for scale_format in (None, "float8_e8m0fnu", "ue4m3"):
            with pytest.raises(ValueError, match=rf"{value} at x\[1, 2, 3\]") as told:
                blocks.quantize(x, name, axis, scale_format=scale_format)
            assert ("to clip" in str(told.value)) == np.isinf(value)


@pytest.mark.parametrize("name", POISONED)
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_mx_poisons_the_block(name, value):
    x = np.ones((2, 70), np.float32)
    x[1, 40] = value
    b = blocks.quantize(x, name)
    assert b.scales[1, 1] == 0xFF
    assert not b.codes[1, 1].any()
    got = b.dequantize()
    assert np.isnan(got[1, 32:64]).all()
    got[1, 32:64] = 1
    same(got, np.ones_like(x))
    assert np.isnan(b.block_scales[1, 1])


def test_poison_takes_powers_of_two():
    with pytest.raises(ValueError, match=r"got inf at x\[1\]"):
        blocks.quantize([1, inf], "mxfp4", scale_format="ue4m3")


@pytest.mark.parametrize("name", NAMES)
def test_saturate_clips_infinities(name):
    x = normal((2, 64))
    x[0, 3], x[1, 40] = inf, -inf
    b = blocks.quantize(x, name, overflow="saturate", scale="amax")
    y = b.dequantize()
    assert np.isfinite(y).all()
    blocks_of = y.reshape(2, -1, b.block_size)
    assert y[0, 3] == blocks_of[0, 0].max() >= x[0, : b.block_size][4:].max()
    assert y[1, 40] == blocks_of[1, 40 // b.block_size].min()
    rest = np.where(np.isfinite(x), x, 0)
    others = np.isfinite(x)
    same(y[others], blocks.quantize(rest, name, scale="amax").dequantize()[others])


@pytest.mark.parametrize("name", NAMES)
def test_saturate_keeps_nan_where_there_is_one(name):
    x = [1.0, nan, 2.0]
    if blocks.formats[name].element.startswith("float8"):
        y = blocks.quantize(x, name, overflow="saturate").dequantize()
        assert np.isnan(y).tolist() == [False, True, False]
    else:
        with pytest.raises(
            ValueError, match=r"free of NaN for .* has none; got nan at x\[1\]"
        ):
            blocks.quantize(x, name, overflow="saturate")


# -- edges of float32 --------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", ["amax", "mse", "nf"])
def test_zero_subnormal_and_greatest_blocks(name, rule):
    greatest = float(np.finfo(np.float32).max)
    x = np.zeros((4, 32), np.float32)
    x[1] = 2.0**-149
    x[2] = greatest
    x[3, ::2] = -greatest
    for line in x:
        b = blocks.quantize(line, name, scale=rule, scale_format="float8_e8m0fnu")
        y = b.dequantize()
        assert np.isfinite(y).all()
        if not line.any():
            assert not b.buffer.any()
            continue
        # The error is half a step of one significant bit, or of the smallest scale's.
        error = np.abs(y.astype(float) - line).max()
        assert error <= max(float(np.abs(line).max()) / 4, 2.0**-127)


def test_negative_zero_stays_in_blocks_that_are_not_zero():
    y = blocks.quantize([1, -0.0, 0], "mxfp4").dequantize()
    assert np.signbit(y).tolist() == [False, True, False]
    assert not np.signbit(blocks.quantize([-0.0], "mxfp4").dequantize()).any()
