"""td.load of damaged and hostile files: one error that names the file."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tf32dtype as td

pytestmark = pytest.mark.once


def npy(header: str, data: bytes = b"\0" * 8) -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def archive(member: bytes, **keywords: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **keywords) as file:
        file.writestr("x.npy", member)
    return stream.getvalue()


HEADER = "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }"
BAD = {
    "no end": (HEADER[:-9], "not have a valid header"),
    "NUL": (HEADER[:-1] + "\0", "not have a valid header"),
    "an open text": (HEADER.replace("False", "'"), "not have a valid header"),
    "deep": (HEADER.replace("False", "(" * 5000), "not have a valid header"),
    "negative": (HEADER.replace("(4,)", "(-4,)"), r"shape must be .*got \(-4,\)"),
    "a bool": (HEADER.replace("(4,)", "(4, True)"), r"got \(4, True\)"),
    "two that are": (HEADER.replace("(4,)", "(-4, -1)"), r"got \(-4, -1\)"),
    "longer": (HEADER.replace("4", "5"), "10 bytes .uint16, shape .5,.*; got 8"),
    "huge": (HEADER.replace("4", str(2**40)), "is truncated: .*; got 8"),
    "overflow": (HEADER.replace("4,", f"{2**62}, {2**62}"), "is truncated: .*; got 8"),
    "no dtype": (HEADER.replace("u2", "u3"), "not have a valid header"),
    "a format": (f"{HEADER} # tf32dtype: float9", "format must be .*; got 'float9'"),
    "its size": (
        f"{HEADER} # tf32dtype: tf32",
        "integers of 4 bytes; got uint16",
    ),
    "blocks": (
        f"{HEADER} # tf32dtype blocks: 3",
        "a dictionary of format, .*; got '3'",
    ),
    "blocks cut": (f"{HEADER} # tf32dtype blocks: {{", "a dictionary of format"),
}


@pytest.mark.parametrize("fault", BAD)
def test_faults_of_headers(fault: str, tmp_path: Path) -> None:
    header, words = BAD[fault]
    path = tmp_path / "a"  # many errors contain this name
    path.write_bytes(npy(header))
    for mode in (None, "r"):
        with pytest.raises(ValueError, match=words) as caught:
            td.load(path, mmap_mode=mode)
        assert str(path) in str(caught.value)
    packed = tmp_path / "a.npz"
    packed.write_bytes(archive(npy(header)))
    with td.load(packed) as arrays, pytest.raises(ValueError, match=words) as caught:
        arrays["x"]
    assert f"x in {packed}" in str(caught.value)


def test_sound_headers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy(HEADER, np.arange(4, dtype="<u2").tobytes()))
    assert td.load(path).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_that_says_too_much(method: int, tmp_path: Path) -> None:
    """Allocate nothing by the sizes that an archive claims for its members."""
    member = npy(HEADER.replace("4", str(2**28)))
    raw = bytearray(archive(member, compression=method))
    directory = raw.rindex(b"PK\1\2")
    for at in (22, directory + 24):  # unpacked size
        raw[at : at + 4] = struct.pack("<I", 2**31)
    raw[directory + 20 : directory + 24] = struct.pack("<I", 2**31)  # packed size
    path = tmp_path / "a.npz"
    path.write_bytes(raw)
    tracemalloc.start()
    with td.load(path) as arrays, pytest.raises(ValueError, match=r"x in .*a\.npz"):
        arrays["x"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 24


def test_errors_of_reading_stay(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        td.load(tmp_path / "nothing.npy")
    with pytest.raises(IsADirectoryError):
        td.load(tmp_path)


def test_an_archive_that_ends_too_early(tmp_path: Path) -> None:
    raw = bytearray(archive(npy(HEADER), compression=zipfile.ZIP_DEFLATED))
    directory = raw.rindex(b"PK\1\2")
    raw[directory + 20 : directory + 24] = struct.pack("<I", 0)  # packed size
    path = tmp_path / "a.npz"
    path.write_bytes(raw)
    with td.load(path) as arrays, pytest.raises(ValueError, match=r"x in .*a\.npz"):
        arrays["x"]


def test_raw_bytes_are_told(tmp_path):
    a = np.array([1.5, 2], td.bfloat16)
    np.save(tmp_path / "a.npy", a)
    np.savez(tmp_path / "a.npz", a=a)
    with pytest.warns(
        UserWarning, match=r"a\.npy holds raw items of 2 bytes.*bfloat16"
    ):
        found = td.load(tmp_path / "a.npy")
    assert np.array_equal(found.view(td.bfloat16), a)
    with pytest.warns(UserWarning, match=r"a in .*a\.npz holds raw items"):
        td.load(tmp_path / "a.npz")["a"]
