"""Where arrays are computed: the one place that starts kernels and calls CuPy.

All else in this package goes through `current()`, so that the tests can put in its
place a backend that runs the same kernels on the CPU, over the same CuPy arrays.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from .. import nvrtc


class Kernel(NamedTuple):
    """A function of a file in src/cuda, as options make it."""

    file: str
    name: str
    options: tuple[str, ...] = ()


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

        Arguments are CuPy arrays or None (pointers), or NumPy scalars and arrays, also
        structured ones (by value). Python numbers are refused: their width is unsaid.
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
        "ndarray.copy"."""
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
        They are plain CuPy arrays that are contiguous along one of their last two axes,
        `c` along the last. `kind` says what the elements of a and b are: "bfloat16"
        (uint16), "float16", "tf32" (float32, of which the unit reads the upper 19 bits)
        or "float32"; c is float32.
        """
        ...


def parameters(arguments: tuple[Any, ...]) -> tuple[NDArray[np.uintp], list[Any]]:
    """Pointers to the values of a kernel's arguments, and what keeps these alive."""
    values = []
    for x in arguments:
        if x is None or isinstance(x, cupy.ndarray):
            value = np.array(0 if x is None else x.data.ptr, np.uintp)
        elif isinstance(x, np.generic | np.ndarray):
            value = np.array(x, order="C")
        else:
            raise TypeError(f"a kernel's argument of unsaid width: {x!r}")
        values.append(value)
    return np.array([x.ctypes.data for x in values], np.uintp), values


def three(extent: tuple[int, ...]) -> tuple[int, int, int]:
    """A grid's or a block's extent in all three axes."""
    x, y, z = (*extent, 1, 1)[:3]
    return x, y, z


class Device:
    """The GPU that CuPy's current device is."""

    def __init__(self) -> None:
        self._functions: dict[tuple[int, Kernel], Any] = {}
        self._facts: dict[int, dict[str, Any]] = {}
        self._bound = threading.local()

    def _device(self) -> int:
        device = int(cupy.cuda.runtime.getDevice())
        if device not in self._facts:
            self._facts[device] = cupy.cuda.runtime.getDeviceProperties(device)
        return device

    def _check(self, arguments: tuple[Any, ...]) -> None:
        """What lies in another GPU's memory would end all use of CUDA here."""
        here = self._device()
        for x in arguments:
            if isinstance(x, cupy.ndarray) and x.size and x.data.device_id != here:
                there = x.data.device_id
                raise ValueError(
                    f"an array on device {there}, while device {here} is the current"
                    f" one: compute within cupy.cuda.Device({there})"
                )

    def architecture(self) -> str:
        facts = self._facts[self._device()]
        major, minor = facts["major"], facts["minor"]
        # From 9.0 on some instructions are of one architecture alone.
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"

    def processors(self) -> int:
        return int(self._facts[self._device()]["multiProcessorCount"])

    def name(self) -> str:
        name: bytes = self._facts[self._device()]["name"]
        return name.decode()

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
        self._check(arguments)
        self._bind(device)
        if key not in self._functions:
            module = cupy.cuda.function.Module()
            module.load(cubin(kernel.file, kernel.options, self.architecture()))
            self._functions[key] = module.get_function(kernel.name)
        function = self._functions[key]
        if shared > 48 << 10:  # what more needs to be asked for
            attribute = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            cupy.cuda.driver.funcSetAttribute(function.ptr, attribute, shared)
        pointers, values = parameters(arguments)
        stream = cupy.cuda.get_current_stream().ptr
        cupy.cuda.driver.launchKernel(
            function.ptr, *three(grid), *three(block), shared, stream,
            pointers.ctypes.data, 0,
        )  # fmt: skip
        del values  # the driver has copied them

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

        here, there = self._device(), data.data.device_id
        if here != there:  # as of arguments of a launch
            raise ValueError(f"an array on device {there}, while {here} is current")
        return tensor_map(data.data.ptr, size, extents, strides, box, swizzled)

    def call(self, function: str, *arguments: Any, **keywords: Any) -> Any:
        found = cupy
        for name in function.split("."):
            found = getattr(found, name, None)
        if found is None:
            raise TypeError(
                f"CuPy has no {function}: x.get() is NumPy's array, which has one"
            )
        return found(*arguments, **keywords)

    def get(self, x: Any) -> NDArray[Any]:
        return cupy.asnumpy(x)  # type: ignore[no-any-return]

    def put(self, x: NDArray[Any], *, lasting: bool = False) -> Any:
        # np.ascontiguousarray would make an axis for a single number.
        return cupy.asarray(np.asarray(x, order="C"), blocking=lasting)

    def gemm(
        self, a: Any, b: Any, c: Any, kind: str, alpha: float = 1, beta: float = 0
    ) -> None:
        from . import cublas

        self._check((a, b, c))
        cublas.gemm(a, b, c, kind, alpha, beta)


def cache() -> Path:
    """CuPy's folder of compiled kernels, for which its versions have no common name."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache").expanduser()


def cubin(file: str, options: tuple[str, ...], arch: str) -> bytes:
    """Machine code, from CuPy's folder of compiled kernels if it was made before."""
    texts = nvrtc.sources(file), options, nvrtc.OPTIONS, arch
    version = cupy.cuda.nvrtc.getVersion()
    name = hashlib.sha256(repr((texts, version)).encode()).hexdigest()
    path = cache() / f"tf32dtype_{name}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        pass
    made = nvrtc.compile_cuda(file, options, arch)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as temporary:
            temporary.write(made)
        os.replace(temporary.name, path)
    except OSError:
        pass  # it is compiled again next time
    return made


_backend: Backend = Device()


def current() -> Backend:
    """Where arrays are computed."""
    return _backend


def use(backend: Backend) -> Backend:
    """Put another in place of it, for tests; the one that was."""
    global _backend
    before, _backend = _backend, backend
    return before
