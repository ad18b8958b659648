"""Products on matrix units, in Python integers. tensor_core.py and rounded.py compute
the groups of a unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rounded import RoundedUnit
from .tensor_core import Bits, Unit


def unit(model: Any, mutation: Any = None) -> Unit | RoundedUnit:
    """Return a unit by its model, or a wrong unit by a mutation."""
    kind = RoundedUnit if hasattr(model, "arithmetic") else Unit
    return kind(model) if mutation is None else kind(model, mutation)


def product(
    model: Any,
    rows: Sequence[Bits],
    columns: Sequence[Bits],
    c: Sequence[Bits] | None = None,
    *,
    promote_every: int | None = None,
    mutation: Any = None,
) -> list[list[int]]:
    """Return the product of a matrix, by rows, and another, by columns, plus c."""
    dot, n = unit(model, mutation).dot, len(columns)
    return [
        [dot(x, y, z, promote_every) for y, z in zip(columns, start, strict=True)]
        for x, start in zip(rows, c or [[0] * n] * len(rows), strict=True)
    ]


def dots(
    model: Any,
    a: Sequence[Bits],
    b: Sequence[Bits],
    c: Bits,
    mutation: Any = None,
) -> list[int]:
    """Return the products of rows of a with rows of b, each added to its c."""
    return list(map(unit(model, mutation).dot, a, b, c))
