"""GMRES, whose sums are exact and rounded once.

Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving
nonsymmetric linear systems", SIAM J. Sci. Stat. Comput. 7(3), 1986. Each vector is made
orthogonal to the others twice by classical Gram-Schmidt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._matmul.matmul import matmul
from .triangular import solve_upper

Array = NDArray[Any]


def exact(a: Array, b: Array) -> Array:
    """Multiply float64 arrays, and round each element once."""
    product: Array = matmul(a, b, precision="exact")
    return product


def gmres(
    multiply: Callable[[Array], Array], b: Array, tolerance: float, most: int
) -> tuple[Array, int]:
    """Solve multiply(x) = b for a linear function of vectors.

    Parameters
    ----------
    multiply : callable
        Returns the function's result for a vector.
    b : ndarray of float64, (n,)
        The right side, with elements of about 1.
    tolerance : float
        The norm of the residual at which steps end, relative to that of b.
    most : int
        The largest number of steps.

    Returns
    -------
    x : ndarray of float64, (n,)
        The solution with the smallest residual in the space of the steps.
    steps : int
        The number of calls of `multiply`.
    """
    first = np.sqrt(exact(b, b))
    if not (np.isfinite(first) and first > 0):
        return np.zeros_like(b), 0
    basis = np.empty((most + 1, len(b)))
    basis[0] = b / first
    upper = np.zeros((most, most))  # R of the Hessenberg matrix
    turned = np.zeros(most + 1)  # the right side, turned as its columns
    turned[0] = first
    cosines, sines = np.empty(most), np.empty(most)
    steps = 0
    while steps < most and abs(turned[steps]) > tolerance * first:
        known = basis[: steps + 1]
        vector = multiply(known[steps])
        column = np.zeros(steps + 1)
        for _ in range(2):
            shares = exact(known, vector)
            vector = vector - exact(shares, known)
            column += shares
        length = np.sqrt(exact(vector, vector))
        for i in range(steps):
            one, other = column[i], column[i + 1]
            column[i] = cosines[i] * one + sines[i] * other
            column[i + 1] = cosines[i] * other - sines[i] * one
        radius = np.sqrt(column[steps] ** 2 + length**2)
        if not (np.isfinite(radius) and radius > 0):
            break
        cosines[steps], sines[steps] = column[steps] / radius, length / radius
        column[steps] = radius
        upper[: steps + 1, steps] = column
        turned[steps + 1] = -sines[steps] * turned[steps]
        turned[steps] *= cosines[steps]
        steps += 1
        if length > 0:
            basis[steps] = vector / length
    weights = turned[:steps, np.newaxis].copy()
    solve_upper(upper[:steps, :steps], weights)
    return exact(weights[:, 0], basis[:steps]), steps
