"""td.pack and td.unpack against Python integers, bit by bit."""

import doctest
import itertools

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._formats import bit_packing, packing

pytestmark = pytest.mark.once

NARROW = [name for name, form in td.formats.items() if form.bits < 8]
WIDE = [name for name in td.formats if name not in NARROW]
ORDERS = ["low", "high"]
RNG = np.random.default_rng(5)

narrow = pytest.mark.parametrize("name", NARROW)
each_order = pytest.mark.parametrize("order", ORDERS)


def stream(codes, width, order):
    """Pack all codes into one integer, in as few bytes as possible."""
    size = -(-len(codes) * width // 8)
    number = 0
    for i, code in enumerate(codes):
        at = i * width if order == "low" else 8 * size - (i + 1) * width
        number |= int(code) << at
    return number.to_bytes(size, "little" if order == "low" else "big")


def check(codes, name, order, shape=None):
    form = td.formats[name]
    array = td.from_bits(np.asarray(codes, np.uint8), name).reshape(shape or -1)
    packed = td.pack(array, order=order)
    assert packed.dtype == np.uint8
    assert packed.ndim == 1
    assert packed.tobytes() == stream(codes, form.bits, order)
    again = td.unpack(packed, name, array.shape, order=order)
    assert again.dtype == form.dtype
    assert again.shape == array.shape
    assert td.bits(again).ravel().tolist() == list(codes)


@narrow
@each_order
def test_all_codes_at_all_places(name, order):
    codes = range(1 << td.formats[name].bits)
    check([*codes], name, order)
    for code, other in itertools.product(codes, (0, codes[-1])):
        for place in range(4):
            group = [other] * 4
            group[place] = code
            check(group, name, order)


@each_order
def test_all_bytes_of_fp4(order):
    packed = np.arange(256, dtype=np.uint8)
    array = td.unpack(packed, "fp4", (256, 2), order=order)
    first, second = td.bits(array).T
    low, high = packed & 15, packed >> 4
    assert (first == (low if order == "low" else high)).all()
    assert (second == (high if order == "low" else low)).all()
    assert (td.pack(array, order=order) == packed).all()


@narrow
@each_order
def test_all_sizes(name, order):
    width = td.formats[name].bits
    for size in range(70):
        check(RNG.integers(0, 1 << width, size).tolist(), name, order)


@narrow
@each_order
def test_many_pieces(name, order, monkeypatch):
    monkeypatch.setattr(bit_packing, "_PIECE", 8)
    width = td.formats[name].bits
    for size in range(40):
        check(RNG.integers(0, 1 << width, size).tolist(), name, order)


@narrow
@each_order
def test_large_arrays(name, order):
    width = td.formats[name].bits
    for size in (bit_packing._PIECE - 1, 2 * bit_packing._PIECE + 3):
        codes = RNG.integers(0, 1 << width, size).astype(np.uint8)
        packed = td.pack(td.from_bits(codes, name), order=order)
        shifts = np.arange(width, dtype=np.uint8)
        if order == "high":
            shifts = shifts[::-1]
        bits = codes[:, None] >> shifts & 1
        bitorder = "little" if order == "low" else "big"
        want = np.packbits(bits.astype(np.uint8).ravel(), bitorder=bitorder)
        np.testing.assert_array_equal(packed, want)
        again = td.unpack(packed, name, size, order=order)
        np.testing.assert_array_equal(td.bits(again), codes)


@pytest.mark.parametrize("name", [*NARROW, "float8_e4m3fn", "bfloat16", "tf32"])
def test_any_shape_and_layout(name):
    form = td.formats[name]
    codes = RNG.integers(0, 1 << form.bits, (3, 5, 7)).astype(f"u{form.itemsize}")
    whole = td.from_bits(codes << form.unused_low_bits, name)
    for array in (
        *(whole, whole.T, whole[::2, ::-1, 1::3], np.asfortranarray(whole)),
        *(
            whole[0, 0, 0],
            whole[0, 0, 0, ...],
            whole[:0],
            whole[:, :0],
            whole[0, 0, :1],
        ),
    ):
        flat = np.ascontiguousarray(array).reshape(-1)
        packed = td.pack(array)
        assert packed.tobytes() == td.pack(flat).tobytes()
        again = td.unpack(packed, form.dtype, np.shape(array))
        assert again.shape == np.shape(array)
        assert again.tobytes() == np.ascontiguousarray(array).tobytes()
        assert again.flags.writeable
        assert not np.shares_memory(again, packed)
        assert not np.shares_memory(packed, array)


@pytest.mark.parametrize("name", WIDE)
def test_whole_bytes_are_themselves(name):
    form = td.formats[name]
    codes = np.arange(1 << form.bits, dtype=f"u{form.itemsize}")[
        :: max(1, form.bits - 7)
    ]
    codes <<= form.unused_low_bits
    packed = td.pack(td.from_bits(codes, name))
    assert packed.tobytes() == codes.astype(f"<u{form.itemsize}").tobytes()
    np.testing.assert_array_equal(td.bits(td.unpack(packed, name, codes.size)), codes)
    if form.bits == 8:
        assert (
            td.pack(td.from_bits(codes, name), order="high").tolist() == codes.tolist()
        )


@pytest.mark.parametrize("name", ["float4_e2m1fn", "float6_e2m3fn", "tf32"])
def test_unused_bits_are_not_packed(name):
    form = td.formats[name]
    dirty = (
        RNG.integers(0, 256, 40, np.uint8).view(f"u{form.itemsize}").view(form.dtype)
    )
    clean = td.from_bits(td.bits(dirty), name)
    assert td.pack(dirty).tobytes() == td.pack(clean).tobytes()


def test_what_bytes_are():
    want = td.unpack(np.array([[0x21], [0x43]], np.uint8), "fp4", 4)
    for packed in (b"\x21\x43", bytearray(b"\x21\x43"), memoryview(b"\x21\x43")):
        found = td.unpack(packed, "fp4", (2, 2))
        assert found.ravel().tolist() == want.tolist() == [0.5, 1, 1.5, 2]
    every_other = np.array([0x21, 0, 0x43, 0], np.uint8)[::2]
    assert td.unpack(every_other, td.fp4, [4]).tolist() == want.tolist()
    unaligned = np.frombuffer(b"\0\x80\x3f", np.uint8)[1:]
    assert td.unpack(unaligned, "bf16", 1).tolist() == [1.0]


@pytest.mark.parametrize("call", [td.pack, lambda x: td.pack(x, order="low")])
def test_what_is_not_packed(call):
    with pytest.raises(TypeError, match="format must be one of"):
        call(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="format must be one of"):
        call([1, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            (b"12", "fp4", 3 * 7),
            ValueError,
            "11 bytes for 21 numbers of float4_e2m1fn.*; got 2",
        ),
        (
            (b"12", "fp4", (1 << 40, 1 << 40)),
            ValueError,
            r"must have \d+ bytes .*; got 2",
        ),
        ((b"", "fp4", 1), ValueError, "must have 1 bytes .*; got 0"),
        ((b"12", "bf16", 2), ValueError, "4 bytes for 2 numbers of bfloat16.*; got 2"),
        ((b"12", "fp4", 3), ValueError, "zeros after the last of 3 numbers"),
        (
            (b"\0\0\xff", "float6_e2m3fn", 3),
            ValueError,
            "zeros after the last of 3",
        ),
        ((b"1111", "tf32", 1), ValueError, "tf32 does not use; .*frombuffer"),
        (
            (b"12", "fp4", -4),
            ValueError,
            r"shape must not have negative lengths; got \(-4,\)",
        ),
        ((b"12", "fp4", 4.0), TypeError, "shape must be an integer or a tuple of"),
        ((b"12", "fp4", "4"), TypeError, "shape must be an integer or a tuple of"),
        ((b"12", "fp5", 4), ValueError, "format must be .*; got 'fp5'"),
        ((b"12", np.float16, 4), TypeError, "format must be one of"),
        (([1, 2], "fp4", 4), TypeError, "uint8 array; got int64"),
        ((np.zeros(2, np.int8), "fp4", 4), TypeError, "uint8 array; got int8"),
    ],
)
def test_what_is_not_unpacked(arguments, error, words):
    with pytest.raises(error, match=words):
        td.unpack(*arguments)


