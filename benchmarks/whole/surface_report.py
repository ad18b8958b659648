"""Format the figures of surface.py: cases above their limits, and summaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from accuracy import columns, markdown
from report import numpy_of, runs_said
from surface_limits import LIMITS, PEER, limit


@dataclass(frozen=True)
class Measured:
    """A case with its time over float32's, and over ml_dtypes' if it has the call."""

    call: str
    variant: str
    format: str
    kind: str
    limit: float
    ratio: float
    over_peer: float | None

    @property
    def name(self) -> str:
        return f"{self.call}, {self.variant}, {self.format}"

    @property
    def above(self) -> bool:
        return self.ratio > self.limit

    @property
    def behind(self) -> bool:
        return self.over_peer is not None and self.over_peer > PEER


def measured_cells(report: dict[str, Any]) -> list[Measured]:
    """Return all cases of a report that were measured."""
    found = []
    for call, rows in report["rows"].items():
        for variant, row in rows.items():
            kind, overs = row["kind"], (row["over float32"], row["over ml_dtypes"])
            for name, ratio, over in zip(report["formats"], *overs, strict=True):
                if ratio is not None:
                    most = limit(kind, row["size"], name)
                    case = Measured(call, variant, name, kind, most, ratio, over)
                    found.append(case)
    return found


def missing(report: dict[str, Any]) -> dict[str, list[str]]:
    """Return the calls that float32 has and some formats lack, with these formats."""
    found: dict[str, list[str]] = {}
    for call, rows in report["rows"].items():
        names = [name for row in rows.values() for name in row.get("not", [])]
        if names:
            found[call] = list(dict.fromkeys(names))
    return found


def mean(cases: Iterable[Measured]) -> float:
    """Return the geometric mean of the ratios."""
    logs = [math.log(case.ratio) for case in cases]
    return math.exp(sum(logs) / len(logs))


def ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def share(cases: list[Measured], test: Callable[[Measured], bool]) -> str:
    """Return the share of cases that pass, rounded downward: 100 % means all."""
    percent = 100 * sum(map(test, cases)) / len(cases)
    return f"{math.floor(10 * percent) / 10:.1f} %"


def of_formats(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return one row per format, under `FORMAT_HEADINGS`."""
    by_format: dict[str, list[Measured]] = {}
    for case in measured_cells(report):
        by_format.setdefault(case.format, []).append(case)
    rows = []
    for name, cases in by_format.items():
        worst = max(cases, key=lambda case: case.ratio)
        rows.append(
            (
                f"`{name}`",
                str(len(cases)),
                share(cases, lambda case: not case.above),
                share(cases, lambda case: case.ratio <= 1),
                ratio(mean(cases)),
                f"{ratio(worst.ratio)}: {worst.call}, {worst.variant}",
                str(sum(case.behind for case in cases)),
            )
        )
    return rows


FORMAT_HEADINGS = ("format", "cases", "within the limit", "no slower than float32",
                   "mean time", "slowest", "slower than ml_dtypes")  # fmt: skip


def group(case: Measured) -> str:
    names = {"tf32": "tf32", "bfloat16": "bf16"}
    return names.get(case.format, "8 bits and less")


GROUPS = ("bf16", "8 bits and less", "tf32")
KIND_HEADINGS = ("calls", *GROUPS)


