"""Uses of CuPy on a GPU, checked as far as possible without a GPU."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import numpy as np
import pytest

from tests.support.cuda import cupy
from tests.support.paths import ROOT
from tf32dtype._base import nvrtc
from tf32dtype.cuda._runtime import device
from tf32dtype.cuda._runtime.backend import Kernel

FILES = [
    *sorted((ROOT / "tf32dtype").rglob("*.py")),
    *sorted((ROOT / "benchmarks" / "cuda").glob("*.py")),
]
#: Functions that call a function of CuPy by its name.
CALLERS = {"call", "partial"}


def dotted(node: ast.AST) -> list[str]:
    """Return the names of a.b.c as a list, or an empty list for other nodes."""
    if isinstance(node, ast.Name):
        return [node.id]
    before = dotted(node.value) if isinstance(node, ast.Attribute) else []
    return [*before, node.attr] if before else []


def called(node: ast.AST) -> list[str]:
    """Return the names that are passed to `backend.call` and similar functions."""
    if not isinstance(node, ast.Call):
        return []
    of = node.func
    name = getattr(of, "attr", None) or getattr(of, "id", "")
    texts = [x.value for x in node.args[:2] if isinstance(x, ast.Constant)]
    return [x for x in texts if isinstance(x, str)] if name in CALLERS else []


def names(path: Path) -> set[str]:
    """Return the names that a file uses from CuPy, without the prefix "cupy."."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        parts = dotted(node)
        if parts[:1] == ["cupy"] and len(parts) > 1:
            found.add(".".join(parts[1:]))
        found.update(called(node))
    return found


def test_names_are_cupys():
    found = set().union(*map(names, FILES))
    assert {"cuda.function.CPointer", "copyto", "ndarray.fill"} <= found
    for name in sorted(found):
        functools.reduce(getattr, name.split("."), cupy)


def test_machine_code_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(cupy.cuda.nvrtc, "getVersion", lambda: (13, 5))
    made = []

    def compile_cuda(file, options, arch):
        made.append((file, options, arch))
        return b"machine code of " + arch.encode()

    monkeypatch.setattr(nvrtc, "compile_cuda", compile_cuda)
    for arch in ("sm_80", "sm_90a", "sm_80"):
        expected = b"machine code of " + arch.encode()
        assert device.cubin("cuda/matmul/patch_specials.cu", (), arch) == expected
    assert [arch for *_, arch in made] == ["sm_80", "sm_90a"]
    assert len(list((tmp_path / "kernels").iterdir())) == 2
    monkeypatch.delenv("CUPY_CACHE_DIR")
    assert device.cache() == Path.home() / ".cupy" / "kernel_cache"


def on_device(number, size):
    memory = cupy.cuda.UnownedMemory(1 << 20, 64, None, number)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return cupy.ndarray((size,), np.uint8, memptr=pointer)


def test_arrays_of_another_device(monkeypatch):
    machine = device.Device()
    monkeypatch.setattr(machine, "_device", lambda: 0)
    monkeypatch.setattr(machine, "architecture", lambda: "sm_90a")
    monkeypatch.setattr(machine, "_bind", lambda device: None)
    kernel = Kernel("cuda/matmul/patch_specials.cu", "patch")
    here, there = on_device(0, 4), on_device(1, 4)
    with pytest.raises(
        ValueError, match=r"on device 1\. .* within cupy\.cuda\.Device\(1"
    ):
        machine.launch(kernel, (1,), (1,), here, there, np.int64(4))
    with pytest.raises(ValueError, match="on device 1"):
        machine.gemm(here, here, there, "float32")

    def compiled(file, options, arch):
        raise InterruptedError

    monkeypatch.setattr(device, "cubin", compiled)
    with pytest.raises(InterruptedError):  # the launch ends there without a GPU
        machine.launch(kernel, (1,), (1,), here, on_device(1, 0), None, np.int64(0))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
def test_put_keeps_shapes(monkeypatch, shape):
    given = []
    monkeypatch.setattr(
        cupy, "asarray", lambda x, blocking: given.append((x, blocking))
    )
    x = np.ones(shape, np.float32)
    device.Device().put(x.T, lasting=True)
    (put, blocking) = given[0]
    assert put.shape == shape[::-1]
    assert put.flags.c_contiguous
    assert blocking
