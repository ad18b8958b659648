"""td.safetensors: arrays of one file or of many are loaded bit by bit."""

from __future__ import annotations

import json
import math
import os
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run_code
from tf32dtype._files.safetensors import writing
from tf32dtype._files.safetensors.dtypes import KINDS

#: Array dtype and bits per item of each file dtype, from the specification.
DTYPES = {
    "BOOL": ("bool", 8),
    "F4": ("float4_e2m1fn", 4),
    "F6_E2M3": ("float6_e2m3fn", 6),
    "F6_E3M2": ("float6_e3m2fn", 6),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "I16": ("int16", 16),
    "U16": ("uint16", 16),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "I32": ("int32", 32),
    "U32": ("uint32", 32),
    "F32": ("float32", 32),
    "C64": ("complex64", 64),
    "F64": ("float64", 64),
    "I64": ("int64", 64),
    "U64": ("uint64", 64),
}
#: Formats without a dtype in safetensors, and the dtypes that carry them.
CARRIED = {
    "tf32": "F32",
    "float8_e4m3": "U8",
    "float8_e3m4": "U8",
    "float8_e4m3b11fnuz": "U8",
}


def dtype_of(name: str) -> np.dtype[Any]:
    return td.formats[name].dtype if name in td.formats else np.dtype(name)


