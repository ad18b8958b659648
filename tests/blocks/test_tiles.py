"""Arrays with one scale per tile, against plain Python."""

import copy
import itertools
import math
import pickle
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import normal, same
from tests.reference.codec import decode_code
from tests.reference.formats import FORMATS
from tf32dtype import blocks
from tf32dtype.blocks import TileArray

NAMES = [f.name for f in td.formats.values() if f.itemsize == 1 and f.signed]
NAMES += ["int8"]
SCALES = ["float32", "bfloat16", "float16", "float8_e8m0fnu"]
TILES = [(128, 128), (1, 128), (1, None), (None, 1), (None, None), (3, 5)]


def scale_dtype(name: str) -> Any:
    return getattr(td, name, name)


def tiles(
    format: str = "float8_e4m3fn",
    shape: tuple[int, ...] = (7, 12),
    tile: Any = (3, 5),
    scales: str = "float32",
    seed: int = 0,
) -> TileArray:
    """Return tiles of all codes but NaN and Inf, with scales of many binades."""
    rng = np.random.default_rng(seed)
    if format == "int8":
        finite = np.arange(-128, 128).astype(np.int8)
    else:
        codes = td.from_bits(np.arange(1 << td.formats[format].bits), format)
        finite = codes[np.isfinite(codes.astype(np.float32))]
    *stack, rows, columns = shape
    sizes = (tile[0] or rows, tile[1] or columns)
    grid = (*stack, -(-rows // sizes[0]), -(-columns // sizes[1]))
    factors = np.exp2(rng.uniform(-12, 12, grid)).astype(scale_dtype(scales))
    return TileArray.from_codes(format, rng.choice(finite, shape), factors, tile)


def value(element: Any) -> Fraction:
    if element.dtype == np.int8:
        return Fraction(int(element))
    exact = decode_code(FORMATS[element.dtype.name], int(td.bits(element)))
    magnitude = exact.integer * Fraction(2) ** exact.exponent
    return -magnitude if exact.negative else magnitude


def exact(t: TileArray) -> list[Fraction]:
    """Multiply each element by its scale exactly."""
    found = []
    for at in np.ndindex(*t.shape):
        *stack, i, j = at
        scale = t.scales[(*stack, i // t.tile[0], j // t.tile[1])]
        found.append(value(t.elements[at]) * Fraction(float(scale)))
    return found


@pytest.mark.parametrize("format", NAMES)
@pytest.mark.parametrize("scales", SCALES)
def test_values(format, scales):
    for shape, tile in [((7, 12), (3, 5)), ((2, 4, 6), (4, 2)), ((3, 3), (128, 128))]:
        t = tiles(format, shape, tile, scales)
        wide = t.dequantize(np.float64)
        assert list(map(Fraction, wide.ravel().tolist())) == exact(t)
        same(t.dequantize(), wide.astype(np.float32))
        same(np.asarray(t), wide.astype(np.float32))
        with np.errstate(all="ignore"):
            for dtype in (np.float16, td.bfloat16, td.float8_e5m2):
                same(t.dequantize(dtype), wide.astype(dtype))
                out = np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
                assert t.dequantize(dtype, out=out) is out
                same(out, wide.astype(dtype))


def test_one_rounding():
    """Round once where float32 would round the product to a tie of bfloat16."""
    tie = 1 + Fraction(3, 256)  # between 1 + 2^-7 and 1 + 2^-6, which is even
    for element, code in [(Fraction(9, 8), 0x39), (Fraction(11, 8), 0x3B)]:
        near = np.float32(float(tie / element))
        for scale in (np.nextafter(near, np.float32(0)), near):
            product = element * Fraction(float(scale))
            if product < tie and np.float32(float(product)) == float(tie):
                break
        else:
            pytest.fail("no such scale")
        t = TileArray.from_codes("float8_e4m3fn", [[code]], [[scale]])
        assert t.dequantize(np.float64)[0, 0] == float(product)
        assert t.dequantize()[0, 0] == float(tie)
        assert t.dequantize(td.bfloat16)[0, 0] == 1 + 2**-7


def test_many_bands():
    """Dequantize more rows than one band has, and tiles that end within a band."""
    t = tiles(shape=(2, 700, 517), tile=(128, 128))
    wide = np.repeat(np.repeat(t.scales, 128, -2), 128, -1)[:, :700, :517]
    same(t.dequantize(), t.elements.astype(np.float32) * wide)
    again = blocks.quantize_tiles(t.dequantize(), tile=(128, 128))
    amax = np.abs(t.dequantize())
    for k, i, j in itertools.product(range(2), range(6), range(5)):
        one = amax[k, 128 * i : 128 * i + 128, 128 * j : 128 * j + 128].max()
        assert again.scales[k, i, j] == np.float32(float(one) / 448)


# -- quantization ------------------------------------------------------------


@pytest.mark.parametrize("format", NAMES)
def test_quantize(format):
    for tile, scales in itertools.product(TILES, SCALES):
        check_quantize(format, tile, scales)


def check_quantize(format, tile, scales):
    x = normal((20, 150)) * np.exp2(np.arange(20)[:, None] - 10).astype(np.float32)
    t = blocks.quantize_tiles(x, format, tile, scale_format=scales)
    most = 127 if format == "int8" else td.formats[format].max
    sizes = (tile[0] or 20, tile[1] or 150)
    assert (t.format, t.scale_format, t.tile) == (format, scales, sizes)
    for i, j in np.ndindex(*t.scales.shape):
        part = (
            slice(i * sizes[0], (i + 1) * sizes[0]),
            slice(j * sizes[1], (j + 1) * sizes[1]),
        )
        wanted = float(np.abs(x[part]).max()) / most
        scale = float(t.scales[i, j])
        if scales == "float32":
            assert scale == float(np.float32(wanted))
        else:
            below = scale / 2  # the next scale below, of powers of two
            if scales != "float8_e8m0fnu":
                below = float(np.nextafter(t.scales[i, j], t.scales.dtype.type(0)))
            assert wanted <= scale
            assert below < wanted
        # A quotient of two 24-bit numbers is never on a tie that only float64 makes.
        quotients = (x[part].astype(np.float64) / scale).clip(-most, most)
        if format == "int8":
            quotients = np.rint(quotients)
        same(t.elements[part], quotients.astype(t.elements.dtype))
    worst = float(np.abs(t.dequantize() - x).max() / np.abs(x).max())
    assert worst < 0.3


def test_against_a_published_kernel():
    """Compare with DeepSeek's weight_quant in NumPy: equal scales, and equal codes but
    for ties that its rounded quotients make."""
    x = normal((300, 200))
    t = blocks.quantize_tiles(x)
    differ = 0
    for i, j in itertools.product(range(3), range(2)):
        part = (slice(128 * i, 128 * i + 128), slice(128 * j, 128 * j + 128))
        s = np.abs(x[part]).max() / np.float32(448)
        assert t.scales[i, j] == s
        published = (x[part] / s).astype(td.float8_e4m3fn)
        differ += int((td.bits(published) != td.bits(t.elements[part])).sum())
    assert differ <= 1


def test_numbers_at_the_ends():
    x = np.zeros((2, 4), np.float32)
    x[1] = [2.0**-149, -(2.0**-149), 0, -0.0]
    t = blocks.quantize_tiles(x, tile=(1, 4))
    assert t.scales.tolist() == [[1.0], [2.0**-149]]
    same(t.dequantize(), x)
    t = blocks.quantize_tiles([[3.4e38, 1]], scale_format="float16")
    assert t.scales.tolist() == [[65504.0]]
    assert float(t.elements[0, 0]) == 448
    for bad, name in [(math.nan, "nan"), (math.inf, "inf"), (1e300, "1e\\+300")]:
        y = np.ones((2, 3, 4))
        y[1, 2, 3] = bad
        with pytest.raises(ValueError, match=rf"got {name} at x\[1, 2, 3\]"):
            blocks.quantize_tiles(y)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (2, 0, 3), (0, 3, 4)])
@pytest.mark.parametrize("tile", TILES)
def test_nothing(shape, tile):
    t = blocks.quantize_tiles(np.ones(shape), tile=tile)
    assert t.shape == shape
    assert t.dequantize().shape == shape
    assert copy.copy(t) == t
    assert t.mT.mT == t


def test_what_is_no_tile():
    x = np.ones((4, 6), np.float32)
    for tile, error, text in [
        ((0, 4), ValueError, "rows and columns from 1 to"),
        ((4,), TypeError, "two integers or None"),
        (128, TypeError, "two integers or None"),
        ((1.5, 2), TypeError, "two integers or None"),
    ]:
        with pytest.raises(error, match=text):
            blocks.quantize_tiles(x, tile=tile)
    with pytest.raises(ValueError, match="at least two axes"):
        blocks.quantize_tiles(x[0])
    with pytest.raises(
        ValueError, match=r"format of tiles must be one of .*; got 'bfloat16'"
    ):
        blocks.quantize_tiles(x, "bf16")
    with pytest.raises(ValueError, match="got 'float8_e8m0fnu'"):
        blocks.quantize_tiles(x, td.float8_e8m0fnu)
    with pytest.raises(
        ValueError, match=r"scale_format must be one of .*; got 'float64'"
    ):
        blocks.quantize_tiles(x, scale_format="float64")
    with pytest.raises(TypeError, match="complex"):
        blocks.quantize_tiles(x * 1j)


# -- codes that exist --------------------------------------------------------


def test_from_codes():
    codes = np.random.default_rng(0).integers(0, 256, (300, 200), np.uint8)
    scales = np.ones((3, 2), np.float32)
    t = TileArray.from_codes("fp8_e4m3", codes, scales)
    assert np.shares_memory(t.elements, codes), "mapped files stay mapped"
    assert np.shares_memory(t.scales, scales)
    assert not t.elements.flags.writeable
    assert not t.scales.flags.writeable
    assert codes.flags.writeable
    elements = td.from_bits(codes, td.float8_e4m3fn)
    assert TileArray.from_codes("float8_e4m3fn", elements, scales) == t
    assert t.nbytes == 300 * 200 + 6 * 4
    same(t.block_scales, scales)
    assert repr(t) == (
        "TileArray('float8_e4m3fn', shape=(300, 200), tile=(128, 128), "
        "scale_format='float32')"
    )
    with pytest.raises(ValueError, match=r"\(3, 2\) for .*128 x 128; got \(2, 2\)"):
        TileArray.from_codes("float8_e4m3fn", codes, scales[:2])
    with pytest.raises(TypeError, match=r"one of 'float32', 'bf.*; got 'float64'"):
        TileArray.from_codes("float8_e4m3fn", codes, scales.astype(np.float64))
    with pytest.raises(TypeError, match=r"array of float8_e4m3fn; got float8_e5m2"):
        TileArray.from_codes("float8_e4m3fn", codes.view(td.float8_e5m2), scales)
    with pytest.raises(ValueError, match="codes of float4_e2m1fn must"):
        TileArray.from_codes("fp4", codes, scales)
    with pytest.raises(TypeError, match="quantize_tiles"):
        TileArray()


def test_numbers_that_are_none():
    """Convert NaN, Inf and values out of the range of float32 without a warning."""
    scales = np.array([[np.inf, np.nan, 2e38]], np.float32)
    t = TileArray.from_codes("int8", np.array([[0, 1, -2]], np.int8), scales, (1, 1))
    with np.errstate(all="raise"):
        got = t.dequantize().tolist()[0]
    assert np.isnan(got[:2]).all()
    assert got[2] == -np.inf


def test_views_that_are_not_aligned():
    """Take views of GGUF's blocks, each of a float16 scale and int8 codes."""
    raw = np.zeros((6, 2, 34), np.uint8)
    raw[...] = np.random.default_rng(0).integers(0, 100, raw.shape)
    codes = raw[..., 2:].view(np.int8).reshape(6, 64)
    scales = raw[..., :2].reshape(6, 2, 2).view("<f2")[..., 0]
    odd = np.zeros(scales.size * 3 + 1, np.uint8)[1:].reshape(6, 2, 3)[..., :2]
    odd[...] = raw[..., :2]
    for some in (scales, odd.view("<f2")[..., 0]):
        t = TileArray.from_codes("int8", codes, some, (1, 32))
        assert np.shares_memory(t.scales, some)
        wide = np.repeat(scales.astype(np.float32), 32, 1)
        same(t.dequantize(), codes.astype(np.float32) * wide)
        assert t == TileArray.from_codes("int8", codes, scales.copy(), (1, 32))


def test_big_endian_scales():
    t = tiles()
    swapped = t.scales.astype(">f4")
    other = TileArray.from_codes(t.format, t.elements, swapped, t.tile)
    same(other.dequantize(), t.dequantize())


def test_copies_and_equality():
    t = tiles(shape=(2, 7, 12))
    for other in [
        copy.copy(t),
        copy.deepcopy(t),
        *(pickle.loads(pickle.dumps(t, p)) for p in range(6)),
    ]:
        assert other == t
        same(other.dequantize(), t.dequantize())
    scales, codes = t.scales.copy(), td.bits(t.elements).copy()
    assert TileArray.from_codes(t.format, codes, scales, t.tile) == t
    scales[0, 0, 0] *= 2
    codes[0, 0, 0] ^= 1
    assert TileArray.from_codes(t.format, t.elements, scales, t.tile) != t
    assert TileArray.from_codes(t.format, codes, t.scales, t.tile) != t
    assert TileArray.from_codes("float8_e5m2", codes, t.scales, t.tile) != t
    assert t != t.dequantize().tolist()
    nan = np.full((1, 1), np.nan, np.float32)
    assert TileArray.from_codes("fp4", [[0]], nan) == TileArray.from_codes(
        "fp4", [[0]], nan
    )
    with pytest.raises(TypeError, match="unhashable"):
        hash(t)


@pytest.mark.parametrize("format", NAMES)
@pytest.mark.parametrize("scales", SCALES)
def test_files(format, scales, tmp_path):
    """Save and load also scales unaligned in the file or big-endian in memory."""
    t = tiles(format, (2, 5, 11), scales=scales)
    swapped = t.scales
    if scales in ("float32", "float16"):  # the others have only one byte order
        swapped = swapped.astype(swapped.dtype.newbyteorder(">"))
    other = TileArray.from_codes(t.format, t.elements, swapped, t.tile)
    td.save(tmp_path / "a.npy", t)
    td.savez(tmp_path / "a.npz", t=other)
    for mmap in (None, "r"):
        assert td.load(tmp_path / "a.npy", mmap_mode=mmap) == t
    with td.load(tmp_path / "a.npz") as archive:
        assert archive["t"] == t
    plain = np.load(tmp_path / "a.npy")
    assert plain[:110].tobytes() == t.elements.tobytes()
    assert plain[110:].tobytes() == t.scales.tobytes()


FACTS = {
    "format": "float8_e4m3fn",
    "shape": (5, 11),
    "tile": (3, 5),
    "scale_format": "float32",
}


def npy(facts: dict[str, Any]) -> bytes:
    """Return a .npy file of 55 codes and 6 scales, with these facts in the header."""
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (79,), }"
    line = f"{head} # tf32dtype blocks: {facts}\n".encode()
    return b"\x93NUMPY\1\0" + len(line).to_bytes(2, "little") + line + bytes(79)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (
            {"tile": (1, 5)},
            "115 bytes along one axis for float8_e4m3fn tiles",
        ),
        ({"tile": (0, 5)}, "rows and columns from 1 to"),
        ({"tile": None}, "two integers"),
        ({"tile": "ab"}, "two integers"),
        ({"scale_format": "float33"}, "scale_format must be one of"),
        ({"scale_format": []}, "scale_format must be one of"),
        ({"format": "bfloat16"}, "format of tiles must be one of"),
        ({"format": "fp9"}, "format must be"),
        ({"format": 1}, "format must be one of"),
        ({"shape": (5, 10**15)}, "; got shape (79,)"),
        ({"shape": (5, 10**30)}, "fit in memory"),
        ({"shape": (55,)}, "at least two axes"),
        ({"shape": (5, -1)}, "no negative length"),
        ({"more": 1}, "for tiles: format, shape, tile"),
    ],
)
def test_damaged_files(facts, text, tmp_path):
    file = tmp_path / "a.npy"
    file.write_bytes(npy(FACTS))
    assert td.load(file).shape == (5, 11)
    file.write_bytes(npy({**FACTS, **facts}))
    with pytest.raises(ValueError, match=re.escape(text)) as caught:
        td.load(file)
    assert str(file) in str(caught.value)


