"""Many exact products and sums of all formats, against sums of integers in NumPy.

The planted values are numbers of a format, and ties between two of them, plus and minus
powers of two: each bit below the last one decides some results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import (
    DRAWN,
    FORMS,
    ROUNDINGS,
    Array,
    dtype_of,
    expected,
    items,
    normal,
)
from tests.reference import codec, exact_arrays
from tests.reference.exact_arrays import Values
from tests.reference.formats import FLOAT32, FLOAT64, Format
from tf32dtype._exact import rows, stages

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Operands = tuple[Array, Array]
REALS = ("float16", "float32", "float64")


def differing(a: Array, b: Array, name: str, rounding: Any, values: Values) -> int:
    """Return how many elements of a product differ from its values, rounded."""
    dtype = dtype_of(name)
    found = td.matmul(a, b, precision="exact", rounding=rounding, dtype=dtype)
    wanted = exact_arrays.encode(FORMS[name], values, rounding)
    return int((items(found) != wanted).sum())


def as_float64(x: Array) -> Array:
    return np.asarray(x, dtype=np.float64)


def permuted(rng: np.random.Generator, a: Array, b: Array) -> Operands:
    order = rng.permutation(a.shape[1])
    return a[:, order], b[order]


# -- operands --------------------------------------------------------------------------


def numbers(f: Format, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return finite numbers with any codes of a format."""
    codes = rng.integers(0, f.max_code + 1, shape, np.uint64)
    signs = rng.integers(0, 2, shape, np.uint64) * np.uint64(f.sign_bit)
    if not f.negative_zero:
        signs[codes == 0] = 0
    drawn = (codes | signs) << np.uint64(f.shift)
    return drawn.astype(f"u{f.item_bits // 8}").view(dtype_of(f.name))


