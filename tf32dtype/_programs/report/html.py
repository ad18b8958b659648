"""The report as one HTML page that needs no other file and no network."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..._base.text import Table, number
from .advice import CallSiteReport
from .call_sites import Frame, NotReached, Run
from .exponents import Exponents
from .figures import Errors
from .html_style import SCRIPT, STYLE
from .legend import rule
from .naming import at, exponents, numbered, ratio, shape, share, snr_text, where
from .plots import exponent_plot, snr_plot
from .table import call_sites_table, chief, ending, left_out, library_of, title
from .verdict import Verdict, acceptable

if TYPE_CHECKING:
    from .report import Report

_AROUND = 4  # lines of the source before and after
_OPEN = 5  # call sites whose sections are open
_SHAPES = 6
_COLORS = {
    "sufficient": "",  # "good" only if a trial of the program confirms it
    "insufficient": "fair",
    "float64": "bad",
    "not_measured": "dim",
}


def to_html(report: Report) -> str:
    """Return the page."""
    run = report.run
    name = " ".join(run.argv) or "td.report()"
    return whole_page(
        f"{name}: precision report",
        [
            *_header(report, name),
            "<h2>Advice</h2>",
            '<ul class="advice">',
            *(f'<li class="{x.kind}">{escape(x.text)}</li>' for x in report.advice),
            "</ul>",
            f'<p class="dim">{escape(rule(report.target_db))}</p>',
            *_overview(report),
            *_arithmetic(report),
            *_not_reached(run.not_reached),
            *_sections(report),
        ],
    )


def whole_page(title: str, body: Iterable[str]) -> str:
    """Return a page that needs no other file and no network."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head><body>",
            *body,
            f"<script>{SCRIPT}</script>",
            "</body></html>\n",
        ]
    )


def to_fragment(report: Report) -> str:
    """Return the table and the advice for a page that has its own style: a notebook's.

    It has neither classes nor scripts, which would meet those of the page.
    """
    tables = [call_sites_table(report)] if report.call_sites else []
    if report.arithmetic and report.arithmetic.call_sites:
        tables.append(report.arithmetic.table())
    lines = [title(report.run), ending(report)]
    parts = [f"<p>{escape(line)}</p>" for line in lines if line]
    for table in tables:
        parts.append(f"<p>{escape(table.title)}</p>")
        parts += text_table(table, 'style="overflow-x: auto"', "<th>")
    if more := left_out(report):
        parts.append(f"<p>{escape(more)}</p>")
    parts += ["<ul>", *(f"<li>{escape(x.text)}</li>" for x in report.advice), "</ul>"]
    return "\n".join(parts)


def text_table(table: Table, wide: str, head: str) -> Iterable[str]:
    """Return a table that the terminal shows."""
    yield f"<div {wide}><table><thead><tr>"
    yield "".join(f"{head}{escape(text)}</th>" for text in table.header)
    yield "</tr></thead><tbody>"
    for row in table.rows:
        yield f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>"
    yield "</tbody></table></div>"


def _header(report: Report, name: str) -> Iterable[str]:
    run = report.run
    yield f"<h1>{escape(name)}</h1>"
    yield f"<p>{escape(title(run))}</p>"
    yield (
        f'<p class="dim">tf32dtype {escape(run.tf32dtype)}, NumPy {escape(run.numpy)},'
        f" Python {escape(run.python)}; "
        + (
            "all operands measured"
            if report.exact
            else "measured on samples of rows and columns"
        )
        + "</p>"
    )
    if text := ending(report):
        yield f'<p class="ending">{escape(text)}</p>'


# -- the table of call sites -------------------------------------------------------


def _overview(report: Report) -> Iterable[str]:
    if not report.call_sites:
        return
    columns = chief(report.call_sites, report.named)
    heads = [
        "call site",
        "product alone",
        "warning",
        "routine",
        "dtype",
        "calls",
        "% work",
    ]
    heads += ["% time", "exp. A", "exp. B", *columns, "condition"]
    yield "<h2>Call sites</h2>"
    yield '<p class="dim">SNR in dB against float64, in each precision.</p>'
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f'<th data-sort="">{escape(head)}</th>' for head in heads)
    yield "</tr></thead><tbody>"
    for i, one in enumerate(report.call_sites):
        cells = "".join(_cells(report, i, one, columns))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"


