"""td.blocks.quantize and its bytes: layout, scales, rounding, errors."""

from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import BITS, NAMES, normal, same
from tf32dtype import blocks

# -- the table ---------------------------------------------------------------


def test_the_table():
    assert {name: row.bits_per_value for name, row in blocks.formats.items()} == BITS
    greatest = {name: row.max for name, row in blocks.formats.items()}
    assert greatest == {
        "tcfp8": 448,
        "tcfp12": 448,
        "tcfp16": 448,
        "mxfp8_e4m3": 448,
        "mxfp8_e5m2": 57344,
        "mxfp6_e2m3": 7.5,
        "mxfp6_e3m2": 28,
        "mxfp4": 6,
        "mxint8": 127 / 64,
        "nvfp4": 6,
        "int8": 127,
        "int12": 2047,
        "int16": 32767,
    }
    assert repr(blocks.formats).startswith("<block formats: tcfp8, tcfp12,")
    assert len(blocks.formats) == len(NAMES)
    assert "tcfp9" not in blocks.formats


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [16, 32, 64, 128])
def test_bytes_are_what_the_bits_promise(name, size):
    b = blocks.quantize(normal((8, 256)), name, block_size=size)
    tensor = 0 if b.scale_format == "float8_e8m0fnu" else 4
    own = blocks.formats[name].block_size
    shares = 8 * blocks.formats[name].levels
    bits = BITS[name] - shares / own + shares / size
    assert b.nbytes == 8 * 256 * bits / 8 + tensor
    assert b.bits_per_value == bits
    assert b.buffer.nbytes == b.nbytes - tensor == len(b.tobytes())


# -- layout, byte by byte ----------------------------------------------------


def parts(b):
    """Return codes, scales and residuals as bytes, in the order of the buffer."""
    found = [b.codes, b.scales] + ([] if b.residuals is None else [b.residuals])
    assert b.tobytes() == b"".join(part.tobytes() for part in found)
    return [part.tobytes() for part in found]


def test_low_nibble_first():
    b = blocks.quantize([1, -1, 6, 0.5], "mxfp4")
    codes, scales = parts(b)
    assert codes == bytes([0xA2, 0x17]) + bytes(14)
    assert scales == bytes([127])
    assert b.codes.shape == (1, 16)
    assert b.scales.shape == (1,)
    assert b.residuals is b.residual_elements is None


def test_four_codes_of_6_bits_in_three_bytes():
    b = blocks.quantize([1, 2, 7.5, -0.125, 0, 1], "mxfp6_e2m3")
    first = 0b001000 | 0b010000 << 6 | 0b011111 << 12 | 0b100001 << 18
    codes, scales = parts(b)
    assert codes[:6] == first.to_bytes(3, "little") + (0b001000 << 6).to_bytes(
        3, "little"
    )
    assert codes[6:] == bytes(18)
    assert scales == bytes([127])


def test_two_codes_of_12_bits_in_three_bytes():
    b = blocks.quantize([2047, -2047, 1, -1], "int12", scale="amax")
    codes, scales = parts(b)
    want = (2047 | (4096 - 2047) << 12).to_bytes(3, "little")
    assert codes == want + (1 | 4095 << 12).to_bytes(3, "little") + bytes(42)
    assert scales == bytes([127])


def test_16_bits_low_byte_first():
    b = blocks.quantize([32767, -2], "int16", scale="amax")
    assert parts(b)[0] == bytes([0xFF, 0x7F, 0xFE, 0xFF]) + bytes(60)


def test_scales_of_two_levels_alternate():
    x = np.zeros((1, 33), np.float32)
    x[0, :2] = 448, 1.0625
    x[0, 32] = 896
    b = blocks.quantize(x, "tcfp12", scale="amax")
    codes, scales, residuals = parts(b)
    assert codes == bytes([0x7E, 0x38]) + bytes(30) + bytes([0x7E]) + bytes(31)
    assert scales == bytes([127, 127 - 6, 128, 0])  # 4 / 64 = 0.0625
    assert residuals == bytes([0x40]) + bytes(31)
    assert b.scales.shape == (1, 2, 2)
    assert b.residuals.shape == (1, 2, 16)
    same(b.dequantize(), x)
    assert b.residual_elements.dtype == np.int8
    assert b.residual_elements[0, :3].tolist() == [0, 4, 0]
    assert b.elements.dtype == td.float8_e4m3fn
    same(b.block_scales, np.array([[1, 2]], np.float32))


