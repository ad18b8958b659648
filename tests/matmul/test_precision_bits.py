"""Products under a precision: every bit and flag against the reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.matmul.precision_cases import (
    BFLOAT16_LARGEST,
    FP8,
    KINDS,
    LARGEST,
    PRESETS,
    SPLIT,
    VARIANTS,
    Array,
    Keywords,
    assert_bits,
    bits,
    check,
    drawn,
    each_precision,
    each_split,
    each_variant,
    floats,
    truth,
)
from tests.reference import codec, matmul
from tests.reference.codec_arrays import item_type, random_items
from tests.reference.formats import FLOAT16, FLOAT32, FORMATS, SIGNED, Format
from tests.support.bits import raised
from tests.support.compiled import split as split_on_cpu
from tests.support.interpreters import run_code

LENGTHS = [0, 1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 300]


def random_shape(rng: np.random.Generator, k: int, limit: int) -> tuple[int, int, int]:
    """Draw 1 to 13 rows and columns, fewer where a long k is expensive."""
    m, n = (int(x) for x in rng.integers(1, 14, 2))
    while m * n * k > limit and m * n > 1:
        m, n = n, max(1, m - 1)
    return m, k, n


def test_the_kinds_are_what_they_say():
    """Check that the data contain the special cases that they are made for."""
    with np.errstate(all="ignore"):
        found = {}
        for kind in KINDS:
            a, b = drawn(kind, (13, 33, 13), 3)
            c = floats(truth(a, b, precision="f32")[0])
            found[kind] = a, b, c
    tiny = np.finfo(np.float32).tiny
    for kind in ("subnormal", "small", "vanishing", "zeros"):
        c = found[kind][2]
        assert np.isfinite(c).all()
        assert np.any(np.abs(c) < tiny), kind
    assert np.signbit(found["vanishing"][2]).any()
    for kind in ("large", "edge", "top"):
        a, b, c = found[kind]
        assert np.isfinite(a).all()
        assert np.isfinite(b).all()
        assert np.isinf(c).any(), kind
        assert np.isfinite(c).any(), kind
    c = found["sprinkled"][2]
    assert np.isfinite(c).any()
    assert np.isinf(c).any()
    assert np.isnan(c).any()
    with np.errstate(over="ignore"):
        halves = found["half"][0].astype(np.float16)
    assert np.isinf(halves).any()


# -- risks of the fast kernels ---------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("total", range(-84, -76))
@each_split
def test_parts_that_would_be_flushed(precision, total):
    """Multiply operands whose components, or their products, come near 2^-126. The
    upper halves of some operands leave open which power of two they reach."""
    edges = (-105, -104, -103, -102)
    between = (-60, -40, -20)
    for fractions, exponents in (
        ([0, 1, 0xFFFF, 0x10000, 0x7E0001], [*edges, between[total % 3]]),
        ([0x7F0001, 0x7FFFFF], [*edges, *between]),
    ):
        for exponent in exponents:
            a, b = (
                (np.asarray(fractions, np.uint32) | np.uint32(e + 127 << 23)).view("f4")
                for e in (exponent, total - exponent)
            )
            check(a[:, None], b[None, :], precision=precision)
            check(b[:, None], a[None, :], precision=precision)
            check(np.c_[a, -a[::-1]], np.array([b, b]), precision=precision)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("total", [113, 114, 115, 116, 117, 118, 120, 124, 126])
@each_split
def test_parts_whose_sums_come_near_infinity(precision, total):
    rng = np.random.default_rng(total)
    for exponent in (127, 100, 60):
        a, b = (
            np.ldexp(rng.uniform(1, 2, shape), e).astype(np.float32)
            for shape, e in (((3, 70), exponent), ((70, 3), total - exponent))
        )
        a *= rng.choice(np.float32([-1, 1]), a.shape)
        check(a, b, precision=precision)


@pytest.mark.parametrize("precision", ["bf16", "tf32", "f16", "fp8_e4m3", "bf16x3"])
def test_wide_matrices_that_are_gathered(precision):
    """Multiply by many columns that are not adjacent, or that are float64."""
    rng = np.random.default_rng(1)
    a, b = (rng.normal(0, 1, s).astype(np.float32) for s in ((8, 64), (64, 1000)))
    wanted = td.matmul(a, b, precision=precision)
    for turned in (np.repeat(b, 2, axis=1)[:, ::2], np.asfortranarray(b), b[:, ::-1]):
        got = td.matmul(a, turned, precision=precision)
        reversed_too = wanted[:, ::-1] if turned.strides[1] < 0 else wanted
        assert_bits(got, bits(reversed_too))
    with td.matmul_precision(precision, float64=True):
        assert np.array_equal(a.astype(float) @ b.astype(float), wanted)


# -- every bit -----------------------------------------------------------------


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", KINDS)
@each_variant
def test_kinds(keywords, kind, compared):
    rng = np.random.default_rng(list(KINDS).index(kind))
    for k in (1, int(rng.integers(2, 32)), int(rng.integers(33, 100)), 300):
        shape = random_shape(rng, k, 300)
        compared(check(*drawn(kind, shape, k), **keywords))


@pytest.mark.sampled(9)
@each_variant
def test_lengths(keywords, compared):
    rng = np.random.default_rng(11)
    for k in LENGTHS:
        kind = "spread" if k % 4 in (0, 3) else "normal"
        shape = random_shape(rng, k, 300)
        compared(check(*drawn(kind, shape, k), **keywords))
    compared(check(*drawn("normal", (1, 4100, 1), 12), **keywords))


@pytest.mark.sampled(9)
@each_variant
def test_sums_beside_a_large_one(keywords):
    """Add sums of 32, 256 and 4096 products that only count together."""
    a, b = np.ones((1, 4096 + 768), np.float32), np.full((4096 + 768, 1), 0.25)
    a[0, 0] = b[0, 0] = 2.0**15
    check(a, b.astype(np.float32), **keywords)
    for large in (2.0**27, 2.0**24, 2.0**22):  # next to 256-sums, 32-sums, products
        a[0, 0], b[0, 0] = 2.0**15, large / 2.0**15
        check(a[:, :600], b[:600].astype(np.float32), **keywords)


@pytest.mark.sampled(2)
@each_variant
def test_signs_of_zero(keywords, compared):
    """Keep the sign of products and components that round to 0; sums begin at +0."""
    sizes = [0, 2.0**-149, 1.5 * 2.0**-135, 2.0**-120, 1]
    numbers = np.array([*sizes, *np.negative(sizes)], np.float32)
    a = np.stack(np.meshgrid(numbers, numbers), -1).reshape(-1, 2)
    rng = np.random.default_rng(28)
    b = rng.choice(numbers[[0, 1, 2, 3, 5, 6, 7, 8]], (2, 9))
    compared(check(a, b, **keywords))


def test_a_product_is_not_rounded_before_the_sum():
    """Round only the sum: 24929 * 673 is a midpoint, float64 lacks the other bits."""
    signs = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]], np.float32)
    a, b = signs * np.float32([2.0**-20, 24929]), np.float32([[2.0**-20], [673]])
    got = td.matmul(a, b, precision="f32")
    up, down = 2.0**24 + 2, 2.0**24
    np.testing.assert_array_equal(got.ravel(), [up, down, -down, -up])
    wide = np.tile(a, (20, 1)), np.repeat(b, 70, 1)
    np.testing.assert_array_equal(td.matmul(*wide, precision="f32")[:4, -1:], got)
    check(a, b, precision="f32")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("m", "n"),
    [(0, 0), (0, 3), (3, 0), (1, 70), (70, 1), (17, 33), (2, 65), (66, 5)],
)
@each_variant
def test_shapes(keywords, m, n, compared):
    for k in (0, 4, 1300 // (m * n + 30)):
        compared(check(*drawn("spread", (m, k, n), 13), **keywords))


@each_precision
def test_presets_are_the_short_names(precision):
    preset = next(p for p, short in PRESETS.items() if short == precision)
    a, b = drawn("normal", (5, 40, 7), 14)
    want = td.matmul(a, b, precision=precision)
    assert_bits(td.matmul(a, b, precision=preset), bits(want))


@each_variant
def test_no_k_is_plus_zero(keywords):
    a, b = np.empty((3, 0), np.float32), np.empty((0, 2), np.float32)
    got = td.matmul(a, b, **keywords)
    assert_bits(got, np.zeros((3, 2), np.uint32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [1, 2, 32, 33, 256, 257, 289])
@pytest.mark.parametrize("precision", ["f32", "tf32", "bf16", *SPLIT])
def test_overflow_at_the_last_k(precision, k):
    """Overflow at the last k: one more step makes the sum of bfloat16 numbers Inf."""
    a = np.full((1, k), 2.0**103, np.float32)
    b = np.zeros((k, 2), np.float32)
    a[0, 0], b[0] = BFLOAT16_LARGEST, 1
    if k == 1:
        a[0], b[0] = 2.0**127, [2, float.fromhex("0x1.fep0")]
    else:
        a[0, -1], b[-1] = 2.0**120, [1, float.fromhex("0x1.fep-1")]
    got, flags = raised(partial(td.matmul, precision=precision), a, b)
    assert np.isposinf(got[0, 0])
    assert np.isfinite(got[0, 1])
    assert flags == codec.OVER
    check(a, b, precision=precision)
    check(-a, b, precision=precision)


@pytest.mark.sampled(3)
@each_variant
def test_a_large_product(keywords, compared):
    """Compare some elements of a product of several tiles and threads."""
    a, b = drawn("normal", (200, 389, 300), 15)
    rng = np.random.default_rng(16)
    rows = np.unique(np.r_[199, rng.integers(0, 199, 2)])
    columns = np.unique(np.r_[299, rng.integers(0, 299, 2)])
    if keywords["precision"] in FP8:  # the scale is for the whole matrix
        a[rows[1], 5] = b[7, columns[1]] = 9
    want, _ = truth(a[rows], b[:, columns], **keywords)
    assert_bits(td.matmul(a, b, **keywords)[np.ix_(rows, columns)], want)
    compared(want.size)


# -- layouts, stacks, vectors ---------------------------------------------------


def layouts(x: Array) -> list[Array]:
    """Return equal matrices with different layouts in memory."""
    spaced = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)[::2, ::3]
    spaced[...] = x
    backwards = x[::-1, ::-1].copy()[::-1, ::-1]
    unaligned = np.ndarray(x.shape, x.dtype, bytearray(x.nbytes + 1), 1)
    unaligned[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    columns = spaced.T.copy().T
    return [np.asfortranarray(x), spaced, columns, backwards, unaligned, frozen]


@pytest.mark.sampled(2)
@each_variant
def test_layouts_change_no_bit(keywords, compared):
    a, b = drawn("normal", (4, 70, 3), 17)
    want, _ = truth(a, b, **keywords)
    for x in layouts(a):
        for y in layouts(b):
            assert_bits(td.matmul(x, y, **keywords), want)
            compared(want.size)
    row, column = np.broadcast_to(a[0], a.shape), np.broadcast_to(b[:, :1], b.shape)
    check(row, column, **keywords)


@pytest.mark.sampled(2)
@each_variant
def test_stacks_broadcast(keywords):
    """Multiply each matrix of a stack separately, with its own scale."""
    rng = np.random.default_rng(18)
    a = rng.standard_normal((2, 1, 3, 40)).astype(np.float32)
    b = rng.standard_normal((3, 40, 2)).astype(np.float32)
    a[1] *= 100
    b[2] *= np.float32(0.3)
    want = {(i, j): truth(a[i, 0], b[j], **keywords)[0] for i, j in np.ndindex(2, 3)}
    for x, y in ((a, b), (np.broadcast_to(a, (2, 3, 3, 40)), b[:, ::-1][:, ::-1])):
        got = td.matmul(x, y, **keywords)
        assert got.shape == (2, 3, 3, 2)
        for i, j in np.ndindex(2, 3):
            assert_bits(got[i, j], want[i, j])
    assert td.matmul(a[:0], b, **keywords).shape == (0, 3, 3, 2)


@pytest.mark.sampled(2)
@each_variant
def test_vectors(keywords):
    a, b = drawn("normal", (3, 70, 4), 19)
    a[2] *= 50
    want, _ = truth(a[:1], b, **keywords)
    assert_bits(td.matmul(a[0], b, **keywords), want[0])
    want, _ = truth(a, b[:, :1], **keywords)
    assert_bits(td.matmul(a, b[:, 0], **keywords), want[:, 0])
    want, _ = truth(a[:1], b[:, 1:2], **keywords)
    assert_bits(td.matmul(a[0], b[:, 1], **keywords), want[0, 0])


@pytest.mark.sampled(2)
@each_variant
def test_loops_of_a_block(keywords):
    """Call np.matmul and its family in a block: a vector is a matrix of one line."""
    a, b = drawn("normal", (3, 70, 4), 20)
    a[2] *= 50
    product, _ = truth(a, b, **keywords)
    column, _ = truth(a, b[:, :1], **keywords)
    row, _ = truth(a[:1], b, **keywords)
    inner = product.diagonal()
    if keywords["precision"] in FP8:  # the scale is of a vector, not of the matrix
        inner = np.array(
            [
                truth(a[i : i + 1], b[:, i : i + 1], **keywords)[0][0, 0]
                for i in range(3)
            ]
        )
    with td.matmul_precision(**keywords):
        assert_bits(np.matmul(a, b), product)
        assert_bits(a @ b, product)
        assert_bits(np.matvec(a, b[:, 0]), column[:, 0])
        assert_bits(np.vecmat(a[0], b), row[0])
        assert_bits(np.vecdot(a, b.T[:3]), inner)


# -- other types of operands and results -----------------------------------------


@cache
def numbers_to_round(precision: str) -> tuple[Array, Array, Array]:
    """Return two matrices, and the bits of their product, which is computed once."""
    a, b = drawn("normal", (9, 33, 9), 21)
    return a, b, truth(a, b, precision=precision)[0]


@pytest.mark.parametrize("f", [*SIGNED, FLOAT16], ids=lambda f: f.name)
@pytest.mark.parametrize("precision", ["f32", "fp8_e5m2", "bf16x9"])
def test_dtype_rounds_once(precision, f):
    a, b, product = numbers_to_round(precision)
    dtype = np.dtype(getattr(td, f.name, np.float16))
    with np.errstate(all="ignore"):
        got = td.matmul(a, b, precision=precision, dtype=dtype)
    assert got.dtype == dtype
    numbers = matmul.decoded(product.tolist())
    want = np.array(matmul.encoded(f, numbers), item_type(f))
    np.testing.assert_array_equal(got.copy().view(item_type(f)), want)


@each_variant
def test_float64_operands(keywords):
    """Round float64 operands to float32 first, and widen the result."""
    rng = np.random.default_rng(22)
    a, b = rng.standard_normal((5, 40)), rng.standard_normal((40, 6))
    want, _ = truth(a.astype(np.float32), b.astype(np.float32), **keywords)
    with td.matmul_precision(float64=True, **keywords):
        got = a @ b
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, floats(want))


@pytest.mark.sampled(2)
@each_variant
def test_complex64_operands(keywords):
    """Compute four products, and one float32 addition per component."""
    rng = np.random.default_rng(23)
    a, b = (rng.standard_normal((*s, 2)) for s in ((3, 40), (40, 3)))
    a, b = (x.astype(np.float32).view(np.complex64)[..., 0] for x in (a, b))
    a.real[2] *= 30  # its own scales

    def part(x: Array, y: Array) -> Array:
        return floats(truth(x, y, **keywords)[0])

    real = part(a.real, b.real) - part(a.imag, b.imag)
    imaginary = part(a.real, b.imag) + part(a.imag, b.real)
    with td.matmul_precision(complex64=True, **keywords):
        got = a @ b
    assert got.dtype == np.complex64
    assert_bits(got.real, bits(real))
    assert_bits(got.imag, bits(imaginary))


@pytest.mark.parametrize("f", SIGNED, ids=lambda f: f.name)
def test_plain_products_of_formats(f, compared):
    """Multiply our formats without a precision."""
    rng = np.random.default_rng(24)
    known: dict[str, Format] = FORMATS | {"float16": FLOAT16, "float32": FLOAT32}
    for g in SIGNED:
        a, b = random_items(f, rng, (3, 40)), random_items(g, rng, (40, 4))
        a[0], b[:, 0] = a[0, 0], b[0, 0]  # sums without NaN, if the format has none
        x, y = (e.view(getattr(td, h.name)) for e, h in ((a, f), (b, g)))
        common = np.promote_types(x.dtype, y.dtype)
        for dtype in (common, np.dtype(np.float32)):
            into = known[dtype.name]
            want = matmul.plain_product(a.tolist(), f, b.T.tolist(), g, into)
            with np.errstate(all="ignore"):
                got = np.matmul(x, y, dtype=dtype)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got.view(item_type(into)), want, g.name)
            compared(got.size)


# -- the split -------------------------------------------------------------------

SPLITS = {"bfloat16": 3, "tf32": 2}
each_format = pytest.mark.parametrize("name", SPLITS)
TOP = np.arange(0x7F7F0000, 0x7F800000, dtype=np.uint32)


def both_signs(magnitudes: Array) -> Array:
    return floats(np.concatenate([magnitudes, magnitudes | np.uint32(1 << 31)]))


def step(name: str) -> float:
    return 2.0 ** -matmul.significant_bits(FORMATS[name])


def total(name: str, parts: Array) -> Array:
    """Return the sum of the components, which is exact in float64."""
    weights = step(name) ** np.arange(len(parts))
    return np.tensordot(weights, parts.astype(np.float64), 1)


def assert_parts(name: str, x: Array) -> Array:
    """Check that the components of finite numbers are the nearest of their format."""
    parts = split_on_cpu(x, SPLITS[name], name)
    assert parts.shape == (SPLITS[name], *x.shape)
    assert parts.dtype == np.float32
    unused = {"bfloat16": 0xFFFF, "tf32": 0x1FFF}[name]
    assert not np.any(bits(parts) & np.uint32(unused))
    assert np.isfinite(parts).all()
    rest = x.astype(np.float64)
    for part in parts:
        units = np.ldexp(1.0, np.maximum(np.frexp(rest)[1], -125)) * step(name)
        largest = floats(0x7F800000 - unused - 1).astype(np.float64)
        saturated = np.abs(part) == largest
        assert np.all(saturated | (np.abs(rest - part) <= units / 2))
        assert np.all(np.abs(rest - part) <= units)
        rest = (rest - part) / step(name)
    return parts


@each_format
def test_split_against_the_truth(name, compared):
    rng = np.random.default_rng(25)
    magnitudes = np.concatenate(
        [
            TOP[rng.integers(0, TOP.size, 300)],
            TOP[:: TOP.size // 64],
            TOP[-5:],
            0x7F7F0000 + np.array([0x7FFF, 0x8000, 0x8001, 0xE000, 0xEFFF, 0xF000]),
            rng.integers(0, 0x800000, 300),
            rng.integers(0, 0x1000000, 100),
            rng.integers(0, 0x7F800000, 600),
            rng.integers(0, 0x7F80, 100) << 16,
            (rng.integers(0, 0x7F80, 100) << 16) + 0x8000,
            (rng.integers(0, 0x7F80 << 3, 100) << 13) + 0x1000,
            np.array([0, 1, 2, 0x7FFFFF, 0x800000, 0x7F800000]),
        ]
    ).astype(np.uint32)
    x = both_signs(magnitudes)
    (numbers,) = matmul.decoded([bits(x).tolist()])
    want = matmul.split_line(FORMATS[name], numbers, SPLITS[name])
    got = split_on_cpu(x, SPLITS[name], name)
    assert_bits(got, np.array(matmul.encoded(FLOAT32, want), np.uint32))
    compared(x.size)


@each_format
def test_split_of_nan_and_inf(name):
    nan = floats([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF])
    assert np.isnan(split_on_cpu(nan, SPLITS[name], name)).all()
    largest = {"bfloat16": 0x7F7F0000, "tf32": 0x7F7FE000}[name]
    want = np.array([[largest, largest | 1 << 31]] * SPLITS[name], np.uint32)
    inf = floats([0x7F800000, 0xFF800000])
    assert_bits(split_on_cpu(inf, SPLITS[name], name), want)
    assert_bits(split_on_cpu(floats([0x7F7FFFFF]), SPLITS[name], name), want[:, :1])


@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.exhaustive)])
@each_format
def test_split_recomposes(name, every, compared):
    """Sum three bfloat16 components exactly, and two of tf32 to at least 22 bits."""
    subnormal = np.arange(0x800000, dtype=np.uint32)
    for magnitudes in (TOP, *subnormal.reshape(8, -1)):
        x = both_signs(magnitudes[::every])
        assert_recomposed(name, x, split_on_cpu(x, SPLITS[name], name))
        compared(x.size)
    coarse = 1 if every == 1 else 13
    for magnitudes in (
        TOP[::coarse],
        subnormal[:: (1 << 7) * coarse],
        np.arange(0x3F800000, 0x40000000, 61 * coarse, dtype=np.uint32),
        np.arange(0x00800000, 0x02800000, 257 * coarse, dtype=np.uint32),
        np.arange(0, 0x7F800000, 19937 * coarse, dtype=np.uint32),
    ):
        x = both_signs(magnitudes)
        assert_recomposed(name, x, assert_parts(name, x))
        compared(x.size)


def assert_recomposed(name: str, x: Array, parts: Array) -> None:
    wide = x.astype(np.float64)
    sum_of_parts = total(name, parts)
    if name == "bfloat16":
        np.testing.assert_array_equal(sum_of_parts, wide)
    else:  # 2**-136, the smallest tf32, has the weight 2**-11
        error = np.abs(sum_of_parts - wide)
        relative = np.where(np.abs(wide) < LARGEST - 2.0**116, 2.0**-23, 2.0**-22)
        assert np.all(error <= np.maximum(np.abs(wide) * relative, 2.0**-148))
    np.testing.assert_array_equal(np.signbit(parts[0]), np.signbit(x))


@pytest.mark.exhaustive
@each_format
def test_split_recomposes_every_number_near_the_ends(name, compared):
    """Check numbers at both ends; in between, the exponent changes nothing."""
    for field in (*range(36), 127, *range(244, 255)):
        magnitudes = np.arange(field << 23, (field + 1) << 23, dtype=np.uint32)
        x = floats(magnitudes | np.uint32((field & 1) << 31))
        parts = split_on_cpu(x, SPLITS[name], name)
        assert_recomposed(name, x, parts)
        compared(x.size)


# -- special values --------------------------------------------------------------


def special_places(a: Array, b: Array) -> Array:
    """Return the elements whose row or column has an Inf or NaN."""
    return ~np.isfinite(a).all(1)[:, None] | ~np.isfinite(b).all(0)


@pytest.mark.parametrize("shape", [(5, 7, 6), (60, 300, 70), (1, 40, 33), (33, 257, 1)])
@each_variant
def test_special_values_stay_where_they_are(keywords, shape):
    """Keep the bits of elements whose row and column have no Inf or NaN."""
    a, b = drawn("sprinkled", shape, sum(shape))
    special = special_places(a, b)
    a0, b0 = (np.where(np.isfinite(x), x, np.float32(0)) for x in (a, b))
    with np.errstate(all="ignore"):
        got = td.matmul(a, b, **keywords)
        without = td.matmul(a0, b0, **keywords)
        single = td.matmul(a, b, precision="f32")
    assert_bits(got[~special], bits(without)[~special])
    np.testing.assert_array_equal(~np.isfinite(single), special)
    if keywords.get("special_values") == "propagate":
        assert_bits(got[special], bits(single)[special])
    elif keywords.get("special_values") == "saturate":
        nan = np.isnan(a).any(1)[:, None] | np.isnan(b).any(0)
        assert np.isnan(got[nan]).all()
        a1, b1 = (np.clip(x, -LARGEST, LARGEST) for x in (a, b))
        with np.errstate(all="ignore"):
            clipped = td.matmul(a1, b1, precision=keywords["precision"])
        assert_bits(got[~nan], bits(clipped)[~nan])
    elif keywords["precision"] in ("tf32", "bf16"):  # none rounds to Inf
        np.testing.assert_array_equal(np.isfinite(got), ~special)


@each_split
def test_large_numbers_of_a_split_do_not_overflow(precision):
    """Split 65536 numbers below Inf that would round to Inf in bfloat16."""
    x = floats(TOP)[:, None]
    half = np.array([[0.5]], np.float32)
    got, flags = raised(partial(td.matmul, precision=precision), x, half)
    assert flags == 0
    assert np.isfinite(got).all()
    tolerance = 2.0**-15 if precision == "bf16x3" else 2.0**-21
    np.testing.assert_allclose(got, x * half, rtol=tolerance)
    if precision == "bf16x9":
        np.testing.assert_array_equal(got, x * half)


# -- floating-point flags ----------------------------------------------------------


@each_variant
def test_flags_where_the_contract_names_them(keywords):
    def flags(a: Any, b: Any) -> int:
        a, b = np.array(a, np.float32), np.array(b, np.float32)
        return raised(partial(td.matmul, **keywords), a, b)[1]

    wide = keywords["precision"] != "f16"
    saturated = keywords.get("special_values") == "saturate"
    # fp8 scales the operands, and unscales by one overflowing multiplication.
    assert flags([[1e38, 1e38]], [[1e38], [1e38]]) == codec.OVER
    assert flags([[1e30]], [[1e-30]]) == 0 if wide else codec.INVALID
    without_infinity = keywords["precision"] == "fp8_e4m3"  # Inf becomes NaN
    assert flags([[np.inf]], [[1]]) == (codec.INVALID if without_infinity else 0)
    assert flags([[np.inf, 1]], [[1], [np.inf]]) == (
        codec.INVALID if without_infinity else 0
    )
    assert flags([[np.inf]], [[0]]) == (0 if saturated else codec.INVALID)
    invalid = 0 if saturated else codec.INVALID
    assert flags([[np.inf, -np.inf]], [[1], [1]]) == invalid
    assert flags([[np.nan, np.inf]], [[1], [0]]) == 0
    assert flags([[1e-45, 1e-40]], [[1e-30], [0.3]]) == 0
    assert flags([[1.1, 2.3]], [[1 / 3], [0.3]]) == 0


@each_variant
def test_errstate(keywords):
    """Raise only overflow and invalid, with NumPy's warnings."""
    multiply = partial(td.matmul, **keywords)
    big = np.full((2, 2), 1e38, np.float32)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        multiply(big, big)
    with np.errstate(over="warn"), pytest.warns(RuntimeWarning, match="overflow"):
        multiply(big, big)
    if keywords.get("special_values") != "saturate":
        inf = np.array([[np.inf, -np.inf]], np.float32)
        one = np.ones((2, 1), np.float32)
        with np.errstate(invalid="raise"):
            with pytest.raises(FloatingPointError, match="invalid"):
                multiply(inf, one)
            multiply(np.full((1, 2), np.nan, np.float32), one)
    with np.errstate(all="raise"):
        for kind in ("normal", "small", "vanishing", "zeros"):
            multiply(*drawn(kind, (9, 70, 9), 27))


