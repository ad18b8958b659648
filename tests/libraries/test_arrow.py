"""Columns of the formats in Arrow: round trips by files, nulls, other readers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import tf32dtype as td  # noqa: E402
from tests.reference.codec_arrays import all_items, values  # noqa: E402
from tests.reference.formats import Format  # noqa: E402
from tests.support.bits import ALL, array, items_of, name  # noqa: E402
from tests.support.interpreters import run, run_code  # noqa: E402
from tf32dtype.interop.arrow import NumberType, from_arrow, to_arrow  # noqa: E402

pytestmark = pytest.mark.once


def through_file(table: Any, way: str, folder: Path) -> Any:
    path = str(folder / way)
    if way == "parquet":
        pq.write_table(table, path, row_group_size=1000)
        return pq.read_table(path)
    if way == "feather":
        feather.write_feather(table, path)
        return feather.read_table(path)
    open_stream = pa.ipc.new_file if way == "file" else pa.ipc.new_stream
    with open_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    read = pa.ipc.open_file if way == "file" else pa.ipc.open_stream
    with pa.OSFile(path) as stream:
        return read(stream).read_all()


@pytest.mark.parametrize("way", "parquet feather file stream".split())
@pytest.mark.parametrize("f", ALL, ids=name)
def test_every_code_comes_back_from_a_file(f: Format, way: str, tmp_path: Path) -> None:
    codes = all_items(f)[:: max(1, f.count // 4096)]
    column = to_arrow(array(f, codes))
    assert column.type == NumberType(f.name)
    assert column.type.extension_name == f"tf32dtype.{f.name}"
    back = through_file(pa.table({"x": column}), way, tmp_path)["x"]
    assert back.type == column.type
    np.testing.assert_array_equal(items_of(f, from_arrow(back)), codes)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_the_storage_is_codes_and_scalars_are_floats(f: Format) -> None:
    codes = all_items(f)[:: max(1, f.count // 512)]
    column = to_arrow(array(f, codes))
    assert column.type.storage_type == pa.binary(f.item_bits // 8)
    stored = b"".join(column.storage.to_pylist())
    assert stored == codes.astype(codes.dtype.newbyteorder("<")).tobytes()
    np.testing.assert_array_equal(column.to_pylist(), values(f, codes))
    np.testing.assert_array_equal(items_of(f, np.asarray(column)), codes)


def test_memory_is_shared() -> None:
    a = np.ones(100, td.bfloat16)
    column = to_arrow(a)
    found = from_arrow(column)
    assert not found.flags.writeable
    assert np.shares_memory(found, np.frombuffer(column.buffers()[1], np.uint8))
    assert column.to_numpy(writable=True).flags.writeable


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 5), (0,), (0, 3), (3, 0), (2, 0, 4)])
def test_more_axes_are_lists_of_a_fixed_size(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    a = np.arange(np.prod(shape)).reshape(shape).astype(td.float8_e4m3fn)
    column = to_arrow(a)
    assert len(column) == shape[0]
    np.testing.assert_array_equal(from_arrow(column), a, strict=True)
    kind = NumberType(a.dtype)
    for length in reversed(shape[1:]):
        kind = pa.list_(kind, length)
    assert column.type == kind
    if 0 not in shape:  # Parquet has no lists of length 0
        back = through_file(pa.table({"x": column}), "parquet", tmp_path)["x"]
        np.testing.assert_array_equal(from_arrow(back), a, strict=True)
        np.testing.assert_array_equal(from_arrow(column[1:]), a[1:], strict=True)


def test_any_strides_and_ml_dtypes() -> None:
    a = np.arange(24).reshape(4, 6).astype(td.bfloat16)
    np.testing.assert_array_equal(from_arrow(to_arrow(a.T[::2])), a.T[::2])
    ml_dtypes = pytest.importorskip("ml_dtypes")
    theirs = a.view(ml_dtypes.bfloat16)
    assert to_arrow(theirs).equals(to_arrow(a))


def test_slices_and_chunks() -> None:
    a = np.arange(20).astype(td.bfloat16)
    column = to_arrow(a)
    np.testing.assert_array_equal(from_arrow(column[3:7]), a[3:7])
    chunked = pa.chunked_array([column[3:7], column[:0], column[9:]])
    np.testing.assert_array_equal(from_arrow(chunked), np.concatenate([a[3:7], a[9:]]))
    none = from_arrow(pa.chunked_array([], column.type))
    assert (none.dtype, none.shape) == (a.dtype, (0,))
    assert pickle.loads(pickle.dumps(column)).equals(column)


def test_what_is_null() -> None:
    a = np.ma.array(np.arange(12).astype(td.bfloat16), mask=[1, 0, 0] * 4)
    for x in (a, a.reshape(3, 4)):
        column = to_arrow(x)
        back = from_arrow(column, masked=True)
        np.testing.assert_array_equal(back.mask, x.mask)
        np.testing.assert_array_equal(back.compressed(), x.compressed())
        with pytest.raises(
            ValueError, match=r"not have nulls; got 4 of 12 .* masked=True"
        ):
            from_arrow(column)
    column = to_arrow(a)
    assert column.null_count == 4
    assert column.to_pylist()[:3] == [None, 1, 2]
    back = from_arrow(pa.chunked_array([column[1:3], column[3:]]), masked=True)
    np.testing.assert_array_equal(back.mask, a.mask[1:])
    lists = pa.array([None, [b"\0\0"]], pa.list_(pa.binary(2), 1))
    with pytest.raises(ValueError, match="null lists; got 1 of 2"):
        from_arrow(lists, "bfloat16", masked=True)


def test_arrays_that_do_not_know_their_format() -> None:
    a = np.array([1.5, -2, 3], td.bfloat16)
    plain = to_arrow(a).storage
    assert from_arrow(plain[1:], "bf16").tolist() == [-2, 3]
    assert from_arrow(pa.array(a.view(np.uint16)), td.bfloat16).tolist() == a.tolist()
    with pytest.raises(TypeError, match=r"tf32dtype type; got fixed_size_binary\[2\]"):
        from_arrow(plain)
    with pytest.raises(TypeError, match=r"of float8_e5m2; got fixed_si"):
        from_arrow(plain, "float8_e5m2")
    with pytest.raises(TypeError, match=r"must be bfloat16, .* got 'tf32'"):
        from_arrow(to_arrow(a), "tf32")
    with pytest.raises(TypeError, match="tf32dtype type; got string"):
        from_arrow(pa.array(["a"]))
    with pytest.raises(TypeError, match=r"Array or ChunkedArray, .* got "):
        from_arrow(a)


def test_what_is_no_array_of_a_format() -> None:
    with pytest.raises(TypeError, match="float32"):
        to_arrow(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="got a scalar"):
        to_arrow(td.bfloat16(1))


def test_no_reader_takes_codes_for_numbers() -> None:
    column = to_arrow(np.ones(3, td.bfloat16))
    with pytest.raises(pa.ArrowNotImplementedError):
        column.cast(pa.float32())
    with pytest.raises(pa.ArrowTypeError):
        pa.array([1.0], column.type)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"bfloat16", b"bfloat99", "format must be .*; got 'bfloat99'"),
        (b"bfloat16", b"\xff" * 8, "utf-8"),
    ],
)
def test_a_foreign_format_is_refused(old: bytes, new: bytes, what: str) -> None:
    stream = pa.BufferOutputStream()
    batch = pa.record_batch({"x": to_arrow(np.ones(3, td.bfloat16))})
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write(batch)
    # Change the type's metadata, which names the format; the type's name stays.
    data = stream.getvalue().to_pybytes()
    bad = data.replace(b"\x08\0\0\0" + old, b"\x08\0\0\0" + new)
    assert bad != data
    with pytest.raises(ValueError, match=what):
        pa.ipc.open_stream(bad).read_all()


def test_another_storage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be fixed_size_binary\[2\]; got"):
        NumberType.__arrow_ext_deserialize__(pa.binary(4), b"bfloat16")


def test_a_reader_without_the_types_gets_bytes_and_their_name(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": to_arrow(np.array([1, 2], td.bfloat16))}), path)
    code = """import sys, pyarrow.parquet as pq
