"""Compute sums, means and similar reductions with dask in float64, and round once.

By itself, dask rounds the sum of each chunk, and then their sum. Sums in float64
are exact, unless the values span a range of more than about 2^50.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import handle_out

from ..._formats.table import as_own
from ..._functions.averages import FORMATS, rounded

Function = Callable[..., Any]
_DOUBLE = np.dtype(np.float64)
_SINGLE = np.dtype(np.float32)
_PRODUCTS = {"prod", "nanprod"}


def is_ours(x: Any) -> bool:
    """Return whether `x` is a dask array of a format with chunks in host memory."""
    return (
        isinstance(x, da.Array)
        and x.dtype in FORMATS
        and isinstance(x._meta, np.ndarray)
    )


def round_to(x: Any, dtype: np.dtype[Any]) -> Any:
    """Round a dask array once to a dtype, and make every NaN positive."""
    return x.map_blocks(_rounded, to=dtype, dtype=dtype)


def _rounded(numbers: Any, to: np.dtype[Any]) -> Any:
    return rounded(numbers, to)


def statistic(own: Function) -> Function:
    """Replace a reduction that has the parameters `dtype` and `out`."""
    signature = inspect.signature(own)
    first = next(iter(signature.parameters))

    @functools.wraps(own)
    def answer(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        a = given[first]
        dtype = given.get("dtype")
        target: Any = getattr(a, "dtype", None) if dtype is None else np.dtype(dtype)
        to_ours = target in FORMATS and isinstance(a, da.Array)
        if not (to_ours or (is_ours(a) and target == _SINGLE)):
            return own(*args, **kwargs)
        if to_ours and a.dtype != target:  # elements are rounded first, as NumPy does
            a = given[first] = a.astype(target)
        if "cum" in own.__name__:  # dask 2025.1 ignores dtype= here
            given[first] = a.astype(_DOUBLE)
        given["dtype"] = _DOUBLE
        out = given.pop("out", None)
        function = _product if own.__name__ in _PRODUCTS else own
        result = function(**given)
        return handle_out(out, round_to(result, target))

    def _product(a: Any, dtype: Any, **keywords: Any) -> Any:
        return product(a, is_nan_one=own.__name__ == "nanprod", **keywords)

    return answer


def average(own: Function) -> Function:
    @functools.wraps(own)
    def answer(
        a: Any, axis: Any = None, weights: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if weights is not None:
            weights = da.asanyarray(as_own(weights))
        if not is_ours(a) and not is_ours(weights):
            return own(a, axis, weights, *args, **kwargs)
        a = da.asanyarray(as_own(a))
        dtype = a.dtype if weights is None else np.result_type(a.dtype, weights.dtype)
        if dtype not in FORMATS:
            return own(a, axis, weights, *args, **kwargs)
        if weights is not None:
            weights = weights.astype(_DOUBLE)
        result = own(a.astype(_DOUBLE), axis, weights, *args, **kwargs)
        if isinstance(result, tuple):  # the average and the sum of the weights
            return tuple(round_to(part, dtype) for part in result)
        return round_to(result, dtype)

    return answer


def norm(own: Function) -> Function:
    @functools.wraps(own)
    def answer(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_ours(x):
            return own(x, *args, **kwargs)
        return round_to(own(x.astype(_DOUBLE), *args, **kwargs), x.dtype)

    return answer


# -- products: float64 has enough bits for them, but not enough range -----------------

#: A value as mantissa * 2^exponent.
_PAIR = np.dtype([("mantissa", np.float64), ("exponent", np.int64)])
#: The number of mantissas, each 1/2 or more, whose product is a normal float64 number.
_TOGETHER = 512


def product(a: Any, is_nan_one: bool, axis: Any = None, **keywords: Any) -> Any:
    """Compute `da.prod` in float64, without overflow of partial products."""
    return da.reduction(
        a,
        functools.partial(_chunk, is_nan_one=is_nan_one),
        _whole,
        combine=_multiplied,
        axis=axis,
        dtype=_DOUBLE,
        meta=np.empty(0, _DOUBLE),
        **keywords,
    )


def _chunk(
    x: Any, is_nan_one: bool, axis: Any, keepdims: bool, computing_meta: bool = False
) -> Any:
    numbers = x.astype(_DOUBLE)
    if computing_meta:  # dask casts the result to its dtype
        return numbers
    if is_nan_one:
        numbers[np.isnan(numbers)] = 1
    return _multiplied(_pairs(*np.frexp(numbers)), axis, keepdims)


def _pairs(mantissas: Any, exponents: Any) -> Any:
    pairs = np.empty(np.shape(mantissas), _PAIR)
    pairs["mantissa"], pairs["exponent"] = mantissas, exponents
    return pairs


def _multiplied(pairs: Any, axis: Any, keepdims: bool) -> Any:
    axes = np.lib.array_utils.normalize_axis_tuple(axis, pairs.ndim)
    others = [i for i in range(pairs.ndim) if i not in axes]
    rows = pairs.transpose(*others, *axes)
    rows = rows.reshape(*rows.shape[: len(others)], -1)
    mantissas, exponents = rows["mantissa"], rows["exponent"]
    while (count := mantissas.shape[-1]) != 1:
        if count == 0:
            mantissas, exponents = (
                np.full((*rows.shape[:-1], 1), number) for number in (0.5, 1)
            )
            break
        starts = np.arange(0, count, _TOGETHER)
        mantissas, more = np.frexp(np.multiply.reduceat(mantissas, starts, -1))
        exponents = np.add.reduceat(exponents, starts, -1) + more
    result = _pairs(mantissas[..., 0], exponents[..., 0])
    return np.expand_dims(result, axes) if keepdims else result


def _whole(pairs: Any, axis: Any, keepdims: bool) -> Any:
    pairs = _multiplied(pairs, axis, keepdims)
    # Outside 2^-1000 to 2^1000, every format underflows or overflows alike.
    exponents = pairs["exponent"].clip(-1000, 1000).astype(np.intc)
    return np.ldexp(pairs["mantissa"], exponents)
