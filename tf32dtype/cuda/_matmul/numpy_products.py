"""Compute NumPy's product functions on GPU arrays, by products of matrix stacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from operator import index
from typing import Any

import cupy
import numpy as np
from numpy.typing import DTypeLike

from ..._base.matrices import as_matrices, check_k, stack_of
from ..._base.wording import brief
from ..._formats.table import find_dtype
from ..._matmul import einsum as contraction
from ..._programs.context import current_settings
from .._arrays.ndarray import as_own
from .._functions import reductions, ufuncs
from .._runtime.backend import current
from .._runtime.storage import is_ours, plain
from . import matmul as products
from .matmul import as_target, cast, copy_into
from .mode import current_mode
from .stacks import reshape
from .tile_options import FLOAT32

# -- ufuncs ----------------------------------------------------------------------------


def _operands(
    name: str, a: Any, b: Any, dtype: DTypeLike | None, casting: str
) -> tuple[Any, Any, DTypeLike | None]:
    """Return the operands of a ufunc, cast if necessary, and the dtype of the result.

    Like NumPy, cast the operands to `dtype`, unless it is float32 or the mode is not
    "chain". After a cast, the dtype of the result is None.
    """
    for i, x in enumerate((a, b)):
        if not isinstance(x, cupy.ndarray):
            raise TypeError(
                f"operand {i} of {name} must be an array on a GPU; got"
                f" {type(x).__name__}. Use tf32dtype.cuda.asarray"
            )
    if dtype is None:
        return a, b, None
    wanted = find_dtype(dtype)
    common = np.result_type(a.dtype, b.dtype)
    if current_mode().name != "chain" or (wanted == FLOAT32 and is_ours(common)):
        return a, b, wanted
    for i, x in enumerate((a, b)):
        if not np.can_cast(x.dtype, wanted, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast ufunc {name!r} input {i} from {x.dtype} to {wanted} with"
                f" casting rule {casting!r}"
            )
    return cast(a, wanted), cast(b, wanted), None


def _multiply(
    x: Any, y: Any, dtype: DTypeLike | None, out: Any, shape: tuple[int, ...]
) -> Any:
    """Multiply in the current mode and precision."""
    settings = current_settings()
    return products.product(x, y, dtype, out, shape=shape, settings=settings)


#: A function that returns operands as stacks of matrices, and the shape of the result.
_Fitting = Callable[[Any, Any], tuple[Any, Any, tuple[int, ...]]]


def _ufunc(fitting: _Fitting) -> Callable[..., Any]:
    """Return a matrix ufunc, from a function that makes stacks of matrices."""
    name = fitting.__name__

    @wraps(fitting)
    def ufunc(
        x1: Any,
        x2: Any,
        /,
        out: Any = None,
        *,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
        axes: Any = None,
        order: str = "K",
        subok: bool = True,
    ) -> Any:
        a, b, wanted = _operands(name, x1, x2, dtype, casting)
        if axes is not None:
            return _by_axes(ufunc, a, b, axes, out, dtype)
        x, y, shape = fitting(a, b)
        return _multiply(x, y, wanted, out, shape)

    return ufunc


@_ufunc
def matmul(a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]]:
    x, y, _, shape = as_matrices(a, b)
    return x, y, shape


@_ufunc
def matvec(a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]]:
    shape = _fit("matvec", a, b, 2, 1)
    return a, b[..., np.newaxis], (*shape, a.shape[-2])


@_ufunc
def vecmat(a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]]:
    shape = _fit("vecmat", a, b, 1, 2)
    return a[..., np.newaxis, :], b, (*shape, b.shape[-1])


def vecdot(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
    axis: int = -1,
    keepdims: bool = False,
    order: str = "K",
    subok: bool = True,
) -> Any:
    a, b, wanted = _operands("vecdot", x1, x2, dtype, casting)
    for x in (a, b):
        if not -x.ndim <= axis < x.ndim:
            raise np.exceptions.AxisError(axis, x.ndim)
    a, b = cupy.moveaxis(a, axis, -1), cupy.moveaxis(b, axis, -1)
    shape = _fit("vecdot", a, b, 1, 1)
    if keepdims:
        place = axis if axis < 0 else axis - max(a.ndim, b.ndim)
        at = len(shape) + 1 + place
        shape = (*shape[:at], 1, *shape[at:])
    return _multiply(a[..., np.newaxis, :], b[..., np.newaxis], wanted, out, shape)


def _fit(name: str, a: Any, b: Any, of_a: int, of_b: int) -> tuple[int, ...]:
    """Return the shape of the stack for operands that are vectors or matrices.

    `of_a` and `of_b` are 1 for vectors and 2 for matrices.
    """
    if a.ndim < of_a or b.ndim < of_b:
        raise ValueError(
            f"operands of {name} must have at least {of_a} and {of_b} axes; got"
            f" {a.ndim} and {b.ndim}"
        )
    which, shapes = f"operands of {name}", (a.shape, b.shape)
    check_k(a.shape[-1], b.shape[-of_b], *shapes, which)
    return stack_of(a.shape[:-of_a], b.shape[:-of_b], *shapes, which)


def _by_axes(
    function: Callable[..., Any], a: Any, b: Any, axes: Any, out: Any, dtype: Any
) -> Any:
    """Call a ufunc with axes=: move the axes of the operands to the end, and back."""

    def moved(x: Any, chosen: Any) -> Any:
        chosen = (chosen,) if isinstance(chosen, int) else tuple(chosen)
        return cupy.moveaxis(x, chosen, tuple(range(-len(chosen), 0)))

    if len(axes) != 3:
        raise ValueError(
            "axes must have three entries, for both operands and the result; got"
            f" {brief(axes)}"
        )
    if out is not None:
        raise TypeError(
            "axes and out must not both be given on a GPU; use moveaxis first"
        )
    result = function(moved(a, axes[0]), moved(b, axes[1]), dtype=dtype)
    chosen = (axes[2],) if isinstance(axes[2], int) else tuple(axes[2])
    return cupy.moveaxis(result, tuple(range(-len(chosen), 0)), chosen)


# -- functions -------------------------------------------------------------------------


def _scaled(a: Any, b: Any, out: Any = None) -> Any:
    """Return the product with a scalar."""
    given = tuple(
        x if isinstance(x, cupy.ndarray) else np.asarray(x)[()] for x in (a, b)
    )
    return ufuncs.call(np.multiply, given, out=out)


def _is_number(*given: Any) -> bool:
    return any(np.ndim(x) == 0 for x in given)


def _exact_out(out: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Raise an error if np.dot and similar functions would not accept `out`."""
    acceptable = (
        isinstance(out, cupy.ndarray)
        and out.dtype == dtype
        and out.shape == shape
        and out.flags.c_contiguous
    )
    if not acceptable:
        raise ValueError(
            f"out must be a C-contiguous array of dtype {dtype} and shape {shape}"
        )


