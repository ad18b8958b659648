"""Read-only memory: a write raises an error, or goes to a copy.

A write to a file that is mapped read-only ends the process. Therefore each export of
the package is tried in another process, for each kind of read-only memory.
"""

from __future__ import annotations

import hashlib
import mmap
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tf32dtype._base import mapping

pytestmark = pytest.mark.once

#: Arrays of read-only memory by name. The program skips a line whose library is
#: missing.
SOURCES = {
    "safetensors": "td.safetensors.load('a.safetensors')['w']",
    "safetensors, open": "td.safetensors.open('a.safetensors')['w'][1:]",
    "safetensors, float32": "td.safetensors.load('a.safetensors')['x']",
    "safetensors, codes": "td.safetensors.load('a.safetensors', blocks=True)['t']"
    ".elements.view(np.uint8)",
    "safetensors, blocks": "td.safetensors.load('a.safetensors', blocks=True)['b']"
    ".codes",
    "gguf": "td.interop.gguf.load('a.gguf')['w']",
    "npy": "td.load('a.npy', mmap_mode='r')",
    "memmap": "np.load('x.npy', mmap_mode='r')",
    "map": "np.frombuffer(mmap.mmap(stream.fileno(), 0, access=1), 'f4')",
    "bytes": "np.frombuffer(bytes(4096), np.float32)",
    "bytes, viewed": "np.frombuffer(memoryview(bytes(4096)), 'u2').view(td.bf16)[1:]",
    "flag": "frozen(np.ones(512, td.bf16))",
    "broadcast": "np.broadcast_to(np.float32(1), 512)",
    "npz": "frozen(td.load('a.npz')['w'])",
    "hdf5": "frozen(td.hdf5.load('a.h5')['w'])",
    "onnx": "td.interop.onnx.to_array(td.interop.onnx.from_array(np.ones(9, 'f4')))",
    "arrow": "td.interop.arrow.from_arrow(td.interop.arrow.to_arrow("
    "np.ones(9, td.bf16)))",
    "arrow, mapped": "td.interop.arrow.from_arrow(importlib.import_module('pyarrow')"
    ".ipc.open_file(importlib.import_module('pyarrow').memory_map('a.arrow'))"
    ".read_all()['w'].chunk(0))",
    "jax": "td.from_dlpack(jax.numpy.ones(9))",
}
#: Exports that end with a write, by library.
WAYS = {
    "numpy": [
        "a[...] = 2",
        "np.add(a, a, out=a)",
        "td.quantize(np.ones(a.shape, 'f4'), a.dtype, out=a)",
        "memoryview(a.view(f'u{a.itemsize}'))[0] = 1",
        "np.frombuffer(a.view(f'u{a.itemsize}'), np.uint8)[...] = 1",
        "np.from_dlpack(td.to_dlpack(a))[...] = 2",
        "td.from_dlpack(td.to_dlpack(a))[...] = 2",
        "td.from_dlpack(td.to_dlpack(a).__dlpack__())[...] = 2",
        "np.asarray(a)[...] = 2",
        "a.view(np.uint8)[...] = 2",
        "np.ctypeslib.as_ctypes(a)[0] = 2",
        "td.interop.arrow.from_arrow(td.interop.arrow.to_arrow(a))[...] = 2",
    ],
    "torch": [
        "tt.from_numpy(a).mul_(2)",
        "torch.nn.Parameter(tt.from_numpy(a).float()).data.mul_(2)",
        "torch.from_dlpack(td.to_dlpack(a)).mul_(2)",
        "tt.from_numpy(a, copy=True).mul_(2)",
        "torch.from_dlpack(td.to_dlpack(a), copy=True).mul_(2)",
    ],
    "numba": ["numba.njit(lambda x: x.fill(0))(a)"],
    "jax": [
        "jax.jit(lambda x: x * 2, donate_argnums=0)(jax.numpy.from_dlpack("
        "td.to_dlpack(a))).block_until_ready()",
    ],
}  # fmt: skip
PROGRAM = """
import importlib, mmap, sys, warnings
import numpy as np, tf32dtype as td
warnings.simplefilter("ignore")
for name in ("torch", "jax", "numba"):
    try:
        globals()[name] = importlib.import_module(name) if name in sys.argv else None
    except ImportError:
        print("missing")
        sys.exit()
if torch:
    from tf32dtype.interop import torch as tt
def frozen(a):
    a.flags.writeable = False
    return a
stream = open("x.npy", "rb")
for name, source in SOURCES.items():
    try:
        a = eval(source)
    except (ImportError, FileNotFoundError, AttributeError):
        continue  # the library is missing
    assert not a.flags.writeable, name
    for way in WAYS:
        print(name, "|", way, flush=True)
        try:
            exec(way, globals(), {"a": a})
            print("is done", flush=True)
        except BaseException as error:
            print(type(error).__name__, flush=True)
print("end")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read_only")
    x = np.ones(2048, np.float32)
    w = x.astype(td.bf16)
    td.safetensors.save(
        folder / "a.safetensors",
        {
            "w": w,
            "x": x,
            "t": td.blocks.quantize_tiles(x.reshape(16, 128)),
            "b": td.blocks.quantize(x, "mxfp4"),
        },
    )
    np.save(folder / "x.npy", x)
    td.save(folder / "a.npy", w)
    td.savez(folder / "a.npz", w=w)
    with suppress(ImportError, AttributeError):
        td.hdf5.save(folder / "a.h5", {"w": w})
    with suppress(ImportError):
        import pyarrow as pa

        table = pa.table({"w": td.interop.arrow.to_arrow(w)})
        with pa.ipc.new_file(str(folder / "a.arrow"), table.schema) as writer:
            writer.write_table(table)
    try:
        import gguf
    except ImportError:
        return folder
    writer = gguf.GGUFWriter(str(folder / "a.gguf"), "llama")
    writer.add_tensor("w", x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
    }


@pytest.mark.parametrize("library", WAYS)
def test_a_write_is_refused_or_safe(library: str, folder: Path) -> None:
    before = digests(folder)
    code = f"SOURCES = {SOURCES!r}\nWAYS = {WAYS[library]!r}\n" + PROGRAM
    done = forks.python("-c", code, library, cwd=folder)
    assert digests(folder) == before
    if done.stdout == "missing\n":
        pytest.skip(f"needs {library}")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr)
    assert lines[-1] == "end"
    if library in ("numpy", "numba"):
        assert "is done" not in lines, done.stdout


TRAINED = """
import warnings, torch, tf32dtype as td
from tf32dtype.interop import torch as tt
warnings.simplefilter("ignore")
array = td.safetensors.load("a.safetensors")["w"]
weight = torch.nn.Parameter(tt.from_numpy(array))
with torch.no_grad():
    weight.mul_(2)
print((array == 2).all(), (td.safetensors.load("a.safetensors")["w"] == 1).all())
"""


def test_a_checkpoint_is_a_tensor_that_can_be_trained(folder: Path) -> None:
    pytest.importorskip("torch")
    assert forks.run("-c", TRAINED, cwd=folder) == "True True"


def test_what_is_protected(folder: Path) -> None:
    with open(folder / "x.npy", "rb") as stream:
        size = stream.seek(0, 2)
        ours = mapping.map_file(stream.fileno(), size)
        theirs = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
    with pytest.raises(ValueError, match="WRITEABLE"):
        ours.flags.writeable = True
    assert not mapping.is_protected(ours[4:].view("u2"))
    assert isinstance(mapping.exporter(ours[4:].view("u2")), mmap.mmap)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert not mapping.is_protected(frozen)
    for array in (np.frombuffer(theirs, "u1"), np.frombuffer(b"abc", "u1")[1:]):
        assert mapping.is_protected(array)
        assert not mapping.is_protected(array.copy())


def test_files_larger_than_memory_can_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(1 << 43)
    with path.open("rb") as stream:
        array = mapping.map_file(stream.fileno(), 1 << 43)
    assert array[-1] == 0
