"""Operands for tensor cores: random ones, and ones that distinguish models.

Everything is drawn or built as float64 numbers that are exact in their formats, and
returned as float32's bits. A case is a row of a, a row of b and a c. The same model and
seed give the same cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tests.reference.codec_arrays import spacing_exponents
from tests.reference.formats import FLOAT16, FLOAT32, Format
from tests.reference.tensor_core import format_named
from tf32dtype.tensor_core.device import MODELS
from tf32dtype.tensor_core.rounded import Rounded

Array = np.ndarray[Any, Any]
Generator = np.random.Generator
Pair = tuple[float, float]  # two factors

INF, NAN = float("inf"), float("nan")


class Cases(NamedTuple):
    """uint32 arrays a and b of shape (cases, k), and c of shape (cases,)."""

    a: Array
    b: Array
    c: Array

    def take(self, rows: Any) -> Cases:
        return Cases(*(x[rows] for x in self))


# -- formats -------------------------------------------------------------------


@cache
def top_exponent(f: Format) -> int:
    """Return the exponent of the largest number whose significand is all ones."""
    largest = float(f.max_value)
    top = int(np.frexp(largest)[1]) - 1
    return top if (2 - 2.0**-f.mantissa_bits) * 2.0**top <= largest else top - 1


def spacing(f: Format, values: Array) -> Array:
    """Return the distance of a format's numbers at finite values, of any size."""
    return np.ldexp(1.0, spacing_exponents(f, values))


def truncated(f: Format, values: Array) -> Array:
    """Return finite numbers, truncated to a format."""
    values = np.clip(values, -float(f.max_value), float(f.max_value))
    unit = spacing(f, values)
    return np.copysign(np.trunc(values / unit) * unit, values)


def is_exact(f: Format, values: Any) -> Any:
    """Return where values are numbers of a format; Inf and NaN only if it has them."""
    values = np.asarray(values, np.float64)
    finite = np.isfinite(values)
    given = np.where(finite, values, 0)
    special = np.where(np.isnan(values), f.nan is not None, f.infinity is not None)
    return np.where(finite, truncated(f, given) == given, special)


def to_bits(f: Format, values: Array) -> Array:
    there = values[values != 0]  # most are zero, which all formats have
    assert is_exact(f, there).all(), f"not in {f.name}"
    seen = values if f.negative_zero else values + 0.0
    return seen.astype(np.float32).view(np.uint32)


def drawn(rng: Generator, f: Format, exponents: Array) -> Array:
    """Return numbers of either sign with these exponents, clipped to the format's."""
    clipped = np.clip(exponents, f.least_exponent, top_exponent(f))
    fractions = rng.integers(0, 1 << 53, clipped.shape) * 2.0**-53
    signs = rng.choice([-1.0, 1.0], clipped.shape)
    return truncated(f, signs * np.ldexp(1 + fractions, clipped))


# -- models --------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds:
    """The parameters of a model that cases depend on."""

    a: Format
    b: Format
    result: Format
    depth: int
    instruction_depth: int
    #: bits below the largest exponent, at which most models truncate
    fraction: int

    @classmethod
    def of(cls, model: Any) -> Bounds:
        result = FLOAT32 if model.accumulator == "float32" else FLOAT16
        a, b = format_named(model.a), format_named(model.b)
        depths = model.depth, model.instruction_depth
        # The other units truncate or round float32 numbers.
        return cls(a, b, result, *depths, getattr(model, "fraction", 24))

    @property
    def length(self) -> int:
        """Return k of whole instructions that have room for all edges."""
        return max(self.instruction_depth, 4)

    @property
    def least(self) -> int:
        """Return the exponent of the smallest product."""
        return self.a.least_exponent + self.b.least_exponent

    @property
    def normal(self) -> int:
        return self.a.normal_exponent + self.b.normal_exponent

    @property
    def top(self) -> int:
        return top_exponent(self.a) + top_exponent(self.b)

    def cases(self, a: Array, b: Array, c: Array) -> Cases:
        return Cases(*map(to_bits, (self.a, self.b, self.result), (a, b, c)))

    @cache  # noqa: B019 (there are few bounds, and all tests ask them again)
    def pair(self, exponent: int, shape: str = "one") -> Pair | None:
        """Return factors of +2**exponent ("one"), or of the same exponents with other
        significands; None if the formats have none."""
        low_a, low_b = self.a.normal_exponent, self.b.normal_exponent
        if shape == "one":
            low_a, low_b = self.a.least_exponent, self.b.least_exponent
        top_a, top_b = top_exponent(self.a), top_exponent(self.b)
        if not low_a + low_b <= exponent <= top_a + top_b:
            return None
        half = exponent // 2 if low_a < -20 else 0  # narrow formats: one factor near 1
        first = min(max(half, low_a, exponent - top_b), top_a, exponent - low_b)
        bits_a, bits_b = 2.0**-self.a.mantissa_bits, 2.0**-self.b.mantissa_bits
        x, y = {
            "one": (1.0, 1.0),
            "ones": (2 - bits_a, 2 - bits_b),
            "odd": (1 + bits_a, 1.0),
        }[shape]
        return x * 2.0**first, y * 2.0 ** (exponent - first)

    def levels(self) -> list[int]:
        """Return exponents of large terms: in the middle, high and low in the range."""
        top = min(self.top, self.result.bias - 3)
        low = max(self.normal, self.result.normal_exponent)
        middle = min(max(0, low), top)
        return list(dict.fromkeys([middle, top, max(low, top - 2 * self.fraction)]))


