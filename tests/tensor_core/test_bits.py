"""Matrix units: every bit against `reference.matrix_units`, for every model.

Models with the same parameters share the reference's results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest

from tests.reference import matrix_units as reference
from tests.tensor_core import rows
from tests.tensor_core.arrays import (
    accumulator,
    assert_results,
    bits,
    blocks,
    diagonals,
    matmul,
    truth,
)
from tests.tensor_core.cases import (
    WITH_CASES,
    Array,
    Bounds,
    Cases,
    by_parameters,
    lengths,
    random_cases,
    truncated,
)
from tests.tensor_core.edge_cases import edges
from tf32dtype.tensor_core.device import MODELS
from tf32dtype.tensor_core.models import ALIGNED
from tf32dtype.tensor_core.rounded import ROUNDED, Flushed, Rounded

ROWS = by_parameters(WITH_CASES)
LEAST = 20_000  # cases for each row in the long tier
SHARE = 300  # cases for each row in the plain tier


each_row = rows.each_row("models", ROWS)


def test_the_table_has_all_rows():
    float64 = [model for model in ROUNDED if model.accumulator == "float64"]
    assert (len(ALIGNED), len(ROUNDED), len(float64)) == (166, 28, 7)
    assert sum(map(len, ROWS)) == len(MODELS) - len(float64)


# -- one accumulator at a time -----------------------------------------------------


def all_cases(model: Any, seed: int) -> Iterator[Cases]:
    """Yield at least `LEAST` cases: all edges, and random ones, a fifth of other
    lengths."""
    found = edges(model)
    yield from found
    rest = max(LEAST - sum(len(x.c) for x in found), LEAST // 2)
    each = rest // 5 // len(lengths(model))
    for k in lengths(model):
        yield random_cases(model, each, k, seed)
    rest -= each * len(lengths(model))
    yield random_cases(model, rest, model.instruction_depth, seed)


def some_cases(model: Any, seed: int, share: int = SHARE) -> Iterator[Cases]:
    one, two = edges(model, share // 2)
    yield one
    yield two.take(slice(share // 10))
    yield random_cases(model, share * 3 // 10, model.instruction_depth, seed)
    each = share // 10 // len(lengths(model)) + 1
    for k in lengths(model):
        yield random_cases(model, each, k, seed)


def check(models: list[Any], groups: Iterator[Cases]) -> int:
    """Compare the C of all models with the reference of the first model. Both the
    integer code and the products of matrices must agree."""
    count = 0
    for cases in groups:
        want = truth(models[0], cases)
        for model in models:
            assert_results(model.name, cases, blocks(model, cases), want)
            assert_results(model.name, cases, diagonals(model, cases, 1), want)
            assert_results(model.name, cases, diagonals(model, cases, 20), want)
        count += len(want)
    return count


@pytest.mark.sampled(10)
@each_row
def test_some_cases(models, compared):
    count = check(models, some_cases(models[0], 1))
    assert count >= SHARE
    compared(count * len(models))


@pytest.mark.exhaustive
@each_row
def test_many_cases(models, compared):
    count = check(models, all_cases(models[0], 2))
    assert count >= LEAST
    compared(count * len(models))


@each_row
def test_sums_of_one_sign(models, compared):
    """Products are near the top of a binade, and some are small. Their sum may need
    more than 32 bits, whose last bits are lost or not."""
    m, count = Bounds.of(models[0]), 60
    k = 2 * m.instruction_depth
    rng = np.random.default_rng(5)
    sign = rng.choice([-1.0, 1.0], (count, 1))
    a, b = (
        2 - rng.integers(1, 3, (count, k)) * 2.0**-f.mantissa_bits for f in (m.a, m.b)
    )
    small = 2.0 ** -rng.integers(0, 14, (count, k))
    a = truncated(m.a, sign * a * np.where(rng.random((count, k)) < 0.1, small, 1))
    c = truncated(m.result, sign[:, 0] * rng.choice([0, 1.9, 3.9, 100.1], count))
    compared(check(models, iter([m.cases(a, b, c)])))


def variations(m: Any) -> Iterator[Any]:
    """Yield rows with other parameters than the table's, to test each parameter."""
    return rounded_variations(m) if isinstance(m, Rounded) else aligned_variations(m)


