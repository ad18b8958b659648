"""The array class on a GPU, and how its memory is allocated.

Other modules import the class from this one. Its methods call functions of those
modules through `operations`, to avoid circular imports.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ..._base.wording import one_of
from ..._formats.table import find_dtype
from .._runtime.backend import KEPT, current
from .._runtime.storage import STORAGE, is_ours, no_kernel, raw


class Operations:
    """The functions that methods of arrays call; `cuda.dispatch` sets them."""

    # creation
    asarray: Callable[..., Any]
    zeros_like: Callable[..., Any]
    # casts
    converted: Callable[..., Any]
    # indexing
    is_basic: Callable[[Any], bool]
    get_elements: Callable[..., Any]
    set_elements: Callable[..., None]
    # interchange
    device_of: Callable[..., Any]
    get: Callable[..., NDArray[Any]]
    set: Callable[..., None]
    cuda_array_interface: Callable[..., dict[str, Any]]
    to_dlpack: Callable[..., Any]
    # sorting
    sort_into: Callable[..., None]
    # dispatch
    ufunc_method: Callable[..., Any]
    numpy_function: Callable[..., Any]
    cupy_kernel: Callable[..., Any]
    cupy_reduction: Callable[..., Any]


operations = Operations()


def wrap(storage: Any, dtype: Any) -> ndarray:
    """Return a view of storage, or of a float32 array, as an `ndarray` of a dtype."""
    return cupy.ndarray.view(storage, np.dtype(dtype), ndarray)  # type: ignore[no-any-return]


def as_own(x: Any) -> Any:
    """Return a view with this package's dtype if an array has one of ml_dtypes.

    Other arrays are returned unchanged.
    """
    own = find_dtype(x.dtype)
    return x if own == x.dtype else wrap(x, own)


def empty(shape: Any, dtype: Any) -> ndarray:
    """Return an uninitialized array in C order."""
    dtype = np.dtype(dtype)
    return wrap(cupy.empty(shape, STORAGE[dtype.itemsize]), dtype)


def allocate(
    shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]
) -> Any:
    """Allocate uninitialized memory for axes without gaps, in any order.

    The array is a plain CuPy array if the dtype is NumPy's own.
    """
    memory = cupy.cuda.alloc(math.prod(shape) * dtype.itemsize)
    kind = ndarray if is_ours(dtype) else cupy.ndarray
    return kind(shape, dtype, memory, strides)


@lru_cache(maxsize=KEPT)
def lying(
    shape: tuple[int, ...], itemsize: int, like: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Return the strides of an array whose elements leave no gaps.

    The axes have the order in memory of the strides `like` (default: C order).
    """
    order = sorted(range(len(shape)), key=lambda i: -abs(like[i]) if like else i)
    strides = [0] * len(shape)
    for axis in reversed(order):
        strides[axis] = itemsize
        itemsize *= max(shape[axis], 1)
    return tuple(strides)


