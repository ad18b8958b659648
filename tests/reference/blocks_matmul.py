"""Products of arrays of blocks, one rounding at a time.

This module decodes packed codes and scales with plain integers: elements of block
formats (OCP Microscaling Formats 1.0, section 5.3, and integers), scales of 8 bits, and
residuals. A factor comes as lines along k, which are rows of the first factor and
columns of the second.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .arithmetic import ONE
from .blocks import INTEGERS, SCALES
from .codec import NAN, Exact, decode_code, zero
from .formats import FORMATS
from .matmul import Line, chain, fma, times

TERMS = ((0, 0), (0, 1), (1, 0), (1, 1))  # levels of a and b: 0 codes, 1 residuals


class Level(NamedTuple):
    """The numbers of a factor's lines, and the scale of each block of each line."""

    lines: Sequence[Line]
    scales: Sequence[Line]


# -- codes -------------------------------------------------------------------------


def width_of(element: str) -> int:
    """Return the bits of a code."""
    if element in INTEGERS:
        return INTEGERS[element][0]
    return FORMATS[element].count.bit_length() - 1


def unpack(packed: bytes, width: int) -> list[int]:
    """Return all codes, the first from the lowest bits."""
    whole = int.from_bytes(packed, "little")
    count = 8 * len(packed) // width
    return [whole >> (i * width) & ((1 << width) - 1) for i in range(count)]


def element(name: str, code: int) -> Exact:
    """Return the number of an element's code."""
    if name not in INTEGERS:
        return decode_code(FORMATS[name], code)
    width, fraction, *_ = INTEGERS[name]
    sign = 1 << (width - 1)
    whole = (code & (sign - 1)) - (code & sign)
    return Exact(whole < 0, abs(whole), -fraction) if whole else zero()


def scale(name: str, code: int) -> Exact:
    """Return a scale's own value: a power of two, unsigned E4M3, or an integer."""
    if name == "float8_e8m0fnu":
        return NAN if code == 255 else Exact(False, 1, code - 127)
    if name == "ue4m3":
        return decode_code(FORMATS["float8_e4m3fn"], code & 0x7F)
    bits = SCALES[name]
    field, mantissa = divmod(code, 1 << bits)
    return Exact(False, (mantissa + (1 << bits)) << (field - 1) if field else mantissa)


def block_scale(name: str, tensor: Exact, code: int) -> Exact:
    """Return S: the scale times the tensor's float32 scale, rounded to float32. Powers
    of two have no tensor scale."""
    value = scale(name, code)
    return value if name == "float8_e8m0fnu" else times(tensor, value)


def residual_scale(name: str, residual: str, code: int) -> Exact:
    """Return R, relative to S: below 4 for integers, below 1/8 for E4M3."""
    value = scale(name, code)
    if name == "float8_e8m0fnu":
        return value
    bits = SCALES[name]
    top = 9 if name == "ue4m3" else bits + (1 << (8 - bits)) - 1
    shift = (2 if residual in INTEGERS else -3) - top
    return value._replace(exponent=value.exponent + shift)


# -- products ------------------------------------------------------------------------


def numbers(lines: Sequence[Line], block: int) -> list[Level]:
    """Return the level of a factor that is not in blocks: its scales are 1."""
    blocks = -(-len(lines[0]) // block) if lines else 0
    return [Level(lines, [[ONE] * blocks] * len(lines))]


def dot(
    a: Sequence[Level], i: int, b: Sequence[Level], j: int, block: int, terms: int
) -> Exact:
    """Return one element of a product: line i of a times line j of b."""
    total = zero()
    for number in range(len(a[0].scales[i])):
        stretch = slice(number * block, (number + 1) * block)
        for p, q in TERMS[:terms]:
            if p < len(a) and q < len(b):
                x, y = a[p].lines[i][stretch], b[q].lines[j][stretch]
                both = times(a[p].scales[i][number], b[q].scales[j][number])
                total = fma(both, chain(x, y, zero()), total)
    return total


def product(
    a: Sequence[Level], b: Sequence[Level], block: int, terms: int = 4
) -> list[list[Exact]]:
    """Return the float32 products of all lines of a with all lines of b."""
    rows, columns = range(len(a[0].lines)), range(len(b[0].lines))
    return [[dot(a, i, b, j, block, terms) for j in columns] for i in rows]
