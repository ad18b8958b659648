"""The report of layers as one HTML page that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import torch

from ...._base.text import Table, counted, number
from ...._base.version import __version__
from ...._programs.report.html import text_table, whole_page
from ...._programs.report.naming import share, snr_text
from .picture import picture
from .table import alone, lost_text, outliers_text, outputs_table, tables, title
from .verdict import verdicts

if TYPE_CHECKING:
    from .result import LayerReport
    from .rows import LayerRow

_COLORS = {
    "kept": "program",
    "below": "insufficient",
    "range": "largest_error",
    "outliers": "insufficient",
    "unreached": "",
    "partial": "largest_error",
}
_RULE = (
    "An SNR is -20 log10 of the relative error of a product, against the float64"
    " product of the operands before rounding; a precision keeps the target if its SNR"
    " reaches it. Outliers: the share of the squared error that is gone if the 0.1 % of"
    " the k (at least one) with the largest activations are multiplied in float32"
    " apart. Lost: the share of an operand's values that become 0 or Inf, or that are"
    " clipped to the largest value of their block."
)


def to_html(report: LayerReport) -> str:
    """Return the page."""
    return whole_page(
        f"{report.model}: layers in other precisions",
        [
            f"<h1>{escape(report.model)}</h1>",
            f"<p>{escape(title(report))}</p>",
            f'<p class="dim">tf32dtype {__version__}, PyTorch'
            f" {escape(torch.__version__)}; measured on samples of rows and"
            " columns</p>",
            "<h2>Results</h2>",
            '<ul class="advice">',
            *(
                f'<li class="{_COLORS[x.kind]}">{escape(x.text)}</li>'
                for x in verdicts(report)
            ),
            "</ul>",
            f'<p class="dim">Target: {report.target_db:g} dB. {escape(_RULE)}</p>',
            "<h2>Layers</h2>",
            _scrolling("Picture of the layers", [picture(report)]),
            *_products(report),
            *_outputs(report),
            *_sections(report),
        ],
    )


def to_fragment(report: LayerReport) -> str:
    """Return the tables and the verdicts for a notebook's page."""
    parts = [f"<p>{escape(title(report))}</p>"]
    for table in tables(report, report.rows)[:2]:
        parts.append(f"<p>{escape(table.title)}</p>")
        parts += text_table(table, 'style="overflow-x: auto"', "<th>")
    found = [f"<li>{escape(x.text)}</li>" for x in verdicts(report)]
    return "\n".join([*parts, "<ul>", *found, "</ul>"])


def _scrolling(label: str, parts: Iterable[str]) -> str:
    """Return a part that scrolls sideways, also by keys."""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">'
        + "\n".join(parts)
        + "</div>"
    )


def _products(report: LayerReport) -> Iterable[str]:
    heads = ["layer", *report.precisions, "% work", "calls"]
    yield "<h3>Products: SNR in dB, both operands rounded</h3>"
    rows = []
    for i, row in enumerate(report.rows):
        percent = 100 * row.share
        cells = [
            f'<td class="call-site"><a href="#p{i}">{escape(row.name)}</a></td>',
            *(_snr(row.errors[x].snr_db, report) for x in report.precisions),
            f'<td data-value="{percent:.4f}"><span class="share">'
            f'<i style="width:{percent:.1f}%"></i></span>{percent:.1f}</td>',
            f"<td>{row.calls}</td>",
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    yield _scrolling("Table of the products", _table(heads, rows))


def _table(heads: Iterable[str], rows: Iterable[str]) -> Iterable[str]:
    yield "<table><thead><tr>"
    yield "".join(f'<th scope="col" data-sort="">{escape(x)}</th>' for x in heads)
    yield "</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table>"


def _snr(snr: float, report: LayerReport) -> str:
    is_good = snr >= report.target_db
    value = min(max(snr, -1e308), 1e308)
    return (
        f'<td class="{"good" if is_good else "bad"}" data-value="{value:g}">'
        f"{snr_text(snr)}{'' if is_good else '*'}</td>"
    )


def _outputs(report: LayerReport) -> Iterable[str]:
    if not report.output_db:
        return
    table: Table = outputs_table(report)
    yield f"<h3>{escape(table.title)}</h3>"
    rows = (
        f'<tr><td class="call-site">{escape(first)}</td>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in table.rows
    )
    yield _scrolling("Table of the outputs", _table(table.header, rows))


def _sections(report: LayerReport) -> Iterable[str]:
    yield "<h2>Each product</h2>"
    for i, row in enumerate(report.rows):
        below = row.is_below(report.target_db)
        verdict = f"below in {', '.join(below)}" if below else "keeps the target"
        yield f'<details id="p{i}"><summary>'
        yield f'<span class="verdict {"fair" if below else "good"}">{verdict}</span>'
        yield f"<code>{escape(row.name)}</code></summary>"
        yield from _section(row, report)
        yield "</details>"


def _section(row: LayerRow, report: LayerReport) -> Iterable[str]:
    shapes = ", ".join(
        f"{shape} ({counted(calls, 'call')})" for shape, calls in row.shapes.items()
    )
    k = ", ".join(map(str, row.outliers)) or "-"
    facts = (
        f"{row.first} x {row.second}, {' x '.join(row.dtypes)};"
        f" {counted(row.calls, 'call')}, {number(float(row.multiply_adds))}"
        f" multiply-adds, {share(row.share, 1)} % of the work. m x n x k: {shapes}."
        f" {counted(row.samples, 'call')} measured, {row.elements} elements of the"
        f" product. The largest {row.first} are at k = {k}."
    )
    yield f"<p>{escape(facts)}</p>"
    heads = [
        "precision",
        "SNR dB",
        "only first | second",
        "% of outliers",
        "% lost",
    ]
    rows = []
    for name in report.precisions:
        errors = row.errors[name]
        rows.append(
            f"<tr><td>{escape(name)}</td>{_snr(errors.snr_db, report)}"
            f"<td>{alone(errors)}</td><td>{outliers_text(errors)}</td>"
            f"<td>{lost_text(errors)}</td></tr>"
        )
    yield _scrolling(f"Errors of {row.name}", _table(heads, rows))
