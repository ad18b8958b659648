"""The report for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .._text import strict_json
from .advice import PlaceReport
from .places import Frame, Run

if TYPE_CHECKING:
    from .report import Report


def to_json(report: Report) -> str:
    """All of the report, in strict JSON: Inf and NaN are strings."""
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
        "without_place": run.without_place,
        "places": [_place(run, one) for one in report.places],
        "arithmetic": report.arithmetic and report.arithmetic.record(),
        "elsewhere": [asdict(one) for one in run.elsewhere],
        "advice": [asdict(line) for line in report.advice],
    }
    return strict_json(record) + "\n"


def _place(run: Run, one: PlaceReport) -> dict[str, Any]:
    place, figures, verdict = one
    return {
        "user": _frame(place.user),
        "library": _frame(place.library),
        "caller": place.caller,
        "routine": place.routine,
        "dtype": place.dtype,
        "calls": place.calls,
        "multiply_adds": place.multiply_adds,
        "multiply_adds_share": _ratio(place.multiply_adds, run.multiply_adds),
        "seconds": place.seconds,
        "seconds_share": _ratio(place.seconds, run.seconds),
        "shapes": [
            {"m": m, "n": n, "k": k, "calls": calls}
            for (m, n, k), calls in place.shapes.items()
        ],
        "samples_kept": len(place.samples),
        **figures.record(),
        "verdict": verdict.record(),
    }


def _frame(frame: Frame | None) -> dict[str, Any] | None:
    return frame and frame._asdict()


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
