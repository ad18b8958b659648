"""Some damaged files for every reader; `python -m tests.fuzz.files` tests many."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz import files
from tests.fuzz.mutations import BYTES, mutate
from tests.fuzz.readers import READERS, Reader
from tests.support import forks

FILES = 300


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name: str) -> None:
    pytest.importorskip(READERS[name].needs)
    done = forks.python("-m", "tests.fuzz.files", "--files", FILES, "--reader", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{FILES} files answered" in done.stdout


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_read(name: str, tmp_path: Path) -> None:
    pytest.importorskip(READERS[name].needs)
    fuzzer = files.Fuzzer(READERS[name], 1, tmp_path)
    for seed in fuzzer.seeds:
        fuzzer.reader.read(fuzzer.write(seed, tmp_path))
        if fuzzer.reader.header is not None:
            for data in seed.values():
                text, put_back = fuzzer.reader.header(data)
                assert len(text) > 1
                assert text.strip() in put_back(text)


def fails(tmp_path: Path, answer: Exception) -> str:
    """Return the fuzzer's finding for a reader that always gives the same answer."""

    def read(path: Path) -> None:
        raise answer

    reader = Reader("one", lambda: [{"a.bin": b"seed"}], read)
    with pytest.raises(files.Failure) as found:
        files.Fuzzer(reader, 1, tmp_path).run(0)
    return str(found.value)


def test_failures_are_found(tmp_path: Path) -> None:
    assert "no file is named" in fails(tmp_path, ValueError("bad"))
    assert "KeyError is not a documented error" in fails(tmp_path, KeyError("a.bin"))
    assert "MemoryError" in fails(tmp_path, MemoryError("a.bin"))


def test_every_damage_changes_files() -> None:
    r = random.Random(1)
    data = bytes(range(256)) * 4
    for damage in BYTES:
        assert any(damage(data, [data[::-1]], r) != data for _ in range(5)), damage
    header = READERS["safetensors"].header
    [seed, *_] = READERS["safetensors"].seeds()
    [valid] = seed.values()
    changed = {mutate(valid, [data], header, random.Random(i)) for i in range(200)}
    assert len(changed) > 150