def test_nvfp4_has_a_scale_for_the_tensor():
    b = blocks.quantize([6.0, -3, *[0] * 14, 3], "nvfp4")
    assert b.tensor_scale == np.float32(6) / np.float32(448 * 6)
    assert b.tensor_scale.dtype == np.float32
    codes, scales = parts(b)
    assert codes == bytes([0xD7]) + bytes(7) + bytes([0x07]) + bytes(7)
    assert scales == bytes([0x7E, 0x76])  # 448 and 224
    same(b.block_scales, np.float32([448, 224]) * b.tensor_scale)


def test_scales_of_whole_numbers():
    # 2^-41 is the smallest t with 1 <= 448 t (15 * 2^29), where 15 * 2^29 is the
    # largest scale one binade below the top. 10 * 2^29 is the smallest scale s with 1
    # <= 448 t s.
    b = blocks.quantize([1.0], "tcfp8", scale="amax", scale_format="ue5m3")
    assert b.tensor_scale == 2.0**-41
    assert b.scales.tolist() == [30 << 3 | 2]
    assert b.block_scales.tolist() == [10 * 2.0**-12]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale_format", ["ue4m3", "ue5m3", "ue4m4", "ue3m5"])
def test_the_tensor_scale_is_the_least(name, scale_format):
    m = int(scale_format[-1])
    greatest = Fraction(blocks.formats[name].max)
    top = Fraction(2) ** (2 ** (8 - m) - 3) * (2 ** (m + 1) - 1)
    for amax in np.float32([1, 448, 3e38, 1.7, 2**-149, 1e-42, 2.0**-126, 2.0**100]):
        b = blocks.quantize([0, amax], name, scale="amax", scale_format=scale_format)
        t = Fraction(float(b.tensor_scale))
        a = Fraction(float(amax))
        if scale_format == "ue4m3":
            want = np.float64(amax) / (448 * float(greatest))
            assert float(b.tensor_scale) == max(float(np.float32(want)), 2.0**-149)
        else:
            assert t.numerator == 1 or t.denominator == 1
            assert a <= greatest * t * top or t == Fraction(2) ** 127
            assert a > greatest * t / 2 * top or t == Fraction(2) ** -149
    zero = blocks.quantize([0.0], name, scale="amax", scale_format=scale_format)
    assert zero.tensor_scale == 1


def test_a_format_without_a_scale_format_takes_the_finest_that_reaches():
    def chosen(*values):
        return blocks.quantize(values, "tcfp8", block_size=16).scale_format

    # The normal scales of ue3m5 span 6 binades below the tensor's scale, of ue4m4 14,
    # of ue5m3 30. Each power of two is in another binade above 448 * 2^m.
    def after(power):
        return chosen(1.0, *[0] * 15, 2.0**power)

    found = [after(-power) for power in range(50)]
    assert found == sorted(found, key="ue3m5 ue4m4 ue5m3 float8_e8m0fnu".split().index)
    assert [found.count(name) for name in ("ue3m5", "ue4m4", "ue5m3")] == [6, 8, 16]
    normal_scale = 448 * 2.0**5
    greatest = 448 * (2.0**6 - 1) * 2.0**5  # gives the tensor the scale 1
    below = float(np.nextafter(np.float32(normal_scale), np.float32(0)))
    assert chosen(greatest, *[0] * 15, normal_scale) == "ue3m5"
    assert chosen(greatest, *[0] * 15, below) == "ue4m4"
    assert chosen(0.0) == "ue3m5"
    assert chosen() == "ue3m5"
    for rule in ("amax", "floor", "even", "nf", "published"):
        assert blocks.quantize([1.0], "tcfp8", scale=rule).scale_format[-1] == "u"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-37, 1e-39, 1e-42])
