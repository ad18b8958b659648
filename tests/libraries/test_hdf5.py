"""td.hdf5: written arrays are read bit by bit, and have HDF5's own types."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import all_items, item_type, values
from tests.support.bits import ALL, array, name
from tf32dtype._files.hdf5 import storage

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.once

each = pytest.mark.parametrize("f", ALL, ids=name)
#: `H5Tget_size, precision, fields, ebias` of the types in HDF5 2.2.0.
TYPES = {
    "bfloat16": ("BFLOAT16LE", 2, 16, (15, 7, 8, 0, 7), 127),
    "float8_e4m3fn": ("F8E4M3", 1, 8, (7, 3, 4, 0, 3), 7),
    "float8_e5m2": ("F8E5M2", 1, 8, (7, 2, 5, 0, 2), 15),
    "float6_e2m3fn": ("F6E2M3", 1, 6, (5, 3, 2, 0, 3), 1),
    "float6_e3m2fn": ("F6E3M2", 1, 6, (5, 2, 3, 0, 2), 3),
    "float4_e2m1fn": ("F4E2M1", 1, 4, (3, 1, 2, 0, 1), 1),
}
CREATE = {
    "contiguous": {},
    "chunked": {"chunks": (3, 2), "maxshape": (None, None)},
    "filtered": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
}


def codes_of(f: Any) -> np.ndarray[Any, Any]:
    """Return all items, in two dimensions."""
    return all_items(f).reshape(8, -1)


@pytest.fixture
def file() -> Any:
    with h5py.File("in memory", "w", driver="core", backing_store=False) as made:
        yield made


def raw(dataset: Any, dtype: str) -> np.ndarray[Any, Any]:
    """Return the bytes of a dataset by h5py's lowest layer."""
    out = np.empty(dataset.shape, dtype)
    every = h5py.h5s.ALL
    dataset.id.read(every, every, out, mtype=dataset.id.get_type())
    return out


# -- what is in the file ----------------------------------------------------


@pytest.mark.parametrize("which", TYPES)
def test_hdf5s_own_types(which: str, file: Any) -> None:
    dataset = td.hdf5.write(file, "a", np.zeros(3, which))
    kind = dataset.id.get_type()
    facts = kind.get_size(), kind.get_precision(), kind.get_fields(), kind.get_ebias()
    assert facts == TYPES[which][1:]
    assert (kind.get_offset(), kind.get_order()) == (0, h5py.h5t.ORDER_LE)
    assert not dataset.attrs