def _result_dtype(a: Any, b: Any) -> np.dtype[Any]:
    """Return the dtype of a product in the current mode."""
    common = np.result_type(a.dtype, b.dtype)
    return FLOAT32 if current_mode().name != "chain" else common


def dot(a: Any, b: Any, out: Any = None) -> Any:
    if _is_number(a, b):
        return _scaled(a, b, out)
    return _contract_last(a, b, max(b.ndim - 2, 0), out)


def inner(a: Any, b: Any, /) -> Any:
    if _is_number(a, b):
        return _scaled(a, b)
    return _contract_last(a, b, b.ndim - 1, None)


def _contract_last(a: Any, b: Any, axis: int, out: Any) -> Any:
    """Sum products over the last axis of a and an axis of b."""
    for x in (a, b):
        if not isinstance(x, cupy.ndarray):
            raise TypeError(
                f"a and b must be arrays on a GPU; got {type(x).__name__}. Use"
                " tf32dtype.cuda.asarray"
            )
    k = a.shape[-1]
    if b.shape[axis] != k:
        raise ValueError(
            f"shapes {a.shape} and {b.shape} not aligned: {k} (dim {a.ndim - 1}) !="
            f" {b.shape[axis]} (dim {axis})"
        )
    rows = a.shape[:-1]
    columns = b.shape[:axis] + b.shape[axis + 1 :]
    shape = rows + columns
    if out is not None:
        _exact_out(out, _result_dtype(a, b), shape)
    x = reshape(a, (math.prod(rows), k)) if a.ndim != 2 else a
    if b.ndim == 2:
        y = b if axis == 0 else b.T
    else:  # k last, so that the operand of `inner` is a view
        y = reshape(cupy.moveaxis(b, axis, -1), (math.prod(columns), k)).T
    return _multiply(x, y, None, out, shape)


