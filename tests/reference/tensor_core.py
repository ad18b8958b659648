"""NVIDIA's tensor cores, one block at a time, in Python integers.

Sources: Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores",
arXiv:2512.07004; MMA-Sim, arXiv:2511.10909; Fasi, Higham, Mikaitis and Pranesh,
"Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330; for fp8
under mma.sync on sm_90 and sm_100, NVIDIA/cutlass issue 1986.

A model is any object with the attributes of `tf32dtype.tensor_core.models.Model`.
Numbers come as float32's bits. The numbers of operands and of float16 accumulators are
exact in their formats.

This module stores a number as a pair: a signed significand, in units of the last
fraction bit, and the exponent by which a unit aligns it. The significand of Inf is +-1,
that of NaN is 0, and both have an exponent above all others. Products of pairs
therefore need no special cases: Inf * 0 is 0, a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import arithmetic
from .codec import decode_code
from .formats import FLOAT16, FLOAT32, FORMATS, Format

Pair = tuple[int, int]
Bits = Sequence[int]

SPECIAL = 1 << 20  # the exponent of Inf and NaN
ZERO = -126  # a zero's exponent, if it counts: as in MMA-Sim for all formats
SIGN = 1 << 31
TF32 = 0xFFFFE000


@dataclass(frozen=True)
class Mutation:
    """How a unit could be wrong, apart from the parameters of its model."""

    #: the sum starts from zero, and c is added to the rounded sum
    c_outside: bool = False
    #: emulated rows: the first block starts from c, and nothing is added later
    c_inside: bool = False
    flush_operands: bool = False
    flush_c: bool = False
    flush_results: bool = False
    #: a product of 2 or more counts with the next exponent
    renormalise_products: bool = False
    #: a subnormal operand counts with the exponent of its leading bit
    normalise_operands: bool = False
    #: how terms are truncated; "sticky" sets the last bit if any bit was lost
    alignment: str = "toward_zero"
    #: how sums are rounded; "twice" first rounds to float32 toward zero
    rounding: str | None = None
    #: the last block of k comes first
    reversed_blocks: bool = False
    #: emulated rows: which k are in the first block of an instruction
    halves: str = "pairs"
    #: emulated rows: how the sum of both blocks is added to c
    addition: str = "ties_to_even"


RIGHT = Mutation()


# -- integers ------------------------------------------------------------------


def toward_zero(x: int, shift: int) -> int:
    """Return x * 2**shift, truncated to an integer."""
    if shift >= 0:
        return x << shift
    return x >> -shift if x > 0 else -(-x >> -shift)


def toward_negative(x: int, shift: int) -> int:
    return x << shift if shift >= 0 else x >> -shift


def ties_to_even(x: int, shift: int) -> int:
    if shift >= 0:
        return x << shift
    odd = (x >> -shift) & 1
    return (x + (1 << (-shift - 1)) - 1 + odd) >> -shift


def ties_to_away(x: int, shift: int) -> int:
    half = (1 << -shift) >> 1 if shift < 0 else 0
    return toward_zero(x + half if x > 0 else x - half, shift)


def sticky(x: int, shift: int) -> int:
    """Truncate, and set the last bit if any bit was lost."""
    cut = toward_zero(x, shift)
    if cut & 1 or shift >= 0 or not x & ((1 << -shift) - 1):
        return cut
    return cut + 1 if x > 0 else cut - 1


CUTS: dict[str, Callable[[int, int], int]] = {
    f.__name__: f
    for f in (toward_zero, toward_negative, ties_to_even, ties_to_away, sticky)
}

HALVES: dict[str, Callable[[int], bool]] = {
    "pairs": lambda k: k % 4 < 2,
    "swapped": lambda k: k % 4 >= 2,
    "even": lambda k: k % 2 == 0,
    "low": lambda k: k < 16,
}


# -- numbers -------------------------------------------------------------------


def format_named(name: str) -> Format:
    return {"float16": FLOAT16, "float32": FLOAT32}.get(name) or FORMATS[name]


def to_pair(f: Format, bits: int) -> Pair:
    """Return the pair of a number in format f, given its float32 bits."""
    x = decode_code(FLOAT32, bits)
    if x.special:
        return (0 if x.special == "nan" else -1 if x.negative else 1), SPECIAL
    if x.integer == 0:
        return 0, ZERO
    exponent = max(x.integer.bit_length() - 1 + x.exponent, f.normal_exponent)
    shift = x.exponent - (exponent - f.mantissa_bits)
    significand = toward_zero(x.integer, shift)
    if toward_zero(significand, -shift) != x.integer:
        raise ValueError(f"{bits:#010x} is not exact in {f.name}")
    return (-significand if x.negative else significand), exponent


def is_subnormal(f: Format, pair: Pair) -> bool:
    significand, exponent = pair
    return exponent < SPECIAL and abs(significand) >> f.mantissa_bits == 0


def normalized(f: Format, pair: Pair) -> Pair:
    """Return the pair with the exponent of the leading bit."""
    significand, exponent = pair
    shift = f.mantissa_bits + 1 - abs(significand).bit_length()
    return (significand << shift, exponent - shift) if significand else pair


def infinity(negative: bool) -> int:
    return 0xFF800000 if negative else 0x7F800000


def nearby(
    total: int, exponent: int, f: Format, kept: int, rounding: str
) -> tuple[int, int]:
    """Round total * 2**exponent to `kept` bits after the first, or fewer as f has."""
    top = max(abs(total).bit_length() - 1 + exponent, f.normal_exponent)
    last = top - kept
    return CUTS[rounding](total, exponent - last), last


def to_bits(integer: int, exponent: int) -> int:
    """Return the float32 bits of integer * 2**exponent, which float32 holds."""
    sign, integer = (SIGN, -integer) if integer < 0 else (0, integer)
    spacing = max(integer.bit_length() - 1 + exponent, -126) - 23
    return sign | ((spacing + 149) << 23) + toward_zero(integer, exponent - spacing)


class Operands(dict[int, Pair]):
    """The pairs of a format's numbers, by their bits."""

    def __init__(self, name: str, model: Any, mutation: Mutation) -> None:
        super().__init__()
        self.given = format_named(name)
        self.format = FLOAT16 if model.emulated else self.given
        self.mutation = mutation

    def __missing__(self, bits: int) -> Pair:
        # The unit ignores the low bits, even when it distinguishes NaN from Inf.
        seen = bits & TF32 if self.given.name == "tf32" else bits
        pair = to_pair(self.format, seen)
        if self.mutation.normalise_operands and is_subnormal(self.format, pair):
            pair = normalized(self.format, pair)
        if self.mutation.flush_operands:
            small = is_subnormal(self.given, to_pair(self.given, seen))
            pair = (0, ZERO) if small else pair
        if len(self) >> 17:
            self.clear()
        self[bits] = pair
        return pair