def test_subnormal_tensors_lose_no_more_than_others(name, scale):
    """Lose at most 6 dB (a binade) more where scales are few units of the smallest
    float32. Powers of two as scales end at 2^-127: test these formats at 1e-35."""
    x = (normal((32, 64)) * scale).astype(np.float32)
    if blocks.formats[name].scale_format == "float8_e8m0fnu":
        x = (normal((32, 64)) * 1e-35).astype(np.float32)
    wide = x.astype(np.float64)
    rest = blocks.quantize(x, name).dequantize(np.float64) - wide
    decibels = 10 * np.log10((wide**2).sum() / max((rest**2).sum(), 1e-300))
    plain = normal((32, 64))
    usual = blocks.quantize(plain, name).dequantize(np.float64) - plain
    assert decibels > 10 * np.log10((plain**2).sum() / (usual**2).sum()) - 6


# -- shapes ------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [0, 1, 15, 16, 31, 32, 33])
def test_short_blocks_are_filled_with_zero_codes(name, length):
    x = normal((3, length))
    b = blocks.quantize(x, name, scale="amax")
    n = b.block_size
    count = -(-length // n)
    assert b.codes.shape[:2] == b.scales.shape[:2] == (3, count)
    full = np.zeros((3, count * n), np.float32)
    full[:, :length] = x
    longer = blocks.quantize(full, name, scale="amax")
    assert b.tobytes() == longer.tobytes()
    same(b.dequantize(), longer.dequantize()[:, :length])
    assert b.shape == b.elements.shape == (3, length)


@pytest.mark.parametrize("name", ["tcfp8", "tcfp12", "mxfp6_e2m3", "nvfp4"])
@pytest.mark.parametrize("shape", [(33,), (5, 40), (2, 17, 3), (2, 3, 20, 2), (0, 4)])
def test_every_axis(name, shape):
    x = normal(shape)
    for axis in range(-len(shape), len(shape)):
        b = blocks.quantize(x, name, axis)
        moved = blocks.quantize(np.moveaxis(x, axis, -1), name)
        assert b.tobytes() == moved.tobytes()
        assert (b.shape, b.axis) == (shape, axis % len(shape))
        assert (b.ndim, b.size) == (x.ndim, x.size)
        same(
            b.dequantize(),
            np.ascontiguousarray(np.moveaxis(moved.dequantize(), -1, axis)),
        )
        same(b.elements, np.ascontiguousarray(np.moveaxis(moved.elements, -1, axis)))
        assert b.dequantize().flags.c_contiguous


def layouts(x):
    yield np.asfortranarray(x)
    yield x[::-1, ::-1][::-1, ::-1]
    yield np.repeat(x, 2, 1)[:, ::2]
    yield x.astype(x.dtype.newbyteorder())
    raw = np.zeros(x.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(x.dtype).reshape(x.shape)
    unaligned[...] = x
    yield unaligned
    yield x.tolist()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_layout_in_memory(axis, dtype):
    x = normal((37, 41)).astype(dtype)
    want = blocks.quantize(x, "tcfp16", axis)
    for variant in layouts(x):
        assert blocks.quantize(variant, "tcfp16", axis) == want


# -- rounding ----------------------------------------------------------------


def test_directions():
    x = np.array([448, 1.03, -1.03, 1.1, -1.1])
    got = {
        rounding: blocks.quantize(x, "mxfp8_e4m3", rounding=rounding)
        .dequantize()
        .tolist()[1:]
        for rounding in "toward_zero toward_positive toward_negative to_odd".split()
    }
    assert got == {
        "toward_zero": [1, -1, 1, -1],
        "toward_positive": [1.125, -1, 1.125, -1],
        "toward_negative": [1, -1.125, 1, -1.125],
        "to_odd": [1.125, -1.125, 1.125, -1.125],
    }


def test_draws_belong_to_elements():
    x = normal((6, 50), 5)
    options = {"rounding": "stochastic", "scale": "amax"}

    def run(x, axis):
        rng = np.random.default_rng(7)
        return blocks.quantize(x, "mxfp8_e4m3", axis, rng=rng, **options).dequantize()

    draws = np.random.default_rng(7).integers(0, 2**64, size=x.shape, dtype=np.uint64)
    for axis in (0, 1):
        down = blocks.quantize(
            x, "mxfp8_e4m3", axis, scale="amax", rounding="toward_zero"
        )
        low = down.dequantize().astype(float)
        size = np.repeat(down.block_scales, 32, 1)
        size = size[:, : x.shape[axis]]
        scale = size if axis == 1 else size.T
        y = np.abs(x.astype(float) / scale)
        unit = np.exp2(np.maximum(np.floor(np.log2(np.maximum(y, 2**-6))), -6) - 3)
        fraction = (y - np.abs(low / scale)) / unit
        up = draws.astype(float) < fraction * 2.0**64
        want = low + np.sign(x) * up * unit * scale
        same(run(x, axis), want.astype(np.float32))


# -- arguments ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"format": "tcfp9"},
            ValueError,
            "got 'tcfp9'. Did you mean tcfp8, tcfp16",
        ),
        ({"format": "fp8"}, ValueError, "Did you mean tcfp8, mxfp8_e4m3 or mxfp8_e5"),
        ({"format": 8}, TypeError, "a name or a row of .*; got 8"),
        ({"axis": 2}, ValueError, "-2 to 1 for an array of 2 axes; got 2"),
        ({"axis": -3}, ValueError, "axis must be .*; got -3"),
        ({"axis": 0.5}, TypeError, r"axis must be an integer; got 0\.5"),
        ({"axis": None}, TypeError, "got None"),
        ({"block_size": 8}, ValueError, "one of 16, 32, 64 or 128; got 8"),
        ({"block_size": 0}, ValueError, "block_size must be one of 16.*; got 0"),
        ({"block_size": -16}, ValueError, "block_size must be one of 16.*; got -16"),
        ({"block_size": 16.0}, TypeError, r"block_size must be an integer; got 16\.0"),
        ({"block_size": np.float64(16)}, TypeError, "must be an integer"),
        ({"block_size": True}, TypeError, "block_size must be an integer; got True"),
        ({"block_size": np.bool_(True)}, TypeError, "must be an integer"),
        ({"block_size": [32]}, TypeError, r"block_size must be an integer; got \[32\]"),
        (
            {"block_size": "32"},
            TypeError,
            "block_size must be an integer; got '32'",
        ),
        (
            {"scale": "max"},
            ValueError,
            "one of 'amax', 'floor', 'even', 'nf'.*; got 'max'",
        ),
        ({"scale": ["amax"]}, ValueError, r"scale must be one of .*; got \['amax'\]"),
        ({"scale": "published", "format": "mxfp4"}, ValueError, "tcfp formats; got"),
        (
            {"scale": "published", "scale_format": "ue4m3"},
            ValueError,
            "'float8_e8m0fnu' .*published.*; got 'ue4m3'",
        ),
        (
            {"scale_format": "e8m0"},
            ValueError,
            "scale_format must be one of 'float8.*; got 'e8m0'",
        ),
        ({"scale_format": "auto"}, ValueError, "scale_format must be .*; got 'auto'"),
        (
            {"rounding": "nearest"},
            ValueError,
            "got 'nearest'. Use 'ties_to_even' for IEEE 754",
        ),
        (
            {"rounding": "up"},
            ValueError,
            "rounding must be one of 'ties_to_even'.*; got 'up'",
        ),
        (
            {"overflow": "ieee"},
            ValueError,
            "overflow must be 'raise' or 'saturate'; got 'ieee'",
        ),
        ({"rounding": "stochastic"}, ValueError, "must be given with rng"),
        ({"rng": np.random.default_rng(1)}, ValueError, "rng must be given with"),
        ({"rng": 5, "rounding": "stochastic"}, TypeError, r"Generator; got 5"),
        ({"x": 1.0}, ValueError, "at least one axis"),
        ({"x": [1.0, inf]}, ValueError, r"finite for tcfp8; got inf at x\[1\]"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_errors(options, error, text):
    arguments = {"x": np.ones((2, 3)), "format": "tcfp8", **options}
    with pytest.raises(error, match=text):
        blocks.quantize(**arguments)


def test_published_may_name_its_scales():
    x = normal(40)
    b = blocks.quantize(x, "tcfp12", scale="published", scale_format="float8_e8m0fnu")
    assert b == blocks.quantize(x, "tcfp12", scale="published")


@pytest.mark.parametrize("scale_format", [None, "float8_e8m0fnu"])
def test_failing_calls_draw_nothing(scale_format):
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    options = {"scale_format": scale_format, "rounding": "stochastic", "rng": rng}
    with pytest.raises(ValueError, match="nan"):
        blocks.quantize([nan], "tcfp8", **options)
    assert rng.bit_generator.state == before
