"""The interface to the machine that runs kernels, and the current machine.

All code that starts kernels or calls CuPy goes through `current()`. That is a
`device.Device`, which uses a GPU. Tests replace it by a backend that runs the same
kernels on the CPU, with the same CuPy arrays.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

#: Number of plans in a cache, which keeps those of the last calls.
KEPT = 1 << 12


class Kernel(NamedTuple):
    """A kernel function of a file in src/cuda, compiled with given options."""

    file: str
    name: str
    options: tuple[str, ...] = ()


class Constant(cupy.cuda.function.CPointer):  # type: ignore[misc]
    """Hold an argument that is passed by value, for many launches.

    CuPy takes its address as it is. It would examine a NumPy array each time.
    """

    value: NDArray[Any]

    def __init__(self, value: Any) -> None:
        self.value = np.array(value, order="C")
        self.value.flags.writeable = False
        super().__init__(self.value.ctypes.data)


@lru_cache(maxsize=1 << 10)
def int32(value: int) -> Constant:
    """Return a cached 32-bit argument: an operation, a flag or a size."""
    return Constant(np.int32(value))


@lru_cache(maxsize=1 << 10)
def int64(value: int) -> Constant:
    """Return a cached 64-bit argument: a size."""
    return Constant(np.int64(value))


class Words(cupy.cuda.function.CPointer):  # type: ignore[misc]
    """A kernel argument of 64-bit integers, passed by value for one launch.

    Pointers may be among the integers.
    """

    words: array[int]

    def __init__(self, *words: int) -> None:
        self.words = array("q", words)
        super().__init__(self.words.buffer_info()[0])

    @property
    def value(self) -> NDArray[Any]:
        """Return the integers that a kernel reads."""
        return np.frombuffer(self.words, np.int64)


Shape = tuple[int, ...]


class View:
    """Describe a stack of matrices in an array's memory.

    It serves where only address and layout are needed, and is quicker to make than an
    array.
    """

    __slots__ = "data", "dtype", "itemsize", "shape", "strides"
    ndim = 3
    _c_contiguous = False  # the name that CuPy's arrays have for it; False: unknown

    def __init__(self, dtype: Any, data: Any, shape: Shape, strides: Shape) -> None:
        self.data = data
        self.dtype = dtype
        self.itemsize = dtype.itemsize
        self.shape = shape
        self.strides = strides

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def array(self) -> Any:
        """Return a CuPy array of the same memory, for functions that need one."""
        return cupy.ndarray(self.shape, self.dtype, self.data, self.strides)

    def at(self, start: int) -> View:
        """Return a view of the same layout that begins `start` bytes later."""
        if not start:
            return self
        return View(self.dtype, self.data + start, self.shape, self.strides)

    def view(self, dtype: Any, kind: type = cupy.ndarray) -> View:
        """Return the same memory as another dtype of the same size."""
        return View(dtype, self.data, self.shape, self.strides)

    def __getitem__(self, part: slice) -> Any:
        """Return some matrices of the stack."""
        return self.array[part]

    def swapaxes(self, first: int, second: int) -> View:
        """Return the transposed matrices; the axes must be the last two."""
        (s, m, n), (stack, down, across) = self.shape, self.strides
        return View(self.dtype, self.data, (s, n, m), (stack, across, down))


class Backend(Protocol):
    """The operations of a machine that arrays use."""

    def architecture(self) -> str:
        """Return the architecture of the current device, for example "sm_90a"."""
        ...

    def processors(self) -> int:
        """Return the number of multiprocessors of the current device."""
        ...

    def name(self) -> str:
        """Return the name of the current device, as "NVIDIA H100 80GB HBM3"."""
        ...

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
    ) -> None:
        """Start a kernel on the current stream, and do not wait for it.

        Pointer arguments are CuPy arrays, `View` or None. Arguments passed by value are
        `Constant`, `Words`, NumPy scalars, and NumPy arrays of one element, which may
        be structured. Python numbers raise a TypeError, because their width is unknown.
        """
        ...

    def tensor_map(
        self,
        data: Any,
        size: int,
        extents: tuple[int, ...],
        strides: tuple[int, ...],
        box: tuple[int, ...],
        swizzled: bool,
    ) -> NDArray[Any]:
        """Return the argument by which a kernel copies boxes of a tensor.

        The tensor begins where an array does: see `tensor_maps.tensor_map`.
        """
        ...

    def call(self, function: str, *arguments: Any, **keywords: Any) -> Any:
        """Call a function of CuPy on arrays of NumPy's dtypes.

        `function` is a name such as "concatenate" or, for a method of arrays,
        "ndarray.copy". Instead of an array you may pass a `View`.
        """
        ...

    def get(self, x: Any) -> NDArray[Any]:
        """Copy an array of a NumPy dtype to the host, and wait for the copy."""
        ...

    def put(self, x: NDArray[Any], *, lasting: bool = False) -> Any:
        """Copy a NumPy array to the device, in C order.

        With `lasting`, wait for the copy, so that any stream may read it.
        """
        ...

    def gemm(
        self, a: Any, b: Any, c: Any, kind: str, alpha: float = 1, beta: float = 0
    ) -> None:
        """Compute c = alpha a @ b + beta c by cuBLAS, on the current stream.

        `a` is (m, k), `b` (k, n) and `c` (m, n), or stacks of such matrices. Each is a
        plain CuPy array or a `View`. `a` and `b` are contiguous along one of their last
        two axes, `c` along the last. `kind` is the format of `a` and `b`: "bfloat16"
        (stored as uint16), "float16", "float32", "float64" or "tf32" (stored as
        float32, of which tensor cores read the upper 19 bits). `c` is float64 for
        "float64", otherwise float32.
        """
        ...


def parameters(arguments: tuple[Any, ...]) -> tuple[NDArray[np.uintp], list[Any]]:
    """Return pointers to the values of a kernel's arguments, and these values.

    Keep the values alive as long as the pointers are used.
    """
    values = []
    for x in arguments:
        if x is None or isinstance(x, cupy.ndarray):
            value = np.array(0 if x is None else x.data.ptr, np.uintp)
        elif isinstance(x, View):
            value = np.array(x.data.ptr, np.uintp)
        elif isinstance(x, Constant | Words):
            value = x.value
        elif isinstance(x, np.generic | np.ndarray):
            value = np.array(x, order="C")
        else:
            raise TypeError(f"kernel arguments must have a known width; got {x!r}")
        values.append(value)
    return np.array([x.ctypes.data for x in values], np.uintp), values


def three(extent: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the extent of a grid or block along three axes."""
    x, y, z = (*extent, 1, 1)[:3]
    return x, y, z


