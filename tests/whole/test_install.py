"""The lines of setup.py that count compiled files, shown by tools/install."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

PIP = """
import sys
print("Processing", *sys.argv[1:])
print("  tf32dtype: compiled 1 of 2 files, about 3 s left", flush=True)
print("  gcc -c one")
print("  tf32dtype: compiled 2 of 2 files in 4 s")
sys.exit("no" in sys.argv)
"""


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("setuptools", minversion="77")
    path = ROOT / "setup.py"
    spec = importlib.util.spec_from_file_location("build_of_tf32dtype", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call tools/install with a pip that only prints."""
    (tmp_path / "pip.py").write_text(PIP)
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "install"), *arguments],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )


def test_only_the_count_is_shown(tmp_path):
    done = install(tmp_path, "package")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "tf32dtype: compiled 1 of 2 files, about 3 s left",
        "tf32dtype: compiled 2 of 2 files in 4 s",
    ]
    assert done.stderr == ""


def test_a_failure_shows_all(tmp_path):
    done = install(tmp_path, "no")
    assert done.returncode == 1
    assert "Processing install --verbose no" in done.stderr
    assert "gcc -c one" in done.stderr


def steps(setup: ModuleType, seconds: float = 0.02) -> list[object]:
    def compiled(name: str) -> str:
        time.sleep(seconds)
        return f"{name}.o"

    return [
        setup.Step(Path(f"{name}.c"), target, lambda name=name: compiled(name))
        for name, target in [("a", "ours"), ("b", "glue"), ("c", "ours")]
    ]


def test_files_are_counted(setup, monkeypatch, capsys):
    monkeypatch.setenv("TF32DTYPE_PROGRESS", "0")
    objects = setup.compile_all(steps(setup), shown=True)
    assert objects == {"ours": ["a.o", "c.o"], "glue": ["b.o"]}
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("tf32dtype: compiled 3 of 3 files in ")
    assert all(line.startswith("tf32dtype: compiled ") for line in lines)


def test_elsewhere_than_on_a_terminal_lines_are_few(setup, monkeypatch, capsys):
    monkeypatch.delenv("TF32DTYPE_PROGRESS", raising=False)
    setup.compile_all(steps(setup), shown=True)
    assert len(capsys.readouterr().out.splitlines()) == 1
    setup.compile_all(steps(setup), shown=False)
    assert capsys.readouterr().out == ""


def test_the_first_error_ends_it(setup):
    def fails() -> str:
        raise setup.CompileError("a.c:1: error")

    with pytest.raises(setup.CompileError, match=r"a\.c:1"):
        setup.compile_all([setup.Step(Path("a.c"), "ours", fails)], shown=False)


def test_instruction_sets_to_build(setup, monkeypatch):
    for wanted, everything in [("", False), ("native", False), ("all", True)]:
        monkeypatch.setenv("TF32DTYPE_ISAS", wanted)
        assert setup.all_sets_are_wanted() is everything
    monkeypatch.setenv("TF32DTYPE_ISAS", "avx2")
    with pytest.raises(SystemExit, match="must be 'native' or 'all'; got 'avx2'"):
        setup.all_sets_are_wanted()