@pytest.mark.parametrize("precision", ["f32", "tf32", "bf16", *SPLIT])
def test_sums_of_opposite_infinities_are_invalid(precision):
    """Overflow two 256-sums with opposite signs: the result is NaN, without an Inf."""
    a = np.full((1, 512), 2.0**127, np.float32)
    b = np.ones((512, 1), np.float32)
    b[256:] = -1
    got, flags = raised(partial(td.matmul, precision=precision), a, b)
    assert_bits(got, np.array([[0x7FC00000]], np.uint32))
    assert flags == codec.INVALID
    check(a, b, precision=precision)


# -- machines ----------------------------------------------------------------------

DIGESTS = """
import hashlib, json
import numpy as np, tf32dtype as td

def digest(keywords):
    rng = np.random.default_rng(5)
    found, flags = hashlib.sha256(), []
    for m, n, k in SHAPES:
        a, b = rng.standard_normal((2, max(m, n), k)).astype(np.float32)
        scale = np.exp2(rng.integers(-8, 9, k)).astype(np.float32)
        a, b = a[:m] * scale, (b[:n] / scale).T
        special, tiny = a.copy(), a * np.float32(2.0**-130)
        special[rng.integers(0, m, 2), rng.integers(0, k, 2)] = np.inf, np.nan
        with np.errstate(all="call", call=lambda _, flag: flags.append(flag)):
            for x, y in ((a, b), (special, np.ascontiguousarray(b)), (tiny[:5], b)):
                found.update(td.matmul(x, y, **keywords).tobytes())
    tie = np.float32([[2.0**-20, 24929], [-(2.0**-20), 24929]])
    for x in (tie, np.tile(tie, (20, 1))):
        y = np.float32([[2.0**-20], [673]])
        found.update(td.matmul(x, np.repeat(y, len(x), 1), **keywords).tobytes())
    return found.hexdigest() + repr(sorted(set(flags)))

names = ["-".join(keywords.values()) for keywords in VARIANTS]
print(json.dumps([td.isa(), dict(zip(names, map(digest, VARIANTS)))]))
"""