def planted(
    f: Format, rng: np.random.Generator, shape: tuple[int, int, int], far: int = 900
) -> Operands:
    """Return float64 operands whose products are near numbers and ties of a format.

    There are k - 3 more terms, pairs of which cancel.
    """
    m, k, n = shape
    normal = 1 << f.mantissa_bits  # the code of the smallest normal number
    edges = [0, 1, 2, 3, normal - 1, normal, f.max_code - 1, f.max_code]
    codes = [*edges, *(int(x) for x in rng.integers(0, f.max_code + 1, m - len(edges)))]
    exact = [codec.decode_code(f, code) for code in codes]
    values = np.array([codec.to_float(x) for x in exact])
    units = np.ldexp(1.0, [x.exponent for x in exact])
    signs = rng.choice([-1.0, 1.0], m) if f.signed else 1.0
    a = np.stack([values, units, units], axis=1) * np.reshape(signs, (-1, 1))
    half = rng.choice([0.0, 0.5, -0.5], n)
    bit = rng.choice([-1.0, 0.0, 1.0], n, p=[0.45, 0.1, 0.45])
    others = rng.choice([far // 2, far], n)
    places = np.where(rng.random(n) < 0.9, 1 + np.arange(n) % 120, others)
    b = np.stack([np.ones(n), half, np.ldexp(bit, -places)])
    scale = np.frexp(np.maximum(values, units))[1] - rng.integers(3, 40, m)
    x = np.ldexp(rng.standard_normal((m, (k - 3) // 2)), scale[:, None])
    y = rng.standard_normal((x.shape[1], n))
    return permuted(rng, np.hstack([a, x, -x]), np.vstack([b, y, y]))


def canceling(
    f: Format, rng: np.random.Generator, shape: tuple[int, int, int]
) -> Operands:
    """Return operands in a format whose products are 0 or the sum of two terms."""
    m, k, n = shape
    x, y = numbers(f, rng, (m, k // 2)), numbers(f, rng, (k // 2, n))
    near, some = y.copy(), rng.permutation(n)[: n // 2]
    near[rng.integers(0, k // 2, n // 2), some] = numbers(f, rng, (1, n // 2))[0]
    return permuted(rng, np.hstack([x, -x]), np.vstack([y, near]))


def aligned(f: Format, rng: np.random.Generator, size: int, k: int) -> Operands:
    """Return operands whose products have terms of one size, so that errors add up.

    Elements of the diagonal are near ties of a format.
    """
    a, b = rng.uniform(0.5, 1, (size, 1)), rng.uniform(0.5, 1, size) / k
    a, b = a.repeat(k, axis=1), np.tile(b, (k, 1))
    b[-3:] = 1
    for i in range(size):
        total = (k - 3) * Fraction(a[i, 0]) * Fraction(b[0, i])
        unit = Fraction(2) ** (math.frexp(total)[1] - 1 - f.mantissa_bits)
        sign = Fraction(rng.choice([-1.0, 1.0]))
        distance = sign * unit / 2 ** int(rng.integers(1, 120))
        missing = (total // unit) * unit + unit / 2 + distance - total
        for j in range(k - 3, k):
            a[i, j] = float(missing)
            missing -= Fraction(a[i, j])
    return permuted(rng, a, b)


def drawn(rng: np.random.Generator, shape: tuple[int, int, int]) -> Iterator[Operands]:
    m, k, n = shape
    for draw in DRAWN.values():
        a, b = draw(rng, (m, k)), draw(rng, (k, n))
        yield tuple(np.where(np.isfinite(x), x, 1.0) for x in (a, b))  # type: ignore


def cases(name: str, rng: np.random.Generator, size: int) -> Iterator[Operands]:
    """Return operands for results of a format. Most products have size^2 elements."""
    f = FORMS[name]
    for k in (3, 23, 301):
        a, b = planted(f, rng, (size, k, size))
        yield a, b
        if name != "float64":
            yield a.astype(np.float32), b.astype(np.float32)
    for k in (0, 1, 2, 33):
        yield numbers(f, rng, (size, k)), numbers(f, rng, (k, size + 3))
    yield normal(rng, (4, 700)), normal(rng, (700, size))  # by dot products
    yield aligned(f, rng, size, 70)
    if f.signed:
        for k in (2, 60):
            yield canceling(f, rng, (size, k, size))
    if name in REALS:
        for a, b in drawn(rng, (size // 2, 25, size // 2)):
            yield a, b
            yield tuple(np.nan_to_num(x.astype(np.float32)) for x in (a, b))  # type: ignore


# -- tests -----------------------------------------------------------------------------


def compare(name: str, size: int) -> tuple[int, int]:
    """Return how many elements differ, and how many were compared."""
    wrong = count = 0
    for a, b in cases(name, np.random.default_rng(1), size):
        values = exact_arrays.products(as_float64(a), as_float64(b))
        for rounding in ROUNDINGS:
            for target in sorted({name, "float32", "float64"}):
                wrong += differing(a, b, target, rounding, values)
                count += len(a) * b.shape[1]
    return wrong, count


@pytest.mark.parametrize("name", FORMS)
def test_results(name: str, compared: Callable[..., None]) -> None:
    wrong, count = compare(name, 30)
    assert wrong == 0
    compared(count)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMS)
def test_many_results(name: str, compared: Callable[..., None]) -> None:
    wrong, count = compare(name, 80)
    assert wrong == 0
    compared(count)


def complex_of(real: Array, imag: Array, name: str) -> Array:
    x = np.empty(real.shape, name)
    x.real, x.imag = real, imag
    return x


@pytest.mark.parametrize("size", [20, pytest.param(300, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    ("name", "part"), [("complex64", FLOAT32), ("complex128", FLOAT64)]
)
def test_complex(
    name: str, part: Format, size: int, compared: Callable[..., None]
) -> None:
    """The real parts are planted, and the imaginary parts are other sums."""
    a, b = planted(part, np.random.default_rng(2), (size, 23, size))
    a, b = np.pad(a, ((0, 0), (0, 1))), np.pad(b, ((0, 1), (0, 0)))
    x = complex_of(a[:, :12], -a[:, 12:], name)
    y = complex_of(b[:12], b[12:], name)
    sums = (
        [np.hstack([x.real, -x.imag]), np.vstack([y.real, y.imag])],
        [np.hstack([x.real, x.imag]), np.vstack([y.imag, y.real])],
    )
    values = [exact_arrays.products(*map(as_float64, pair)) for pair in sums]
    for rounding in ROUNDINGS:
        found = td.matmul(x, y, precision="exact", rounding=rounding)
        for own, wanted in zip((found.real, found.imag), values, strict=True):
            assert (items(own) == exact_arrays.encode(part, wanted, rounding)).all()
        compared(2 * found.size)


@pytest.mark.parametrize("size", [20, pytest.param(100, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", FORMS)
def test_sums(name: str, size: int, compared: Callable[..., None]) -> None:
    """Sums of the planted products, each of which is rounded to float64 first."""
    for k, n in ((23, size), (1301, 3)):
        a, b = planted(FORMS[name], np.random.default_rng(4), (size, k, n))
        terms = (a[:, None] * b.T).reshape(-1, len(b))
        values = exact_arrays.products(terms, np.ones((len(b), 1)))
        for rounding in ROUNDINGS:
            for target in sorted({name, "float32", "float64"}):
                found = td.exact_sum(
                    terms,
                    axis=1,
                    keepdims=True,
                    dtype=dtype_of(target),
                    rounding=rounding,
                )
                wanted = exact_arrays.encode(FORMS[target], values, rounding)
                assert (items(found) == wanted).all()
                compared(found.size)


#: Numbers of terms around those at which parts of the package cut sums.
LENGTHS = (1023, 1025, 8191, 8193, 65537)


def compare_long_sums(k: int, name: str) -> int:
    """Compare some long sums of a format; return how many."""
    rng = np.random.default_rng(k)
    count, f = 0, FORMS[name]
    a, b = planted(f, rng, (12, k, 6), 150)
    for x, y in ((a[rng.choice(12, 5)], b), aligned(f, rng, 6, k)):
        values = exact_arrays.products(x, y)
        few = Values(*(part[:2] for part in values))
        for rounding in ROUNDINGS[::2]:
            assert differing(x, y, name, rounding, values) == 0
            assert differing(x[:2], y, name, rounding, few) == 0
            count += (len(x) + 2) * y.shape[1]
    return count


@pytest.mark.parametrize("name", ["float8_e4m3", "float32", "float64"])
@pytest.mark.parametrize("k", LENGTHS)
def test_long_sums(k: int, name: str, compared: Callable[..., None]) -> None:
    compared(compare_long_sums(k, name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMS)
def test_longer_sums(name: str, compared: Callable[..., None]) -> None:
    compared(compare_long_sums(10**6 if name in REALS else 10**5, name))


# -- faults of the tests and of the package --------------------------------------------


def test_the_reference() -> None:
    rng = np.random.default_rng(4)
    shape = 10, 9, 3
    samples = [planted(f, rng, shape) for f in (FORMS["float8_e5m2"], FLOAT32, FLOAT64)]
    for a, b in (*samples, canceling(FLOAT64, rng, shape), *drawn(rng, shape)):
        values = exact_arrays.products(a, b)
        for name, f in FORMS.items():
            for rounding in ROUNDINGS:
                wanted = expected(a, b, name, rounding)
                assert (exact_arrays.encode(f, values, rounding) == wanted).all()


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "one bit": (exact_arrays, "BITS", 51),
    "float64_error": (stages, "float64_error", lambda k: k * 2.0**-70),
    "compensated_error": (stages, "compensated_error", lambda k: k * 2.0**-140),
    "lost parts": (
        stages,
        "Rows",
        SimpleNamespace(of=lambda x: rows.Rows.of(x)._replace(lost=None)),
    ),
    "rests": (
        stages._Product,
        "_rest_bounds",
        lambda self, known, rows: [(0 * self._x.norms[rows], 0 * self._y.norms)],
    ),
    "slices": (rows.Slices, "products_are_exact", lambda self, other: True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    if fault == "slices":
        monkeypatch.setattr(stages, "likely_bits", lambda one, other: 27)
    assert compare("float32", 30)[0] > 0
