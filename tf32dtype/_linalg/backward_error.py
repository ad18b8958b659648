"""Rigorous backward errors of solutions of linear systems."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.matrices import Shape
from .._exact.rounding import ExactRounding
from .._exact.stages import rounds_as_usual
from .._exact.sums import exact_sum
from .._matmul.matmul import matmul
from .operands import as_columns, as_square, check_finite, common_stack

Array = NDArray[Any]


class BackwardError(NamedTuple):
    """The backward errors of each column of a solution.

    See Also
    --------
    tf32dtype.linalg.backward_error : Compute the errors.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.linalg.backward_error([[2.0, 0.0], [0.0, 4.0]], [0.5, 0.25], [1.0, 1.0])
    BackwardError(normwise=np.float64(0.0), componentwise=np.float64(0.0))
    """

    #: the smallest change of a and b, relative to their norms, that makes x exact
    normwise: Any
    #: the smallest change of a and b, relative to each element, that makes x exact
    componentwise: Any


def backward_error(a: ArrayLike, x: ArrayLike, b: ArrayLike) -> BackwardError:
    """Bound the backward errors of solutions x of linear systems a @ x = b.

    Parameters
    ----------
    a : array_like, (..., n, n)
        Square matrices of real numbers.
    x, b : array_like, (n,) or (..., n, m)
        The solutions, of any solver, and the right sides. Both are vectors or both are
        columns. Only an array of one axis is a vector.

    Returns
    -------
    BackwardError
        `normwise` and `componentwise`, float64 arrays of the shape (..., m), without m
        for a vector. The error is Inf for an x that is not finite.

    Raises
    ------
    TypeError
        For numbers that are not real, or have more than 64 bits.
    ValueError
        For shapes that do not fit. For an Inf or a NaN in `a` or `b`.
    RuntimeError
        In a scope of `tf32dtype.arithmetic` that rounds float64.

    See Also
    --------
    solve : Solve linear systems, and return these errors.

    Notes
    -----
    Let r be b - a @ x. The normwise error is ``||r|| / (||a|| ||x|| + ||b||)`` in the
    infinity norm [1]_. The componentwise error is the largest ``|r| / (|a| |x| + |b|)``
    of an element [2]_. 0 / 0 counts as 0.

    Each figure is an upper bound of the exact value. It exceeds the exact value by a
    few units in the last place of float64, or by more if a norm or a product of norms
    is near to the ends of the range. Residuals and denominators are exact sums, rounded
    once in the safe direction.

    References
    ----------
    .. [1] Rigal and Gaches, "On the compatibility of a given solution with the data of
       a linear system", J. ACM 14(3), 1967.
    .. [2] Oettli and Prager, "Compatibility of approximate solution of linear equations
       with given error bounds for coefficients and right-hand sides", Numer. Math. 6,
       1964.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    >>> b = np.array([1.0, 2.0], np.float32)
    >>> x = np.linalg.solve(a, b)
    >>> bool(td.linalg.backward_error(a, x, b).normwise < 1e-7)
    True
    """
    matrices = as_square(a)
    n = matrices.shape[-1]
    right, is_vector = as_columns(b, n, "b")
    found, other = as_columns(x, n, "x")
    if is_vector != other or found.shape[-1] != right.shape[-1]:
        raise ValueError(
            "x and b must have equally many columns; got shapes"
            f" {np.shape(x)} and {np.shape(b)}"
        )
    system = System.of(matrices, right, common_stack(matrices, right, found))
    with np.errstate(all="ignore"):
        errors, _ = system.check(found.astype(np.float64))
    return of_vector(errors) if is_vector else errors


def of_vector(errors: BackwardError) -> BackwardError:
    """Return the errors of the only column."""
    return BackwardError(*(error[..., 0][()] for error in errors))


class System(NamedTuple):
    """A linear system in float64, as exact products take it."""

    #: matrices with the right sides as further columns, (..., n, n + m)
    whole: Array
    #: lower bounds of the infinity norms: of the matrices, and of the right sides
    norm: Array
    right_norms: Array

    @classmethod
    def of(cls, a: Array, b: Array, stack: Shape) -> System:
        """Return the system of matrices (..., n, n) and columns (..., n, m).

        Raises
        ------
        ValueError
            For an Inf or a NaN.
        RuntimeError
            In a scope of `arithmetic` that rounds float64.
        """
        if not rounds_as_usual():
            raise RuntimeError(
                "backward errors cannot be bounded in a scope of td.arithmetic that"
                " rounds float64. Leave the scope first"
            )
        check_finite(a, "a")
        check_finite(b, "b")
        parts = [np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b)]
        whole = np.concatenate(parts, axis=-1, dtype=np.float64)
        n = a.shape[-1]
        sums = exact_sum(np.abs(whole[..., :n]), axis=-1, rounding="toward_zero")
        norm = np.max(sums, axis=-1, initial=0)[..., np.newaxis]
        return cls(whole, norm, _norms(whole[..., n:]))

    def check(self, x: Array) -> tuple[BackwardError, Array]:
        """Return the backward errors of columns x, and their residual in float64."""
        whole, m = self.whole, x.shape[-1]
        ones = np.broadcast_to(np.eye(m), (*x.shape[:-2], m, m))
        columns = np.concatenate([-x, ones], axis=-2)
        upper, lower = (
            _exact(whole, columns, rounding)
            for rounding in ("toward_positive", "toward_negative")
        )
        size = np.maximum(np.abs(upper), np.abs(lower))
        size[~np.isfinite(size)] = np.inf
        terms = _exact(np.abs(whole), np.abs(columns), "toward_zero")
        each = _quotient(size, terms)
        lengths = _below(_below(self.norm * _norms(x)) + self.right_norms)
        largest = np.max(size, axis=-2, initial=0)
        errors = BackwardError(
            _quotient(largest, np.broadcast_to(lengths, largest.shape)),
            np.max(each, axis=-2, initial=0),
        )
        return errors, upper


def _exact(a: Array, b: Array, rounding: ExactRounding) -> Array:
    product: Array = matmul(a, b, precision="exact", rounding=rounding)
    return product


def _norms(x: Array) -> Array:
    """Return the infinity norm of each column."""
    found: Array = np.abs(x).max(axis=-2, initial=0)
    return found


def _below(x: Array) -> Array:
    """Return lower bounds of results that are rounded to nearest, at least 0."""
    return np.nextafter(x, 0)


def _quotient(x: Array, y: Array) -> Array:
    """Return upper bounds of quotients of numbers that are not negative."""
    found = np.nextafter(x / y, np.inf)
    found[np.isnan(found)] = np.inf
    found[x == 0] = 0
    return found
