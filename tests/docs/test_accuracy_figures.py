"""The benchmarks of accuracy run, and the pages quote their JSON results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import forks
from tests.support.paths import ROOT

BENCHMARKS = ROOT / "benchmarks"
NUMPY = "NumPy float32"


@pytest.fixture
def report(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Run a benchmark on few and small matrices; draw if matplotlib is installed."""
    script = BENCHMARKS / "matmul" / f"accuracy_{request.param}.py"
    written, drawn = tmp_path / "found.json", tmp_path / "found.png"
    printed = forks.run(str(script), "--quick", "--json", str(written))
    assert "bf16x9" in printed
    found: dict[str, Any] = json.loads(written.read_text())
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return found
    drawing = forks.run(str(script), "--read", str(written), "--plot", str(drawn))
    assert drawing == printed
    assert drawn.read_bytes().startswith(b"\x89PNG")
    return found


@pytest.mark.parametrize("report", ["condition"], indirect=True)
def test_condition(report: dict[str, Any]) -> None:
    assert report["points"]
    for point in report["points"]:
        assert 0.5 < point["condition"] / point["delta"] < 2
        modes = point["modes"]
        assert modes[NUMPY]["ties"] == 1
        assert modes["bf16x9"]["mean"] < modes[NUMPY]["mean"]
        assert modes["bf16x9"]["nearer"] + modes["bf16x9"]["ties"] > 0.5
        means = [modes[m]["mean"] for m in ("bf16x9", "bf16x3", "tf32", "bf16")]
        assert means == sorted(means)


@pytest.mark.parametrize("report", ["exponents"], indirect=True)
def test_exponents(report: dict[str, Any]) -> None:
    assert report["maps"]
    for grid in report["maps"].values():
        assert flat(grid["result"])
        cells = zip(*map(flat, grid["snr"].values()), flat(grid["result"]), strict=True)
        for numpy, nine, six, unscaled, best, exponent in cells:
            if best is None:
                assert numpy is nine is six is unscaled is None
                assert exponent > 120 or exponent < -148
            else:
                assert max(numpy, nine, six, unscaled) <= best + 0.1
                assert nine > numpy - 3
                assert nine > 120 or exponent < -120
    unscaled = flat(report["maps"]["all"]["snr"]["unscaled x6"])
    assert 0 in unscaled
    assert max(ratio for ratio in unscaled if ratio is not None) > 120


def flat(rows: list[list[Any]]) -> list[Any]:
    return [value for row in rows for value in row]


@pytest.mark.parametrize("report", ["length"], indirect=True)
def test_length(report: dict[str, Any]) -> None:
    assert report["snr"]
    assert report["lengths"]
    for kind, modes in report["snr"].items():
        for i in range(len(report["lengths"])):
            order = ["bf16x9", "bf16x3", "tf32", "bf16", "fp8_e4m3", "fp8_e5m2"]
            ratios = [modes[mode][i] for mode in order]
            assert ratios == sorted(ratios, reverse=True), kind
            assert modes["bf16x9"][i] > modes[NUMPY][i]


def test_the_documents_have_the_figures() -> None:
    forks.run(BENCHMARKS / "readme.py", "--check")
