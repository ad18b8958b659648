"""The figures of surface.py as texts: cases above their limits, summaries."""

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
    """A case: its time over float32's, over ml_dtypes' if that has the call."""

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
    """All cases of a report that the formats have."""
    found = []
    for call, rows in report["rows"].items():
        for variant, row in rows.items():
            kind, overs = row["kind"], (row["over float32"], row["over ml_dtypes"])
            for name, ratio, over in zip(report["formats"], *overs, strict=True):
                if ratio is not None:
                    most = limit(kind, row["size"], name)
                    cell = Measured(call, variant, name, kind, most, ratio, over)
                    found.append(cell)
    return found


def missing(report: dict[str, Any]) -> dict[str, list[str]]:
    """The calls that float32 has and a format has not, with those formats."""
    found: dict[str, list[str]] = {}
    for call, rows in report["rows"].items():
        names = [name for row in rows.values() for name in row.get("not", [])]
        if names:
            found[call] = list(dict.fromkeys(names))
    return found


def mean(cells: Iterable[Measured]) -> float:
    """The geometric mean of the ratios."""
    logs = [math.log(cell.ratio) for cell in cells]
    return math.exp(sum(logs) / len(logs))


def ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def share(cells: list[Measured], test: Callable[[Measured], bool]) -> str:
    """Rounded downward: 100 % are all."""
    percent = 100 * sum(map(test, cells)) / len(cells)
    return f"{math.floor(10 * percent) / 10:.1f} %"


