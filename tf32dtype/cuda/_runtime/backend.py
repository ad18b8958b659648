"""Where arrays are computed: the one place that starts kernels and calls CuPy.

All else in this package goes through `current()`, so that the tests can put in its
place a backend that runs the same kernels on the CPU, over the same CuPy arrays.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import threading
from array import array
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from ... import _nvrtc

#: Plans that are kept, of what was called last.
KEPT = 1 << 12


class Kernel(NamedTuple):
    """A function of a file in src/cuda, as options make it."""

    file: str
    name: str
    options: tuple[str, ...] = ()


class Constant(cupy.cuda.function.CPointer):  # type: ignore[misc]
    """An argument that goes by value, for many launches: CuPy takes the address of it
    as it is, where it would look at a NumPy array anew each time."""

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
    """Matrices in an array's memory, a stack of them, where only their place and layout
    is asked for: quicker to make than an array."""

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
        """A kernel's argument by which it copies boxes of a tensor that begins where an
        array does: see `tensor_maps.tensor_map`."""
        ...

    def call(self, function: str, *arguments: Any, **keywords: Any) -> Any:
        """A function of CuPy, on arrays of NumPy's dtypes: "concatenate", or of arrays,
        "ndarray.copy". Instead of an array it may be given a `View`."""
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
            raise TypeError(f"a kernel's argument of unsaid width: {x!r}")
        values.append(value)
    return np.array([x.ctypes.data for x in values], np.uintp), values


#: What CuPy's launch takes as it should, besides None.
PACKED = cupy.ndarray, cupy.cuda.function.CPointer, np.generic


def packed(x: Any) -> Any:
    """Another argument as CuPy's launch takes it, which has a width for Python numbers
    and looks long at structured arrays."""
    if isinstance(x, View):
        return x.data
    if isinstance(x, np.ndarray):
        return Constant(x)
    raise TypeError(f"a kernel's argument of unsaid width: {x!r}")


def three(extent: tuple[int, ...]) -> tuple[int, int, int]:
    """A grid's or a block's extent in all three axes."""
    x, y, z = (*extent, 1, 1)[:3]
    return x, y, z


class _Facts(NamedTuple):
    """What is asked of a device."""

    architecture: str
    processors: int
    name: str


class Device:
    """The GPU that CuPy's current device is."""

    def __init__(self) -> None:
        self._functions: dict[tuple[int, Kernel], Any] = {}
        #: bytes of shared memory that were asked for, beyond what is there unasked
        self._shared: dict[tuple[int, Kernel], int] = {}
        self._facts: dict[int, _Facts] = {}
        self._bound = threading.local()

    def _device(self) -> int:
        device = int(cupy.cuda.runtime.getDevice())
        if device not in self._facts:
            found = cupy.cuda.runtime.getDeviceProperties(device)
            major, minor = found["major"], found["minor"]
            # From 9.0 on some instructions are of one architecture alone.
            arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
            processors = int(found["multiProcessorCount"])
            self._facts[device] = _Facts(arch, processors, found["name"].decode())
        return device

    def _check(self, arguments: tuple[Any, ...], here: int | None = None) -> None:
        """What cannot be read, or lies in another GPU's memory, would end all use of
        CUDA here."""
        here = self._device() if here is None else here
        for x in arguments:
            if not isinstance(x, ARRAYS):
                continue
            _check_elements(x)
            there = x.data.device_id
            if there != here and x.size:
                raise ValueError(
                    f"an array on device {there}, while device {here} is the current"
                    f" one: compute within cupy.cuda.Device({there})"
                )

    def architecture(self) -> str:
        return self._facts[self._device()].architecture

    def processors(self) -> int:
        return self._facts[self._device()].processors

    def name(self) -> str:
        return self._facts[self._device()].name

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
    ) -> None:
        device = self._device()
        key = device, kernel
        self._check(arguments, device)
        function = self._functions.get(key) or self._load(key)
        if shared > self._shared.get(key, 48 << 10):  # what more needs to be asked for
            self._bind(device)
            attribute = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            cupy.cuda.driver.funcSetAttribute(function.ptr, attribute, shared)
            self._shared[key] = shared
        given = [
            x if x is None or isinstance(x, PACKED) else packed(x) for x in arguments
        ]
        function(grid, block, given, shared)

    def _load(self, key: tuple[int, Kernel]) -> Any:
        """The function of a kernel on a device."""
        kernel = key[1]
        module = cupy.cuda.function.Module()
        module.load(cubin(kernel.file, kernel.options, self.architecture()))
        function = self._functions[key] = module.get_function(kernel.name)
        return function

    def _bind(self, device: int) -> None:
        """Give the thread the device's context: the driver's calls need it, and only
        those of the runtime make it."""
        known = self._bound.__dict__.setdefault("devices", set())
        if device not in known:
            cupy.cuda.runtime.memGetInfo()
            known.add(device)

    def tensor_map(
        self,
        data: Any,
        size: int,
        extents: tuple[int, ...],
        strides: tuple[int, ...],
        box: tuple[int, ...],
        swizzled: bool,
    ) -> NDArray[Any]:
        from .tensor_maps import tensor_map

        self._check((data,))
        return tensor_map(data.data.ptr, size, extents, strides, box, swizzled)

    def call(self, function: str, *arguments: Any, **keywords: Any) -> Any:
        check_aligned(arguments)
        found = cupy
        for name in function.split("."):
            found = getattr(found, name, None)
        if found is None:
            raise TypeError(
                f"CuPy has no {function}: x.get() is NumPy's array, which has one"
            )
        given = [x.array if isinstance(x, View) else x for x in arguments]
        return found(*given, **keywords)

    def get(self, x: Any) -> NDArray[Any]:
        return cupy.asnumpy(x)  # type: ignore[no-any-return]

    def put(self, x: NDArray[Any], *, lasting: bool = False) -> Any:
        # np.ascontiguousarray would make an axis for a single number.
        return cupy.asarray(np.asarray(x, order="C"), blocking=lasting)

    def gemm(
        self, a: Any, b: Any, c: Any, kind: str, alpha: float = 1, beta: float = 0
    ) -> None:
        self._check((a, b, c))
        _cublas().gemm(a, b, c, kind, alpha, beta)


