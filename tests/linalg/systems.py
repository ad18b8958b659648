"""Matrices of a given condition number, and exact errors by fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PRECISIONS: tuple[Any, ...] = (
    None, "exact", "f32", "tf32", "tf32x3", "bf16", "bf16x3", "bf16x6", "bf16x9", "f16",
    "fp8_e4m3", "fp8_e5m2",
)  # fmt: skip


def matrix(rng: np.random.Generator, n: int, condition: float) -> Array:
    """Return a float64 matrix whose singular values go from 1 to 1 / condition."""
    one, other = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return np.asarray((one * np.geomspace(1, 1 / condition, n)) @ other)


def definite(rng: np.random.Generator, n: int, condition: float) -> Array:
    """Return a symmetric positive definite float64 matrix."""
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    found = (basis * np.geomspace(1, 1 / condition, n)) @ basis.T
    return np.asarray((found + found.T) / 2)


def fractions(x: Array) -> list[Fraction]:
    return [Fraction(float(value)) for value in np.ravel(x)]


def exact_errors(a: Array, x: Array, b: Array) -> tuple[Fraction | None, ...]:
    """Return the normwise and the componentwise error, or None for infinity."""
    n = len(a)
    rows = [fractions(row) for row in a]
    unknowns, right = fractions(x), fractions(b)
    residual, sizes = [], []
    for i in range(n):
        terms = [value * other for value, other in zip(rows[i], unknowns, strict=True)]
        residual.append(abs(right[i] - sum(terms)))
        sizes.append(abs(right[i]) + sum(map(abs, terms)))
    norm = max((sum(map(abs, row)) for row in rows), default=Fraction(0))
    length = max(map(abs, unknowns), default=Fraction(0))
    whole = norm * length + max(map(abs, right), default=Fraction(0))
    each = [_share(*pair) for pair in zip(residual, sizes, strict=True)]
    return (
        _share(max(residual, default=Fraction(0)), whole),
        None if None in each else max(each, default=Fraction(0)),
    )


def _share(part: Fraction, whole: Fraction) -> Fraction | None:
    if part == 0:
        return Fraction(0)
    return part / whole if whole else None
