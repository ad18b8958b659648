"""LU factorization with partial pivoting, whose updates run in a precision."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, SupportsIndex, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.caller import reports_errors
from .._base.options import shows
from .._base.wording import brief
from .._matmul.precisions import PrecisionName, ProductOptions, Settings
from .factors import Factors
from .operands import as_square, flat
from .products import Products
from .scaling import powers_of_columns, powers_of_rows, scaled
from .triangular import solve_lower

Array = NDArray[Any]


class LU(NamedTuple):
    """The factors of matrices, with a[permutation] about lower @ upper.

    See Also
    --------
    tf32dtype.linalg.lu : Compute the factors.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.linalg.lu([[1.0, 2.0], [4.0, 4.0]]).permutation
    array([1, 0])
    """

    #: lower triangular matrices with ones on the diagonal
    lower: Array
    #: upper triangular matrices
    upper: Array
    #: the row of `a` that each row of the product is near to, (..., n)
    permutation: Array


@shows(ProductOptions, Settings)
@reports_errors("lu")
def lu(
    a: ArrayLike,
    *,
    precision: PrecisionName | None = None,
    block: SupportsIndex = 64,
    **options: Unpack[ProductOptions],
) -> LU:
    """Factor matrices by Gaussian elimination whose updates run in a precision.

    Parameters
    ----------
    a : array_like, (..., n, n)
        Square matrices of real numbers. Formats of this package and float16 become
        float32, and integers float64.
    precision : str or None
        The precision of the updates, as for `tf32dtype.matmul`. None: the precision of
        the enclosing scope; without a scope, NumPy's products.
    block : int
        The number of columns that are factored between two updates.
    rounding, scale, special_values, device, instruction
        As for `tf32dtype.matmul_precision`: with `device`, the updates have the bits of
        its tensor cores.

    Returns
    -------
    LU
        `lower`, `upper` and `permutation`, with ``a[permutation]`` about
        ``lower @ upper``. The dtype is float32 or float64, as that of `a`.

    Raises
    ------
    TypeError, ValueError
        For matrices that are not square, for complex numbers, and as
        `tf32dtype.matmul`.

    See Also
    --------
    cholesky : Factor symmetric positive definite matrices.
    solve : Solve linear systems with these factors.

    Notes
    -----
    The algorithm is blocked and right-looking. It factors a panel of `block` columns
    with partial pivoting, solves a triangular system for the rows to its right, and
    subtracts a product from the rest. Only this product runs in the precision. Panels
    and triangular systems are computed in float32, or in the dtype of `a` if
    `precision` is None, "exact" or an emulated precision. A matrix of at most `block`
    rows has no products.

    Columns are scaled by powers of two during the computation, which changes no pivot,
    so that the updates do not overflow in a narrow format. If a column has no pivot but
    zero, `upper` has a zero on its diagonal. With a precision, the results have the
    same bits on every machine.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([[2.0, 1.0], [4.0, 8.0]])
    >>> lower, upper, permutation = td.linalg.lu(a, precision="bf16", block=1)
    >>> lower @ upper
    array([[4., 8.],
           [2., 1.]])
    >>> a[permutation]
    array([[4., 8.],
           [2., 1.]])
    """
    matrices = as_square(a)
    products = Products.of("lu", precision, options, matrices.dtype)
    found = factor_lu(matrices, products, check_block(block), rows=False)
    upper = np.ldexp(
        found.upper.astype(matrices.dtype), -found.column_powers[..., np.newaxis, :]
    )
    return LU(found.lower.astype(matrices.dtype), upper, found.permutation)


def check_block(block: SupportsIndex) -> int:
    """Return the number of columns of a panel."""
    try:
        columns = operator.index(block)
    except TypeError:
        raise TypeError(f"block must be an integer; got {brief(block)}") from None
    if columns < 1:
        raise ValueError(f"block must be 1 or more; got {columns}")
    return columns


def factor_lu(a: Array, products: Products, block: int, *, rows: bool) -> Factors:
    """Factor matrices whose columns, and with `rows` also rows, are scaled."""
    n = a.shape[-1]
    columns = powers_of_columns(a)
    row_powers = np.zeros_like(columns)
    if rows:
        row_powers = powers_of_rows(scaled(a, row_powers, columns), products.reach)
    work = flat(scaled(a, row_powers, columns).astype(products.dtype))
    permutation = np.empty((len(work), n), np.int64)
    permutation[...] = np.arange(n)
    for start in range(0, n, block):
        end = min(start + block, n)
        _factor_panel(work, permutation, start, end)
        right = work[:, start:end, end:]
        solve_lower(work[:, start:end, start:end], right, unit=True)
        if end < n:
            work[:, end:, end:] -= products(work[:, end:, start:end], right)
    work = work.reshape(a.shape)
    lower = np.tril(work, -1) + np.eye(n, dtype=work.dtype)
    return Factors(
        lower, np.triu(work), permutation.reshape(columns.shape), row_powers, columns
    )


def _factor_panel(a: Array, permutation: Array, start: int, end: int) -> None:
    """Factor columns from `start` to `end`, and exchange whole rows."""
    every = np.arange(len(a))
    for j in range(start, end):
        chosen = j + np.argmax(np.abs(a[:, j:, j]), axis=1)
        for x in (a, permutation):
            x[every, chosen], x[:, j] = x[:, j].copy(), x[every, chosen]
        pivots = a[:, j, j, np.newaxis]
        below = a[:, j + 1 :, j]
        # Below a pivot of zero all elements are zero.
        below /= np.where(pivots == 0, 1, pivots)
        a[:, j + 1 :, j + 1 : end] -= (
            below[:, :, np.newaxis] * a[:, j, np.newaxis, j + 1 : end]
        )
