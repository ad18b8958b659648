"""Chains of float64 fused multiply-adds, each the exact value rounded once.

float64 matrix instructions compute c = fma(a, b, c) for each k in order. Zeros follow
the last k, up to whole instructions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

Numbers = Sequence[float]


def fma(x: float, y: float, z: float) -> float:
    """Return x * y + z, rounded once to nearest, ties to even."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):  # as a float, x * y may overflow, although it is finite
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:  # equal zeros keep their sign; sums that cancel are +0
        return x * y + z if z == 0 else 0.0
    try:
        # Python rounds a quotient of integers once, also to subnormal numbers.
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def chain(a: Numbers, b: Numbers, c: float, instruction_depth: int) -> float:
    """Return c plus the products of a and b, by whole instructions."""
    for x, y in zip(a, b, strict=True):
        c = fma(x, y, c)
    for _ in range(-len(a) % instruction_depth):
        c = fma(0.0, 0.0, c)
    return c
