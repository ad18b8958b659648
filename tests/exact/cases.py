"""Operands of exact products, and their comparison with Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tf32dtype as td
from tests.reference import exact
from tests.reference.formats import FLOAT16, FLOAT32, FLOAT64, FORMATS, Format

Array = NDArray[Any]

ROUNDINGS = (
    "ties_to_even",
    "ties_to_away",
    "toward_zero",
    "toward_positive",
    "toward_negative",
)
FORMS: dict[str, Format] = {
    **FORMATS,
    "float16": FLOAT16,
    "float32": FLOAT32,
    "float64": FLOAT64,
}
_NUMPY = ("float16", "float32", "float64")


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(name) if name in _NUMPY else td.formats[name].dtype


def expected(a: Array, b: Array, name: str, rounding: str = "ties_to_even") -> Array:
    """Return the items of the product of two matrices of real numbers."""
    rows = [[float(x) for x in row] for row in a]
    columns = [[float(x) for x in column] for column in b.T]
    form = FORMS[name]
    items = [[exact.dot(x, y, form, rounding) for y in columns] for x in rows]
    found = np.array(items, np.uint64).reshape(len(rows), len(columns))
    return found.astype(f"u{form.item_bits // 8}")


def items(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


def assert_items(found: Array, wanted: Array, what: str) -> None:
    """Compare the items of a matrix with unsigned integers."""
    differ = np.argwhere(items(found) != wanted)
    if len(differ):
        i, j = differ[0]
        raise AssertionError(
            f"{len(differ)} of {wanted.size} elements differ; [{i}, {j}] is"
            f" {items(found)[i, j]:#x}, not {wanted[i, j]:#x} ({what})"
        )


def check(
    a: Array, b: Array, rounding: Any = "ties_to_even", dtype: str | None = None
) -> Array:
    """Compare `tf32dtype.matmul` with the reference; return the result."""
    target = None if dtype is None else dtype_of(dtype)
    with np.errstate(all="ignore"):
        found = td.matmul(a, b, precision="exact", rounding=rounding, dtype=target)
    assert_items(found, expected(a, b, found.dtype.name, rounding), rounding)
    return found


Drawn = Callable[[np.random.Generator, tuple[int, int]], Array]


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.standard_normal(shape)


def integers(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.integers(-9, 10, shape).astype(np.float64)


def wide(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return numbers whose exponents span much of float64's range."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(-1070, 1020, shape))


def tiny(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return numbers whose products are near float64's smallest ones."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(-545, -530, shape))


def low(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return numbers whose products are near float64's smallest normal number."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(-510, -500, shape))


def huge(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return numbers whose products are near float64's largest ones."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(505, 513, shape))


def sparse(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return powers of two and zeros of both signs: exact ties and exact zeros."""
    powers = np.ldexp(rng.choice([-1.0, 1.0], shape), rng.integers(-27, 3, shape))
    return np.where(rng.random(shape) < 0.5, powers, rng.choice([0.0, -0.0], shape))


DRAWN: dict[str, Drawn] = {
    drawn.__name__: drawn for drawn in (normal, integers, wide, tiny, low, huge, sparse)
}
