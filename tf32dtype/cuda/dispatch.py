"""Dispatch calls of NumPy's and CuPy's functions.

A call goes to a kernel of this package, to CuPy's functions on the elements' storage,
or to an error that names the alternative.

Nothing else is let through, so that nothing computes on codes or in another format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from ._arrays import casts, creation, indexing, interchange
from ._arrays.ndarray import ndarray, operations, wrap
from ._functions import numpy_formulas, reductions, sorting, statistics, ufuncs
from ._functions.shape import MOVES, WRITES, check_out, condition, leaves, move, write
from ._matmul import numpy_products
from ._runtime import backend
from ._runtime.storage import is_ours, no_kernel

FLOAT32 = np.dtype(np.float32)

#: CuPy's own functions that return views, which also work for arrays of formats.
VIEWS = set(
    """array_split broadcast_to diagonal dsplit expand_dims flip fliplr flipud hsplit
    linalg.matrix_transpose matrix_transpose moveaxis ndim permute_dims
    ravel reshape rollaxis rot90 shape size split squeeze swapaxes transpose vsplit
    may_share_memory""".split()
)

#: Names of functions in NumPy and CuPy, and their names in `reductions.reduce`.
REDUCTIONS = {
    name: name
    for name in """all any argmax argmin max mean min nanargmax nanargmin nanmax nanmean
    nanmin nanprod nanstd nansum nanvar prod std sum var""".split()
} | {"amax": "max", "amin": "min"}
#: Positional parameters of NumPy's reductions after the array.
_WITHOUT_DTYPE = "axis out keepdims".split()
_WITH_DTYPE = "axis dtype out keepdims".split()
_WITH_DDOF = "axis dtype out ddof keepdims".split()

#: Reductions that compute `reduce` of ufuncs.
OF_UFUNCS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}

#: Functions that `numpy_products.dispatch` computes.
PRODUCTS = set(
    """dot einsum inner linalg.matmul linalg.multi_dot linalg.tensordot linalg.vecdot
    tensordot vdot""".split()
)
PRODUCT_UFUNCS = {"matmul", "matvec", "vecdot", "vecmat"}

COMPOSITIONS: dict[str, Callable[..., Any]] = {
    "argsort": lambda a, axis=-1, kind=None, order=None, *, stable=None: (
        sorting.argsort(a, axis)
    ),
    "argpartition": lambda a, kth, axis=-1, kind="introselect", order=None: (
        sorting.argsort(a, axis)
    ),
    "copy": lambda a, order="K", subok=False: a.copy(order),
    "astype": lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy=copy),
    "empty_like": lambda prototype, dtype=None, order="K", subok=True, shape=None: (
        creation.empty_like(prototype, dtype, shape=shape)
    ),
    "full_like": lambda a, fill_value, dtype=None, order="K", subok=True, shape=None: (
        creation.full_like(a, fill_value, dtype, shape=shape)
    ),
    "ones_like": lambda a, dtype=None, order="K", subok=True, shape=None: (
        creation.ones_like(a, dtype, shape=shape)
    ),
    "zeros_like": lambda a, dtype=None, order="K", subok=True, shape=None: (
        creation.zeros_like(a, dtype, shape=shape)
    ),
    "partition": lambda a, kth, axis=-1, kind="introselect", order=None: sorting.sort(
        a, axis
    ),
    "isin": sorting.isin,
    "lexsort": sorting.lexsort,
    "searchsorted": sorting.searchsorted,
    "sort": lambda a, axis=-1, kind=None, order=None, *, stable=None: sorting.sort(
        a, axis
    ),
    "unique": sorting.unique,
}
COMPOSITIONS |= numpy_formulas.FUNCTIONS | statistics.FUNCTIONS


# -- arguments -------------------------------------------------------------------------


def _formats(*given: Any) -> list[Any]:
    """Return the formats among the dtypes of arrays and scalars."""
    having = cupy.ndarray | np.ndarray | np.generic
    return [
        x.dtype for x in leaves(given) if isinstance(x, having) and is_ours(x.dtype)
    ]


def _plain(x: Any) -> Any:
    """Replace float32 arrays of this class by views that are plain CuPy arrays."""
    if isinstance(x, tuple | list):
        return type(x)(_plain(y) for y in x)
    if isinstance(x, dict):
        return {name: _plain(y) for name, y in x.items()}
    return x.view(FLOAT32, cupy.ndarray) if isinstance(x, ndarray) else x


def _dressed(x: Any) -> Any:
    """Replace plain float32 arrays by views of this class."""
    if isinstance(x, tuple | list):
        made = [_dressed(y) for y in x]
        return made if isinstance(x, list) else tuple(made)
    if isinstance(x, cupy.ndarray) and x.dtype == FLOAT32:
        return wrap(x, FLOAT32)
    return x


def _by_cupy(name: str, args: Any, kwargs: Any) -> Any:
    """Call CuPy's own function on float32 arrays of this class."""
    found = backend.current().call(name, *_plain(args), **_plain(kwargs))
    out = kwargs.get("out")
    if isinstance(out, tuple):
        (out,) = out
    return _dressed(found) if out is None else out


