"""Messages of files, of conversions to other libraries and of their arrays."""

import io
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.gguf_bytes import ARRAY, MANY, MXFP4, TEXT, key, tensor, text, whole
from tf32dtype._files import file_kinds
from tf32dtype._files.gguf import reading as gguf
from tf32dtype._files.readers import open_file
from tf32dtype._files.safetensors import header, schemes
from tf32dtype._programs import source_folders

from .shape import faults, provoke

ONES = np.ones((2, 2), np.float32)
MASKED = np.ma.masked_invalid([1.0])
U8 = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
INDEX = "model.safetensors.index.json"
NPY = io.BytesIO()
np.save(NPY, np.ones(9))

#: The package that is needed by rows whose name begins so.
NEEDS = {
    "arrow": "pyarrow",
    "dask": "dask.array",
    "hdf5": "h5py",
    "ml_dtypes": "ml_dtypes",
    "onnx": "onnx",
    "torch": "torch",
    "zarr": "zarr",
}


def file(data: bytes, name: str = "a.bin") -> str:
    """Write a file to the current folder, and return its name."""
    Path(name).write_bytes(data)
    return name


def framed(head: bytes, data: bytes = b"", length: int | None = None) -> str:
    """Write a safetensors file with this header."""
    size = len(head) if length is None else length
    return file(struct.pack("<Q", size) + head + data)


def load(table: Any, data: bytes = b"1") -> Any:
    """Load a safetensors file with this header."""
    return td.safetensors.load(framed(json.dumps(table).encode(), data))


def load_index(index: Any) -> Any:
    """Load a checkpoint of an index and one file."""
    td.safetensors.save("s.safetensors", {"a": ONES})
    return td.safetensors.load(file(json.dumps(index).encode(), INDEX))


def load_gguf(*args: Any, **options: Any) -> Any:
    """Load a GGUF file."""
    return gguf.load(file(whole(*args, **options)))


def npy(old: bytes, new: bytes) -> Any:
    """Load a `.npy` file with a changed header."""
    return td.load(file(NPY.getvalue().replace(old, new)))


def save(tensors: Any, **options: Any) -> Any:
    """Save a safetensors file."""
    return td.safetensors.save("a.safetensors", tensors, **options)


def dask() -> Any:
    """Return dask's functions."""
    return td.interop.dask


def hdf5(call: Callable[[Any], Any]) -> Any:
    """Call with an HDF5 file that is open."""
    import h5py

    with h5py.File("a.h5", "w") as opened:
        return call(opened)


def with_attribute(opened: Any, value: Any) -> Any:
    """Read a dataset of bytes with an attribute of tf32dtype."""
    dataset = opened.create_dataset("a", data=np.zeros(3, np.uint8))
    dataset.attrs["tf32dtype"] = value
    return td.hdf5.read(dataset)


def onnx(**facts: Any) -> Any:
    """Convert a tensor of ONNX to an array."""
    from onnx import TensorProto

    return td.interop.onnx.to_array(TensorProto(name="w", **facts))


def torch() -> Any:
    """Return the functions for PyTorch."""
    return td.interop.torch


def torch_tensor(*args: Any, **options: Any) -> Any:
    """Return a tensor of PyTorch."""
    import torch

    return torch.ones(*args, **options)


Q = td.blocks.quantize
T = td.blocks.quantize_tiles
WIDE = np.ones((4, 80))

