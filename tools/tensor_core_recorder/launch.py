"""Run the recorder's kernels on a GPU by CuPy, which only this module imports."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tf32dtype._base.nvrtc import EXTRA, CudaError, compile_cuda, opcodes

from .bulk_inputs import CHUNK, CHUNKS, Conversion, Draw, digest, draws
from .instructions import Bits, Unit, architecture


def _cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise CudaError(f"CuPy is not installed ({error}). Use {EXTRA}") from error


def _driver() -> str | None:
    """Return the driver's version, for which CUDA has no call, or None."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    done = subprocess.run(query, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


class Gpu:
    """The first GPU.

    Raises
    ------
    CudaError
        If there is none, CuPy is not installed, or NVRTC cannot compile for it.
    """

    def __init__(self) -> None:
        self.cupy = _cupy()
        runtime = self.cupy.cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise CudaError(
                f"there is no NVIDIA GPU, or no driver for it: {error}"
            ) from error
        if count == 0:
            raise CudaError("there is no NVIDIA GPU")
        facts = runtime.getDeviceProperties(0)
        self.capability = (int(facts["major"]), int(facts["minor"]))
        self.architecture = architecture(self.capability)
        self.name = facts["name"].decode()
        self._modules: dict[tuple[str, tuple[str, ...]], tuple[Any, bytes]] = {}
        self._files = tempfile.TemporaryDirectory()
        self._load("cuda/recorder/record_inputs.cu", ())

    def facts(self) -> dict[str, Any]:
        """Return the GPU and the versions of all software on which results depend."""
        runtime, nvrtc = self.cupy.cuda.runtime, self.cupy.cuda.nvrtc
        return {
            "gpu": self.name,
            "capability": list(self.capability),
            "architecture": self.architecture,
            "driver": _driver(),
            "driver's CUDA": runtime.driverGetVersion(),
            "runtime": runtime.runtimeGetVersion(),
            "nvrtc": list(nvrtc.getVersion()),
            "cupy": self.cupy.__version__,
            "numpy": np.__version__,
        }

    def _kernel(self, file: str, options: tuple[str, ...], name: str) -> Any:
        return self._load(file, options)[0].get_function(name)

    def _load(self, file: str, options: tuple[str, ...]) -> tuple[Any, bytes]:
        key = file, options
        if key not in self._modules:
            cubin = compile_cuda(file, options, self.architecture)
            path = Path(self._files.name) / f"{len(self._modules)}.cubin"
            path.write_bytes(cubin)
            self._modules[key] = self.cupy.RawModule(path=str(path)), cubin
        return self._modules[key]

    def opcodes(self, file: str, options: tuple[str, ...]) -> dict[str, int] | None:
        """Count the machine instructions of a kernel file by name."""
        return opcodes(self._load(file, options)[1])

    # -- dots

    def run(self, unit: Unit, a: Bits, b: Bits, c: Bits, scale_d: bool = True) -> Bits:
        """Return D of tiles; `tiles.Run` describes the shapes."""
        x, y, z = (self.cupy.asarray(np.ascontiguousarray(m)) for m in (a, b, c))
        return self._run(unit, x, y, z, a.shape[1], scale_d)

    def _run(
        self, unit: Unit, a: Any, b: Any, c: Any, chain: int, scale_d: bool
    ) -> Bits:
        d = self.cupy.empty(c.shape, np.uint32)
        kernel = self._kernel("cuda/recorder/record_mma.cu", unit.options, "run")
        arguments = a, b, c, d, np.int32(chain), np.int32(scale_d)
        kernel((c.shape[0],), (unit.threads,), arguments)
        return d.get()  # type: ignore[no-any-return]

    def bulk(self, unit: Unit) -> NDArray[np.uint64]:
        """Return the digests of bulk results."""
        tiles = CHUNK * CHUNKS // (unit.rows * 8)
        shapes = (unit.rows, unit.words), (8, unit.words), (unit.rows, 8)
        a, b, c = (
            self._fill(draw, tiles * draw.per_tile, (tiles, *shape))
            for draw, shape in zip(draws(unit), shapes, strict=True)
        )
        d = self._run(unit, a, b, c, 1, True).reshape(CHUNKS, CHUNK)
        return np.array([digest(part) for part in d])

    def _fill(self, draw: Draw, count: int, shape: tuple[int, ...]) -> Any:
        """Return random numbers in the 32-bit words of an array of this shape."""
        f, out = draw.format, self.cupy.empty(shape, np.uint32)
        numbers = map(np.uint32, (0, count, draw.seed, draw.per_tile))
        bits = draw.width, f.mantissa_bits, f.exponent_bits, f.shift
        ranges = [
            self.cupy.asarray(np.array(x, np.uint32)) for x in (draw.low, draw.span)
        ]
        arguments = out, *numbers, *map(np.int32, bits), *ranges
        self._kernel("cuda/recorder/record_inputs.cu", (), "fill")(
            (-(-count // 256),), (256,), arguments
        )
        return out

    # -- conversions

    def convert(self, conversion: Conversion, x: Bits) -> Bits:
        """Convert float32's bits."""
        given, found = self.cupy.asarray(x), self.cupy.empty(len(x), np.uint32)
        kernel = self._conversion(conversion, "convert")
        kernel((-(-len(x) // 256),), (256,), (given, found, np.uint32(len(x))))
        return found.get()  # type: ignore[no-any-return]

    def convert_all(self, conversion: Conversion) -> np.ndarray:
        """Return digests of the conversions of all float32, one per high byte."""
        sums = self.cupy.asarray(np.zeros(256, np.uint64))
        self._conversion(conversion, "digest")((256, 256), (256,), (sums,))
        return sums.get()  # type: ignore[no-any-return]

    def _conversion(self, conversion: Conversion, name: str) -> Any:
        return self._kernel("cuda/recorder/record_inputs.cu", conversion.options, name)