def library() -> ctypes.CDLL:
    """Return h5py's own libhdf5."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("no list of loaded libraries here")
    found = re.findall(r"\S*/libhdf5[-.]\S*", maps.read_text())
    return ctypes.CDLL(found[0])


@pytest.mark.parametrize("which", TYPES)
def test_the_library_says_that_the_types_are_equal(which: str) -> None:
    hdf5 = library()
    try:
        own = ctypes.c_int64.in_dll(hdf5, f"H5T_FLOAT_{TYPES[which][0]}_g")
    except ValueError:
        major, minor, _ = h5py.version.hdf5_version_tuple
        assert (major, minor) < ((2, 2) if which.startswith(("f", "float")) else (2, 0))
        pytest.skip("this libhdf5 has no such type yet")
    made = storage.type_of(td.formats[which])
    hdf5.H5Tequal.argtypes = [ctypes.c_int64, ctypes.c_int64]
    assert hdf5.H5Tequal(made.id, own) == 1


@each
def test_other_formats_are_codes_with_a_name(f: Any, file: Any) -> None:
    if f.name in TYPES:
        return
    items = codes_of(f)
    dataset = td.hdf5.write(file, "a", array(f, items))
    assert dataset.attrs["tf32dtype"] == f.name.encode()
    if f.name == "tf32":
        assert dataset.dtype == np.float32
        assert dataset[()].tobytes() == items.tobytes(), "other readers' numbers"
    else:
        assert dataset.dtype == np.uint8
        np.testing.assert_array_equal(dataset[()], items)


@each
@pytest.mark.parametrize("create", CREATE)
def test_all_codes_round_trip(f: Any, create: str, file: Any, compared: Any) -> None:
    items = codes_of(f)
    options = dict(CREATE[create])
    if "chunks" in options and f.count > 256:
        options["chunks"] = (3, 1000)
    dataset = td.hdf5.write(file, "g/a", array(f, items), **options)
    assert raw(dataset, item_type(f)).tobytes() == items.tobytes()
    assert dataset.compression == options.get("compression")
    assert dataset.shuffle == options.get("shuffle", False)
    assert dataset.fletcher32 == options.get("fletcher32", False)
    assert dataset.chunks == options.get("chunks", dataset.chunks)
    got = td.hdf5.read(file["g/a"])
    assert got.dtype == getattr(td, f.name)
    assert got.tobytes() == items.tobytes()
    compared(items.size)


def test_what_h5py_reads_wrongly(file: Any) -> None:
    """HDF5 takes FP8 E4M3 for a format with Inf, and misreads 14 of its 256 codes."""
    [f] = [f for f in ALL if f.name == "float8_e4m3fn"]
    items = np.arange(256, dtype=np.uint8)
    dataset = td.hdf5.write(file, "a", array(f, items))
    truth = values(f, items)

    def wrong(got: np.ndarray[Any, Any]) -> list[int]:
        same = (got == truth) | (np.isnan(got) & np.isnan(truth))
        return np.flatnonzero(~same).tolist()

    assert wrong(td.hdf5.read(dataset).astype(float)) == []
    theirs = wrong(dataset[()].astype(float))
    assert theirs in ([], [*range(0x78, 0x7F), *range(0xF8, 0xFF)])


def test_unused_bits_are_written_as_zeros(file: Any) -> None:
    dirty = np.arange(256, dtype=np.uint8)
    a = td.from_bits(dirty, td.float4_e2m1fn, dirty="ignore")
    dataset = td.hdf5.write(file, "a", a)
    np.testing.assert_array_equal(raw(dataset, "u1"), dirty & 15)
    b = td.from_bits(np.full(3, 0x3F801FFF, np.uint32), td.tf32, dirty="ignore")
    assert td.hdf5.write(file, "b", b)[0] == np.float32(1)


def test_ml_dtypes_and_lists(file: Any) -> None:
    a = np.array([1.5, np.nan, -0.0], ml_dtypes.bfloat16)
    got = td.hdf5.read(td.hdf5.write(file, "a", a))
    assert got.dtype == td.bfloat16
    assert got.tobytes() == a.tobytes()
    got = td.hdf5.read(td.hdf5.write(file, "b", [1.1, 2], dtype="fp8_e4m3"))
    assert got.dtype == td.float8_e4m3fn
    assert got.tolist() == [1.125, 2]


@each
def test_shapes(f: Any, file: Any) -> None:
    a = array(f, codes_of(f))
    for number, x in enumerate((a[0, 0], a[:0], a[:, :0], a.T, a[::2, ::-3])):
        x = np.asarray(x)
        dataset = td.hdf5.write(file, str(number), x)
        got = td.hdf5.read(dataset, ...)
        assert (got.dtype, got.shape) == (x.dtype, x.shape)
        assert got.tobytes() == x.tobytes()
    number = td.hdf5.read(file["0"])
    assert type(number) is getattr(td, f.name)


def test_other_dtypes_are_h5pys(file: Any) -> None:
    for where, a in {
        "f4": np.arange(3, dtype=np.float32),
        "f2": np.float16(1.5),
        "i8": np.arange(4)[::2],
        "b": np.array([True, False]),
        "record": np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]),
        "bytes": np.array([b"ab", b"c"]),
    }.items():
        got = td.hdf5.read(td.hdf5.write(file, where, a), ...)
        assert got.dtype == np.asarray(a).dtype
        assert got.tobytes() == np.asarray(a).tobytes()


# -- files of others --------------------------------------------------------


def test_big_endian(file: Any) -> None:
    codes = np.array([0x3F80, 0x7FC1, 0xFF80, 0x0001], np.uint16)
    kind = storage.type_of(td.formats["bfloat16"])
    kind.set_order(h5py.h5t.ORDER_BE)
    dataset = file.create_dataset("a", (4,), h5py.Datatype(kind))
    every = h5py.h5s.ALL
    dataset.id.write(every, every, codes.byteswap(), mtype=kind)
    assert td.hdf5.read(dataset).view(np.uint16).tolist() == codes.tolist()
    out = np.zeros(4, td.bfloat16)
    assert td.hdf5.read(dataset, out=out).view(np.uint16).tolist() == codes.tolist()
    td.hdf5.assign(dataset, np.s_[1:3], np.array([1, 2], td.bfloat16))
    assert raw(dataset, ">u2").tolist() == [0x3F80, 0x3F80, 0x4000, 0x0001]
    dataset = file.create_dataset("b", data=np.array([1, 2.5], ">f4"))
    dataset.attrs["tf32dtype"] = "tf32"
    assert td.hdf5.read(dataset).view(np.float32).tolist() == [1, 2.5]


def test_an_hdf5_type_of_full_precision(file: Any) -> None:
    """Read a type whose precision is 8 bits although the format has 4."""
    kind = storage.type_of(td.formats["float4_e2m1fn"])
    kind.set_precision(8)
    dataset = file.create_dataset("a", (3,), h5py.Datatype(kind))
    assert td.hdf5.read(dataset).dtype == td.float4_e2m1fn


def test_floats_that_are_no_formats(file: Any) -> None:
    for where, change in {
        "bias": lambda t: t.set_ebias(11),
        "fields": lambda t: t.set_fields(7, 4, 3, 0, 4),
    }.items():
        kind = storage.type_of(td.formats["float8_e4m3fn"])
        change(kind)
        dataset = file.create_dataset(where, (3,), h5py.Datatype(kind))
        assert td.hdf5.read(dataset).dtype == dataset.dtype


def test_netcdf(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    path = tmp_path / "a.nc"
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    xarray.Dataset({"a": (("x", "y"), a)}).to_netcdf(path, engine="h5netcdf")
    assert td.hdf5.load(path, "a")["a"].tolist() == a.tolist()
    # docs/how_to/hdf5.md: write and read arrays of ours.
    with h5py.File(path, "r+") as file:
        td.hdf5.write(file, "b", a.astype(td.bfloat16))
    opened = xarray.open_dataset(path, engine="h5netcdf", phony_dims="sort")
    with opened, h5py.File(path) as file:
        assert opened.b.values.tolist() == a.tolist()
        found = xarray.DataArray(td.hdf5.read(file["b"]), dims=opened.b.dims)
    assert found.dtype == td.bfloat16


@pytest.mark.parametrize("within", ["field", "array", "vlen"])
def test_formats_within_items_are_refused(within: str, file: Any) -> None:
    types = h5py.h5t
    fp8 = storage.type_of(td.formats["float8_e4m3fn"])
    if within == "field":
        kind = types.create(types.COMPOUND, 8)
        kind.insert(b"x", 0, types.IEEE_F32LE)
        kind.insert(b"y", 4, fp8)
    elif within == "array":
        kind = types.array_create(fp8, (4,))
    else:
        kind = types.vlen_create(fp8)
    dataset = file.create_dataset("a", (3,), h5py.Datatype(kind))
    with pytest.raises(TypeError, match=r"/a must not have float8_e4m3fn in a"):
        td.hdf5.read(dataset)


def test_fields_that_overlap_are_refused(file: Any) -> None:
    """Reject 4-byte fields that NumPy has in 8 bytes: h5py writes past the array."""
    types = h5py.h5t
    wide = types.IEEE_F64LE.copy()  # 11 exponent bits, which float32 does not have
    wide.set_fields(31, 20, 11, 0, 20)
    wide.set_size(4)
    kind = types.create(types.COMPOUND, 8)
    kind.insert(b"r", 0, wide)
    kind.insert(b"i", 4, types.IEEE_F32LE)
    dataset = file.create_dataset("a", (5,), h5py.Datatype(kind))
    with pytest.raises(ValueError, match="fields of /a must not overlap"):
        td.hdf5.read(dataset)


# -- selections -------------------------------------------------------------

SELECTIONS = {
    "all": np.s_[:, :, :],
    "dots": np.s_[..., 1],
    "number": np.s_[1, 2, 3],
    "row": 2,
    "slice": np.s_[1:3],
    "steps": np.s_[::2, 1:5:3, ::3],
    "list": np.s_[:, [0, 2, 3], 1:],
    "nothing": np.s_[2:2],
    "mask": np.arange(4 * 5 * 6).reshape(4, 5, 6) % 7 == 0,
}


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("which", ["bfloat16", "float8_e4m3", "tf32", "float32"])
def test_selections(which: str, selection: str, file: Any) -> None:
    index = SELECTIONS[selection]
    kind = td.formats[which].dtype if which in td.formats else np.dtype(which)
    a = np.arange(120).reshape(4, 5, 6).astype(kind)
    dataset = td.hdf5.write(file, "a", a, chunks=(2, 3, 2))
    want = a[index]
    got = td.hdf5.read(dataset, index)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert np.asarray(got).tobytes() == want.tobytes()
    assert isinstance(got, np.ndarray) == isinstance(want, np.ndarray)
    wide = np.zeros((*want.shape, 2), kind)[..., 0]
    assert td.hdf5.read(dataset, index, out=wide) is wide
    assert wide.tobytes() == want.tobytes()
    new = [-3.5, np.asarray(want * kind.type(2))]
    if (which, selection) == ("float32", "list"):
        del new[0]  # h5py does not broadcast this
    for value in new:
        td.hdf5.assign(dataset, index, value)
        a[index] = value
        assert td.hdf5.read(dataset).tobytes() == a.tobytes()


def test_assign_rounds_once_and_resizes(file: Any) -> None:
    dataset = td.hdf5.write(file, "a", np.zeros(2, td.bfloat16), maxshape=(None,))
    dataset.resize((4,))
    td.hdf5.assign(dataset, np.s_[2:], [1 + 2**-8 + 2**-30, 3])
    assert td.hdf5.read(dataset).tolist() == [0, 0, 1 + 2**-7, 3]
    plain = td.hdf5.write(file, "b", np.zeros(2, np.float32))
    td.hdf5.assign(plain, ..., np.array([1.5, 2], td.fp4))
    assert plain[()].tolist() == [1.5, 2]
    number = td.hdf5.write(file, "c", td.fp4(1))
    td.hdf5.assign(number, (), 3)
    assert td.hdf5.read(number) == 3
    with pytest.raises(ValueError, match="for /c, which is one number"):
        td.hdf5.read(number, 0)


def test_out_is_checked(file: Any) -> None:
    dataset = td.hdf5.write(file, "a", np.zeros((2, 3), td.bfloat16))
    for out in (np.zeros((3, 2), td.bfloat16), np.zeros((2, 3), np.uint16), None):
        if out is not None:
            with pytest.raises(ValueError, match=r"bfloat16, shape \(2, 3\)"):
                td.hdf5.read(dataset, out=out)
    out = np.zeros((2, 3), td.bfloat16)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        td.hdf5.read(dataset, out=out)


@each
def test_fill_values(f: Any, file: Any) -> None:
    """Store every fill value, or reject it before a dataset is made."""
    form = td.formats[f.name]
    sample = codes_of(f).reshape(-1)[:: max(1, f.count // 64)]
    refused = []
    for item in sample:
        number = array(f, item.reshape(1))[0]
        where = f"{item}"
        try:
            dataset = td.hdf5.write(
                file,
                where,
                np.zeros(1, form.dtype),
                fillvalue=number,
                maxshape=(None,),
            )
        except ValueError as error:
            refused.append((float(number), str(error), where in file))
            continue
        dataset.resize((2,))
        got = td.hdf5.read(dataset)[1]
        assert got == number or (np.isnan(got) and np.isnan(number))
    top = 2.0 ** int(np.log2(form.max)) if f.name in TYPES else 0
    for x, error, is_there in refused:
        assert abs(x) > top
        assert (
            f"fillvalue must be a {f.name} number that HDF5 keeps; got {x:g}," in error
        )
        assert not is_there
    if f.name in ("bfloat16", "float8_e5m2") or f.name not in TYPES:
        assert not refused


# -- blocks, and unsupported dtypes -----------------------------------------


def test_tiles(file: Any) -> None:
    x = np.linspace(-3, 5, 77).reshape(7, 11)
    for format, scale_format in [("float8_e3m4", "bfloat16"), ("int8", "float32")]:
        a = td.blocks.quantize_tiles(x, format, (3, 5), scale_format=scale_format)
        assert td.hdf5.read(td.hdf5.write(file, format, a)) == a


def test_blocks(file: Any) -> None:
    a = td.blocks.quantize(np.linspace(-3, 5, 640).reshape(10, 64), "mxfp4")
    dataset = td.hdf5.write(file, "a", a, compression="gzip")
    got = td.hdf5.read(dataset)
    assert (got.format, got.shape) == ("mxfp4", (10, 64))
    assert got.buffer.tobytes() == a.buffer.tobytes()
    with pytest.raises(TypeError, match=r"use selection=\.\.\. and out=None"):
        td.hdf5.read(dataset, np.s_[:3])
    with pytest.raises(TypeError, match=r"use td\.hdf5\.write"):
        td.hdf5.assign(dataset, np.s_[:3], 1)
    dataset.attrs["tf32dtype blocks"] = "{'format': 'mxfp4'}"
    with pytest.raises(ValueError, match="blocks of /a: block metadata must be a dict"):
        td.hdf5.read(dataset)


def test_what_cannot_be_written(file: Any) -> None:
    a = np.zeros(4, td.bfloat16)
    record = np.zeros(3, [("x", "f4"), ("y", td.bfloat16, 2)])
    refused = [
        (record, {}, TypeError, "dtype that HDF5 keeps; got bfloat16"),
        (np.zeros(3, ml_dtypes.int4), {}, TypeError, "HDF5 keeps; got int4"),
        (np.ma.array(a, mask=False), {}, TypeError, "must not have a mask"),
        (a, {"scaleoffset": 2}, ValueError, "scaleoffset must be None for bfloat16"),
        (
            td.blocks.quantize(np.ones(32), "mxfp4"),
            {"dtype": "f4"},
            ValueError,
            "dtype",
        ),
    ]
    for what, options, error, match in refused:
        with pytest.raises(error, match=match):
            td.hdf5.write(file, "a", what, **options)
        assert "a" not in file
    with pytest.raises(TypeError, match=r"group must be an h5py.Group.*got 'a.h5'"):
        td.hdf5.write("a.h5", "a", a)
    with pytest.raises(TypeError, match=r"h5py.Dataset; got 'a.h5'. Use td.hdf5.load"):
        td.hdf5.read("a.h5")
    td.hdf5.write(file, "a", a)
    with pytest.raises(ValueError, match="already exists"):
        td.hdf5.write(file, "a", a[:1])
    assert file["a"].shape == (4,)


def test_attributes_that_lie(file: Any) -> None:
    dataset = td.hdf5.write(file, "a", np.zeros(3, np.uint8))
    for value, match in (
        ("float8_e9m9", "must be one of tf32, float8_e4m3, .*got 'float8_e9m9'"),
        ("bfloat16", "got 'bfloat16'"),
        (
            "tf32",
            "hold float32, as its attribute .* is tf32; got uint8 of 8 bits",
        ),
        (3, "must be a string of at most"),
        (["float8_e4m3", "tf32"], "must be a string of at most"),
        ("x" * 60_000, "got 'x"),
    ):
        dataset.attrs["tf32dtype"] = value
        with pytest.raises(ValueError, match=match):
            td.hdf5.read(dataset)
    dataset.attrs["tf32dtype"] = "float8_e4m3"  # another length and kind of string
    assert td.hdf5.read(dataset).dtype == td.float8_e4m3
