"""The facts of each format, as its specification prints them.

Sources: IEEE 754-2019, section 3 (the layout, Inf and NaN); NVIDIA A100 white paper
(tf32: 8 exponent and 10 mantissa bits in float32's layout); OCP 8-bit Floating Point
Specification 1.0, table 1 (e5m2, e4m3fn); OCP Microscaling Formats 1.0, sections 5.3
and 5.4 (fp6, fp4, e8m0); Noune et al., arXiv:2206.02915 (fnuz); Sun et al., NeurIPS
2019 (e4m3 with bias 11).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property


@dataclass(frozen=True, repr=False)
class Format:
    """A format, by the parameters of its specification. A code is right-aligned. An
    *item* is the code as it is in memory, `shift` bits further left."""

    name: str
    item_bits: int
    shift: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool
    infinity: int | None  # code of +Inf
    nan: int | None  # code of the canonical quiet NaN
    max_code: int
    max_value: Fraction
    tiny_value: Fraction  # smallest positive value

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def magnitude_bits(self) -> int:
        return self.exponent_bits + self.mantissa_bits

    @cached_property
    def sign_bit(self) -> int:
        return 1 << self.magnitude_bits if self.signed else 0

    @cached_property
    def count(self) -> int:
        """Return the number of codes."""
        return 1 << (self.magnitude_bits + self.signed)

    @cached_property
    def powers(self) -> bool:
        """True for e8m0, which has only powers of two, neither sign nor zero."""
        return self.mantissa_bits == 0

    @cached_property
    def negative_zero(self) -> bool:
        """False if the code of -0 is the NaN (fnuz), or if there is no sign."""
        return self.signed and self.nan != self.sign_bit

    @cached_property
    def least_exponent(self) -> int:
        """Every finite value is an integer times 2**least_exponent."""
        assert self.tiny_value.numerator == 1
        return 1 - self.tiny_value.denominator.bit_length()

    @cached_property
    def normal_exponent(self) -> int:
        """The smallest normal number is 2**normal_exponent."""
        return self.least_exponent + self.mantissa_bits

    def is_nan(self, code: int) -> bool:
        """Return whether a code is a NaN."""
        if self.nan is None:
            return False
        if self.infinity is not None:
            return code & ~self.sign_bit > self.infinity
        if self.signed and not self.negative_zero:
            return code == self.nan
        return code & ~self.sign_bit == self.nan


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


#      name  item shift exp man bias sign  Inf  NaN  max code, value, smallest value
_ROWS = (
    ("tf32", 32, 13, 8, 10, 127, True, 0x3FC00, 0x3FE00, 0x3FBFF,
     (2 - _power(-10)) * _power(127), _power(-136)),
    ("bfloat16", 16, 0, 8, 7, 127, True, 0x7F80, 0x7FC0, 0x7F7F,
     (2 - _power(-7)) * _power(127), _power(-133)),
    ("float8_e5m2", 8, 0, 5, 2, 15, True, 0x7C, 0x7E, 0x7B,
     Fraction(57344), _power(-16)),
    ("float8_e4m3fn", 8, 0, 4, 3, 7, True, None, 0x7F, 0x7E,
     Fraction(448), _power(-9)),
    ("float8_e4m3", 8, 0, 4, 3, 7, True, 0x78, 0x7C, 0x77,
     Fraction(240), _power(-9)),
    ("float8_e3m4", 8, 0, 3, 4, 3, True, 0x70, 0x78, 0x6F,
     Fraction(31, 2), _power(-6)),
    ("float8_e5m2fnuz", 8, 0, 5, 2, 16, True, None, 0x80, 0x7F,
     Fraction(57344), _power(-17)),
    ("float8_e4m3fnuz", 8, 0, 4, 3, 8, True, None, 0x80, 0x7F,
     Fraction(240), _power(-10)),
    ("float8_e4m3b11fnuz", 8, 0, 4, 3, 11, True, None, 0x80, 0x7F,
     Fraction(30), _power(-13)),
    ("float8_e8m0fnu", 8, 0, 8, 0, 127, False, None, 0xFF, 0xFE,
     _power(127), _power(-127)),
    ("float6_e2m3fn", 8, 0, 2, 3, 1, True, None, None, 0x1F,
     Fraction(15, 2), _power(-3)),
    ("float6_e3m2fn", 8, 0, 3, 2, 3, True, None, None, 0x1F,
     Fraction(28), _power(-4)),
    ("float4_e2m1fn", 8, 0, 2, 1, 1, True, None, None, 0x07,
     Fraction(6), _power(-1)),
)  # fmt: skip

FORMATS = {row[0]: Format(*row) for row in _ROWS}

#: Formats with a sign, for which IEEE 754's arithmetic holds.
SIGNED = [f for f in FORMATS.values() if f.signed]
#: Formats small enough to try all pairs of codes.
NARROW = [f for f in SIGNED if f.count <= 256]
E8M0 = FORMATS["float8_e8m0fnu"]

#: NumPy's own formats. Matrix products add in float32, and a test compares this
#: reference with NumPy's float16.
FLOAT16 = Format(
    "float16", 16, 0, 5, 10, 15, True, 0x7C00, 0x7E00, 0x7BFF,
    Fraction(65504), _power(-24),
)  # fmt: skip
FLOAT32 = Format(
    "float32", 32, 0, 8, 23, 127, True, 0x7F800000, 0x7FC00000, 0x7F7FFFFF,
    (2 - _power(-23)) * _power(127), _power(-149),
)  # fmt: skip
FLOAT64 = Format(
    "float64", 64, 0, 11, 52, 1023, True, 0x7FF << 52, 0xFFF << 51, (0x7FF << 52) - 1,
    (2 - _power(-52)) * _power(1023), _power(-1074),
)  # fmt: skip
