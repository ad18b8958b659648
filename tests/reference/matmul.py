"""Products of matrices in float32, one rounding at a time.

A matrix comes as lists of items (the bits of its numbers): the first factor by its
rows, the second by its columns. Both keep their lengths for k = 0. The contract has
three steps. Operands are rounded to a format, or split into components of it. A chain
of fused multiply-adds starts from +0 for each stretch of k. The sums of the stretches
are added in k order.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from .arithmetic import ONE, add, divide, ldexp, multiply, order, subtract
from .codec import INVALID, OVER, Exact, decode_code, encode_code, infinity, zero
from .formats import FLOAT16, FLOAT32, FORMATS, Format

Items = Sequence[Sequence[int]]
Line = Sequence[Exact]  # a row of the first factor or a column of the second
Parts = Sequence[Line]  # components of a line, the largest first

CHAIN = 256  # consecutive k summed by one chain
SPLIT_CHAIN = 32  # consecutive k per chain of components
SPLIT_GROUPS = (8, 16)  # 32-sums to a 256-sum, 256-sums to a 4096-sum
LEAST_SCALE = Exact(False, 1, -126)  # float32's smallest normal number


class Precision(NamedTuple):
    """How operands are converted before the multiplication."""

    format: Format
    scaled: bool = False
    parts: int = 1
    split_orders: int = 1


PRECISIONS = {
    "f32": Precision(FLOAT32),
    "tf32": Precision(FORMATS["tf32"]),
    "bf16": Precision(FORMATS["bfloat16"]),
    "f16": Precision(FLOAT16),
    "fp8_e4m3": Precision(FORMATS["float8_e4m3fn"], scaled=True),
    "fp8_e5m2": Precision(FORMATS["float8_e5m2"], scaled=True),
    "bf16x3": Precision(FORMATS["bfloat16"], parts=2, split_orders=2),
    "bf16x6": Precision(FORMATS["bfloat16"], parts=3, split_orders=3),
    "bf16x9": Precision(FORMATS["bfloat16"], parts=3, split_orders=5),
    "tf32x3": Precision(FORMATS["tf32"], parts=2, split_orders=2),
}


# -- float32 arithmetic --------------------------------------------------------


def nearest(negative: bool, integer: int, exponent: int) -> Exact:
    """Round integer * 2**exponent to float32: to nearest, ties to even, overflow to
    Inf."""
    shift = max(integer.bit_length() - 24, -149 - exponent)
    if shift > 0:
        odd = (integer >> shift) & 1
        integer = (integer + (1 << (shift - 1)) - 1 + odd) >> shift
        exponent += shift
    if integer.bit_length() + exponent > 128:
        return infinity(negative)
    return Exact(negative, integer, exponent)


def fma(x: Exact, y: Exact, z: Exact) -> Exact:
    """Return x * y + z, rounded once to float32."""
    if x.special or y.special or z.special:  # nothing to round
        return add(multiply(x, y)[0], z)[0]
    scale = x.exponent + y.exponent
    least = min(scale, z.exponent)
    product = (x.integer * y.integer) << (scale - least)
    addend = z.integer << (z.exponent - least)
    negative = x.negative != y.negative
    total = (-product if negative else product) + (-addend if z.negative else addend)
    if total == 0:  # the sum is -0 only for -0 + -0
        return zero(negative and z.negative)
    return nearest(total < 0, abs(total), least)


def times(x: Exact, y: Exact) -> Exact:
    """Return x * y in float32; the addition of -0 changes no number, not even +0."""
    return fma(x, y, zero(True))


def plus(x: Exact, y: Exact) -> Exact:
    """Return x + y in float32."""
    return fma(ONE, x, y)


# -- sums ----------------------------------------------------------------------


def chain(x: Line, y: Line, total: Exact) -> Exact:
    """Fuse every product of x and y into `total`, in order."""
    for p, q in zip(x, y, strict=True):
        total = fma(p, q, total)
    return total


def in_order(sums: Line) -> Exact:
    """Add the later sums to the first in float32; +0 if there is none."""
    return reduce(plus, sums) if sums else zero()


def dot(x: Line, y: Line) -> Exact:
    """Return chains of 256 k from +0, whose sums are added in order."""
    starts = range(0, len(x), CHAIN)
    return in_order([chain(x[s : s + CHAIN], y[s : s + CHAIN], zero()) for s in starts])


# -- operands ------------------------------------------------------------------


def decoded(lines: Items, f: Format = FLOAT32) -> list[list[Exact]]:
    """Return the numbers of a format's items."""
    mask = f.count - 1
    return [[decode_code(f, (i >> f.shift) & mask) for i in line] for line in lines]


