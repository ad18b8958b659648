"""Checks: the numbers that they find, and the model of a plan's gain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf32dtype._base.errors import UserError
from tf32dtype._programs.tune.checks import Check, CheckError, digest, distance
from tf32dtype._programs.tune.peaks import PEAKS, gain

pytestmark = pytest.mark.once

FUNCTION = """
import os
def answer(folder, output):
    return [sum("." in name for name in os.listdir(folder)), float(output)]
def wrong(folder, output):
    raise KeyError(output)
"""


def test_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]], np.float32))
    np.savez(tmp_path / "b.npz", y=np.array([2.0]), x=1)
    (tmp_path / "c.txt").write_text("E = -1.5e-3, n=3 ok2\n")
    (tmp_path / "f.py").write_text(FUNCTION)
    folder = str(tmp_path)
    output = "step 1 E=1.25\nstep 2 E=-2e3\n"
    for text, numbers in {
        "file:a.npy": [1, 2, 3, 4],
        "file:b.npz": [1, 2],
        "file:c.txt": [-1.5e-3, 3],
        r"regex:E=(\S+)": [1.25, -2e3],
        r"regex:step (\d+) E=(\S+)$": [1, 1.25, 2, -2e3],
        r"regex:[12]": [1, 1, 2, 2, 2],
        f"python:{folder}/f.py:answer": [4, 7],
    }.items():
        check = Check(text)
        given = "7" if text.startswith("python") else output
        parts = check.numbers(folder, given)
        assert np.concatenate([*parts.values()]).tolist() == numbers, text
        alone = text.startswith(("file:a", "python"))
        assert len(parts) == (1 if alone else len(numbers))
        assert check.needs_folder != text.startswith("regex")


def test_no_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "nan.npy", np.array([1, np.nan]))
    np.save(tmp_path / "text.npy", np.array(["a"]))
    (tmp_path / "empty.txt").write_text("none")
    (tmp_path / "f.py").write_text(FUNCTION)
    for text, complaint in {
        "file:missing.npy": "the program must write missing.npy",
        "file:nan.npy": "NaN or Inf",
        "file:text.npy": "must return numbers",
        "file:empty.txt": "must find at least one number",
        "regex:E=(.*)": "the check cannot read its numbers: .*could not convert",
        f"python:{tmp_path}/f.py:wrong": "the check cannot read its numbers",
    }.items():
        with pytest.raises(CheckError, match=complaint):
            Check(text).numbers(str(tmp_path), "E=one")


@pytest.mark.parametrize(
    "text", ["", "file", "file:", "answer.npy", "regex:(", "python:f", "python:no.py:f"]
)
def test_what_is_no_check(text: str) -> None:
    with pytest.raises(UserError, match="check "):
        Check(text)


def test_numbers_in_brackets_and_columns_share_a_scale() -> None:
    output = "x [1.0 2.0] 3\n4 5\n6 7\n"
    parts = Check(r"regex:\d+(?:\.\d)?").numbers("", output)
    found = [part.tolist() for part in parts.values()]
    assert found == [[1, 2], [3], [4, 6], [5, 7]]


def of(*parts: list[float]) -> dict[str, Any]:
    return {str(i): np.array(part) for i, part in enumerate(parts)}


def test_distances() -> None:
    reference = of([1.0, -4.0])
    for found, relative, absolute in (
        ([1.0, -4.0], 0, 0),
        ([1.5, -4.0], 0.125, 0.5),
        ([1.0, -3.0], 0.25, 1.0),
        ([1.0], np.inf, np.inf),
    ):
        assert distance(of(found), reference, False) == relative
        assert distance(of(found), reference, True) == absolute
    assert distance(of([0.0]), of([0.0]), False) == 0
    assert distance(of([1.0]), of([0.0]), False) == np.inf
    assert digest(of([0.0])) != digest(of([-0.0]))


def test_each_part_has_its_own_scale() -> None:
    reference = of([1000.0, 2000.0], [0.5])
    assert distance(of([1000.0, 2000.0], [0.25]), reference, False) == 0.5
    assert distance(of([1001.0, 2000.0], [0.5]), reference, False) == 0.0005
    assert distance(of([1000.0, 2000.0], [0.25]), reference, True) == 0.25
    assert digest(of([1.0], [2.0])) != digest(of([1.0, 2.0]))


def test_the_model() -> None:
    b200 = PEAKS["B200"]
    assert b200["bfloat16"] / b200["float32"] == pytest.approx(28, abs=0.5)
    assert gain("B200", {(None, "float32"): 1.0}, "float32") == 1
    assert gain("B200", {("bf16x9", "float32"): 1.0}, "float32") == pytest.approx(
        2250 / 80 / 9
    )
    half = {("tf32", "float64"): 0.5, (None, "float64"): 0.5}
    expected = 1 / (0.5 * 67 / 494.7 + 0.5)
    assert gain("H100", half, "float64") == pytest.approx(expected)
