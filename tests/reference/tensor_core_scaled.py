"""Products of blocks with scales on tensor cores, in Python integers.

Block-scaled instructions are those of microsoft/MMA-Sim 2.1 (arXiv:2511.10909). A model
is any object with the attributes of `tf32dtype.tensor_core.BlockScaled`. Elements come
as float32's bits, and scales as codes.

`promoted_dot` is a kernel around ordinary instructions: each block of k starts from
zero, then comes one fused multiply-add in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .codec import Exact, decode_code, encode_code
from .formats import FLOAT32
from .matmul import fma, times
from .tensor_core import (
    CUTS,
    SIGN,
    SPECIAL,
    ZERO,
    Bits,
    Pair,
    Unit,
    format_named,
    infinity,
    nearby,
    to_bits,
    to_pair,
)

NAN = 0x7FFFFFFF

Codes = Sequence[int]
# value, exponent of its unit, exponent that counts (None: the term does not count)
Term = tuple[int, int, int | None]


@dataclass(frozen=True)
class Mutation:
    """How an instruction could be wrong, apart from the parameters of its model."""

    #: how terms are truncated
    alignment: str = "toward_zero"
    #: a ue4m3 scale that is subnormal counts with the exponent of its leading bit
    normalise_scales: bool = False
    #: a subnormal element counts with the exponent of its leading bit
    normalise_elements: bool = False
    #: a term counts with the exponent of its own leading bit
    normalise_terms: bool = False
    #: the first scale of an instruction counts for all its blocks of k
    first_scale: bool = False
    #: a ue4m3 scale with its sign set is a negative one
    signed_scales: bool = False
    rounding: str = "toward_zero"


RIGHT = Mutation()


# -- block-scaled instructions -------------------------------------------------


def scale_pair(name: str, code: int) -> Pair:
    """Return a scale's significand, in eighths, and exponent; (0, SPECIAL) is NaN."""
    if name == "float8_e8m0fnu":
        return (0, SPECIAL) if code == 0xFF else (8, code - 127)
    field, mantissa = code >> 3 & 15, code & 7
    if code & 0x7F == 0x7F:
        return 0, SPECIAL
    return (mantissa, -6) if field == 0 else (8 + mantissa, field - 7)


class Elements(dict[int, Pair]):
    """By float32's bits: a number in units of 2**-UNIT and the exponent that counts."""

    UNIT = 20

    def __init__(self, name: str) -> None:
        super().__init__()
        self.format = format_named(name)

    def __missing__(self, bits: int) -> Pair:
        significand, exponent = to_pair(self.format, bits)
        if exponent < SPECIAL:
            shift = exponent - self.format.mantissa_bits + self.UNIT
            assert significand == 0 or shift >= 0
            significand <<= max(shift, 0)
        self[bits] = significand, exponent
        return self[bits]


