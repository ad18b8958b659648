"""What to do: the last lines of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .._text import decibels, number
from .figures import Errors, Figures
from .naming import exponents, numbered, share, some, where
from .places import Elsewhere, Place, Run
from .verdict import LIKE_FLOAT32, Verdict, acceptable, tolerance

_MOST = 4  # places that a line names

Kind = Literal[
    "bears", "needs", "float64", "unmeasured", "device", "range", "digits", "elsewhere"
]


class PlaceReport(NamedTuple):
    """A place with its figures and verdict."""

    place: Place
    figures: Figures
    verdict: Verdict


@dataclass(frozen=True)
class Advice:
    """A line that says what to do."""

    kind: Kind
    text: str


def advise(
    run: Run, places: Sequence[PlaceReport], target_db: float
) -> tuple[Advice, ...]:
    """What to do with a program.

    Parameters
    ----------
    run : Run
        The program's run.
    places : sequence of PlaceReport
        Its places, the heaviest first.
    target_db : float
        The SNR that is asked for.
    """
    if not places:
        text = "No product was reached: nothing can be said about this program."
        return (Advice("elsewhere", text), *_elsewhere(run.elsewhere))
    return (
        *_left_out(run),
        *_verdicts(run, places),
        *_ranges(places),
        *_cancellation(places),
        *_devices(places, target_db),
        *_elsewhere(run.elsewhere),
    )


def _left_out(run: Run) -> Iterable[Advice]:
    if run.left_out:
        products = numbered(run.left_out, "product")
        text = (
            f"{products} had no room in memory, and were not measured: the figures are"
            " those of the others"
        )
        yield Advice("unmeasured", text)
    if run.without_place:
        products = numbered(run.without_place, "product")
        text = f"{products} of other places were made: there are too many to tell"
        yield Advice("unmeasured", text)


def rule(target_db: float) -> str:
    """What the verdicts mean."""
    return (
        f"A place bears a precision if the SNR reaches {target_db:g} dB against the"
        " float64 product of the same operands (--target-db), and no error is greater"
        f" than {number(tolerance(target_db))} of |A||B|, the sum of the magnitudes of"
        " the same row's and column's products, those of numbers that became subnormal"
        " or zero included. The verdict names the cheapest: the one"
        " with the fewest bits to multiply, products of parts counted. As good as"
        f" float32 is what has at most {LIKE_FLOAT32:g} times its errors, by both"
        " figures. Digits cancel where the median of the condition |A||B| / |AB| is"
        " beyond sqrt(k), which random signs give: its log10 is how many."
    )


def _verdicts(run: Run, places: Sequence[PlaceReport]) -> Iterable[Advice]:
    """Which places bear what, what takes most of the multiply-adds first."""
    groups: dict[str, list[PlaceReport]] = {}
    for one in places:
        groups.setdefault(one.verdict.text, []).append(one)
    for text, those in groups.items():
        part = share(sum(x.place.multiply_adds for x in those), run.multiply_adds)
        line = some([_figure(x) for x in those], _MOST)
        verb = _plural(text) if len(those) > 1 else text
        has = f"{numbered(len(those), 'place')} ({part} % of the multiply-adds)"
        yield Advice(those[0].verdict.kind, f"{has} {verb}: {line}")


def _plural(text: str) -> str:
    first, _, rest = text.partition(" ")
    return f"{ {'bears': 'bear', 'needs': 'need', 'not': 'not'}[first] } {rest}"


def _figure(one: PlaceReport) -> str:
    """A place, with the figures that its verdict stands on."""
    verdict, errors = one.verdict, one.figures.errors
    # What is not enough, unless one product is.
    cheap = [] if verdict.kind == "bears" else ["bf16"]
    good = [verdict.way or "f32"]
    shown = [name for name in dict.fromkeys(cheap + good) if name in errors]
    figures = [f"{name} {decibels(errors[name].snr)} dB" for name in shown]
    like = verdict.like_float32 if verdict.kind in ("bears", "needs") else None
    if like and like not in (verdict.way, "f32"):
        figures.append(f"{like} as good as float32")
    if verdict.kind == "unmeasured":
        figures = ["no finite sample"]
    return f"{where(one.place)} ({', '.join(figures)})"


def _ranges(places: Sequence[PlaceReport]) -> Iterable[Advice]:
    names = dict.fromkeys(name for x in places for name in x.verdict.ranges)
    for name in names:
        those = [x for x in places if name in x.verdict.ranges]
        line = some([_range_figure(x, x.figures.errors[name]) for x in those], _MOST)
        yield Advice("range", f"Range is lost in {name}: {line}")


def _range_figure(one: PlaceReport, errors: Errors) -> str:
    figures = one.figures
    spans = f"exponents of A {exponents(figures.a)}, of B {exponents(figures.b)}"
    counts = [
        (errors.overflows, "overflow", figures.numbers),
        (errors.underflows, "underflow", figures.numbers),
        (errors.result_overflows, "results overflow", figures.elements),
        (errors.result_underflows, "results underflow", figures.elements),
    ]
    lost = [f"{share(n, of)} % {what}" for n, what, of in counts if n]
    return f"{where(one.place)} ({spans}; {', '.join(lost)})"


def _cancellation(places: Sequence[PlaceReport]) -> Iterable[Advice]:
    those = [x for x in places if x.verdict.cancels]
    if not those:
        return
    names = [
        f"{where(x.place)} ({x.verdict.digits:.1f} digits, condition"
        f" {number(x.figures.condition_median)})"
        for x in those
    ]
    yield Advice("digits", f"Digits are lost by cancellation: {some(names, _MOST)}")


def _devices(places: Sequence[PlaceReport], target_db: float) -> Iterable[Advice]:
    """Where a device's sums are not good enough, though td.matmul's are."""
    worse: dict[str, list[str]] = {}
    for one in places:
        for name, errors in one.figures.errors.items():
            here = one.figures.errors.get(name.partition("@")[0])
            if errors.way.unit is None or here is None:
                continue
            bad = acceptable(here, target_db) and not acceptable(errors, target_db)
            if bad:
                snrs = f"{decibels(errors.snr)} dB, not {decibels(here.snr)}"
                worse.setdefault(name, []).append(f"{where(one.place)} ({snrs})")
    for name, those in worse.items():
        yield Advice(
            "device", f"The sums of {name} are not enough: {some(those, _MOST)}"
        )


def _elsewhere(found: Sequence[Elsewhere]) -> Iterable[Advice]:
    for one in found:
        time = "" if one.seconds is None else f", {number(one.seconds)} s"
        cure = f": {one.advice}" if one.advice else ""
        what = f"{one.kind} {one.name}".strip()
        calls = numbered(one.calls, "call")
        yield Advice("elsewhere", f"Not reached: {what} ({calls}{time}){cure}")
