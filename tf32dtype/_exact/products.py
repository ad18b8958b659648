"""Correctly rounded matrix products of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._base.matrices import as_matrices, as_out, check_cast, unwrapped
from .rounding import Target, is_exactly_readable
from .stages import multiply_rows

Array = NDArray[Any]

_OVERFLOW, _INVALID = 2, 8  # as in src/runtime/fp_flags.h


def exact_matmul(
    a: Array,
    b: Array,
    dtype: np.dtype[Any] | None = None,
    out: Any = None,
    rounding: str | None = None,
) -> Any:
    """Compute `tf32dtype.matmul` with ``precision="exact"``."""
    target = Target.of(_result_dtype(a, b, dtype), rounding)
    left, right, stack, shape = as_matrices(a, b)
    written = None if out is None else as_out(out, shape)
    if written is not None:
        check_cast(target.dtype, written.dtype)
    result = _stacks(left, right, stack, target).reshape(shape)
    if written is None:
        return result[()]
    np.copyto(written, result, casting="same_kind")
    return unwrapped(out)


def _result_dtype(a: Array, b: Array, dtype: np.dtype[Any] | None) -> np.dtype[Any]:
    for x in (a, b):
        if not is_exactly_readable(x.dtype):
            raise TypeError(
                "operands must be floating-point numbers of at most 64 bits with"
                f" precision='exact'; got {x.dtype}. Cast them, x.astype(np.float64)"
            )
    common = np.result_type(a, b)
    if common.kind in "biu":
        raise TypeError(
            "operands must be floating-point numbers with precision='exact'; got"
            f" {a.dtype} and {b.dtype}. Cast them, x.astype(np.float64)"
        )
    chosen = common if dtype is None else dtype
    if common.kind == "c" and chosen.kind != "c":
        raise TypeError(f"dtype must be complex for complex operands; got {chosen}")
    return chosen


def _stacks(a: Array, b: Array, stack: tuple[int, ...], target: Target) -> Array:
    """Return the products of stacks of matrices."""
    m, n = a.shape[-2], b.shape[-1]
    if b.ndim == 2 and stack:  # one matrix times all rows of the stack
        rows = a.reshape(-1, a.shape[-1]) if a.size else np.empty((m * 0, a.shape[-1]))
        if a.size:
            return _product(rows, b, target).reshape(*stack, m, n)
    result = np.empty((*stack, m, n), target.dtype)
    for place, x, y in _matrices(a, b, stack):
        result[place] = _product(x, y, target)
    return result


def _matrices(
    a: Array, b: Array, stack: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Array, Array]]:
    one = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    other = np.broadcast_to(b, (*stack, *b.shape[-2:]))
    for place in np.ndindex(stack):
        yield place, one[place], other[place]


def _product(a: Array, b: Array, target: Target) -> Array:
    """Return the product of two matrices."""
    if target.dtype.kind != "c":
        found = multiply_rows(_rows(a), _rows(b.T), target.work, target.first)
        _report(found, a, b)
        return target.finish(found)
    # The real part is [ar, -ai] @ [br; bi], and the imaginary part [ar, ai] @ [bi; br].
    result = np.empty((a.shape[0], b.shape[1]), target.dtype)
    real = _rows(a.real, -a.imag), _rows(b.real.T, b.imag.T)
    imag = _rows(a.real, a.imag), _rows(b.imag.T, b.real.T)
    result.real = multiply_rows(*real, target.work, target.first)
    result.imag = multiply_rows(*imag, target.work, target.first)
    _report(result, a, b)
    return result


def _rows(*parts: Array) -> Array:
    """Return parts of rows, side by side, as float32 or float64."""
    dtype = parts[0].dtype
    is_narrow = dtype.type in _core.scalar_types or dtype.char in "ef"
    wanted = np.float32 if is_narrow else np.float64
    if len(parts) == 1:
        return parts[0].astype(wanted, copy=False)
    return np.concatenate(parts, axis=1, dtype=wanted)


def _report(result: Array, a: Array, b: Array) -> None:
    """Report overflow and invalid operations of results, as NumPy does."""
    strange = ~np.isfinite(result)
    if not strange.any():
        return
    had_nan = np.isnan(a).any(1)[:, None] | np.isnan(b).any(0)
    finite = np.isfinite(a).all(1)[:, None] & np.isfinite(b).all(0)
    flags = _OVERFLOW * bool((strange & finite).any())
    flags |= _INVALID * bool((np.isnan(result) & ~had_nan).any())
    _core.report(flags, b"matmul")
