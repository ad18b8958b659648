"""What arrays need of a machine, and where they are computed now.

All that starts kernels or calls CuPy goes through `current()`: a GPU, `device.Device`,
or what the tests put in its place, which runs the same kernels on the CPU, over the
same CuPy arrays.
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

#: Plans that are kept, of what was called last.
KEPT = 1 << 12


class Kernel(NamedTuple):
    """A function of a file in src/cuda, as options make it."""

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
    """One of few numbers: an operation, a flag, a size."""
    return Constant(np.int32(value))


@lru_cache(maxsize=1 << 10)
def int64(value: int) -> Constant:
    """One of few numbers: a size."""
    return Constant(np.int64(value))


class Words(cupy.cuda.function.CPointer):  # type: ignore[misc]
    """Integers of 64 bits by value, for one launch: a pointer is one of them."""

    words: array[int]

    def __init__(self, *words: int) -> None:
        self.words = array("q", words)
        super().__init__(self.words.buffer_info()[0])

    @property
    def value(self) -> NDArray[Any]:
        """What a kernel reads."""
        return np.frombuffer(self.words, np.int64)


Shape = tuple[int, ...]


class View:
    """Describe a stack of matrices in an array's memory.

    It serves where only address and layout are needed, and is quicker to make than an
    array.
    """

    __slots__ = "data", "dtype", "itemsize", "shape", "strides"
    ndim = 3
    _c_contiguous = False  # as CuPy's arrays say it, if they know

    def __init__(self, dtype: Any, data: Any, shape: Shape, strides: Shape) -> None:
        self.data = data
        self.dtype = dtype
        self.itemsize = dtype.itemsize
        self.shape = shape
        self.strides = strides

    @classmethod
    def of(cls, x: Any) -> View:
        """A matrix or a stack of them."""
        shape, strides = x.shape, x.strides
        if len(shape) == 2:
            shape, strides = (1, *shape), (0, *strides)
        return cls(x.dtype, x.data, shape, strides)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def array(self) -> Any:
        """For what asks for more."""
        return cupy.ndarray(self.shape, self.dtype, self.data, self.strides)

    def view(self, dtype: Any, kind: type = cupy.ndarray) -> View:
        """As another dtype of this size."""
        return View(dtype, self.data, self.shape, self.strides)

    def __getitem__(self, part: slice) -> Any:
        """Some of the stack."""
        return self.array[part]

    def swapaxes(self, first: int, second: int) -> View:
        """Rows as columns: of the last two axes alone."""
        (s, m, n), (stack, down, across) = self.shape, self.strides
        return View(self.dtype, self.data, (s, n, m), (stack, across, down))


class Backend(Protocol):
    """What arrays need of a machine."""

    def architecture(self) -> str:
        """Of the current device, "sm_90a" for example."""
        ...

    def processors(self) -> int:
        """How many multiprocessors the current device has."""
        ...

    def name(self) -> str:
        """Of the current device, "NVIDIA H100 80GB HBM3" for example."""
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

        Arguments are CuPy arrays, `View` or None (pointers), or by value: `Constant`,
        `Words`, NumPy scalars and arrays of one element, also structured ones. Python
        numbers are refused: their width is unsaid.
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

        Names are "concatenate", or of arrays "ndarray.copy". Instead of an array you
        may pass a `View`.
        """
        ...

    def get(self, x: Any) -> NDArray[Any]:
        """A copy on the host of an array of one of NumPy's dtypes; waits for it."""
        ...

    def put(self, x: NDArray[Any], *, lasting: bool = False) -> Any:
        """A copy on the device, C-contiguous; `lasting`: for every stream to read."""
        ...

    def gemm(
        self, a: Any, b: Any, c: Any, kind: str, alpha: float = 1, beta: float = 0
    ) -> None:
        """alpha a @ b + beta c into c by cuBLAS, on the current stream.

        `a` is (m, k), `b` (k, n) and `c` (m, n), or stacks of them.
        They are plain CuPy arrays, or `View` of such, that are contiguous along one of
        their last two axes, `c` along the last. `kind` says what the elements of a and
        b are: "bfloat16" (uint16), "float16", "tf32" (float32, of which the unit reads
        the upper 19 bits) or "float32"; c is float32.
        """
        ...


def parameters(arguments: tuple[Any, ...]) -> tuple[NDArray[np.uintp], list[Any]]:
    """Pointers to the values of a kernel's arguments, and what keeps these alive."""
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
    """A grid's or a block's extent in all three axes."""
    x, y, z = (*extent, 1, 1)[:3]
    return x, y, z


#: What lies in a GPU's memory.
ARRAYS = cupy.ndarray, View


def check_aligned(arguments: Iterable[Any]) -> None:
    """Refuse arrays whose elements a GPU cannot read: that would end all use of CUDA.

    Raises
    ------
    ValueError
        If an element of a CuPy array, one of the arguments or of a list among them,
        does not begin at a multiple of its size.
    """
    for x in arguments:
        if isinstance(x, ARRAYS):
            check_elements(x)
        elif isinstance(x, tuple | list):
            check_aligned(x)


def check_elements(x: Any) -> None:
    """`check_aligned` of one array."""
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


#: A `device.Device`, which `tf32dtype.cuda` puts here when it is imported.
_backend: Backend


def current() -> Backend:
    """Where arrays are computed."""
    return _backend


def use(backend: Backend) -> None:
    """Compute there from now on."""
    global _backend
    _backend = backend