def digests(
    shapes: list[tuple[int, int, int]], variants: list[Keywords]
) -> tuple[str, dict[str, str]]:
    """Return the instruction set of a new interpreter, and its digests."""
    given = f"SHAPES, VARIANTS = {shapes!r}, {variants!r}\n"
    isa, found = json.loads(run_code(given + DIGESTS))
    assert len(found) == len(variants)
    return isa, found


def test_instruction_sets_change_no_bit(monkeypatch):
    shapes = [(13, 70, 300), (1, 65, 257), (33, 1, 40), (2, 3, 4900)]
    found = {}
    for isa in td._core.available_isas():
        monkeypatch.setenv("TF32DTYPE_ISA", isa)
        used, found[isa] = digests(shapes, VARIANTS)
        assert used == isa
    for isa, got in found.items():
        assert got == found["baseline"], isa


def test_threads_change_no_bit(monkeypatch):
    shapes = [(200, 100, 640), (1, 1500, 500)]  # the first is enough for three threads
    each = [{"precision": precision} for precision in PRESETS.values()]
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(digests(shapes, each)[1])
    assert found[1] == found[0]


# -- accuracy ----------------------------------------------------------------------

DATA: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "exponential": lambda rng, shape: np.exp(3 * rng.standard_normal(shape)),
}


def signal_to_noise(got: Array, exact: Array) -> float:
    """Return the signal-to-noise ratio in decibels."""
    noise = np.linalg.norm(got - exact)
    return float(20 * np.log10(np.linalg.norm(exact) / noise))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("k", [160, 1024, 4096])
@pytest.mark.parametrize("data", DATA)
def test_accuracy_is_not_below_float32(data, k):
    """Compare with NumPy's own float32 product; the reference is float64's."""
    check_accuracy(data, k)


@pytest.mark.exhaustive
@pytest.mark.parametrize("data", DATA)
def test_accuracy_of_long_sums_is_not_below_float32(data):
    check_accuracy(data, 16384)


def check_accuracy(data: str, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (DATA[data](rng, s).astype(np.float32) for s in ((96, k), (k, 96)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    least = signal_to_noise(np.matmul(a, b), exact)
    for precision in ("bf16x9", "bf16x6", "tf32x3"):
        reached = signal_to_noise(td.matmul(a, b, precision=precision), exact)
        assert reached >= least, precision
    coarse = signal_to_noise(td.matmul(a, b, precision="bf16x3"), exact)
    assert coarse > signal_to_noise(td.matmul(a, b, precision="tf32"), exact) + 20
