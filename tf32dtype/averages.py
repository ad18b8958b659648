"""NumPy's means, variances, medians, quantiles, norms and np.round of our formats.

NumPy computes them step by step in the dtype of the array, so that a sum, or a number
times 10, is rounded, or overflows, before it is divided. Here NumPy's own function
computes in float64, which holds all our numbers and the squares of them, and its result
is rounded once. Sums are NumPy's pairwise sums of float64: exact unless the numbers
span more than about 2^50.

Each function here answers one of NumPy, with the same arguments, and returns
NotImplemented where NumPy's function is right by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .format import Format, formats

Function = Callable[..., Any]
FORMATS = {form.dtype: form for form in formats.values()}
#: dtypes whose means are rounded from float64
_NARROW = {*FORMATS, np.dtype(np.float16), np.dtype(np.float32)}
_DOUBLE = np.dtype(np.float64)


def rounded(
    result: Any,
    dtype: np.dtype[Any],
    out: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """A float64 result in its dtype, every NaN positive; in `out` if that is given."""
    if isinstance(result, np.ndarray) and result is getattr(
        sys.modules.get("numpy.ma"), "masked", None
    ):
        return result  # the constant
    numbers = np.asanyarray(result)
    nan = np.isnan(numbers)
    if np.any(nan):
        numbers = numbers.copy()
        numbers[nan] = np.nan
    if out is not None and out is not Ellipsis:
        np.copyto(out, numbers, casting=casting)
        return out
    numbers = numbers.astype(dtype)
    return numbers if isinstance(result, np.ndarray) else numbers[()]


def _double_like(out: Any) -> Any:
    """What NumPy's function writes to: it checks the shape."""
    return np.empty(out.shape) if isinstance(out, np.ndarray) else out