def _arithmetic(report: Report) -> Iterable[str]:
    """Return the table of the arithmetic."""
    if not report.arithmetic or not report.arithmetic.call_sites:
        return
    table = report.arithmetic.table()
    yield f"<h2>{escape(table.title)}</h2>"
    yield from text_table(table, 'class="wide"', '<th data-sort="">')


def _cells(
    report: Report, i: int, one: CallSiteReport, columns: Sequence[str]
) -> Iterable[str]:
    (site, figures, verdict), run = one, report.run
    link = f'<a href="#p{i}">{escape(where(site))}</a>'
    library = f'<br><span class="dim">{escape(library_of(one))}</span>'
    yield f'<td class="call-site">{link}{library if one.call_site.library else ""}</td>'
    yield _cell(verdict.text, None, _color(report, verdict))
    yield _cell(verdict.warning or "-", None, "bad" if verdict.warning else "dim")
    yield _cell(site.routine)
    yield _cell(site.dtype)
    yield _cell(str(site.calls))
    yield _share(site.multiply_adds, run.multiply_adds)
    yield _share(site.seconds, run.busy_seconds)
    for of in (figures.a, figures.b):
        spread = -1 if of.smallest is None else (of.largest or 0) - of.smallest
        yield _cell(exponents(of), spread)
    for name in columns:
        errors = figures.errors.get(name)
        if errors is None or not figures.elements:
            yield _cell("-", -1e9)
        else:
            yield _cell(
                snr_text(errors.snr), errors.snr, _kind(errors, report.target_db)
            )
    condition = figures.condition_median
    yield _cell(ratio(condition), condition)


def _cell(text: str, value: float | None = None, kind: str = "") -> str:
    """Return a cell, with the value to sort by if that is not its text."""
    key = "" if value is None else f' data-value="{_plain(value)}"'
    return f'<td class="{kind}"{key}>{escape(text)}</td>'


def _plain(value: float) -> str:
    """Return a number as the script reads it."""
    return f"{min(max(value, -1e308), 1e308):g}" if value == value else "-1"


def _share(part: float, whole: float) -> str:
    percent = 100 * part / whole if whole else 0.0
    bar = f'<span class="share"><i style="width:{min(percent, 100):.1f}%"></i></span>'
    return f'<td data-value="{percent:.4f}">{bar}{share(part, whole)}</td>'


def _kind(errors: Errors, target_db: float) -> str:
    return "good" if acceptable(errors, target_db) else "bad"


def _not_reached(found: Sequence[NotReached]) -> Iterable[str]:
    if not found:
        return
    yield "<h2>Not reached</h2>"
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f"<th>{x}</th>" for x in ("kind", "name", "calls", "seconds"))
    yield '<th class="text">remedy</th></tr></thead><tbody>'
    for one in found:
        seconds = "-" if one.seconds is None else number(one.seconds)
        yield (
            f"<tr><td>{escape(one.kind)}</td><td>{escape(one.name)}</td>"
            f"<td>{one.calls}</td><td>{seconds}</td>"
            f'<td class="text">{escape(one.remedy or "-")}</td></tr>'
        )
    yield "</tbody></table></div>"


# -- a section for each call site --------------------------------------------------


def _sections(report: Report) -> Iterable[str]:
    if report.call_sites:
        yield "<h2>Each call site</h2>"
    for i, one in enumerate(report.call_sites):
        is_open = " open" if i < _OPEN else ""
        yield f'<details id="p{i}"{is_open}><summary>'
        yield (
            _summary(report, one.verdict)
            + f"<code>{escape(where(one.call_site))}</code></summary>"
        )
        yield from _section(report, one)
        yield "</details>"


def _color(report: Report, verdict: Verdict) -> str:
    is_good = verdict.kind == "sufficient" and report.keeps_results
    return "good" if is_good else _COLORS[verdict.kind]


