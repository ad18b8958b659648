"""What a unit of rounded.py does to one element, step by step, in Python's integers.

It is written without the C of src/tensor_core/rounded_model.h: tests hold them against
each other. `explain` makes text of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from .integer_model import (
    ACCUMULATORS,
    Addition,
    Exact,
    Rounded,
    Rounding,
    _round,
    _special,
    promoted,
)
from .rounded import Rounded as Model

#: Of which all float32 numbers, and their products, are multiples; and of float64.
UNIT = -298
_UNITS = {"float32": UNIT, "float64": -2148}
LEAST, KEPT = -126, 23  # of float32: the least normal exponent, and fraction bits
#: Of sums in two stages: what is kept below the greatest exponent of products and of
#: the accumulator, of the sum of products with it, and after the first bit of all.
FRACTION, SUM_FRACTION, KEPT_DOWN = 24, 32, 31
FAR = 25  # exponents; farther below it an accumulator is dropped where there are lanes
MINUS_ZERO = -0.0
NOTHING = Exact(False, 0, UNIT)
NOT_ROUNDED = Rounded(math.nan, NOTHING)


@dataclass(frozen=True)
class Sum(Rounding):
    """Terms that are added exactly, and rounded once; a product alone, too."""

    ks: tuple[int, ...]
    #: what is added, in words; "" if it is a group of products and the accumulator
    name: str
    accumulator: float
    #: why the result is Inf or NaN; then there is no total
    special: tuple[str, ...]
    total: Exact
    rounded: Rounded
    #: whether the result is a sum of the group, and not an accumulator
    inner: bool = False


@dataclass(frozen=True)
class Cut:
    """A term after it was brought to the unit of its sum."""

    name: str
    exact: Exact
    #: how often the unit is in it, with its sign
    kept: int
    #: what is not kept: below it, where it was cut downward
    cut: Exact


@dataclass(frozen=True)
class Products:
    """Those that are cut below the greatest exponent of them, and their sum."""

    greatest: int
    sources: tuple[int, ...]
    terms: tuple[tuple[int, Cut], ...]

    @property
    def unit(self) -> int:
        """Of what is kept."""
        return self.greatest - FRACTION

    @property
    def total(self) -> int:
        """In these units."""
        return sum(term.kept for _, term in self.terms)


@dataclass(frozen=True)
class TwoStages(Rounding):
    """A group in two stages."""

    ks: tuple[int, ...]
    accumulator: float
    special: tuple[str, ...]
    #: one, or those of even and of odd k; those without a product are left out
    products: tuple[Products, ...] = ()
    #: sums of products, brought to the greatest exponent of them
    together: tuple[Cut, ...] = ()
    greatest_product: int = LEAST
    #: the sum and the accumulator, brought to the greater exponent of both
    terms: tuple[Cut, ...] = ()
    greatest: int = LEAST
    dropped: bool = False
    total: Exact = NOTHING
    #: what the rounding downward takes away
    down: Exact = NOTHING
    rounded: Rounded = NOT_ROUNDED


Step = Sum | TwoStages | Addition


def rounded_steps(
    model: Model,
    a: Sequence[float],
    b: Sequence[float],
    c: float,
    promote_every: int | None = None,
) -> Iterator[Step]:
    """Compute c + the products of a and b; the last step's result is the element.

    Parameters are those of `steps` in integer_model.py.
    """
    chain = partial(_chain, model, a, b)
    return promoted(chain, model.accumulator, c, range(len(a)), promote_every)


def _chain(
    model: Model, a: Sequence[float], b: Sequence[float], c: float, ks: range
) -> Iterator[Step]:
    """Instruction after instruction, the last one filled up with zeros."""
    of_a, of_b = model.least_exponents
    for first in ks[:: model.instruction_depth]:
        whole = range(first, first + model.instruction_depth)
        x = {k: _read(model, a[k], of_a) if k < ks.stop else 0.0 for k in whole}
        y = {k: _read(model, b[k], of_b) if k < ks.stop else 0.0 for k in whole}
        for step in _instruction(model, x, y, _read(model, c, LEAST)):
            c = step.result
            yield step


Numbers = dict[int, float]


def _instruction(model: Model, a: Numbers, b: Numbers, c: float) -> Iterator[Step]:
    ks = list(a)
    if model.odd_first:
        ks = [k for i in range(0, len(ks), 2) for k in ks[i : i + 2][::-1]]
    if model.arithmetic != "fused" or not model.lanes:
        yield from _groups(model, a, b, ks, c)
        return
    sums = []
    for lane in range(model.lanes):
        result = model.start
        for step in _groups(model, a, b, ks[lane :: model.lanes], result):
            result = step.result
            yield step
        sums.append(result)
    total = sums[0]
    for number, more in enumerate(sums[1:], 1):
        added = _sum(model, tuple(ks), f"t{number - 1} + t{number}", total, more)
        total = added.result
        yield added
    yield _sum(model, tuple(ks), "t", c, total)


def _groups(
    model: Model, a: Numbers, b: Numbers, ks: Sequence[int], c: float
) -> Iterator[Step]:
    ways: dict[str, Callable[..., Iterator[Sum | TwoStages]]] = {
        "fused": _fused,
        "stepwise": _stepwise,
        "two stages": _two_stages,
    }
    group = ways[model.arithmetic]
    for first in range(0, len(ks), model.depth):
        here = tuple(ks[first : first + model.depth])
        for step in group(model, a, b, here, c):
            yield step
            c = step.result


# -- one number ------------------------------------------------------------------------


def _read(model: Model, x: float, least: int) -> float:
    """An operand or an accumulator, as the unit reads it."""
    if model.flushed == "kept" or not abs(x) < math.ldexp(1, least):
        return x
    return 0.0 if model.flushed == "+0" else math.copysign(0.0, x)


def _integer(x: float, unit: int = UNIT) -> int:
    """A finite number in units of 2^unit."""
    numerator, denominator = x.as_integer_ratio()
    return (numerator << -unit) // denominator


def _exact(x: int, unit: int = UNIT) -> Exact:
    return Exact(x < 0, abs(x), unit)


def _product(x: float, y: float, unit: int = UNIT) -> int:
    return _integer(x, unit) * _integer(y, unit) >> -unit


def _rounded(model: Model, x: int, minus: bool) -> Rounded:
    """x of the accumulator's units as a result; -0 if that is zero and `minus`."""
    if x == 0:
        return Rounded(MINUS_ZERO if minus else 0.0, _exact(0))
    unit = _UNITS[model.accumulator]
    kept, least, _ = ACCUMULATORS[model.accumulator]
    odd = model.rounding == "to_odd"
    top = abs(x).bit_length() - 1 + unit
    if model.flushes_results and top < least:
        # What rounds to 2^-126 with all its 24 bits is no subnormal number.
        half = 1 << top - kept - 1 - unit
        if odd or (abs(x) + half).bit_length() - 1 + unit < least:
            return Rounded(math.copysign(0.0, x), _exact(x, unit))
    nearest = _round(model.accumulator, x, unit, kept, not odd, True)
    if not odd or not nearest.off.magnitude:
        return nearest
    # Cut toward zero; the last bit becomes one.
    last = max(top, least) - kept
    bits = abs(x) >> last - unit
    if bits & 1 or nearest.overflow:
        return nearest
    value = math.copysign(math.ldexp(bits + 1, last), x)
    more = (bits + 1 << last - unit) - abs(x)
    return Rounded(value, Exact(x < 0, more, unit), up=True)