def rounded_variations(m: Rounded) -> Iterator[Rounded]:
    for flushed in get_args(Flushed):
        yield replace(m, flushed=flushed)
        if m.arithmetic != "two stages":
            for rounding in ("ties_to_even", "to_odd"):
                yield replace(m, flushed=flushed, flushes_results=True,
                              rounding=rounding)  # fmt: skip
    for depth in (1, 2, 4, 8, 16):
        yield replace(m, depth=depth, instruction_depth=32, odd_first=False)
    for lanes, depth in product((1, 2), (4, 8)):
        yield replace(m, arithmetic="two stages", lanes=lanes, depth=depth,
                      instruction_depth=depth, odd_first=False,
                      rounding="ties_to_even", flushes_results=False)  # fmt: skip
    for lanes, start in product((1, 2, 4), (0.0, -0.0)):
        yield replace(m, arithmetic="fused", lanes=lanes, start=start, depth=1,
                      instruction_depth=8, odd_first=not m.odd_first)  # fmt: skip


def aligned_variations(m: Any) -> Iterator[Any]:
    """Yield rows with other parameters. Some have values on which sources disagree."""
    exponents = (None, None), (None, -126), (-120, None), (-18, -126)
    for zero_products, negative_zero in product((False, True), repeat=2):
        for floor, zero_c in exponents:
            yield replace(
                m,
                zero_products=zero_products,
                negative_zero=negative_zero,
                floor=floor,
                zero_c_exponent=zero_c,
            )
    if m.accumulator == "float16" and not m.emulated:
        yield replace(m, cut_first=13)
        yield replace(m, cut_first=11)
    for fraction, kept in product((-2, -1, 1), (-2, -1, 0)):
        yield replace(m, fraction=m.fraction + fraction, kept=m.kept + kept)
    if not m.emulated:
        for depth, length in ((1, 1), (2, 4), (4, 4), (8, 16), (16, 32), (32, 32)):
            yield replace(m, depth=depth, instruction_depth=length)


def check_variations(model: Any, share: int) -> int:
    groups = list(some_cases(model, 4, 31 * share))
    count = 0
    for number, other in enumerate(variations(model)):
        for group in groups:
            cases = group.take(slice(number, None, 31))
            assert_results(
                repr(other), cases, blocks(other, cases), truth(other, cases)
            )
            count += len(cases.c)
    return count


@pytest.mark.sampled(30)
@rows.each_row("model", [x[0] for x in ROWS if x[0].a == x[0].b])
def test_other_parameters(model, compared):
    """A few of the many cases suffice for parameters on which sources disagree."""
    compared(check_variations(model, 6))


@pytest.mark.exhaustive
@each_row
def test_other_parameters_with_many_cases(models, compared):
    compared(check_variations(models[0], 200))


# -- whole products ----------------------------------------------------------------


def drawn(model: Any, shape: tuple[int, int, int], seed: int) -> tuple[Array, ...]:
    """Return the bits of a (m, k), b (n, k) and c (m, n)."""
    m, k, n = shape
    rng = np.random.default_rng(seed)
    cases = random_cases(model, 40, k, seed)
    a, b = cases.a[rng.integers(0, 40, m)], cases.b[rng.integers(0, 40, n)]
    return a, b, cases.c[rng.integers(0, 40, (m, n))]


def expected(model: Any, a: Array, b: Array, c: Array, **keywords: Any) -> Array:
    result = reference.product(model, a.tolist(), b.tolist(), c.tolist(), **keywords)
    return np.array(result, np.uint32).reshape(c.shape)


def assert_products(
    model: Any, a: Array, b: Array, c: Array | None, want: Array, **keywords: Any
) -> int:
    """Compare the package's a @ b.T + c, and return its number of elements."""
    got = matmul(model, a, np.ascontiguousarray(b.T), c, **keywords)
    assert got.shape == want.shape
    i, j = np.indices(want.shape).reshape(2, -1)
    start = np.zeros_like(want) if c is None else c
    cases = Cases(a[i], b[j], np.ravel(start))
    name = f"{model.name} {want.shape} {keywords or ''}"
    assert_results(name, cases, got.ravel(), want.ravel())
    return want.size


