"""The commands that run programs of PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import command_line

torch = pytest.importorskip("torch")

#: A program whose products are in a scope of its own; it then raises an error.
PROGRAM = """
import torch
from tf32dtype.interop import torch as tt

model = torch.nn.Sequential(torch.nn.Linear(32, 32))
with torch.no_grad():
    with tt.matmul_precision("bf16"):
        model(torch.ones(2, 32))
    tt.apply(tt.Plan({"0": "bf16"}), model)(torch.ones(2, 32))
    torch.linalg.matrix_exp(torch.ones(2, 2))
raise RuntimeError("at the end")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command whose program raises an error."""
    root = Path(__file__).resolve().parents[2]
    found = subprocess.run(
        [sys.executable, "-m", "tf32dtype", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert found.returncode == 1
    assert "RuntimeError: at the end" in found.stderr
    return found


def test_a_summary_says_what_the_scope_did_not_reach(program: Path) -> None:
    path = program.with_name("run.json")
    words = ("--torch", "--precision", "bf16", "--except", "first", "--json", path)
    found = command("run", *words, program)
    summary = found.stderr[found.stderr.rindex("tf32dtype: the program raised") :]
    assert summary.splitlines()[1:] == [
        "tf32dtype: no product of PyTorch ran in bf16",
        "  2 products ran in the program's own scopes (matmul_precision, apply), which"
        " replace this one",
        "  --except names 'first', which matches no layer",
        "  unchanged: aten.linalg_matrix_exp.default has no replacement (1)",
    ]
    record = json.loads(path.read_text())
    assert record["in_own_scopes"] == 2
    assert record["names_of_no_layer"] == [
        "--except names 'first', which matches no layer"
    ]


def test_a_report_names_products_of_other_scopes(program: Path) -> None:
    found = command("report", "--torch", "--device", "H100", program)
    assert "No products of PyTorch were measured." in found.stdout
    assert "Not measured: products in the program's own scopes (2)" in found.stdout


@pytest.mark.parametrize("option", ["--weights", "--gradients", "--kv-cache"])
def test_errors_name_the_option(
    program: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    words = ("run", "--torch", option, "fp9", str(program))
    said = command_line.complaint(capsys, *words)
    assert f"{option}: format must be one of" in said


def test_devices_are_checked_before_a_search(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "tune",
        "--torch",
        "--check",
        "file:a.npy",
        "--tolerance",
        "1",
        str(program),
    )
    said = command_line.complaint(capsys, *words[:-1], "--device", "H1000", words[-1])
    assert "device must be one of" in said
    devices = ("--device", "H100", "--precisions", "nvfp4")
    said = command_line.complaint(capsys, *words[:-1], *devices, words[-1])
    assert "H100 wgmma cannot multiply" in said


def test_usual_formats_are_those_of_the_device() -> None:
    from tf32dtype._cli.torch_program import torch_formats
    from tf32dtype._cli.tune import TORCH_PRECISIONS

    found: Any = torch_formats(None, TORCH_PRECISIONS, "H100")
    assert found == ("fp8_e4m3:row", "mxfp8_e4m3", "bf16")
