"""Trials of a program's lines, which find those that change the results in a format."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.documents import HOW_TO
from tf32dtype import _core

if not (_core.blas_available() and _core.frames_are_known()):
    pytest.skip("needs Linux and known frames", allow_module_level=True)
pytestmark = pytest.mark.once

#: A sum that absorbs its addends, and eight harmless lines.
STEPS = """
import numpy as np
x = np.linspace(1, 2, 64, dtype=np.float32)
total = np.float32(0) * x
for i in range(3000):
    step = x * np.float32(0.5)
    total = total + step
a = x * 2
b = a * 4
c = b * 8
d = c * 16
e = d / 16
f = e / 8
g = f / 4
print("sum", float(total.sum()), float(g[0]))
"""
#: The sum without the other lines, each of which takes a run or two.
SHORT = STEPS.replace("".join(STEPS.partition("b = a")[1:]).partition("print")[0], "")
SHORT = SHORT.replace("g[0]", "a[0]")
#: A program with a harmful product.
PRODUCT = """
import numpy as np
x = (100 + np.random.default_rng(0).normal(0, 1, (40, 8))).astype(np.float32)
square = (x * x).sum(1)
product = x @ x.T
print("nearest", (square[:, None] - 2 * product + square).mean())
"""


def lines_of(folder: Path, code: str, *words: str) -> tuple[dict[str, Any], list[str]]:
    """Return the arithmetic of a report, and its advice by trials."""
    (folder / "x.py").write_text(code)
    done = forks.python(
        *(*forks.FORKING, "report", "--arithmetic", "bf16"),
        *("--json", "r.json", *words, "x.py"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "r.json").read_text())
    kinds = ("program", "program_changes", "program_unknown", "line_changes")
    texts = [x["text"] for x in report["advice"] if x["kind"] in kinds]
    assert set(texts) <= set(done.stdout.splitlines())
    return report["arithmetic"], texts


def number_of(code: str, text: str) -> int:
    return 1 + [line.strip() for line in code.splitlines()].index(text)


def test_the_line_that_absorbs(tmp_path: Path) -> None:
    found, texts = lines_of(tmp_path, STEPS)
    at = number_of(STEPS, "total = total + step")
    first = found["trials"][0]
    assert (first["line"], os.path.basename(first["file"])) == (at, "x.py")
    assert first["alone"] > 0.01 > first["without"]
    assert texts[0].startswith("The program: with all lines in bfloat16 the printed")
    assert texts[1].startswith(f"With only x.py:{at} in bfloat16 the printed numbers")
    assert "; with all other lines " in texts[1]
    assert len(texts) == 2
    assert found["untried_lines"] == 0
    assert len(found["trials"]) + found["harmless_lines"] == 11
    assert {x.name for x in tmp_path.iterdir()} == {"x.py", "r.json"}


@pytest.mark.exhaustive
def test_the_page(tmp_path: Path) -> None:
    section = (HOW_TO / "arithmetic.md").read_text().split("\n## Which line changes")[1]
    code, text = re.findall(r"```(?:py|text)\n(.*?)```", section, re.S)[:2]
    (tmp_path / "solver.py").write_text(code)
    words = ("report", "--arithmetic", "bf16", "solver.py")
    done = forks.python(*forks.FORKING, *words, cwd=tmp_path)
    assert text in done.stdout


@pytest.mark.exhaustive
def test_the_line_of_a_product(tmp_path: Path) -> None:
    found, texts = lines_of(tmp_path, PRODUCT)
    blamed = {x["line"] for x in found["trials"] if x["alone"] > 0.01}
    assert number_of(PRODUCT, "product = x @ x.T") in blamed
    assert any(
        f"x.py:{number_of(PRODUCT, 'product = x @ x.T')} " in x for x in texts[1:]
    )


@pytest.mark.exhaustive
def test_results_that_stay(tmp_path: Path) -> None:
    code = STEPS.replace("range(3000)", "range(3)")
    found, texts = lines_of(tmp_path, code)
    assert found["together"]["keeps_results"]
    assert found["trials"] == []
    assert found["harmless_lines"] == 11
    assert len(texts) == 1


@pytest.mark.exhaustive
def test_no_trial(tmp_path: Path) -> None:
    found, texts = lines_of(tmp_path, SHORT, "--no-trial")
    assert "trials" not in found
    assert texts == []
    found, texts = lines_of(tmp_path, SHORT + "import os\nprint(os.urandom(3)[0] / 7)")
    assert found["trials"]  # a number that differs in each run is left out
    found, texts = lines_of(tmp_path, "import numpy as np\nx = np.float32([1]) + 1")
    assert texts == [
        "No trial of the program: there are no numbers to compare. Print or write some,"
        " or use --check"
    ]


def test_a_program_that_fails_in_the_format(tmp_path: Path) -> None:
    """Report the failure of a program, and the line that causes it."""
    code = SHORT.replace("print(", "assert total[0] > 1000\nprint(")
    (tmp_path / "x.py").write_text(code)
    done = forks.python(
        *(*forks.FORKING, "report", "--arithmetic", "bf16", "x.py"), cwd=tmp_path
    )
    assert done.returncode == 1
    assert "The program raised AssertionError" in done.stdout
    assert "with all lines in bfloat16 it fails: exit code 1: Assertion" in done.stdout
    at = number_of(code, "total = total + step")
    assert f"With only x.py:{at} in bfloat16 it fails: exit code 1" in done.stdout


def test_a_program_that_always_fails(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SHORT + "raise SystemExit('no')")
    done = forks.python(
        *(*forks.FORKING, "report", "--arithmetic", "bf16", "x.py"), cwd=tmp_path
    )
    assert done.returncode == 1
    assert "No trial of the program: the unchanged program fails" in done.stdout


def summed(x: Any) -> Any:
    total = np.float32(0) * x
    for _ in range(300):
        total = total + x
    return total


def test_a_function() -> None:
    x = np.linspace(1, 2, 64, dtype=np.float32)
    with td.report(arithmetic="bf16", trial=lambda: summed(x)) as r:
        summed(x)
    kinds = [line.kind for line in r.advice]
    assert kinds[:2] == ["program_changes", "line_changes"]
    start = summed.__code__.co_firstlineno
    assert f"test_culprits.py:{start + 3} summed in bfloat16" in r.advice[1].text
    with td.report(arithmetic="bf16", trial=lambda: 1 / 0) as r:
        summed(x)
    assert r.advice[0].text == (
        "No trial of the program: the function raised ZeroDivisionError: division by"
        " zero"
    )