# -- random cases ----------------------------------------------------------------

Values = tuple[Array, Array, Array]
Kind = Callable[[Bounds, Generator, int, int], Values]


def near(m: Bounds, rng: Generator, a: Array, b: Array) -> Array:
    """Return a c for each row: zero, any number, or close to the largest product."""
    rows = len(a)
    largest = np.frexp(np.abs(a * b).max(1, initial=2.0**-300))[1] - 1
    exponents = largest + rng.integers(-m.fraction - 3, 6, rows)
    anything = rng.integers(m.result.least_exponent, m.result.bias + 1, rows)
    kind = rng.integers(0, 8, rows)
    c = drawn(rng, m.result, np.where(kind == 1, anything, exponents))
    return np.where(kind == 0, np.copysign(0, c), c)


def around(low: int, high: int, spread: int) -> Kind:
    """Return a kind: products with exponents up to `spread` below a random center.

    Both the accumulator and the products reach the center. `low` and `high` bound it,
    counted from the accumulator's smallest exponent or, if negative, from its largest.
    """

    def kind(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
        first, last = m.result.least_exponent - 4, m.result.bias + 1
        ends = [last + x if x < 0 else first + x for x in (low, high)]
        centers = rng.integers(ends[0], ends[1] + 1, (rows, 1))
        centers = np.clip(centers, m.least, m.top)
        exponents = centers - rng.integers(0, spread + 1, (rows, k))
        lowest, highest = m.a.least_exponent, top_exponent(m.a)
        bottom = np.clip(exponents - top_exponent(m.b), lowest, highest)
        ceiling = np.clip(exponents - m.b.least_exponent, lowest, highest)
        of_a = rng.integers(bottom, np.maximum(bottom, ceiling) + 1)
        a = drawn(rng, m.a, of_a)
        b = drawn(rng, m.b, exponents - of_a)
        return a, b, near(m, rng, a, b)

    return kind


def ordinary(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    a = truncated(m.a, rng.standard_normal((rows, k)))
    b = truncated(m.b, rng.standard_normal((rows, k)))
    return a, b, truncated(m.result, rng.standard_normal(rows))


def spread(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    """Draw exponents uniform over the formats."""
    a, b = (
        drawn(rng, f, rng.integers(f.least_exponent, top_exponent(f) + 1, (rows, k)))
        for f in (m.a, m.b)
    )
    return a, b, near(m, rng, a, b)


def few_exponents(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    """Draw three exponents in each row."""
    factors = []
    for f in (m.a, m.b):
        choice = rng.integers(f.least_exponent, top_exponent(f) + 1, (rows, 3))
        rows_of = np.arange(rows)[:, None]
        factors.append(drawn(rng, f, choice[rows_of, rng.integers(0, 3, (rows, k))]))
    return *factors, near(m, rng, *factors)


def canceling(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    """Draw products and their negatives in random order; most pairs cancel exactly."""
    a, b, _ = spread(m, rng, rows, k)
    half = k // 2
    a[:, half : 2 * half] = -a[:, :half]
    b[:, half : 2 * half] = b[:, :half]
    other = drawn(rng, m.a, np.frexp(a)[1] - 1)
    a = np.where(rng.random((rows, k)) < 0.5 / max(k, 1), other, a)
    order = rng.random((rows, k)).argsort(1)
    a, b = (np.take_along_axis(x, order, 1) for x in (a, b))
    return a, b, near(m, rng, a, b)


def sparse(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    """Draw zeros of either sign, and few other numbers."""
    a, b, c = spread(m, rng, rows, k)
    for x in (a, b):
        keep = rng.random((rows, k)) < 1.5 / max(k, 2)
        x[...] = np.where(keep, x, np.copysign(0, x))
    return a, b, np.where(rng.random(rows) < 0.3, np.copysign(0, c), c)


def sprinkled(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    """Draw rows with a few Inf and NaN, if the format has them."""
    a, b, c = few_exponents(m, rng, rows, k)
    rare = 0.7 / max(k, 1)
    for x, f, chance in ((a, m.a, rare), (b, m.b, rare), (c, m.result, 0.2)):
        special = rng.choice([INF, -INF, INF, -INF, NAN, 0.0], x.shape)
        here = (rng.random(x.shape) < chance) & is_exact(f, special)
        x[...] = np.where(here, special, x)
    return a, b, c


def anything(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    """Draw Inf and NaN as often as in random codes."""
    a, b, c = spread(m, rng, rows, k)
    for x, f in ((a, m.a), (b, m.b), (c, m.result)):
        special = rng.choice([INF, -INF, NAN], x.shape)
        here = rng.random(x.shape) < 2.0**-f.exponent_bits
        x[...] = np.where(here & is_exact(f, special), special, x)
    return a, b, c


def extreme(m: Bounds, rng: Generator, rows: int, k: int) -> Values:
    """Draw the largest, smallest and smallest normal number, zero and one."""

    def some(f: Format, shape: tuple[int, ...]) -> Array:
        normal = 2.0**f.normal_exponent
        largest, least = float(f.max_value), 2.0**f.least_exponent
        chosen = [largest, least, normal, normal - least, 0.0, 1.0]
        return rng.choice(chosen, shape) * rng.choice([-1.0, 1.0], shape)

    return some(m.a, (rows, k)), some(m.b, (rows, k)), some(m.result, (rows,))


KINDS: dict[str, Kind] = {
    "ordinary": ordinary,
    "spread": spread,
    "few exponents": few_exponents,
    "canceling": canceling,
    "sparse": sparse,
    "sprinkled": sprinkled,
    "anything": anything,
    "extreme": extreme,
    "narrow": around(0, -1, 3),
    "wide": around(0, -1, 40),
    "underflowing": around(0, 30, 12),
    "overflowing": around(-8, -1, 6),
}


def payloads(rng: Generator, f: Format, bits: Array) -> Array:
    """Replace NaNs by NaNs of either sign, quiet or not, if the format has them."""
    if f.infinity is None:
        return bits
    unit = 23 - f.mantissa_bits
    payload = rng.integers(1, 1 << f.mantissa_bits, bits.shape, dtype=np.uint32)
    sign = rng.integers(0, 2, bits.shape, dtype=np.uint32) << np.uint32(31)
    nan = np.isnan(bits.view(np.float32))
    return np.where(nan, sign | np.uint32(0x7F800000) | payload << unit, bits)


def dirty(rng: Generator, f: Format, bits: Array) -> Array:
    """Set bits that tf32 ignores, in half of the rows; Inf then looks like a NaN."""
    if f.name != "tf32":
        return bits
    low = rng.integers(0, 1 << 13, bits.shape, dtype=np.uint32)
    return np.where(rng.random((len(bits), 1)) < 0.5, bits | low, bits)


def random_cases(model: Any, count: int, k: int, seed: int) -> Cases:
    """Return cases of all kinds, about equally many of each kind."""
    m = Bounds.of(model)
    rng = np.random.default_rng([seed, k])
    parts = []
    for number, kind in enumerate(KINDS.values()):
        if rows := (count - number + len(KINDS) - 1) // len(KINDS):
            parts.append(m.cases(*kind(m, rng, rows, k)))
    a, b, c = (np.concatenate(x) for x in zip(*parts, strict=True))
    a, b, c = map(payloads, [rng] * 3, (m.a, m.b, m.result), (a, b, c))
    return Cases(dirty(rng, m.a, a), dirty(rng, m.b, b), c)


def lengths(model: Any) -> list[int]:
    """Return k below, at and above the depths of blocks and instructions."""
    depth, instruction = model.depth, model.instruction_depth
    ends = {1, depth - 1, depth, depth + 1, instruction - 1, instruction + 1}
    return sorted(ends - {0} | {2 * instruction, 2 * instruction + 3})


# -- the tables -----------------------------------------------------------------


#: Models whose operands, accumulators and results are exact in float32.
WITH_CASES = [model for model in MODELS if model.accumulator != "float64"]


def parameters(model: Any) -> tuple[Any, ...]:
    """Return all parameters but the names: models with equal parameters compute the
    same."""
    names = {"device", "instruction", "verified"}
    return tuple(getattr(model, f.name) for f in fields(model) if f.name not in names)


def by_parameters(models: Sequence[Any]) -> list[list[Any]]:
    """Return lists of models that share their parameters."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for model in models:
        found.setdefault(parameters(model), []).append(model)
    return list(found.values())


def named(model: Any) -> str:
    """Return the name of a model's parameters for pytest's ids."""
    formats = f"{model.a}-{model.b}-{model.accumulator}"
    depths = f"{model.depth}-{model.instruction_depth}"
    if isinstance(model, Rounded):
        return f"{formats}-{model.arithmetic}-{depths}-{model.instruction}"
    return f"{formats}-{depths}-{model.fraction}" + "-emulated" * model.emulated


def exact(name: str, bits: Array) -> Array:
    """Return float32 bits without the bits that tf32 ignores."""
    return bits & np.uint32(0xFFFFE000) if name == "tf32" else bits


def lists(cases: Cases) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Return cases as lists, as the reference computes with Python's integers."""
    return cases.a.tolist(), cases.b.tolist(), cases.c.tolist()
