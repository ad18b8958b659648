"""One element of a product on a unit whose rounding differs from NVIDIA's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .explanation_words import (
    IN_FULL,
    count,
    hexadecimal,
    ranges,
    row,
    shown,
    some,
    span,
    units,
)
from .models import VERIFIED
from .rounded import Rounded as Model
from .steps import (
    FAR,
    FRACTION,
    KEPT_DOWN,
    SUM_FRACTION,
    Addition,
    Exact,
    Rounded,
    Sum,
    Term,
    TwoStages,
)

Step = Sum | TwoStages | Addition

_NEAREST = "to nearest, ties to even"
_ZEROS = {"+0": "+0", "zero of their sign": "a zero of their sign"}
#: The most characters of an exact number; a longer one is shown as a decimal.
_LONGEST = 16


def header(model: Model, k: int, promote_every: int | None) -> Iterator[str]:
    """Yield lines that describe how the model adds products."""
    yield model.name
    yield from {
        "fused": _fused_header,
        "stepwise": _stepwise_header,
        "two stages": _two_stages_header,
    }[model.arithmetic](model)
    if model.flushed != "kept":
        yield f"  subnormal    operands and accumulators become {_ZEROS[model.flushed]}"
    if model.flushes_results:
        label = "" if model.flushed != "kept" else "subnormal"
        yield f"  {label:<11}  results become a zero of their sign"
    zeros = -k % model.instruction_depth
    filled = f"; the last one is filled up with {count(zeros, 'zero')}" * bool(zeros)
    yield f"  instruction  {model.instruction_depth} k{filled}"
    if promote_every is not None:
        yield f"  promotion    sums of {promote_every} k, each from 0, added in float32"
    yield f"  verified     {model.verified}: {VERIFIED[model.verified]}"


def _fused_header(model: Model) -> Iterator[str]:
    onto = "the previous sum" if model.lanes else "the accumulator"
    if model.depth == 1:
        yield f"  group        one product and {onto}: a fused multiply-add"
    else:
        what = f"{model.depth} products (K)"
        yield f"  group        {what} and {onto} in one exact sum"
    yield f"  sum          rounded {_NEAREST}"
    if model.odd_first:
        yield "  order        odd k before even k, in each pair of k"
    if model.lanes == 1:
        yield f"  chain        one per instruction, starts at {model.start:g};"
        yield f"               its sum t is added to the accumulator, {_NEAREST}"
    elif model.lanes:
        yield f"  chains       t0 of even k and t1 of odd k start at {model.start:g};"
        yield f"               their sum t is added to the accumulator, {_NEAREST}"


def _stepwise_header(model: Model) -> Iterator[str]:
    how = "to odd" if model.rounding == "to_odd" else _NEAREST
    products = f"{model.depth} products (K)"
    yield f"  group        {products} and their sum s; neighbors are added first"
    yield "  sum          s plus the accumulator"
    yield f"  rounding     every product and every sum, {how}"


def _two_stages_header(model: Model) -> Iterator[str]:
    yield f"  group        {model.depth} products (K), then the accumulator"
    yield f"  products     truncated to {FRACTION} bits below their largest exponent"
    if model.lanes > 1:
        yield "               even and odd k separately; both sums are aligned to the"
        yield "               larger exponent, rounded downward, and added"
    yield "  sum          sum and accumulator are aligned to the larger exponent and"
    bits = f"{SUM_FRACTION} and {FRACTION} bits"
    yield f"               rounded downward; {bits} below it are kept"
    if model.lanes > 1:
        yield f"               (an accumulator {FAR + 1} or more below it is dropped)"
    yield f"  rounding     downward to {KEPT_DOWN} fraction bits, then {_NEAREST}"


# -- steps -----------------------------------------------------------------------------


def told(
    model: Model, found: Sequence[Step], a: Sequence[float], b: Sequence[float]
) -> Iterator[str]:
    """Yield the steps: in full if there are few groups, else a line for each."""
    groups = sum(isinstance(x, TwoStages) or not (_is_inner(x)) for x in found)
    if groups > IN_FULL or (model.arithmetic == "fused" and model.depth == 1):
        yield from _in_lines(model, found, len(a))
        return
    first = True
    inner: list[Sum] = []
    for step in found:
        if isinstance(step, Sum) and step.inner:
            inner.append(step)
            continue
        if _only_fills(step, len(a)):
            inner = []
            continue
        if not first:
            yield ""
        first = False
        if isinstance(step, TwoStages):
            yield from _two_stages(model, step, a, b)
        elif isinstance(step, Addition):
            yield f"k {ranges(step.ks)}: the sum is added to the accumulator"
            yield f"  {step.accumulator:.9g} + {step.sum:.9g}"
            yield f"  {_how(model, step.rounded, nearest=True)}"
        else:
            yield from _sum(model, step, inner, a, b)
        inner = []
        yield f"  accumulator {shown(model, step.result)}"


def _is_inner(step: Step) -> bool:
    return isinstance(step, Sum) and step.inner


def _sum(
    model: Model,
    step: Sum,
    inner: Sequence[Sum],
    a: Sequence[float],
    b: Sequence[float],
) -> Iterator[str]:
    """Yield a group whose sum is exact, or one of steps."""
    there = [k for k in step.ks if k < len(a)]
    if step.name == "t":
        yield f"k {ranges(sorted(there))}: t is added to the accumulator"
    elif step.special and not inner:
        yield f"k {ranges(there)}: Inf or NaN"
        yield from (f"  {reason}" for reason in step.special)
        return
    else:
        yield f"k {ranges(there)}" if there else "zeros after the last k"
    if inner:
        parts = [(x.name, x) for x in inner if min(x.ks) < len(a)]
        parts.append(("c + s", step))
        width = max(len(name) for name, _ in parts)
        for name, part in parts:
            yield f"  {name:<{width}}  {_line_of(part)}".rstrip()
        return
    if step.name:
        yield f"  {step.name:<8}  {_line_of(step)}".rstrip()
        return
    yield row("k", "a", "b", "a * b", "exactly")
    zeros = []
    for k in there:
        if a[k] == 0 or b[k] == 0:
            zeros.append(k)
            continue
        product = Exact.product(a[k], b[k])
        cells = f"{product.value:.5g}", _short(product)
        yield row(str(k), f"{a[k]:.5g}", f"{b[k]:.5g}", *cells)
    c = step.accumulator
    exactly = (_short(Exact.product(c)),) if c else ()
    yield row("c", "", "", f"{c:.5g}", *exactly)
    yield row("sum", "", "", f"{step.total.value:.5g}", *_hexes(step.total))
    if zeros:
        yield f"  zero: k {ranges(zeros)}"
    yield f"  {_how(model, step.rounded)}"


def _line_of(step: Sum) -> str:
    """Return the exact value of a sum, and how it was rounded."""
    if step.special:
        return f"{step.result:>11.5g}  {'; '.join(step.special)}"
    what = _off(step.rounded)
    what = "" if what == "exact" else what
    return f"{step.total.value:>11.5g}  {_short(step.total):>{_LONGEST}}  {what}"


def _two_stages(
    model: Model, step: TwoStages, a: Sequence[float], b: Sequence[float]
) -> Iterator[str]:
    there = [k for k in step.ks if k < len(a)]
    if step.special:
        yield f"k {ranges(there)}: Inf or NaN"
        yield from (f"  {reason}" for reason in step.special)
        return
    yield f"k {ranges(there)}"
    for part in step.products:
        sources = some([f"k {k}" for k in part.sources], 4)
        yield f"  largest exponent of products {part.greatest}, of {sources}"
        yield row("k", "a", "b", "a * b", "exactly", f"* 2^{part.unit}", "truncated")
        for term in part.terms:
            k = term.k
            assert k is not None
            yield row(str(k), f"{a[k]:.5g}", f"{b[k]:.5g}", *_cells(term))
        total = Exact(part.total < 0, abs(part.total), part.unit)
        yield row("sum", "", "", f"{total.value:.5g}", "", units(part.total))
    if not step.products:
        yield "  all products are zero"
    else:
        summed = {term.k for part in step.products for term in part.terms}
        if len(summed) < len(there):
            yield f"  zero: k {ranges([k for k in there if k not in summed])}"
    if len(step.together) > 1:
        yield f"  both, in units of 2^{step.greatest_product - FRACTION}"
        yield from (_brought(term) for term in step.together)
    yield f"  with the accumulator: largest exponent {step.greatest}"
    unit = f"* 2^{step.greatest - SUM_FRACTION}"
    yield row("", "", "", "", "exactly", unit, "truncated")
    for term in step.terms:
        yield _brought(term)
    if step.dropped:
        yield f"  c is more than {FAR} exponents below the largest, so it is dropped"
    yield row("all", "", "", f"{step.total.value:.5g}", "", _signed(step.total))
    if step.down.magnitude:
        yield f"  rounded downward: {_short(step.down)} is truncated"
    yield f"  {_how(model, step.rounded)}"


def _brought(term: Term) -> str:
    """Format one aligned term; it is rounded downward, so negative ones grow."""
    value = f"{term.exact.value:.5g}"
    return row(term.name.split()[0], "", "", value, *_cells(term)[1:])


def _cells(term: Term) -> tuple[str, ...]:
    value = f"{term.exact.value:.5g}"
    if not term.exact.magnitude:
        return (value,)
    cut = _short(term.cut) if term.cut.magnitude else ""
    return value, _short(term.exact), units(term.kept), cut


def _hexes(x: Exact) -> tuple[str, ...]:
    return (_short(x),) if x.magnitude else ()


def _signed(x: Exact) -> str:
    return units(-x.magnitude if x.negative else x.magnitude)


def _how(model: Model, rounded: Rounded, nearest: bool = False) -> str:
    """How a sum is rounded."""
    odd = model.rounding == "to_odd" and not nearest
    if rounded.off.magnitude and rounded.value == 0:
        return f"flushed to zero: {_short(rounded.off)} is lost"
    direction = "to odd" if odd else "to nearest"
    if rounded.tie and not odd:
        direction += ", a tie to even"
    return f"rounded {direction}: {_off(rounded)}"


def _off(rounded: Rounded) -> str:
    """Return the bits that a rounding adds or truncates."""
    if rounded.overflow:
        return "out of range"
    if not rounded.off.magnitude:
        return "exact"
    return f"{_short(rounded.off)} is {'added' if rounded.up else 'truncated'}"


def _short(x: Exact) -> str:
    """Return an exact number in hexadecimal, or a decimal "~x" if it is too long."""
    if not x.magnitude:
        return "0"
    exactly = hexadecimal(x)
    return exactly if len(exactly) <= _LONGEST else f"~{x.value:.9g}"


# -- a line for each group -------------------------------------------------------------

_LINE = (9, 15, 26)
_LINE_OF_DOUBLES = (6, 16, 17)


def _in_lines(model: Model, found: Sequence[Step], k: int) -> Iterator[str]:
    widths = _LINE_OF_DOUBLES if model.accumulator == "float64" else _LINE
    yield _line(widths, "k", "sum", "rounding") + "  accumulator"
    for step in found:
        if _is_inner(step) or _only_fills(step, k):
            continue
        cells = _line(widths, *_line_cells(step, k))
        yield f"{cells}  {shown(model, step.result)}"
    yield ""
    yield "sum: the exact sum; rounding: the accumulator minus the sum"
    if any(isinstance(step, Addition) for step in found):
        yield "+: an addition to the accumulator, to nearest, ties to even"
    if model.arithmetic != "fused" or model.depth > 1:
        yield "To see all terms, explain the k of one instruction, and give as c the"
        yield "accumulator before it"


def _only_fills(step: Step, k: int) -> bool:
    """Zeros after the last k show only where they change something."""
    return min(step.ks) >= k and repr(step.result) == repr(step.accumulator)


def _line_cells(step: Step, k: int) -> tuple[str, str, str]:
    special: tuple[str, ...] = ()
    if isinstance(step, Addition):
        total = step.sum + step.accumulator
        name = f"+{span(step.ks)}"
    else:
        total, special = step.total.value, step.special
        here = sorted(x for x in step.ks if x < k) or step.ks
        name = span(here) if len(here) > 1 else str(here[0])
        if isinstance(step, Sum) and step.name.startswith("t"):
            name = step.name if " " in step.name else "c + t"
    if special:
        return name, "", some(special, 1)
    return name, f"{total:.9g}", _change(step)


def _change(step: Step) -> str:
    """Return the result minus the exact sum."""
    off = step.rounded.off
    unit = off.unit
    change = off.magnitude if step.rounded.up else -off.magnitude
    if off.negative:
        change = -change
    if isinstance(step, TwoStages) and step.down.magnitude:
        down = step.down
        unit = min(off.unit, down.unit)
        change = (change << off.unit - unit) - (down.magnitude << down.unit - unit)
    if not change or not math.isfinite(step.result):
        return ""
    return _short(Exact(change < 0, abs(change), unit))


def _line(widths: Sequence[int], *cells: str) -> str:
    return " ".join(cell.rjust(n) for cell, n in zip(cells, widths, strict=True))
