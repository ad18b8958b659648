"""CUDA sources compiled by NVRTC, and what the assembler made of them, without a GPU.

CuPy's own functions are not used: these add `-ftz=true`, which flushes subnormals.
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
from pathlib import Path
from typing import Any

from .requirements import install

#: Commands that install CuPy and NVRTC, and cuBLAS, which neither of them installs.
EXTRA = f"{install('cuda')} (CUDA 12: {install('cuda12')})"
CUBLAS = "pip install nvidia-cublas (CUDA 12: pip install nvidia-cublas-cu12)"

PACKAGE = Path(__file__).parents[1]
#: The folder of the sources: in an installed package, or else in a checkout. Paths in
#: their #include lines are relative to it.
FOLDERS = [
    PACKAGE / "sources" if (PACKAGE / "sources").is_dir() else PACKAGE.parent / "src",
]

#: The contents of a header that NVRTC lacks.
STDINT = """\
#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#define INT32_MAX 0x7FFFFFFF
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX 0x7FFFFFFFFFFFFFFFll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT32_MAX 0xFFFFFFFFu
#define UINT64_MAX 0xFFFFFFFFFFFFFFFFull
#define INT64_C(x) x##ll
#define UINT32_C(x) x##u
#define UINT64_C(x) x##ull
"""
#: The contents of math.h; NVRTC has its functions built in.
MATH = "#pragma once\n#define NAN __longlong_as_double(0x7FF8000000000000)\n"
BUILTIN = {"stdint.h": STDINT, "math.h": MATH, "string.h": "#pragma once\n"}

#: Options without fused operations and flushing, like those of the C loops.
#: exact_binary.h needs integers of 128 bits.
OPTIONS = (
    "-std=c++17", "-default-device", "-device-int128", "-fmad=false", "-ftz=false"
)  # fmt: skip


class CudaError(Exception):
    """A component that kernels need is missing; the message says how to install it."""


def source(name: str) -> str:
    """Return the text of a source file of the kernels."""
    if name in BUILTIN:
        return BUILTIN[name]
    for folder in FOLDERS:
        if (folder / name).is_file():
            return (folder / name).read_text()
    raise FileNotFoundError(f"{name} not found in {', '.join(map(str, FOLDERS))}")


@cache
def sources(name: str) -> dict[str, str]:
    """Return the texts of a file and of all files that it includes, by name."""
    found = {name: source(name)}
    for included in re.findall(r'^#include ["<]([^">]+)[">]', found[name], re.M):
        found |= sources(included)
    return found


def _nvrtc() -> Any:
    try:
        return importlib.import_module("cupy").cuda.nvrtc
    except ImportError as error:
        raise CudaError(f"CuPy is not installed ({error}). Use {EXTRA}") from error


def compile_cuda(name: str, options: tuple[str, ...], arch: str) -> bytes:
    """Return the machine code of a kernel file, by NVRTC.

    Parameters
    ----------
    name : str
        A file, named from src/: "cuda/formats/cast.cu". So it names what it includes.
    options : tuple of str
        Macros that choose what the file becomes, such as "-DROWS=16".
    arch : str
        "sm_80", "sm_90a", ...

    Raises
    ------
    CudaError
        If NVRTC is missing, does not know the architecture, or refuses the source.
    """
    return compile_and_log(name, options, arch)[0]


def compile_and_log(
    name: str, options: tuple[str, ...], arch: str
) -> tuple[bytes, str]:
    """Compile like `compile_cuda`; return also the log of compiler and assembler."""
    nvrtc = _nvrtc()
    try:
        version = ".".join(map(str, nvrtc.getVersion()))
        known = nvrtc.getSupportedArchs()
        if int(re.sub(r"\D", "", arch)) not in known:
            raise CudaError(
                f"NVRTC {version} does not compile for {arch}; use one of"
                f" {', '.join(f'sm_{x}' for x in known)}. For GPUs before sm_75,"
                " install cupy-cuda12x"
            )
        headers = sources(name).copy()
        text = headers.pop(name)
        program = nvrtc.createProgram(
            text,
            name,
            tuple(x.encode() for x in headers.values()),
            tuple(x.encode() for x in headers),
        )
    except CudaError:
        raise
    except Exception as error:  # CuPy raises several kinds when it finds no library
        raise CudaError(f"NVRTC cannot be loaded ({error}). Use {EXTRA}") from error
    try:
        nvrtc.compileProgram(program, (f"-arch={arch}", *OPTIONS, *options))
        # CuPy leaves out the last byte.
        return bytes(nvrtc.getCUBIN(program)) + b"\0", nvrtc.getProgramLog(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise CudaError(
            f"cannot compile {name} {' '.join(options)} for {arch}: {error}\n{log}"
        ) from error
    finally:
        nvrtc.destroyProgram(program)


# -- what the assembler made of it -----------------------------------------------------


@cache
def disassemblers() -> tuple[str, ...]:
    """Return the paths of nvdisasm: of NVIDIA's wheel, then of a toolkit."""
    try:
        roots = list(importlib.import_module("nvidia").__path__)
    except ImportError:
        roots = []
    found = [str(path) for root in roots for path in Path(root).glob("*/bin/nvdisasm")]
    found.append(shutil.which("nvdisasm") or "")
    return tuple(path for path in found if os.access(path, os.X_OK))


def opcodes(cubin: bytes) -> dict[str, int] | None:
    """How often each instruction occurs; None without a disassembler that can tell."""
    with tempfile.TemporaryDirectory(prefix="tf32dtype-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        for program in disassemblers():
            done = subprocess.run([program, "-c", path], capture_output=True, text=True)
            if done.returncode == 0:
                lines = r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Za-z0-9_.]*)"
                return dict(sorted(Counter(re.findall(lines, done.stdout)).items()))
    return None
