"""Iterative refinement: corrections by factors, from exact residuals.

Carson and Higham, "Accelerating the solution of linear systems by iterative refinement
in three precisions", SIAM J. Sci. Comput. 40(2), 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .backward_error import BackwardError, System
from .factors import Factors
from .gmres import exact, gmres
from .scaling import exponents

Array = NDArray[Any]

#: Returns corrections for residuals, and the number of solutions with the factors for
#: each column. Its second argument is the largest such number: 0 for columns that need
#: no correction.
Correct = Callable[[Array, Array], tuple[Array, Array]]

#: The residual at which GMRES ends, relative to the right side. Smaller ones save few
#: steps of refinement.
_GMRES_TOLERANCE = 1e-6


class Refined(NamedTuple):
    """Solutions, and facts about each column of them."""

    x: Array
    errors: BackwardError
    #: the number of solutions with the factors
    iterations: Array


def refine(
    system: System,
    correct: Correct,
    dtype: np.dtype[Any],
    tolerance: float,
    most: int,
) -> Refined:
    """Refine solutions from zero until their normwise errors are small.

    A column ends at the tolerance, at a step that makes its error no smaller, or at the
    largest number of solutions with the factors. Its solution is the best one so far.
    """
    stack, n = system.whole.shape[:-2], system.whole.shape[-2]
    m = system.whole.shape[-1] - n
    x = np.zeros((*stack, n, m), dtype)
    errors, residual = system.check(x.astype(np.float64))
    iterations = np.zeros((*stack, m), np.int64)
    active = errors.normwise > tolerance
    while active.any():
        correction, steps = correct(residual, np.where(active, most - iterations, 0))
        iterations += steps
        following = (x + correction).astype(dtype)
        found, left = system.check(following.astype(np.float64))
        better = active & (found.normwise < errors.normwise)
        of_columns = better[..., np.newaxis, :]
        x = np.where(of_columns, following, x)
        residual = np.where(of_columns, left, residual)
        errors = BackwardError(
            *(np.where(better, *both) for both in zip(found, errors, strict=True))
        )
        active = better & (errors.normwise > tolerance) & (iterations < most)
    return Refined(x, errors, iterations)


def by_factors(factors: Factors) -> Correct:
    """Return classical corrections: one solution with the factors."""

    def correct(residual: Array, left: Array) -> tuple[Array, Array]:
        return factors.solve(residual), np.minimum(left, 1)

    return correct


def by_gmres(factors: Factors, a: Array) -> Correct:
    """Return corrections by GMRES for matrices, with factors as left preconditioner.

    GMRES sees the unknowns of columns that are scaled, whose norms do not overflow.
    """

    def correct(residual: Array, left: Array) -> tuple[Array, Array]:
        corrections, steps = np.zeros_like(residual), np.zeros_like(left)
        for place in np.argwhere(left):
            *matrix, column = place.tolist()
            at: Any = (*matrix, slice(None), column)
            found, taken = _correct_one(
                factors.at(tuple(matrix)),
                a[tuple(matrix)],
                residual[at],
                int(left[tuple(place)]),
            )
            corrections[at], steps[tuple(place)] = found, taken
        return corrections, steps

    return correct


def _correct_one(
    factors: Factors, a: Array, residual: Array, most: int
) -> tuple[Array, int]:
    """Return a correction for one column, and the number of solutions."""
    powers = factors.column_powers

    def precondition(v: Array) -> Array:
        return factors.solve_scaled(v[:, np.newaxis])[:, 0]

    start = precondition(residual)
    power = exponents(start, -1)
    found, steps = gmres(
        lambda v: precondition(exact(a, np.ldexp(v, powers))),
        np.ldexp(start, -power),
        _GMRES_TOLERANCE,
        min(len(start), most - 1),
    )
    return np.ldexp(found, powers + power), steps + 1
