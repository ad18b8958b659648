"""Advice: the last lines of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..._base.text import number
from ..._base.wording import page
from .call_sites import CallSite, NotReached, Run
from .figures import Errors, Figures
from .naming import (
    MULTIPLICATION,
    at,
    exponents,
    numbered,
    ratio,
    share,
    snr_text,
    some,
    where,
)
from .patterns import expansion_line, is_recurrence
from .verdict import Verdict, acceptable, later_bits

_MOST = 4  # call sites that a line names

Kind = Literal[
    "program",
    "program_changes",
    "program_unknown",
    "line_changes",
    "pattern",
    "sufficient",
    "insufficient",
    "float64",
    "not_measured",
    "device",
    "out_of_range",
    "absorbed",
    "canceled_digits",
    "largest_error",
    "not_reached",
]


class CallSiteReport(NamedTuple):
    """A call site with its figures and verdict."""

    call_site: CallSite
    figures: Figures
    verdict: Verdict


@dataclass(frozen=True)
class Advice:
    """One line of advice."""

    kind: Kind
    text: str


def advise(
    run: Run,
    sites: Sequence[CallSiteReport],
    target_db: float,
    program: Advice | None = None,
) -> tuple[Advice, ...]:
    """Return the advice for a program.

    Parameters
    ----------
    run : Run
        The program's run.
    sites : sequence of CallSiteReport
        Its call sites, the heaviest first.
    target_db : float
        The required SNR.
    program : Advice, optional
        The line of a trial of the program.
    """
    if not sites:
        text = (
            "No matrix multiplication was measured in this program. Use --arithmetic"
            " bf16, or td.report(arithmetic=...), to measure NumPy's other operations"
        )
        return (Advice("not_reached", text), *_not_reached(run.not_reached))
    was_tried = program is not None and program.kind != "program_unknown"
    return (
        *_left_out(run),
        *([program] if program else []),
        *_verdicts(run, sites, was_tried),
        *_patterns(sites, program),
        *_ranges(sites),
        *_cancellation(sites),
        *_later_cancellation(sites),
        *_devices(sites, target_db),
        *_not_reached(run.not_reached),
    )


def _left_out(run: Run) -> Iterable[Advice]:
    if run.left_out:
        text = (
            f"{numbered(run.left_out, MULTIPLICATION)} not measured: the memory for"
            " samples was full"
        )
        yield Advice("not_measured", text)
    if run.without_call_site:
        text = (
            f"{numbered(run.without_call_site, MULTIPLICATION)} not measured: the"
            " program has too many call sites"
        )
        yield Advice("not_measured", text)


#: The first words of a line of advice, by the kind of the verdict.
_VERBS = {
    "sufficient": "is enough",
    "insufficient": "is needed",
    "float64": "is needed",
}


#: The text after a verdict if the program was not tried.
_ALONE = "; each product was judged separately, `tf32dtype tune` judges the program"


def _verdicts(
    run: Run, sites: Sequence[CallSiteReport], was_tried: bool
) -> Iterable[Advice]:
    """Group call sites by verdict, the most multiply-adds first."""
    groups: dict[str, list[CallSiteReport]] = {}
    for one in sites:
        groups.setdefault(one.verdict.text, []).append(one)
    for those in groups.values():
        verdict = those[0].verdict
        part = share(sum(x.call_site.multiply_adds for x in those), run.multiply_adds)
        line = some([_figure(x) for x in those], _MOST)
        has = f"{numbered(len(those), 'call site')} ({part} % of the multiply-adds)"
        first = f"Not measured: {has}"
        if verdict.kind in _VERBS:
            first = (
                f"The product alone: {verdict.needed} {_VERBS[verdict.kind]} at {has}"
            )
            if verdict.kind != "float64" and not was_tried:
                line, was_tried = line + _ALONE, True  # said once
        yield Advice(verdict.kind, f"{first}: {line}")


def _figure(one: CallSiteReport) -> str:
    """Return a call site, with the measurements that its verdict rests on."""
    verdict, errors = one.verdict, one.figures.errors
    cheap = [] if verdict.kind == "sufficient" else ["bf16"]  # shown as not enough
    good = [verdict.way or "f32"]
    shown = [name for name in dict.fromkeys(cheap + good) if name in errors]
    figures = [f"{name} {_snr(errors[name])}" for name in shown]
    judged = verdict.kind in ("sufficient", "insufficient")
    like = verdict.like_float32 if judged else None
    if like and like not in (verdict.way, "f32"):
        figures.append(f"{like} is as good as float32")
    if verdict.kind == "not_measured":
        figures = ["no finite sample"]
    return f"{where(one.call_site)} ({', '.join(figures)})"


def _snr(errors: Errors) -> str:
    if errors.snr == -math.inf:
        return "all digits wrong"
    return "exact" if errors.snr == math.inf else f"{snr_text(errors.snr)} dB"


def _patterns(
    sites: Sequence[CallSiteReport], program: Advice | None
) -> Iterable[Advice]:
    """Name call sites whose source has a pattern that loses digits, and the remedy."""
    keeps = program is not None and program.kind == "program"
    grows = program is not None and program.kind == "program_changes"
    expanded, recurrent = [], []
    for one in sites:
        frame = one.call_site.user
        is_enough = one.verdict.kind == "sufficient"
        if frame is None or not (one.verdict.later_sum or (is_enough and not keeps)):
            continue
        line = expansion_line(frame.file, frame.line)
        if line is not None:
            expanded.append(f"{where(one.call_site)} (in line {line})")
        elif grows and is_recurrence(frame.file, frame.line):
            recurrent.append(where(one.call_site))
    for names, first, remedy in (
        (
            expanded,
            "Twice the product is subtracted",
            "In squared distances, digits cancel there if points are far from the"
            " origin. Subtract the mean from both operands first, or use bf16x3",
        ),
        (
            recurrent,
            "The product is an operand of the next one",
            "Errors grow with the steps. Use bf16x3 for this line, or take fewer steps",
        ),
    ):
        if names:
            those = some([*dict.fromkeys(names)], _MOST)
            text = f"{first}: {those}. {remedy}: see {page('how_to/report')}"
            yield Advice("pattern", text)


def _ranges(sites: Sequence[CallSiteReport]) -> Iterable[Advice]:
    names = dict.fromkeys(name for x in sites for name in x.verdict.ranges)
    for name in names:
        those = [x for x in sites if name in x.verdict.ranges]
        line = some([_range_figure(x, x.figures.errors[name]) for x in those], _MOST)
        yield Advice("out_of_range", f"Out of range in {name}: {line}")


def _range_figure(one: CallSiteReport, errors: Errors) -> str:
    figures = one.figures
    spans = f"exponents of A {exponents(figures.a)}, of B {exponents(figures.b)}"
    counts = [
        (errors.overflows, "overflow", figures.values),
        (errors.underflows, "underflow", figures.values),
        (errors.result_overflows, "results overflow", figures.elements),
        (errors.result_underflows, "results underflow", figures.elements),
    ]
    lost = [f"{share(n, of)} % {what}" for n, what, of in counts if n]
    return f"{where(one.call_site)} ({spans}; {', '.join(lost)})"


def _cancellation(sites: Sequence[CallSiteReport]) -> Iterable[Advice]:
    those = [x for x in sites if x.verdict.cancels]
    if not those:
        return
    names = [
        f"{where(x.call_site)} ({x.verdict.digits}, condition"
        f" {ratio(x.figures.condition_median)})"
        for x in those
    ]
    yield Advice("canceled_digits", f"Canceled digits: {some(names, _MOST)}")


def _later_cancellation(sites: Sequence[CallSiteReport]) -> Iterable[Advice]:
    names = []
    for one in sites:
        if later := one.verdict.later_sum:
            name = "bf16" if "bf16" in one.figures.errors else one.verdict.way or "f32"
            at_line = f"{at(later.frame)} " if later.frame else ""
            names.append(
                f"{where(one.call_site)} ({name} has {_snr(one.figures.errors[name])},"
                f" but {later_bits(later)} of it cancel in {at_line}({later.function}))"
            )
    if names:
        yield Advice("canceled_digits", f"Canceled later: {some(names, _MOST)}")


def _devices(sites: Sequence[CallSiteReport], target_db: float) -> Iterable[Advice]:
    """Name call sites where only the sums of a device are not good enough."""
    worse: dict[str, list[str]] = {}
    for one in sites:
        for name, errors in one.figures.errors.items():
            here = one.figures.errors.get(name.partition("@")[0])
            if errors.way.unit is None or here is None:
                continue
            bad = acceptable(here, target_db) and not acceptable(errors, target_db)
            if bad:
                snrs = f"{_snr(errors)}, not {_snr(here)}"
                worse.setdefault(name, []).append(f"{where(one.call_site)} ({snrs})")
    for name, those in worse.items():
        yield Advice(
            "device", f"{name} is not enough because of its sums: {some(those, _MOST)}"
        )


def _not_reached(found: Sequence[NotReached]) -> Iterable[Advice]:
    for one in found:
        time = "" if one.seconds is None else f", {number(one.seconds)} s"
        remedy = f". {one.remedy}" if one.remedy else ""
        what = f"{one.kind} {one.name}".strip()
        calls = numbered(one.calls, "call")
        yield Advice("not_reached", f"Not reached: {what} ({calls}{time}){remedy}")