class ndarray(cupy.ndarray):  # type: ignore[misc]
    """An array on a GPU whose dtype is a format of this package, or float32.

    Create one with `tf32dtype.cuda.asarray`, `zeros` or a similar function. It is a
    CuPy array and works as CuPy documents. Its results are those of NumPy for the same
    dtype on a CPU. Views, slices and results are again of this class if their dtype is
    a format. Casts and views to NumPy's own dtypes are plain CuPy arrays. As in CuPy,
    operations between a GPU array and a NumPy array raise a TypeError.

    No operation raises floating-point warnings, because a GPU keeps no flags.

    See Also
    --------
    asarray : Convert an object to an array on the GPU.
    tf32dtype.cuda.matmul : Multiply arrays in a chosen mode.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> x = tfc.asarray([[1, 2], [3, 4]], td.bfloat16)
    >>> (x @ x).get()
    array([[ 7., 10.],
           [15., 22.]], dtype=bfloat16)
    """

    # -- views

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Return a view of the same memory with another dtype.

        The view is a plain CuPy array if the dtype is NumPy's own.
        """
        if isinstance(dtype, builtins.type) and issubclass(dtype, cupy.ndarray):
            dtype, type = None, dtype
        if dtype is None:
            return cupy.ndarray.view(self, type=type or ndarray)
        dtype = find_dtype(dtype)
        if type is None:
            type = ndarray if is_ours(dtype) else cupy.ndarray
        return cupy.ndarray.view(self, dtype, type)

    @property
    def imag(self) -> Any:
        """Return zeros: all elements are real."""
        return operations.zeros_like(self)

    @property
    def flat(self) -> Any:
        """Return a view of the elements in C order.

        The array must be contiguous, as a write to a copy would be lost.
        """
        if not self.flags.c_contiguous:
            raise TypeError(
                "flat needs a contiguous array of this dtype; use x.ravel() to read"
            )
        return self.reshape(-1)

    def ravel(self, order: Any = "C") -> Any:
        """Return the elements as a contiguous vector, as a view if possible."""
        letter, x = _order(order), self
        if letter == "A":
            letter = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
        if letter == "F":
            x = x.T
        elif letter == "K":
            x = x.transpose(sorted(range(x.ndim), key=lambda k: -abs(x.strides[k])))
        x = x.reshape(-1)
        return x if x.flags.c_contiguous else x.copy()

    # -- copies and casts

    def astype(
        self,
        dtype: Any,
        order: Any = "K",
        casting: Any = None,
        subok: Any = None,
        copy: bool = True,
    ) -> Any:
        """Cast to another dtype, rounding once.

        The result is a plain CuPy array if the dtype is NumPy's own.

        Raises
        ------
        TypeError
            If `casting` is given and does not allow the cast.
        ValueError
            For another `order`.
        """
        wanted = find_dtype(dtype)
        if casting is not None and not np.can_cast(self.dtype, wanted, casting):
            raise TypeError(
                f"dtype must be one that {self.dtype} can be cast to with"
                f" casting={casting!r}; got {wanted}"
            )
        if wanted == self.dtype:
            kept = _keeps(self, order)
            return self if kept and not copy else self.copy(order)
        return operations.converted(
            self, wanted, _strides(self, order, wanted.itemsize)
        )

    def copy(self, order: Any = "C") -> Any:
        """Return a copy on the current device."""

        def in_c_order(x: Any) -> Any:
            return wrap(current().call("ndarray.copy", raw(x)), self.dtype)

        return _ordered(self, order, in_c_order)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        with operations.device_of(self):
            return self.copy()

    def __reduce__(self) -> Any:
        return operations.asarray, (self.get(),)

    def get(
        self,
        stream: Any = None,
        order: Any = "C",
        out: NDArray[Any] | None = None,
        blocking: bool = True,
    ) -> NDArray[Any]:
        """Copy the array to the host, as `cupy.ndarray.get` does.

        Parameters
        ----------
        stream : cupy.cuda.Stream, optional
            Stream that copies (default: the current stream).
        order : {"C", "F", "A"}
            Memory order of the result.
        out : numpy.ndarray, optional
            Array of this dtype and shape to write into.
        blocking : bool
            Whether to wait for the copy.

        Returns
        -------
        numpy.ndarray
            Array of the same dtype and elements; `out` if given.
        """
        return operations.get(self, stream, order, out, blocking)

    def set(self, arr: NDArray[Any], stream: Any = None) -> None:
        """Copy a NumPy array of this dtype and shape into the array."""
        operations.set(self, arr, stream)

    # -- elements

    def __getitem__(self, key: Any) -> Any:
        if operations.is_basic(key):
            return cupy.ndarray.__getitem__(self, key)
        return operations.get_elements(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        operations.set_elements(self, key, value)

    def fill(self, value: Any) -> None:
        """Set all elements to a value, which is cast once."""
        self[...] = value

    # -- methods that NumPy also has as functions

    def put(self, indices: Any, values: Any, mode: Any = "wrap") -> None:
        np.put(self, indices, values, mode)

    def choose(self, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
        raise TypeError(f"choose needs an array of indices; got {self.dtype}")

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return np.compress(condition, self, axis, out)

    def sort(self, axis: Any = -1, kind: Any = None) -> None:
        operations.sort_into(self, axis)

    def argsort(self, axis: Any = -1, kind: Any = None) -> Any:
        return np.argsort(self, axis)

    def partition(self, kth: Any, axis: Any = -1) -> None:
        self.sort(axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        # The method of cupy.ndarray allocates new memory if there are no elements.
        return wrap(raw(self).diagonal(offset, axis1, axis2), self.dtype)

    def byteswap(self, inplace: bool = False) -> Any:
        raise TypeError(
            "byteswap is not supported on a GPU; arrays use the byte order of the"
            " machine"
        )

    # -- operators: those of cupy.ndarray call the hooks below, except for @

    def __matmul__(self, other: Any) -> Any:
        return np.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return np.matmul(other, self)

    def __imatmul__(self, other: Any) -> Any:
        return np.matmul(self, other, out=self)

    # -- hooks that NumPy calls

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        return operations.ufunc_method(ufunc, method, inputs, keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        for t in types:
            if not issubclass(t, cupy.ndarray | np.ndarray):
                return NotImplemented
        return operations.numpy_function(func, args, kwargs)

    # -- hooks that CuPy's kernels call for any of their arguments

    def __cupy_override_elementwise_kernel__(
        self, kernel: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return operations.cupy_kernel(kernel, args, kwargs)

    def __cupy_override_reduction_kernel__(
        self, kernel: Any, axis: Any, dtype: Any, out: Any, keepdims: Any
    ) -> Any:
        return operations.cupy_reduction(kernel, self, axis, dtype, out, keepdims)

    # -- hooks that other libraries call

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return operations.cuda_array_interface(self)

    def __dlpack__(self, **keywords: Any) -> Any:
        return operations.to_dlpack(self, **keywords)

    def toDlpack(self) -> Any:
        return self.__dlpack__()


def _numpys(name: str) -> Callable[..., Any]:
    """Return a method that calls the NumPy function of this name."""
    function = getattr(np, name)

    def method(self: ndarray, *args: Any, **keywords: Any) -> Any:
        return function(self, *args, **keywords)

    method.__name__ = name
    return method


def _index(name: str) -> Callable[..., Any]:
    """Return a method that calls a NumPy function and casts its result.

    CuPy's functions pass a dtype to the method, which NumPy's functions do not take.
    """
    function = getattr(np, name)

    def method(
        self: ndarray,
        axis: Any = None,
        out: Any = None,
        dtype: Any = None,
        keepdims: Any = False,
    ) -> Any:
        found = function(self, axis, out, keepdims=keepdims)
        return found if dtype is None else found.astype(dtype)

    method.__name__ = name
    return method


def _refused(name: str) -> Callable[..., Any]:
    """Return a method that raises the error for functions without a kernel."""

    def method(self: ndarray, *args: Any, **keywords: Any) -> Any:
        raise no_kernel(name, self.dtype)

    return method


for _name in """
    take repeat nonzero argpartition searchsorted clip round trace dot
    sum prod mean var std max min ptp any all cumsum cumprod
