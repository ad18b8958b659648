"""Correctly rounded matrix products of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._base.matrices import as_matrices, checked_out, given_back, matrices_of
from .flags import flags_of_product
from .rounding import Target, as_numbers, result_dtype
from .stages import multiply_pairs, multiply_rows

Array = NDArray[Any]

#: Matrix products of fewer multiply-adds are computed together, as dot products.
_SMALL = 1 << 15


class ExactProducts(NamedTuple):
    """Products of the precision "exact", in one direction of rounding."""

    rounding: str

    def matmul(
        self, a: Array, b: Array, dtype: np.dtype[Any] | None = None, out: Any = None
    ) -> Any:
        """Compute `tf32dtype.matmul` with ``precision="exact"``."""
        target = Target.of(result_dtype(a.dtype, b.dtype, dtype, out), self.rounding)
        left, right, stack, shape = as_matrices(a, b)
        written = checked_out(out, shape, target.dtype)
        result, flags = _stacks(left, right, stack, target, shows_progress=True)
        _core.report(flags, b"matmul")
        return given_back(result.reshape(shape), written)

    def __call__(self, a: Array, b: Array, out: Array) -> int:
        """Write products of stacks of matrices of one dtype; return the flags raised.

        NumPy's loops call this in a scope.
        """
        target = Target.of(out.dtype, self.rounding)
        out[...], flags = _stacks(a, b, out.shape[:-2], target)
        return flags


# -- stacks ----------------------------------------------------------------------------


def _stacks(
    a: Array,
    b: Array,
    stack: tuple[int, ...],
    target: Target,
    *,
    shows_progress: bool = False,
) -> tuple[Array, int]:
    """Return the products of stacks of matrices, and the flags raised."""
    multiply = partial(multiply_rows, shows_progress=shows_progress)
    m, k, n = *a.shape[-2:], b.shape[-1]
    count = math.prod(stack)
    shape = (*stack, m, n)
    if count > 1 and b.size and b[..., 0, 0].size == 1 and a[..., 0, 0].size == count:
        # One matrix times all rows of the stack.
        rows = a.reshape(-1, k)
        found, flags = _product(rows, b.reshape(k, n), target, multiply)
        return found.reshape(shape), flags
    if count > 1 and m * n * k <= _SMALL and a.size and b.size:
        columns = b.swapaxes(-1, -2)
        pairs = _pairs_of(a.shape[:-2], b.shape[:-2], stack, m, n)
        found, flags = _product(
            a.reshape(-1, k),
            columns.reshape(-1, k).T,
            target,
            partial(multiply_pairs, pairs=pairs),
        )
        return found.reshape(shape), flags
    if not stack:
        return _product(a, b, target, multiply)
    result, raised = np.empty(shape, target.dtype), 0
    for place, x, y in matrices_of(a, b, stack):
        result[place], flags = _product(x, y, target, multiply)
        raised |= flags
    return result, raised


def _pairs_of(
    one: tuple[int, ...], other: tuple[int, ...], stack: tuple[int, ...], m: int, n: int
) -> Array:
    """Return the row of the first operand and the column of the second of each element.

    The rows of all matrices of a stack count as one long matrix.
    """
    firsts, seconds = (
        np.broadcast_to(np.arange(math.prod(own)).reshape(own), stack).reshape(-1, 1, 1)
        for own in (one, other)
    )
    pairs = np.empty((len(firsts), m, n, 2), np.int64)
    pairs[..., 0] = firsts * m + np.arange(m)[:, None]
    pairs[..., 1] = seconds * n + np.arange(n)
    return pairs.reshape(-1, 2)


# -- one product -----------------------------------------------------------------------


def _product(
    a: Array, b: Array, target: Target, multiply: Callable[..., tuple[Array, bool]]
) -> tuple[Array, int]:
    """Return the product of two matrices, or chosen elements of it, and the flags."""
    if target.dtype.kind != "c":
        found, is_finite = multiply(_rows(a), _rows(b.T), target.work, target.first)
        return target.finish(found), 0 if is_finite else flags_of_product(found, a, b)
    # The real part is [ar, -ai] @ [br; bi], and the imaginary part [ar, ai] @ [bi; br].
    real = _rows(a.real, -a.imag), _rows(b.real.T, b.imag.T)
    imag = _rows(a.real, a.imag), _rows(b.imag.T, b.real.T)
    first, _ = multiply(*real, target.work, target.first)
    result = np.empty(first.shape, target.dtype)
    result.real = first
    result.imag, _ = multiply(*imag, target.work, target.first)
    return result, flags_of_product(result, a, b)


def _rows(*parts: Array) -> Array:
    """Return parts of rows, side by side, as float32 or float64."""
    if len(parts) == 1:
        return as_numbers(parts[0])
    return np.concatenate([as_numbers(part) for part in parts], axis=1)
