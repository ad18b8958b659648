"""The transformer's plans: a small run, and what the document's figures promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.interpreters import run
from tests.support.paths import BENCHMARKS, ROOT
from tf32dtype import _core

pytestmark = pytest.mark.once

SCRIPT = ROOT / "examples" / "applications" / "transformer_plan.py"


def plans_hold(report: dict[str, Any]) -> None:
    """A looser tolerance is no dearer; unseen images lose about as much as it says."""
    plans = {float(x): plan for x, plan in report["plans"].items()}
    bits = [plans[tolerance]["bits"] for tolerance in sorted(plans)]
    assert bits == sorted(bits, reverse=True)
    for tolerance, plan in plans.items():
        assert plan["error"] < 2 * tolerance
        assert plan["bits"] <= 448
        assert len(plan["products"]) == 10


def test_quick(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    if not _core.blas_available() or not _core.frames_are_known():
        pytest.skip("plans need places in the source")
    printed = run(SCRIPT, "--quick", "--json", tmp_path / "found.json", timeout=600)
    assert "| `hidden` |" in printed
    plans_hold(json.loads((tmp_path / "found.json").read_text()))


def test_in_full() -> None:
    path = BENCHMARKS / "results" / "transformer_plan.json"
    plans_hold(json.loads(path.read_text()))
