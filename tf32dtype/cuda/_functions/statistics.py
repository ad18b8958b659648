"""Compute NumPy's statistics, sums and norms by reductions, with NumPy's formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .._runtime.storage import no_kernel
from .numpy_formulas import entering, into
from .reductions import reduce

np: Any = numpy  # NumPy's type stubs only know arrays on the host

FUNCTIONS: dict[str, Callable[..., Any]] = {}
composed = entering(FUNCTIONS)


@composed("ptp")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue) -> Any:
    keep = False if keepdims is np._NoValue else keepdims
    high = np.max(a, axis=axis, keepdims=keep)
    return np.subtract(high, np.min(a, axis=axis, keepdims=keep), out=out)


@composed("linalg.trace")
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@composed("trace")
def trace(
    a: Any,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    return np.sum(a.diagonal(offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@composed("average")
def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = False,
) -> Any:
    if weights is not None or returned:
        raise TypeError(
            "weights= and returned= are not supported for np.average on a GPU; use"
            " x.get()"
        )
    return np.mean(a, axis=axis, keepdims=keepdims)


def _nan_as(a: Any, value: Any) -> Any:
    return np.where(np.isnan(a), value, a)


@composed("nancumsum")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumsum(_nan_as(a, 0), axis, dtype, out)


@composed("nancumprod")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumprod(_nan_as(a, 1), axis, dtype, out)


def _cumulative(function: Any, identity: int) -> Any:
    def cumulative(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        if axis is None and x.ndim > 1:
            raise ValueError(f"axis must be given for an array of {x.ndim} axes")
        axis = -1 if axis is None else axis
        if not include_initial:
            return function(x, axis, dtype, out)
        found = function(x, axis, dtype)
        shape = list(found.shape)
        shape[axis] = 1
        first = np.full_like(found, identity, shape=tuple(shape))
        return into(np.concatenate([first, found], axis), out)

    return cumulative


FUNCTIONS["cumulative_sum"] = _cumulative(np.cumsum, 0)
FUNCTIONS["cumulative_prod"] = _cumulative(np.cumprod, 1)


@composed("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    is_vectors = isinstance(axis, int) or (axis is None and x.ndim == 1)
    if ord is None or (ord == 2 and is_vectors):
        return reduce("norm", x, axis, keepdims=keepdims)
    if is_vectors and ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    if is_vectors and ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims, initial=0)
    if is_vectors and ord == -np.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    raise no_kernel(f"np.linalg.norm(ord={ord!r}, axis={axis!r})", x.dtype)
