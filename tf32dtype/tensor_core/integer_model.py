"""What a tensor core does to one element, step by step, in Python's integers.

This is the model of models.py once more, written without the C of
src/tensor_core/mma_model.h:
tests hold them against each other. `explain` makes text of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from .models import Accumulator, Aligned

#: Fraction bits of operands: no format has more.
BITS = 10

#: Fraction bits, the exponent of subnormal numbers, and the greatest exponent.
_FLOAT16 = (10, -14, 15)
_FLOAT32 = (23, -126, 127)
_FLOAT64 = (52, -1022, 1023)
ACCUMULATORS = {"float16": _FLOAT16, "float32": _FLOAT32, "float64": _FLOAT64}


class Exact(NamedTuple):
    """magnitude * 2^unit, with a sign."""

    negative: bool
    magnitude: int
    unit: int


@dataclass(frozen=True)
class Term:
    """A product, or the accumulator, as an MMA group sees it."""

    #: which k; None: the accumulator
    k: int | None
    exact: Exact
    #: of its significand, which is below 4, or 2 in the accumulator; None: it has none
    exponent: int | None
    #: how often the group's unit is in it, with its sign
    kept: int
    #: what is not kept
    cut: Exact


@dataclass(frozen=True)
class Rounded:
    """A sum after its rounding."""

    value: float
    #: what was cut off, or added if it went `up`
    off: Exact
    up: bool = False
    tie: bool = False
    overflow: bool = False


class Rounding:
    """A step that ends by rounding."""

    rounded: Rounded

    @property
    def result(self) -> float:
        """The accumulator of what follows."""
        return self.rounded.value


@dataclass(frozen=True)
class Group(Rounding):
    """An MMA group: products and an accumulator that are added in one sum."""

    ks: tuple[int, ...]
    accumulator: float
    #: why the result is Inf or NaN; then there are no terms
    special: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    #: what terms are aligned to, and which of them has it; None: all is zero
    greatest: int | None = None
    sources: tuple[str, ...] = ()
    unit: int = 0
    total: int = 0
    rounded: Rounded = Rounded(math.nan, Exact(False, 0, 0))


@dataclass(frozen=True)
class Addition(Rounding):
    """Two numbers added as IEEE 754 has it, to nearest, ties to even."""

    #: the k that the first of them is the sum of
    ks: range
    sum: float
    accumulator: float
    promotes: bool
    rounded: Rounded


Step = Group | Addition


AnyStep = TypeVar("AnyStep", bound=Rounding)


def steps(
    model: Aligned,
    a: Sequence[float],
    b: Sequence[float],
    c: float,
    promote_every: int | None = None,
) -> Iterator[Step]:
    """Compute c + the products of a and b; the last step's result is the element.

    Parameters
    ----------
    model : Aligned
        Any values of its parameters.
    a, b : sequence of float
        As many numbers that the model's formats have.
    c : float
        A number that its accumulator has.
    promote_every : int, optional
        As for `matmul`.

    Yields
    ------
    Group or Addition
        None at all if there is no k.
    """
    chain = partial(_chain, model, a, b)
    return promoted(chain, model.accumulator, c, range(len(a)), promote_every)


def promoted(
    chain: Callable[[float, range], Iterator[AnyStep]],
    accumulator: Accumulator,
    c: float,
    ks: range,
    every: int | None,
) -> Iterator[AnyStep | Addition]:
    """The steps of a chain from c on, or of chains from +0 that are added to c."""
    if every is None:
        yield from chain(c, ks)
        return
    for first in ks[::every]:
        here = range(first, min(first + every, ks.stop))
        total = 0.0
        for step in chain(total, here):
            total = step.result
            yield step
        added = _add(accumulator, total, c)
        yield Addition(here, total, c, True, added)
        c = added.value


def _chain(
    model: Aligned, a: Sequence[float], b: Sequence[float], c: float, ks: range
) -> Iterator[Step]:
    if not model.emulated:
        # What is missing of the last instruction is zeros; a group of these is a step
        # where it changes something, which no model of the table lets it do.
        filled = -(-len(ks) // model.instruction_depth) * model.instruction_depth
        for first in range(ks.start, ks.start + filled, model.depth):
            here = range(first, min(first + model.depth, ks.stop))
            group = _group(model, a, b, c, tuple(here))
            if here or repr(group.result) != repr(c):
                yield group
            c = group.result
        return
    depth = 2 * model.depth
    for first in ks[::depth]:
        total = 0.0
        whole = range(first, min(first + depth, ks.stop))
        for pair in ((0, 1), (2, 3)):
            of_pair = tuple(k for k in whole if (k - first) % 4 in pair)
            group = _group(model, a, b, total, of_pair)
            yield group
            total = group.result
        added = _add(model.accumulator, total, c)
        yield Addition(whole, total, c, False, added)
        c = added.value


# -- an MMA group ----------------------------------------------------------------------


def _group(
    model: Aligned,
    a: Sequence[float],
    b: Sequence[float],
    c: float,
    ks: tuple[int, ...],
) -> Group:
    value, special = _special(a, b, c, ks)
    if special:
        rounded = Rounded(value, Exact(False, 0, 0))
        return Group(ks, c, special, rounded=rounded)
    # 1. The greatest exponent.
    exact, exponent = _decode(c, *ACCUMULATORS[model.accumulator][:2])
    known: dict[int | None, Exact] = {None: exact}
    exponents: dict[int | None, int | None] = {
        None: exponent if c else model.zero_c_exponent
    }
    least_of_a, least_of_b = model.least_exponents
    for k in ks:
        x, of_x = _decode(a[k], BITS, least_of_a)
        y, of_y = _decode(b[k], BITS, least_of_b)
        negative = x.negative != y.negative
        exact = Exact(negative, x.magnitude * y.magnitude, x.unit + y.unit)
        known[k] = exact
        exponents[k] = of_x + of_y
        if not exact.magnitude:  # a zero counts as 2^-126, if it counts
            of_zero = (of_x if a[k] else -126) + (of_y if b[k] else -126)
            exponents[k] = of_zero if model.zero_products else None
    brought = [e for e in (*exponents.values(), model.floor) if e is not None]
    greatest = max(brought, default=None)
    sources = tuple(
        "c" if k is None else f"k {k}"
        for k, exponent in exponents.items()
        if exponent is not None and exponent == greatest
    )
    if not sources and greatest is not None:
        sources = ("the floor",)
    # 2. and 3. Each cut toward zero; an exact sum.
    unit = 0 if greatest is None else greatest - model.fraction
    terms = tuple(_aligned(k, exact, exponents[k], unit) for k, exact in known.items())
    total = sum(term.kept for term in terms)
    # 4. One rounding.
    rest = 0
    if model.cut_first is not None:
        below = max(abs(total).bit_length() - 1 - model.cut_first, 0)
        rest = abs(total) & ((1 << below) - 1)
    rounded = _round(
        model.accumulator,
        total - (rest if total > 0 else -rest),
        unit,
        model.kept,
        model.rounding == "ties_to_even",
        model.negative_zero,
    )
    return Group(ks, c, (), terms, greatest, sources, unit, total, rounded)


def _decode(x: float, bits: int, least: int) -> tuple[Exact, int]:
    """A finite number and its exponent; subnormal ones have the least."""
    exponent = max(math.frexp(x)[1] - 1, least) if x else least
    unit = exponent - bits
    magnitude = int(math.ldexp(abs(x), -unit))
    return Exact(math.copysign(1, x) < 0, magnitude, unit), exponent


def _aligned(k: int | None, exact: Exact, exponent: int | None, unit: int) -> Term:
    """A term cut toward zero to a multiple of 2^unit."""
    shift = unit - exact.unit
    if shift <= 0:
        kept, cut = exact.magnitude << -shift, 0
    else:
        kept, cut = divmod(exact.magnitude, 1 << shift)
    return Term(
        k,
        exact,
        exponent,
        -kept if exact.negative else kept,
        Exact(exact.negative, cut, exact.unit),
    )


def _special(
    a: Sequence[float] | dict[int, float],
    b: Sequence[float] | dict[int, float],
    c: float,
    ks: tuple[int, ...],
) -> tuple[float, tuple[str, ...]]:
    """What a group with Inf or NaN in it is, and why; no reason without them."""
    nans, infinities = [], []
    if math.isnan(c):
        nans.append("c is NaN")
    elif math.isinf(c):
        infinities.append((c, "c"))
    for k in ks:
        if math.isfinite(a[k]) and math.isfinite(b[k]):
            continue
        product = a[k] * b[k]
        if math.isnan(product):
            names = [n for n, x in (("a", a[k]), ("b", b[k])) if math.isnan(x)]
            are = "is NaN" if len(names) == 1 else "are NaN"
            what = f"{' and '.join(names)} {are}" if names else f"{a[k]:g} * {b[k]:g}"
            nans.append(f"k {k}: {what}")
        else:
            infinities.append((product, f"k {k}"))
    if nans:
        return math.nan, tuple(nans)
    signs = {value for value, _ in infinities}
    if len(signs) == 2:
        both = (next(f"{s:+g} of {n}" for v, n in infinities if v == s) for s in signs)
        return math.nan, (" and ".join(sorted(both)),)
    reasons = tuple(f"{name}: {value:+g}" for value, name in infinities)
    return (signs.pop() if signs else 0.0), reasons


# -- rounding --------------------------------------------------------------------------


def _round(
    accumulator: Accumulator,
    total: int,
    unit: int,
    kept: int,
    nearest: bool,
    negative_zero: bool = False,
) -> Rounded:
    """total * 2^unit with `kept` fraction bits: to nearest, or toward zero."""
    _, least, largest = ACCUMULATORS[accumulator]
    negative, magnitude = total < 0, abs(total)
    if not magnitude:
        return Rounded(0.0, Exact(False, 0, unit))
    last = max(magnitude.bit_length() - 1 + unit, least) - kept
    shift = last - unit
    if shift <= 0:
        result, rest, half, last = magnitude, 0, 1, unit
    else:
        result, rest = divmod(magnitude, 1 << shift)
        half = 1 << shift - 1
    up = nearest and (rest > half or (rest == half and result % 2 == 1))
    off = Exact(negative, 2 * half - rest if up else rest, unit)
    value, overflow = _value(negative, result + up, last, largest, negative_zero)
    return Rounded(value, off, up, nearest and rest == half, overflow)


def _value(
    negative: bool, magnitude: int, unit: int, largest: int, negative_zero: bool
) -> tuple[float, bool]:
    """The number, and whether it overflowed to Inf."""
    overflow = magnitude.bit_length() - 1 + unit > largest
    value = math.inf if overflow else math.ldexp(magnitude, unit)
    keeps_sign = magnitude != 0 or negative_zero
    return (-value if negative and keeps_sign else value), overflow


def _add(accumulator: Accumulator, x: float, y: float) -> Rounded:
    """x + y as IEEE 754 has it."""
    if not (math.isfinite(x) and math.isfinite(y)) or x == y == 0:
        return Rounded(x + y, Exact(False, 0, 0))
    unit = -149  # all float32 and float16 numbers are multiples of 2^-149
    total = int(math.ldexp(x, -unit)) + int(math.ldexp(y, -unit))
    return _round(accumulator, total, unit, ACCUMULATORS[accumulator][0], True)
