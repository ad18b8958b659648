"""Tensors of ONNX: every code of each narrow type, and tensors with wrong claims."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import ml_dtypes  # noqa: E402
from onnx import TensorProto, numpy_helper  # noqa: E402

import tf32dtype as td  # noqa: E402
from tests.support.bits import ALL, items_of  # noqa: E402
from tf32dtype._files.onnx import from_array, to_array  # noqa: E402

pytestmark = pytest.mark.once

#: Number, name in this package and bits, from onnx.proto.
FLOATS = [
    (16, "bfloat16", 16),
    (17, "float8_e4m3fn", 8),
    (18, "float8_e4m3fnuz", 8),
    (19, "float8_e5m2", 8),
    (20, "float8_e5m2fnuz", 8),
    (23, "float4_e2m1fn", 4),
    (24, "float8_e8m0fnu", 8),
    (27, "float6_e2m3fn", 6),
    (28, "float6_e3m2fn", 6),
]
INTEGERS = [
    (21, "uint4", 4, range(16)),
    (22, "int4", 4, range(-8, 8)),
    (25, "uint2", 2, range(4)),
    (26, "int2", 2, range(-2, 2)),
]
KNOWN = TensorProto.DataType.values()
HAD = [row for row in FLOATS if row[0] in KNOWN]


def packed(codes: list[int], bits: int) -> bytes:
    """Pack codes into one long integer, from the lowest bit on."""
    number = sum(code << (i * bits) for i, code in enumerate(codes))
    return number.to_bytes(-(-len(codes) * bits // 8), "little")


def tensor(number: int, dims: tuple[int, ...], **fields: Any) -> Any:
    return TensorProto(name="w", data_type=number, dims=dims, **fields)


def form(name: str) -> Any:
    return next(f for f in ALL if f.name == name)


@pytest.mark.parametrize(("number", "name", "bits"), HAD)
def test_all_codes_from_bytes_and_from_integers(
    number: int, name: str, bits: int
) -> None:
    codes = [*range(1 << bits), 1]
    sources = {"raw": {"raw_data": packed(codes, bits)}}
    if bits == 4:
        sources["integers"] = {"int32_data": list(packed(codes, bits))}
    else:
        sources["integers"] = {"int32_data": codes}
    for source, fields in sources.items():
        given = tensor(number, (len(codes),), **fields)
        found = to_array(given)
        assert items_of(form(name), found).tolist() == codes, source
        theirs = numpy_helper.to_array(given)
        assert theirs.dtype == getattr(ml_dtypes, name)
        np.testing.assert_array_equal(theirs.view(found.dtype), found)


@pytest.mark.parametrize(("number", "name", "bits"), HAD)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0, 4)])
def test_arrays_come_back_and_are_what_onnx_writes(
    number: int, name: str, bits: int, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(number)
    codes = rng.integers(0, 1 << bits, shape)
    array = td.from_bits(codes, name)
    made = from_array(array, "w")
    assert made == numpy_helper.from_array(array.view(getattr(ml_dtypes, name)), "w")
    assert (made.data_type, tuple(made.dims)) == (number, shape)
    assert made.raw_data == packed(codes.reshape(-1).tolist(), bits)
    back = to_array(made)
    assert back.shape == shape
    assert (items_of(form(name), back) == codes).all()
    assert from_array(array.view(getattr(ml_dtypes, name)), "w") == made
    turned = to_array(from_array(array.T))
    assert (items_of(form(name), turned) == codes.T).all()


@pytest.mark.parametrize(("number", "name", "bits", "values"), INTEGERS)
def test_packed_integers(number: int, name: str, bits: int, values: range) -> None:
    if number not in KNOWN:
        pytest.skip(f"this onnx has no {name}")
    integers = [*values, values[0]]
    raw = packed([value & ((1 << bits) - 1) for value in integers], bits)
    for fields in ({"raw_data": raw}, {"int32_data": list(raw)}):
        found = to_array(tensor(number, (len(integers), 1), **fields))
        assert found.dtype == (np.int8 if min(values) < 0 else np.uint8)
        assert found[:, 0].tolist() == integers
    narrow = np.array(integers).astype(getattr(ml_dtypes, name))
    assert to_array(from_array(narrow)).tolist() == integers


@pytest.mark.parametrize(
    "dtype", "float32 float64 float16 int64 int8 uint32 bool complex64".split()
)
def test_other_dtypes_as_onnx_has_them(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    made = from_array(array, "w")
    assert made == numpy_helper.from_array(array, "w")
    found = to_array(made)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_fields_of_other_types() -> None:
    assert to_array(tensor(1, (2,), float_data=[0.5, 1])).tolist() == [0.5, 1]
    assert to_array(tensor(8, (2,), string_data=[b"a", b"b"])).tolist() == ["a", "b"]


@pytest.mark.parametrize("name", "tf32 float8_e4m3 float8_e3m4".split())
def test_formats_without_a_type(name: str) -> None:
    with pytest.raises(
        TypeError, match=rf"must be one that onnx .*bfloat16.*; got {name}"
    ):
        from_array(np.ones(3, name))


def test_a_whole_model(tmp_path: Path) -> None:
    weight = np.linspace(-3, 3, 12).reshape(3, 4).astype(td.float8_e4m3fn)
    graph = onnx.helper.make_graph([], "g", [], [], [from_array(weight, "w")])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    found = {t.name: to_array(t) for t in model.graph.initializer}
    np.testing.assert_array_equal(found["w"], weight)


HOSTILE = [
    (tensor(16, (2,), raw_data=b"123"), r"4 bytes for dims \(2,\); got 3"),
    (tensor(16, (1 << 40,), raw_data=b"12"), r"have 2199023255552 bytes .* got 2"),
    (tensor(23, (1 << 62, 4), raw_data=b"12"), "have 9223372036854775808 bytes"),
    (tensor(16, (-1, -2), raw_data=b"1234"), r"0 or more; got \(-1, -2\)"),
    (tensor(1, (-1,), raw_data=b"1234"), r"0 or more; got \(-1,\)"),
    (tensor(1, (3,), raw_data=b"1234"), "have 12 bytes for dims .* got 4"),
    (tensor(1, (3,), float_data=[1]), "reshape"),
    (tensor(9, (2,), raw_data=b"\x01\x02"), "bools must be 0 or 1"),
    (tensor(17, (2,), int32_data=[1, 256]), "int32_data must be .*got 256"),
    (tensor(17, (2,), int32_data=[-1, 1]), "int32_data must be .*got -1"),
    (tensor(23, (3,), int32_data=[1, 256]), "int32_data must be .*got 256"),
    (tensor(23, (3,), int32_data=[1]), "2 integers for 3 elements of 4 bits"),
    (tensor(16, (3,)), "int32_data must have 3 integers .* got 0"),
    (tensor(0, (1,), raw_data=b"1"), "data_type .* got 0"),
    (tensor(999, (1,), raw_data=b"1"), "data_type .* got 999"),
    (tensor(16, (0, 1 << 62), raw_data=b""), "array"),
    (tensor(16, (1,) * 70, raw_data=b"12"), "dimension"),
    (tensor(16, (1,), raw_data=b"12", segment={"begin": 0, "end": 1}), "a segment"),
]


@pytest.mark.parametrize(("given", "what"), HOSTILE)
def test_hostile_tensors_are_named(given: Any, what: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)tensor 'w': .*{what}"):
        to_array(given)


# -- data in a file ------------------------------------------------------------------


def external(number: int = 16, **entries: object) -> Any:
    given = tensor(number, (4,), data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        given.external_data.add(key=key, value=str(value))
    return given


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(bytes(range(100)))
    (tmp_path / "out.bin").write_bytes(bytes(100))
    os.symlink(tmp_path / "out.bin", folder / "link.bin")
    return folder


def test_data_in_a_file(folder: Path) -> None:
    for entries, start in [({}, 0), ({"offset": 6}, 6), ({"length": 8}, 0)]:
        given = external(location="w.bin", **entries)
        before = given.SerializeToString()
        found = to_array(given, folder)
        assert found.view(np.uint8).tolist() == [*range(start, start + 8)]
        assert given.SerializeToString() == before
    floats = to_array(external(1, location="w.bin"), folder)
    assert floats.tobytes() == bytes(range(16))


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ({"location": "../out.bin"}, "outside"),
        ({"location": "link.bin"}, "symbolic link"),
        ({"location": "/etc/passwd"}, "absolute path"),
        ({"location": "none.bin"}, "none.bin"),
        ({"location": ""}, "empty"),
        ({"location": "w.bin", "offset": 98}, ""),
        ({"location": "w.bin", "offset": -1}, "non-negative"),
        ({"location": "w.bin", "offset": 1 << 70}, ""),
        ({"location": "w.bin", "length": 1 << 50}, "must be 8 for dims"),
    ],
)
def test_hostile_places_are_refused(
    folder: Path, entries: dict[str, object], what: str
) -> None:
    with pytest.raises(ValueError, match=f"tensor 'w': .*{what}"):
        to_array(external(**entries), folder)


def test_a_file_needs_its_folder() -> None:
    with pytest.raises(ValueError, match=r"base_dir must be .*'w.bin'"):
        to_array(external(location="w.bin"))


def test_numbers_of_either_byte_order_become_tensors():
    for order in "<>":
        a = np.array([1.5, -2], f"{order}f8")
        found = td.interop.onnx.to_array(td.interop.onnx.from_array(a))
        assert found.tolist() == [1.5, -2]
