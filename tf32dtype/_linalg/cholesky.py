"""Cholesky factorization whose updates run in a precision."""

from __future__ import annotations

from typing import Any, SupportsIndex, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.caller import reports_errors
from .._base.options import shows
from .._matmul.precisions import PrecisionName, ProductOptions, Settings
from .factors import Factors
from .lu import check_block
from .operands import as_square, flat
from .products import Products
from .scaling import powers_of_diagonal, scaled

Array = NDArray[Any]


@shows(ProductOptions, Settings)
@reports_errors("cholesky")
def cholesky(
    a: ArrayLike,
    *,
    precision: PrecisionName | None = None,
    block: SupportsIndex = 64,
    **options: Unpack[ProductOptions],
) -> Array:
    """Factor symmetric positive definite matrices; the updates run in a precision.

    Parameters
    ----------
    a : array_like, (..., n, n)
        Symmetric matrices of real numbers, as for `lu`. Elements above the diagonal are
        not read.
    precision, block, rounding, scale, special_values, device, instruction
        As for `lu`.

    Returns
    -------
    ndarray, (..., n, n)
        Lower triangular matrices, with `a` about ``lower @ lower.T``. The dtype is
        float32 or float64, as that of `a`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite in the precision: a pivot is not positive.
        The message names its row.
    TypeError, ValueError
        As `lu`.

    See Also
    --------
    lu : Factor any square matrices.
    solve : Solve linear systems with these factors.

    Notes
    -----
    Blocks and dtypes are those of `lu`. Rows and columns are scaled by the same powers
    of two during the computation, so that the updates do not overflow. With a
    precision, the results have the same bits on every machine.

    Rounding may make a matrix indefinite whose condition number is large for the
    precision.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.linalg.cholesky([[4.0, 2.0], [2.0, 10.0]], precision="bf16")
    array([[2., 0.],
           [1., 3.]])
    >>> td.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]], precision="bf16")
    Traceback (most recent call last):
    ...
    numpy.linalg.LinAlgError: a must be positive definite in precision 'bf16'; got pivot
    -3 in row 1
    """
    matrices = as_square(a)
    products = Products.of("cholesky", precision, options, matrices.dtype)
    found = factor_cholesky(matrices, products, check_block(block))
    lower = found.lower.astype(matrices.dtype)
    result: Array = np.ldexp(lower, -found.row_powers[..., np.newaxis])
    return result


def factor_cholesky(a: Array, products: Products, block: int) -> Factors:
    """Factor matrices whose rows and columns are scaled."""
    n = a.shape[-1]
    powers = powers_of_diagonal(a)
    with np.errstate(all="ignore"):  # a pivot tells of all errors
        work = flat(scaled(a, powers, powers).astype(products.dtype))
        for start in range(0, n, block):
            end = min(start + block, n)
            for j in range(start, end):
                _factor_column(work, j, end, a.shape[:-2], products.precision)
            left = work[:, end:, start:end]
            if end < n:
                work[:, end:, end:] -= products(left, left.swapaxes(1, 2))
    lower = np.tril(work).reshape(a.shape)
    every = np.broadcast_to(np.arange(n), powers.shape)
    return Factors(lower, lower.swapaxes(-1, -2), every, powers, powers)


def _factor_column(
    a: Array, j: int, end: int, stack: tuple[int, ...], precision: str | None
) -> None:
    pivots = a[:, j, j]
    wrong = ~(pivots > 0) | np.isinf(pivots)
    if wrong.any():
        which = int(np.argmax(wrong))
        place = tuple(int(i) for i in np.unravel_index(which, stack)) if stack else ()
        matrix = f" of matrix {place}" if place else ""
        within = f" in precision {precision!r}" if precision else ""
        raise np.linalg.LinAlgError(
            f"a must be positive definite{within}; got pivot {pivots[which]:.3g} in row"
            f" {j}{matrix}"
        )
    column = a[:, j:, j]
    column /= np.sqrt(pivots)[:, np.newaxis]
    rest = column[:, 1:]
    a[:, j + 1 :, j + 1 : end] -= (
        rest[:, :, np.newaxis] * rest[:, np.newaxis, : end - j - 1]
    )
