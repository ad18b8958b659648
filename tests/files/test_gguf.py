"""GGUF files with wrong claims, and unusual ones, read without the library."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.gguf_bytes import (
    ARRAY,
    MANY,
    MXFP4,
    TEXT,
    UNKNOWN,
    key,
    tensor,
    text,
    whole,
)
from tf32dtype._files.gguf import reading as reader

pytestmark = pytest.mark.once

ALIGNED = key(b"general.alignment", 4, struct.pack("<I", 64))
#: Bytes of a file, and a piece of its error message.
HOSTILE = [
    (b"", "the file is empty"),
    (b"GG", "ends within the magic"),
    (b"GGUF\3\0\0\0", "ends within the number of tensors"),
    (whole(magic=b"GGML"), "begin with b'GGUF'; got b'GGML'"),
    (whole(version=1), "version must be 2 or 3; got 1"),
    (whole(version=3 << 24), "big-endian. Use gguf-convert-endian"),
    (whole(counts=(MANY, 0)), "ends within|twice"),
    (whole(counts=(0, MANY)), "ends within|twice"),
    (
        whole(keys=(text(b"k", MANY),), counts=(0, 1)),
        f"key 0, which must have {MANY} byte",
    ),
    (whole(keys=(key(b"\xff", 0, b"1"),)), "key 0 must be UTF-8; got b'.xff'"),
    (whole(keys=(key(b"k", 13, b""),)), "value of 'k' must be .*got 13"),
    (whole(keys=(key(b"k", TEXT, text(b"", MANY)),)), "value of 'k', which must have"),
    (whole(keys=(key(b"k", 0, b"1"),) * 2), "keys must be different; got 'k' twice"),
    (
        whole(keys=(key(b"k", ARRAY, struct.pack("<IQ", 12, MANY)),)),
        f"value of 'k', which must have {8 * MANY} bytes",
    ),
    (
        whole(keys=(key(b"k", ARRAY, struct.pack("<IQ", TEXT, MANY)),)),
        "ends within the value of 'k'",
    ),
    (
        whole(keys=(key(b"k", ARRAY, struct.pack("<IQ", ARRAY, 1)),)),
        "'k' must not be an array of type 9",
    ),
    (
        whole(keys=(key(b"general.alignment", 4, struct.pack("<I", 48)),)),
        "power of two; got 48",
    ),
    (
        whole(keys=(key(b"general.alignment", TEXT, text(b"32")),)),
        "power of two; got '32'",
    ),
    (
        whole((tensor(b"w" * 9, dims=(1,) * 5),)),
        "'wwwwwwwww' must have at most 4 axes; got 5",
    ),
    (
        whole((text(b"w") + struct.pack("<I", MANY >> 32),)),
        "'w' must have .*got 4294967295",
    ),
    (
        whole((tensor(dims=(1 << 31, 1 << 31)),)),
        "'w' must fit in memory",
    ),
    (whole((tensor(dims=(0, MANY)),)), "'w' must fit in memory"),
    (
        whole((tensor(dims=(5,)),)),
        r"'w' of shape \(5,\) must .*got 20 bytes from byte 64",
    ),
    (whole((tensor(offset=32),)), "'w' of shape .* got 16 bytes from byte 96"),
    (whole((tensor(offset=MANY - 31),)), "'w' of shape"),
    (whole((tensor(offset=8),)), "'w' must begin at a multiple of 32; got 8"),
    (
        whole((tensor(offset=32),), (ALIGNED,)),
        "'w' must begin at a multiple of 64; got 32",
    ),
    (whole((tensor(), tensor())), "different names; got 'w' twice"),
    (whole((tensor(), tensor(b"v"))), "'w' and 'v' must not overlap"),
    (
        whole((tensor(dims=(48,), kind=MXFP4),)),
        "'w' must have rows of a multiple of 32 .*got 48",
    ),
    (
        whole((tensor(dims=(), kind=MXFP4),)),
        "'w' must have rows of a multiple of 32 .*got 1",
    ),
    (whole((tensor(b"\xff"),)), "name of tensor 0 must be UTF-8"),
]


@pytest.mark.parametrize(("data", "what"), HOSTILE, ids=[x for _, x in HOSTILE])
def test_hostile_files_are_refused(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(
        ValueError, match=rf"(?s)bad.gguf is not a valid GGUF file: .*{what}"
    ):
        reader.open(path)


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    data = whole(
        (tensor(), tensor(b"v", (4, 2), offset=32)), (ALIGNED[:-4] + b"\x20\0\0\0",), 64
    )
    path = tmp_path / "cut.gguf"
    path.write_bytes(data)
    assert reader.load(path)["v"].shape == (2, 4)
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"cut.gguf is not a valid GGUF file"):
            reader.open(path)


def test_a_kind_of_tomorrow_spares_the_others(tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    path.write_bytes(whole((tensor(), tensor(b"v", kind=UNKNOWN, offset=0))))
    assert reader.load(path, names=["w"])["w"].tolist() == [0] * 4
    with pytest.raises(ValueError, match=r"new.gguf: tensor 'v' must .*got kind 4000"):
        reader.load(path)


def test_a_single_number_and_none_at_all(tmp_path: Path) -> None:
    path = tmp_path / "few.gguf"
    path.write_bytes(whole((tensor(b"one", ()), tensor(b"none", (0, 3), MXFP4))))
    found = reader.load(path)
    assert found["one"].shape == ()
    assert found["none"].shape == (3, 0)


def test_texts_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "text.gguf"
    path.write_bytes(whole(keys=(key(b"k", TEXT, text(b"\xff\0a")),)))
    value = reader.open(path).metadata["k"]
    assert value.encode(errors="surrogateescape") == b"\xff\0a"
