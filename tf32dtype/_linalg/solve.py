"""Linear systems, solved in a precision and refined, with a certificate."""

from __future__ import annotations

import operator
from typing import Any, Literal, NamedTuple, SupportsIndex, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.caller import reports_errors, warn
from .._base.options import shows
from .._base.text import counted
from .._base.wording import brief, one_of
from .._matmul.precisions import PrecisionName, ProductOptions, Settings
from .backward_error import System, of_vector
from .cholesky import factor_cholesky
from .factors import Factors
from .lu import check_block, factor_lu
from .operands import as_columns, as_square, common_stack
from .products import Products
from .refinement import by_factors, by_gmres, refine

Array = NDArray[Any]

Assumption = Literal["general", "positive definite"]
Refinement = Literal["classical", "gmres"]
_ASSUMPTIONS: tuple[Assumption, ...] = ("general", "positive definite")
_REFINEMENTS: tuple[Refinement, ...] = ("classical", "gmres")


class Solution(NamedTuple):
    """Solutions of linear systems, with upper bounds of their backward errors.

    See Also
    --------
    tf32dtype.linalg.solve : Solve linear systems.
    tf32dtype.linalg.backward_error : Compute the errors of other solutions.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0]).x
    array([0.5 , 0.25])
    """

    #: the solutions, of the shape of `b` with the stack of `a`
    x: Array
    #: normwise backward error of each column
    backward_error: Any
    #: componentwise backward error of each column
    componentwise_error: Any
    #: number of solutions with the factors for each column
    iterations: Any
    #: whether the normwise backward error of each column is at most the tolerance
    converged: Any
    #: the precision of the factorization
    precision: PrecisionName | None


@shows(ProductOptions, Settings)
@reports_errors("solve")
def solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = "bf16",
    assume_a: Assumption = "general",
    refinement: Refinement = "classical",
    tolerance: float | None = None,
    max_iterations: SupportsIndex = 1000,
    block: SupportsIndex = 64,
    **options: Unpack[ProductOptions],
) -> Solution:
    """Solve linear systems by factors in a precision, and refine the solutions.

    Parameters
    ----------
    a : array_like, (..., n, n)
        Square matrices of real numbers. Formats of this package and float16 become
        float32, and integers float64.
    b : array_like, (n,) or (..., n, m)
        The right sides. Only an array of one axis is a vector, as for
        `numpy.linalg.solve`.
    precision : str or None
        The precision of the updates of the factorization, as for `lu`.
    assume_a : str
        "general" (default) for LU, or "positive definite" for Cholesky factors.
    refinement : str
        "classical" (default): each correction is a solution with the factors. "gmres":
        each correction is computed by GMRES with the factors as preconditioner, which
        converges for larger condition numbers [2]_.
    tolerance : float, optional
        The normwise backward error at which refinement ends. The default is the eps of
        the dtype of x.
    max_iterations : int
        The largest number of solutions with the factors, for each column.
    block : int
        The number of columns that are factored between two updates, as for `lu`.
    rounding, scale, special_values, device, instruction
        As for `tf32dtype.matmul_precision`: with `device`, the updates have the bits of
        its tensor cores.

    Returns
    -------
    Solution
        `x`, `backward_error`, `componentwise_error`, `iterations`, `converged` and
        `precision`. The dtype of x is float32 or float64, as that of `a` and `b`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular in the precision: a pivot is exactly zero. If the
        factors overflow. With Cholesky factors, if a pivot is not positive.
    TypeError, ValueError
        For shapes that do not fit, complex numbers, an Inf or a NaN, and as
        `tf32dtype.matmul`.
    RuntimeError
        As `backward_error`.

    Warns
    -----
    UserWarning
        If a column did not converge. Then x is its best solution, and `converged` is
        False: often the condition number is too large for the precision.

    See Also
    --------
    lu, cholesky : Compute the factors.
    backward_error : Bound the errors of solutions of another solver.

    Notes
    -----
    Only the updates of the factorization run in the precision: see `lu`. Rows and
    columns are scaled by powers of two if the range of the precision needs it [1]_.
    Residuals are exact sums, rounded once to float64, and corrections are computed in
    float64. The errors are rigorous upper bounds for the `a`, `b` and `x` that you see:
    see `backward_error`. With a precision, x has the same bits on every machine.

    Classical refinement converges if the condition number times the error of the
    factors is below 1. A small backward error says that x is the solution of a system
    near to yours. The relative error of x itself is up to about twice the condition
    number times as large. See :doc:`/how_to/solve`.

    References
    ----------
    .. [1] Higham, Pranesh and Zounon, "Squeezing a matrix into half precision, with an
       application to solving linear systems", SIAM J. Sci. Comput. 41(4), 2019.
    .. [2] Carson and Higham, "Accelerating the solution of linear systems by iterative
       refinement in three precisions", SIAM J. Sci. Comput. 40(2), 2018.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> rng = np.random.default_rng(0)
    >>> a = rng.standard_normal((200, 200)) + 20 * np.eye(200)
    >>> result = td.linalg.solve(a, a.sum(axis=1), precision="bf16")
    >>> bool(result.converged), bool(result.backward_error < 1e-15)
    (True, True)
    >>> np.allclose(result.x, 1, rtol=0, atol=1e-14)
    True
    """
    for name, value, known in (
        ("assume_a", assume_a, _ASSUMPTIONS),
        ("refinement", refinement, _REFINEMENTS),
    ):
        if value not in known:
            raise ValueError(one_of(name, value, known))
    matrices = as_square(a)
    right, is_vector = as_columns(b, matrices.shape[-1], "b")
    dtype = np.result_type(matrices, right)
    limit, most = _tolerance(tolerance, dtype), _most(max_iterations)
    panel = check_block(block)
    products = Products.of("solve", precision, options, matrices.dtype)
    stack = common_stack(matrices, right)
    system = System.of(matrices, right, stack)
    with np.errstate(all="ignore"):
        if assume_a == "general":
            factors = factor_lu(matrices, products, panel, rows=True)
        else:
            factors = factor_cholesky(matrices, products, panel)
        _check_factors(factors, precision)
        factors = factors.for_solving(stack)
        correct = by_factors(factors)
        if refinement == "gmres":
            correct = by_gmres(factors, system.whole[..., : matrices.shape[-1]])
        x, errors, iterations = refine(system, correct, dtype, limit, most)
    converged = errors.normwise <= limit
    if not converged.all():
        remedies = _remedies(matrices.dtype, products.dtype, refinement)
        warn(_advice(errors.normwise, converged, limit, remedies))
    if is_vector:
        x, iterations, converged = (
            x[..., 0],
            iterations[..., 0][()],
            converged[..., 0][()],
        )
        errors = of_vector(errors)
    return Solution(x, *errors, iterations, converged, precision)


