"""The verdicts of a report: a sentence on each precision, and warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...._base.text import counted
from ...._programs.report.naming import joined, share, snr_text, some

if TYPE_CHECKING:
    from .result import LayerReport
    from .rows import LayerRow

#: Rows and groups that a sentence names.
_NAMED = 3
#: The percentage of the squared errors of all groups from which on one is named.
_LEAST_PERCENT = 5
#: From these shares on, a warning names products: of the squared error that outliers
#: cause, of values that are clipped, and of values that become 0, as some do in FP4.
_MUCH_OF_ERROR, _MUCH_CLIPPED, _MUCH_ZERO = 0.5, 0.01, 0.2

Kind = Literal["kept", "below", "range", "outliers", "unreached", "partial"]


@dataclass(frozen=True)
class Verdict:
    """A sentence, and what it is about."""

    kind: Kind
    text: str


def verdicts(report: LayerReport) -> list[Verdict]:
    """Return the verdicts: one for each precision, then warnings."""
    found = [_of_precision(report, name) for name in report.precisions]
    found += filter(None, (_of_range(report, x) for x in report.precisions))
    found += filter(None, [_of_outliers(report)])
    for (group, precision), error in report.failures.items():
        who = group or "all layers"
        found.append(Verdict("range", f"{precision}: {who} cannot be rounded: {error}"))
    if report.unreached:
        names = [
            f"{x.name} {x.reason} ({counted(x.calls, 'call')})"
            for x in report.unreached
        ]
        found.append(Verdict("unreached", f"Not measured: {some(names, _NAMED)}"))
    if report.is_partial:
        found.append(Verdict("partial", _partial(report)))
    return found


def _partial(report: LayerReport) -> str:
    """Return how much of the report there is after Ctrl-C."""
    runs = sum(len(group.output_db) for group in report.groups)
    runs += len(report.output_db) if len(report.groups) > 1 else 0
    wanted = len(report.precisions) * (len(report.groups) + (len(report.groups) > 1))
    if not report.groups:
        return "Ctrl-C ended the report: it covers the calls before that"
    return f"Ctrl-C ended the report after {runs} of {wanted} runs in a precision"


def _of_precision(report: LayerReport, precision: str) -> Verdict:
    target = report.target_db
    below = [x for x in report.rows if not x.errors[precision].keeps(target)]
    kept = len(report.rows) - len(below)
    count = counted(len(report.rows), "product")
    text = f"{precision}: {kept} of {count} keep{'s' * (kept == 1)} {target:g} dB"
    if below and kept:
        work = sum(row.share for row in report.rows if row not in below)
        text += f", {share(work, 1)} % of the work"
    if precision in report.output_db:
        snr = decibels_of(report.output_db[precision])
        text += f"; with all layers rounded, the output has {snr}"
    if below and kept:
        worst = sorted(below, key=lambda row: row.errors[precision].snr_db)
        names = [f"{x.name} {decibels_of(x.errors[precision].snr_db)}" for x in worst]
        text += f". Below: {some(names, _NAMED, ', ')}"
    if causes := _causes(report, precision):
        text += f". Most of the output's error comes from {joined(causes)}"
    return Verdict("below" if below else "kept", text + ".")


def _causes(report: LayerReport, precision: str) -> list[str]:
    """Return the groups that cause most of the output's squared error."""
    noise = {
        group.name: 10 ** (-group.output_db[precision] / 10)
        for group in report.groups
        if precision in group.output_db
    }
    whole = sum(noise.values())
    if len(noise) < 2 or not 0 < whole < float("inf"):
        return []
    worst = sorted(noise, key=lambda name: -noise[name])[:_NAMED]
    percents = {name: 100 * noise[name] / whole for name in worst}
    return [
        f"{name} ({percent:.0f} %)"
        for name, percent in percents.items()
        if percent >= _LEAST_PERCENT
    ]


def _of_range(report: LayerReport, precision: str) -> Verdict | None:
    much = [(lost(x, precision), x) for x in report.rows if _loses(x, precision)]
    if not much:
        return None
    much.sort(key=lambda pair: -pair[0])
    names = [f"{row.name} {share(x, 1)} %" for x, row in much]
    return Verdict(
        "range",
        f"{precision}: values out of range in {counted(len(much), 'product')}:"
        f" {some(names, _NAMED, ', ')} of an operand become 0 or Inf, or are clipped.",
    )


def _loses(row: LayerRow, precision: str) -> bool:
    """Return whether an operand loses more values than rounding usually costs."""
    errors = row.errors[precision]
    found = [x for x in (errors.first_lost, errors.second_lost) if x and x.values]
    return any(
        x.infinities
        or x.clipped / x.values >= _MUCH_CLIPPED
        or x.zeros / x.values >= _MUCH_ZERO
        for x in found
    )


def _of_outliers(report: LayerReport) -> Verdict | None:
    """Return a warning of products whose error is mostly that of outliers."""
    found = []
    for row in report.rows:
        shares = [x.outlier_share or 0.0 for x in row.errors.values()]
        if shares and min(shares) >= _MUCH_OF_ERROR:
            found.append((min(shares), row))
    if not found:
        return None
    found.sort(key=lambda pair: -pair[0])
    names = [
        f"{row.name} (k = {', '.join(map(str, row.outliers))}; {share(x, 1)} % or more)"
        for x, row in found
    ]
    return Verdict(
        "outliers",
        f"Outliers cause most of the error in {counted(len(found), 'product')}:"
        f" {some(names, _NAMED)}.",
    )


def lost(row: LayerRow, precision: str) -> float:
    """Return the share of an operand's values that are out of range, the larger one."""
    errors = row.errors[precision]
    shares = [x.share for x in (errors.first_lost, errors.second_lost) if x]
    return max(shares, default=0.0)


def decibels_of(snr: float) -> str:
    """Return an SNR with its unit: "29.1 dB"; "exact" or "none"."""
    text = snr_text(snr)
    return f"{text} dB" if text[-1].isdigit() else text