def vdot(a: Any, b: Any, /) -> Any:
    if a.size != b.size:
        raise ValueError(
            "a and b must have the same number of elements for vdot; got shapes"
            f" {a.shape} and {b.shape}"
        )
    return _multiply(reshape(a, (1, a.size)), reshape(b, (b.size, 1)), None, None, ())


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    try:
        of_a, of_b = axes
    except TypeError:
        of_a, of_b = list(range(-index(axes), 0)), list(range(index(axes)))
    of_a, of_b = (list(x) if np.iterable(x) else [x] for x in (of_a, of_b))
    if len(of_a) != len(of_b) or any(
        a.shape[i] != b.shape[j] for i, j in zip(of_a, of_b, strict=True)
    ):
        raise ValueError("shape-mismatch for sum")
    of_a, of_b = [i % a.ndim for i in of_a], [j % b.ndim for j in of_b]
    rows = [i for i in range(a.ndim) if i not in of_a]
    columns = [j for j in range(b.ndim) if j not in of_b]
    m, n = [a.shape[i] for i in rows], [b.shape[j] for j in columns]
    k = math.prod(a.shape[i] for i in of_a)
    x = reshape(a.transpose([*rows, *of_a]), (math.prod(m), k))
    y = reshape(b.transpose([*of_b, *columns]), (k, math.prod(n)))
    return _multiply(x, y, None, None, (*m, *n))


class _StandIn(np.ndarray):
    """Stand in for a GPU array as a NumPy array of the same shape.

    With such arrays, NumPy decides in which order to multiply several matrices.
    """

    on_gpu: Any = None

    @classmethod
    def of(cls, x: Any) -> _StandIn:
        made = np.broadcast_to(np.float32(0), x.shape).view(cls)
        made.on_gpu = x
        return made

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is not np.dot:
            return super().__array_function__(func, types, args, kwargs)
        out = kwargs.get("out", args[2] if len(args) > 2 else None)
        return self.of(
            dot(args[0].on_gpu, args[1].on_gpu, getattr(out, "on_gpu", None))
        )


def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    arrays = list(arrays)
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    first, last = arrays[0], arrays[-1]
    shape = first.shape[: first.ndim - 1] + last.shape[1:]
    if first.ndim == 1:
        arrays[0] = first[np.newaxis]
    if last.ndim == 1:
        arrays[-1] = last[:, np.newaxis]
    for x in arrays:
        if x.ndim != 2:
            raise np.linalg.LinAlgError(
                f"{x.ndim}-dimensional array given. Array must be two-dimensional"
            )
    planned: Any = np.linalg.multi_dot([_StandIn.of(x) for x in arrays])
    result = planned.on_gpu
    result = result.reshape(shape)
    if out is None:
        return result
    _exact_out(out, result.dtype, shape)
    copy_into(result, out)
    return out


# -- einsum ----------------------------------------------------------------------------


class _CuPy:
    """The array operations that einsum needs, for GPU arrays."""

    reshape = staticmethod(reshape)

    def copyto(self, out: Any, x: Any) -> None:
        copy_into(x, as_target(out, x.dtype, x.shape))

    def asarray(self, x: Any) -> Any:
        if not isinstance(x, cupy.ndarray):
            raise TypeError(
                f"operands of einsum must be arrays on a GPU; got {type(x).__name__}."
                " Use tf32dtype.cuda.asarray"
            )
        return as_own(x)

    def as_strided(self, x: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
        made = cupy.ndarray(tuple(shape), x.dtype, x.data, tuple(strides))
        return made.view(x.dtype, type(x))

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        return cupy.broadcast_to(x, shape)

    def cast(self, x: Any, dtype: np.dtype[Any]) -> Any:
        return cast(x, dtype)

    def sum(self, x: Any, axis: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        if not (is_ours(x.dtype) or x.dtype == FLOAT32):
            if not is_ours(dtype):
                return current().call("sum", plain(x), axis=axis, dtype=dtype)
            x = cast(x, dtype)
        return reductions.reduce("sum", x, axis, dtype)

    def matmul(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return matmul(x, y, dtype=dtype)

    def multiply(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return ufuncs.call(np.multiply, (x, y), dtype=dtype)

    def is_array(self, x: Any) -> bool:
        return isinstance(x, cupy.ndarray)


def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: DTypeLike | None = None,
    order: str = "K",
    casting: str = "safe",
) -> Any:
    subscripts, *arrays = operands
    return contraction.contract(
        _CuPy(), subscripts, tuple(arrays), out, dtype, optimize
    )


#: Product functions by their names in NumPy.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        matmul, vecdot, matvec, vecmat, dot, inner, vdot, tensordot, multi_dot, einsum,
    )
}  # fmt: skip


def dispatch(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute one of NumPy's product functions on GPU arrays, in the current mode.

    Parameters
    ----------
    name : str
        "matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat", "tensordot",
        "einsum" or "multi_dot", with or without the prefix "linalg.".
    args, kwargs
        Arguments of NumPy's function.

    Raises
    ------
    TypeError, ValueError
        As in NumPy's function, and if a keyword is not supported on a GPU.
    """
    return FUNCTIONS[name.removeprefix("linalg.")](*args, **kwargs)
