"""td.hdf5.save and load: whole files, also damaged and hostile ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.once


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    every = {
        f"layer/{form.name}/w": rng.uniform(1, 5, (5, 6)).astype(form.dtype)
        for form in td.formats.values()
    }
    return every | {"step": np.int64(7), "x": np.arange(3.0), "none": np.ones((0, 2))}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.h5"
    td.hdf5.save(made, arrays())
    return made


@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "shuffle": True}])
def test_round_trip(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    want = arrays()
    td.hdf5.save(path, want, **options)
    got = td.hdf5.load(path)
    assert list(got) == sorted(want)
    for name, a in want.items():
        assert (got[name].dtype, got[name].shape) == (a.dtype, a.shape)
        assert got[name].tobytes() == a.tobytes()


def test_names(path: Path) -> None:
    assert list(td.hdf5.load(path, "step")) == ["step"]
    assert len(td.hdf5.load(str(path), ["x", "layer/*"])) == 1 + len(td.formats)
    with pytest.raises(KeyError, match=r"'y\*' is not a tensor of .*a\.h5\. "):
        td.hdf5.load(path, ["x", "y*"])


def test_an_old_file_stays_if_anything_fails(path: Path) -> None:
    before = path.read_bytes()
    for bad, error, match in (
        ({"a": np.ma.array([1])}, TypeError, "a: a must not have a mask"),
        ({"a": [1, 2], "a/b": [3]}, TypeError, "a/b: "),
        ({"a": np.array(["text"])}, TypeError, "a: "),
        ({"a//b": [1]}, ValueError, "got 'a//b'"),
        ({"/a": [1]}, ValueError, "got '/a'"),
        ({"": [1]}, ValueError, "got ''"),
        ({"a\0": [1]}, ValueError, "name must"),
        ({1: [1]}, ValueError, "got 1"),
        ([1, 2], TypeError, "mapping"),
    ):
        with pytest.raises(error, match=match):
            td.hdf5.save(path, bad)
        assert path.read_bytes() == before
        assert [x.name for x in path.parent.iterdir()] == ["a.h5"]


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        td.hdf5.load(tmp_path / "a.h5")
    with pytest.raises(IsADirectoryError):
        td.hdf5.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        td.hdf5.save(tmp_path / "none" / "a.h5", {})


def test_a_missing_library_is_named(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    for call in (
        lambda: td.hdf5.load(path),
        lambda: td.hdf5.save(tmp_path / "b.h5", {"a": [1]}),
    ):
        with pytest.raises(ImportError, match=r"td.hdf5 needs h5py.*'\.\[hdf5\]'"):
            call()
    assert not (tmp_path / "b.h5").exists()


def test_td_load_says_what_reads_it(path: Path) -> None:
    with pytest.raises(ValueError, match=r"an HDF5 file.*td\.hdf5\.load"):
        td.load(path)


def test_links(tmp_path: Path) -> None:
    """End at circular links, load other names, too, and skip links by name."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        dataset = td.hdf5.write(file, "g/h/a", np.ones(2, td.bf16))
        file["b"] = dataset
        file["g/h/again"] = file["g"]
        file["soft"] = h5py.SoftLink("/g/h/a")
        file["broken"] = h5py.SoftLink("/nothing")
        file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/x")
        file["type"] = np.dtype("f4")
    assert list(td.hdf5.load(path)) == ["b", "g/h/a"]


# -- damaged and hostile ----------------------------------------------------


def test_no_hdf5_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    for contents in (b"", b"\x89HDF\r\n\x1a\n", b"text" * 1000):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=r"a\.h5: "):
            td.hdf5.load(path)


def test_truncated_files(path: Path) -> None:
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for size in rng.integers(0, len(whole), 60):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"a\.h5: "):
            td.hdf5.load(path)


@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "fletcher32": True}])
def test_flipped_bits(options: dict[str, Any], path: Path) -> None:
    """Raise a ValueError that names the file, or load arrays; raise no other error."""
    td.hdf5.save(path, arrays(), **options)
    whole = path.read_bytes()
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(60):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 4):
            damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            td.hdf5.load(path)
        except ValueError as error:
            errors.append(str(error))
    assert len(errors) > 10
    assert all("a.h5: " in error for error in errors)


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    a = np.arange(1000).astype(td.bfloat16)
    td.hdf5.save(path, {"g/a": a, "b": a}, fletcher32=True, chunks=(1000,))
    with h5py.File(path) as file:
        at = file["g/a"].id.get_chunk_info(0).byte_offset
    damaged = bytearray(path.read_bytes())
    damaged[at + 7] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"a\.h5: g/a: "):
        td.hdf5.load(path)
    assert td.hdf5.load(path, "b")["b"].tobytes() == a.tobytes()


def test_a_chunk_too_short_for_its_checksum(tmp_path: Path) -> None:
    """Reject a chunk for which libhdf5 2.0 would read memory out of bounds."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("a", (8,), "u1", chunks=(8,), fletcher32=True)
        dataset.id.write_direct_chunk((0,), b"abc")
    with pytest.raises(ValueError, match=r"a\.h5: a: chunks must be at least"):
        td.hdf5.load(path)


def test_absurd_sizes_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", (1 << 40,), np.float32, chunks=(1 << 10,))
        td.hdf5.write(file, "b", np.ones(3, td.tf32))
    with pytest.raises(
        ValueError, match=r"a must fit the file of .*; got 4398046511104 bytes"
    ):
        td.hdf5.load(path)
    assert td.hdf5.load(path, "b")["b"].tolist() == [1, 1, 1]
    with h5py.File(path) as file:
        assert td.hdf5.read(file["a"], np.s_[:3]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_data_in_other_files_is_left_there(kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / "a.h5", tmp_path / "other"
    other.write_bytes(b"secret!!")
    with h5py.File(path, "w") as file:
        if kind == "external":
            file.create_dataset("a", (8,), np.uint8, external=[(str(other), 0, 8)])
        else:
            layout = h5py.VirtualLayout((8,), np.uint8)
            layout[:] = h5py.VirtualSource(str(other), "x", (8,))
            file.create_virtual_dataset("a", layout)
    with pytest.raises(ValueError, match=r"a\.h5: a: data is in other files"):
        td.hdf5.load(path)
    if kind == "external":
        with h5py.File(path) as file:
            assert td.hdf5.read(file["a"]).tobytes() == b"secret!!"
