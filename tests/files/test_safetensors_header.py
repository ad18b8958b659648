"""Headers of safetensors files: one error names each fault."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._files.safetensors import header

pytestmark = pytest.mark.once


def tensor(dtype: str, shape: list[Any], begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def framed(text: bytes | str, data: bytes = b"", length: int | None = None) -> bytes:
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def of(table: Any, data: bytes = b"") -> bytes:
    return framed(json.dumps(table), data)


TWO = {"a": tensor("U8", [4], 0, 4), "b": tensor("U8", [4], 4, 8)}
U8 = tensor("U8", [1], 0, 1)
TWICE = '{"a": %s, "a": %s}' % ((json.dumps(tensor("U8", [0], 0, 0)),) * 2)
NESTED = "[" * 100_000
#: Files, and a piece of their error message.
BAD = {
    "empty": (b"", "at least 8 bytes; got 0"),
    "no length": (b"\1\0\0", "at least 8 bytes; got 3"),
    "longer than the file": (framed("{}", length=3), "3 bytes, .* got only 2"),
    "longer than allowed": (framed("{}", length=100_000_001), "got 100000001"),
    "longest": (framed("{}", length=2**64 - 1), "got 18446744073709551615"),
    "no UTF-8": (framed(b'{"\xff": 1}'), "byte 2 is not UTF-8"),
    "no JSON": (framed('{"a"'), "not valid JSON"),
    "an empty header": (framed(""), "not valid JSON"),
    "more after it": (framed("{}{}"), "not valid JSON: Extra data"),
    "NUL after it": (framed("{}\0"), "not valid JSON: Extra data"),
    "a number": (framed("3"), "must be an object; got 3"),
    "a list": (framed("[]"), r"must be an object; got \[\]"),
    "deep": (framed(NESTED), "JSON must have few levels"),
    "NaN": (framed('{"__metadata__": NaN}'), "NaN is not valid JSON"),
    "a huge number": (framed('{"a": %s}' % ("9" * 5000)), "4300 digits"),
    "twice": (framed(TWICE), "keys must be different; got 'a' twice"),
    "dtype twice": (
        framed('{"a": {"dtype": "U8", "dtype": "I8"}}'),
        "must be different; got 'dtype' twice",
    ),
    "half a surrogate": (framed('{"\\ud800": {}}'), "surrogate"),
    "metadata is a list": (of({"__metadata__": []}), "metadata must be a mapping"),
    "metadata is a number": (of({"__metadata__": {"k": 1}}), "got 1 .key 'k'"),
    "metadata's surrogate": (of({"__metadata__": {"k": "\ud800"}}), "surrogate"),
    "no object": (of({"a": [1]}), r"tensor 'a': entry must be an object; got \[1\]"),
    "no dtype": (
        of({"a": {"shape": [], "data_offsets": [0, 0]}}),
        "'a': entry must have dtype",
    ),
    "no shape": (
        of({"a": {"dtype": "U8", "data_offsets": [0, 0]}}),
        "entry must have shape",
    ),
    "no offsets": (of({"a": {"dtype": "U8", "shape": [0]}}), "must have data_offsets"),
    "an unknown dtype": (
        of({"a": tensor("F5", [1], 0, 1)}, b"1"),
        "'a': dtype must be one of BOOL, F4, .*U64; got 'F5'",
    ),
    "a dtype that is none": (
        of({"a": {**U8, "dtype": ["U8"]}}, b"1"),
        "must be one of BOOL",
    ),
    "a shape that is none": (
        of({"a": {**U8, "shape": 1}}, b"1"),
        "must be a list; got 1",
    ),
    "negative": (
        of({"a": tensor("U8", [-1], 0, 1)}, b"1"),
        r"shape must be integers .* got \[-1\]",
    ),
    "a float": (
        of({"a": tensor("U8", [1.0], 0, 1)}, b"1"),
        r"got \[1\.0\]",
    ),
    "a bool": (
        of({"a": tensor("U8", [True], 0, 1)}, b"1"),
        r"got \[True\]",
    ),
    "a text": (of({"a": tensor("U8", ["1"], 0, 1)}, b"1"), "got .'1'."),
    "huge": (of({"a": tensor("U8", [2**40], 0, 2**40)}), "got end 1099511627"),
    "overflow": (
        of({"a": tensor("U8", [2**32, 2**32], 0, 0)}),
        "less than 2..63 bytes",
    ),
    "overflow of bytes": (
        of({"a": tensor("F64", [2**60], 0, 0)}),
        "less than 2..63 bytes",
    ),
    "overflow without items": (
        of({"a": tensor("F64", [0, 2**60], 0, 0)}),
        "less than 2..63 bytes",
    ),
    "beyond 64 bits": (
        of({"a": tensor("U8", [2**64], 0, 0)}),
        "shape must be integers",
    ),
    "65 axes": (of({"a": tensor("U8", [1] * 65, 0, 1)}, b"1"), "64 dimensions; got 65"),
    "offsets of three": (
        of({"a": {**U8, "data_offsets": [0, 0, 1]}}, b"1"),
        r"data_offsets must be two .* got \[0, 0, 1\]",
    ),
    "offsets of floats": (of({"a": tensor("U8", [1], 0, 1.0)}, b"1"), "must be two"),
    "offsets below": (of({"a": tensor("U8", [1], -1, 0)}, b"1"), "must be two"),
    "offsets beyond": (of({"a": tensor("U8", [1], 0, 2**64)}, b"1"), "must be two"),
    "offsets reversed": (of({"a": tensor("U8", [1], 1, 0)}, b"1"), "which span -1"),
    "too few bytes": (of({"a": tensor("F32", [2], 0, 4)}, b"1234"), "span 8 .* span 4"),
    "too many": (of({"a": tensor("F32", [], 0, 8)}, b"1" * 8), "span 4 .* span 8"),
    "half a byte": (
        of({"a": tensor("F4", [3], 0, 2)}, b"12"),
        "3 elements of F4, 4 bits",
    ),
    "a part of a byte": (
        of({"a": tensor("F6_E2M3", [2, 3], 0, 5)}, b"12345"),
        "fill whole bytes; got 6 elements of F6_E2M3, 6",
    ),
    "overlap": (
        of({**TWO, "b": tensor("U8", [4], 2, 6)}, b"123456"),
        "tensors 'a' and 'b' must not overlap; got bytes",
    ),
    "the same bytes": (
        of({"a": U8, "b": U8}, b"1"),
        "tensors 'a' and 'b' must not overlap; got bytes",
    ),
    "a hole": (
        of({**TWO, "b": tensor("U8", [4], 5, 9)}, b"123456789"),
        "bytes .* before tensor 'b', do not belong to any tensor",
    ),
    "a hole first": (of({"a": tensor("U8", [1], 1, 2)}, b"12"), "before tensor 'a'"),
    "cut short": (of(TWO, b"1234567"), "tensor 'b' must end within .*; got end "),
    "more": (of(TWO, b"123456789"), "the last 1 bytes do not belong to any"),
    "more, and no tensor": (of({}, b"1"), "the last 1 bytes do not belong to any"),
}


@pytest.mark.parametrize("fault", BAD)
def test_faults_are_refused(fault: str, tmp_path: Path) -> None:
    data, words = BAD[fault]
    path = tmp_path / "weights.safetensors"
    path.write_bytes(data)
    for mmap in (True, False):
        with pytest.raises(ValueError, match=words) as caught:
            td.safetensors.load(path, mmap=mmap)
        assert str(caught.value).startswith(f"{path} is not a valid safetensors file: ")
        assert len(str(caught.value)) < 600
        assert path.read_bytes() == data


def test_what_the_faults_are_made_of_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for table, data in ((TWO, b"12345678"), ({"a": U8}, b"1"), ({}, b"")):
        path.write_bytes(of(table, data))
        assert list(td.safetensors.load(path)) == list(table)
    spaces = {"__metadata__": None, "b": {**TWO["b"], "more": 1}, "a": TWO["a"]}
    path.write_bytes(framed(" " + json.dumps(spaces) + " \n", b"12345678"))
    found = td.safetensors.load(path)
    assert {name: a.tobytes() for name, a in found.items()} == {
        "a": b"1234",
        "b": b"5678",
    }


def test_nothing_is_allocated_for_an_unchecked_header(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "a.safetensors"
    path.write_bytes(of({"a": tensor("U8", [2**33], 0, 2**33)}))
    tracemalloc.start()
    with pytest.raises(ValueError, match="must end within"):
        td.safetensors.load(path, mmap=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


# -- written ----------------------------------------------------------------


def test_a_header_is_as_documented() -> None:
    specs = [
        ("b", "BF16", (2, 3)),
        ("a", "BF16", ()),
        ("z", "U64", (1,)),
        ("m", "F4", (4,)),
    ]
    head, offsets = header.write(specs, {"y": "1", "x": "é\n"})
    text = (
        '{"__metadata__":{"x":"é\\n","y":"1"},'
        '"z":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},'
        '"a":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},'
        '"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[10,22]},'
        '"m":{"dtype":"F4","shape":[4],"data_offsets":[22,24]}}'
    ).encode()
    size = -(-len(text) // 8) * 8
    assert head == struct.pack("<Q", size) + text.ljust(size)
    start = len(head)
    begins = {"z": start, "a": start + 8, "b": start + 10, "m": start + 22}
    assert list(offsets.items()) == list(begins.items())


@pytest.mark.parametrize(
    ("specs", "metadata", "error", "words"),
    [
        (
            [("a", "U8", (1,)), ("a", "I8", (1,))],
            None,
            ValueError,
            "different names; got 'a'",
        ),
        ([("a", "F5", (1,))], None, ValueError, "dtype must be one of"),
        ([("a", "F4", (3,))], None, ValueError, "tensor 'a': .* 3 elements of F4"),
        ([("a", "U8", (-1,))], None, ValueError, "shape must be integers"),
        (
            [("__metadata__", "U8", (1,))],
            None,
            ValueError,
            "name must not be __metadata__",
        ),
        ([("\ud800", "U8", (1,))], None, ValueError, "surrogate"),
        ([(3, "U8", (1,))], None, TypeError, "names must be strings; got 3"),
        ([], {"a": 3}, TypeError, "got 3 .key 'a'"),
        ([], {3: "a"}, TypeError, "got 3 "),
        ([], "a", TypeError, "metadata must be a mapping of strings; got 'a'"),
    ],
)
def test_what_no_header_has(
    specs: Any, metadata: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        header.write(specs, metadata)


def test_a_header_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header, "MAX_HEADER", 1000)
    with pytest.raises(ValueError, match="at most 1000 bytes"):
        header.write([], {"a": "x" * 1000})
    assert len(header.write([], {"a": "x" * 900})[0]) > 900


# -- indexes ----------------------------------------------------------------

INDEX = "model.safetensors.index.json"
BAD_INDEXES = {
    "no JSON": (b"{", "not valid JSON"),
    "a list": (b"[]", "must be an object"),
    "no map": (b"{}", "weight_map must be an object; got None"),
    "a list of names": (b'{"weight_map": ["a"]}', "must be an object"),
    "twice": (
        b'{"weight_map": {"a": "x", "a": "y"}}',
        "keys must be different; got 'a' twice",
    ),
    "a number": (b'{"weight_map": {"a": 1}}', "tensor 'a' must be in a file; got 1"),
    "nothing": (b'{"weight_map": {"a": ""}}', "tensor 'a' must be in a file; got ''"),
    "up": (b'{"weight_map": {"a": "../s.safetensors"}}', "be in a file of the folder"),
    "down, up": (
        b'{"weight_map": {"a": "b/../../s.safetensors"}}',
        "in a file of the folder",
    ),
    "root": (b'{"weight_map": {"a": "/etc/hostname"}}', "got '/etc/hostname'"),
    "backslash": (
        rb'{"weight_map": {"a": "..\\s.safetensors"}}',
        "in a file of the folder",
    ),
    "drive": (rb'{"weight_map": {"a": "c:s.safetensors"}}', "in a file of the folder"),
    "NUL": (
        rb'{"weight_map": {"a": "s\u0000.safetensors"}}',
        "in a file of the folder",
    ),
    "surrogate": (rb'{"weight_map": {"a": "\ud800"}}', "in a file of the folder"),
    "itself": (
        b'{"weight_map": {"a": "%s"}}' % INDEX.encode(),
        "not a valid safetensors",
    ),
    "not there": (
        b'{"weight_map": {"c": "s.safetensors"}}',
        "does not have tensor 'c'",
    ),
}


@pytest.mark.parametrize("fault", BAD_INDEXES)
def test_faults_of_an_index(fault: str, tmp_path: Path) -> None:
    text, words = BAD_INDEXES[fault]
    folder = tmp_path / "folder"
    folder.mkdir()
    for place in (folder, tmp_path):
        (place / "s.safetensors").write_bytes(of({"a": U8}, b"1"))
    (folder / INDEX).write_bytes(text)
    with pytest.raises(ValueError, match=words) as caught:
        td.safetensors.load(folder / INDEX)
    assert str(folder / INDEX) in str(caught.value)


def test_an_index_too_long(tmp_path: Path) -> None:
    (tmp_path / INDEX).touch()
    os.truncate(tmp_path / INDEX, header.MAX_HEADER + 1)
    with pytest.raises(ValueError, match=r"index\.json .* at most 100000000 bytes"):
        td.safetensors.open(tmp_path)


def test_a_shard_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text('{"weight_map": {"a": "s.safetensors"}}')
    with pytest.raises(
        FileNotFoundError, match=r"s\.safetensors does not exist, .*index\.json"
    ):
        td.safetensors.open(tmp_path)


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.safetensors").write_bytes(of(TWO, b"1234"))
    (tmp_path / INDEX).write_text('{"weight_map": {"a": "s.safetensors"}}')
    with pytest.raises(
        ValueError, match=r"s\.safetensors is not a valid .* 'b' must end"
    ):
        td.safetensors.open(tmp_path)


@pytest.mark.parametrize(
    "formats",
    ["{", "[]", '{"a": "float9"}', '{"a": 3}', '{"a": ["tf32"]}', '{"a": null}'],
)
def test_faults_of_the_formats_names(formats: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    table = {"__metadata__": {"tf32dtype.formats": formats}, "a": U8}
    path.write_bytes(of(table, b"1"))
    with pytest.raises(
        ValueError, match=r"a\.safetensors: metadata tf32dtype.formats: "
    ):
        td.safetensors.load(path)


def test_formats_of_what_others_have_changed_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    names = {"a": "tf32", "b": "float8_e3m4", "gone": "tf32"}
    table = {"__metadata__": {"tf32dtype.formats": json.dumps(names)}, **TWO}
    path.write_bytes(of(table, b"12345678"))
    found = td.safetensors.load(path)
    assert found["a"].dtype == np.uint8  # tf32 is not stored as uint8
    assert found["b"].dtype == td.float8_e3m4
