"""Readers of files for the fuzzer: one row each of `READERS`."""

from __future__ import annotations

import io
import struct
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tf32dtype as td
from tests.fuzz.mutations import Header
from tests.support.gguf_bytes import key, tensor, text, whole
from tf32dtype._files.gguf.header import KINDS

#: A valid file, or a folder of files: names and bytes.
Seed = dict[str, bytes]


class Reader(NamedTuple):
    """A reader of files, and valid files for it."""

    name: str
    #: small valid files of many kinds
    seeds: Callable[[], list[Seed]]
    #: reads the whole file, or the folder if seeds have several files, by `touch`
    read: Callable[[Path], None]
    #: finds the header, whose text describes the rest of the file: faults in a header
    #: get further than faults in the data
    header: Callable[[bytes], Header] | None = None
    #: exceptions that a damaged file may cause
    errors: tuple[type[Exception], ...] = (ValueError, OSError, EOFError)
    #: a library that the reader needs
    needs: str = "numpy"


def touch(array: Any) -> None:
    """Read all of an array, by loops that rely on the invariants of arrays."""
    if isinstance(array, td.blocks.BlockArray | td.blocks.TileArray):
        array.dequantize()
        return
    array = np.asanyarray(array)
    array.tobytes()
    if not array.size:  # allowed axes may be too large for float64
        return
    if array.dtype in OURS:
        array.astype(np.float64)
    elif array.dtype == np.bool_:
        array[array]
    elif array.dtype.kind in "iufc":
        array.sum()


OURS = {form.dtype for form in td.formats.values()}


def arrays() -> dict[str, np.ndarray]:
    """Return small arrays of every format and of NumPy's dtypes."""
    rng = np.random.default_rng(1)
    found = {
        name: rng.uniform(0.5, 4, (2, 4)).astype(form.dtype)
        for name, form in td.formats.items()
    }
    for code in "? i1 u2 f2 f4 f8 F i8".split():
        found[code] = rng.integers(0, 2, 5).astype(code)
    found["empty"] = np.zeros((3, 0), np.float32)
    found["scalar"] = np.asarray(np.float32(1))
    return found


def block_arrays() -> dict[str, td.blocks.BlockArray | td.blocks.TileArray]:
    x = np.random.default_rng(2).standard_normal((2, 32)).astype(np.float32)
    return {
        **{name: td.blocks.quantize(x, name) for name in ("mxfp4", "nvfp4", "tcfp12")},
        "tiles": td.blocks.quantize_tiles(x, tile=(1, 16)),
    }


def written(write: Callable[[Path], None], name: str) -> Seed:
    """Return the files that a function writes to a path or next to it."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


# -- .npy, .npz -------------------------------------------------------------


def npy_seeds() -> list[Seed]:
    found: list[Seed] = []
    several = {**arrays(), **block_arrays()}
    several["fields"] = np.zeros(3, "i4,f8")
    several["fortran"] = np.ones((3, 2), ">f4", order="F")
    several["ours"] = np.zeros(3, [("x", td.tf32, (2,)), ("n", "u1")])
    for name, array in several.items():
        stream = io.BytesIO()
        td.save(stream, array)
        found.append({"a.npy": stream.getvalue()})
        if name in td.formats:
            stream = io.BytesIO()
            td.save(stream, array, header="names")
            found.append({"a.npy": stream.getvalue()})
    return found


def npy_header(data: bytes) -> Header:
    (size,) = struct.unpack("<H", data[8:10])
    text, rest = data[10 : 10 + size], data[10 + size :]

    def put_back(new: bytes) -> bytes:
        new = new.strip() + b"\n"
        return data[:8] + struct.pack("<H", len(new) & 0xFFFF) + new + rest

    return text, put_back


def npz_seeds() -> list[Seed]:
    found = []
    for name, array in {**arrays(), **block_arrays()}.items():
        stream = io.BytesIO()
        td.savez(stream, array, second=np.ones(3, td.bfloat16))
        found.append({f"{len(name)}.npz": stream.getvalue()})
    stream = io.BytesIO()
    np.savez_compressed(stream, a=np.arange(5), b=np.ones(3))
    return [*found, {"c.npz": stream.getvalue()}]


def npz_header(data: bytes) -> Header:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    first = next(iter(members))
    text, put_back = npy_header(members[first])

    def put_back_all(new: bytes) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, member in members.items():
                archive.writestr(name, put_back(new) if name == first else member)
        return stream.getvalue()

    return text, put_back_all


def read_npy(path: Path) -> None:
    touch(td.load(path))


def map_npy(path: Path) -> None:
    touch(td.load(path, mmap_mode="r"))


def read_npz(path: Path) -> None:
    loaded = td.load(path)
    if not isinstance(loaded, Mapping):  # damage made it a .npy file
        touch(loaded)
        return
    with loaded as archive:
        for name in archive:
            touch(archive[name])


# -- safetensors ------------------------------------------------------------


def safetensors_seeds() -> list[Seed]:
    every = arrays()
    parts = [every, {}, {"a": every["bfloat16"], "b": every["float4_e2m1fn"]}]
    parts += [{name: every[name]} for name in ("tf32", "?", "f4", "empty", "scalar")]
    return [
        written(
            lambda path, part=part: td.safetensors.save(
                path, part, metadata={"a": "b"}
            ),
            "a.safetensors",
        )
        for part in parts
    ]


def sharded_seeds() -> list[Seed]:
    return [
        written(
            lambda path: td.safetensors.save(path, arrays(), max_shard_size=64),
            "model.safetensors",
        )
    ]


def safetensors_header(data: bytes) -> Header:
    if data[:1] == b"{":  # an index
        return data, lambda new: new
    size = int.from_bytes(data[:8], "little")
    text, rest = data[8 : 8 + size], data[8 + size :]
    return text, lambda new: len(new).to_bytes(8, "little") + new + rest


def read_safetensors(path: Path) -> None:
    for mmap in (True, False):
        for array in td.safetensors.load(path, mmap=mmap).values():
            touch(array)


def weight_seeds() -> list[Seed]:
    """Return weights with scales: all schemes, and all arrays of the package's own."""
    whole = block_arrays()
    x = whole["tiles"].dequantize()
    whole["tiles"] = td.blocks.quantize_tiles(x)
    some = [
        *(("tf32dtype", kind) for kind in whole),
        *(("vllm", kind) for kind in ("mxfp4", "nvfp4", "tiles")),
        *(("torchao", kind) for kind in ("mxfp4", "nvfp4", "tiles")),
        ("modelopt", "nvfp4"),
        ("gpt-oss", "mxfp4"),
        ("deepseek", "tiles"),
    ]
    return [
        written(
            lambda path, scheme=scheme, kind=kind: td.safetensors.save(
                path, {"a.w": whole[kind], "a.b": x}, scheme=scheme
            ),
            "a.safetensors",
        )
        for scheme, kind in some
    ]


