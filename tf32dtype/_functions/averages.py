"""NumPy's means, variances, medians, quantiles, norms and np.round of our formats.

NumPy computes them step by step in the dtype of the array, so that a sum, or a number
times 10, is rounded, or overflows, before it is divided. Here NumPy's own function
computes in float64, which holds all our numbers and the squares of them, and its result
is rounded once. Sums are NumPy's pairwise sums of float64: exact unless the numbers
span more than about 2^50. Where one pass over the array tells what NumPy's result
would be rounded to (src/ufuncs/summed_lines.h), that is taken instead.

Each function here answers one of NumPy, with the same arguments, and returns
NotImplemented where NumPy's function is right by itself.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.caller import cast, errors_at_caller
from .._formats.table import Format, formats_by_dtype

Function = Callable[..., Any]
FORMATS = formats_by_dtype
#: dtypes whose means are rounded from float64
_NARROW = {*FORMATS, np.dtype(np.float16), np.dtype(np.float32)}
_DOUBLE = np.dtype(np.float64)
#: Medians of more elements begin with a sort.
_FEW = 1024


def rounded(
    result: Any,
    dtype: np.dtype[Any],
    out: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """Round a float64 result to its dtype, into `out` if given; NaN are positive."""
    if isinstance(result, np.ndarray) and result is getattr(
        sys.modules.get("numpy.ma"), "masked", None
    ):
        return result  # the constant
    numbers = np.asanyarray(result)
    nan = np.isnan(numbers)
    if np.any(nan):
        numbers = numbers.copy()
        numbers[nan] = np.nan
    with errors_at_caller("cast"):
        if out is not None and out is not Ellipsis:
            np.copyto(out, numbers, casting=casting)
            return out
        numbers = numbers.astype(dtype)
    return numbers if isinstance(result, np.ndarray) else numbers[()]


def _own_rounded(
    own: Function, args: Any, kwargs: dict[str, Any], *how: Any
) -> _core.OwnCall:
    """Return a call of NumPy's function whose result is `rounded`."""
    return _core.OwnCall(own, args, kwargs, lambda result: rounded(result, *how))


def _double_like(out: Any) -> Any:
    """Return a float64 array in place of `out`: NumPy's function checks its shape."""
    return np.empty(out.shape) if isinstance(out, np.ndarray) else out


# The statistics (enum tf_statistic in src/ufuncs/moments.h).
_TOTAL, _MEAN, _VARIANCE, _DEVIATION, _NORM, _PRODUCT = range(6)


def _in_one_pass(
    statistic: int, a: Any, axis: Any, nans: bool, keywords: dict[str, Any]
) -> Any:
    """Return a statistic in one pass, or NotImplemented."""
    known = {"keepdims", "where"}
    if statistic in (_VARIANCE, _DEVIATION):
        known.add("ddof")
    freedom = keywords.get("ddof", 0)
    if keywords.keys() - known or type(freedom) is not int or abs(freedom) > 1 << 31:
        return NotImplemented
    return _core.statistic(
        statistic,
        a,
        axis,
        freedom,
        keywords.get("keepdims", False),
        keywords.get("where", True),
        nans,
    )


def _rounded_elements(a: Any, dtype: np.dtype[Any]) -> Any:
    """Elements of a dtype, in float64: NaN stays, also where the dtype has none."""
    nan = np.isnan(a)
    a = a.copy()
    a[nan] = 1
    elements = cast(a, dtype).astype(_DOUBLE)
    elements[nan] = np.nan
    return elements


