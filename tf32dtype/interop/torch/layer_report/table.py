"""The report of layers as text: tables, their columns in words, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from ...._base.text import Painted, Table, counted, number
from ...._programs.report.naming import share, snr_text
from ...._programs.report.table import say
from .verdict import lost, verdicts

if TYPE_CHECKING:
    from .result import LayerReport
    from .rows import LayerRow, ProductErrors

#: Rows of a table; of more, the worst ones are shown.
_MOST = 40
#: The mark of an SNR below the target.
_BELOW = "*"
_COLORS = {
    "kept": "green",
    "below": "yellow",
    "range": "red",
    "outliers": "yellow",
    "unreached": "cyan",
    "partial": "red",
}


def print_report(report: LayerReport, stream: TextIO | None = None) -> None:
    """Write the report to a stream; None: standard output."""
    print(title(report), file=stream)
    print(file=stream)
    for table in tables(report, shown(report)):
        table.print(stream)
        print(file=stream)
    if more := left_out(report):
        print(more, file=stream)
    print(legend(report), file=stream)
    print(file=stream)
    for one in verdicts(report):
        say(one.text, stream, _COLORS[one.kind])


def title(report: LayerReport) -> str:
    """Return the model and the counts."""
    calls = sum(row.calls for row in report.rows)
    adds = sum(row.multiply_adds for row in report.rows)
    layers = len({row.layer for row in report.rows})
    device = f" on {report.device}" if report.device else ""
    return (
        f"{report.model}: {counted(layers, 'layer')},"
        f" {counted(calls, 'matrix multiplication')}, {number(float(adds))}"
        f" multiply-adds, in {', '.join(report.precisions)}{device}"
    )


def legend(report: LayerReport) -> str:
    """Return the meaning of the columns."""
    target = report.target_db
    return (
        f"Target: {target:g} dB; {_BELOW} marks an SNR below it. An SNR is -20 log10 of"
        " the relative error.\n"
        "a | b: with only the first | only the second operand rounded: activations |"
        " weights.\n"
        "Outliers: % of the squared error that is gone if the 0.1 % of the k with the"
        " largest\n"
        "activations (at least one k) are multiplied in float32 apart.\n"
        "Lost: % of the values of the first | second operand that become 0 or Inf, or"
        " are clipped."
    )


def shown(report: LayerReport) -> Sequence[LayerRow]:
    """Return the rows that the tables show, in order: all, or the worst ones."""
    rows = report.rows
    if len(rows) <= _MOST:
        return rows
    worst = sorted(rows, key=_least)[:_MOST]
    return [row for row in rows if any(row is one for one in worst)]


def _least(row: LayerRow) -> float:
    return min((x.snr_db for x in row.errors.values()), default=float("inf"))


def left_out(report: LayerReport) -> str:
    """Return a line on the rows that are not shown; "" if all are."""
    rest = len(report.rows) - len(shown(report))
    if not rest:
        return ""
    return (
        f"The tables show the {_MOST} products with the lowest SNR, not"
        f" {counted(rest, 'more product')}; to_json() has all of them.\n"
    )


def tables(report: LayerReport, rows: Sequence[LayerRow]) -> list[Table]:
    """Return the tables of some rows."""
    names = report.precisions
    made = [
        Table(
            "Products of layers: SNR in dB against float64, both operands rounded",
            ["layer", "calls", "% work", "m x n x k", *names],
            [_facts(row, report) for row in rows],
        ),
        Table(
            "One operand rounded: SNR in dB",
            ["layer", *names],
            [[row.name, *(alone(row.errors[x]) for x in names)] for row in rows],
        ),
        Table(
            "Outliers: % of the squared error",
            ["layer", "largest k", *names],
            [
                [row.name, _first(row), *(outliers_text(row.errors[x]) for x in names)]
                for row in rows
            ],
        ),
    ]
    if any(lost(row, x) for row in rows for x in names):
        made.append(
            Table(
                "Lost: % of the values of operands",
                ["layer", *names],
                [
                    [row.name, *(lost_text(row.errors[x]) for x in names)]
                    for row in rows
                ],
            )
        )
    if report.output_db:
        made.insert(1, outputs_table(report))
    return made


def _facts(row: LayerRow, report: LayerReport) -> list[str]:
    shape = next((str(x) for x in row.shapes), "-")
    more = len(row.shapes) - 1
    return [
        row.name,
        str(row.calls),
        share(row.share, 1),
        f"{shape} +{more}" if more > 0 else shape,
        *(_snr(row.errors[x].snr_db, report.target_db) for x in report.precisions),
    ]


def _snr(snr: float, target_db: float) -> str:
    if snr >= target_db:
        return snr_text(snr)
    return Painted((snr_text(snr) + _BELOW, "red"))


def alone(errors: ProductErrors) -> str:
    """Return the SNR with only the first, and with only the second operand rounded."""
    if errors.first_db is None or errors.second_db is None:
        return "-"
    return f"{snr_text(errors.first_db)} | {snr_text(errors.second_db)}"


def _first(row: LayerRow) -> str:
    return str(row.outliers[0]) if row.outliers else "-"


def outliers_text(errors: ProductErrors) -> str:
    """Return the share of the error that outliers cause, in percent."""
    found = errors.outlier_share
    return "-" if found is None else share(max(found, 0.0), 1)


def lost_text(errors: ProductErrors) -> str:
    """Return the shares of the operands' values that are out of range, in percent."""
    if errors.first_lost is None or errors.second_lost is None:
        return "-"
    return f"{share(errors.first_lost.share, 1)} | {share(errors.second_lost.share, 1)}"


def outputs_table(report: LayerReport) -> Table:
    """Return the table of the model's outputs."""
    names = report.precisions
    rows = [["all layers", "100.0", *_cells(report.output_db, names)]]
    rows += [
        [group.name, share(group.share, 1), *_cells(group.output_db, names)]
        for group in report.groups
    ]
    return Table(
        "Outputs of the model with only this rounded: SNR in dB",
        ["layers", "% work", *names],
        rows,
    )


def _cells(found: dict[str, float], names: Iterable[str]) -> Iterable[str]:
    return (snr_text(found[name]) if name in found else "-" for name in names)
