"""The report as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..._base.text import strict_json
from .advice import CallSiteReport
from .call_sites import Frame, Run

if TYPE_CHECKING:
    from .report import Report


def to_json(report: Report) -> str:
    """Return the whole report in strict JSON; Inf and NaN are strings."""
    run = report.run
    record = {
        "program": list(run.argv),
        "ending": report.ending,
        "seconds": run.seconds,
        "multiply_adds": run.multiply_adds,
        "versions": {
            "python": run.python,
            "numpy": run.numpy,
            "tf32dtype": run.tf32dtype,
        },
        "target_db": report.target_db,
        "exact": report.exact,
        "left_out": run.left_out,
        "without_call_site": run.without_call_site,
        "call_sites": [_call_site(run, one) for one in report.call_sites],
        "arithmetic": report.arithmetic
        and report.arithmetic.record()
        | (report.lines.records() if report.lines else {}),
        "trial": report.trial and report.trial.record(report.target_db),
        "not_reached": [asdict(one) for one in run.not_reached],
        "advice": [asdict(line) for line in report.advice],
    }
    return strict_json(record) + "\n"


def _call_site(run: Run, one: CallSiteReport) -> dict[str, Any]:
    site, figures, verdict = one
    return {
        "user": _frame(site.user),
        "library": _frame(site.library),
        "operand": site.operand and asdict(site.operand),
        "caller": site.caller,
        "routine": site.routine,
        "dtype": site.dtype,
        "calls": site.calls,
        "multiply_adds": site.multiply_adds,
        "multiply_adds_share": _ratio(site.multiply_adds, run.multiply_adds),
        "seconds": site.seconds,
        "seconds_share": _ratio(site.seconds, run.busy_seconds),
        "shapes": [
            {"m": m, "n": n, "k": k, "calls": calls}
            for (m, n, k), calls in site.shapes.items()
        ],
        "samples_kept": len(site.samples),
        "later_sums": [one.record() for one in site.later_sums],
        **figures.record(),
        "verdict": verdict.record(),
    }


def _frame(frame: Frame | None) -> dict[str, Any] | None:
    return frame and frame.record()


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