def _mean(
    own: Function, statistic: int | None, wide: bool, casting: str = "same_kind"
) -> Function:
    """Return a handler for functions with axis=, dtype= and out=.

    `wide` says that NumPy's function puts zeros into the array, which not all formats
    have, and computes there, whatever the dtype. `casting` is that to `out`.
    """

    def mean(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if statistic is not None and dtype is None and out is None:
            names = ("ddof", "keepdims")[statistic == _MEAN :]
            placed = dict(zip(names, args, strict=False))
            if len(placed) == len(args) and not placed.keys() & kwargs.keys():
                result = _in_one_pass(statistic, a, axis, wide, placed | kwargs)
                if result is not NotImplemented:
                    return result
        a = np.asanyarray(a)
        target = a.dtype if dtype is None else np.dtype(dtype)
        if dtype is None and a.dtype.kind in "biu":
            target = _DOUBLE
        is_double = target == _DOUBLE and getattr(out, "dtype", _DOUBLE) != _DOUBLE
        if target not in _NARROW and not is_double:
            if not wide or a.dtype not in FORMATS:
                return NotImplemented
            wider = target if target.kind in "fc" else _DOUBLE
            placed_args = (a.astype(wider), axis, dtype, out, *args)
            return _core.OwnCall(own, placed_args, kwargs, None)
        if target != a.dtype:  # elements are rounded first, as NumPy does
            a = _rounded_elements(a, target) if wide else cast(a, target)
        given = kwargs.get("mean")
        if given is not None and given is not np._NoValue:
            kwargs["mean"] = np.asanyarray(given, _DOUBLE)
        if wide or "mean" in kwargs:
            a = a.astype(_DOUBLE, copy=False)
        wide_args = (a, axis, _DOUBLE, _double_like(out), *args)
        return _own_rounded(own, wide_args, kwargs, target, out, casting)

    return mean


def _lacks_zero(dtype: Any) -> bool:
    form = None if dtype is None else FORMATS.get(np.dtype(dtype))
    return form is not None and not form.has_zero


def _sum(own: Function, statistic: int | None, nans: bool) -> Function:
    """Return a handler for functions of which NumPy has the right sum or product.

    The exception is NaN in a format without a zero that NumPy could put in its place.
    Float64 has one, so that the result is computed in float64.
    """
    wide = _mean(own, None, True)

    def sum(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        result = NotImplemented
        if statistic is not None and not args:
            result = _in_one_pass(statistic, a, axis, nans, kwargs)
        if nans and result is NotImplemented and statistic != _PRODUCT:
            dtypes = np.asanyarray(a).dtype, (*args, kwargs.get("dtype"))[0]
            if any(map(_lacks_zero, dtypes)):
                return wide(a, axis, *args, **kwargs)
        return result

    return sum


def _middle(a: Any, axis: Any) -> Any:
    """Return an array of few elements that has the same medians along an axis.

    They are the middle one or two elements of each sorted line, or NaN if the line has
    a NaN. Sorting our formats takes less time than NumPy's partition of float64.
    """
    shape = a.shape
    if axis is None and a.ndim > 0:
        a, axis = a.reshape(-1), 0
    elif type(axis) is not int or not -a.ndim <= axis < a.ndim:
        return a
    lines = np.moveaxis(np.sort(a, axis), axis, -1)
    count = lines.shape[-1]
    middle, last = lines[..., (count - 1) // 2 : count // 2 + 1], lines[..., -1:]
    nan = np.isnan(last)
    if nan.any():
        middle = np.where(nan, last, middle)
    if a.ndim < len(shape):
        return middle.reshape((1,) * (len(shape) - 1) + (-1,))
    return np.moveaxis(middle, -1, axis)


def _median(own: Function, casting: str = "unsafe", sorts: bool = False) -> Function:
    def median(
        a: Any, axis: Any = None, out: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        a = np.asanyarray(a)
        if a.dtype not in _NARROW:
            return NotImplemented
        if sorts and a.size > _FEW and type(a) is np.ndarray and a.dtype in FORMATS:
            a = _middle(a, axis)
        wide = (a.astype(_DOUBLE), axis, _double_like(out), *args)
        return _own_rounded(own, wide, kwargs, a.dtype, out, casting)

    return median


def _is_beyond(number: float, form: Format) -> bool:
    """Return whether a number is out of a format's range; NaN never is."""
    infinite = form.has_infinity and abs(number) == float("inf")
    return not infinite and (number < form.min or number > form.max)


def _extreme(own: Function, nans: bool = False) -> Function:
    """Return a handler for extremes with an `initial` number.

    If that number is out of range, the result is computed in float64, unless NaN is
    passed over. With a mask, the number replaces the elements that do not count.
    """
    wide = _median(own, "same_kind")

    def extreme(
        a: Any, axis: Any = None, out: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        where = kwargs.get("where", True)
        initial: Any = kwargs.get("initial", args[1] if len(args) > 1 else None)
        if type(initial) not in (int, float):
            return NotImplemented
        a = np.asanyarray(a)
        form = FORMATS.get(a.dtype)
        if form is None:
            return NotImplemented
        if _is_beyond(initial, form):
            return NotImplemented if nans else wide(a, axis, out, *args, **kwargs)
        if (
            type(where) is not np.ndarray
            or type(a) is not np.ndarray
            or where.dtype != np.bool_
            or where.shape != a.shape
        ):
            return NotImplemented
        with np.errstate(all="ignore"):
            number = np.asarray(initial, a.dtype)
        if number != initial:
            return NotImplemented
        keywords = {**kwargs, "where": True}
        return own(np.where(where, a, number), axis, out, *args, **keywords)

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
        given = (wide, q, axis, _double_like(out), True, method, *args)
        return _own_rounded(own, given, kwargs, dtype, out)

    return quantile


def _average(own: Function) -> Function:
    def average(
        a: Any, axis: Any = None, weights: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        a = np.asanyarray(a)
        dtype = a.dtype
        is_whole = axis is None or (type(axis) is int and axis in (-1, 0))
        result: Any = NotImplemented
        if not args and not kwargs and weights is None:
            result = _in_one_pass(_MEAN, a, axis, False, kwargs)
        elif not args and not kwargs and is_whole and (axis is None or a.ndim == 1):
            result = _core.weighted_mean(a, weights)
        if result is not NotImplemented:
            return result
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
        is_known = not isinstance(axis, tuple) or len(axis) in (1, 2)
        if is_known and (
            ord is None or (ord == 2 and (x.ndim == 1 or type(axis) is int))
        ):
            result = _in_one_pass(_NORM, x, axis, False, {"keepdims": keepdims})
            if result is not NotImplemented:
                return result
        wide = x.astype(_DOUBLE)
        if axis is not None:
            return rounded(own(wide, ord, axis, keepdims), x.dtype)
        # Without an axis, NumPy sums the squares by BLAS, whose order differs.
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


def _reduction(statistic: int, wide: bool, casting: str = "same_kind") -> Any:
    return functools.partial(_mean, statistic=statistic, wide=wide, casting=casting)


#: For each function of NumPy, a factory that takes it and returns our implementation.
ANSWERS: dict[str, Callable[[Function], Function]] = {
    "numpy._core._methods._mean": _reduction(_MEAN, False, "unsafe"),  # np.mean's too
    "numpy._core._methods._var": _reduction(_VARIANCE, False, "unsafe"),
    "numpy._core._methods._std": _reduction(_DEVIATION, False),
    "numpy.nanmean": _reduction(_MEAN, True),
    "numpy.nanvar": _reduction(_VARIANCE, True),
    "numpy.nanstd": _reduction(_DEVIATION, True),
    "numpy.max": _extreme,
    "numpy.min": _extreme,
    "numpy._core._methods._amax": _extreme,
    "numpy._core._methods._amin": _extreme,
    "numpy.nanmax": functools.partial(_extreme, nans=True),
    "numpy.nanmin": functools.partial(_extreme, nans=True),
    "numpy.prod": functools.partial(_sum, statistic=_PRODUCT, nans=False),
    "numpy._core._methods._prod": functools.partial(
        _sum, statistic=_PRODUCT, nans=False
    ),
    "numpy.nanprod": functools.partial(_sum, statistic=_PRODUCT, nans=True),
    "numpy.nansum": functools.partial(_sum, statistic=_TOTAL, nans=True),
    "numpy.nancumsum": functools.partial(_sum, statistic=None, nans=True),
    "numpy.median": functools.partial(_median, sorts=True),
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
