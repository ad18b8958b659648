"""Factors of a matrix whose rows and columns are scaled and exchanged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.matrices import Shape
from .triangular import by_columns, solve_lower, solve_upper

Array = NDArray[Any]


class Factors(NamedTuple):
    """Triangular factors of stacks of matrices.

    With powers of two r and c and a permutation p, scaled[i, j] is
    a[i, j] * 2^(r[i] + c[j]), and scaled[p] is about lower @ upper.
    """

    lower: Array
    upper: Array
    #: p, (..., n)
    permutation: Array
    #: r and c, (..., n)
    row_powers: Array
    column_powers: Array

    def for_solving(self, stack: Shape) -> Factors:
        """Return factors as `solve` takes them, for each matrix of a stack."""
        matrices = [by_columns(x) for x in (self.lower, self.upper)]
        return Factors(
            *(np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in matrices),
            *(np.broadcast_to(x, (*stack, x.shape[-1])) for x in self[2:]),
        )

    def at(self, place: tuple[int, ...]) -> Factors:
        """Return the factors of one matrix of a stack."""
        return Factors(*(x[place] for x in self))

    def solve_scaled(self, b: Array) -> Array:
        """Return solutions in float64 for columns b, without the powers c."""
        x = np.ldexp(b, self.row_powers[..., np.newaxis])
        x = np.take_along_axis(x, self.permutation[..., np.newaxis], axis=-2)
        solve_lower(self.lower, x, unit=False)
        solve_upper(self.upper, x)
        return x

    def solve(self, b: Array) -> Array:
        """Return solutions in float64 for columns b, by substitution."""
        scaled = self.solve_scaled(b)
        x: Array = np.ldexp(scaled, self.column_powers[..., np.newaxis])
        return x
