"""`tf32dtype report` in new processes, with a collector in Python."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support import command_line, forks, interpreters

pytestmark = pytest.mark.once

PRODUCTS = """
import sys
import numpy as np

def step(a):
    return np.matmul(a, a)

a = np.random.default_rng(0).standard_normal((20, 20), np.float32)
step(a)
print("its own", sys.argv[1:], __name__)
"""


def report(folder: Path, *words: object, tear_down: bool = False) -> Any:
    module = ("-m", "tests.support.collector", "report", "--no-trial")
    return forks.python(*module, *words, cwd=folder, tear_down=tear_down)


def complaint(folder: Path, *words: object) -> str:
    """Return the only line on standard error; the exit code is 2, and nothing ran."""
    done = report(folder, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tf32dtype.*: .+\n", done.stderr), done.stderr
    return str(done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "products.py").write_text(PRODUCTS)
    (tmp_path / "old.html").write_text("old")
    (tmp_path / "old.json").write_text("old")
    return tmp_path


def test_a_program(folder: Path) -> None:
    done = report(
        folder, "--html", "r.html", "--json=r.json", "products.py", "--json", "-1"
    )
    assert (done.returncode, done.stderr) == (0, "")
    own, empty, title, *lines = done.stdout.splitlines()
    assert own == "its own ['--json', '-1'] __main__"
    assert empty == ""
    assert title.startswith("products.py --json -1: ")
    assert any(x.startswith("products.py:6 step  ") for x in lines), lines
    assert any(
        "bf16 is enough at 1 call site (100.0 % of the multiply-adds)" in x
        for x in lines
    )
    record = json.loads((folder / "r.json").read_text())
    assert record["program"] == ["products.py", "--json", "-1"]
    (site,) = record["call_sites"]
    assert site["user"]["function"] == "step"
    assert site["verdict"]["text"] == "bf16 is enough"
    page = (folder / "r.html").read_text()
    assert "return np.matmul(a, a)" in page
    assert {x.name for x in folder.iterdir() if x.is_file()} == {
        "products.py", "old.html", "old.json", "r.html", "r.json"
    }  # fmt: skip


def test_a_module(folder: Path) -> None:
    done = report(folder, "--precision", "bf16", "-m", "products", "x")
    assert done.returncode == 0
    assert done.stdout.startswith("its own ['x'] __main__\n")
    assert "bf16 is enough" in done.stdout


def test_quiet_and_options(folder: Path) -> None:
    done = report(
        folder, "--quiet", "--json", "r.json", "--precision", "tf32,mxfp4",
        "--device=H100", "--target-db", "30", "--exact", "--dots", "--lapack",
        "--stop-at", "tenpy", "--only", "products.py:step", "--except", "old.html",
        "products.py",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "its own [] __main__\n")
    record = json.loads((folder / "r.json").read_text())
    names = [row["precision"] for row in record["call_sites"][0]["precisions"]]
    assert names == ["f32", "tf32", "mxfp4", "tf32@H100"]
    assert (record["target_db"], record["exact"]) == (30, True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("ending", "code", "told"),
    [
        ("sys.exit(7)", 7, "ended with exit code 7"),
        ("sys.exit('a message')", 1, "ended with the message 'a message'"),
        ("raise ValueError('x\\ny')", 1, "raised ValueError: x"),
        ("raise KeyboardInterrupt", 130, "raised KeyboardInterrupt"),
        ("sys.exit()", 0, ""),
        ("sys.stdout.close()", 0, ""),
        ("sys.stdout = None", 0, ""),
        ("import os; os.chdir('..')", 0, ""),
        ("np.seterr(all='raise')", 0, ""),
        (
            "import tf32dtype as td; td.set_matmul_precision('bf16', float64=True)",
            0,
            "",
        ),
    ],
)
def test_how_it_ends(folder: Path, ending: str, code: int, told: str) -> None:
    (folder / "ends.py").write_text(PRODUCTS + ending + "\n")
    if told:  # a traceback must be Python's own
        wanted = interpreters.python("ends.py", cwd=folder)
    else:
        wanted = forks.python("ends.py", cwd=folder, tear_down=True)
    done = report(folder, "--json", "old.json", "ends.py", tear_down=True)
    # Python ends by the signal itself.
    assert done.returncode == code == (130 if code == 130 else wanted.returncode)
    assert done.stdout.startswith(wanted.stdout)
    assert "Traceback" not in done.stderr.replace(wanted.stderr, "")
    record = json.loads((folder / "old.json").read_text())
    assert record["ending"] == told
    assert record["call_sites"][0]["verdict"]["text"] == "bf16 is enough"
    if told:
        assert (
            f"The program {told}; the report covers the run before that." in done.stdout
        )


def test_a_threads_products_count(folder: Path) -> None:
    (folder / "threads.py").write_text(
        PRODUCTS + "import threading, time\ndef work():\n    time.sleep(0.3)\n"
        "    step(a)\nthreading.Thread(target=work).start()\n"
    )
    report(folder, "--json", "r.json", "threads.py")
    (site,) = json.loads((folder / "r.json").read_text())["call_sites"]
    assert site["calls"] == 2


def test_a_file_keeps_its_rights(folder: Path) -> None:
    (folder / "old.html").chmod(0o604)
    assert report(folder, "--html", "old.html", "products.py").returncode == 0
    assert stat.S_IMODE((folder / "old.html").stat().st_mode) == 0o604
    assert (folder / "old.html").read_text().startswith("<!DOCTYPE html>")


def test_what_is_wrong_is_one_line_and_files_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("--html", "old.html", "--json", "old.json")
    for program in ("missing.py", "missing/x.py", "."):
        assert program in complaint(folder, *files, program)
    for module in ("missing", "missing.x", "..", ""):
        complaint(folder, *files, "-m", module)
    monkeypatch.chdir(folder)
    for words, said in (
        (["--precision", "bf17"], "precision must be one of"),
        (["--precision", ""], "must name at least one precision"),
        (["--device", "H900"], "got 'H900'"),
        (["--target-db", "-3"], "target_db must be more than 0"),
        (["--target-db", "x"], "--target-db"),
        (["--only", "missing.py"], "an existing file; got 'missing.py"),
        (["--only", "products.py:stop"], "such as step; got 'stop'"),
        (["--except", "missing.py:f"], "an existing file; got 'missing.py"),
        (["--check", "file:x", "--no-trial"], "combined with --no-trial"),
        (["--html", "missing/r.html"], "missing does not exist"),
        (["--json", "."], "got the folder"),
        (["--json", "old.html"], "must be different files"),
        (["--bogus"], "--bogus"),
    ):
        argv = "report", *files, *words, "products.py"
        assert said in command_line.complaint(capsys, *argv)
    complaint(folder, *files)
    for name in ("old.html", "old.json"):
        assert (folder / name).read_text() == "old"
    assert not list(folder.glob("*.part"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    assert "cannot be written" in complaint(
        folder, "--html", "closed/r.html", "products.py"
    )


def test_a_file_that_cannot_be_written_at_the_end(folder: Path) -> None:
    (folder / "ends.py").write_text(PRODUCTS + "import shutil; shutil.rmtree('gone')\n")
    (folder / "gone").mkdir()
    done = report(folder, "--quiet", "--html", "gone/r.html", "ends.py")
    assert done.returncode == 1
    assert done.stderr.startswith("tf32dtype report: ")
    assert "r.html: No such file" in done.stderr


def test_help(folder: Path) -> None:
    done = report(folder, "--help")
    assert done.returncode == 0
    for word in ("--html", "--stop-at", "--target-db", "bf16x9", "--explain"):
        assert word in done.stdout
    done = report(folder, "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("NAME is enough", "% time", "digits canceled", "mean, max ulps"):
        assert word in done.stdout