# -- units ---------------------------------------------------------------------


class Unit:
    """A tensor core by its model, or a wrong tensor core by a mutation."""

    def __init__(self, model: Any, mutation: Mutation = RIGHT) -> None:
        self.model, self.mutation = model, mutation
        self.a, self.b = (Operands(f, model, mutation) for f in (model.a, model.b))
        self.product_bits = self.a.format.mantissa_bits + self.b.format.mantissa_bits
        self.result = FLOAT32 if model.accumulator == "float32" else FLOAT16
        self.nan = 0x7FFFFFFF if self.result is FLOAT32 else 0x7FFFE000  # half's 0x7FFF
        self.cut = CUTS[mutation.alignment]
        self.fraction = model.fraction + (mutation.alignment == "sticky")
        self.rounding = mutation.rounding or model.rounding

    # -- one block

    def block(self, a: Sequence[Pair], b: Sequence[Pair], c: int) -> int:
        """Return the bits of the sum of c and all a * b."""
        products = [x * y for (x, _), (y, _) in zip(a, b, strict=True)]
        exponents = [x + y for (_, x), (_, y) in zip(a, b, strict=True)]
        accumulator, c_exponent = self.accumulator(c)
        if c_exponent == SPECIAL or max(exponents) > SPECIAL // 2:
            every = *zip(products, exponents, strict=True), (accumulator, c_exponent)
            signs = {(x > 0) - (x < 0) for x, e in every if e > SPECIAL // 2}
            return self.nan if len(signs) > 1 or 0 in signs else infinity(-1 in signs)
        if self.mutation.renormalise_products:
            terms = zip(products, exponents, strict=True)
            exponents = [e + (abs(p) >> self.product_bits + 1) for p, e in terms]
        if self.mutation.c_outside:
            without = self.sum(products, exponents, 0, ZERO)
            return self.plus(without, c, self.model.kept, self.rounding)
        return self.sum(products, exponents, accumulator, c_exponent)

    def accumulator(self, c: int) -> Pair:
        pair = to_pair(self.result, c)
        if self.mutation.flush_c and is_subnormal(self.result, pair):
            return 0, ZERO
        return pair

    def sum(self, products: Bits, exponents: Bits, c: int, c_exponent: int) -> int:
        """Return the bits of a sum of finite terms."""
        model, cut = self.model, self.cut
        terms = zip(products, exponents, strict=True)
        counted = [e for p, e in terms if p or model.zero_products]
        if c:
            counted.append(c_exponent)
        elif model.zero_c_exponent is not None:
            counted.append(model.zero_c_exponent)
        if model.floor is not None:
            counted.append(model.floor)
        if not counted:
            return 0
        last = max(counted) - self.fraction
        unit = last + self.product_bits  # significands are in units of their last bits
        total = cut(c, c_exponent - self.result.mantissa_bits - last)
        for p, e in zip(products, exponents, strict=True):
            total += cut(p, e - unit)
        if model.cut_first is not None:
            below = max(abs(total).bit_length() - 1 - model.cut_first, 0)
            total = toward_zero(total, -below) << below
        return self.rounded(total, last, model.kept, self.rounding)

    def rounded(self, total: int, exponent: int, kept: int, rounding: str) -> int:
        """Return the bits of total * 2**exponent, rounded to 1 + kept bits."""
        if rounding == "twice":
            middle = total, exponent, FLOAT32, FLOAT32.mantissa_bits
            total, exponent = nearby(*middle, "toward_zero")
            rounding = self.model.rounding
        rest, exponent = nearby(total, exponent, self.result, kept, rounding)
        if rest == 0:
            return SIGN if total < 0 and self.model.negative_zero else 0
        top = abs(rest).bit_length() - 1 + exponent
        if top > self.result.bias:
            return infinity(total < 0)
        if self.mutation.flush_results and top < self.result.normal_exponent:
            return 0
        return to_bits(rest, exponent)

    def plus(self, x: int, y: int, kept: int, rounding: str = "ties_to_even") -> int:
        """Return the bits of x + y, added outside of the unit."""
        sum_, _ = arithmetic.add(decode_code(FLOAT32, x), decode_code(FLOAT32, y))
        if sum_.special:
            return self.nan if sum_.special == "nan" else infinity(sum_.negative)
        if sum_.integer == 0:
            return SIGN if sum_.negative else 0
        total = -sum_.integer if sum_.negative else sum_.integer
        return self.rounded(total, sum_.exponent, kept, rounding)

    # -- chains of blocks

    def dot(self, a: Bits, b: Bits, c: int, promote_every: int | None = None) -> int:
        """Return the bits of c plus all a * b, in the order of k; c if there is no k.
        With `promote_every`, each stretch of that many k starts from zero, and the sums
        of the stretches are added to c, rounded to nearest."""
        x, y = list(map(self.a.__getitem__, a)), list(map(self.b.__getitem__, b))
        if promote_every is None:
            return self.chain(x, y, c)
        if promote_every % self.model.instruction_depth or self.result is not FLOAT32:
            raise ValueError(promote_every)
        for start in range(0, len(x), promote_every):
            stretch = slice(start, start + promote_every)
            c = self.plus(c, self.chain(x[stretch], y[stretch], 0), 23)
        return c

    def chain(self, a: list[Pair], b: list[Pair], c: int) -> int:
        """Run whole instructions, padded with zeros, each from the last result."""
        model = self.model
        step = model.instruction_depth if model.emulated else model.depth
        padding = [(0, ZERO)] * (-len(a) % model.instruction_depth)
        a, b = a + padding, b + padding
        starts = range(0, len(a), step)
        for start in reversed(starts) if self.mutation.reversed_blocks else starts:
            x, y = a[start : start + step], b[start : start + step]
            c = self.emulated(x, y, c) if model.emulated else self.block(x, y, c)
        return c

    def emulated(self, a: Sequence[Pair], b: Sequence[Pair], c: int) -> int:
        """Run an instruction of fp8 as two blocks of float16 and an addition."""
        first = HALVES[self.mutation.halves]
        total = c if self.mutation.c_inside else 0
        for wanted in (True, False):
            here = [k for k in range(len(a)) if first(k) == wanted]
            total = self.block([a[k] for k in here], [b[k] for k in here], total)
        if self.mutation.c_inside:
            return total
        if self.accumulator(c) == (0, ZERO):
            c &= SIGN  # a flushed c is a zero of its sign
        return self.plus(total, c, self.result.mantissa_bits, self.mutation.addition)