# -- parts -------------------------------------------------------------------


def test_indices():
    t = tiles(shape=(4, 7, 12), tile=(3, 5))
    x = t.dequantize()
    S = slice
    for key in [
        0,
        -1,
        S(1, 3),
        (S(None), S(3, 6)),
        (1, S(3, None), S(5, 10)),
        (..., S(5, None)),
        (S(None, None, 2), ..., S(10, 12)),
        (0, S(6, 7), S(0, 0)),
        (..., S(2, 2)),
    ]:
        same(t[key].dequantize(), x[key])
        assert t[key].tile == (3, 5)
    assert [part.shape for part in t] == [(7, 12)] * 4
    assert len(t) == 4
    for key in [(0, S(1, 3)), (0, S(0, 2)), (..., S(None, None, -1)), (0, 0), (..., 3)]:
        with pytest.raises(IndexError, match="whole tiles"):
            t[key]
    for key in [[0], np.array([0]), None, True]:
        with pytest.raises(IndexError, match="must be of integers, slices"):
            t[key]
    with pytest.raises(IndexError, match="at most 3 entries"):
        t[0, :, :, :]
    with pytest.raises(IndexError):
        t[4]
    whole = tiles(tile=(None, None))
    same(whole[2:5, 1:4].dequantize(), whole.dequantize()[2:5, 1:4])
    with pytest.raises(TypeError, match="cannot be iterated"):
        iter(whole)
    with pytest.raises(TypeError, match="does not search"):
        0 in whole  # noqa: B015