def random_array(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Return random codes of any kind of a dtype, with zero unused bits."""
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    dtype = dtype_of(name)
    if name not in td.formats:
        raw = rng.bytes(math.prod(shape) * dtype.itemsize)
        return np.frombuffer(raw, dtype).reshape(shape)
    form = td.formats[name]
    codes = rng.integers(0, 1 << form.bits, shape) << form.unused_low_bits
    return codes.astype(f"u{form.itemsize}").view(dtype)


def packed(array: np.ndarray, bits: int) -> bytes:
    """Pack items as in a file, the first in the lowest bits."""
    number = 0
    raw = np.ascontiguousarray(array).view(f"u{array.itemsize}").ravel().tolist()
    for place, code in enumerate(raw):
        number |= code << place * bits
    return number.to_bytes(len(raw) * bits // 8, "little")


def file_of(
    tensors: dict[str, tuple[str, list[int], bytes]], gap: bytes = b""
) -> bytes:
    """Write a file by hand, with tensors in the given order."""
    table, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        offsets = [len(data), len(data) + len(raw)]
        table[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += raw
    text = json.dumps(table).encode() + gap
    return struct.pack("<Q", len(text)) + text + data


def assert_same(got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


def test_dtypes_are_those_of_the_format() -> None:
    found = {name: (kind.dtype.name, kind.bits) for name, kind in KINDS.items()}
    assert list(found.items()) == list(DTYPES.items())
    named = {name for name, _ in DTYPES.values()}
    assert set(CARRIED) == set(td.formats) - named


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_read(dtype: str, tmp_path: Path) -> None:
    name, bits = DTYPES[dtype]
    want = random_array(name, (3, 8))
    raw = packed(want, bits) if bits < 8 else want.tobytes()
    path = tmp_path / "a.safetensors"
    path.write_bytes(file_of({"x": (dtype, [3, 8], raw), "y": (dtype, [0, 5], b"")}))
    for mmap in (True, False):
        found = td.safetensors.load(path, mmap=mmap)
        assert_same(found["x"], want)
        assert_same(found["y"], want[:0, :5])
        assert found["x"].flags.writeable is not mmap
    with td.safetensors.open(path) as tensors:
        assert tensors.stored_as("x") == dtype
        assert tensors.info("x") == (want.dtype, (3, 8), len(raw))
        assert_same(tensors["x"][1:, 3], want[1:, 3])


def variants(name: str) -> Iterator[np.ndarray]:
    a = random_array(name, (6, 5, 4))
    yield from (a, a[:0], a[:, :0], a[0], a[0, 0, 0].reshape(()), a[0, 0, :3])
    yield from (a.T, a[::2, ::-1, 1::2], a.transpose(1, 0, 2), np.asfortranarray(a))
    yield np.broadcast_to(a[0, 0], (3, 4))


@pytest.mark.parametrize("name", [*CARRIED, *(name for name, _ in DTYPES.values())])
def test_round_trip(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save and load arrays of any layout, in one chunk and in many."""
    arrays = {f"{i}": array for i, array in enumerate(variants(name))}
    for size in (64, 1 << 24):
        monkeypatch.setattr(writing, "_CHUNK_BYTES", size)
        path = tmp_path / f"{size}.safetensors"
        td.safetensors.save(path, arrays)
        found = td.safetensors.load(path)
        assert found.keys() == arrays.keys()
        for key, array in arrays.items():
            assert_same(found[key], array)


@pytest.mark.parametrize("name", CARRIED)
def test_formats_without_a_dtype_are_carried(name: str, tmp_path: Path) -> None:
    array = random_array(name, (4, 3))
    path = tmp_path / "a.safetensors"
    td.safetensors.save(path, {"x": array, "y": np.ones(2)}, metadata={"k": "v"})
    raw = path.read_bytes()
    table = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert table["__metadata__"] == {
        "k": "v",
        "tf32dtype.formats": f'{{"x": "{name}"}}',
    }
    assert table["x"]["dtype"] == CARRIED[name]
    assert raw.endswith(array.tobytes())
    with td.safetensors.open(path) as tensors:
        assert tensors.metadata == {"k": "v"}
        assert tensors.info("x").dtype == array.dtype


def test_packed_items_that_fill_no_bytes_are_carried(tmp_path: Path) -> None:
    array = random_array("float6_e2m3fn", (3, 7))
    td.safetensors.save(tmp_path / "a", {"x": array})
    with td.safetensors.open(tmp_path / "a") as tensors:
        assert tensors.stored_as("x") == "U8"
        assert_same(tensors["x"], array)


@pytest.mark.parametrize("name", ["tf32", "float6_e3m2fn", "float4_e2m1fn"])
def test_unused_bits_are_written_as_zeros(name: str, tmp_path: Path) -> None:
    form = td.formats[name]
    codes = np.random.default_rng(1).integers(0, 256, 4000, np.uint8)
    dirty = codes.view(f"u{form.itemsize}").view(form.dtype)
    td.safetensors.save(tmp_path / "a", {"x": dirty, "odd": dirty[:3]})
    found = td.safetensors.load(tmp_path / "a")
    assert_same(found["x"], td.from_bits(td.bits(dirty), form.dtype))
    assert_same(found["odd"], found["x"][:3])


def test_numpys_other_byte_order_scalars_and_lists(tmp_path: Path) -> None:
    tensors = {
        "big": np.arange(5, dtype=">i4"),
        "complex": np.array([1 + 2j], ">c8"),
        "long": np.arange(3, dtype=np.longlong),
        "list": [[1.5, 2]],
        "number": 3,
        "scalar": td.bfloat16(2),
        "bool": np.array([0, 2, 255], np.uint8).view(bool),
    }
    td.safetensors.save(tmp_path / "a", tensors)
    found = td.safetensors.load(tmp_path / "a")
    assert_same(found["big"], np.arange(5, dtype=np.int32))
    assert_same(found["complex"], np.array([1 + 2j], np.complex64))
    assert_same(found["long"], np.arange(3))
    assert_same(found["list"], np.array([[1.5, 2.0]]))
    assert_same(found["number"], np.array(3))
    assert_same(found["scalar"], np.array(2, td.bfloat16))
    assert_same(found["bool"], np.array([False, True, True]))


def test_ml_dtypes_arrays_are_saved(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    shared = [name for name in td.formats if hasattr(ml_dtypes, name)]
    assert len(shared) > 8
    arrays = {name: random_array(name, (2, 8)) for name in shared}
    theirs = {name: a.view(getattr(ml_dtypes, name)) for name, a in arrays.items()}
    td.safetensors.save(tmp_path / "a", theirs)
    for name, array in td.safetensors.load(tmp_path / "a").items():
        assert_same(array, arrays[name])
    with pytest.raises(TypeError, match=r"'x': dtype must be .* got int4"):
        td.safetensors.save(tmp_path / "a", {"x": np.ones(2, ml_dtypes.int4)})


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (
            {"x": np.ones(2, complex)},
            "tensor 'x': dtype must be .* .BOOL, .* got complex128",
        ),
        ({"x": np.ones(2, np.longdouble)}, "'x': dtype must be .* got "),
        ({"x": np.array([None])}, "'x': dtype must be .* got object"),
        ({"x": np.array(["a"])}, "'x': dtype must be .* got <U1"),
        ({"x": np.zeros(2, "M8[s]")}, "'x': dtype must be .* got datetime64"),
        ({"x": np.zeros(2, [("f", td.tf32)])}, "'x': dtype must be .* got "),
        ({"x": np.ma.masked_invalid([1.0])}, "'x' must not have a mask"),
        ({3: np.ones(2)}, "names must be strings; got 3"),
        ([np.ones(2)], "mapping of names to arrays; got"),
    ],
)
def test_what_no_file_has(tensors: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=words):
        td.safetensors.save(path, tensors)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.safetensors"]