#: Types of arguments that are in a GPU's memory.
ARRAYS = cupy.ndarray, View


def check_aligned(arguments: Iterable[Any]) -> None:
    """Reject arrays with misaligned elements.

    If a kernel read them, CUDA would be unusable for the rest of the process.

    Raises
    ------
    ValueError
        If an element of a CuPy array does not begin at a multiple of its size. The
        array is one of the arguments, or in a list or tuple among them.
    """
    for x in arguments:
        if isinstance(x, ARRAYS):
            check_elements(x)
        elif isinstance(x, tuple | list):
            check_aligned(x)


def check_elements(x: Any) -> None:
    """Reject one array if its elements are misaligned; see `check_aligned`."""
    size = x.dtype.alignment
    if size == 1 or (
        x.data.ptr % size == 0 and (x._c_contiguous or _are_multiples(x.strides, size))
    ):
        return
    if x.size:
        raise ValueError(
            f"elements of an array of {x.dtype} must begin at multiples of {size} bytes"
            " on a GPU; copy the bytes before you view them as numbers,"
            " x[1:].copy().view(...)"
        )


@lru_cache(maxsize=KEPT)
def _are_multiples(strides: tuple[int, ...], size: int) -> bool:
    return all(step % size == 0 for step in strides)


#: The current machine, which `tf32dtype.cuda` sets to a `device.Device` on import.
_backend: Backend


def current() -> Backend:
    """Return the machine that computes arrays."""
    return _backend


def use(backend: Backend) -> None:
    """Set the machine that computes arrays from now on."""
    global _backend
    _backend = backend
