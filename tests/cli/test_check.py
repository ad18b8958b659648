"""tf32dtype check: the three verdicts, the page, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.checks.test_check_matmul import FAULTS, Given, operands_of_faults
from tf32dtype._cli.main import main


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Write operands and results, and work in their folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 64, 64)).astype(td.bfloat16)
    d = td.tensor_core.matmul(a, b, device="H100")
    wrong = d.copy()
    wrong[16:32] = td.tensor_core.matmul(a[16:32, :48], b[:48], device="H100")
    arrays = {"d": d, "a": a, "b": b, "wrong": wrong, "bias": np.ones(64, np.float32)}
    for name, array in arrays.items():
        td.save(f"{name}.npy", array)
    td.safetensors.save("run.safetensors", arrays)
    return arrays


def check(*arguments: str) -> int:
    return main(["check", *arguments, "--unit", "H100"])


def test_a_right_product(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("d.npy", "a.npy", "b.npy") == 0
    printed = capsys.readouterr().out
    assert printed == "identical: H100 wgmma bfloat16 -> float32\n"


def test_a_wrong_product_with_a_page(
    files: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"run.safetensors:{name}" for name in ("wrong", "a", "b")]
    assert check(*names, "--html", "x.html") == 1
    printed = capsys.readouterr().out
    assert "fault: k 48 to 63 is missing: rows 16-31" in printed
    assert printed.count("#" * 64) == 4
    page = Path("x.html").read_text()
    assert "<svg" in page
    assert "k 48 to 63 is missing" in page
    assert page.count('class="bad"') == 17  # rows of cells, and the verdict


def test_json(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("wrong.npy", "a.npy", "b.npy", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "wrong"
    assert found["wrong"] == found["distribution"]["inf"]
    assert found["worst"]["at"][0] in range(16, 32)


def test_epilogue_options(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    d = (files["d"] * np.float32(2) + np.float32(1)).astype(np.float32)
    td.save("e.npy", d)
    options = ("--bias", "bias.npy", "--scale-a", "2")
    assert check("e.npy", "a.npy", "b.npy", *options) == 0
    assert check("e.npy", "a.npy", "b.npy", "--scale-a", "2") == 1
    assert "fault:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("d.npy", "a.npy", "none.npy"), "none.npy cannot be read"),
        (("bias.npy", "a.npy", "b.npy"), "d must have the shape"),
        (("d.npy", "a.npy", "b.npy", "--instruction", "mfma"), "instruction of H100"),
        (("d.npy", "a.npy", "b.npy", "--sample", "0"), "sample must be 1 or more"),
    ],
)
def test_errors(
    arguments: tuple[str, ...],
    text: str,
    files: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert check(*arguments) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given: Given = operands_of_faults()
    make, text, options = FAULTS[name]
    td.save("d.npy", make(given))
    for field in given._fields:
        td.save(f"{field}.npy", getattr(given, field))
    added = ["c.npy"] if "c" in options else []
    for option in options:
        if option != "c":
            added += [f"--{option.replace('_', '-')}", f"{option}.npy"]
    assert check("d.npy", "a.npy", "b.npy", *added) == 1
    assert f"fault: {text}" in capsys.readouterr().out