def _summary(report: Report, verdict: Verdict) -> str:
    color = _color(report, verdict)
    return f'<span class="verdict {color}">{escape(verdict.text)}</span>'


def _section(report: Report, one: CallSiteReport) -> Iterable[str]:
    site, figures, verdict = one
    yield f"<p>{escape(_facts(report.run, one))}</p>"
    yield from _source(site.user)
    if site.library:
        yield f'<p class="dim">computed by {escape(at(site.library))}</p>'
        if site.user is None:
            yield from _source(site.library)
    if verdict.warning:
        yield f'<p class="bad">Warning: {escape(verdict.warning)}</p>'
    if not figures.elements:
        yield '<p class="dim">No sample with finite numbers.</p>'
        return
    yield '<div class="plots">'
    for name, of in (("A", figures.a), ("B", figures.b)):
        note = f'<p class="dim">{_specials(name, of)}</p>'
        yield f"<div>{exponent_plot(name, of)}{note}</div>"
    yield "</div><h3>Errors in each precision</h3>"
    plot = snr_plot([*figures.errors.values()], report.target_db)
    yield f'<div class="plots"><div>{plot}</div><div>'
    yield from _errors(report, one)
    yield "</div></div>"


def _facts(run: Run, one: CallSiteReport) -> str:
    site, figures, _ = one
    part = share(site.multiply_adds, run.multiply_adds)
    shapes = ", ".join(
        f"{shape(dims)} ({numbered(calls, 'call')})"
        for dims, calls in list(site.shapes.items())[:_SHAPES]
    )
    return (
        f"{site.routine}, {site.dtype}, {numbered(site.calls, 'call')} from"
        f" {site.caller or 'unknown'}; {part} % of the multiply-adds,"
        f" {number(site.seconds)} s. m x n x k: {shapes or '-'}."
        f" {numbered(figures.samples, 'sample')}, {figures.elements} elements of the"
        f" product; condition {ratio(figures.condition_median)} (median),"
        f" {ratio(figures.condition_largest)} (largest)."
    )


def _source(frame: Frame | None) -> Iterable[str]:
    """Return the line and its neighbors if the file can be read."""
    if frame is None:
        return
    lines = linecache.getlines(frame.file)
    if not 1 <= frame.line <= len(lines):
        return
    first = max(1, frame.line - _AROUND)
    last = min(len(lines), frame.line + _AROUND)
    shown = []
    for n in range(first, last + 1):
        text = f'<span class="number">{n:5} </span>{escape(lines[n - 1].rstrip())}'
        shown.append(f'<span class="here">{text}</span>' if n == frame.line else text)
    yield f'<p class="dim">{escape(frame.name)}</p>'
    yield "<pre>" + "\n".join(shown) + "</pre>"


def _specials(name: str, of: Exponents) -> str:
    counts = ((of.zeros, "zeros"), (of.infinities, "Inf"), (of.nans, "NaN"))
    found = ", ".join(f"{n} {what}" for n, what in counts if n)
    return f"{name}: exponents {exponents(of)}, {of.values} values" + (
        f", {found} among them" if found else ""
    )


def _errors(report: Report, one: CallSiteReport) -> Iterable[str]:
    heads = ("SNR dB", "max rel. error", "max of |A||B|", "overflows", "underflows")
    yield '<div class="wide"><table><thead><tr><th>precision</th>'
    yield "".join(f"<th>{head}</th>" for head in heads)
    yield "</tr></thead><tbody>"
    for errors in one.figures.errors.values():
        kind = _kind(errors, report.target_db)
        yield (
            f'<tr><td>{escape(errors.way.name)}</td><td class="{kind}">'
            f"{snr_text(errors.snr)}</td><td>{ratio(errors.largest_relative)}</td>"
            f"<td>{ratio(errors.to_norm)}</td>"
            f"<td>{_two(errors.overflows, errors.result_overflows)}</td>"
            f"<td>{_two(errors.underflows, errors.result_underflows)}</td></tr>"
        )
    yield "</tbody></table></div>"
    yield '<p class="dim">Overflows and underflows: of operands + of results.</p>'


def _two(operands: int, results: int) -> str:
    return f"{operands} + {results}" if results else str(operands)
