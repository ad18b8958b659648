"""Arrays of the formats in Zarr, with the names and codes of zarr-extensions."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import warnings
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import all_items
from tests.support.bits import ALL, array, name
from tests.support.paths import ROOT

zarr = pytest.importorskip("zarr", minversion="3.1")
from tf32dtype.interop import zarr as data_types  # noqa: E402

PackBits = data_types.PackBits

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:Consolidated metadata"),
]

each = pytest.mark.parametrize("f", ALL, ids=name)
WAYS = {
    "one chunk": {},
    "chunks": {"chunks": (3, 5)},
    "shards": {"chunks": (2, 4), "shards": (4, 8)},
    "packed": {"chunks": (3, 5), "serializer": {"name": "packbits"}},
    "packed shards": {"chunks": (2, 4), "shards": (4, 8), "serializer": PackBits()},
}


def items_of(f: Any) -> np.ndarray[Any, Any]:
    """Return all items of narrow formats, a sample of others, in two dimensions."""
    items = all_items(f)
    return items[:: max(1, f.count // 256)].reshape(8, -1)


def created(f: Any, **options: Any) -> Any:
    a = array(f, items_of(f))
    made = zarr.create_array({}, shape=a.shape, dtype=f.name, **options)
    made[...] = a
    return made


def metadata(z: Any) -> Any:
    return json.loads(z.store._store_dict["zarr.json"].to_bytes())


# -- arrays -----------------------------------------------------------------


@each
@pytest.mark.parametrize("way", WAYS)
def test_all_codes_round_trip(f: Any, way: str, compared: Any) -> None:
    z = zarr.open_array(created(f, **WAYS[way]).store)
    items = items_of(f)
    assert z.dtype == getattr(td, f.name)
    assert metadata(z)["data_type"] == f.name
    assert z[...].tobytes() == items.tobytes()
    assert z[3:5, 1:].tobytes() == items[3:5, 1:].tobytes()
    z[2, 3:] = z[5, 3:]
    items[2, 3:] = items[5, 3:]
    assert z[...].tobytes() == items.tobytes()
    compared(items.size)


@each
def test_what_names_a_format(f: Any) -> None:
    kind = getattr(td, f.name)
    a = array(f, items_of(f))
    form = td.formats[f.name]
    for which in (f.name, *form.aliases, kind, np.dtype(kind)):
        assert zarr.create_array({}, shape=3, dtype=which).dtype == kind
    assert zarr.array(a).dtype == kind
    store: dict[str, Any] = {}
    zarr.save(store, a)
    loaded = zarr.load(store)
    assert loaded.dtype == kind
    assert loaded.tobytes() == a.tobytes()


def test_ml_dtypes_become_ours() -> None:
    a = np.array([1.5, -0.0, np.nan], ml_dtypes.bfloat16)
    for z in (zarr.array(a), zarr.create_array({}, shape=3, dtype=a.dtype)):
        z[:] = a
        assert z.dtype == td.bfloat16
        assert z[:].tobytes() == a.tobytes()


def test_the_bytes_in_the_store() -> None:
    """Store little-endian items by the `bytes` codec, FP4 and FP6 in a byte each."""
    for f in ALL:
        z = created(f, compressors=None)
        chunk = z.store._store_dict["c/0/0"].to_bytes()
        items = items_of(f)
        assert chunk == items.astype(items.dtype.newbyteorder("<")).tobytes()
        [codec] = metadata(z)["codecs"]
        assert codec.get("configuration") == (
            {"endian": "little"} if items.itemsize > 1 else None
        )


def test_big_endian_chunks_are_refused() -> None:
    [f] = [f for f in ALL if f.name == "bfloat16"]
    z = created(f)
    text = z.store._store_dict["zarr.json"].to_bytes().replace(b"little", b"big")
    z.store._store_dict["zarr.json"] = type(
        z.store._store_dict["zarr.json"]
    ).from_bytes(text)
    with pytest.raises(
        ValueError, match=r"of bfloat16 must be little-endian, .* got big"
    ):
        zarr.open_array(z.store)[...]


def test_zarr_2_is_read_and_not_written(tmp_path: Path) -> None:
    """Read TensorStore's arrays, which have the name instead of NumPy's letters."""
    (tmp_path / ".zarray").write_text(
        '{"chunks":[4],"compressor":null,"dtype":"bfloat16","fill_value":"NaN",'
        '"filters":null,"order":"C","shape":[6],"zarr_format":2}'
    )
    (tmp_path / "0").write_bytes(np.array([0x3F80, 1, 2, 3], "<u2").tobytes())
    z = zarr.open_array(tmp_path, mode="r")
    assert z.dtype == td.bfloat16
    assert z[:].view(np.uint16).tolist() == [0x3F80, 1, 2, 3, 0x7FC0, 0x7FC0]
    with pytest.raises(ValueError, match=r"zarr_format must be 3 .*got 2"):
        zarr.create_array({}, shape=3, dtype="bfloat16", zarr_format=2)


# -- fill values ------------------------------------------------------------

#: Codes that the pages of zarr-extensions give for "NaN".
NANS = {
    "bfloat16": 0x7FC0,
    "float8_e3m4": 0x78,
    "float8_e4m3": 0x7C,
    "float8_e4m3b11fnuz": 0x80,
    "float8_e4m3fnuz": 0x80,
    "float8_e5m2": 0x7E,
    "float8_e5m2fnuz": 0x80,
    "float8_e8m0fnu": 0xFF,
}


@each
def test_fill_values(f: Any) -> None:
    """Store every fill value with its bits; scalars keep only the sign of a NaN."""
    form = td.formats[f.name]
    for item in items_of(f).reshape(-1)[::3]:
        number = array(f, item.reshape(1))[0]
        z = zarr.create_array({}, shape=2, dtype=f.name, fill_value=number)
        written = metadata(z)["fill_value"]
        got = zarr.open_array(z.store)
        assert td.bits(got.fill_value) == td.bits(number)
        assert td.bits(number) == item or np.isnan(number)
        assert got[:].tolist() == [number] * 2 or np.isnan(number)
        if np.isfinite(number):
            assert written == float(number)
    assert td.bits(zarr.create_array({}, shape=2, dtype=f.name).fill_value) == 0
    for code in form.infinity_codes:
        z = zarr.create_array(
            {}, shape=2, dtype=f.name, fill_value=td.from_bits(code, form.dtype)[()]
        )
        negative = td.from_bits(code, form.dtype) < 0
        assert metadata(z)["fill_value"] == ("-Infinity" if negative else "Infinity")


@pytest.mark.parametrize("which", NANS)
def test_the_code_of_nan(which: str) -> None:
    z = zarr.create_array({}, shape=2, dtype=which, fill_value=np.nan)
    assert metadata(z)["fill_value"] == "NaN"
    assert td.bits(z[:]).tolist() == [NANS[which]] * 2
    negative = -td.formats[which].type(np.nan)
    if td.bits(negative) != NANS[which]:
        z = zarr.create_array({}, shape=2, dtype=which, fill_value=negative)
        code = f"0x{int(td.bits(negative)):0{2 * z.dtype.itemsize}x}"
        assert metadata(z)["fill_value"] == code
        assert td.bits(zarr.open_array(z.store)[:]).tolist() == [int(code, 16)] * 2


@pytest.mark.parametrize(
    ("which", "value"),
    [
        ("float8_e4m3fn", "Infinity"),
        ("float4_e2m1fn", "NaN"),
        ("float4_e2m1fn", "0x10"),
        ("bfloat16", "0x7f"),
        ("bfloat16", "0x7fc0ff"),
        ("bfloat16", "0xzzzz"),
        ("bfloat16", "one"),
        ("bfloat16", True),
        ("bfloat16", [1]),
        ("tf32", "0x3f800001"),
    ],
)
def test_fill_values_that_are_none(which: str, value: Any) -> None:
    data_type = getattr(data_types, which)()
    with pytest.raises(ValueError, match=f"of {which} must be a number"):
        data_type.from_json_scalar(value, zarr_format=3)


def test_a_fill_value_that_is_no_number() -> None:
    with pytest.raises(TypeError, match="must be a number of bfloat16"):
        zarr.create_array({}, shape=2, dtype="bfloat16", fill_value=1j)


# -- packbits ---------------------------------------------------------------


def packed_by_hand(codes: Any, first: int, last: int) -> bytes:
    """Pack all bits into one integer, from the lowest bits on."""
    width = last - first + 1
    whole = 0
    for place, code in enumerate(codes):
        whole |= ((int(code) >> first) & ((1 << width) - 1)) << (place * width)
    return whole.to_bytes(-(-len(codes) * width // 8), "little")


CASES = [
    ("float4_e2m1fn", None, None, 4),
    ("float6_e2m3fn", None, None, 6),
    ("float6_e3m2fn", 1, 4, 6),
    ("float8_e5m2", None, None, 8),
    ("bfloat16", 3, None, 16),
    ("tf32", 13, None, 32),
    ("bool", None, None, 1),
    ("uint8", None, 2, 8),
    ("uint16", 5, 15, 16),
    ("float32", None, None, 32),
    ("float64", 1, 63, 64),
]


@pytest.mark.parametrize(("which", "first", "last", "width"), CASES)
@pytest.mark.parametrize("padding", ["none", "first_byte", "last_byte"])
@pytest.mark.parametrize("count", [0, 1, 7, 16])
def test_packbits(
    which: str, first: Any, last: Any, width: int, padding: Any, count: int
) -> None:
    kind = td.formats[which].dtype if which in td.formats else np.dtype(which)
    low, high = first or 0, width - 1 if last is None else last
    rng = np.random.default_rng(count)
    kept = ((1 << (high + 1)) - 1) & ~((1 << low) - 1)
    codes = rng.integers(0, 1 << width, count, np.uint64, endpoint=False) & kept
    if width == 64:
        codes = rng.integers(0, 1 << 63, count, np.uint64) & np.uint64(kept)
    a = codes.astype(f"u{kind.itemsize}").view(kind)
    codec = PackBits(padding_encoding=padding, first_bit=first, last_bit=last)
    packed = codec.pack(a)
    want = packed_by_hand(codes, low, high)
    spare = bytes([8 * len(want) - count * (high - low + 1)])
    if padding == "first_byte":
        want = spare + want
    elif padding == "last_byte":
        want += spare
    assert packed.tobytes() == want
    got = codec.unpack(packed, a.shape, kind)
    assert got.dtype == kind
    assert got.tobytes() == a.tobytes()
    for wrong in (np.append(packed, np.uint8(0)), packed[:-1]):
        if wrong.size != packed.size:
            with pytest.raises(ValueError, match="in the packbits codec"):
                codec.unpack(wrong, a.shape, kind)
    if padding != "none":
        packed[0 if padding == "first_byte" else -1] ^= 1
        with pytest.raises(ValueError, match=padding):
            codec.unpack(packed, a.shape, kind)


def test_packbits_extends_signs() -> None:
    a = np.array([-4, -1, 0, 3], np.int16)
    for kind in ("<i2", ">i2"):
        codec = PackBits(last_bit=2)
        packed = codec.pack(a.astype(kind))
        assert packed.tobytes() == packed_by_hand(a, 0, 2)
        assert codec.unpack(packed, a.shape, np.dtype(kind)).tolist() == a.tolist()


def test_packbits_in_the_store() -> None:
    """Pack FP4 into half a byte, FP6 into three quarters, tf32 into 19 bits."""
    for which, options, size in (
        ("float4_e2m1fn", {}, 50),
        ("float6_e3m2fn", {}, 75),
        ("tf32", {"first_bit": 13}, 238),
    ):
        z = zarr.create_array(
            {},
            shape=100,
            dtype=which,
            serializer={"name": "packbits", "configuration": options},
            compressors=None,
        )
        z[:] = np.linspace(0.5, 6, 100)
        assert len(z.store._store_dict["c/0"].to_bytes()) == size
        [codec] = metadata(z)["codecs"]
        assert codec == {"name": "packbits"} | (
            {"configuration": options} if options else {}
        )
        again = zarr.open_array(z.store)[:]
        assert again.tolist() == np.linspace(0.5, 6, 100).astype(z.dtype).tolist()


def test_packbits_that_cannot_be() -> None:
    for options, match in (
        (
            {"padding_encoding": "start_byte"},
            "must be one of first_byte, last_byte, none",
        ),
        ({"first_bit": -1}, "first_bit must be .*got -1"),
        ({"last_bit": 1.5}, "last_bit must be .*got 1.5"),
        ({"last_bit": 4}, "within bits 0 to 3 of float4_e2m1fn"),
        ({"first_bit": 2, "last_bit": 1}, "got 2 and 1"),
        ({"end_bit": 2}, "packbits must have only padding_encoding"),
    ):
        serializer = {"name": "packbits", "configuration": options}
        with pytest.raises(ValueError, match=match):
            zarr.create_array({}, shape=3, dtype="float4_e2m1fn", serializer=serializer)
    with pytest.raises(ValueError, match="got complex64"):
        zarr.create_array({}, shape=3, dtype="complex64", serializer=PackBits())


def test_a_chunk_cut_short_is_an_error() -> None:
    [f] = [f for f in ALL if f.name == "float4_e2m1fn"]
    z = created(f, serializer=PackBits(), compressors=None)
    chunk = z.store._store_dict["c/0/0"]
    z.store._store_dict["c/0/0"] = type(chunk).from_bytes(chunk.to_bytes()[:-1])
    with pytest.raises(ValueError, match="must have 8 bytes for 16 elements of float4"):
        z[...]


# -- registration -----------------------------------------------------------


def test_every_format_has_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]
    module = "tf32dtype.interop.zarr"
    assert points["zarr.data_type"] == {x: f"{module}:{x}" for x in td.formats}
    assert points["zarr.codecs"] == {"packbits": f"{module}:PackBits"}


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


OPENS = "z = zarr.open_array({path!r}); print(z[:].view('u1').tolist(), z.dtype)"


@pytest.mark.parametrize("first", ["tf32dtype, zarr", "zarr, tf32dtype"])
def test_zarr_knows_the_formats_where_the_package_is_imported(
    first: str, tmp_path: Path
) -> None:
    z = zarr.create_array(
        tmp_path, shape=3, dtype="float4_e2m1fn", serializer=PackBits()
    )
    z[:] = [1, 2, -6]
    code = f"import {first}; " + OPENS.format(path=str(tmp_path))
    assert run(code) == "[2, 4, 15] float4_e2m1fn"


def test_zarr_finds_the_formats_by_itself(tmp_path: Path) -> None:
    """Find the formats of an installed package, also of an editable install."""
    version = tuple(int(part) for part in zarr.__version__.split(".")[:3])
    if version < (3, 4, 1):
        pytest.skip("this zarr opens arrays without a look at entry points")
    if "bfloat16" not in entry_points(group="zarr.data_type").names:
        pytest.skip("the package is not installed")
    z = zarr.create_array(
        tmp_path, shape=3, dtype="float4_e2m1fn", serializer=PackBits()
    )
    z[:] = [1, 2, -6]
    code = "import sys, zarr; assert 'tf32dtype' not in sys.modules; "
    assert run(code + OPENS.format(path=str(tmp_path))) == "[2, 4, 15] float4_e2m1fn"
    code = "import zarr; print(zarr.create_array({}, shape=2, dtype='bfloat16').dtype)"
    assert run(code) == "bfloat16"


# -- libraries that write by zarr -------------------------------------------


@pytest.mark.parametrize("which", ["bfloat16", "float8_e4m3fn", "tf32"])
def test_xarray(which: str, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    [f] = [f for f in ALL if f.name == which]
    a = array(f, items_of(f))
    a = np.where(np.isnan(a), td.formats[which].type(1), a)
    data = xarray.Dataset({"a": (("x", "y"), a)})
    for number, encoding in enumerate(
        ({}, {"chunks": (2, 3)}, {"serializer": {"name": "packbits"}})
    ):
        path = tmp_path / str(number)
        data.to_zarr(path, encoding={"a": encoding})
        got = xarray.open_zarr(path).a
        assert got.dtype == a.dtype
        assert got.values.tobytes() == a.tobytes()


def test_xarray_of_formats_without_nan(tmp_path: Path) -> None:
    """Tell xarray that no value is missing, as it otherwise uses NaN."""
    xarray = pytest.importorskip("xarray")
    [f] = [f for f in ALL if f.name == "float4_e2m1fn"]
    a = array(f, items_of(f))
    data = xarray.Dataset({"a": (("x", "y"), a)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        data.to_zarr(tmp_path, encoding={"a": {"_FillValue": None, "fill_value": 0}})
        got = xarray.open_zarr(tmp_path).a
    assert got.dtype == a.dtype
    assert got.values.tobytes() == a.tobytes()


@each
def test_dask(f: Any, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.array")
    a = array(f, items_of(f))
    dask.from_array(a, chunks=(4, 2)).to_zarr(str(tmp_path))
    got = dask.from_zarr(str(tmp_path))
    assert (got.dtype, got.chunksize) == (a.dtype, (4, 2))
    assert got.compute().tobytes() == a.tobytes()
