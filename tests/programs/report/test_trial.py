"""A trial run of a program in the precisions that its report suggests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks, interpreters
from tf32dtype import _core

if not (_core.blas_available() and _core.frames_are_known()):
    pytest.skip("needs Linux and known frames", allow_module_level=True)
pytestmark = pytest.mark.once

START = """
import os, sys
import numpy as np
x = (100 + np.random.default_rng(0).normal(0, 1, (40, 8))).astype(np.float32)
product = x @ x.T
"""
#: Reports do not follow copies, so that only the trial shows the loss.
CANCELS = """
product = np.array(product)
square = (x * x).sum(1)
print("sum", float((square[:, None] - 2 * product + square).sum()))
np.save("product.npy", product)
"""
ROUNDED = "abs(product[0, 0] - np.dot(x[0].astype(float), x[0])) > 5"


def trial(
    folder: Path, code: str, *words: str, **options: Any
) -> tuple[dict[str, Any], str]:
    """Return a trial's record, and its line."""
    (folder / "x.py").write_text(START + code)
    words = ("report", "--precision", "bf16", "--json", "../r.json", *words)
    done = forks.python(*forks.FORKING, *words, "x.py", cwd=folder, **options)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder.parent / "r.json").read_text())
    lines = [x["text"] for x in report["advice"] if x["kind"].startswith("program")]
    assert set(lines) <= set(done.stdout.splitlines())
    return report["trial"], *lines  # type: ignore[return-value]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def test_cancellation_after_the_product_is_found(folder: Path) -> None:
    found, line = trial(folder, CANCELS)
    assert not found["keeps_results"]
    assert found["precisions"] == ["bf16"]
    assert line.startswith(
        "The program: with this call site in bf16 the printed numbers"
    )
    assert "(sum " in line
    assert "`tf32dtype tune`" in line
    printed, file = found["changes"]
    assert (printed["name"], file["name"]) == ("", "product.npy")
    assert printed["largest"] > 0.1
    assert file["largest"] < 0.01
    assert {x.name for x in folder.iterdir()} == {"x.py", "product.npy"}
    assert np.load(folder / "product.npy").dtype == np.float32  # saved by the first run


#: Replaces standard output by an object that does not flush it.
TEE = """
class Tee:
    def __init__(self, stream): self.stream = stream
    def write(self, text): return self.stream.write(text)
    def flush(self): pass
sys.stdout = Tee(sys.stdout)
"""


@pytest.mark.parametrize("replaced", ["", TEE])
def test_output_in_a_buffer_counts(folder: Path, replaced: str) -> None:
    """Python flushes an output that is not a terminal only at the program's end."""
    (folder / "x.py").write_text(START + replaced + CANCELS)
    words = "-m", "tf32dtype", "report", "--precision", "bf16", "x.py"
    done = interpreters.python(*words, cwd=folder, PYTHONUNBUFFERED="")
    assert done.returncode == 0, done.stderr
    assert "in bf16 the printed numbers" in done.stdout


def test_results_that_stay(folder: Path) -> None:
    found, line = trial(folder, "print('norm', np.linalg.norm(product))")
    assert found["keeps_results"]
    assert line.startswith(
        "The program: with this call site in bf16 the printed numbers"
    )
    assert "tune" not in line


def test_a_check_names_the_numbers(folder: Path) -> None:
    check = ("--check", "file:product.npy")
    found, line = trial(folder, CANCELS, *check)
    assert found["keeps_results"]
    assert "the checked numbers change by at most" in line


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("", "there are no numbers to compare"),
        ("print('took', 3)", "there are no numbers to compare"),
        ("print(1)\nopen('../out', 'w').close()", "out, outside of its folder"),
        ("print(1, sys.stdin.read())", "reads standard input"),
        (
            "print(1)\nopen(FOLDER + 'out', 'w').write(os.getcwd())",
            "by an absolute path",
        ),
        ("print(np.random.rand())", "differ from run to run"),
        ("print(1)\nx.astype(float) @ x.T", ""),
    ],
)
def test_no_trial(code: str, part: str, folder: Path) -> None:
    found, line = trial(folder, f"FOLDER = {os.path.join(folder, '')!r}\n{code}")
    if (folder / "out").exists():
        assert (folder / "out").read_text() == str(folder)
    assert part in (found["why"] if part else "")
    assert line.startswith("No trial of the program: " if part else "The program: ")
    text = json.loads((folder.parent / "r.json").read_text())["advice"][-1]["text"]
    assert ("each product was judged separately" in text) == bool(part)


def test_a_program_that_fails_in_the_precision(folder: Path) -> None:
    found, line = trial(folder, f"print(1)\nif {ROUNDED}: sys.exit('not so')")
    assert found["failure"] == "exit code 1: not so"
    assert "this call site in bf16 it fails: exit code 1: not so. `tf32dtype" in line


def test_none_is_asked_for(folder: Path) -> None:
    (folder / "x.py").write_text(START + "print(1)")
    words = ("-m", "tf32dtype", "report", "--precision", "bf16", "--no-trial", "x.py")
    done = forks.python(*words, cwd=folder)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("The product alone: bf16 is enough at 1 call site (100.0 %")
    assert last.endswith(
        "; each product was judged separately, `tf32dtype tune` judges the program"
    )


def test_ctrl_c_keeps_the_report(folder: Path) -> None:
    (folder / "x.py").write_text(
        START + "import time\nprint(1, flush=True)\n"
        f"time.sleep(60 * (os.getcwd() != {str(folder)!r}))\n"
    )
    words = (*forks.FORKING, "report", "--precision", "bf16", "x.py")
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env=interpreters.variables(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "No trial of the program: it was interrupted" in rest
    assert "The product alone: " in rest


# -- in Python ---------------------------------------------------------------------

X = (100 + np.random.default_rng(0).normal(0, 1, (40, 8))).astype(np.float32)


def product() -> Any:
    return X @ X.T


def cancel() -> dict[str, Any]:
    square = (X * X).sum(1)
    return {"far": square[:, None] - 2 * product().copy() + square}


def test_a_function() -> None:
    with td.report(precision="bf16", trial=product) as kept:
        product()
    assert kept.advice[0].kind == "program"
    with td.report(precision="bf16", trial=cancel) as lost:
        cancel()
    assert lost.advice[0].kind == "program_changes"
    assert lost.advice[0].text.startswith(
        "The program: with this call site in bf16 far changes by at most"
    )


def test_a_function_that_shows_nothing() -> None:
    for function, part in (
        (lambda: None, "no numbers to compare"),
        (lambda: 3, "makes none of these"),
        (lambda: product() * os.urandom(1)[0], "from run to run"),
    ):
        with td.report(precision="bf16", trial=function) as r:
            product()
        assert part in r.advice[0].text
    with pytest.raises(TypeError, match="trial must be a function; got int"):
        td.report(trial=3)  # type: ignore[arg-type]
