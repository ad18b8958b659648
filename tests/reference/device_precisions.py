"""Products of float32 in a precision, as the tensor core of a device computes them.

Operands are rounded, scaled or split as in `matmul`, but a unit adds. Components are
multiplied as in NVIDIA/cutlass example 78: 16 k at a time, from zero, the smallest
products first. A float32 addition outside of the unit adds the sum to the other sums.
"""

from typing import Any

from .codec import Exact, decode_code, encode_code, zero
from .formats import FLOAT32
from .matmul import (
    PRECISIONS,
    Items,
    Line,
    Parts,
    Precision,
    as_format,
    decoded,
    dot,
    plus,
    scaled,
    scales,
    significant_bits,
    split_line,
    split_orders,
    times,
)
from .tensor_core import SPECIAL, Pair, Unit

NAN = 0x7FFFFFFF
PROMOTED = 16  # k per sum from zero


def bits(x: Exact) -> int:
    return NAN if x.special == "nan" else encode_code(FLOAT32, x)[0]


def unit_dot(unit: Unit, x: Line, y: Line, c: Exact) -> Exact:
    a, b = ([bits(e) for e in line] for line in (x, y))
    return decode_code(FLOAT32, unit.dot(a, b, bits(c)))


class ScalingUnit(Unit):
    """A unit that reads one accumulator as if it were multiplied by 2**scale."""

    scale = 0

    def accumulator(self, c: int) -> Pair:
        significand, exponent = super().accumulator(c)
        scale, self.scale = self.scale, 0
        return significand, exponent + scale * (exponent < SPECIAL)


def split_chain(unit: Unit, p: Precision, x: Parts, y: Parts) -> Exact:
    """Return one sum from +0. The accumulator is divided by 2**p between split orders,
    in float32 or by the unit."""
    step = Exact(False, 1, -significant_bits(p.format))
    total = zero()
    for number, pairs in enumerate(split_orders(p)):
        if number and isinstance(unit, ScalingUnit):
            unit.scale = -significant_bits(p.format)
        elif number:
            total = times(total, step)
        for i, j in pairs:
            total = unit_dot(unit, x[i], y[j], total)
    return total


def split_dot(unit: Unit, p: Precision, x: Parts, y: Parts) -> Exact:
    total = zero()
    for start in range(0, len(x[0]), PROMOTED):
        stretch = slice(start, start + PROMOTED)
        here = ([part[stretch] for part in v] for v in (x, y))
        total = plus(total, split_chain(unit, p, *here))
    return total


def product(
    model: Any,
    rows: Items,
    columns: Items,
    precision: str,
    *,
    rounding: str = "ties_to_even",
    scale: str = "tensor",
    special_values: str = "propagate",
    scales_inside: bool = False,
) -> list[list[int]]:
    """Return `matmul.product` as the tensor core of a device computes it."""
    p = PRECISIONS[precision]
    unit = ScalingUnit(model) if scales_inside else Unit(model)
    a, b = decoded(rows), decoded(columns)
    if p.parts > 1:
        x, y = ([split_line(p.format, line, p.parts) for line in m] for m in (a, b))
        special = [[any(e.special for e in line) for line in m] for m in (a, b)]
        infinite = special_values == "propagate"

        def element(i: int, j: int) -> Exact:
            if infinite and (special[0][i] or special[1][j]):
                return dot(a[i], b[j])
            return split_dot(unit, p, x[i], y[j])
    elif p.scaled:
        s, t = scales(p.format, a, scale), scales(p.format, b, scale)
        x = [scaled(p.format, *each) for each in zip(a, s, strict=True)]
        y = [scaled(p.format, *each) for each in zip(b, t, strict=True)]

        def element(i: int, j: int) -> Exact:
            return times(times(unit_dot(unit, x[i], y[j], zero()), s[i]), t[j])
    else:
        x, y = (
            [[as_format(p.format, e, rounding) for e in line] for line in m]
            for m in (a, b)
        )

        def element(i: int, j: int) -> Exact:
            return unit_dot(unit, x[i], y[j], zero())

    return [[bits(element(i, j)) for j in range(len(b))] for i in range(len(a))]
