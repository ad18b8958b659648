"""Products on matrix units, in Python integers: tensor_core.py and rounded.py have what
their groups compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rounded import RoundedUnit
from .tensor_core import Bits, Unit


def unit(model: Any, mutation: Any = None) -> Unit | RoundedUnit:
    """A unit after a model, or a wrong one."""
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
    """The product of a matrix, by rows, and another, by columns, added to c."""
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
    """Rows of a times rows of b, each sum added to its c."""
    return list(map(unit(model, mutation).dot, a, b, c))