# -- groups ----------------------------------------------------------------------------


def _fused(
    model: Model, a: Numbers, b: Numbers, ks: tuple[int, ...], c: float
) -> Iterator[Sum]:
    yield _exact_sum(model, a, b, ks, c, "")


def _exact_sum(
    model: Model,
    a: Numbers,
    b: Numbers,
    ks: tuple[int, ...],
    c: float,
    name: str,
    inner: bool = False,
) -> Sum:
    pairs = [(a[k], b[k]) for k in ks]
    value, special = _of_specials(dict(zip(ks, pairs, strict=True)), c)
    if special:
        return Sum(ks, name, c, special, _exact(0), Rounded(value, _exact(0)), inner)
    unit = _UNITS[model.accumulator]
    total = _integer(c, unit) + sum(_product(x, y, unit) for x, y in pairs)
    signs = [math.copysign(1, x) * math.copysign(1, y) for x, y in pairs]
    rounded = _rounded(model, total, max(*signs, math.copysign(1, c)) < 0)
    return Sum(ks, name, c, (), _exact(total, unit), rounded, inner)


def _of_specials(
    factors: dict[int, tuple[float, float]], c: float
) -> tuple[float, tuple[str, ...]]:
    """As `_special`, of products by their k."""
    a, b = ({k: pair[i] for k, pair in factors.items()} for i in (0, 1))
    return _special(a, b, c, tuple(factors))


def _sum(
    model: Model,
    ks: tuple[int, ...],
    name: str,
    x: float,
    y: float,
    inner: bool = False,
) -> Sum:
    """x + y, which is called `name`."""
    if math.isfinite(x) and math.isfinite(y):
        minus = math.copysign(1, x) < 0 and math.copysign(1, y) < 0
        total = _integer(x) + _integer(y)
        rounded = _rounded(model, total, minus)
        return Sum(ks, name, x, (), _exact(total), rounded, inner)
    value = Rounded(x + y, _exact(0))
    return Sum(ks, name, x, (f"{x:g} + {y:g}",), _exact(0), value, inner)


