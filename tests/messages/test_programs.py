"""Messages of reports, plans, tuning and of the commands that run programs."""

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype
from tf32dtype import _core
from tf32dtype._cli import main
from tf32dtype._programs.arithmetic import arithmetic
from tf32dtype._programs.plans import read_plan
from tf32dtype._programs.report.output import check_folder
from tf32dtype._programs.report.regions import find_region
from tf32dtype._programs.tune.checks import Check
from tf32dtype._programs.tune.journal import Trials

from .shape import faults, provoke

if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)

#: No types, as the calls are wrong on purpose.
td: Any = tf32dtype
HERE = str(Path(__file__))
SCRIPT = "script.py"
LINE = "user = {file = 'x', function = 'f', text = 't'"


class _Refused(Exception):
    """The line on standard error of a command."""


def command(*words: str) -> Callable[[], object]:
    """Return a call of a command that raises the line after "tf32dtype NAME: "."""

    def call() -> None:
        with redirect_stderr(io.StringIO()) as told:
            code = main.main(words)
        if code:
            raise _Refused(told.getvalue().strip().partition(": ")[2])

    return call


def report(**options: Any) -> Callable[[], object]:
    return lambda: td.report(**options)


def plan(text: str) -> Callable[[], object]:
    """Return a call that reads a plan; its message comes after the file's name."""

    def call() -> None:
        Path("plan.toml").write_text(text)
        read_plan("plan.toml")

    return call


def entry(more: str, line: str = LINE + "}") -> Callable[[], object]:
    return plan(f"version = 1\n[[call_site]]\n{line}\n{more}\n")


def check(text: str, output: str = "") -> Callable[[], object]:
    return lambda: Check(text).numbers(".", output)


def entered_twice() -> None:
    once = td.report(precision="bf16")
    with once:
        pass
    with once:
        pass


def two_reports() -> None:
    with td.report(precision="bf16"), td.report(precision="bf16"):
        pass


def saved_as_text() -> None:
    with td.report(precision="bf16") as made:
        np.ones((2, 2), np.float32) @ np.ones((2, 2), np.float32)
    made.save("report.txt")


def two_formats() -> None:
    with arithmetic("bf16"), arithmetic("float16"):
        pass


def tune(*words: str, program: str = SCRIPT) -> Callable[[], object]:
    return command("tune", *words, program)


CHECKED = ("--check", "regex:x", "--tolerance")
CASES: dict[str, Callable[[], object]] = {
    "report.precision": report(precision="bf17"),
    "report.precision none": report(precision=" "),
    "report.device without": report(precision="fp8_e4m3", device="A100"),
    "report.target_db": report(target_db=-3),
    "report.target_db infinite": report(target_db=float("inf")),
    "report.only": report(only="missing.py"),
    "report.only function": report(only=f"{HERE}:missing"),
    "report.excepted": report(excepted="missing.py:f"),
    "report.arithmetic": report(arithmetic="float8_e8m0fnu"),
    "report early": lambda: td.report().call_sites,
    "report twice": entered_twice,
    "report within a report": two_reports,
    "report.save": saved_as_text,
    "report --html": command("report", "--html", "missing/x.html", SCRIPT),
    "report --json": command("report", "--json", ".", SCRIPT),
    "report --html --json": command(
        "report", "--html", "x.html", "--json", "x.html", SCRIPT
    ),
    "find_region": lambda: find_region("missing.py:f"),
    "check_folder": lambda: check_folder("missing/x.json"),
    "arithmetic.format": lambda: arithmetic("float8_e8m0fnu"),
    "arithmetic another": two_formats,
    "arithmetic left": lambda: arithmetic("bf16").__exit__(None, None, None),
    "plan missing": lambda: read_plan("missing.toml"),
    "plan toml": plan("version = "),
    "plan.version": plan("version = 2"),
    "plan.float64": plan("version = 1\nfloat64 = 1"),
    "plan.color": plan("version = 1\ncolor = 1"),
    "plan.call_site": plan("version = 1\ncall_site = 1"),
    "plan.call_site items": plan("version = 1\ncall_site = [1]"),
    "plan.user": plan("version = 1\n[[call_site]]\nprecision = 'bf16'"),
    "plan.precision": entry(""),
    "plan.precision type": entry("precision = 1"),
    "plan.user table": entry("precision = 'bf16'", "user = 1"),
    "plan.user.text": entry("precision = 'bf16'", "user = {file = 'x'}"),
    "plan.user.count": entry("precision = 'bf16'", LINE + ", count = 3}"),
    "plan.user.color": entry("precision = 'bf16'", LINE + ", color = 3}"),
    "check kind": check("text:x"),
    "check pattern": check("regex:("),
    "check python": check("python:f"),
    "check python missing": check("python:missing_module:f"),
    "check no number": check("regex:x", "y"),
    "check Inf": check("regex:inf", "inf"),
    "check file": check("file:missing.npy"),
    "check words": check("regex:[a-z]+", "abc"),
    "--resume": lambda: Trials("missing.journal", True, print),
    "tune": tune(),
    "tune --tolerance": tune(*CHECKED, "-1"),
    "tune --jobs": tune("--jobs", "0", *CHECKED, "1"),
    "tune --time-limit": tune("--time-limit", "0", *CHECKED, "1"),
    "tune --precisions": tune("--precisions", "bf17", *CHECKED, "1"),
    "tune --precisions none": tune("--precisions", " ", *CHECKED, "1"),
    "tune -": tune(*CHECKED, "1", program="-"),
    "tune missing": tune(*CHECKED, "1", program="missing.py"),
    "tune --out": tune("--out", "missing/plan.toml", *CHECKED, "1"),
    "run": command("run", SCRIPT),
    "run --precision": command("run", "--precision", "bf17", SCRIPT),
    "run --arithmetic": command("run", "--arithmetic", "float6_e2m3fn", SCRIPT),
    "run --plan --precision": command(
        "run", "--plan", "p.toml", "--precision", "bf16", SCRIPT
    ),
    "run --plan --no-blas": command("run", "--plan", "p.toml", "--no-blas", SCRIPT),
    "run --lapack --no-blas": command(
        "run", "--precision", "bf16", "--lapack", "--no-blas", SCRIPT
    ),
    "run --only": command("run", "--precision", "bf16", "--only", "missing.py", SCRIPT),
    "run --json": command("run", "--precision", "bf16", "--json", ".", SCRIPT),
    "blas": command("blas"),
    "blas --precision": command("blas", "--precision", "bf17", "octave"),
    "blas missing": command("blas", "missing-program"),
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / SCRIPT).write_text("")


@pytest.mark.parametrize("name", CASES)
def test_messages_have_the_shape(name: str) -> None:
    message = provoke(CASES[name])
    assert not faults(message), message


def test_there_are_many() -> None:
    assert len(CASES) >= 40
