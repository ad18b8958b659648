"""The backend that computes on a GPU through CuPy."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ..._base import nvrtc
from ..._base.whole_files import replacing
from . import cublas
from .backend import ARRAYS, Constant, Kernel, View, check_aligned, check_elements
from .tensor_maps import tensor_map

#: Types of arguments that CuPy's launch passes on unchanged; None is another.
PACKED = cupy.ndarray, cupy.cuda.function.CPointer, np.generic


def packed(x: Any) -> Any:
    """Convert a `View` or a NumPy array to an argument for CuPy's launch.

    CuPy would be slow to examine a structured array. Python numbers raise a TypeError,
    because CuPy would choose a width for them.
    """
    if isinstance(x, View):
        return x.data
    if isinstance(x, np.ndarray):
        return Constant(x)
    raise TypeError(f"kernel arguments must have a known width; got {x!r}")


class _Facts(NamedTuple):
    """The properties of a device that kernels depend on."""

    architecture: str
    processors: int
    name: str


class Device:
    """A backend that uses the current device of CuPy."""

    def __init__(self) -> None:
        self._functions: dict[tuple[int, Kernel], Any] = {}
        #: bytes of shared memory that kernels with more than the default asked for
        self._shared: dict[tuple[int, Kernel], int] = {}
        self._facts: dict[int, _Facts] = {}
        self._bound = threading.local()

    def _device(self) -> int:
        device = int(cupy.cuda.runtime.getDevice())
        if device not in self._facts:
            found = cupy.cuda.runtime.getDeviceProperties(device)
            major, minor = found["major"], found["minor"]
            # From 9.0 on, some instructions exist only in one architecture ("a").
            arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
            processors = int(found["multiProcessorCount"])
            self._facts[device] = _Facts(arch, processors, found["name"].decode())
        return device

    def _check(self, arguments: tuple[Any, ...], here: int | None = None) -> None:
        """Reject arrays that cannot be read, or are in another GPU's memory.

        An access to them would end all use of CUDA in the process.
        """
        here = self._device() if here is None else here
        for x in arguments:
            if not isinstance(x, ARRAYS):
                continue
            check_elements(x)
            there = x.data.device_id
            if there != here and x.size:
                raise ValueError(
                    f"arrays must be on the current device, {here}; got an array on"
                    f" device {there}. Compute within cupy.cuda.Device({there})"
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
        if shared > self._shared.get(key, 48 << 10):  # 48 KiB is the default limit
            self._bind(device)
            attribute = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            cupy.cuda.driver.funcSetAttribute(function.ptr, attribute, shared)
            self._shared[key] = shared
        given = [
            x if x is None or isinstance(x, PACKED) else packed(x) for x in arguments
        ]
        function(grid, block, given, shared)

    def _load(self, key: tuple[int, Kernel]) -> Any:
        """Load the function of a kernel on a device."""
        kernel = key[1]
        module = cupy.cuda.function.Module()
        module.load(cubin(kernel.file, kernel.options, self.architecture()))
        function = self._functions[key] = module.get_function(kernel.name)
        return function

    def _bind(self, device: int) -> None:
        """Give the thread the device's context.

        Calls of the driver need the context, and only calls of the runtime create it.
        """
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
        self._check((data,))
        return tensor_map(data.data.ptr, size, extents, strides, box, swizzled)

    def call(self, function: str, *arguments: Any, **keywords: Any) -> Any:
        check_aligned((*arguments, *keywords.values()))
        found = cupy
        for name in function.split("."):
            found = getattr(found, name, None)
        if found is None:
            raise TypeError(
                f"CuPy has no {function}; use x.get() for a NumPy array, which has one"
            )
        given = [x.array if isinstance(x, View) else x for x in arguments]
        return found(*given, **keywords)

    def get(self, x: Any) -> NDArray[Any]:
        check_elements(x)
        return cupy.asnumpy(x)  # type: ignore[no-any-return]

    def put(self, x: NDArray[Any], *, lasting: bool = False) -> Any:
        # np.ascontiguousarray would add an axis to a 0-d array.
        return cupy.asarray(np.asarray(x, order="C"), blocking=lasting)

    def gemm(
        self, a: Any, b: Any, c: Any, kind: str, alpha: float = 1, beta: float = 0
    ) -> None:
        self._check((a, b, c))
        cublas.gemm(a, b, c, kind, alpha, beta)


def cache() -> Path:
    """Return CuPy's folder of compiled kernels; CuPy has no public name for it."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache").expanduser()


def cubin(file: str, options: tuple[str, ...], arch: str) -> bytes:
    """Return the machine code of a file, compiled or from CuPy's folder of kernels."""
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
        with replacing(path) as stream:
            stream.write(made)
    except OSError:
        pass  # the next process compiles the file again
    return made
