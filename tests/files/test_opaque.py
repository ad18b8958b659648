"""Items that np.save wrote without a type, and ways to name their format."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._cli.main import main

#: The items of 1, -2 and 3, by hand: sign, exponent, mantissa.
CODES = {
    "bfloat16": np.array([0x3F80, 0xC000, 0x4040], "<u2"),
    "float8_e4m3fn": np.array([0x38, 0xC0, 0x44], "u1"),
    "float8_e5m2": np.array([0x3C, 0xC0, 0x42], "u1"),
    "tf32": np.array([0x3F800000, 0xC0000000, 0x40400000], "<u4"),
}


def raw(name: str) -> Any:
    codes = CODES[name]
    return codes.view(f"V{codes.itemsize}")


def check(array: Any, name: str) -> None:
    assert array.dtype == td.formats[name].dtype
    assert array.astype(float).tolist() == [1, -2, 3]


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("mode", [None, "r", "r+", "c"])
def test_the_keyword_names_it(name: str, mode: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", raw(name))
    check(td.load(tmp_path / "a.npy", mmap_mode=mode, dtype=name), name)
    dtype = td.formats[name].dtype
    check(td.load(tmp_path / "a.npy", mmap_mode=mode, dtype=dtype), name)
    np.savez(tmp_path / "a.npz", w=raw(name), u=np.arange(2))
    with td.load(tmp_path / "a.npz", dtype=name) as archive:
        check(archive["w"], name)
        assert archive["u"].dtype == np.arange(2).dtype
    stream = io.BytesIO((tmp_path / "a.npy").read_bytes())
    check(td.load(stream, dtype=name), name)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("beside", ["a.npy.json", "a.json"])
def test_a_json_file_names_it(
    name: str, beside: str, tmp_path: Path, capsys: Any
) -> None:
    np.save(tmp_path / "a.npy", raw(name))
    (tmp_path / beside).write_text(json.dumps({"dtype": name, "shape": [3]}))
    check(td.load(tmp_path / "a.npy"), name)
    check(td.load(tmp_path / "a.npy", mmap_mode="r"), name)
    assert main(["inspect", str(tmp_path / "a.npy"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["tensors"]
    assert (found["format"], found["min"], found["max"]) == (name, -2, 3)


def test_a_json_file_of_an_archive(tmp_path: Path, capsys: Any) -> None:
    np.savez(tmp_path / "a.npz", w=raw("bfloat16"), v=raw("tf32"), u=np.arange(2))
    names = {"w": "bfloat16", "v": {"dtype": "tf32", "shape": [3]}, "u": "bfloat16"}
    (tmp_path / "a.npz.json").write_text(json.dumps(names))
    with td.load(tmp_path / "a.npz") as archive:
        check(archive["w"], "bfloat16")
        check(archive["v"], "tf32")
        assert archive["u"].tolist() == [0, 1]
    assert main(["inspect", str(tmp_path / "a.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tensors"]
    assert [x["format"] for x in found] == ["bfloat16", "tf32", "int64"]


def test_the_keyword_goes_before_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", raw("float8_e5m2"))
    (tmp_path / "a.json").write_text('{"dtype": "float8_e4m3fn"}')
    check(td.load(tmp_path / "a.npy", dtype="float8_e5m2"), "float8_e5m2")


@pytest.mark.parametrize(
    "text",
    [
        '{"dtype": "float32"}',
        '{"dtype": "tf32"}',
        "[1]",
        "{",
        '{"dtype": 5}',
        "[" * 9999,
    ],
)
def test_what_names_no_format_of_the_size(text: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", raw("bfloat16"))
    (tmp_path / "a.json").write_text(text)
    with pytest.warns(UserWarning, match="raw items of 2 bytes"):
        assert td.load(tmp_path / "a.npy").dtype == np.dtype("V2")


def test_wrong_formats(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", raw("bfloat16"))
    with pytest.raises(ValueError, match=r"format of 2 bytes, .*; got float8_e4m3fn"):
        td.load(tmp_path / "a.npy", dtype="fp8_e4m3")
    with pytest.raises(ValueError, match="dtype must be one of"):
        td.load(tmp_path / "a.npy", dtype="bf17")


def test_arrays_with_a_type_keep_it(tmp_path: Path) -> None:
    fields = np.zeros(2, [("a", "V2"), ("b", "f4")])
    for array in (np.arange(3.0), np.arange(3, dtype="u2"), fields):
        np.save(tmp_path / "a.npy", array)
        (tmp_path / "a.json").write_text('{"dtype": "bfloat16"}')
        for dtype in (None, "bfloat16"):
            assert td.load(tmp_path / "a.npy", dtype=dtype).dtype == array.dtype
