"""Products of arrays of blocks: the bits of one fixed order of roundings."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks import digests
from tests.blocks.operands import (
    expected,
    items_of,
    random_blocks,
    random_numbers,
)
from tf32dtype import _core
from tf32dtype.blocks import BlockArray, formats
from tf32dtype.blocks.products import matmul

NAMES = [name for name, row in formats.items() if row.block_size == 32]
SCALES = ["float8_e8m0fnu", "ue4m3", "ue5m3", "ue4m4", "ue3m5"]
NAN = 0x7FC00000


def check(got: Any, wanted: np.ndarray, what: object = "") -> None:
    """Check that the shape and all bits are equal."""
    items = items_of(got)
    assert items.shape == wanted.shape, what
    wrong = np.argwhere(items != wanted)
    assert len(wrong) == 0, (
        f"{what}: {len(wrong)} of {wanted.size} differ, the first at {wrong[0]}: "
        f"{items[tuple(wrong[0])]:#x}, not {wanted[tuple(wrong[0])]:#x}"
    )


# -- blocks times blocks -----------------------------------------------------------


@pytest.mark.parametrize("first", NAMES)
def test_every_pair_of_formats(first: str, compared: Any) -> None:
    for number, second in enumerate(NAMES):
        a = random_blocks(first, (2, 75), 1, number)
        b = random_blocks(second, (75, 3), 0, number + 100)
        check(matmul(a, b), expected(a, b), second)
        compared(6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [16, 32, 64, 128])
@pytest.mark.parametrize("name", list(formats))
def test_sizes_of_blocks(name: str, size: int) -> None:
    """Multiply with whole and short blocks, of an even and an odd number of values."""
    for k in (1, size - 1, size, 2 * size + 3):
        a = random_blocks(name, (2, k), 1, 1, block_size=size)
        b = random_blocks(name, (k, 3), 0, 2, block_size=size)
        check(matmul(a, b), expected(a, b), k)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["tcfp8", "tcfp12", "tcfp16", "mxfp4", "int12"])
def test_formats_of_scales(name: str, scale: str) -> None:
    """Use also tensor scales that are not powers of two, where allowed."""
    tensor = 0.3 if scale == "ue4m3" else 2.0**-5
    options: Any = {"scale_format": scale, "tensor_scale": float(np.float32(tensor))}
    a = random_blocks(name, (4, 70), 1, 3, **options)
    b = random_blocks(name, (70, 4), 0, 4, **options)
    check(matmul(a, b), expected(a, b))


@pytest.mark.parametrize("terms", [1, 3, 4, None])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tcfp16", "tcfp16"),
        ("tcfp12", "tcfp16"),
        ("tcfp16", "tcfp8"),
        ("int8", "tcfp12"),
    ],
)
def test_terms(first: str, second: str, terms: Any) -> None:
    a = random_blocks(first, (5, 130), 1, 5)
    b = random_blocks(second, (130, 3), 0, 6)
    check(matmul(a, b, terms=terms), expected(a, b, terms or 4))
    # A tall result is computed as its transpose, whose terms are in the same order.
    check(matmul(a, b[:, :2], terms=terms), expected(a, b[:, :2], terms or 4))


def test_terms_differ() -> None:
    great: Any = {"scales": (100, 120)}  # of residuals, too
    a = random_blocks("tcfp16", (4, 64), 1, 7, **great)
    b = random_blocks("tcfp16", (64, 4), 0, 8, **great)
    found = [items_of(matmul(a, b, terms=terms)) for terms in (1, 3, 4)]
    assert (found[0] != found[1]).any()
    assert (found[1] != found[2]).any()
    check(matmul(a, b), found[2])


SIZES = [(1, 513, 70), (13, 256, 65), (200, 700, 130), (1030, 300, 20), (20, 290, 1100)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
@pytest.mark.parametrize("name", ["mxfp8_e4m3", "tcfp16", "nvfp4", "int16"])
def test_elements_of_large_products(
    name: str, m: int, k: int, n: int, compared: Any
) -> None:
    """Check rows and columns at the ends of panels, MC blocks and tiles, and others."""
    a, b = random_blocks(name, (m, k), 1, 9), random_blocks(name, (k, n), 0, 10)
    rng = np.random.default_rng(m)

    def some(length: int) -> list[int]:
        ends = {0, 5, 6, 63, 64, 191, 192, 959, 960, 1023, 1024, length - 1}
        return sorted({x for x in ends | set(rng.integers(0, length, 2)) if x < length})

    rows, columns = some(m)[:9], some(n)[-5:]
    got = matmul(a, b)[np.ix_(rows, columns)]
    check(got, expected(a[rows], b[:, columns]), (rows, columns))
    compared(got.size)


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2", "tcfp16"])
def test_scales_at_the_ends(name: str) -> None:
    """Let products of scales, and sums, overflow, underflow and be subnormal."""
    for low, high in ((0, 3), (60, 70), (250, 255), (0, 255)):
        options: Any = {"scale_format": "float8_e8m0fnu", "scales": (low, high)}
        a = random_blocks(name, (5, 96), 1, low, **options)
        b = random_blocks(name, (96, 5), 0, high, **options)
        with np.errstate(all="ignore"):
            check(matmul(a, b), expected(a, b), (low, high))


# -- blocks times numbers ----------------------------------------------------------

NUMBERS = ["float32", "float16", "bfloat16", "tf32", "float8_e5m2", "float4_e2m1fn"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("blocks", ["mxfp8_e4m3", "tcfp12", "tcfp16", "int12"])
def test_numbers(name: str, blocks: str) -> None:
    a, b = random_blocks(blocks, (2, 300), 1, 1), random_blocks(blocks, (300, 3), 0, 2)
    x, y = random_numbers(name, (300, 3), 3), random_numbers(name, (2, 300), 4)
    for terms in (1, 3, 4):
        check(matmul(a, x, terms=terms), expected(a, x, terms))
        check(matmul(y, b, terms=terms), expected(y, b, terms))


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """Return equal matrices with different layouts in memory."""
    spaced = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)[::2, ::3]
    spaced[...] = x
    backwards = x[::-1, ::-1].copy()[::-1, ::-1]
    raw = bytearray(x.nbytes + 1)
    unaligned = np.ndarray(x.shape, x.dtype, raw, 1)
    unaligned[...] = x
    return [x, np.asfortranarray(x), spaced, backwards, unaligned]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2"])
def test_layouts_of_numbers(name: str) -> None:
    a = random_blocks("mxfp6_e3m2", (70, 290), 1, 1)
    b = random_blocks("tcfp12", (290, 70), 0, 2)
    x, y = random_numbers(name, (290, 70), 3), random_numbers(name, (70, 290), 4)
    wanted = [items_of(matmul(a, x)), items_of(matmul(y, b))]
    rows = [0, 33, 69]
    check(wanted[0][rows][:, rows].view(np.float32), expected(a[rows], x[:, rows]))
    check(wanted[1][rows][:, rows].view(np.float32), expected(y[rows], b[:, rows]))
    for left, right in zip(layouts(x), layouts(y), strict=True):
        check(matmul(a, left), wanted[0])
        check(matmul(right, b), wanted[1])


@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "u2", ">i2", ">f4", ">f2"])
def test_other_numbers(dtype: str) -> None:
    a = random_blocks("mxint8", (3, 40), 1, 1)
    x = np.random.default_rng(0).integers(0, 100, (40, 4)).astype(dtype)
    same = x.astype(np.float32)
    check(matmul(a, x), expected(a, same))
    check(matmul(same.T, a.T), expected(same.T, a.T))


@pytest.mark.parametrize("first", [2.0**-133, 2.0**-126, 2.0**-110, 2.0**-95])
def test_numbers_whose_products_are_subnormal(first: float) -> None:
    """Keep subnormal products, which an instruction for bfloat16 pairs flushes to 0."""
    a = random_blocks("mxfp8_e5m2", (8, 280), 1, 1, scales=(170, 200))
    b = random_blocks("mxfp8_e5m2", (280, 200), 0, 1, scales=(170, 200))
    x = random_numbers("bfloat16", (280, 7), 2)
    x[-1, -1] = x[0, 0] = first
    y = random_numbers("bfloat16", (200, 280), 2)
    y[-1, -1] = first  # in the second block of MC rows
    check(matmul(a, x), expected(a, x))
    rows = [0, 191, 192, 199]
    columns = [0, 199]
    got = matmul(y, b)[np.ix_(rows, columns)]
    check(got, expected(y[rows], b[:, columns]))
    tiny = (x.astype(np.float32) * np.float32(first)).astype(td.bfloat16)
    check(matmul(a, tiny), expected(a, tiny))


# -- shapes ------------------------------------------------------------------------

STACKS = [
    ((), ()),
    ((2,), ()),
    ((), (3,)),
    ((2,), (2,)),
    ((2, 1), (1, 3)),
    ((1, 2), (3, 1)),
    ((0,), ()),
    ((2, 3), (1, 1)),
]


def matrix(x: Any, index: tuple[int, ...]) -> Any:
    """Return the matrix of a stack that broadcasting pairs with an index."""
    lengths = x.shape[:-2]
    index = index[len(index) - len(lengths) :]
    return x[tuple(min(i, n - 1) for i, n in zip(index, lengths, strict=True))]


@pytest.mark.parametrize(("left", "right"), STACKS)
@pytest.mark.parametrize("kind", ["blocks", "first", "second"])
def test_stacks(left: tuple[int, ...], right: tuple[int, ...], kind: str) -> None:
    a: Any = random_blocks("tcfp12", (*left, 4, 40), -1, 1)
    b: Any = random_blocks("mxfp4", (*right, 40, 5), -2, 2)
    a = random_numbers("float32", a.shape, 3) if kind == "second" else a
    b = random_numbers("bfloat16", b.shape, 4) if kind == "first" else b
    stack = np.broadcast_shapes(left, right)
    got = matmul(a, b)
    assert got.shape == (*stack, 4, 5)
    for index in np.ndindex(stack):
        check(got[index], expected(matrix(a, index), matrix(b, index)), index)


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "tcfp16"])
def test_vectors(name: str) -> None:
    a, b = random_blocks(name, (4, 80), 1, 1), random_blocks(name, (80, 5), 0, 2)
    row, column = random_blocks(name, (80,), 0, 3), random_blocks(name, (80,), 0, 4)
    numbers = random_numbers("float32", (80,), 5)
    whole = matmul(a, b)
    assert whole.shape == (4, 5)
    check(matmul(a[1], b), items_of(whole)[1])
    check(matmul(a, b[:, 2]), items_of(whole)[:, 2])
    check(matmul(a[1], b[:, 2]), items_of(whole)[1, 2])
    assert isinstance(matmul(row, column), np.float32)
    assert matmul(numbers, b).shape == (5,)
    check(matmul(numbers, b), items_of(matmul(numbers[None], b))[0])
    check(matmul(a, numbers), items_of(matmul(a, numbers[:, None]))[:, 0])
    stack = random_blocks(name, (3, 80, 5), 1, 6)
    check(matmul(numbers, stack)[1], items_of(matmul(numbers, stack[1])))
    check(matmul(row, stack)[2], items_of(matmul(row, stack[2])))


@pytest.mark.parametrize(("m", "k", "n"), [(0, 5, 3), (3, 0, 4), (2, 40, 0), (0, 0, 0)])
def test_empty(m: int, k: int, n: int) -> None:
    a, b = random_blocks("tcfp12", (m, k), 1), random_blocks("tcfp12", (k, n), 0)
    numbers = np.ones((k, n), np.float32)
    out = np.full((m, n), np.float32(9))
    check(matmul(a, b, out=out), np.zeros((m, n), np.uint32))
    check(matmul(a, numbers), np.zeros((m, n), np.uint32))


def test_operators() -> None:
    a = random_blocks("tcfp16", (4, 80), 1, 1)
    b = random_blocks("tcfp16", (80, 5), 0, 2)
    x, y = random_numbers("float32", (4, 80), 3), random_numbers("bfloat16", (80, 5), 4)
    check(a @ b, items_of(matmul(a, b)))
    check(a @ y, items_of(matmul(a, y)))
    check(x @ b, items_of(matmul(x, b)))
    check(np.matmul(x, b), items_of(matmul(x, b)))
    out = np.empty((4, 5), np.float32)
    assert np.matmul(a, b, out=out) is out
    check(out, items_of(matmul(a, b)))


# -- results -----------------------------------------------------------------------

RESULTS = ["float32", "float64", "float16", "tf32", "bfloat16", "float8_e4m3fn"]


@pytest.mark.parametrize("name", RESULTS)
def test_dtypes_of_results(name: str) -> None:
    dtype = np.dtype(getattr(td, name) if hasattr(td, name) else name)
    a = random_blocks("tcfp12", (9, 70), 1, 1, tensor_scale=2.0**-20)
    b = random_blocks("mxfp4", (70, 9), 0, 2, scales=(118, 124))
    got = matmul(a, b, dtype=dtype)
    assert got.dtype == dtype
    if name == "float64":
        assert (got == matmul(a, b).astype(float)).all()
    else:
        check(got, expected(a, b, dtype=dtype))
    if not hasattr(td, name):  # a dtype of ours has only the machine's byte order
        swapped = matmul(a, b, dtype=dtype.newbyteorder(">"))
        assert (swapped.astype(dtype).tobytes()) == got.tobytes()


@pytest.mark.parametrize("name", RESULTS)
def test_out(name: str) -> None:
    dtype = np.dtype(getattr(td, name) if hasattr(td, name) else name)
    a = random_blocks("mxfp4", (70, 70), 1, 1)
    b = random_blocks("mxfp4", (70, 80), 0, 2)
    with np.errstate(all="ignore"):
        wanted = items_of(matmul(a, b, dtype=dtype))
        for out in layouts(np.zeros((70, 80), dtype)):
            assert matmul(a, b, dtype=dtype, out=out) is out
            check(out, wanted)
        single = np.zeros((70, 80), np.float32)
        matmul(a, b, dtype=dtype, out=(single,))
    assert np.array_equal(single, wanted.view(dtype).astype(np.float32), equal_nan=True)


def test_out_that_overlaps() -> None:
    a = random_blocks("mxfp8_e4m3", (40, 40), 1, 1)
    x = random_numbers("float32", (40, 40), 2)
    wanted = items_of(matmul(a, x))
    memory = np.zeros(41 * 40, np.float32)
    source = memory[:1600].reshape(40, 40)
    source[...] = x
    target = memory[40:].reshape(40, 40)
    matmul(a, source, out=target)
    check(target, wanted)
    matmul(a, x, out=x)
    check(x, wanted)


def test_threads_at_the_same_time() -> None:
    a, b = random_blocks("tcfp16", (64, 300), 1), random_blocks("tcfp16", (300, 70), 0)
    wanted = items_of(matmul(a, b))
    results: list[Any] = [None] * 4

    def work(i: int) -> None:
        results[i] = [matmul(a, b) for _ in range(10)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in results:
        for one in found:
            check(one, wanted)


# -- Inf, NaN and errors that are reported -------------------------------------------


def with_scale(x: BlockArray, line: int, block: int, code: int) -> BlockArray:
    scales = x.scales.copy()
    scales[line, block] = code
    return BlockArray.from_codes(
        x.format, x.codes, scales, shape=x.shape, axis=x.axis, block_size=x.block_size
    )


def test_nan_of_a_scale() -> None:
    a, b = random_blocks("mxfp4", (3, 96), 1, 1), random_blocks("mxfp4", (96, 4), 0, 2)
    plain = items_of(matmul(a, b))
    with np.errstate(all="raise"):
        left = items_of(matmul(with_scale(a, 1, 2, 255), b))
        right = items_of(matmul(a, with_scale(b, 3, 0, 255)))
    wanted = plain.copy()
    wanted[1] = NAN
    check(left.view(np.float32), wanted)
    wanted = plain.copy()
    wanted[:, 3] = NAN
    check(right.view(np.float32), wanted)


@pytest.mark.parametrize("negative", [0, 0x80])
def test_codes_that_are_not_finite(negative: int) -> None:
    b = random_blocks("mxfp8_e5m2", (64, 3), 0, 2)
    for code, k in ((0x7C, 3), (0x7E, 40), (0x7D, 63)):
        a = random_blocks("mxfp8_e5m2", (4, 64), 1, 1)
        codes = a.codes.copy()
        codes[2, k // 32, k % 32] = code | negative
        a = BlockArray.from_codes("mxfp8_e5m2", codes, a.scales, shape=a.shape, axis=1)
        check(matmul(a, b), expected(a, b), code)


def test_numbers_that_are_not_finite() -> None:
    a = random_blocks("tcfp12", (4, 64), 1, 1)
    for name in ("float32", "bfloat16"):
        x = random_numbers(name, (64, 9), 2)
        x[5, 0], x[40, 3], x[0, 5], x[1, 5] = np.inf, np.nan, np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            check(matmul(a, x), expected(a, x))


def test_reported_errors() -> None:
    great: Any = {"scales": (245, 250)}
    a = random_blocks("mxfp8_e4m3", (4, 64), 1, 1, **great)
    b = random_blocks("mxfp8_e4m3", (64, 4), 0, 2, **great)
    ordinary = random_blocks("mxfp8_e4m3", (64, 4), 0, 3)
    with (
        np.errstate(over="raise", invalid="ignore"),
        pytest.raises(FloatingPointError, match="overflow encountered in matmul"),
    ):
        matmul(a, b)
    infinite = np.full((64, 4), np.inf, np.float32)
    infinite[::2] = -np.inf
    positive = BlockArray.from_codes(
        "mxfp8_e4m3", a.codes & 0x7F | 1, a.scales, shape=a.shape, axis=1
    )
    with (
        np.errstate(invalid="raise"),
        pytest.raises(FloatingPointError, match="invalid value encountered in matmul"),
    ):
        matmul(positive, infinite)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        matmul(with_scale(positive, 0, 0, 200), ordinary, dtype=np.float16)
    with np.errstate(all="raise"):  # Inf in operands is not an error
        matmul(positive, np.full((64, 4), np.inf, np.float32))
        matmul(random_blocks("mxfp8_e4m3", (4, 64), 1, 1), ordinary)


# -- operands that do not fit --------------------------------------------------------

MATRIX = random_blocks("mxfp8_e4m3", (4, 64), 1, 1)
OTHER = random_blocks("mxfp8_e4m3", (64, 5), 0, 2)
WRONG: list[tuple[Any, Any, Any, Any, str]] = [
    (MATRIX, MATRIX, {}, ValueError, "b must have .*axis 0; got .*axis 1"),
    (OTHER, OTHER, {}, ValueError, "a must have .*axis 1; got .*axis 0"),
    (
        MATRIX,
        random_blocks("nvfp4", (64, 5), 0),
        {},
        ValueError,
        "block size; got 32 and 16",
    ),
    (
        MATRIX,
        random_blocks("mxfp4", (96, 5), 0),
        {},
        ValueError,
        "got k = 64 and k = 96",
    ),
    (MATRIX, np.ones((63, 5), "f4"), {}, ValueError, "got k = 64 and k = 63"),
    (
        random_blocks("mxfp4", (2, 4, 64), 2),
        random_blocks("mxfp4", (3, 64, 4), 1),
        {},
        ValueError,
        r"lengths must be equal or 1; got \(2,\) and \(3,\)",
    ),
    (MATRIX, np.float32(2), {}, ValueError, "at least one axis"),
    (MATRIX, OTHER, {"terms": 2}, ValueError, "terms must be one of 1, 3, 4 .*; got 2"),
    (MATRIX, OTHER, {"terms": True}, ValueError, "terms must be .*; got True"),
    (MATRIX, np.ones((64, 5)), {}, TypeError, "b must be .*; got float64"),
    (np.ones((5, 64), "i8"), OTHER, {}, TypeError, "a must be .*; got int64"),
    (np.ones((5, 64), "c8"), OTHER, {}, TypeError, "complex64"),
    (np.array([["x"]]), OTHER, {}, TypeError, "<U1"),
    (np.ones((4, 64), "f4"), np.ones((64, 5), "f4"), {}, TypeError, "numpy.matmul"),
    (MATRIX, OTHER, {"dtype": int}, TypeError, "dtype must be .*; got int64"),
    (MATRIX, OTHER, {"dtype": "c8"}, TypeError, "dtype must be .*; got complex64"),
    (
        MATRIX,
        OTHER,
        {"out": np.ones((4, 6), "f4")},
        ValueError,
        r"\(4, 5\); got \(4, 6\)",
    ),
    (MATRIX, OTHER, {"out": np.ones((4, 5), int)}, TypeError, "out must .*; got int64"),
    (MATRIX, OTHER, {"out": [1]}, TypeError, r"got \[1\]"),
]


@pytest.mark.parametrize(("a", "b", "options", "error", "text"), WRONG)
def test_what_does_not_fit(a: Any, b: Any, options: Any, error: Any, text: str) -> None:
    out = options.get("out", np.full((4, 5), 7, np.float32))
    before = out.copy() if isinstance(out, np.ndarray) else None
    with pytest.raises(error, match=text):
        matmul(a, b, **{"out": out} | options)
    if before is not None:
        assert out.tobytes() == before.tobytes()


def test_out_that_is_read_only() -> None:
    out = np.zeros((4, 5), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        matmul(MATRIX, OTHER, out=out)


@pytest.mark.parametrize("block", [0, 8, 20, 24, 48, 256])
def test_blocks_of_no_size_there_is(block: int) -> None:
    """Reject sizes but 16, 32, 64, 128, which divide a stretch and fill whole bytes."""
    rows = (np.zeros((1, 2, 1, 6 * block // 8), "u1"), np.zeros((1, 2, 1), "u1"), None)
    names = [name for name, _ in _core.block_elements]
    operand = (*rows, names.index("float6_e2m3fn"), -1, 0, 1.0)
    with pytest.raises(ValueError, match="block 16, 32, 64 or 128"):
        _core.block_matmul(operand, operand, np.empty((1, 2, 2), "f4"), block, block, 4)


# -- the same everywhere -------------------------------------------------------------


@pytest.mark.parametrize("isa", td._core.available_isas())
def test_same_bits(isa: str, compared: Any) -> None:
    """Compare the bits of every instruction set, some with one thread."""
    used, _, found = digests.of_another(isa)
    assert used == isa
    assert found == digests.of_products()
    compared(1)
