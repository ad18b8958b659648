"""The report on a terminal, or as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from ..._base.text import Table, draws, number
from .advice import CallSiteReport
from .call_sites import Run
from .legend import legend
from .naming import (
    MULTIPLICATION,
    at,
    exponents,
    numbered,
    ratio,
    share,
    snr_text,
    where,
)

if TYPE_CHECKING:
    from .report import Report

#: The precisions that have a column if they were measured and none was named.
CHIEF = ("f32", "tf32", "bf16", "bf16x3", "f16", "fp8_e4m3")

_MOST = 30  # rows
_WIDTH = 88
_COLORS = {
    "program": "green",
    "program_changes": "red",
    "line_changes": "red",
    "program_unknown": "yellow",
    "pattern": "yellow",
    "sufficient": "cyan",
    "insufficient": "yellow",
    "float64": "red",
    "out_of_range": "red",
    "absorbed": "red",
    "canceled_digits": "red",
    "largest_error": "red",
    "device": "yellow",
    "not_reached": "cyan",
    "not_measured": "cyan",
}


def chief(sites: Sequence[CallSiteReport], named: Sequence[str] = ()) -> list[str]:
    """Return the precisions that have a column: named or chief, also on devices."""
    chosen = ("f32", *named) if named else CHIEF
    measured = dict.fromkeys(name for one in sites for name in one.figures.errors)
    found = [name for name in measured if name.partition("@")[0] in chosen]
    return found or list(measured)[: len(CHIEF)]


def print_report(report: Report, stream: TextIO | None = None) -> None:
    """Write the report to a stream; None: standard output."""
    sites = report.call_sites
    print(title(report.run), file=stream)
    if report.ending:
        print(ending(report), file=stream)
    print(file=stream)
    if sites:
        call_sites_table(report).print(stream)
        if more := left_out(report):
            print(more, file=stream)
        print(file=stream)
    if report.arithmetic and report.arithmetic.call_sites:
        report.arithmetic.table().print(stream)
        print(file=stream)
    if sites:
        say(legend(report.target_db), stream)
        print(file=stream)
    for one in report.advice:
        say(one.text, stream, _COLORS[one.kind])


def ending(report: Report) -> str:
    """Return how the program ended, in a sentence; "" if it ended well."""
    if not report.ending:
        return ""
    return f"The program {report.ending}; the report covers the run before that."


def left_out(report: Report) -> str:
    """Return a line on the call sites that the table leaves out; "" if none is."""
    more = report.call_sites[_MOST:]
    if not more:
        return ""
    adds = sum(x.call_site.multiply_adds for x in more)
    part = share(adds, report.run.multiply_adds)
    return f"and {numbered(len(more), 'call site')} with {part} % of the work"


def title(run: Run) -> str:
    """Return the program, its time and the counts."""
    program = " ".join(run.argv) or "The block"
    calls = numbered(sum(site.calls for site in run.call_sites), MULTIPLICATION)
    return (
        f"{program}: {number(run.seconds)} s, {calls},"
        f" {number(float(run.multiply_adds))} multiply-adds,"
        f" {numbered(len(run.call_sites), 'call site')}"
    )


def call_sites_table(report: Report) -> Table:
    """Return the table of call sites, the heaviest ones."""
    run, sites = report.run, report.call_sites
    columns = chief(sites, report.named)
    header = [
        "call site",
        *(["library"] if has_library(sites) else []),
        "product alone",
        "warning",
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
    rows = [[*_cells(run, one, columns, has_library(sites))] for one in sites[:_MOST]]
    return Table(
        "Matrix multiplications by call site: SNR in dB against float64",
        header,
        rows,
    )


def _cells(
    run: Run, one: CallSiteReport, columns: Sequence[str], with_library: bool
) -> Iterable[str]:
    site, figures, verdict = one
    yield where(site)
    if with_library:
        yield library_of(one)
    yield verdict.text
    yield verdict.warning or "-"
    yield site.routine
    yield site.dtype
    yield str(site.calls)
    yield share(site.multiply_adds, run.multiply_adds)
    yield share(site.seconds, run.busy_seconds)
    yield exponents(figures.a)
    yield exponents(figures.b)
    for name in columns:
        measured = figures.elements and name in figures.errors
        yield snr_text(figures.errors[name].snr) if measured else "-"
    yield ratio(figures.condition_median)


def has_library(sites: Sequence[CallSiteReport]) -> bool:
    """Return whether any call site has a library's frame below the user's."""
    return any(one.call_site.user and one.call_site.library for one in sites)


def library_of(one: CallSiteReport) -> str:
    """Return that frame in words."""
    site = one.call_site
    return at(site.library) if site.user and site.library else "-"


def say(text: str, stream: TextIO | None, color: str | None = None) -> None:
    """Print a paragraph, wrapped only on a terminal."""
    if not draws(stream):
        print(text, file=stream)
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False)
    width = min(console.width, _WIDTH + 12)
    for i, line in enumerate(textwrap.wrap(text, width, subsequent_indent="  ")):
        # The colored first words show the kind of advice.
        head, colon, rest = line.partition(": ") if not i and color else ("", "", line)
        console.print(head + colon, style=color or "", end="")
        console.print(rest)
