"""One element of a product in aligned sums, step by step, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .explanation_words import (
    IN_FULL,
    count,
    decimal,
    hexadecimal,
    ranges,
    row,
    shown,
    some,
    span,
    units,
)
from .models import VERIFIED, Aligned
from .steps import Addition, Exact, Group, Term

Step = Group | Addition


def header(model: Aligned, k: int, promote_every: int | None) -> Iterator[str]:
    """Yield lines that describe how the model adds products."""
    yield model.name
    yield f"  MMA group    {model.depth} products (K) and the accumulator in one sum"
    floor = "" if model.floor is None else f", minimum exponent {model.floor}"
    yield f"  alignment    to the largest exponent{floor}"
    yield f"  kept         {model.fraction} bits (F) below it; the rest is truncated"
    nearest = model.rounding == "ties_to_even"
    direction = "to nearest, ties to even," if nearest else "toward zero"
    yield f"  sum          rounded {direction} to {model.kept} fraction bits"
    if model.cut_first is not None:
        yield f"               truncated to {model.cut_first} fraction bits before that"
    zeros = -k % model.instruction_depth
    filled = f"; the last one is filled up with {count(zeros, 'zero')}" * bool(zeros)
    yield f"  instruction  {model.instruction_depth} k{filled}"
    if model.emulated:
        yield "               two groups of float16, of which the first starts at 0;"
        yield "               their sum t is added to the accumulator, to nearest, ties"
        yield "               to even"
    if promote_every is not None:
        yield f"  promotion    sums of {promote_every} k, each from 0, added in float32"
    yield f"  verified     {model.verified}: {VERIFIED[model.verified]}"


def told(
    model: Aligned, found: Sequence[Step], a: Sequence[float], b: Sequence[float]
) -> Iterator[str]:
    """Yield the steps: in full if there are few groups, else a line for each."""
    if sum(isinstance(step, Group) for step in found) > IN_FULL:
        yield from _in_lines(model, found)
        return
    for number, step in enumerate(found):
        yield from [""] * (number > 0)
        yield from _in_full(model, step, a, b)


# -- steps in full ---------------------------------------------------------------------


def _in_full(
    model: Aligned, step: Step, a: Sequence[float], b: Sequence[float]
) -> Iterator[str]:
    if isinstance(step, Addition):
        name = "sum" if step.promotes else "t"
        yield f"k {ranges(step.ks)}: {name} is added to the accumulator"
        left, right = (decimal(model, x) for x in (step.accumulator, step.sum))
        yield f"  {left} + {right}"
    elif step.special:
        yield f"{_title(step)}: Inf or NaN"
        yield from (f"  {reason}" for reason in step.special)
    else:
        yield from _terms(step, a, b)
    if math.isfinite(step.result) or step.rounded.overflow:
        yield f"  {_rounding(model, step)}"
    yield f"  accumulator {shown(model, step.result)}"


def _terms(group: Group, a: Sequence[float], b: Sequence[float]) -> Iterator[str]:
    c, *products = group.terms
    there = [term for term in products if term.exact.magnitude]
    if not there and not c.exact.magnitude:
        yield f"{_title(group)}: all terms are zero"
        return
    yield _title(group)
    yield f"  largest exponent {group.greatest}, of {some(group.sources, 4)}"
    yield row("k", "a", "b", "a * b", "exactly", f"* 2^{group.unit}", "truncated")
    for term in there:
        assert term.k is not None
        x, y = a[term.k], b[term.k]
        yield row(str(term.k), f"{x:.5g}", f"{y:.5g}", *_columns(term))
    yield row("c", "", "", *_columns(c))
    total = f"{_total(group).value:.5g}"
    yield row("sum", "", "", total, "", units(group.total))
    if len(there) < len(products):
        zeros = [t.k for t in products if t.k is not None and not t.exact.magnitude]
        yield f"  zero: k {ranges(zeros)}"


def _columns(term: Term) -> tuple[str, ...]:
    if not term.exact.magnitude:
        return ("0",)
    cut = hexadecimal(term.cut) if term.cut.magnitude else ""
    exactly = hexadecimal(term.exact, term.exponent)
    return f"{term.exact.value:.5g}", exactly, units(term.kept), cut


def _rounding(model: Aligned, step: Step) -> str:
    rounded = step.rounded
    nearest = isinstance(step, Addition) or model.rounding == "ties_to_even"
    direction = "to nearest" if nearest else "toward zero"
    if rounded.tie:
        direction += ", a tie to even"
    if rounded.overflow:
        what = "out of range"
    elif rounded.off.magnitude:
        verb = "added" if rounded.up else "truncated"
        what = f"{hexadecimal(rounded.off)} is {verb}"
    else:
        what = "exact"
    return f"rounded {direction}: {what}"


# -- a line for each step --------------------------------------------------------------

_LINE = (9, 4, 6, 4, 15, 16)


def _in_lines(model: Aligned, found: Sequence[Step]) -> Iterator[str]:
    yield _line("k", "exp", "term", "lost", "sum", "rounding") + "  accumulator"
    for step in found:
        yield f"{_cells(step)}  {shown(model, step.result)}"
    yield ""
    yield "exp: the largest exponent; term: the term that has it; lost: number of"
    yield "truncated terms; rounding: the accumulator minus the sum"
    if any(isinstance(step, Addition) for step in found):
        yield "+: an addition to the accumulator, to nearest, ties to even"
    yield "To see all terms, explain the k of one instruction, and give as c the"
    yield "accumulator before it"


def _cells(step: Step) -> str:
    ks = span(step.ks)
    off = step.rounded.off
    change = off._replace(negative=off.negative != (not step.rounded.up))
    rounding = hexadecimal(change) if off.magnitude else ""
    if isinstance(step, Addition):
        total = step.sum + step.accumulator
        return _line(f"+{ks}", "", "", "", f"{total:.9g}", rounding)
    if step.special:
        return f"{ks:>9} {some(step.special, 1):<49}"
    return _line(
        ks,
        "" if step.greatest is None else str(step.greatest),
        next(iter(step.sources), "").removeprefix("the "),
        str(sum(term.cut.magnitude != 0 for term in step.terms) or ""),
        f"{_total(step).value:.9g}",
        rounding,
    )


def _line(*cells: str) -> str:
    return " ".join(cell.rjust(n) for cell, n in zip(cells, _LINE, strict=True))


def _title(group: Group) -> str:
    return f"k {ranges(group.ks)}" if group.ks else "no k"


def _total(group: Group) -> Exact:
    return Exact(group.total < 0, abs(group.total), group.unit)