@lru_cache(maxsize=1)
def _cublas() -> Any:
    from . import cublas

    return cublas


def cache() -> Path:
    """CuPy's folder of compiled kernels, for which its versions have no common name."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache").expanduser()


def cubin(file: str, options: tuple[str, ...], arch: str) -> bytes:
    """Machine code, from CuPy's folder of compiled kernels if it was made before."""
    texts = _nvrtc.sources(file), options, _nvrtc.OPTIONS, arch
    version = cupy.cuda.nvrtc.getVersion()
    name = hashlib.sha256(repr((texts, version)).encode()).hexdigest()
    path = cache() / f"tf32dtype_{name}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        pass
    made = _nvrtc.compile_cuda(file, options, arch)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as temporary:
            temporary.write(made)
        os.replace(temporary.name, path)
    except OSError:
        pass  # it is compiled again next time
    return made


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
            _check_elements(x)
        elif isinstance(x, tuple | list):
            check_aligned(x)


#: What lies in a GPU's memory.
ARRAYS = cupy.ndarray, View


def _check_elements(x: Any) -> None:
    size = x.dtype.alignment
    if size == 1 or (
        x.data.ptr % size == 0 and (x._c_contiguous or _are_multiples(x.strides, size))
    ):
        return
    if x.size:
        raise ValueError(
            f"an array of {x.dtype} whose elements do not begin at multiples"
            f" of {size} bytes, which a GPU cannot read: copy the bytes before"
            " they are viewed as numbers, x[1:].copy().view(...)"
        )


@lru_cache(maxsize=KEPT)
def _are_multiples(strides: tuple[int, ...], size: int) -> bool:
    return all(step % size == 0 for step in strides)


_backend: Backend = Device()


def current() -> Backend:
    """Where arrays are computed."""
    return _backend


def use(backend: Backend) -> Backend:
    """Put another in place of it, for tests; the one that was."""
    global _backend
    before, _backend = _backend, backend
    return before