# -- ufuncs ----------------------------------------------------------------------------


def elementwise(
    ufunc: np.ufunc,
    inputs: tuple[Any, ...],
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """Compute a ufunc of arrays of the formats or of float32."""
    if _formats(inputs, out) or (dtype is not None and is_ours(dtype)):
        return ufuncs.call(
            ufunc, inputs, out=out, where=where, dtype=dtype, casting=casting
        )
    if where is not True:  # CuPy's ufuncs do not have this parameter
        found = elementwise(ufunc, inputs, None, True, dtype, casting)
        if out is None:
            return found
        copied = {"casting": casting, "where": condition(where)}
        for x, target in zip(leaves((found,)), leaves((out,)), strict=True):
            if target is not None:
                backend.current().call("copyto", _plain(target), _plain(x), **copied)
        return out
    keywords: dict[str, Any] = {} if out is None else {"out": out}
    if dtype is not None:
        keywords["dtype"] = dtype
    if casting != "same_kind":
        keywords["casting"] = casting
    return _by_cupy(ufunc.__name__, inputs, keywords)


def _operand(ufunc: np.ufunc, x: Any) -> Any:
    """Return an operand for `elementwise`; NotImplemented for an unknown type."""
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x[()]
    if isinstance(x, np.ndarray):
        raise TypeError(
            f"operands of {ufunc.__name__} must all be on the GPU; got a NumPy array."
            " Use tf32dtype.cuda.asarray"
        )
    known = cupy.ndarray | np.generic | int | float | complex
    return x if isinstance(x, known) else NotImplemented


def ufunc_method(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Compute a method of a ufunc, for `__array_ufunc__`."""
    if method == "__call__" and not keywords:
        if ufunc is np.matmul and all([isinstance(x, cupy.ndarray) for x in inputs]):
            return numpy_products.matmul(*inputs)
        found = ufuncs.planned(ufunc, inputs)
        if found is not None:
            return found
    out = keywords.pop("out", None)
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    given = [_operand(ufunc, x) for x in inputs]
    if any(x is NotImplemented for x in given):
        return NotImplemented
    check_out(out)
    for name, usual in (("subok", True), ("order", "K"), ("signature", None)):
        if keywords.pop(name, usual) not in (usual, None):
            raise TypeError(f"{name} is not supported for {ufunc.__name__} on a GPU")
    if ufunc.__name__ in PRODUCT_UFUNCS:
        if method != "__call__":
            return NotImplemented
        if out is not None:
            keywords["out"] = out
        return numpy_products.dispatch(ufunc.__name__, tuple(given), keywords)
    if ufunc.signature is not None:
        return NotImplemented
    if method == "__call__":
        return elementwise(ufunc, tuple(given), out, **keywords)
    if method == "outer":
        a, b = (x if isinstance(x, cupy.ndarray) else np.asarray(x) for x in given)
        if isinstance(a, cupy.ndarray):
            a = a.reshape(a.shape + (1,) * b.ndim)
        pair = [x if isinstance(x, cupy.ndarray) else x[()] for x in (a, b)]
        return elementwise(ufunc, tuple(pair), out, **keywords)
    if method == "reduce" and ufunc in OF_UFUNCS:
        keywords = {"axis": 0} | keywords
        if keywords.get("initial", 0) is None:
            keywords.pop("initial")
        return reduction(OF_UFUNCS[ufunc], *given, out=out, **keywords)
    if method == "accumulate" and ufunc in (np.add, np.multiply):
        name = "cumsum" if ufunc is np.add else "cumprod"
        return accumulation(name, given[0], out=out, **{"axis": 0} | keywords)
    raise TypeError(f"{ufunc.__name__}.{method} has no GPU kernel; use x.get()")


# -- reductions ------------------------------------------------------------------------


def reduction(name: str, a: Any, *positional: Any, **keywords: Any) -> Any:
    """Compute a function of `REDUCTIONS` with NumPy's parameters."""
    kind = name.removeprefix("nan")
    order = (
        _WITH_DTYPE
        if kind in ("sum", "prod", "mean")
        else _WITH_DDOF
        if kind in ("var", "std")
        else _WITHOUT_DTYPE
    )
    keywords |= dict(zip(order, positional, strict=False))
    keywords = {
        k: v
        for k, v in keywords.items()
        if v is not np._NoValue and not (k in ("out", "dtype") and v is None)
    }
    if "correction" in keywords:  # the array API's name
        keywords["ddof"] = keywords.pop("correction")
    check_out(keywords.get("out"))
    if not (isinstance(a, ndarray) and is_ours(a.dtype)):
        ours = isinstance(a, ndarray) and {"initial", "where"} & set(keywords)
        to_format = "dtype" in keywords and is_ours(keywords["dtype"])
        if not ours and not to_format and not _formats(a, keywords.get("out")):
            return _by_cupy(name, (a,), keywords)
    return reductions.reduce(name, a, **keywords)


def accumulation(
    name: str, a: Any, axis: Any = None, dtype: Any = None, out: Any = None
) -> Any:
    """Compute cumsum or cumprod with NumPy's parameters."""
    check_out(out)
    if not _formats(a, out) and not (dtype is not None and is_ours(dtype)):
        keywords = {"axis": axis, "dtype": dtype} | (
            {} if out is None else {"out": out}
        )
        return _by_cupy(name, (a,), keywords)
    return reductions.accumulate(name, a, axis, dtype, out)


# -- NumPy's functions -----------------------------------------------------------------


def _name(func: Any) -> str:
    where = func.__module__.removeprefix("numpy").removeprefix(".")
    return f"{where}.{func.__name__}" if where in ("linalg", "fft") else func.__name__


def numpy_function(func: Any, args: Any, kwargs: Any) -> Any:
    """Compute a function of NumPy, for `__array_function__`."""
    name = _name(func)
    if name in VIEWS:
        found = cupy
        for part in name.removeprefix("linalg.").split("."):
            found = getattr(found, part)
        return found(*args, **kwargs)
    if name in MOVES:
        return move(name, args, kwargs)
    if name in WRITES:
        return write(name, args, kwargs)
    if name in REDUCTIONS:
        return reduction(REDUCTIONS[name], *args, **kwargs)
    if name in ("cumsum", "cumprod"):
        return accumulation(name, *args, **kwargs)
    if name in PRODUCTS:
        return numpy_products.dispatch(name, args, kwargs)
    found = _formats(args, list(kwargs.values()))
    if name in COMPOSITIONS and (found or name in numpy_formulas.FOR_FLOAT32):
        return COMPOSITIONS[name](*args, **kwargs)
    if not found:
        return _by_cupy(name, args, kwargs)
    raise no_kernel(f"np.{name}", found[0])


# -- CuPy's kernels --------------------------------------------------------------------


def _ufuncs() -> dict[str, np.ufunc]:
    found = {}
    for name in dir(cupy):
        theirs, ours = getattr(cupy, name), getattr(np, name, None)
        if isinstance(theirs, cupy.ufunc) and isinstance(ours, np.ufunc):
            found[theirs.name] = ours
    return found | {"cupy_fix": np.trunc}


UFUNCS = _ufuncs()
_CUPYS = {
    "cupy_clip": "clip",
    "cupy_round": "round",
    "cupy_where": "where",
    "cupy_is_close": "isclose",
}


def cupy_kernel(kernel: Any, args: Any, kwargs: Any) -> Any:
    """Replace a call of CuPy's kernel, for `__cupy_override_elementwise_kernel__`."""
    name = kernel.name
    if not kwargs and name in UFUNCS:
        result = ufuncs.planned(UFUNCS[name], args)
        if result is not None:
            return result
    found = _formats(args, list(kwargs.values()))
    if name == "cupy_copy":
        source, target = args[0], (args[1] if len(args) > 1 else kwargs["out"])
        if set(kwargs) - {"out"} or not isinstance(source, cupy.ndarray):
            where = {"where": kwargs["_where"]} if "_where" in kwargs else {}
            np.copyto(target, source, casting="unsafe", **where)
            return target
        casts.cast_into(source, target)
        return target
    if name in UFUNCS:
        ufunc = UFUNCS[name]
        keywords = {k: v for k, v in kwargs.items() if v is not None}
        out = keywords.pop("out", None)
        inputs = tuple(_operand(ufunc, x) for x in args[: ufunc.nin])
        rest = args[ufunc.nin :]
        if rest:
            out = rest[0] if len(rest) == 1 else tuple(rest)
        return elementwise(ufunc, inputs, out, **keywords)
    if not found:
        return _dressed(kernel(*_plain(args), **_plain(kwargs)))
    if name in _CUPYS:
        keywords = {k: v for k, v in kwargs.items() if v is not None}
        return getattr(np, _CUPYS[name])(*args, **keywords)
    raise no_kernel(f"CuPy's {name}", found[0])


def cupy_reduction(
    kernel: Any, x: Any, axis: Any, dtype: Any, out: Any, keepdims: Any
) -> Any:
    """Replace CuPy's reduction, for `__cupy_override_reduction_kernel__`."""
    name = kernel.name.removeprefix("cupy_")
    if not _formats(x, out):
        return _dressed(kernel(*_plain((x, axis, dtype, out, keepdims))))
    if name == "count_nonzero":
        return np.count_nonzero(x, axis, keepdims=bool(keepdims))
    if name in REDUCTIONS:
        keywords = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
        return reduction(REDUCTIONS[name], x, **keywords)
    raise no_kernel(f"CuPy's {kernel.name}", x.dtype)


# -- functions that methods of arrays call ---------------------------------------------

operations.asarray = creation.asarray
operations.zeros_like = creation.zeros_like
operations.converted = casts.converted
operations.is_basic = indexing.is_basic
operations.get_elements = indexing.get
operations.set_elements = indexing.set
operations.device_of = interchange.device_of
operations.get = interchange.get
operations.set = interchange.set
operations.cuda_array_interface = interchange.cuda_array_interface
operations.to_dlpack = interchange.to_dlpack
operations.sort_into = sorting.sort_into
operations.ufunc_method = ufunc_method
operations.numpy_function = numpy_function
operations.cupy_kernel = cupy_kernel
operations.cupy_reduction = cupy_reduction
