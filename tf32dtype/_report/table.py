"""The report on a terminal, or as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from .._text import Table, decibels, draws, number
from .advice import PlaceReport, rule
from .naming import at, exponents, numbered, share, where
from .places import Run

if TYPE_CHECKING:
    from .report import Report

#: The candidates that have a column, where they were measured.
CHIEF = ("f32", "tf32", "bf16", "bf16x3", "f16", "fp8_e4m3")

_MOST = 30  # rows
_WIDTH = 88
_COLORS = {
    "bears": "green",
    "needs": "yellow",
    "float64": "red",
    "range": "red",
    "digits": "red",
    "device": "yellow",
    "elsewhere": "cyan",
    "unmeasured": "cyan",
}


def chief(places: Sequence[PlaceReport]) -> list[str]:
    """The candidates that have a column: the chief ones, and those of devices."""
    measured = dict.fromkeys(name for one in places for name in one.figures.errors)
    found = [name for name in measured if name.partition("@")[0] in CHIEF]
    return found or list(measured)[: len(CHIEF)]


def print_report(report: Report, stream: TextIO | None = None) -> None:
    """Write the report to a stream; None: standard output."""
    run, places = report.run, report.places
    print(title(run), file=stream)
    if report.ending:
        print(f"The program {report.ending}; this is what it did before.", file=stream)
    print(file=stream)
    if places:
        _table(run, places).print(stream)
        more = places[_MOST:]
        if more:
            part = share(sum(x.place.multiply_adds for x in more), run.multiply_adds)
            print(f"and {numbered(len(more), 'place')} with {part} %", file=stream)
        print(file=stream)
    if report.arithmetic and report.arithmetic.places:
        report.arithmetic.table().print(stream)
        print(file=stream)
    if places:
        _say(rule(report.target_db), stream)
        print(file=stream)
    for line in report.advice:
        _say(line.text, stream, _COLORS[line.kind])


def title(run: Run) -> str:
    """What ran, for how long, and what was caught."""
    program = " ".join(run.argv) or "The block"
    calls = numbered(sum(place.calls for place in run.places), "product")
    return (
        f"{program}: {number(run.seconds)} s, {calls},"
        f" {number(float(run.multiply_adds))} multiply-adds,"
        f" {numbered(len(run.places), 'place')}"
    )


def _table(run: Run, places: Sequence[PlaceReport]) -> Table:
    columns = chief(places)
    header = [
        "place",
        *(["within"] if has_library(places) else []),
        "verdict",
        "loses",
        "routine",
        "dtype",
        "calls",
        "% work",
        "% time",
        "exp. A",
        "exp. B",
        *columns,
        "condition",
    ]
    rows = [[*_cells(run, one, columns, has_library(places))] for one in places[:_MOST]]
    return Table(
        "Products by place: SNR in dB against float64 in each precision", header, rows
    )


def _cells(
    run: Run, one: PlaceReport, columns: Sequence[str], with_library: bool
) -> Iterable[str]:
    place, figures, verdict = one
    yield where(place)
    if with_library:
        yield library_of(one)
    yield verdict.text
    yield verdict.losses or "-"
    yield place.routine
    yield place.dtype
    yield str(place.calls)
    yield share(place.multiply_adds, run.multiply_adds)
    yield share(place.seconds, run.seconds)
    yield exponents(figures.a)
    yield exponents(figures.b)
    for name in columns:
        measured = figures.elements and name in figures.errors
        yield decibels(figures.errors[name].snr) if measured else "-"
    yield number(figures.condition_median) if figures.elements else "-"


def has_library(places: Sequence[PlaceReport]) -> bool:
    """Whether a place has a library's frame below the user's."""
    return any(one.place.user and one.place.library for one in places)


def library_of(one: PlaceReport) -> str:
    """That frame, in words."""
    place = one.place
    return at(place.library) if place.user and place.library else "-"


def _say(text: str, stream: TextIO | None, color: str | None = None) -> None:
    """A paragraph, wrapped on a terminal alone."""
    if not draws(stream):
        print(text, file=stream)
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False)
    width = min(console.width, _WIDTH + 12)
    for i, line in enumerate(textwrap.wrap(text, width, subsequent_indent="  ")):
        # The first words in color say what kind of advice it is.
        head, colon, rest = line.partition(": ") if not i and color else ("", "", line)
        console.print(head + colon, style=color or "", end="")
        console.print(rest)
