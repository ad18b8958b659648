"""The transformer's plans: a small run, and the figures of the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.images import variables_of_stub
from tests.support import forks
from tests.support.interpreters import run
from tests.support.paths import BENCHMARKS, ROOT
from tf32dtype import _core

pytestmark = pytest.mark.once

SCRIPT = ROOT / "examples" / "applications" / "transformer_plan.py"


def plans_hold(report: dict[str, Any]) -> None:
    """Check that larger tolerances need no more bits, and the loss on unseen images."""
    plans = {float(x): plan for x, plan in report["plans"].items()}
    bits = [plans[tolerance]["bits"] for tolerance in sorted(plans)]
    assert bits == sorted(bits, reverse=True)
    for tolerance, plan in plans.items():
        assert plan["error"] < 2 * tolerance
        assert plan["bits"] <= 448
        assert len(plan["products"]) == 10


def needs_plans() -> None:
    pytest.importorskip("sklearn")
    if not _core.blas_available() or not _core.frames_are_known():
        pytest.skip("plans need places in the source")


@pytest.mark.exhaustive
def test_one_precision(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Search among fp8_e4m3 only, whose first plan is within the tolerance."""
    needs_plans()
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import scripts
    import transformer_plan as plan

    def in_a_fork(folder: Path, *words: str) -> str:
        return forks.run("-m", "tf32dtype", *words, cwd=folder, **variables)

    variables = variables_of_stub(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(plan, "run", in_a_fork)
    monkeypatch.setattr(plan, "PRECISIONS", ("fp8_e4m3",))
    written = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--quick", "--json", str(written)])
    needs = {"sklearn": "scikit-learn"}
    assert (
        scripts.main(str(plan.__doc__), needs, plan.measure, plan.block, plan.draw) == 0
    )
    assert "| `hidden` |" in capsys.readouterr().out
    report = json.loads(written.read_text())
    (found,) = report["plans"].values()
    assert set(found["products"].values()) == {"fp8_e4m3"}
    plans_hold(report)


@pytest.mark.exhaustive
def test_quick(tmp_path: Path) -> None:
    needs_plans()
    printed = run(SCRIPT, "--quick", "--json", tmp_path / "found.json", timeout=600)
    assert "| `hidden` |" in printed
    plans_hold(json.loads((tmp_path / "found.json").read_text()))


def test_in_full() -> None:
    path = BENCHMARKS / "results" / "transformer_plan.json"
    plans_hold(json.loads(path.read_text()))
