"""Tables of measurements that say when to emulate float32 products."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cuda import HOST, backend  # noqa: F401
from tf32dtype._matmul.precisions import PRECISIONS
from tf32dtype.cuda._matmul import crossover, split_emulation

SPLIT = [mode.short for mode in PRECISIONS if mode.components > 1]


def table(**keywords: Any) -> crossover.Crossover:
    facts: dict[str, Any] = {
        "device": HOST.name(),
        "measured": {"driver": "none", "date": "2026-11-21"},
        "sides": [64, 256, 1024],
        "depths": [64, 4096],
        "speedup": {"bf16x9": [[0.5, 0.9], [0.8, 1.2], [1.0, 1.5]]},
    }
    return crossover.Crossover(**facts | keywords)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    crossover.read.cache_clear()
    monkeypatch.setattr(crossover, "FOLDER", tmp_path / "crossover")
    yield tmp_path / "crossover"
    crossover.read.cache_clear()


def test_without_a_table_performant_never_emulates(backend, folder):  # noqa: F811
    for mode in PRECISIONS:
        whole = mode.short if mode.components == 1 else "f32"
        for name in (mode.short, mode.preset):
            assert (
                split_emulation.choose_precision(name, "performant", 4096, 4096, 4096)
                == whole
            )
            assert (
                split_emulation.choose_precision(name, "eager", 1, 1, 1) == mode.short
            )
    assert split_emulation.choose_precision(None, "performant", 1, 1, 1) == "f32"


def test_a_table_is_read_as_it_was_written(backend, folder):  # noqa: F811
    assert crossover.read("a device (of 80 GB)") is None
    path = crossover.write(table(device="a device (of 80 GB)"))
    assert path == folder / "a_device_of_80_GB.json"
    assert crossover.read("a device (of 80 GB)") == table(device="a device (of 80 GB)")
    crossover.write(table(device="a device (of 80 GB)", speedup={}))
    assert crossover.read("a device (of 80 GB)").speedup == {}


@pytest.mark.parametrize(
    ("m", "n", "k", "faster"),
    [
        (256, 256, 4096, True),
        (1024, 1024, 4096, True),
        (300, 900, 4096, True),
        (128, 512, 4096, True),  # 256 squared
        (127, 512, 4096, False),  # between 64 and 256, and 64 is not
        (4096, 4096, 65536, True),  # above the table's end
        (256, 256, 4095, False),  # between 64 and 4096
        (2048, 2048, 64, False),  # as fast, not faster
        (64, 64, 4096, False),
        (63, 10**6, 4096, False),
        (10**6, 1, 4096, False),
        (1024, 1024, 63, False),
    ],
)
def test_crossover(backend, folder, m, n, k, faster):  # noqa: F811
    assert crossover.is_faster(table(), "bf16x9", m, n, k) == faster
    assert not crossover.is_faster(table(), "tf32x3", m, n, k)
    if backend is HOST:
        crossover.write(table())
        wanted = "bf16x9" if faster else "f32"
        assert (
            split_emulation.choose_precision("bf16x9", "performant", m, n, k) == wanted
        )
        assert (
            split_emulation.choose_precision("bf16x6", "performant", m, n, k) == "f32"
        )
        assert split_emulation.choose_precision("tf32", "performant", m, n, k) == "tf32"


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"sides": []}, r"sides must .*; got \[\]"),
        ({"depths": [64, 64]}, r"depths must .*; got \[64, 64\]"),
        ({"depths": [4096, 64]}, "in ascending order"),
        ({"speedup": {"bf16x8": []}}, "got 'bf16x8'"),
        ({"speedup": {"bf16x9": [[1, 1]]}}, "must be 3 rows of 2"),
    ],
)
def test_tables_that_are_none(folder, keywords, text):
    with pytest.raises(ValueError, match=text):
        crossover.write(table(**keywords))
    path = crossover.write(table())
    path.write_text(json.dumps(table(**keywords)._asdict()))
    with pytest.raises(ValueError, match=f"{path.name}: .*{text}"):
        crossover.read(HOST.name())


def test_a_file_that_is_of_another_device_or_broken(folder):
    path = crossover.write(table())
    path.rename(crossover.path_of("other"))
    with pytest.raises(ValueError, match="must be for other; got a table of the host"):
        crossover.read("other")
    crossover.path_of("other").write_text("{}")
    with pytest.raises(ValueError, match=r"other\.json"):
        crossover.read("other")


def test_unknown_names_are_refused():
    with pytest.raises(
        ValueError, match="strategy must be 'performant' or 'eager'; got 'fast'"
    ):
        split_emulation.choose_precision("bf16x9", "fast", 1, 1, 1)
    with pytest.raises(ValueError, match=r"precision must be .*; got 'x9'"):
        split_emulation.choose_precision("x9", "eager", 1, 1, 1)


def test_the_tables_that_are_shipped():
    for path in crossover.FOLDER.glob("*.json"):
        found = crossover.read(json.loads(path.read_text())["device"])
        assert found is not None
        assert crossover.path_of(found.device) == path
