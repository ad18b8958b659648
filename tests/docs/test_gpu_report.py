"""The tables of docs/benchmarks/gpu.md, for each GPU that has a report."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import BENCHMARKS, ROOT

REPORT: dict[str, Any] = {
    "device": {
        "gpu": "NVIDIA H100", "architecture": "sm_90a", "driver": "580.1",
        "driver's CUDA": "13000", "nvrtc": "[13, 0]", "cupy": "14.2.0",
        "numpy": "2.5.2",
    },
    "machine": {"python": "3.12.3", "date": "2026-11-26"},
}  # fmt: skip


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS / "cuda")
    return importlib.import_module("gpu_report")


def row(name: str, unit: str, **ratios: float) -> dict[str, Any]:
    measured = [{"case": case, "ratio": ratio} for case, ratio in ratios.items()]
    return {
        "name": name,
        "unit": unit,
        "minimum": 0.8,
        "target": 0.95,
        "measured": measured,
    }


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_only_the_device(texts: Any) -> None:
    said = texts.block(REPORT)
    assert "on NVIDIA H100 (sm_90a), driver 580.1, CUDA 13.0, NVRTC 13.0," in said
    assert "\n" not in said


def test_lines_and_columns(texts: Any) -> None:
    casts = {"float32 -> tf32": 0.9, "tf32 -> float32": 0.96, "float32 -> bf16": 0.7}
    rows = [
        row("casts", "of a copy", **casts),
        row("reductions", "of a copy", **{"sum(None) bf16": 0.79999}),
        row("blocks", "of a copy", **{"to mxfp8": 1.339}),
        row("native products", "of cuBLAS", **{"tf32 1024": 1, "tf32 2048": 0.5}),
        row("bf16x9", "of SGEMM", **{"bf16x9 2048": 1.4}),
        row("TCFP-16", "of FP8", **{"tcfp16 4096 by wgmma": 0.1}),
        row("chain", "of peak"),
        row("A100 emulated", "TMAC/s", **{"tf32 4096": 2.5}),
    ]
    said = texts.block(REPORT | {"results": [{"rows": rows}]})
    assert lines(said) == [
        "| call | limit | target | tf32 | bf16 | status |",
        "| cast from float32 | 1.25 | 1.05 | 1.11 | 1.43 | misses the limit: bf16 |",
        "| cast to float32 | 1.25 | 1.05 | 1.04 | - | target reached |",
        "| sum(None) | 1.25 | 1.05 | - | 1.25 | misses the limit |",
        "| cast | limit | target | mxfp8 | status |",
        "| float32 to blocks | 1.25 | 1.05 | 0.75 | target reached |",
        "| product | limit | target | 1024 | 2048 | 4096 | status |",
        '| `mode="native"`, tf32, relative to cuBLAS | 1.25 | 1.05 | 1.00 | 2.00 | - |'
        " misses the limit: 2048 |",
        "| bf16x9, relative to SGEMM | 1.25 | 1.05 | - | 0.71 | - | target reached |",
        "| TCFP-16, relative to one FP8 product | 1.25 | 1.05 | - | - | 10.00 |"
        " misses the limit |",
        "| emulated device | limit | target | 4096 | status |",
        "| A100 emulated, tf32 | 0.80 | 0.95 | 2.50 | target reached |",
    ]
    assert "relative to a copy that reads and writes as many bytes, lower is" in said


def test_within_the_limit_is_not_the_target(texts: Any) -> None:
    cases = [texts.Measured("", "tf32", 0.8), texts.Measured("", "bf16", 0.96)]
    assert texts.status(row("", ""), cases) == "within the limit"


def test_energy_and_accuracy(texts: Any) -> None:
    energy = {
        "n": 2048, "bf16x9 GFLOP/J": 110, "bf16x9 TFLOP/s": 70, "SGEMM GFLOP/J": 80,
        "SGEMM TFLOP/s": 50,
    }  # fmt: skip
    snr = {"1024": {"ours": 140.26, "SGEMM": 131}}
    both = texts.block(REPORT | {"energy": [energy], "snr": snr})
    assert lines(both)[1:] == [
        "| 1024 | - | - | - | - | 140.3 | 131.0 |",
        "| 2048 | 70.0 | 50.0 | 110.0 | 80.0 | - | - |",
    ]
    assert lines(texts.block(REPORT | {"snr": snr})) == [
        "| n | bf16x9, dB | SGEMM, dB |",
        "| 1024 | 140.3 | 131.0 |",
    ]


def test_crossover(texts: Any) -> None:
    cases = [
        {"mn": mn, "k": k, "native": mn * k, "emulated": 4096.0 * 128}
        for mn in (64, 4096)
        for k in (64, 4096)
    ]
    report = REPORT | {"crossover": {"precision": "bf16x9", "cases": cases}}
    said = texts.block(report)
    assert "in 1 of 4 shapes with M, N and K from 64 to 4096" in said
    assert "relative to SGEMM is 0.03, at M = N = 4096, K = 4096. With M = N" in said
    assert "the smallest such shape has sides of 4096." in said
    assert "performant" not in said
    cases[0][texts.OVER] = 1.25
    said = texts.block(report)
    assert '`strategy="performant"` takes at most 1.25 times' in said
    assert "faster of the two." in said
    cases[3][texts.OVER] = 1.01
    large = "faster of the two, and at most 1.01 times if M, N and K are 4096 or more."
    assert large in texts.block(report)


def test_what_failed_is_named(texts: Any) -> None:
    said = texts.block(REPORT | {"errors": {"blocks": "RuntimeError: memory"}})
    assert said.endswith("\n\nMeasurements that failed: blocks.")


def test_the_figures_are_there_that_are_shown(texts: Any) -> None:
    reports = [*(BENCHMARKS / "results").glob("gpu_nvidia_*.json")]
    assert len(reports) >= 2
    for path in reports:
        report = json.loads(path.read_text())
        shown = Path(texts.figure(report))
        assert shown.stem == path.stem
        there = (ROOT / "docs" / "figures" / shown).exists()
        assert there == (str(shown) in texts.block(report))
