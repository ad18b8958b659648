"""The formats of the explorer, as tests/reference defines them."""

from fractions import Fraction

from tests.reference.formats import FLOAT16, FLOAT32, FORMATS, Format

FLOAT64 = Format(
    "float64", 64, 0, 11, 52, 1023, True, 0x7FF << 52, 0xFFF << 51, (0x7FF << 52) - 1,
    Fraction((1 << 53) - 1) * Fraction(2) ** 971, Fraction(2) ** -1074,
)  # fmt: skip

#: In the explorer's order.
ALL = (*FORMATS.values(), FLOAT16, FLOAT32, FLOAT64)
#: Formats small enough to try all codes.
SHORT = [f for f in ALL if f.count <= 256]
LONG = [f for f in ALL if f.count > 256]