def shapes(model: Any, longest: int) -> Iterator[tuple[int, int, int]]:
    """Yield single rows and columns, and ragged edges, over all lengths."""
    ends = [(1, 1), (1, 5), (6, 1), (3, 7), (9, 4)]
    for number, k in enumerate([0, *lengths(model)]):
        m, n = ends[number % len(ends)]
        yield m, k, n
    yield 5, longest * model.instruction_depth + 1, 3


@pytest.mark.sampled(8)
@each_row
def test_products(models, compared):
    for seed, shape in enumerate(shapes(models[0], 4)):
        a, b, c = drawn(models[0], shape, seed)
        want = expected(models[0], a, b, c)
        without = expected(models[0], a[:2], b[:2], np.zeros_like(c[:2, :2]))
        for model in models:
            compared(assert_products(model, a, b, c, want))
            compared(assert_products(model, a[:2], b[:2], None, without))


@pytest.mark.exhaustive
@each_row
def test_larger_products(models, compared):
    """The products are larger than the tiles of a fast loop, with long chains."""
    k = models[0].instruction_depth
    for seed, shape in enumerate([(37, 2 * k + 3, 53), (130, k, 9), (3, 40 * k, 5)]):
        a, b, c = drawn(models[0], shape, seed)
        want = expected(models[0], a, b, c)
        for model in models:
            compared(assert_products(model, a, b, c, want))


@pytest.mark.sampled(3)
@each_row
def test_promotion(models, compared):
    """The sums of some instructions are added to c outside of the unit."""
    model = models[0]
    step = model.instruction_depth
    a, b, c = drawn(model, (4, 5 * step + 1, 3), 5)
    if model.accumulator == "float16":
        with pytest.raises(ValueError, match="promote_every"):
            matmul(model, a, b.T, c, promote_every=step)
        return
    for every in (step, 2 * step, 8 * step):
        want = expected(model, a, b, c, promote_every=every)
        for same in models:
            count = assert_products(same, a, b, c, want, promote_every=every)
            compared(count)


@pytest.mark.sampled(8)
@each_row
def test_stacks(models, compared):
    """Matrices along other axes, which broadcast, and vectors have the same bits."""
    model = models[0]
    k = model.instruction_depth + 1
    a, b, _ = drawn(model, (12, k, 10), 7)
    c = drawn(model, (12, 1, 10), 8)[2]
    a, b = a.reshape(2, 1, 6, k), b.reshape(2, 5, k)
    want = [[expected(model, x[0], y, c[:6, :5]) for y in b] for x in a]
    stacked = np.broadcast_to(c[:6, :5], (2, 2, 6, 5))
    columns = np.ascontiguousarray(b.swapaxes(1, 2))
    for same in models:
        got = matmul(same, a, columns, np.ascontiguousarray(stacked))
        np.testing.assert_array_equal(got, np.array(want))
        compared(got.size)
        row = matmul(same, a[0, 0, 0], columns[0], np.ascontiguousarray(c[0, :5]))
        np.testing.assert_array_equal(row, want[0][0][0])
        column = matmul(same, a[0, 0], columns[0, :, 0], c[:6, 0].copy())
        np.testing.assert_array_equal(column, want[0][0][:, 0])
        one = matmul(same, a[0, 0, 0], columns[0, :, 0], c[0, 0])
        np.testing.assert_array_equal(one, want[0][0][0, 0])


def test_no_k_leaves_c():
    """Without k, c is the result, with all bits of its NaNs."""
    for model in WITH_CASES:
        items = np.array([0x7FC12000, 0xFFC00000, 0x80000000, 0x3F800000], np.uint32)
        a = np.zeros((2, 0), np.uint32)
        got = matmul(model, a, a.T.copy(), items.reshape(2, 2))
        np.testing.assert_array_equal(got.ravel(), items)
        nothing = np.zeros((4, 0), np.uint32)
        got = blocks(model, Cases(nothing, nothing, items))
        np.testing.assert_array_equal(got, items)


def test_bits_survive_the_way_there_and_back():
    items = np.array([0x7FFFE000, 0xFF800000, 0x33800000, 0x80000000], np.uint32)
    for name in ("float32", "float16"):
        np.testing.assert_array_equal(bits(accumulator(name, items)), items)
