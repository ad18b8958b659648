"""Compute NumPy's functions that combine a few operations, by NumPy's formulas.

Each step rounds once, as on the CPU, so that results have the CPU's bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy

from ..._base.wording import one_of
from .._arrays import creation, interchange
from .._arrays.ndarray import ndarray
from .._runtime import backend

np: Any = numpy  # NumPy's type stubs only know arrays on the host

FUNCTIONS: dict[str, Callable[..., Any]] = {}
#: Functions that are also used for float32 arrays of the class, instead of CuPy's.
FOR_FLOAT32: set[str] = set(
    """atleast_1d atleast_2d atleast_3d block broadcast_arrays can_cast copy
    diag_indices_from empty_like full_like imag iscomplex iscomplexobj isreal isrealobj
    count_nonzero linalg.diagonal
    meshgrid min_scalar_type ones_like real real_if_close result_type tril_indices_from
    triu_indices_from unstack zeros_like""".split()
)


def entering(
    table: dict[str, Callable[..., Any]],
) -> Callable[..., Callable[[Any], Any]]:
    """Return a decorator that enters functions into a table under NumPy's names."""

    def under(*names: str) -> Callable[[Any], Any]:
        def enter(function: Any) -> Any:
            table.update(dict.fromkeys(names, function))
            return function

        return enter

    return under


composed = entering(FUNCTIONS)


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call CuPy's function on plain arrays."""
    return backend.current().call(name, *args, **kwargs)


def _true(x: Any) -> Any:
    """Return an array of bool: whether each element is not 0."""
    return x != 0


def into(result: Any, out: Any) -> Any:
    """Return a result, after copying it to `out` if given."""
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError(
            f"out must have the shape of the result, {result.shape}; got {out.shape}"
        )
    np.copyto(out, result)
    return out


# -- shapes ----------------------------------------------------------------------------


def _several(made: list[Any]) -> Any:
    return made[0] if len(made) == 1 else tuple(made)


@composed("atleast_1d")
def atleast_1d(*arys: Any) -> Any:
    return _several([x.reshape(1) if x.ndim == 0 else x for x in arys])


@composed("atleast_2d")
def atleast_2d(*arys: Any) -> Any:
    return _several([x if x.ndim > 1 else x.reshape(1, -1) for x in arys])


@composed("atleast_3d")
def atleast_3d(*arys: Any) -> Any:
    def three(x: Any) -> Any:
        if x.ndim > 2:
            return x
        return x[:, :, None] if x.ndim == 2 else x.reshape(1, -1, 1)

    return _several([three(x) for x in arys])


@composed("broadcast_arrays")
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    shape = np.broadcast_shapes(*(x.shape for x in args))
    return tuple(cupy.broadcast_to(x, shape) for x in args)


@composed("meshgrid")
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError(one_of("indexing", indexing, ("xy", "ij")))
    made = []
    for i, x in enumerate(xi):
        place = 1 - i if indexing == "xy" and len(xi) > 1 and i < 2 else i
        shape = [1] * len(xi)
        shape[place] = -1
        made.append(x.reshape(shape))
    if not sparse:
        made = list(broadcast_arrays(*made))
    return tuple(x.copy() for x in made) if copy else tuple(made)


@composed("unstack")
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    return tuple(cupy.moveaxis(x, axis, 0))


