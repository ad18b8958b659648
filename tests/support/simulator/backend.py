"""Run tf32dtype.cuda without a GPU.

CuPy arrays are in the host's memory. g++ and simt.h compile the kernels, and NumPy's
functions replace CuPy's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import inspect
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np
import pytest

import tf32dtype as td
from tests.support.paths import SRC
from tf32dtype._base import nvrtc

try:
    HAS_GPU = cupy.cuda.runtime.getDeviceCount() > 0
except cupy.cuda.runtime.CUDARuntimeError:
    HAS_GPU = False

with pytest.MonkeyPatch.context() as patch:
    if not HAS_GPU:
        patch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 1)
    import tf32dtype.cuda as tfc
    from tf32dtype.cuda._runtime.backend import (
        Kernel,
        View,
        check_aligned,
        check_elements,
        parameters,
        three,
    )

HERE = Path(__file__).parent
CACHE = Path(tempfile.gettempdir()) / f"tf32dtype-simt-{os.getuid()}"
#: Calls after which threads wait for each other. A kernel without such calls runs
#: thread by thread.
MEETS = re.compile(r"__sync|__shfl|__ballot|__any_|__all_|simt_|mma")
KERNELS = re.compile(r"__global__\s+void\s+(?:__\w+\(.*?\)\s+)?(\w+)\(")
FLAGS = (
    "-std=c++17 -O2 -march=native -ffp-contract=off -fno-math-errno -shared -fPIC"
    " -Wno-unknown-pragmas -U_FORTIFY_SOURCE"
).split()


def allocate(size: int) -> Any:
    """Allocate memory of the host for CuPy."""
    # The bytes are poisoned. A margin on both sides shows writes out of range.
    buffer = np.full(size + 512, 0xA5, np.uint8)
    start = -buffer.ctypes.data % 256
    memory = cupy.cuda.UnownedMemory(
        buffer.ctypes.data + start, max(size, 1), buffer, 0
    )
    return cupy.cuda.MemoryPointer(memory, 0)


class _Memory:
    def __init__(self, x: Any) -> None:
        self.owner = x
        self.__array_interface__ = {
            "version": 3,
            "data": (x.data.ptr, False),
            "shape": x.shape,
            "strides": x.strides,
            "typestr": f"|V{x.dtype.itemsize}",
        }


def numpy_view(x: Any) -> np.ndarray[Any, Any]:
    """Return the memory of a CuPy array on the host as a NumPy array of its dtype."""
    return np.asarray(_Memory(x)).view(x.dtype)


#: A fault can be put where a line has this anchor at its end, or on a line above it.
#: Semicolons separate several names.
ANCHOR = re.compile(r"[ \t]*/\* mutant: (.*?) \*/")
#: As the `before` of a fault: the whole line that has the anchor.
LINE = ""


def _names(anchor: re.Match[str]) -> list[str]:
    return anchor[1].split("; ")


@cache
def _anchors(*folders: Path) -> dict[str, str]:
    """Return the file of each anchor, relative to its folder."""
    found: dict[str, str] = {}
    paths = [(x, path) for x in folders for path in sorted(x.rglob("*"))]
    for folder, path in paths:
        if path.suffix not in (".cu", ".h"):
            continue
        file = path.relative_to(folder).as_posix()
        for anchor in ANCHOR.finditer(path.read_text()):
            for name in _names(anchor):
                assert name not in found, f"{name!r}: in {found[name]} and in {file}"
                found[name] = file
    return found


class Fault(NamedTuple):
    """Change the line that has an anchor, or code that begins in this line."""

    name: str
    before: str
    after: str

    def __call__(self, text: str) -> str:
        lines = text.split("\n")
        (at,) = (
            i
            for i, line in enumerate(lines)
            for anchor in ANCHOR.finditer(line)
            if self.name in _names(anchor)
        )
        if not ANCHOR.sub("", lines[at]).strip(" \\"):  # the anchor is on a line above
            at += 1
        end = at + 1 + self.before.count("\n")
        here = ANCHOR.sub("", "\n".join(lines[at:end]))
        if self.before != LINE:
            assert here.count(self.before) == 1, f"{self.name}: {here.strip()!r}"
        changed = here.replace(self.before or here, self.after)
        return "\n".join([*lines[:at], changed, *lines[end:]])


def library(
    file: str, options: tuple[str, ...], faults: tuple[tuple[str, Fault], ...] = ()
) -> Any:
    """Return a kernel file and its kernels' launchers, compiled for the CPU.

    `faults` are pairs of a source's name, which is the file or one of its includes, and
    a fault to put into the source.
    """
    texts = dict(nvrtc.sources(file))
    for name, fault in faults:
        texts[name] = fault(texts[name])
    kernels = KERNELS.findall(texts[file])
    fibrous = int(any(MEETS.search(text) for text in texts.values()))
    tensor = {"cuda/common/async_copy.h", "cuda/matmul/mma.h"} & set(texts)
    lines = ['#include "simt.h"', *['#include "simt_mma.h"'] * bool(tensor)]
    lines += ['#include "simt_hopper.h"'] * ("cuda/common/hopper.h" in texts)
    lines.append(f'#include "{file}"')
    lines += [
        f'extern "C" const char *launch_{name}(void **given, const unsigned *extents)'
        f"{{ return simt::launch({name}, given, extents, {fibrous}); }}"
        for name in kernels
    ]
    simt = (HERE / "simt.h").read_text()
    key = hashlib.sha256(repr((texts, lines, options, FLAGS, simt)).encode())
    for header in sorted(HERE.glob("simt_*.h")):
        key.update(header.read_bytes())
    if tensor:
        key.update((SRC / "tensor_core/mma_model.h").read_bytes())
    path = CACHE / f"{Path(file).stem}-{key.hexdigest()[:16]}.so"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                if name not in nvrtc.BUILTIN:
                    path_of = Path(folder) / name
                    path_of.parent.mkdir(parents=True, exist_ok=True)
                    path_of.write_text(text)
            main = Path(folder) / "main.cpp"
            main.write_text("\n".join(lines) + "\n")
            made = Path(folder) / "kernel.so"
            command = ["g++", *FLAGS, "-DSIMT", *options]
            command += [f"-I{x}" for x in (folder, HERE, SRC)]
            command += [str(main), "-o", str(made)]
            plain = {n: x for n, x in os.environ.items() if n != "LD_PRELOAD"}
            done = subprocess.run(command, capture_output=True, text=True, env=plain)
            assert done.returncode == 0, done.stderr[:4000]
            shutil.copy(made, path.with_suffix(f".{os.getpid()}"))
            os.replace(path.with_suffix(f".{os.getpid()}"), path)
    return ctypes.CDLL(str(path))


def _check_call(function: str, arguments: Any, keywords: Any) -> None:
    """Reject arguments that NumPy's function takes and CuPy's of that name does not."""
    found: Any = cupy
    for name in function.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise TypeError(f"CuPy has no {function}: Device.call")
    if isinstance(found, cupy.ufunc):
        other = set(keywords) - {"out", "dtype", "casting"}
        if other:
            raise TypeError(f"{function} of CuPy takes no {', '.join(other)}")
    elif inspect.isfunction(found):
        inspect.signature(found).bind(*arguments, **keywords)
    if function in ("where", "choose"):  # of which CuPy takes no lists or numbers
        assert isinstance(arguments[0 if function == "where" else 1], cupy.ndarray)


class KernelError(Exception):
    """Report a fault that simt.h has found in a kernel."""


class Host:
    """Compute on the host. `counts` has the calls of launch, call, get and put."""

    def __init__(self, arch: str = "sm_90a", gemm_device: str = "H100") -> None:
        self.arch = arch
        self.gemm_device = gemm_device  # the device whose model gemm uses
        self.counts: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self.descends = False
        self._libraries: dict[Any, Any] = {}

    def put_fault(self, name: str, before: str, after: str) -> None:
        """Change kernels whose sources have this anchor. `after` replaces `before`,
        which begins in that line, or replaces the whole LINE."""
        assert name in self._anchors(), f"no line has the anchor of {name!r}"
        self.faults.append(Fault(name, before, after))

    def _anchors(self) -> dict[str, str]:
        return _anchors(*nvrtc.FOLDERS)

    def _faults(self, file: str) -> tuple[tuple[str, Fault], ...]:
        """Return the faults in the sources of a kernel file, with the source's name."""
        texts = nvrtc.sources(file) if self.faults else {}
        placed = ((self._anchors()[fault.name], fault) for fault in self.faults)
        return tuple((name, fault) for name, fault in placed if name in texts)

    def architecture(self) -> str:
        return self.arch

    def processors(self) -> int:
        return 2

    def name(self) -> str:
        return "the host"

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
    ) -> None:
        check_aligned(arguments)
        self.counts["launch"] += 1
        faults = self._faults(kernel.file)
        key = kernel.file, kernel.options, faults
        if key not in self._libraries:
            self._libraries[key] = library(kernel.file, kernel.options, faults)
        found = self._libraries[key]
        with contextlib.suppress(ValueError):  # a kernel without tensor cores
            unit = ctypes.c_int.in_dll(found, "simt_architecture")
            unit.value = int(re.sub(r"\D", "", self.arch))
        function = found[f"launch_{kernel.name}"]
        function.restype = ctypes.c_char_p
        assert np.prod(block, dtype=int) <= 1024
        assert 0 < three(grid)[0] < 1 << 31
        assert all(0 < extent < 1 << 16 for extent in three(grid)[1:])
        assert shared <= 227 << 10
        extents = np.array(
            [*three(grid), *three(block), shared, self.descends], np.uint32
        )
        pointers, values = parameters(arguments)
        error = function(
            ctypes.c_void_p(pointers.ctypes.data), ctypes.c_void_p(extents.ctypes.data)
        )
        del values
        if error:
            raise KernelError(f"{kernel.file}: {kernel.name}: {error.decode()}")

    def tensor_map(
        self,
        data: Any,
        size: int,
        extents: tuple[int, ...],
        strides: tuple[int, ...],
        box: tuple[int, ...],
        swizzled: bool,
    ) -> np.ndarray[Any, Any]:
        """Return a map for simt_hopper.h, checked as by cuTensorMapEncodeTiled."""
        rank = len(extents)
        assert len(strides) == rank - 1
        assert len(box) == rank
        assert 3 <= rank <= 4  # of at most 5
        assert data.data.ptr % 16 == 0
        assert all(0 < x <= 1 << 32 for x in extents)
        assert all(x % 16 == 0 and 0 < x < 1 << 40 for x in strides)
        for before, after in itertools.pairwise(strides):
            assert after % before == 0
        assert all(0 < x <= 256 for x in box)
        assert box[0] * size % 16 == 0
        assert not swizzled or box[0] * size <= 128
        assert size in (1, 2, 4)
        found = np.zeros(16, np.uint64)
        found[:4] = data.data.ptr, rank, size, swizzled
        found[4:8], found[11:15] = 1, 1
        found[4 : 4 + rank], found[8 : 7 + rank] = extents, strides
        found[11 : 11 + rank], found[15] = box, 0x8AFBA221E55C0DE5
        return found.view("V128")[0, ...]

    def call(self, function: str, *arguments: Any, **keywords: Any) -> Any:
        check_aligned((*arguments, *keywords.values()))
        self.counts["call"] += 1
        _check_call(function, arguments, keywords)
        found: Any = np
        for name in function.split("."):
            found = getattr(found, name)
        given = [self._to_numpy(x) for x in arguments]
        named = {name: self._to_numpy(x) for name, x in keywords.items()}
        with np.errstate(all="ignore"):  # a GPU has no warnings
            result = found(*given, **named)
        for x in (*arguments, *keywords.values()):  # a result in place, or in out=
            if isinstance(x, cupy.ndarray) and isinstance(result, np.ndarray):
                same = numpy_view(x)
                if (
                    result.ctypes.data == same.ctypes.data
                    and result.shape == same.shape
                    and result.strides == same.strides
                    and result.dtype == same.dtype
                ):
                    return x
        return self._to_cupy(result)

    def _to_numpy(self, x: Any) -> Any:
        if isinstance(x, cupy.ndarray | View):
            return numpy_view(x)
        if isinstance(x, tuple | list):
            return type(x)(self._to_numpy(y) for y in x)
        return x

    def _to_cupy(self, x: Any) -> Any:
        if isinstance(x, np.ndarray | np.generic):
            return self.put(np.asarray(x))
        if isinstance(x, tuple | list):
            return type(x)(self._to_cupy(y) for y in x)
        return x

    def get(self, x: Any) -> np.ndarray[Any, Any]:
        check_elements(x)
        self.counts["get"] += 1
        return numpy_view(x).copy()

    def put(self, x: np.ndarray[Any, Any], *, lasting: bool = False) -> Any:
        self.counts["put"] += 1
        y = cupy.ndarray(x.shape, x.dtype)
        numpy_view(y)[...] = x
        return y

    def gemm(
        self, a: Any, b: Any, c: Any, kind: str, alpha: float = 1, beta: float = 0
    ) -> None:
        """Multiply in one tensor-core chain over all k; float32 as NumPy."""
        check_aligned((a, b, c))
        self.counts["gemm"] += 1
        plain = {"float32": np.float32, "float64": np.float64}
        itemsize = {"bfloat16": 2, "float16": 2, "tf32": 4, "float32": 4, "float64": 8}[
            kind
        ]
        for x in (a, b):
            assert x.dtype.itemsize == itemsize
            assert x.dtype.kind == ("u" if kind == "bfloat16" else x.dtype.kind)
            assert _is_close(x, -1) or _is_close(x, -2), (x.shape, x.strides)
        assert c.dtype == (np.float64 if kind == "float64" else np.float32)
        assert _is_close(c, -1), (c.shape, c.strides)
        x, y, z = (numpy_view(operand) for operand in (a, b, c))
        assert c.shape == (*a.shape[:-1], b.shape[-1])
        assert a.shape[:-2] == b.shape[:-2]
        assert a.shape[-1] == b.shape[-2]
        with np.errstate(all="ignore"):
            if kind in plain:
                # BLAS may sum in another order if a matrix is transposed.
                x, y = (np.ascontiguousarray(z.view(plain[kind])) for z in (x, y))
                sums = np.matmul(x, y)
            else:
                formats = {"bfloat16": td.bfloat16, "float16": np.float16}
                dtype = formats.get(kind, td.tf32)
                x, y = x.view(dtype), y.view(dtype)
                sums = td.tensor_core.matmul(x, y, device=self.gemm_device)
            total = alpha * sums.astype(np.float64)
            if beta:  # with beta = 0, c is not read and may hold anything
                total += beta * z.astype(np.float64)
            z[...] = total


def _is_close(x: Any, axis: int) -> bool:
    """Return whether a matrix is contiguous along an axis, as BLAS needs it."""
    other = -3 - axis
    extent, ld = x.shape[axis], x.strides[other]
    return (x.strides[axis] == x.itemsize or extent == 1) and (
        ld >= extent * x.itemsize or x.shape[other] == 1
    )


__all__ = ["HAS_GPU", "Host", "KernelError", "allocate", "library", "numpy_view", "tfc"]