def test_transposes():
    t = tiles(shape=(7, 12), tile=(3, 5))
    same(t.T.dequantize(), np.ascontiguousarray(t.dequantize().T))
    assert t.T.tile == (5, 3)
    assert t == t.T.T
    stack = tiles(shape=(2, 7, 12))
    same(stack.mT.dequantize(), np.ascontiguousarray(stack.dequantize().mT))
    with pytest.raises(ValueError, match=r"Use \.mT"):
        stack.T  # noqa: B018


# -- products ----------------------------------------------------------------


def product(a: Any, b: Any, block: int = 128) -> Any:
    """Multiply in float32 by blocks of k: sums of exact products, rounded each step."""
    m, k = a.shape
    total = np.zeros((m, b.shape[1]), np.float32)
    for start in range(0, k, block):
        part = np.zeros_like(total)
        for i in range(start, min(start + block, k)):
            wide = a[:, i : i + 1].astype(np.longdouble) * b[i : i + 1].astype(
                np.longdouble
            )
            part = (wide + part).astype(np.float32)
        total = total + part
    return total


def test_products():
    a = tiles(shape=(5, 300), tile=(1, 128), scales="bfloat16")
    b = tiles("float8_e5m2", (300, 7), (128, 128), "float8_e8m0fnu", seed=1)
    x, y = a.dequantize(), b.dequantize()
    wanted = product(x, y)
    same(a @ b, wanted)
    same(a @ y, wanted)
    same(x @ b, wanted)
    same(np.matmul(a, b), wanted)
    same(np.matmul(a, b, dtype=td.bfloat16), wanted.astype(td.bfloat16))
    same(blocks.matmul(a, b, dtype=np.float64), wanted.astype(np.float64))
    out = np.empty((5, 7), np.float32)
    assert blocks.matmul(a, b, out=out) is out
    same(out, wanted)
    same(b.T @ a.T, product(y.T, x.T))
    mx = blocks.quantize(normal((300, 7)), "mxfp8_e4m3", 0)
    same(a @ mx, x @ mx)
    stack = tiles(shape=(2, 5, 300))
    assert (stack @ b).shape == (2, 5, 7)
    same((stack @ b)[1], stack[1] @ b)


def test_no_other_functions():
    t = tiles()
    with pytest.raises(TypeError, match=r"np\.add does not take"):
        np.add(t, 1)
    with pytest.raises(TypeError, match=r"np\.mean does not take"):
        np.mean(t)
    with pytest.raises(ValueError, match="always a copy"):
        np.asarray(t, copy=False)
    assert np.asarray(t, np.int32).dtype == np.int32
    with pytest.raises(
        ValueError, match=r"rounding must be .*; got an array of float8_e4m3fn tiles"
    ):
        td.quantize([1.0], "bf16", rounding=t)


@pytest.mark.parametrize("name", ["int4", "uint4", "uint8"])
def test_formats_that_only_tiles_have(name):
    with pytest.raises(ValueError, match=r"Use td\.blocks\.quantize_tiles") as caught:
        td.blocks.quantize(np.ones((4, 32)), name)
    advice = str(caught.value).partition("Use ")[2].replace("x", "np.ones((4, 32))", 1)
    assert eval(advice, {"td": td, "np": np}).format == name
