"""Patterns in the source of a function that multiplies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.report.samples import HERE, gaussian, run, site
from tf32dtype._programs.report.options import options
from tf32dtype._programs.report.patterns import (
    expansion_line,
    is_difference_of_squares,
    is_recurrence,
)
from tf32dtype._programs.report.report import Report

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("d = xx - 2 * (x @ y.T) + yy", 1),
        ("d = xx - 2 * x @ y.T + yy", 1),
        ("d = xx - 2.0 * np.dot(x, y.T) + yy", 1),
        ("d = xx + -2 * x.dot(y.T)", 1),
        ("d = -2 * x @ y.T + xx", 1),
        ("p = x @ y.T\nd = xx + yy\nd = xx - 2 * p + yy", 3),
        ("p = x @ y.T\ndef f(p):\n    return xx - 2 * q", None),
        ("d = xx + 2 * x @ y.T", None),
        ("d = 2 * x @ y.T - xx", None),
        ("d = xx - x @ y.T", None),
        ("d = xx - 2 * x\np = x @ y.T", None),
        ("d = (", None),
    ],
)
def test_twice_a_product(code: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(code)
    assert expansion_line(str(path), 1) == line
    path = tmp_path / "inner.py"
    indented = "".join(f"    {x}\n" for x in code.splitlines())
    path.write_text(f"def f(x):\n{indented}")
    assert expansion_line(str(path), 2) == (line and line + 1)


@pytest.mark.parametrize(
    ("code", "line", "expected"),
    [
        ("for i in y:\n    x = x @ a", 2, True),
        ("for i in y:\n    x = np.dot(a, x) + b", 2, True),
        ("while y:\n    x, z = a @ x, x", 2, True),
        ("for i in y:\n    x @= a", 2, True),
        ("for i in y:\n    z = x @ a", 2, False),
        ("for i in y:\n    x = x + a @ b", 2, False),
        ("x = x @ a", 1, False),
        ("x = (", 1, False),
    ],
)
def test_recurrences(code: str, line: int, expected: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(code)
    assert is_recurrence(str(path), line) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("v = np.mean(x * x) - np.mean(x) ** 2", True),
        ("v = s / n - m * m", True),
        ("v = x ** 2 - m", False),
        ("v = s - m * n", False),
    ],
)
def test_differences_of_squares(code: str, expected: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(code)
    assert is_difference_of_squares(str(path), 1) == expected


def test_the_advice_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("p = x @ y.T\nd = xx - 2 * p + yy\n")
    frame = HERE._replace(file=str(path), line=1)
    found = Report(run(site(gaussian(), user=frame)), options(precision="bf16"))
    (line,) = [x.text for x in found.advice if x.kind == "pattern"]
    assert line.startswith("Twice the product is subtracted: ")
    assert "x.py:1 step (in line 2)." in line