def test_files_are_replaced_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    td.safetensors.save(path, {"x": np.arange(1000)})
    mapped = td.safetensors.load(path)["x"]
    td.safetensors.save(path, {"x": mapped[::-1]})  # of the replaced file
    assert_same(td.safetensors.load(path)["x"], np.arange(1000)[::-1])
    assert_same(mapped, np.arange(1000))
    old = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(writing, "write_data", full)
    for most in (None, 8):
        with pytest.raises(OSError, match="no space"):
            td.safetensors.save(path, {"x": [1], "y": [2]}, max_shard_size=most)
        assert path.read_bytes() == old
        assert os.listdir(tmp_path) == [path.name]


def test_a_folder_of_an_index_and_a_file_of_its_name_is_ambiguous(
    tmp_path: Path,
) -> None:
    path = tmp_path / "model.safetensors"
    td.safetensors.save(path, {"x": [1], "y": [2]}, max_shard_size=8)
    assert list(td.safetensors.load(tmp_path)) == ["x", "y"]
    td.safetensors.save(path, {"x": [3]})
    with pytest.raises(ValueError, match="has several checkpoints"):
        td.safetensors.load(tmp_path)


# -- lifetime ---------------------------------------------------------------


def test_arrays_outlive_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    td.safetensors.save(path, {"x": np.arange(5.0)})
    tensors = td.safetensors.open(path)
    x = tensors["x"]
    tensors.close()
    tensors.close()
    with pytest.raises(ValueError, match="is closed"):
        tensors["x"]
    del tensors
    path.unlink()
    assert_same(x, np.arange(5.0))
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        x.flags.writeable = True


def test_a_file_read_in_pieces_that_becomes_shorter(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    td.safetensors.save(path, {"x": np.arange(1e4)})
    with td.safetensors.open(path, mmap=False) as tensors:
        os.truncate(path, path.stat().st_size - 1)
        with pytest.raises(
            ValueError, match=r"a\.safetensors: tensor 'x' cannot be read"
        ):
            tensors["x"]
    with pytest.raises(ValueError, match="is closed"):
        tensors["x"]


def test_tensors_at_any_byte_are_read(tmp_path: Path) -> None:
    want = np.arange(3, dtype=np.float64)
    for gap in (b"", b" ", b"  "):
        path = tmp_path / "a.safetensors"
        tensors = {"a": ("U8", [1], b"1"), "x": ("F64", [3], want.tobytes())}
        path.write_bytes(file_of(tensors, gap))
        assert_same(td.safetensors.load(path)["x"], want)
        copied = td.safetensors.load(path, mmap=False)["x"]
        assert_same(copied, want)
        assert copied.flags.aligned


def test_what_is_written_is_aligned(tmp_path: Path) -> None:
    arrays = {name: random_array(name, (5,)) for name in ("uint8", "float64", "tf32")}
    td.safetensors.save(tmp_path / "a", arrays)
    found = td.safetensors.load(tmp_path / "a")
    assert all(array.flags.aligned for array in found.values())


def test_a_mapping_pickles(tmp_path: Path) -> None:
    td.safetensors.save(tmp_path / "a", {"x": np.arange(3)})
    with td.safetensors.open(tmp_path / "a") as tensors:
        with pickle.loads(pickle.dumps(tensors)) as other:
            assert_same(other["x"], np.arange(3))
        assert repr(tensors) == f"<1 tensors of {tmp_path / 'a'}>"


# -- names ------------------------------------------------------------------


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    names = [f"layer.{i}.{part}" for i in range(12) for part in ("weight", "bias")]
    td.safetensors.save(tmp_path / "a", {name: [1.0] for name in [*names, "odd[0]"]})
    return tmp_path / "a"


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("layer.3.bias", ["layer.3.bias"]),
        (["layer.3.bias", "layer.1.bias"], ["layer.3.bias", "layer.1.bias"]),
        ("layer.1?.bias", ["layer.10.bias", "layer.11.bias"]),
        (["layer.2.*", "layer.[23].bias"], "layer.2.bias layer.2.weight layer.3.bias"),
        ("odd[0]", ["odd[0]"]),
        (iter(["odd?0?"]), ["odd[0]"]),
        ([], []),
    ],
)
def test_names(layers: Path, names: Any, wanted: Any) -> None:
    wanted = wanted.split() if isinstance(wanted, str) else wanted
    assert list(td.safetensors.load(layers, names=names)) == wanted