def read_weights(path: Path) -> None:
    for mmap in (True, False):
        for array in td.safetensors.load(path, mmap=mmap, blocks=True).values():
            touch(array)


# -- HDF5 -------------------------------------------------------------------


def hdf5_seeds() -> list[Seed]:
    every: dict[str, Any] = {**arrays(), "scalar": 1.5, **block_arrays()}
    few = {name: every[name] for name in ("tf32", "bfloat16", "float8_e4m3", "mxfp4")}
    nested = {f"group/{name}": array for name, array in few.items()}
    checked = {"compression": "gzip", "shuffle": True, "fletcher32": True}
    return [
        written(
            lambda path, case=case: td.hdf5.save(path, case[0], **case[1]),
            "a.h5",
        )
        for case in ((every, {}), (nested, {}), (few, checked))
    ]


def read_hdf5(path: Path) -> None:
    for array in td.hdf5.load(path).values():
        touch(array)


# -- GGUF, ONNX -------------------------------------------------------------


def gguf_seeds() -> list[Seed]:
    """Return a file of each kind of numbers that is read, and of metadata values."""
    names = "F64 F32 F16 BF16 I64 I32 I16 I8 MXFP4 NVFP4 Q8_0 Q4_0".split()
    single = [
        whole((tensor(b"w", (2 * kind.block, 2), number),), data=4 * kind.size)
        for number, kind in KINDS.items()
        if kind.name in names
    ]
    values = {
        0: b"1",
        4: struct.pack("<I", 7),
        6: struct.pack("<f", 0.5),
        7: b"\1",
        8: text(b"text"),
        9: struct.pack("<IQ", 8, 2) + text(b"a") + text(b"bc"),
        12: struct.pack("<d", 0.5),
    }
    keys = [key(b"k%d" % kind, kind, value) for kind, value in values.items()]
    keys.append(key(b"n", 9, struct.pack("<IQ3i", 5, 3, 1, 2, 3)))
    keys.append(key(b"general.alignment", 4, struct.pack("<I", 32)))
    several = (tensor(), tensor(b"m", (64, 3), 39, 32), tensor(b"b", (4, 2), 30, 160))
    found = [*single, whole(several, tuple(keys), 176), whole((), tuple(keys))]
    return [{"a.gguf": data} for data in found]


def read_gguf(path: Path) -> None:
    with td.interop.gguf.open(path) as file:
        for name in file:
            touch(file.raw(name))
            touch(file[name])


def onnx_seeds() -> list[Seed]:
    from tf32dtype._files.onnx import from_array

    every = {k: a for k, a in arrays().items() if k not in NOT_IN_ONNX}
    return [
        {"a.pb": from_array(a, k).SerializeToString()} for k, a in every.items()
    ] + [{"a.pb": onnx_by_integers()}]


NOT_IN_ONNX = "tf32 float8_e4m3 float8_e3m4 float8_e4m3b11fnuz".split()


def onnx_by_integers() -> bytes:
    from onnx import TensorProto

    packed = TensorProto(name="w", dims=[3], data_type=23, int32_data=[0x21, 0x3])
    return packed.SerializeToString()


def read_onnx(path: Path) -> None:
    """Read one tensor; protobuf, which parses the bytes, is not under test."""
    from google.protobuf.message import DecodeError
    from onnx import TensorProto

    found = TensorProto()
    try:
        found.ParseFromString(path.read_bytes())
        array = td.interop.onnx.to_array(found, path.parent)
    except (ValueError, DecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    touch(array)


READERS = {
    row.name: row
    for row in (
        Reader("npy", npy_seeds, read_npy, npy_header),
        Reader("npy mapped", npy_seeds, map_npy, npy_header),
        Reader("npz", npz_seeds, read_npz, npz_header),
        Reader("safetensors", safetensors_seeds, read_safetensors, safetensors_header),
        Reader(
            "safetensors shards", sharded_seeds, read_safetensors, safetensors_header
        ),
        Reader("safetensors weights", weight_seeds, read_weights, safetensors_header),
        Reader("hdf5", hdf5_seeds, read_hdf5, needs="h5py"),
        Reader("gguf", gguf_seeds, read_gguf),
        Reader("onnx", onnx_seeds, read_onnx, needs="onnx"),
    )
}