""".split():
    setattr(ndarray, _name, _numpys(_name))
for _name in "argmax", "argmin":
    setattr(ndarray, _name, _index(_name))
for _name in "scatter_add", "scatter_max", "scatter_min":
    setattr(ndarray, _name, _refused(_name))
ndarray._add_reduceat = _refused("add.reduceat")  # CuPy's, for add.reduceat


def _keeps(x: Any, order: Any) -> bool:
    """Return whether an array has a memory order already."""
    c, f = x.flags.c_contiguous, x.flags.f_contiguous
    return bool({"C": c, "F": f, "A": c or f}.get(_order(order), True))


def _order(order: Any) -> str:
    letter = "K" if order is None else str(order)[:1].upper()
    if letter not in ("C", "F", "A", "K"):
        raise ValueError(one_of("order", order, ("C", "F", "A", "K")))
    return letter


def _strides(x: Any, order: Any, itemsize: int) -> tuple[int, ...]:
    """Return strides for elements of `itemsize` bytes in a memory order."""
    letter, shape = _order(order), x.shape
    if letter == "A":
        letter = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    if letter == "F":
        return lying(shape[::-1], itemsize)[::-1]
    return lying(shape, itemsize, x.strides if letter == "K" else None)


def _ordered(x: Any, order: Any, make: Any) -> Any:
    """Return what `make` does for an array, but in the requested memory order.

    `make` returns an array in C order.
    """
    letter = _order(order)
    if letter == "F":
        return make(x.T).T
    if letter != "C" and x.ndim > 1:
        # "A" means Fortran order if the array has it, otherwise C order. "K" means the
        # order of the strides.
        if letter == "A":
            f = x.flags.f_contiguous and not x.flags.c_contiguous
            return make(x.T).T if f else make(x)
        axes = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
        return make(x.transpose(axes)).transpose(np.argsort(axes).tolist())
    return make(x)
