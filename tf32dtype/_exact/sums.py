"""Correctly rounded sums of arrays."""

from __future__ import annotations

import math
import operator
from typing import Any, overload

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._base.caller import reports_errors
from .._base.matrices import checked_out
from .._base.wording import cast_advice
from .._formats.table import find_dtype, own_array
from .._formats.typed import Out
from .flags import flags_of
from .rounding import (
    ExactRounding,
    Target,
    as_numbers,
    dtype_into,
    is_exactly_readable,
)

Array = NDArray[Any]


@overload
def exact_sum(
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = ...,
    *,
    dtype: DTypeLike | None = ...,
    out: Out,
    keepdims: bool = ...,
    rounding: ExactRounding = ...,
) -> Out: ...
@overload
def exact_sum(
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = ...,
    *,
    dtype: DTypeLike | None = ...,
    out: None = ...,
    keepdims: bool = ...,
    rounding: ExactRounding = ...,
) -> Any: ...
@reports_errors("exact_sum")
def exact_sum(
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    *,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
    keepdims: bool = False,
    rounding: ExactRounding = "ties_to_even",
) -> Any:
    """Sum the elements of an array exactly, and round each sum once.

    Parameters
    ----------
    x : array_like
        Numbers of a floating-point dtype of at most 64 bits, complex numbers of two of
        them, or numbers of a format of this package.
    axis : int or tuple of int, optional
        The axes to sum over. By default, all elements are summed.
    dtype : dtype, optional
        The dtype of the sums: float16, float32, float64, a complex dtype, or a format.
        The default is that of `out`, or else of `x`.
    out : ndarray, optional
        An array of the result's shape to write into. It may overlap `x`.
    keepdims : bool
        Whether the axes that are summed stay in the result, with length 1.
    rounding : str
        The direction of rounding: "ties_to_even" (default), "ties_to_away",
        "toward_zero", "toward_positive" or "toward_negative".

    Returns
    -------
    ndarray or scalar
        The sums. A sum that is exactly zero is +0, as is the sum of nothing. `out` is
        returned if given.

    Raises
    ------
    TypeError
        For an array of other numbers. For a `dtype` that is not a floating-point dtype
        of at most 64 bits, or not complex if `x` is.
    ValueError
        For an unknown rounding, an `axis` that `x` does not have, or an `out` of
        another shape.

    See Also
    --------
    matmul : Multiply matrices; ``precision="exact"`` rounds exact sums of products.

    Notes
    -----
    The result does not depend on the order of the elements. Inf and NaN give the sums
    of IEEE 754: Inf - Inf is NaN. Partial sums never overflow. `math.fsum` rounds in
    the same way, to float64 and ties to even.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x = np.array([1e16, 1, -1e16, 1e-3])
    >>> x.sum(), td.exact_sum(x)
    (np.float64(0.001), np.float64(1.001))
    >>> td.exact_sum(np.full((2, 3), 0.1, np.float32), axis=1, rounding="toward_zero")
    array([0.29999998, 0.29999998], dtype=float32)
    """
    array = own_array(x)
    if not is_exactly_readable(array.dtype) or array.dtype.kind in "biu":
        raise TypeError(
            "x must hold floating-point numbers of at most 64 bits; got"
            f" {array.dtype}{cast_advice(array.dtype, 'float64')}"
        )
    chosen = dtype_into(out, array.dtype) if dtype is None else find_dtype(dtype)
    if array.dtype.kind == "c" and chosen.kind != "c":
        raise TypeError(f"dtype must be complex for complex numbers; got {chosen}")
    target = Target.of(chosen, rounding)
    every = range(array.ndim)
    if axis is not None and not isinstance(axis, tuple):
        axis = operator.index(axis)
    axes = tuple(every) if axis is None else normalize_axis_tuple(axis, array.ndim)
    kept = [i for i in every if i not in axes]
    shape = tuple(1 if i in axes else n for i, n in enumerate(array.shape))
    shape = shape if keepdims else tuple(array.shape[i] for i in kept)
    written = checked_out(out, shape, target.dtype, "the sums")
    lengths = [math.prod(array.shape[i] for i in some) for some in (kept, axes)]
    rows = array.transpose(*kept, *axes).reshape(lengths)
    result = _sums(rows, target)
    if written is None:
        return result.reshape(shape)[()]
    np.copyto(written, result.reshape(shape), casting="same_kind")
    return out


def _sums(rows: Array, target: Target) -> Array:
    if target.dtype.kind != "c":
        found = np.empty(len(rows), target.work)
        _core.exact_sums(as_numbers(rows), found, target.first)
        _report(found, rows)
        return target.finish(found)  # reports errors of its own
    result = np.empty(len(rows), target.dtype)
    for part in ("real", "imag"):
        sums = np.empty(len(rows), target.work)
        _core.exact_sums(as_numbers(getattr(rows, part)), sums, target.first)
        setattr(result, part, sums)
    _report(result, rows)
    return result


def _report(result: Array, rows: Array) -> None:
    """Report overflow and invalid operations, as NumPy does."""
    strange = ~np.isfinite(result)
    if strange.any():
        given = rows[strange]
        had_nan, had_infinity = np.isnan(given).any(1), np.isinf(given).any(1)
        flags = flags_of(result[strange], had_nan, had_infinity)
        _core.report(flags, b"exact_sum")