@pytest.mark.parametrize("order", ["first", "", 1, None])
def test_unknown_orders(order):
    for call in (
        lambda: td.pack(np.zeros(2, td.fp4), order=order),
        lambda: td.unpack(b"1", "fp4", 2, order=order),
    ):
        with pytest.raises(ValueError, match="order must be 'low' or 'high'; got"):
            call()


@pytest.mark.parametrize("name", ["bfloat16", "tf32"])
def test_order_is_within_a_byte(name):
    form = td.formats[name]
    with pytest.raises(ValueError, match="order must be 'low' for a format of more"):
        td.pack(np.zeros(2, form.dtype), order="high")
    with pytest.raises(ValueError, match="order must be 'low' for a format of more"):
        td.unpack(bytes(form.itemsize), name, 1, order="high")


@narrow
def test_as_others_pack(name):
    """Pack rows of whole bytes as torch, ONNX and blocks do."""
    codes = RNG.integers(0, 1 << td.formats[name].bits, (2, 32)).astype(np.uint8)
    array = td.from_bits(codes, name)
    rows = td.pack(array).reshape(2, -1)
    for row, packed in zip(array, rows, strict=True):
        assert td.pack(row).tobytes() == packed.tobytes()
    form = {"float4_e2m1fn": "mxfp4", "float6_e2m3fn": "mxfp6_e2m3"}
    scales = np.full((2, 1), 127, np.uint8)
    of_blocks = td.blocks.BlockArray.from_codes(
        form.get(name, "mxfp6_e3m2"), array, scales, shape=(2, 32)
    )
    assert of_blocks.codes.tobytes() == rows.tobytes()


@pytest.mark.parametrize("width", [4, 6, 8, 12, 16])
def test_the_core_takes_groups(width):
    in_group, of_group = bit_packing.group(width)
    assert in_group * width == 8 * of_group
    item = np.uint8 if width <= 8 else np.uint16
    codes = RNG.integers(0, 1 << width, (3, 2, 4 * in_group)).astype(item)
    packed = bit_packing.pack(codes, width)
    assert packed.shape == (3, 2, 4 * of_group)
    assert packed.tobytes() == stream(codes.ravel().tolist(), width, "low")
    again = bit_packing.unpack(packed, width)
    assert again.dtype == item
    np.testing.assert_array_equal(again, codes)


def test_examples():
    results = doctest.testmod(packing)
    assert results.attempted >= 4
    assert results.failed == 0