def _tolerance(given: float | None, dtype: np.dtype[Any]) -> float:
    if given is None:
        return float(np.finfo(dtype).eps)
    try:
        limit = float(given)
    except (TypeError, ValueError):
        raise TypeError(f"tolerance must be a number; got {brief(given)}") from None
    if not limit >= 0:
        raise ValueError(f"tolerance must be 0 or more; got {brief(given)}")
    return limit


def _most(given: SupportsIndex) -> int:
    try:
        most = operator.index(given)
    except TypeError:
        raise TypeError(
            f"max_iterations must be an integer; got {brief(given)}"
        ) from None
    if most < 1:
        raise ValueError(f"max_iterations must be 1 or more; got {most}")
    return most


def _check_factors(factors: Factors, precision: str | None) -> None:
    """Refuse factors that have no solution."""
    within = f" in precision {precision!r}" if precision else ""
    if not (np.isfinite(factors.lower).all() and np.isfinite(factors.upper).all()):
        raise np.linalg.LinAlgError(
            f"a must have factors that do not overflow{within}; got an Inf or a NaN."
            " Use a precision with a larger range, such as 'bf16' or 'f32'"
        )
    zeros = np.argwhere(np.diagonal(factors.upper, axis1=-2, axis2=-1) == 0)
    if len(zeros):
        *matrix, column = (int(i) for i in zeros[0])
        of_matrix = f" of matrix {tuple(matrix)}" if matrix else ""
        raise np.linalg.LinAlgError(
            f"a must be nonsingular{within}; got a zero pivot in column"
            f" {column}{of_matrix}"
        )


def _advice(errors: Array, converged: Array, limit: float, remedies: list[str]) -> str:
    """Return the warning that columns did not converge."""
    worst = float(errors.max())
    use = f"Use {' or '.join(remedies)}" if remedies else "a is singular or overflows"
    return (
        f"solve did not converge for {np.count_nonzero(~converged)} of"
        f" {counted(errors.size, 'right side')}: the backward error is {worst:.1e}, and"
        f" tolerance is {limit:.1e}. {use}"
    )


def _remedies(
    given: np.dtype[Any], factors: np.dtype[Any], refinement: Refinement
) -> list[str]:
    """Return what may converge, for dtypes of the matrix and of its factors."""
    found = ["refinement='gmres'"] if refinement == "classical" else []
    if factors != given:
        found.append("precision=None, whose factors are float64")
    elif given != np.float64:
        found.append("a.astype(np.float64) with precision=None")
    return found