def of_kinds(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return one row per kind of call: mean and worst ratio of each format group."""
    found: dict[str, dict[str, list[Measured]]] = {kind: {} for kind in LIMITS}
    for case in measured_cells(report):
        found[case.kind].setdefault(group(case), []).append(case)
    rows = []
    for kind, groups in found.items():
        if groups:
            texts = [
                f"{ratio(mean(cases))}, up to {ratio(max(c.ratio for c in cases))}"
                if (cases := groups.get(name))
                else "-"
                for name in GROUPS
            ]
            rows.append((kind, *texts))
    return rows


def slowest(report: dict[str, Any], count: int) -> list[tuple[str, ...]]:
    """Return the worst case of each call and format group, under `SLOWEST_HEADINGS`."""
    worst: dict[tuple[str, str], Measured] = {}
    for case in measured_cells(report):
        key = case.call, group(case)
        if key not in worst or case.ratio > worst[key].ratio:
            worst[key] = case
    order = sorted(worst.values(), key=lambda case: -case.ratio)
    return [
        (case.call, case.variant, f"`{case.format}`", ratio(case.ratio))
        for case in order[:count]
        if case.ratio > 1
    ]


SLOWEST_HEADINGS = ("call", "layout, elements, data", "format", "x the time of float32")
PEER_HEADING = "x the time of ml_dtypes"


def above(report: dict[str, Any]) -> list[Measured]:
    """Return the cases above their limit, the worst relative to the limit first."""
    cases = [case for case in measured_cells(report) if case.above]
    return sorted(cases, key=lambda case: -case.ratio / case.limit)


def behind(report: dict[str, Any]) -> list[Measured]:
    """Return the cases in which ml_dtypes is faster, the worst first."""
    cases = [case for case in measured_cells(report) if case.behind]
    return sorted(cases, key=lambda case: -(case.over_peer or 0))


def origin(report: dict[str, Any]) -> str:
    facts = report["machine"]
    return (
        f"{facts['cpu']}, one thread, {report['isa']}, {numpy_of(facts)}, "
        f"Python {facts['python']}, {facts['date']}; {runs_said(report['runs'])}"
    )


def show(report: dict[str, Any], count: int) -> str:
    """Return the text to print, with at most `count` cases per list."""
    lines = [origin(report)]
    for title, cases in (
        ("above their limit", above(report)),
        ("slower than ml_dtypes", behind(report)),
    ):
        rows = [
            (
                ratio(case.ratio),
                ratio(case.limit),
                "-" if case.over_peer is None else ratio(case.over_peer),
                case.name,
            )
            for case in cases[:count]
        ]
        left = f", the worst {len(rows)}" if len(rows) < len(cases) else ""
        lines += ["", f"{len(cases)} cases {title}{left}:"]
        if rows:
            lines.append(
                columns((SLOWEST_HEADINGS[3], "limit", PEER_HEADING, "case"), rows)
            )
    for call, names in missing(report).items():
        lines.append(f"missing: {call} of {', '.join(names)}")
    lines += ["", columns(KIND_HEADINGS, of_kinds(report))]
    lines += ["", columns(FORMAT_HEADINGS, of_formats(report))]
    return "\n".join(lines)


# -- documents ---------------------------------------------------------------------


def measured_on(report: dict[str, Any]) -> str:
    text = f"Measured on {origin(report)}."
    if report.get("avx2"):
        text += (
            " The processor has AVX-512, but tf32dtype, NumPy and OpenBLAS use only"
            " AVX2 (`--avx2`)."
        )
    if report["quick"]:
        text += " A quick selection of the cases (`--quick`)."
    return text


def summary(report: dict[str, Any]) -> str:
    """Return a table of kinds, and the summary of all cases."""
    cases = measured_cells(report)
    peers = [case for case in cases if case.over_peer is not None]
    faster = share(cases, lambda case: case.ratio <= 1)
    ahead = sum(case.behind for case in peers)
    calls: dict[str, float] = {}
    for case in cases:
        calls[case.call] = max(calls.get(case.call, 0), case.ratio)
    worst = sorted(calls, key=lambda call: -calls[call])[:6]
    named = ", ".join(f"{call} ({ratio(calls[call])})" for call in worst)
    return "\n".join(
        [
            measured_on(report),
            "",
            "Mean time relative to NumPy's float32, and that of the slowest case, lower"
            " is better:",
            "",
            markdown(KIND_HEADINGS, of_kinds(report)),
            "",
            f"{faster} of the {len(cases)} cases take no longer than float32. The"
            f" slowest calls, each in its slowest case: {named}. ml_dtypes is faster in"
            f" {ahead} of the {len(peers)} cases that it has.",
        ]
    )


def details(report: dict[str, Any]) -> str:
    """Return a table of formats, and the slowest cases."""
    lost = behind(report)
    rows = [
        (case.call, case.variant, f"`{case.format}`", ratio(case.over_peer or 0))
        for case in lost[:20]
    ]
    headings = (*SLOWEST_HEADINGS[:3], PEER_HEADING)
    parts = [
        measured_on(report),
        "Shares of the cases of each format, and times relative to NumPy's float32,"
        " lower is better:",
        markdown(FORMAT_HEADINGS, of_formats(report)),
        "The slowest cases, one per call and group of formats. Time relative to NumPy's"
        " float32, lower is better:",
        markdown(SLOWEST_HEADINGS, slowest(report, 40)),
        f"Cases in which ml_dtypes is faster: {len(lost)}. Time relative to ml_dtypes,"
        " lower is better:",
    ]
    return "\n\n".join([*parts, *([markdown(headings, rows)] if rows else [])])