def of_formats(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row a format, for `FORMAT_HEADINGS`."""
    by_format: dict[str, list[Measured]] = {}
    for cell in measured_cells(report):
        by_format.setdefault(cell.format, []).append(cell)
    rows = []
    for name, cells in by_format.items():
        worst = max(cells, key=lambda cell: cell.ratio)
        rows.append(
            (
                f"`{name}`",
                str(len(cells)),
                share(cells, lambda cell: not cell.above),
                share(cells, lambda cell: cell.ratio <= 1),
                ratio(mean(cells)),
                f"{ratio(worst.ratio)}: {worst.call}, {worst.variant}",
                str(sum(cell.behind for cell in cells)),
            )
        )
    return rows


FORMAT_HEADINGS = ("format", "cases", "within the limit", "at or below float32", "mean",
                   "worst", "behind ml_dtypes")  # fmt: skip


def group(cell: Measured) -> str:
    names = {"tf32": "tf32", "bfloat16": "bf16"}
    return names.get(cell.format, "8 bits and less")


GROUPS = ("bf16", "8 bits and less", "tf32")
KIND_HEADINGS = ("calls", *GROUPS)


def of_kinds(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row a kind of call: the mean ratio and the worst, of each group of formats."""
    found: dict[str, dict[str, list[Measured]]] = {kind: {} for kind in LIMITS}
    for cell in measured_cells(report):
        found[cell.kind].setdefault(group(cell), []).append(cell)
    rows = []
    for kind, groups in found.items():
        if groups:
            texts = [
                f"{ratio(mean(cells))}, up to {ratio(max(c.ratio for c in cells))}"
                if (cells := groups.get(name))
                else "-"
                for name in GROUPS
            ]
            rows.append((kind, *texts))
    return rows


def slowest(report: dict[str, Any], count: int) -> list[tuple[str, ...]]:
    """The worst case of each call and group of formats, for `SLOWEST_HEADINGS`."""
    worst: dict[tuple[str, str], Measured] = {}
    for cell in measured_cells(report):
        key = cell.call, group(cell)
        if key not in worst or cell.ratio > worst[key].ratio:
            worst[key] = cell
    order = sorted(worst.values(), key=lambda cell: -cell.ratio)
    return [
        (cell.call, cell.variant, f"`{cell.format}`", ratio(cell.ratio))
        for cell in order[:count]
        if cell.ratio > 1
    ]


SLOWEST_HEADINGS = ("call", "layout, elements, data", "format", "x the time of float32")
PEER_HEADING = "x the time of ml_dtypes"


def above(report: dict[str, Any]) -> list[Measured]:
    """The cases above their limit, the worst in proportion to it first."""
    cells = [cell for cell in measured_cells(report) if cell.above]
    return sorted(cells, key=lambda cell: -cell.ratio / cell.limit)


def behind(report: dict[str, Any]) -> list[Measured]:
    """The cases in which ml_dtypes is faster, the worst first."""
    cells = [cell for cell in measured_cells(report) if cell.behind]
    return sorted(cells, key=lambda cell: -(cell.over_peer or 0))


def origin(report: dict[str, Any]) -> str:
    facts = report["machine"]
    return (
        f"{facts['cpu']}, one thread, {report['isa']}, {numpy_of(facts)}, "
        f"Python {facts['python']}, {facts['date']}; {runs_said(report['runs'])}"
    )


def show(report: dict[str, Any], count: int) -> str:
    """What is printed: at most `count` cases a list."""
    lines = [origin(report)]
    for title, cells in (
        ("above their limit", above(report)),
        ("slower than ml_dtypes", behind(report)),
    ):
        rows = [
            (
                ratio(cell.ratio),
                ratio(cell.limit),
                "-" if cell.over_peer is None else ratio(cell.over_peer),
                cell.name,
            )
            for cell in cells[:count]
        ]
        left = f", the worst {len(rows)}" if len(rows) < len(cells) else ""
        lines += ["", f"{len(cells)} cases {title}{left}:"]
        if rows:
            lines.append(
                columns((SLOWEST_HEADINGS[3], "limit", PEER_HEADING, "case"), rows)
            )
    for call, names in missing(report).items():
        lines.append(f"not there: {call} of {', '.join(names)}")
    lines += ["", columns(KIND_HEADINGS, of_kinds(report))]
    lines += ["", columns(FORMAT_HEADINGS, of_formats(report))]
    return "\n".join(lines)


# -- documents ---------------------------------------------------------------------


def measured_on(report: dict[str, Any]) -> str:
    text = f"Measured on {origin(report)}."
    if report["quick"]:
        text += " A quick selection of the cases (`--quick`)."
    return text


def summary(report: dict[str, Any]) -> str:
    """What stands first: a table of kinds, and what the cases come to."""
    cells = measured_cells(report)
    peers = [cell for cell in cells if cell.over_peer is not None]
    faster = share(cells, lambda cell: cell.ratio <= 1)
    ahead = sum(cell.behind for cell in peers)
    calls: dict[str, float] = {}
    for cell in cells:
        calls[cell.call] = max(calls.get(cell.call, 0), cell.ratio)
    worst = sorted(calls, key=lambda call: -calls[call])[:6]
    named = ", ".join(f"{call} ({ratio(calls[call])})" for call in worst)
    return "\n".join(
        [
            measured_on(report),
            "",
            markdown(KIND_HEADINGS, of_kinds(report)),
            "",
            f"Of {len(cells)} cases {faster} take no longer than float32. The slowest "
            f"calls, each in its worst case: {named}. ml_dtypes is faster in {ahead} "
            f"of the {len(peers)} cases that it has.",
        ]
    )


def details(report: dict[str, Any]) -> str:
    """The rest: a table of formats, and the slowest cases."""
    lost = behind(report)
    rows = [
        (cell.call, cell.variant, f"`{cell.format}`", ratio(cell.over_peer or 0))
        for cell in lost[:20]
    ]
    headings = (*SLOWEST_HEADINGS[:3], PEER_HEADING)
    parts = [
        measured_on(report),
        markdown(FORMAT_HEADINGS, of_formats(report)),
        "The slowest cases against float32, one of a call and a group of formats:",
        markdown(SLOWEST_HEADINGS, slowest(report, 40)),
        f"Cases in which ml_dtypes is faster: {len(lost)}.",
    ]
    return "\n\n".join([*parts, *([markdown(headings, rows)] if rows else [])])