def as_format(
    f: Format, x: Exact, rounding: str = "ties_to_even", overflow: str = "ieee"
) -> Exact:
    """Return the number of the format that x rounds to."""
    return decode_code(f, encode_code(f, x, rounding, overflow)[0])


def significant_bits(f: Format) -> int:
    """Return the significant bits, with the hidden bit."""
    return f.mantissa_bits + 1


def split(f: Format, x: Exact, parts: int) -> list[Exact]:
    """Return components x0, x1, ... of p bits: x = x0 + 2**-p x1 + 2**-2p x2. Inf, and
    a number that would round to Inf, becomes the largest finite number. The next
    component takes the rest."""
    found = []
    for _ in range(parts):
        found.append(as_format(f, x, overflow="saturate"))
        x, _ = ldexp(subtract(x, found[-1])[0], significant_bits(f))
    return found


def split_line(f: Format, line: Line, parts: int) -> Parts:
    """Return a line of first components, a line of second components, ..."""
    numbers = [split(f, x, parts) for x in line]
    return [[each[i] for each in numbers] for i in range(parts)]


def scale_of(f: Format, numbers: Line) -> Exact:
    """Return the scale of numbers: their largest finite magnitude over the format's."""
    greatest = zero()
    for x in numbers:
        magnitude = x._replace(negative=False)
        if not x.special and order(magnitude, greatest) > 0:
            greatest = magnitude
    if greatest.integer == 0:
        return ONE
    quotient, _ = divide(greatest, decode_code(f, f.max_code))
    s = as_format(FLOAT32, quotient)
    return LEAST_SCALE if order(s, LEAST_SCALE) < 0 else s


def scales(f: Format, lines: Sequence[Line], scaling: str) -> list[Exact]:
    """Return the scale of each line: its own ("row"), or the matrix's ("tensor")."""
    if scaling == "row":
        return [scale_of(f, line) for line in lines]
    return [scale_of(f, [x for line in lines for x in line])] * len(lines)


def scaled(f: Format, line: Line, s: Exact) -> Line:
    """Return x / s in float32, rounded to the format."""
    return [as_format(f, as_format(FLOAT32, divide(x, s)[0])) for x in line]


# -- products of components ----------------------------------------------------


def split_orders(p: Precision) -> list[list[tuple[int, int]]]:
    """Return pairs of components by split order, smallest first: a2b2 | a1b2, a2b1."""
    return [
        [(i, n - i) for i in range(n + 1) if i < p.parts and n - i < p.parts]
        for n in reversed(range(p.split_orders))
    ]


def split_chain(p: Precision, x: Parts, y: Parts) -> Exact:
    """Return one sum from +0, divided by 2**p from each split order to the next."""
    step = Exact(False, 1, -significant_bits(p.format))
    total = zero()
    for number, pairs in enumerate(split_orders(p)):
        if number:
            total = times(total, step)
        for i, j in pairs:
            total = chain(x[i], y[j], total)
    return total


def split_dot(p: Precision, x: Parts, y: Parts) -> Exact:
    """Return sums of 32 k, added to sums of 256, of 4096 and of all k."""
    sums = []
    for start in range(0, len(x[0]), SPLIT_CHAIN):
        stretch = slice(start, start + SPLIT_CHAIN)
        sums.append(
            split_chain(p, [part[stretch] for part in x], [part[stretch] for part in y])
        )
    for size in SPLIT_GROUPS:
        sums = [in_order(sums[i : i + size]) for i in range(0, len(sums), size)]
    return in_order(sums)