@composed("block")
def block(arrays: Any) -> Any:
    def depth(x: Any) -> int:
        return 1 + depth(x[0]) if isinstance(x, list) else 0

    def most(x: Any) -> int:
        return max(map(most, x)) if isinstance(x, list) else x.ndim

    levels = depth(arrays)
    dims = max(most(arrays), levels)

    def join(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            return x.reshape((1,) * (dims - x.ndim) + x.shape)
        return np.concatenate([join(y, level + 1) for y in x], axis=level - levels)

    return join(arrays, 0)


@composed("diag_indices_from")
def diag_indices_from(arr: Any) -> Any:
    if arr.ndim < 2 or len(set(arr.shape)) > 1:
        raise ValueError(
            "arr must have at least two axes, all of the same length; got shape"
            f" {arr.shape}"
        )
    return call("diag_indices", arr.shape[0], arr.ndim)


@composed("tril_indices_from")
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    return call("tril_indices", arr.shape[-2], k=k, m=arr.shape[-1])


@composed("triu_indices_from")
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    return call("triu_indices", arr.shape[-2], k=k, m=arr.shape[-1])


@composed("linalg.diagonal")
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return x.diagonal(offset, -2, -1)


# -- dtypes ----------------------------------------------------------------------------


def _dtype_of(x: Any) -> Any:
    return x.dtype if isinstance(x, cupy.ndarray) else x


@composed("result_type")
def result_type(*arrays_and_dtypes: Any) -> Any:
    return np.result_type(*map(_dtype_of, arrays_and_dtypes))


@composed("min_scalar_type")
def min_scalar_type(a: Any, /) -> Any:
    return a.dtype


@composed("can_cast")
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> Any:
    return np.can_cast(_dtype_of(from_), _dtype_of(to), casting)


# -- real numbers ----------------------------------------------------------------------


@composed("real", "real_if_close")
def real(val: Any, tol: float = 100) -> Any:
    return val


@composed("imag")
def imag(val: Any) -> Any:
    return val.imag


@composed("isreal")
def isreal(x: Any) -> Any:
    return x.imag == 0


@composed("iscomplex")
def iscomplex(x: Any) -> Any:
    return call("zeros", x.shape, np.bool_)


@composed("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    return False


@composed("isrealobj")
def isrealobj(x: Any) -> bool:
    return True


# -- counting and comparing ------------------------------------------------------------


@composed("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return call("sum", _true(a), axis=axis, keepdims=keepdims, dtype=np.intp)


@composed("nonzero")
def nonzero(a: Any) -> Any:
    return call("nonzero", _true(a))


@composed("flatnonzero")
def flatnonzero(a: Any) -> Any:
    return call("flatnonzero", _true(a))


@composed("argwhere")
def argwhere(a: Any) -> Any:
    return call("argwhere", _true(a))


def _logical_and(a: Any, b: Any, out: Any) -> Any:
    return call("logical_and", a, b, **({} if out is None else {"out": out}))


@composed("isneginf")
def isneginf(x: Any, out: Any = None) -> Any:
    return _logical_and(np.isinf(x), np.signbit(x), out)


@composed("isposinf")
def isposinf(x: Any, out: Any = None) -> Any:
    return _logical_and(np.isinf(x), call("logical_not", np.signbit(x)), out)


@composed("isclose")
def isclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    near = np.less_equal(np.abs(np.subtract(a, b)), atol + rtol * np.abs(b))
    near = call("logical_and", near, np.isfinite(b))
    result = call("logical_or", near, np.equal(a, b))
    return call("logical_or", result, _both_nan(a, b)) if equal_nan else result


def _both_nan(a: Any, b: Any) -> Any:
    return call("logical_and", np.isnan(a), np.isnan(b))


@composed("allclose")
def allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    return call("all", isclose(a, b, rtol, atol, equal_nan))


@composed("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if np.shape(a1) != np.shape(a2):
        return call("zeros", (), np.bool_)
    same = np.equal(a1, a2)
    if equal_nan:
        same = call("logical_or", same, _both_nan(a1, a2))
    return call("all", same)


@composed("array_equiv")
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return call("zeros", (), np.bool_)
    return call("all", np.equal(a1, a2))


# -- elements --------------------------------------------------------------------------


@composed("clip")
def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **options: Any,
) -> Any:
    low = min if a_min is None or a_min is np._NoValue else a_min
    high = max if a_max is None or a_max is np._NoValue else a_max
    low = None if low is np._NoValue else low
    high = None if high is np._NoValue else high
    if low is None and high is None:
        return into(a.copy(), out)
    if low is None:
        return np.minimum(a, high, out=out, **options)
    if high is None:
        return np.maximum(a, low, out=out, **options)
    return np.minimum(np.maximum(a, low), high, out=out, **options)


@composed("round", "around")
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals in float64, then cast the result once.

    In the format itself, multiplying by a power of ten could overflow.
    """
    if decimals == 0:
        return np.rint(a, out=out)
    power = 10.0 ** abs(decimals)
    there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    whole = call("rint", call(there, a.astype(np.float64), power))
    rounded = creation.asarray(call(back, whole, power), a.dtype)
    return np.multiply(rounded, 1, out=out)  # times 1 gives NaN the bits of arithmetic


@composed("fix")
def fix(x: Any, out: Any = None) -> Any:
    return np.trunc(x, out=out)


@composed("nan_to_num")
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    limits = np.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    wrong = np.isnan(x), isposinf(x), isneginf(x)
    result = x.copy() if copy else x
    for where, value in zip(wrong, (nan, high, low), strict=True):
        np.copyto(result, value, where=where, casting="unsafe")
    return result


@composed("angle")
def angle(z: Any, deg: bool = False) -> Any:
    found = np.arctan2(0, z)
    return found * (180 / np.pi) if deg else found


@composed("diff")
def diff(
    a: Any,
    n: int = 1,
    axis: int = -1,
    prepend: Any = np._NoValue,
    append: Any = np._NoValue,
) -> Any:
    if n < 0:
        raise ValueError(f"n must not be negative; got {n}")
    if n == 0:
        return a
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)

    def beside(x: Any) -> Any:
        if isinstance(x, cupy.ndarray) and x.ndim:
            return x
        shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        if not isinstance(x, cupy.ndarray):
            x = interchange.put(np.asarray(x))  # a dtype that promotes, as in NumPy
        return cupy.broadcast_to(x, shape)

    parts = [beside(prepend)] if prepend is not np._NoValue else []
    parts += [a, *([beside(append)] if append is not np._NoValue else [])]
    if len(parts) > 1:
        a = np.concatenate(parts, axis)
    whole = (slice(None),) * axis
    for _ in range(n):
        after, before = a[(*whole, slice(1, None))], a[(*whole, slice(None, -1))]
        # A number that was prepended or appended may have made the elements float64.
        plain = not isinstance(a, ndarray)
        a = call("subtract", after, before) if plain else after - before
    return a


@composed("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = ary.reshape(-1)
    parts = [x for x in (to_begin, flat[1:] - flat[:-1], to_end) if x is not None]
    return np.concatenate([x.reshape(-1) for x in parts])


@composed("outer", "linalg.outer")
def outer(a: Any, b: Any, out: Any = None) -> Any:
    return np.multiply(a.reshape(-1)[:, None], b.reshape(-1)[None, :], out=out)


@composed("kron")
def kron(a: Any, b: Any) -> Any:
    dims = max(a.ndim, b.ndim)
    shape_a = (1,) * (dims - a.ndim) + a.shape
    shape_b = (1,) * (dims - b.ndim) + b.shape
    spread_a = a.reshape([n for x in shape_a for n in (x, 1)])
    spread_b = b.reshape([n for x in shape_b for n in (1, x)])
    shape = [x * y for x, y in zip(shape_a, shape_b, strict=True)]
    return (spread_a * spread_b).reshape(shape)


# -- strings ---------------------------------------------------------------------------


@composed("array_repr")
def array_repr(arr: Any, *args: Any, **kwargs: Any) -> Any:
    return np.array_repr(arr.get(), *args, **kwargs)


@composed("array_str")
def array_str(a: Any, *args: Any, **kwargs: Any) -> Any:
    return np.array_str(a.get(), *args, **kwargs)


@composed("array2string")
def array2string(a: Any, *args: Any, **kwargs: Any) -> Any:
    return np.array2string(a.get(), *args, **kwargs)
