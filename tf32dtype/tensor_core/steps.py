"""The steps of a matrix unit on one element: those that the C records, put together.

The rows of the record are struct tf_told of src/tensor_core/mma_model.h. float64 chains
have no model there: they are fused multiply-adds, rounded by Python.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from .. import _core
from .models import Aligned, Model
from .rounded import Rounded as RoundedModel

#: Fraction bits that sums in two stages keep: below the largest exponent of products
#: and of the accumulator, below that of the sum of products, and after the first bit of
#: all. Units with lanes drop an accumulator more than FAR exponents below the largest.
FRACTION, SUM_FRACTION, KEPT_DOWN, FAR = 24, 32, 31, 25
#: The exponent of products and of an accumulator that are all zero.
_LEAST = -126
#: Exponents in rows below this one mean that there is no exponent.
_NO_EXPONENT = -50_000


class Exact(NamedTuple):
    """magnitude * 2^unit, with a sign."""

    negative: bool
    magnitude: int
    unit: int

    @classmethod
    def of(cls, units: int, unit: int) -> Exact:
        """Return units * 2^unit."""
        return cls(units < 0, abs(units), unit)

    @classmethod
    def product(cls, x: float, y: float = 1.0) -> Exact:
        """Return x * y, which are finite."""
        (p, q), (r, s) = x.as_integer_ratio(), y.as_integer_ratio()
        return cls.of(p * r, 1 - (q * s).bit_length())

    def units(self, unit: int) -> int:
        """Return how often 2^unit, which divides it, is in it."""
        magnitude = self.magnitude << self.unit - unit if self.magnitude else 0
        return -magnitude if self.negative else magnitude

    def minus(self, units: int, unit: int) -> Exact:
        """Return it without units * 2^unit."""
        least = min(self.unit, unit)
        return Exact.of(self.units(least) - (units << unit - least), least)

    @property
    def value(self) -> float:
        """The nearest float."""
        try:
            if self.unit < 0:
                value = self.magnitude / (1 << -self.unit)
            else:
                value = float(self.magnitude << self.unit)
        except OverflowError:
            value = math.inf
        return -value if self.negative else value


ZERO = Exact(False, 0, 0)


class Rounded(NamedTuple):
    """A sum after its rounding."""

    value: float
    #: bits that were truncated, or added if the rounding went `up`
    off: Exact = ZERO
    up: bool = False
    tie: bool = False
    overflow: bool = False


@dataclass(frozen=True)
class Term:
    """A number that is added, aligned to the unit of its sum."""

    name: str
    #: the term's k; None: the accumulator, or a sum
    k: int | None
    exact: Exact
    #: exponent for a significand below 4, or below 2 in the accumulator; None: none
    exponent: int | None
    #: the kept part in units, with its sign
    kept: int
    #: the part that is not kept
    cut: Exact


@dataclass(frozen=True, kw_only=True)
class _Step:
    ks: Sequence[int]
    accumulator: float
    #: reasons why the result is Inf or NaN; then all other fields are empty
    special: tuple[str, ...] = ()
    rounded: Rounded

    @property
    def result(self) -> float:
        """Return the rounded sum: in most cases the next accumulator."""
        return self.rounded.value


@dataclass(frozen=True, kw_only=True)
class Group(_Step):
    """An MMA group: products and an accumulator that are added in one sum."""

    terms: Sequence[Term] = ()
    #: exponent that terms are aligned to, and its terms; None: all terms are zero
    greatest: int | None = None
    sources: Sequence[str] = ()
    unit: int = 0
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class Addition(_Step):
    """An addition of two numbers by IEEE 754, to nearest, ties to even."""

    #: sum of `ks`
    sum: float
    promotes: bool


@dataclass(frozen=True, kw_only=True)
class Sum(_Step):
    """Terms that are added exactly, and rounded once; or one product."""

    #: description of the terms; "" for a group of products and the accumulator
    name: str
    total: Exact
    #: whether the result is a sum of the group, and not an accumulator
    inner: bool = False


class Products(NamedTuple):
    """Products that are truncated below their largest exponent, and their sum."""

    greatest: int
    sources: Sequence[int | None]
    terms: Sequence[Term]

    @property
    def unit(self) -> int:
        """Return the exponent of the unit that is kept."""
        return self.greatest - FRACTION

    @property
    def total(self) -> int:
        """Return the sum in these units."""
        return sum(term.kept for term in self.terms)


@dataclass(frozen=True, kw_only=True)
class TwoStages(_Step):
    """A group in two stages."""

    #: one sum, or those of even and of odd k; sums without a product are left out
    products: Sequence[Products] = ()
    #: sums of even and of odd k, aligned to the larger exponent of both
    together: Sequence[Term] = ()
    greatest_product: int = _LEAST
    #: the sum and the accumulator, aligned to the larger exponent of both
    terms: Sequence[Term] = ()
    greatest: int = _LEAST
    dropped: bool = False
    total: Exact = ZERO
    #: the bits that rounding downward truncates
    down: Exact = ZERO


Step = Group | Addition | Sum | TwoStages


def steps(
    model: Model,
    a: Sequence[float],
    b: Sequence[float],
    c: float,
    promote_every: int | None = None,
) -> Iterator[Step]:
    """Compute c + the products of a and b; the last step's result is the element.

    Parameters
    ----------
    model : Model
        Any values of its parameters.
    a, b : sequence of float
        As many numbers that the model's formats have.
    c : float
        A number that its accumulator has.
    promote_every : int, optional
        As for `matmul`.

    Yields
    ------
    Step
        None at all if there is no k.
    """
    if model.accumulator == "float64":
        return _doubles(model, a, b, c)
    x, y, z = (np.array(v, np.float32).view(np.uint32) for v in (a, b, [c]))
    rows = _core.mma_trace(model, x, y, int(z[0]), promote_every or 0)
    return _steps(model, len(a), map(_Row._make, rows))


# -- rows ------------------------------------------------------------------------------


class _Row(NamedTuple):
    what: str
    k: int
    negative: int
    significand: int
    unit: int
    exponent: int
    kept: int

    @property
    def exact(self) -> Exact:
        return Exact(bool(self.negative), self.significand, self.unit)

    @property
    def floats(self) -> tuple[float, float, float]:
        """x, y and what they become, of a step."""
        bits = struct.pack("<3I", self.significand, self.unit, self.kept)
        x, y, result = struct.unpack("<3f", bits)
        return x, y, result


_Rows = Sequence[_Row]
_Pairs = Mapping[int, tuple[float, float]]


def _of(rows: _Rows, what: str) -> list[_Row]:
    return [row for row in rows if row.what == what]


def _steps(model: Model, k: int, rows: Iterator[_Row]) -> Iterator[Step]:
    """Read steps, each of all rows up to a group or an addition."""
    pairs: _Pairs = {}
    chain: list[int] = []  # k whose sum is not yet added to the accumulator
    promoted: list[int] = []
    names: list[str] = []  # sums of a group, or of an instruction's chains
    step: list[_Row] = []
    for row in rows:
        step.append(row)
        if row.what not in ("group", "addition"):
            continue
        here = {row.k: row.floats[:2] for row in _of(step, "k")}
        chain += here
        promoted += here
        if row.what == "addition" and (row.k or isinstance(model, Aligned)):
            ks = promoted if row.k else chain
            yield _addition(step, range(min(ks), min(max(ks) + 1, k)))
            ks.clear()
        elif isinstance(model, Aligned):
            # Zeros fill up the last instruction. A group of zeros is a step only if it
            # changes the accumulator, which no model of the table lets it do.
            c, _, result = row.floats
            if here or model.emulated or repr(result) != repr(c):
                yield _group(model, step, here)
        else:
            assert isinstance(model, RoundedModel)
            pairs = here or pairs  # several steps are one group's if each is rounded
            yield _other(model, step, pairs, chain, names)
        step = []


def _addition(rows: _Rows, ks: range) -> Addition:
    x, y, result = rows[-1].floats
    rounded = Rounded(result)
    if math.isfinite(x) and math.isfinite(y):
        total = _total([Exact.product(x), Exact.product(y)])
        rounded = _rounded(rows, total, result)
    promotes = bool(rows[-1].k)
    return Addition(ks=ks, sum=x, accumulator=y, promotes=promotes, rounded=rounded)


def _total(terms: Sequence[Exact]) -> Exact:
    unit = min(term.unit for term in terms)
    return Exact.of(sum(term.units(unit) for term in terms), unit)


def _rounded(rows: _Rows, total: Exact, value: float, nearest: bool = True) -> Rounded:
    """Return how an exact total became a value."""
    found = _of(rows, "rounded")
    if found:
        (row,) = found
        kept = Exact(bool(row.negative), row.kept, row.exponent)
    elif math.isinf(value):
        return Rounded(value, overflow=True)
    else:  # zero, or flushed to zero or to the least normal number
        kept = Exact.product(value)
    off = total.minus(kept.units(kept.unit), kept.unit)
    up = off.magnitude != 0 and off.negative != total.negative
    off = off._replace(negative=False)
    tie = nearest and bool(found) and not off.minus(1, kept.unit - 1).magnitude
    off = off._replace(negative=total.negative)
    return Rounded(value, off, up, tie, math.isinf(value))


def _special(pairs: _Pairs, c: float) -> tuple[str, ...]:
    """Return why a group is Inf or NaN, or nothing if all of it is finite."""
    nans, infinities = [], []
    if math.isnan(c):
        nans.append("c is NaN")
    elif math.isinf(c):
        infinities.append((c, "c"))
    for k, (x, y) in pairs.items():
        if math.isfinite(x) and math.isfinite(y):
            continue
        if math.isnan(x * y):
            names = [n for n, v in (("a", x), ("b", y)) if math.isnan(v)]
            are = "is NaN" if len(names) == 1 else "are NaN"
            what = f"{' and '.join(names)} {are}" if names else f"{x:g} * {y:g}"
            nans.append(f"k {k}: {what}")
        else:
            infinities.append((x * y, f"k {k}"))
    signs = {value for value, _ in infinities}
    if nans:
        return tuple(nans)
    if len(signs) == 2:
        both = (next(f"{s:+g} of {n}" for v, n in infinities if v == s) for s in signs)
        return (" and ".join(sorted(both)),)
    return tuple(f"{name}: {value:+g}" for value, name in infinities)


def _term(row: _Row, ks: Sequence[int], unit: int) -> Term:
    k = None if row.k < 0 else ks[row.k]
    name = "c" if k is None else f"k {k}"
    exponent = None if row.exponent < _NO_EXPONENT else row.exponent
    cut = row.exact.minus(row.kept, unit)
    return Term(name, k, row.exact, exponent, row.kept, cut)


# -- groups ----------------------------------------------------------------------------


def _group(model: Aligned, rows: _Rows, pairs: _Pairs) -> Group:
    c, _, result = rows[-1].floats
    ks = tuple(pairs)
    if not _of(rows, "sum"):
        special = _special(pairs, c)
        return Group(ks=ks, accumulator=c, special=special, rounded=Rounded(result))
    (total,) = _of(rows, "sum")
    greatest = None if total.exponent < _NO_EXPONENT else total.exponent
    unit = 0 if greatest is None else total.unit
    terms = [_term(row, ks, unit) for row in _of(rows, "term")]
    sources: list[str] = []
    if greatest is not None:
        sources = [term.name for term in terms if term.exponent == greatest]
        sources = sources or ["the floor"]
    before = [row.exact for row in _of(rows, "rounded")] or [ZERO]
    nearest = model.rounding == "ties_to_even"
    rounded = _rounded(rows, before[0], result, nearest)
    return Group(
        ks=ks, accumulator=c, rounded=rounded, terms=terms, greatest=greatest,
        sources=sources, unit=unit, total=total.kept,
    )  # fmt: skip


def _other(
    model: RoundedModel, rows: _Rows, pairs: _Pairs, chain: list[int], names: list[str]
) -> Sum | TwoStages:
    """Read a step of a unit of rounded.py."""
    if model.arithmetic == "two stages":
        return _two_stages(model, rows, pairs)
    c, y, result = rows[-1].floats
    ks, name, inner = tuple(pairs), "", False
    stepwise = model.arithmetic == "stepwise"
    special: tuple[str, ...] = ()
    if rows[-1].what == "group":
        if stepwise:  # a product
            ks, inner = (ks[len(names)],), True
            name = f"p{ks[0]}"
            names.append(name)
        special = _special({k: pairs[k] for k in ks}, c)
    else:
        if not (math.isfinite(c) and math.isfinite(y)):
            special = (f"{c:g} + {y:g}",)
        if stepwise:  # neighbors, or all of them and the accumulator
            inner = len(names) > 1
            name = " + ".join(names[:2]) if inner else "s"
            names[:] = [*names[2:], f"({name})"] if inner else []
        else:  # chains, or all of them and the accumulator
            ks, last = tuple(chain), len(names) == model.lanes - 1
            name = "t" if last else f"t{len(names)} + t{len(names) + 1}"
            names[:] = [] if last else [*names, name]
            chain[:] = [] if last else chain
    total, rounded = ZERO, Rounded(result)
    if not special:
        total = _total([row.exact for row in _of(rows, "term")])
        rounded = _rounded(rows, total, result, model.rounding != "to_odd")
    return Sum(
        ks=ks, accumulator=c, special=special, rounded=rounded, name=name, total=total,
        inner=inner,
    )  # fmt: skip


def _two_stages(model: RoundedModel, rows: _Rows, pairs: _Pairs) -> TwoStages:
    c, _, result = rows[-1].floats
    ks = tuple(pairs)
    if not _of(rows, "sum"):
        special = _special({k: _within_range(*xy) for k, xy in pairs.items()}, c)
        return TwoStages(ks=ks, accumulator=c, special=special, rounded=Rounded(result))
    (total,) = _of(rows, "sum")
    lanes = [
        _products(rows, ks, range(i, len(ks), model.lanes)) for i in range(model.lanes)
    ]
    products = [part for part in lanes if part.sources]
    greatest_product = max((part.greatest for part in products), default=_LEAST)
    *of_lanes, of_sum, of_c = _of(rows, "brought")
    named = zip(of_lanes, ("even k", "odd k"), lanes)  # noqa: B905 - one lane: none
    together = [
        _brought(row, name, greatest_product - FRACTION)
        for row, name, part in named
        if part.sources
    ]
    greatest = total.exponent
    terms = (
        _brought(of_sum, "sum", greatest - SUM_FRACTION),
        _brought(of_c, "c", greatest - FRACTION),
    )
    before = ([row.exact for row in _of(rows, "rounded")] or [total.exact])[0]
    down = total.exact.minus(before.units(before.unit), before.unit)
    return TwoStages(
        ks=ks, accumulator=c, rounded=_rounded(rows, before, result), products=products,
        together=together, greatest_product=greatest_product, terms=terms,
        greatest=greatest, dropped=bool(of_c.k), total=total.exact, down=down,
    )  # fmt: skip


def _products(rows: _Rows, ks: tuple[int, ...], lane: range) -> Products:
    """Read the products of a lane that are not zero."""
    here = [row for row in _of(rows, "term") if row.k in lane]
    greatest = max((row.exponent for row in here), default=_LEAST)
    terms = [_term(row, ks, greatest - FRACTION) for row in here]
    sources = [term.k for term in terms if term.exponent == greatest]
    return Products(greatest, sources, terms)


def _within_range(x: float, y: float) -> tuple[float, float]:
    """Return factors of the product, which is Inf if float32 does not hold it."""
    if math.isfinite(x) and math.isfinite(y) and abs(x * y) >= 2.0**128:
        return math.copysign(math.inf, x * y), 1.0
    return x, y


def _brought(row: _Row, name: str, unit: int) -> Term:
    """Read a number that was rounded downward to a multiple of 2^unit."""
    last = min(row.unit, unit)
    cut = Exact.of(row.exact.units(last) % (1 << unit - last), last)
    return Term(name, None, row.exact, None, row.kept, cut)


# -- float64 ---------------------------------------------------------------------------


def _doubles(
    model: Model, a: Sequence[float], b: Sequence[float], c: float
) -> Iterator[Sum]:
    """Compute a fused multiply-add for each k, also for zeros after the last k."""
    filled = [0.0] * (-len(a) % model.instruction_depth)
    for k, x, y in zip(count(), [*a, *filled], [*b, *filled]):
        special = _special({k: (x, y)}, c)
        if special:  # finite factors may overflow
            product = 0.0 if math.isfinite(x) and math.isfinite(y) else x * y
            total, rounded = ZERO, Rounded(product + c)
        else:
            total = _total([Exact.product(x, y), Exact.product(c)])
            signs = math.copysign(1, x) * math.copysign(1, y), math.copysign(1, c)
            zero = -0.0 if max(signs) < 0 else 0.0
            rounded = _rounded((), total, total.value if total.magnitude else zero)
        yield Sum(
            ks=(k,), accumulator=c, special=special, rounded=rounded, name="",
            total=total,
        )  # fmt: skip
        c = rounded.value
