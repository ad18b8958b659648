"""The kernels on a GPU: compiled by NVRTC, run by CuPy, which is imported here alone.

They are not compiled by CuPy's own functions: these add `-ftz=true`, which flushes
subnormals where the assembler puts additions in place of an instruction.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bulk import CHUNK, CHUNKS, Conversion, Draw, digest, draws
from .units import Bits, Unit, architecture

EXTRA = "pip install 'tf32dtype[cuda]'"


class CudaError(Exception):
    """What is missing to run on a GPU, and what to do about it."""


def _cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise CudaError(f"CuPy is not installed ({error}): {EXTRA}") from error


def source(name: str) -> str:
    """The text of a kernel file."""
    return (files(__package__) / "kernels" / name).read_text()


def compile_cuda(name: str, options: tuple[str, ...], arch: str) -> bytes:
    """The machine code of a kernel file, by NVRTC. No GPU is needed.

    Raises
    ------
    CudaError
        If NVRTC is missing, does not know the architecture, or refuses the source.
    """
    nvrtc = _cupy().cuda.nvrtc
    try:
        version = ".".join(map(str, nvrtc.getVersion()))
        known = nvrtc.getSupportedArchs()
        if int(re.sub(r"\D", "", arch)) not in known:
            raise CudaError(
                f"NVRTC {version} does not compile for {arch}; it has"
                f" {', '.join(f'sm_{x}' for x in known)}. CUDA 13 left out all before"
                " sm_75; cupy-cuda12x still serves them"
            )
        program = nvrtc.createProgram(source(name), name, (), ())
    except CudaError:
        raise
    except Exception as error:  # CuPy raises several kinds when it finds no library
        raise CudaError(f"NVRTC cannot be loaded ({error}): {EXTRA}") from error
    try:
        nvrtc.compileProgram(program, (f"-arch={arch}", *options))
        # CuPy leaves out the last byte.
        return bytes(nvrtc.getCUBIN(program)) + b"\0"
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise CudaError(
            f"{name} {' '.join(options)} for {arch}: {error}\n{log}"
        ) from error
    finally:
        nvrtc.destroyProgram(program)


# -- what the assembler made of it -----------------------------------------------------


@cache
def disassemblers() -> tuple[str, ...]:
    """Paths of nvdisasm: of NVIDIA's wheel, then of a toolkit."""
    try:
        roots = list(importlib.import_module("nvidia").__path__)
    except ImportError:
        roots = []
    found = [str(path) for root in roots for path in Path(root).glob("*/bin/nvdisasm")]
    found.append(shutil.which("nvdisasm") or "")
    return tuple(path for path in found if os.access(path, os.X_OK))


def opcodes(cubin: bytes) -> dict[str, int] | None:
    """How often each instruction occurs; None without a disassembler that can tell."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        for program in disassemblers():
            done = subprocess.run([program, "-c", path], capture_output=True, text=True)
            if done.returncode == 0:
                lines = r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Za-z0-9_.]*)"
                return dict(sorted(Counter(re.findall(lines, done.stdout)).items()))
    return None


# -- a GPU -----------------------------------------------------------------------------


def _driver() -> str | None:
    """The driver's version, which CUDA has no call for."""
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
        self._load("inputs.cu", ())

    def facts(self) -> dict[str, Any]:
        """What else decides on results: versions of all that is involved."""
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
        """The machine instructions of a kernel file."""
        return opcodes(self._load(file, options)[1])

    # -- dots

    def run(self, unit: Unit, a: Bits, b: Bits, c: Bits, scale_d: bool = True) -> Bits:
        """D of tiles, as `tiles.Run` says."""
        x, y, z = (self.cupy.asarray(np.ascontiguousarray(m)) for m in (a, b, c))
        return self._run(unit, x, y, z, a.shape[1], scale_d)

    def _run(
        self, unit: Unit, a: Any, b: Any, c: Any, chain: int, scale_d: bool
    ) -> Bits:
        d = self.cupy.empty(c.shape, np.uint32)
        kernel = self._kernel("golden.cu", unit.options, "run")
        arguments = a, b, c, d, np.int32(chain), np.int32(scale_d)
        kernel((c.shape[0],), (unit.threads,), arguments)
        return d.get()  # type: ignore[no-any-return]

    def bulk(self, unit: Unit) -> NDArray[np.uint64]:
        """Digests of bulk results."""
        tiles = CHUNK * CHUNKS // (unit.rows * 8)
        shapes = (unit.rows, unit.words), (8, unit.words), (unit.rows, 8)
        a, b, c = (
            self._fill(draw, tiles * draw.per_tile, (tiles, *shape))
            for draw, shape in zip(draws(unit), shapes, strict=True)
        )
        d = self._run(unit, a, b, c, 1, True).reshape(CHUNKS, CHUNK)
        return np.array([digest(part) for part in d])

    def _fill(self, draw: Draw, count: int, shape: tuple[int, ...]) -> Any:
        """Random numbers, in the words of an array of this shape."""
        f, out = draw.format, self.cupy.empty(shape, np.uint32)
        numbers = map(np.uint32, (0, count, draw.seed, draw.per_tile))
        bits = draw.width, f.mantissa_bits, f.exponent_bits, f.shift
        ranges = [
            self.cupy.asarray(np.array(x, np.uint32)) for x in (draw.low, draw.span)
        ]
        arguments = out, *numbers, *map(np.int32, bits), *ranges
        self._kernel("inputs.cu", (), "fill")((-(-count // 256),), (256,), arguments)
        return out

    # -- conversions

    def convert(self, conversion: Conversion, x: Bits) -> Bits:
        """Conversions of float32's bits."""
        given, found = self.cupy.asarray(x), self.cupy.empty(len(x), np.uint32)
        kernel = self._conversion(conversion, "convert")
        kernel((-(-len(x) // 256),), (256,), (given, found, np.uint32(len(x))))
        return found.get()  # type: ignore[no-any-return]

    def convert_all(self, conversion: Conversion) -> np.ndarray:
        """Digests of the conversions of all float32, one for each first byte."""
        sums = self.cupy.asarray(np.zeros(256, np.uint64))
        self._conversion(conversion, "digest")((256, 256), (256,), (sums,))
        return sums.get()  # type: ignore[no-any-return]

    def _conversion(self, conversion: Conversion, name: str) -> Any:
        return self._kernel("inputs.cu", conversion.options, name)
