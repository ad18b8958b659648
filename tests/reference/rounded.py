"""Matrix units of AMD, Intel and Arm, in Python integers.

Sources: MMA-Sim, arXiv:2511.10909, for AMD; Intel's Software Developer's Manual,
VDPBF16PS and TDPBF16PS, and its Instruction Set Extensions reference, TDPFP16PS; Arm's
Architecture Reference Manual, BFDOT, and its pseudocode BFDotAdd.

A model is any object with the attributes of `tf32dtype.tensor_core.rounded.Rounded`.
Numbers come as float32's bits. The numbers of operands are exact in their formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from .formats import FLOAT32
from .tensor_core import (
    CUTS,
    SIGN,
    TF32,
    Bits,
    format_named,
    infinity,
    to_bits,
    toward_negative,
    toward_zero,
)

NAN = 0x7FFFFFFF
ONE = 0x3F800000
#: Exponents of the units of float32 numbers, and of their products.
NUMBERS, PRODUCTS = -149, -298
LEAST = -126  # exponent of the smallest normal number

DOWN = {"down": toward_negative, "toward zero": toward_zero}


@dataclass(frozen=True)
class Mutation:
    """How a unit could be wrong, apart from the parameters of its model."""

    #: operands are not flushed, or c is not flushed
    keeps_operands: bool = False
    keeps_c: bool = False
    #: flushed numbers become +0, or the test for them precedes the rounding
    flushes_to_plus: bool = False
    tiny_before: bool = False
    #: an overflow gives the largest number
    saturates: bool = False
    #: an exact sum of zero is -0 if c is -0
    keeps_minus: bool = False
    #: the order of a group's sums: neighbors first, or "halves", or "in turn"
    tree: str = "neighbors"
    #: c is added before the products' sum is complete
    c_first: bool = False
    #: the lanes are the two halves of k
    halves: bool = False
    #: in two stages: bits kept of products and c, and of the sum before and after its
    #: normalization
    fraction: int = 24
    sum_fraction: int = 32
    kept: int = 31
    #: how each is truncated
    products: str = "toward zero"
    sums: str = "down"
    lane_sums: str = "down"
    c: str = "down"
    last: str = "down"
    #: how many exponents below that of the sum c may be, else it is dropped
    c_reach: int | None = None
    #: a product counts with the exponent of its leading bit
    renormalise_products: bool = False
    normalise_operands: bool = False
    #: a product above float32's range does not become Inf
    large_products: bool = False


RIGHT = Mutation()


# -- numbers -------------------------------------------------------------------


def sign(bits: int) -> int:
    return -1 if bits & SIGN else 1


def is_special(bits: int) -> bool:
    return bits & 0x7F800000 == 0x7F800000


def integer(bits: int) -> int:
    """Return a finite number in units of 2**NUMBERS."""
    fraction, exponent = bits & 0x7FFFFF, bits >> 23 & 0xFF
    magnitude = fraction if exponent == 0 else (1 << 23 | fraction) << exponent - 1
    return sign(bits) * magnitude


def special(products: Iterable[tuple[int, int]], c: int) -> int | None:
    """Return the sum of c and products if Inf or NaN is among them, else None."""
    signs: set[int] = set()
    for x, y in ((c, ONE), *products):
        if not is_special(x) and not is_special(y):
            continue
        both = {x & ~SIGN, y & ~SIGN}
        if max(both) > 0x7F800000 or 0 in both:
            return NAN
        signs.add(sign(x) * sign(y))
    if not signs:
        return None
    return NAN if len(signs) == 2 else infinity(-1 in signs)


def exponent_of(x: int, unit: int) -> int:
    """Return the exponent of the leading bit of x * 2**unit."""
    return abs(x).bit_length() - 1 + unit


# -- units ---------------------------------------------------------------------


class RoundedUnit:
    """A unit by its model, or a wrong unit by a mutation."""

    def __init__(self, model: Any, mutation: Mutation = RIGHT) -> None:
        self.model, self.mutation = model, mutation
        self.a, self.b = format_named(model.a), format_named(model.b)
        if model.flushed == "zero of their sign":  # converted to float32 numbers before
            self.a = self.b = FLOAT32
        self.nan = NAN
        self.odd = model.rounding == "to_odd"
        self.group = {
            "fused": self.fused,
            "stepwise": self.stepwise,
            "two stages": self.two_stages,
        }[model.arithmetic]

    # -- numbers that a unit reads and returns

    def read(self, name: str, bits: int) -> int:
        """Return an operand or an accumulator as the unit reads it, with flushing."""
        model, mutation = self.model, self.mutation
        of_c = name == "c"
        f = FLOAT32 if of_c else format_named(name)
        bits &= TF32 if name == "tf32" else -1
        if mutation.keeps_c if of_c else mutation.keeps_operands:
            return bits
        if model.flushed == "+0" and not is_special(bits):
            small = abs(integer(bits)) < 1 << f.normal_exponent - NUMBERS
            return 0 if small else bits
        if model.flushed == "zero of their sign" and bits & 0x7F800000 == 0:
            return 0 if mutation.flushes_to_plus else bits & SIGN
        return bits

    def rounded(self, x: int, unit: int, minus: bool = False) -> int:
        """Return the bits of x * 2**unit, or -0 if x is zero and `minus` is true."""
        if x == 0:
            return SIGN if minus else 0
        rule = CUTS["sticky" if self.odd else "ties_to_even"]
        if self.model.flushes_results:
            tiny = exponent_of(x, unit) < LEAST
            if tiny and not self.odd and not self.mutation.tiny_before:
                # A number is tiny after rounding to 24 bits with any exponent.
                last = exponent_of(x, unit) - 23
                tiny = exponent_of(rule(x, unit - last), last) < LEAST
            if tiny:
                flushed = 0 if self.mutation.flushes_to_plus else SIGN
                return flushed if x < 0 else 0
        last = max(exponent_of(x, unit), LEAST) - 23
        number = rule(x, unit - last)
        if number == 0:
            return SIGN if x < 0 else 0
        if exponent_of(number, last) > 127:
            return infinity(x < 0) - self.mutation.saturates
        return to_bits(number, last)

    # -- the three kinds of groups

    def fused(self, a: Bits, b: Bits, c: int) -> int:
        """Return the exact sum of c and all a * b, rounded once."""
        products = list(zip(a, b, strict=True))
        found = special(products, c)
        if found is not None:
            return found
        total = integer(c) << NUMBERS - PRODUCTS
        total += sum(integer(x) * integer(y) for x, y in products)
        signs = {c & SIGN, *((x ^ y) & SIGN for x, y in products)}
        minus = signs == {SIGN}
        if self.mutation.keeps_minus:
            minus = c & SIGN != 0
        return self.rounded(total, PRODUCTS, minus)

    def multiply(self, x: int, y: int) -> int:
        return self.fused([x], [y], SIGN)  # x * y + -0 is x * y, even if it is zero

    def add(self, x: int, y: int) -> int:
        return self.fused([x], [ONE], y)

    def stepwise(self, a: Bits, b: Bits, c: int) -> int:
        terms = list(map(self.multiply, a, b))
        if self.mutation.c_first:
            c, terms[0] = SIGN, self.add(c, terms[0])
        return self.add(c, self.tree(terms))

    def tree(self, terms: list[int]) -> int:
        """Return the sum of terms, neighbors first."""
        if len(terms) == 1 or self.mutation.tree == "in turn":
            return reduce(self.add, terms)
        half = len(terms) // 2
        halves = self.mutation.tree == "halves"
        first = terms[:half] if halves else terms[::2]
        second = terms[half:] if halves else terms[1::2]
        return self.tree(list(map(self.add, first, second)))

    def two_stages(self, a: Bits, b: Bits, c: int) -> int:
        mutation = self.mutation
        pairs = [self.within_range(x, y) for x, y in zip(a, b, strict=True)]
        found = special(pairs, c)
        if found is not None:
            return found
        # 1. Products of each lane, truncated below the lane's largest exponent.
        lanes, half = self.model.lanes, len(a) // self.model.lanes
        sums = []
        for lane in range(lanes):
            here = slice(lane, None, lanes)
            if mutation.halves:
                here = slice(lane * half, (lane + 1) * half)
            sums.append(self.cut_products(a[here], b[here]))
        greatest = max(exponent for _, exponent in sums)
        # 2. Lanes, aligned to the largest exponent of all.
        unit = greatest - mutation.fraction
        cut = DOWN[mutation.lane_sums]
        total = 0
        for x, exponent in sums:
            if x:
                total += cut(x, exponent - greatest)
        # 3. The sum with the accumulator.
        z = integer(c)
        z_exponent = max(exponent_of(z, NUMBERS), LEAST) if z else LEAST
        top = max(greatest, z_exponent)
        last = top - mutation.sum_fraction
        total = DOWN[mutation.sums](total, unit - last) if total else 0
        reach = mutation.c_reach or (25 if lanes > 1 else 1000)
        if z_exponent >= top - reach:
            unit_of_c = top - mutation.fraction
            z = DOWN[mutation.c](z, NUMBERS - unit_of_c)
            total += z << unit_of_c - last
        # 4. Truncation by mutation.last, then rounding to nearest.
        if total:
            kept = max(exponent_of(total, last), LEAST) - mutation.kept
            if kept > last:
                total, last = DOWN[mutation.last](total, last - kept), kept
        return self.rounded(total, last)

    def within_range(self, x: int, y: int) -> tuple[int, int]:
        """Return factors for the product x * y, Inf and 1 if it overflows float32."""
        if is_special(x) or is_special(y) or self.mutation.large_products:
            return x, y
        product = integer(x) * integer(y)
        large = abs(product) >= 1 << 128 - PRODUCTS
        return (infinity(product < 0), ONE) if large else (x, y)

    def cut_products(self, a: Bits, b: Bits) -> tuple[int, int]:
        """Return a sum in units of 2**(exponent - fraction), and the exponent."""
        products, exponents = [], []
        for x, y in zip(a, b, strict=True):
            product = integer(x) * integer(y)
            if product == 0:
                continue
            exponent = self.exponent(x, self.a) + self.exponent(y, self.b)
            if self.mutation.renormalise_products:
                exponent = exponent_of(product, PRODUCTS)
            products.append(product)
            exponents.append(exponent)
        greatest = max(exponents, default=-(1 << 20))
        last = greatest - self.mutation.fraction
        cut = DOWN[self.mutation.products]
        return sum(cut(x, PRODUCTS - last) for x in products), greatest

    def exponent(self, x: int, f: Any) -> int:
        """Return an operand's exponent; that of a subnormal number is the smallest
        normal."""
        own = exponent_of(integer(x), NUMBERS)
        least = own if self.mutation.normalise_operands else f.normal_exponent
        return max(own, least)

    # -- chains of groups

    def dot(self, a: Bits, b: Bits, c: int, promote_every: int | None = None) -> int:
        """Return the bits of c plus all a * b, in the order of k; c if there is no k.
        With `promote_every`, each stretch of that many k starts from zero, and the sums
        of the stretches are added to c, rounded to nearest."""
        x = [self.read(self.model.a, bits) for bits in a]
        y = [self.read(self.model.b, bits) for bits in b]
        if promote_every is None:
            return self.chain(x, y, c)
        if promote_every % self.model.instruction_depth:
            raise ValueError(promote_every)
        for start in range(0, len(x), promote_every):
            stretch = slice(start, start + promote_every)
            c = plain_sum(c, self.chain(x[stretch], y[stretch], 0))
        return c

    def chain(self, a: list[int], b: list[int], c: int) -> int:
        """Run whole instructions, padded with zeros, each from the last result."""
        step = self.model.instruction_depth
        padding = [0] * (-len(a) % step)
        a, b = a + padding, b + padding
        for start in range(0, len(a), step):
            here = slice(start, start + step)
            c = self.instruction(a[here], b[here], self.read("c", c))
        return c

    def instruction(self, a: list[int], b: list[int], c: int) -> int:
        model = self.model
        if model.odd_first:
            a, b = ([z for k in range(0, len(x), 2) for z in x[k : k + 2][::-1]]
                    for x in (a, b))  # fmt: skip
        if model.arithmetic != "fused" or not model.lanes:
            return self.groups(a, b, c)
        # The sum of independent chains is added to c.
        start = SIGN if str(model.start) == "-0.0" else 0
        lanes, half = model.lanes, len(a) // model.lanes
        sums = []
        for lane in range(lanes):
            here = slice(lane, None, lanes)
            if self.mutation.halves:
                here = slice(lane * half, (lane + 1) * half)
            begin = c if self.mutation.c_first and lane == 0 else start
            sums.append(self.groups(a[here], b[here], begin))
        total = sums[0]
        for other in sums[1:]:
            total = self.add(total, other)
        return total if self.mutation.c_first else self.add(c, total)

    def groups(self, a: list[int], b: list[int], c: int) -> int:
        depth = self.model.depth
        for start in range(0, len(a), depth):
            here = slice(start, start + depth)
            c = self.group(a[here], b[here], c)
        return c


@dataclass(frozen=True)
class _Ieee:
    """float32 arithmetic of IEEE 754."""

    a: str = "float32"
    b: str = "float32"
    arithmetic: str = "fused"
    rounding: str = "ties_to_even"
    flushed: str = "kept"
    flushes_results: bool = False


def plain_sum(x: int, y: int) -> int:
    return RoundedUnit(_Ieee()).add(x, y)