CASES: dict[str, Callable[[], object]] = {
    # Headers of safetensors files.
    "header.empty": lambda: td.safetensors.load(file(b"")),
    "header.short": lambda: td.safetensors.load(framed(b"{}", length=3)),
    "header.long": lambda: td.safetensors.load(framed(b"{}", length=2**62)),
    "header.utf8": lambda: td.safetensors.load(framed(b'{"\xff": 1}')),
    "header.json": lambda: td.safetensors.load(framed(b'{"a"')),
    "header.nested": lambda: td.safetensors.load(framed(b"[" * 100_000)),
    "header.nan": lambda: td.safetensors.load(framed(b'{"a": NaN}')),
    "header.twice": lambda: td.safetensors.load(framed(b'{"a": {}, "a": {}}')),
    "header.list": lambda: load([]),
    "header.entry": lambda: load({"a": 3}),
    "header.no_dtype": lambda: load({"a": {"shape": []}}),
    "header.dtype": lambda: load({"a": {**U8, "dtype": "F5"}}),
    "header.no_list": lambda: load({"a": {**U8, "shape": 1}}),
    "header.shape": lambda: load({"a": {**U8, "shape": [-1]}}),
    "header.axes": lambda: load({"a": {**U8, "shape": [1] * 65}}),
    "header.huge": lambda: load({"a": {**U8, "shape": [2**32, 2**32]}}),
    "header.packed": lambda: load({"a": {**U8, "dtype": "F4"}}),
    "header.offsets": lambda: load({"a": {**U8, "data_offsets": [0, 1.0]}}),
    "header.size": lambda: load({"a": {**U8, "data_offsets": [0, 2]}}),
    "header.end": lambda: load({"a": U8}, b""),
    "header.more": lambda: load({"a": U8}, b"123"),
    "header.overlap": lambda: load({"a": U8, "b": U8}),
    "header.hole": lambda: load({"a": {**U8, "data_offsets": [1, 2]}}, b"12"),
    "header.surrogate": lambda: load({"\ud800": U8}),
    "header.metadata": lambda: load({"__metadata__": []}),
    "header.formats": lambda: load({"__metadata__": {"tf32dtype.formats": "{"}}, b""),
    "header.foreign": lambda: td.safetensors.load(file(NPY.getvalue())),
    "header.archive": lambda: td.safetensors.load(file(b"PK\3\4" + bytes(99))),
    "header.gzip": lambda: td.safetensors.load(file(b"\x1f\x8b" + bytes(99))),
    "header.write_name": lambda: header.write([("__metadata__", "U8", (1,))]),
    "header.write_twice": lambda: header.write([("a", "U8", (1,))] * 2),
    "header.write_dtype": lambda: header.write([("a", "F5", (1,))]),
    # Safetensors files.
    "save.tensors": lambda: save([ONES]),
    "save.name": lambda: save({3: ONES}),
    "save.dtype": lambda: save({"a": np.ones(2, complex)}),
    "save.mask": lambda: save({"a": MASKED}),
    "save.metadata": lambda: save({"a": ONES}, metadata="a"),
    "save.metadata_value": lambda: save({"a": ONES}, metadata={"a": 3}),
    "save.metadata_unicode": lambda: save({"a": ONES}, metadata={"a": "\ud800"}),
    "save.max_shard_size": lambda: save({"a": ONES}, max_shard_size="5XB"),
    "save.other_kind": lambda: td.safetensors.save("a.npy", {"a": ONES}),
    "save.scheme": lambda: save({"a": ONES}, scheme="deepsea"),
    "save.format": lambda: save({"a": Q(WIDE, "tcfp8")}, scheme="vllm"),
    "save.last_axis": lambda: save({"a": Q(WIDE, "mxfp4")}, scheme="vllm"),
    "save.axis": lambda: save({"a": Q(WIDE, "mxfp4", 0)}, scheme="vllm"),
    "save.tiles": lambda: save({"a": T(WIDE, tile=(2, 2))}, scheme="deepseek"),
    "save.torchao": lambda: save({"a": T(WIDE)}, scheme="torchao"),
    "save.parts": lambda: save({"a": Q(WIDE, "mxfp4"), "a.codes": ONES}),
    "schemes.scale_format": lambda: schemes.tensors_of(
        "a", Q(WIDE, "nvfp4", scale_format="float8_e8m0fnu"), "vllm"
    ),
    "load.path": lambda: td.safetensors.load(b"a"),  # type: ignore[arg-type]
    "load.folder": lambda: td.safetensors.load("."),
    "load.several": lambda: (
        td.safetensors.save("a.safetensors", {}),
        td.safetensors.save("b.safetensors", {}),
        td.safetensors.load("."),
    ),
    "load.name": lambda: (
        save({"layer.weight": ONES}),
        td.safetensors.load("a.safetensors", names="layer.wait"),
    ),
    "load.names": lambda: (
        save({"a": ONES}),
        td.safetensors.load("a.safetensors", names=3),  # type: ignore[arg-type]
    ),
    "load.names_of": lambda: (
        save({"a": ONES}),
        td.safetensors.load("a.safetensors", names=[3]),  # type: ignore[list-item]
    ),
    "index.no_map": lambda: load_index({}),
    "index.no_file": lambda: load_index({"weight_map": {"a": 1}}),
    "index.outside": lambda: load_index({"weight_map": {"a": "../s.safetensors"}}),
    "index.missing": lambda: load_index({"weight_map": {"a": "t.safetensors"}}),
    "index.without": lambda: load_index({"weight_map": {"b": "s.safetensors"}}),
    # Files of NumPy, and of other kinds.
    "npy.empty": lambda: td.load(file(b"")),
    "npy.text": lambda: td.load(file(b"1,2,3\n")),
    "npy.image": lambda: td.load(file(b"\x89PNG\r\n\x1a\n" + bytes(99))),
    "npy.pickle": lambda: td.load(file(pickle.dumps({"a": 1}))),
    "npy.hdf5": lambda: td.load(file(b"\x89HDF\r\n\x1a\n" + bytes(99))),
    "npy.header": lambda: npy(b"{", b"("),
    "npy.shape": lambda: npy(b"(9,)", b"(-9,)"),
    "npy.short": lambda: npy(b"(9,)", b"(99,)"),
    "npy.objects": lambda: npy(b"'<f8'", b"'|O' "),
    "npy.archive": lambda: td.load(file(b"PK\3\4" + bytes(99))),
    "npy.other_kind": lambda: td.save("a.safetensors", ONES),
    "npy.naming": lambda: _naming(EOFError()),
    "tensors.empty": lambda: open_file(file(b"")),
    "tensors.text": lambda: open_file(file(b"1,2,3\n")),
    "tensors.folder": lambda: open_file("."),
    "source.package": lambda: source_folders.set_folders(["no_such_package"]),
    # Files of GGUF.
    "gguf.empty": lambda: gguf.load(file(b"")),
    "gguf.magic": lambda: load_gguf(magic=b"GGML"),
    "gguf.version": lambda: load_gguf(version=1),
    "gguf.order": lambda: load_gguf(version=3 << 24),
    "gguf.end": lambda: load_gguf(keys=(text(b"k", MANY),), counts=(0, 1)),
    "gguf.utf8": lambda: load_gguf(keys=(key(b"\xff", 0, b"1"),)),
    "gguf.type": lambda: load_gguf(keys=(key(b"k", 13, b""),)),
    "gguf.array": lambda: load_gguf(
        keys=(key(b"k", ARRAY, struct.pack("<IQ", ARRAY, 1)),)
    ),
    "gguf.key": lambda: load_gguf(keys=(key(b"k", 0, b"1"),) * 2),
    "gguf.alignment": lambda: load_gguf(
        keys=(key(b"general.alignment", TEXT, text(b"32")),)
    ),
    "gguf.axes": lambda: load_gguf((tensor(dims=(1,) * 5),)),
    "gguf.shape": lambda: load_gguf((tensor(dims=(0, MANY)),)),
    "gguf.size": lambda: load_gguf((tensor(dims=(5,)),)),
    "gguf.offset": lambda: load_gguf((tensor(offset=8),)),
    "gguf.tensor": lambda: load_gguf((tensor(), tensor())),
    "gguf.overlap": lambda: load_gguf((tensor(), tensor(b"v"))),
    "gguf.rows": lambda: load_gguf((tensor(dims=(48,), kind=MXFP4),)),
    "gguf.name": lambda: gguf.load(file(whole((tensor(),))), names="x"),
    # Exchange of arrays.
    "dlpack.x": lambda: td.from_dlpack(3),
    "dlpack.device": lambda: td.from_dlpack(ONES, device="gpu"),  # type: ignore[arg-type]
    "dlpack.mask": lambda: td.to_dlpack(MASKED),
    "dlpack.tf32": lambda: td.to_dlpack(np.ones(2, td.tf32)),
    "dlpack.order": lambda: td.to_dlpack(np.ones(2, ">f4")),
    "dlpack.dtype": lambda: td.to_dlpack(np.array([None])),
    "dlpack.stream": lambda: td.to_dlpack(ONES).__dlpack__(stream=1),
    "dlpack.dl_device": lambda: td.to_dlpack(ONES).__dlpack__(dl_device=(2, 0)),
    "dlpack.bytes": lambda: td.to_dlpack(np.frombuffer(b"1234", "u1")).__dlpack__(),
    "dlpack.read_only": lambda: td.to_dlpack(
        np.broadcast_to(ONES, (3, 2, 2))
    ).__dlpack__(),
    "dlpack.old": lambda: td.to_dlpack(np.ones(2, td.float4_e2m1fn)).__dlpack__(),
    "ml_dtypes.tf32": lambda: td.as_ml_dtypes(np.ones(2, td.tf32)),
    "arrow.scalar": lambda: td.interop.arrow.to_arrow(td.bfloat16(1)),
    "arrow.array": lambda: td.interop.arrow.from_arrow(ONES),
    "onnx.tensor": lambda: td.interop.onnx.to_array(ONES),
    "onnx.dtype": lambda: td.interop.onnx.from_array(np.ones(2, td.tf32)),
    "onnx.dims": lambda: onnx(data_type=1, dims=(-1,)),
    "onnx.type": lambda: onnx(data_type=999, dims=(1,)),
    "onnx.raw_data": lambda: onnx(data_type=16, dims=(2,), raw_data=b"123"),
    "onnx.int32_data": lambda: onnx(data_type=17, dims=(1,), int32_data=[256]),
    "onnx.few": lambda: onnx(data_type=17, dims=(2,), int32_data=[1]),
    "onnx.bools": lambda: onnx(data_type=9, dims=(2,), raw_data=b"\1\2"),
    "hdf5.arrays": lambda: td.hdf5.save("b.h5", [ONES]),  # type: ignore[arg-type]
    "hdf5.name": lambda: td.hdf5.save("b.h5", {"a//b": ONES}),
    "hdf5.group": lambda: td.hdf5.write("b.h5", "a", ONES),
    "hdf5.dataset": lambda: td.hdf5.read("b.h5"),
    "hdf5.mask": lambda: hdf5(lambda f: td.hdf5.write(f, "a", MASKED)),
    "hdf5.dtype": lambda: hdf5(
        lambda f: td.hdf5.write(f, "a", Q(WIDE, "mxfp4"), dtype="f4")
    ),
    "hdf5.scaleoffset": lambda: hdf5(
        lambda f: td.hdf5.write(f, "a", np.ones(2, td.bfloat16), scaleoffset=2)
    ),
    "hdf5.fields": lambda: hdf5(
        lambda f: td.hdf5.write(f, "a", np.zeros(2, [("x", td.bfloat16)]))
    ),
    "hdf5.out": lambda: hdf5(
        lambda f: td.hdf5.read(td.hdf5.write(f, "a", ONES.astype(td.tf32)), out=ONES)
    ),
    "hdf5.format": lambda: hdf5(lambda f: with_attribute(f, "float9")),
    "hdf5.carrier": lambda: hdf5(lambda f: with_attribute(f, "tf32")),
    "hdf5.attribute": lambda: hdf5(lambda f: with_attribute(f, 3)),
    "zarr.fill_value": lambda: _fill_value("one"),
    "zarr.format": lambda: _zarr(zarr_format=2),
    "zarr.packbits": lambda: _zarr(
        serializer={"name": "packbits", "configuration": {"first_bit": -1}}
    ),
    "torch.model": lambda: torch().convert(3, "tcfp8"),
    "torch.skip": lambda: torch().convert(_module(), "tcfp8", skip="a"),
    "torch.x": lambda: torch().fake_quantize(ONES, "tcfp8"),
    "torch.dtype": lambda: torch().dequantize(Q(WIDE, "tcfp8"), None),
    "torch.integers": lambda: torch().fake_quantize(torch_tensor(2).int(), "tcfp8"),
    "torch.numpy": lambda: torch().to_numpy(ONES),
    "torch.gradient": lambda: torch().to_numpy(torch_tensor(2, requires_grad=True)),
    "torch.meta": lambda: torch().to_numpy(torch_tensor(2, device="meta")),
    "torch.array": lambda: torch().from_numpy([1.0]),
    "torch.mask": lambda: torch().from_numpy(MASKED),
    "torch.tf32": lambda: torch().from_numpy(np.ones(2, td.tf32)),
    "torch.pairs": lambda: torch().from_numpy(np.ones(2, td.float4_e2m1fn)),
    "torch.odd": lambda: torch().from_numpy(np.ones(3, td.float4_e2m1fn), copy=True),
    "torch.bytes": lambda: torch().from_numpy(np.frombuffer(b"1234", np.uint8)),
    "dask.shapes": lambda: dask().matmul(WIDE.astype("f4"), ONES, precision="bf16"),
    "dask.scalar": lambda: dask().matmul(ONES, np.float32(3), precision="bf16"),
    "dask.dtype": lambda: dask().matmul(ONES, ONES),
    "dask.order": lambda: dask().matmul(ONES, ONES, precision="bf16", order="x"),
    "dask.axes": lambda: dask().tensordot(ONES, ONES, 3, precision="bf16"),
    "dask.blocks": lambda: dask().from_blocks(ONES),
    "dask.scaled": lambda: dask().matmul(Q(WIDE, "mxfp4"), ONES),
    "dask.rng": lambda: dask().quantize(ONES, "mxfp4", rng=np.random.default_rng()),
}


def _naming(error: Exception) -> None:
    with file_kinds.naming("a.npy"):
        raise error


def _fill_value(value: Any) -> Any:
    from tf32dtype.interop import zarr

    return zarr.bfloat16().from_json_scalar(value, zarr_format=3)


def _zarr(**options: Any) -> Any:
    import zarr

    import tf32dtype.interop.zarr  # noqa: F401  # registers the types

    given = {"shape": 3, "dtype": "float4_e2m1fn", **options}
    if given.get("zarr_format") == 2:
        given["dtype"] = np.dtype(td.bfloat16)
    return zarr.create_array({}, **given)


def _module() -> Any:
    import torch

    return torch.nn.Linear(2, 2)


@pytest.mark.parametrize("name", CASES)
def test_messages_have_the_shape(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if package := NEEDS.get(name.partition(".")[0]):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    message = provoke(CASES[name])
    assert not faults(message), message