def _stepwise(
    model: Model, a: Numbers, b: Numbers, ks: tuple[int, ...], c: float
) -> Iterator[Sum]:
    sums: list[tuple[str, float]] = []
    for k in ks:
        step = _exact_sum(model, a, b, (k,), MINUS_ZERO, f"p{k}", True)
        yield step
        sums.append((step.name, step.result))
    while len(sums) > 1:
        pairs = zip(sums[::2], sums[1::2], strict=True)
        sums = []
        for (left, x), (right, y) in pairs:
            name = f"{left} + {right}"
            step = _sum(model, ks, name, x, y, True)
            yield step
            sums.append((f"({name})", step.result))
    yield _sum(model, ks, "s", c, sums[0][1])


def _two_stages(
    model: Model, a: Numbers, b: Numbers, ks: tuple[int, ...], c: float
) -> Iterator[TwoStages]:
    factors = {k: _within_range(a[k], b[k]) for k in ks}
    value, special = _of_specials(factors, c)
    if special:
        yield TwoStages(ks, c, special, rounded=Rounded(value, _exact(0)))
        return
    # 1. The products; then the sums of each lane.
    lanes = [
        _products(model, a, b, ks[lane :: model.lanes]) for lane in range(model.lanes)
    ]
    products = tuple(x for x in lanes if x.sources)
    greatest_product = max((x.greatest for x in products), default=LEAST)
    unit = greatest_product - FRACTION
    together = tuple(
        _down(_lane_name(model, x), _exact(x.total, x.unit), unit) for x in products
    )
    total = sum(x.kept for x in together)
    # 2. With the accumulator.
    z = _integer(c)
    exponent = max(abs(z).bit_length() - 1 + UNIT, LEAST) if z else LEAST
    greatest = max(greatest_product, exponent) if products else exponent
    dropped = model.lanes > 1 and exponent < greatest - FAR
    last = greatest - SUM_FRACTION
    sum_of_products = _down("sum", _exact(total, unit), last)
    cut_c = _down("c", _exact(z), greatest - FRACTION)
    kept_c = 0 if dropped else cut_c.kept << SUM_FRACTION - FRACTION
    cut_c = Cut("c", cut_c.exact, kept_c, cut_c.cut)
    whole = sum_of_products.kept + kept_c
    # 3. Downward, then to nearest.
    down = 0
    rest, at = whole, last
    if whole:
        more = max(abs(whole).bit_length() - 1 + last, LEAST) - KEPT_DOWN - last
        if more > 0:
            rest, at = whole >> more, last + more
            down = whole - (rest << more)
    yield TwoStages(
        ks,
        c,
        (),
        products,
        together,
        greatest_product,
        (sum_of_products, cut_c),
        greatest,
        dropped,
        _exact(whole, last),
        _exact(down, last),
        _round("float32", rest, at, KEPT, True, True),
    )


def _within_range(x: float, y: float) -> tuple[float, float]:
    """Factors of a product, which is Inf beyond float32."""
    if math.isfinite(x) and math.isfinite(y) and abs(x * y) >= 2.0**128:
        return math.copysign(math.inf, x * y), 1.0
    return x, y


def _lane_name(model: Model, products: Products) -> str:
    if model.lanes == 1:
        return "sum"
    return "odd k" if products.sources[0] % model.lanes else "even k"


def _products(model: Model, a: Numbers, b: Numbers, ks: tuple[int, ...]) -> Products:
    """Cut toward zero below the greatest exponent of those that are not zero."""
    exponents, values = {}, {}
    for k in ks:
        value = _product(a[k], b[k])
        if value:
            values[k] = value
            exponents[k] = sum(
                max(math.frexp(x)[1] - 1, least)
                for x, least in zip((a[k], b[k]), model.least_exponents, strict=True)
            )
    greatest = max(exponents.values(), default=LEAST)
    unit = greatest - FRACTION
    terms = []
    for k, value in values.items():
        shift = unit - UNIT
        kept, cut = divmod(abs(value), 1 << shift)
        exact = _exact(value)
        signed = -kept if value < 0 else kept
        terms.append((k, Cut(f"k {k}", exact, signed, Exact(value < 0, cut, UNIT))))
    sources = tuple(k for k, exponent in exponents.items() if exponent == greatest)
    return Products(greatest, sources, tuple(terms))


def _down(name: str, x: Exact, unit: int) -> Cut:
    """Rounded downward to a multiple of 2^unit."""
    signed = -x.magnitude if x.negative else x.magnitude
    shift = unit - x.unit
    if shift <= 0:
        return Cut(name, x, signed << -shift, Exact(False, 0, x.unit))
    kept = signed >> shift
    return Cut(name, x, kept, Exact(False, signed - (kept << shift), x.unit))