def _mean(own: Function, wide: bool, casting: str = "same_kind") -> Function:
    """Of the functions with axis=, dtype= and out=; `wide` if NumPy's function puts
    zeros in the array, which not all formats have; `casting` as its own to `out`."""

    def mean(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        a = np.asanyarray(a)
        target = a.dtype if dtype is None else np.dtype(dtype)
        if dtype is None and a.dtype.kind in "biu":
            target = _DOUBLE
        is_double = target == _DOUBLE and getattr(out, "dtype", _DOUBLE) != _DOUBLE
        if target not in _NARROW and not is_double:
            return NotImplemented
        if dtype is not None or wide:  # elements are rounded first, as NumPy does
            a = a.astype(target, copy=False)
        given = kwargs.get("mean")
        if given is not None and given is not np._NoValue:
            kwargs["mean"] = np.asanyarray(given, _DOUBLE)
        if wide or "mean" in kwargs:
            a = a.astype(_DOUBLE, copy=False)
        result = own(a, axis, _DOUBLE, _double_like(out), *args, **kwargs)
        return rounded(result, target, out, casting)

    return mean


def _nan_sum(own: Function) -> Function:
    """NumPy puts 0 for NaN, which not all formats have; in float64 there is one."""
    wide = _mean(own, True)

    def nan_sum(a: Any, *args: Any, **kwargs: Any) -> Any:
        a = np.asanyarray(a)
        form = FORMATS.get(a.dtype)
        lacks_zero = form is not None and not form.has_zero
        return wide(a, *args, **kwargs) if lacks_zero else NotImplemented

    return nan_sum


def _median(own: Function, casting: str = "unsafe") -> Function:
    def median(
        a: Any, axis: Any = None, out: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        a = np.asanyarray(a)
        if a.dtype not in _NARROW:
            return NotImplemented
        result = own(a.astype(_DOUBLE), axis, _double_like(out), *args, **kwargs)
        return rounded(result, a.dtype, out, casting)

    return median


def _is_beyond(number: float, form: Format) -> bool:
    """Whether a format ends before a number; NaN and what infinities it has are in."""
    infinite = form.has_infinity and abs(number) == float("inf")
    return not infinite and (number < form.min or number > form.max)


def _extreme(own: Function) -> Function:
    """With a number to begin with that is beyond the range."""
    wide = _median(own, "same_kind")

    def extreme(
        a: Any, axis: Any = None, out: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        a = np.asanyarray(a)
        form = FORMATS.get(a.dtype)
        initial: Any = kwargs.get("initial", args[1] if len(args) > 1 else None)
        if form is None or type(initial) not in (int, float):
            return NotImplemented
        if not _is_beyond(initial, form):
            return NotImplemented
        return wide(a, axis, out, *args, **kwargs)

    return extreme


def _quantile(own: Function) -> Function:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        a = np.asanyarray(a)
        if a.dtype not in _NARROW:
            return NotImplemented
        dtype = a.dtype
        if type(q) not in (int, float):
            q = np.asanyarray(q)
            if q.dtype in FORMATS:
                dtype = np.promote_types(dtype, q.dtype)
                q = q.astype(_DOUBLE)
            else:  # what float16 would become depends on the method too
                like = own(np.zeros(1, np.float16), q, method=method).dtype
                if like != np.float16:
                    dtype = np.promote_types(dtype, like)
        wide = a.astype(_DOUBLE)
        result = own(wide, q, axis, _double_like(out), True, method, *args, **kwargs)
        return rounded(result, dtype, out)

    return quantile


def _average(own: Function) -> Function:
    def average(
        a: Any, axis: Any = None, weights: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        a = np.asanyarray(a)
        dtype = a.dtype
        if weights is not None:
            weights = np.asanyarray(weights)
            dtype = np.result_type(a, weights)
        if dtype not in FORMATS:
            return NotImplemented
        if weights is not None:
            weights = weights.astype(_DOUBLE)
        result = own(a.astype(_DOUBLE), axis, weights, *args, **kwargs)
        if isinstance(result, tuple):  # with the sum of the weights
            return tuple(rounded(part, dtype) for part in result)
        return rounded(result, dtype)

    return average


def _norm(own: Function) -> Function:
    def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
        x = np.asarray(x)
        if x.dtype not in FORMATS:
            return NotImplemented
        wide = x.astype(_DOUBLE)
        if axis is not None:
            return rounded(own(wide, ord, axis, keepdims), x.dtype)
        # Without an axis NumPy has BLAS sum the squares, in an order of its own.
        if ord is None:
            wide = wide.reshape(-1)
        result = rounded(own(wide, ord, tuple(range(wide.ndim))), x.dtype)
        return np.reshape(result, (1,) * x.ndim) if keepdims else result

    return norm


def _round(own: Function) -> Function:
    def round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
        a = np.asanyarray(a)
        if a.dtype not in FORMATS or decimals == 0:
            return NotImplemented
        return rounded(
            own(a.astype(_DOUBLE), decimals, _double_like(out)), a.dtype, out
        )

    return round


def _reduction(own: Function) -> Function:
    return _mean(own, False, "unsafe")


def _deviation(own: Function) -> Function:
    return _mean(own, False)


def _nan_reduction(own: Function) -> Function:
    return _mean(own, True)


#: What answers each function of NumPy, given the function.
ANSWERS: dict[str, Callable[[Function], Function]] = {
    "numpy._core._methods._mean": _reduction,  # of arrays, and what np.mean calls
    "numpy._core._methods._var": _reduction,
    "numpy._core._methods._std": _deviation,
    "numpy.nanmean": _nan_reduction,
    "numpy.nanvar": _nan_reduction,
    "numpy.nanstd": _nan_reduction,
    "numpy.max": _extreme,
    "numpy.min": _extreme,
    "numpy._core._methods._amax": _extreme,
    "numpy._core._methods._amin": _extreme,
    "numpy.nansum": _nan_sum,
    "numpy.nancumsum": _nan_sum,
    "numpy.median": _median,
    "numpy.nanmedian": _median,
    "numpy.quantile": _quantile,
    "numpy.percentile": _quantile,
    "numpy.nanquantile": _quantile,
    "numpy.nanpercentile": _quantile,
    "numpy.average": _average,
    "numpy.linalg.norm": _norm,
    "numpy.round": _round,
    "numpy.around": _round,
}