class ScaledUnit:
    """A tensor core by the model of a block-scaled instruction, or a wrong one."""

    def __init__(self, model: Any, mutation: Mutation = RIGHT) -> None:
        self.model, self.mutation = model, mutation
        self.a, self.b = Elements(model.a), Elements(model.b)

    def scale(self, code: int) -> tuple[int, int, int]:
        """Return a scale's significand, unit exponent, and the exponent that counts."""
        significand, exponent = scale_pair(self.model.scale, code)
        unit = exponent - 3
        if self.mutation.signed_scales and code >> 7 and self.model.scale == "ue4m3":
            significand = -significand
        if self.mutation.normalise_scales and significand:
            exponent -= 4 - abs(significand).bit_length()
        if not significand and self.model.zero_terms == "always":
            exponent = ZERO
        return significand, unit, exponent

    def element(self, pair: Pair) -> int:
        """Return the exponent of an element that counts for the alignment."""
        significand, exponent = pair
        if self.mutation.normalise_elements and significand:
            return abs(significand).bit_length() - 1 - Elements.UNIT
        return exponent

    def term(self, a: Sequence[Pair], b: Sequence[Pair], codes: Codes) -> Term:
        """Return a group of products as one term."""
        (s, s_unit, s_exponent), (t, t_unit, t_exponent) = map(self.scale, codes)
        products = [x * y for (x, _), (y, _) in zip(a, b, strict=True)]
        total = sum(products) * s * t
        unit = s_unit + t_unit - 2 * Elements.UNIT
        exponent = s_exponent + t_exponent
        if self.model.group == 1:
            exponent += self.element(a[0]) + self.element(b[0])
        if self.mutation.normalise_terms and total:
            exponent = abs(total).bit_length() - 1 + unit
        counts = {
            "never": total != 0,
            "canceled": s * t != 0 and any(products),
            "always": True,
        }
        return total, unit, exponent if counts[self.model.zero_terms] else None

    def special(
        self, a: Sequence[Pair], b: Sequence[Pair], codes: Codes, c: Pair
    ) -> int | None:
        """Return the bits of NaN or Inf if the instruction gives one, else None."""
        signs = {c[0]} if c[1] == SPECIAL else set()
        if any(scale_pair(self.model.scale, code)[1] == SPECIAL for code in codes):
            signs.add(0)
        for (x, e), (y, f) in zip(a, b, strict=True):
            if SPECIAL in (e, f):
                signs.add((x * y > 0) - (x * y < 0))
        if not signs:
            return None
        return NAN if len(signs) > 1 or 0 in signs else infinity(-1 in signs)

    def instruction(
        self, a: Bits, scales_a: Codes, b: Bits, scales_b: Codes, c: int
    ) -> int:
        model, mutation = self.model, self.mutation
        x, y = [self.a[bits] for bits in a], [self.b[bits] for bits in b]
        significand, exponent = start = to_pair(FLOAT32, c)
        special = self.special(x, y, [*scales_a, *scales_b], start)
        if special is not None:
            return special
        terms: list[Term] = []
        for k in range(0, len(a), model.group):
            block = 0 if mutation.first_scale else k // model.block_size
            group = slice(k, k + model.group)
            codes = scales_a[block], scales_b[block]
            terms.append(self.term(x[group], y[group], codes))
        of_c = exponent if significand else model.zero_c_exponent
        terms.append((significand, exponent - 23, of_c))
        counted = [e for _, _, e in (*terms, (0, 0, model.floor)) if e is not None]
        if not counted:
            return 0
        last = max(counted) - model.fraction
        return self.rounded(
            sum(CUTS[mutation.alignment](x, unit - last) for x, unit, _ in terms), last
        )

    def rounded(self, total: int, exponent: int) -> int:
        """Return the float32 bits of total * 2**exponent, rounded."""
        rest, exponent = nearby(total, exponent, FLOAT32, 23, self.mutation.rounding)
        if rest == 0:
            return SIGN if total < 0 and self.model.negative_zero else 0
        if abs(rest).bit_length() - 1 + exponent > 127:
            return infinity(total < 0)
        return to_bits(rest, exponent)

    def dot(self, a: Bits, scales_a: Codes, b: Bits, scales_b: Codes, c: int) -> int:
        """Return the bits of c plus all a * b, instruction after instruction."""
        step, block = self.model.depth, self.model.block_size
        for first in range(0, len(a), step):
            blocks = slice(first // block, -(-(first + step) // block))
            x, y = a[first : first + step], b[first : first + step]
            c = self.instruction(x, scales_a[blocks], y, scales_b[blocks], c)
        return c


# -- blocks that a kernel scales -----------------------------------------------

Level = tuple[Bits, Sequence[Exact]]  # elements, and one scale per block


def promoted_dot(
    model: Any,
    a: Sequence[Level],
    b: Sequence[Level],
    c: int,
    block: int,
    terms: int = 4,
) -> int:
    """Return the bits of c plus all a * b of the first `terms` pairs of levels."""
    unit = Unit(model)
    total = decode_code(FLOAT32, c)
    pairs = [(x, y) for x in a for y in b][:terms]
    for first in range(0, len(a[0][0]), block):
        for (x, s), (y, t) in pairs:
            stretch = slice(first, first + block)
            sum_ = decode_code(FLOAT32, unit.dot(x[stretch], y[stretch], 0))
            number = first // block
            total = fma(times(s[number], t[number]), sum_, total)
    return NAN if total.special == "nan" else encode_code(FLOAT32, total)[0]