field = pq.read_table(sys.argv[1]).schema.field("x")
print(field.type, field.metadata[b"ARROW:extension:name"])
import numpy as np, tf32dtype as td
column = pq.read_table(sys.argv[1])["x"]
print(td.interop.arrow.from_arrow(column, "bfloat16").tolist())
# A thread of pyarrow 26 may still hold a type written in Python, anybody's, when the
# program ends, and C++ terminates it.
print(pq.read_table(sys.argv[1], use_threads=False)["x"].type)"""
    assert run("-c", code, path).splitlines() == [
        "fixed_size_binary[2] b'tf32dtype.bfloat16'",
        "[1.0, 2.0]",
        "extension<tf32dtype.bfloat16<NumberType>>",
    ]


# -- pandas, polars ------------------------------------------------------------------


def test_pandas_gets_numbers(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    a = np.array([1.5, -2, 3], td.bfloat16)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": to_arrow(a), "y": [1, 2, 3]}), path)
    for frame in (pq.read_table(path).to_pandas(), pd.read_parquet(path)):
        assert frame["x"].to_numpy().dtype == a.dtype
        assert frame["x"].tolist() == [1.5, -2, 3]
        assert (frame["x"] * 2).sum() == 5
        plain = frame.astype({"x": td.bfloat16})
        assert plain["x"].dtype == a.dtype
        again = pa.table({"x": to_arrow(plain["x"].to_numpy())})
        np.testing.assert_array_equal(from_arrow(again["x"]), a)
    assert to_arrow(a).to_pandas().tolist() == a.tolist()
    column = to_arrow(np.ma.array(a, mask=[0, 1, 0])).to_pandas()
    assert column.isna().tolist() == [False, True, False]
    fp4 = to_arrow(np.ma.array(a.astype(td.fp4), mask=[0, 1, 0]))
    with pytest.raises(ValueError, match="got 1 of 3 null"):
        fp4.to_pandas()


@pytest.mark.parametrize("f", ALL, ids=name)
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (0, 3)])
def test_pandas_gets_lists_as_arrays(
    f: Format, shape: tuple[int, ...], tmp_path: Path
) -> None:
    pd = pytest.importorskip("pandas")
    codes = all_items(f)[:: max(1, f.count // 16)]
    a = array(f, np.resize(codes, shape))
    path = str(tmp_path / "a.parquet")
    table = pa.table({"x": to_arrow(a), "y": range(len(a))})
    pq.write_table(table, path, row_group_size=2)
    np.testing.assert_array_equal(from_arrow(pq.read_table(path)["x"]), a)
    for frame in (table.to_pandas(), pd.read_parquet(path)):
        assert [row.dtype for row in frame["x"]] == [a.dtype] * len(a)
        for row, codes in zip(frame["x"], items_of(f, a), strict=True):
            np.testing.assert_array_equal(items_of(f, row), codes)
        if len(a):
            assert np.stack(frame["x"]).shape == a.shape


def test_pandas_gets_what_holds_numbers() -> None:
    pytest.importorskip("pandas")
    numbers = to_arrow(np.array([1.5, -2, 3], td.bfloat16))
    for lists in (pa.ListArray, pa.LargeListArray):
        rows = lists.from_arrays([0, 1, 3], numbers).take(pa.array([1, None, 0]))
        column = pa.table({"x": rows}).to_pandas()["x"]
        assert [None if row is None else row.tolist() for row in column] == [
            [-2, 3],
            None,
            [1.5],
        ]
        assert column[0].dtype == td.bfloat16
        nested = pa.ListArray.from_arrays([0, 2], rows.drop_null())
        column = pa.table({"x": nested}).to_pandas()["x"]
        assert [row.tolist() for row in column[0]] == [[-2, 3], [1.5]]
    holed = to_arrow(np.ma.array(np.ones((2, 2), td.bfloat16), mask=[[0, 1], [0, 0]]))
    column = pa.table({"x": holed}).to_pandas()["x"]
    assert np.isnan(np.stack(column)).tolist() == [[False, True], [False, False]]
    struct = pa.StructArray.from_arrays([numbers], ["a"])
    assert pa.table({"x": struct}).to_pandas()["x"].tolist() == struct.to_pylist()
    maps = pa.MapArray.from_arrays([0, 3], pa.array(list("abc")), numbers)
    assert pa.table({"x": maps}).to_pandas()["x"].tolist() == maps.to_pylist()
    fp4 = to_arrow(np.ma.array(np.ones((2, 2), td.fp4), mask=[[0, 1], [0, 0]]))
    with pytest.raises(ValueError, match="got 1 of 2 null"):
        pa.table({"x": fp4}).to_pandas()
    floats = pa.table({"x": pa.array([[1.0], [2.0, 3.0]])}).to_pandas()["x"]
    assert [row.tolist() for row in floats] == [[1], [2, 3]]


def test_polars_takes_float32() -> None:
    pl = pytest.importorskip("polars")
    a = np.array([1.5, -2, 3], td.bfloat16)
    series = pl.Series(a.astype(np.float32))
    assert series.to_list() == [1.5, -2, 3]
    assert series.to_numpy().astype(td.bfloat16).tolist() == a.tolist()


def test_without_pyarrow() -> None:
    code = """import sys; sys.modules["pyarrow"] = None
import tf32dtype as td
try: td.interop.arrow
except AttributeError as error: print(error)
try: import tf32dtype.interop.arrow
except ImportError as error: print(error)"""
    assert run_code(code).count("pip install 'pyarrow>=") == 2