def test_names_of_none(layers: Path) -> None:
    near = r"'layer\.3\.biaz' is not a tensor of .*a\. Did you mean layer\.3\.bias, "
    with pytest.raises(KeyError, match=near):
        td.safetensors.load(layers, names=["layer.3.bias", "layer.3.biaz"])
    with pytest.raises(
        KeyError, match=r"'zz[*]' is not a tensor .* The first tensors are 'layer"
    ):
        td.safetensors.load(layers, names="zz*")
    with pytest.raises(TypeError, match="names must be strings; got 3"):
        td.safetensors.load(layers, names=[3])  # type: ignore[list-item]
    with td.safetensors.open(layers) as tensors:
        with pytest.raises(KeyError, match="'odd' is not a tensor"):
            tensors.info("odd")
        assert "odd" not in tensors
        assert len(tensors) == 25


def test_what_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="path of a file or folder; got b'"):
        td.safetensors.load(b"a")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        td.safetensors.load(tmp_path / "nothing.safetensors")


# -- several files ----------------------------------------------------------


def test_shards(tmp_path: Path) -> None:
    arrays = {
        name: random_array(name, (2, 8)) for name in [*CARRIED, "bool", "float32"]
    }
    path = tmp_path / "model.safetensors"
    td.safetensors.save(
        path, arrays, metadata={"format": "np"}, max_shard_size="0.09 KB"
    )
    sizes = {name: array.nbytes for name, array in arrays.items()}
    files = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    index = "model.safetensors.index.json"
    assert sorted(os.listdir(tmp_path)) == [*files, index]
    table = json.loads((tmp_path / index).read_text())
    assert table["metadata"] == {"total_size": sum(sizes.values())}
    inside: dict[str, list[int]] = {}
    for name, file in table["weight_map"].items():
        inside.setdefault(file, []).append(sizes[name])
        assert name in td.safetensors.load(tmp_path / file)
    assert sorted(inside) == files
    assert all(sum(each) <= 90 or len(each) == 1 for each in inside.values())
    for place in (path, tmp_path, tmp_path / index):
        with td.safetensors.open(place) as tensors:
            assert tensors.metadata == {"format": "np"}
            assert set(tensors) == set(arrays)
            for name, array in arrays.items():
                assert_same(tensors[name], array)
    assert list(td.safetensors.load(tmp_path, names="float8*")) == sorted(
        name for name in arrays if name.startswith("float8")
    )


def test_what_fits_one_file_has_no_index(tmp_path: Path) -> None:
    td.safetensors.save(tmp_path / "a.safetensors", {"x": [1]}, max_shard_size=8)
    td.safetensors.save(tmp_path / "b.safetensors", {}, max_shard_size=8)
    assert sorted(os.listdir(tmp_path)) == ["a.safetensors", "b.safetensors"]
    assert td.safetensors.load(tmp_path / "b.safetensors") == {}


@pytest.mark.parametrize("most", [0, -1, "5XB", "", "GB", 1.5])
def test_sizes_that_are_none(most: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_shard_size must"):
        td.safetensors.save(tmp_path / "a", {"x": [1]}, max_shard_size=most)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"not have a file \*\.safetensors or"):
        td.safetensors.load(tmp_path)
    td.safetensors.save(tmp_path / "a.safetensors", {"x": [1]})
    assert list(td.safetensors.load(str(tmp_path))) == ["x"]
    td.safetensors.save(tmp_path / "b.safetensors", {"x": [1]})
    with pytest.raises(
        ValueError, match=r"'a\.safetensors', 'b\.safetensors': use the"
    ):
        td.safetensors.load(tmp_path)


def test_the_package_imports_it_when_it_is_named() -> None:
    loaded = "print('tf32dtype.safetensors' in sys.modules)\n"
    code = f"import sys, tf32dtype as td\n{loaded}td.safetensors\n{loaded}"
    assert run_code(code).split() == ["False", "True"]