# -- whole products ----------------------------------------------------------------

Numbers = list[list[Exact]]


def rounded_product(
    f: Format, rounding: str, a: Sequence[Line], b: Sequence[Line]
) -> Numbers:
    """Multiply operands that are rounded one by one."""
    x, y = ([[as_format(f, e, rounding) for e in line] for line in m] for m in (a, b))
    return [[dot(row, column) for column in y] for row in x]


def scaled_product(
    f: Format, scaling: str, a: Sequence[Line], b: Sequence[Line]
) -> Numbers:
    """Multiply scaled operands, then by the scale of a, then by that of b."""
    s, t = scales(f, a, scaling), scales(f, b, scaling)
    x = [scaled(f, *each) for each in zip(a, s, strict=True)]
    y = [scaled(f, *each) for each in zip(b, t, strict=True)]
    return [
        [times(times(dot(x[i], y[j]), s[i]), t[j]) for j in range(len(b))]
        for i in range(len(a))
    ]


def split_product(
    p: Precision, special_values: str, a: Sequence[Line], b: Sequence[Line]
) -> Numbers:
    """Multiply split operands. With "propagate", elements that meet an Inf or NaN come
    from the float32 product."""
    x, y = ([split_line(p.format, line, p.parts) for line in m] for m in (a, b))
    special = [[any(e.special for e in line) for line in m] for m in (a, b)]

    def element(i: int, j: int) -> Exact:
        if special_values == "propagate" and (special[0][i] or special[1][j]):
            return dot(a[i], b[j])
        return split_dot(p, x[i], y[j])

    return [[element(i, j) for j in range(len(b))] for i in range(len(a))]


def encoded(f: Format, numbers: Numbers) -> list[list[int]]:
    """Round each number once to the format, as an item."""
    return [[encode_code(f, x)[0] << f.shift for x in line] for line in numbers]


def product(
    rows: Items,
    columns: Items,
    precision: str,
    *,
    rounding: str = "ties_to_even",
    scale: str = "tensor",
    special_values: str = "propagate",
) -> list[list[int]]:
    """Return the float32 product of two float32 matrices in a precision, as items."""
    p = PRECISIONS[precision]
    a, b = decoded(rows), decoded(columns)
    if p.parts > 1:
        numbers = split_product(p, special_values, a, b)
    elif p.scaled:
        numbers = scaled_product(p.format, scale, a, b)
    else:
        numbers = rounded_product(p.format, rounding, a, b)
    return encoded(FLOAT32, numbers)


def plain_product(
    rows: Items, f: Format, columns: Items, g: Format, into: Format = FLOAT32
) -> list[list[int]]:
    """Return the product of a matrix of f and one of g, rounded once to `into`."""
    a, b = decoded(rows, f), decoded(columns, g)
    return encoded(into, [[dot(row, column) for column in b] for row in a])


# -- flags -------------------------------------------------------------------------


def flags(rows: Items, columns: Items, result: Items) -> int:
    """Return a float32 product's flags, for Inf or NaN that no operand brought."""

    def holds(lines: Items, wanted: Callable[[Exact], bool]) -> list[bool]:
        return [any(wanted(x) for x in line) for line in decoded(lines)]

    special = [holds(m, lambda x: bool(x.special)) for m in (rows, columns)]
    nan = [holds(m, lambda x: x.special == "nan") for m in (rows, columns)]
    raised = 0
    for i, line in enumerate(decoded(result)):
        for j, x in enumerate(line):
            if x.special == "inf" and not (special[0][i] or special[1][j]):
                raised |= OVER
            if x.special == "nan" and not (nan[0][i] or nan[1][j]):
                raised |= INVALID
    return raised
