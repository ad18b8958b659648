"""The sizes of the products and sums of a matrix product, which error bounds need.

For one element let p be its k products, and c the addend. Whatever the order, each sum
of some of these terms is at most `Sizes.largest` in magnitude: the sum of all positive
terms, or of all negative ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: The exponent of zero, below those of all numbers.
NONE = -5000
#: Classes of lowest bits. More classes count fewer products that are multiples.
_CLASSES = 4
_HALF_ULP = 2.0**-53


class Sizes(NamedTuple):
    """Arrays of the result's shape; all but `exact` and `unit` are upper bounds."""

    #: the sum in float64, which is within `slack` of the exact sum
    exact: Array
    #: error of `exact`
    slack: Array
    #: sum of the magnitudes of all terms
    absolute: Array
    #: magnitude of each sum of some of the terms
    largest: Array
    #: magnitude of a product
    product: Array
    #: exponent by which a product is aligned: the exponents of both factors, added
    exponent: Array
    #: the same exponent for products with a subnormal factor; NONE if there are none
    subnormal: Array
    #: every term is a multiple of 2^unit
    unit: Array
    #: sum of the magnitudes of products with a subnormal factor
    flushed: Array
    #: whether c is not zero
    has_c: Array
    #: rows of a and columns of b
    lines: tuple[Lines, Lines]

    def count_below(self, unit: Array) -> Array:
        """Return the most products of one sign that are not multiples of 2^unit.

        The lowest bits of a are put into classes. A product counts if the lowest bit of
        b and the lowest one of the class of a are together below 2^unit.
        """
        a, b = self.lines
        limit = int(unit.max(initial=NONE))
        signs_a, signs_b = (np.sign(x.values).astype(np.float32) for x in (a, b))
        total, signed = np.zeros(self.exact.shape), np.zeros(self.exact.shape)
        for start, end in _classes(a.lowest):
            here = (start <= a.lowest) & (a.lowest < end)
            below = b.lowest < limit - start
            x, y = signs_a * here, signs_b * below
            signed += x @ y
            total += np.abs(x, out=x) @ np.abs(y, out=y)
        found: Array = np.where(self.unit >= unit, 0, (total + np.abs(signed)) / 2)
        return found

    @property
    def aligned(self) -> Array:
        """The exponent by which a product is aligned, at most.

        A product of normal numbers is at least 2^exponent, so `largest` bounds it, too.
        """
        by_size = np.maximum(floor_log2(self.largest), self.subnormal)
        return np.minimum(self.exponent, by_size)


class Lines(NamedTuple):
    """Rows or columns of an operand: `values` in float64, and facts about each line."""

    values: Array
    #: largest magnitude
    largest: Array
    #: largest exponent; subnormal numbers have the smallest normal number's
    exponent: Array
    #: the same exponent for the subnormal numbers, or NONE
    subnormal: Array
    #: exponent of the lowest bit of each number; -NONE for zero
    lowest: Array
    #: the lowest of these exponents
    unit: Array
    #: the subnormal numbers; None if there are none
    small: Array | None


def floor_log2(x: Array) -> Array:
    """Return floor(log2(x)) of finite x >= 0, and NONE for zero."""
    exponents = np.frexp(x)[1].astype(np.int64) - 1
    return np.where(x == 0, NONE, exponents)


def lines_of(x: Array, least: int, axis: int, exponents: Array | None = None) -> Lines:
    """Return facts about lines along an axis: -1 for rows of a, -2 for columns of b.

    Parameters
    ----------
    x : ndarray of float64
        Finite numbers.
    least : int
        The exponent of the format's smallest normal number.
    axis : int
        The axis of k.
    exponents : ndarray of int, optional
        The exponents by which the unit aligns the numbers; by default their own.
    """
    magnitude = np.abs(x)
    largest = magnitude.max(axis=axis, keepdims=True, initial=0)
    is_small = (magnitude < np.ldexp(1.0, max(least, -1022))) & (magnitude > 0)
    small = np.where(is_small, x, 0.0) if is_small.any() else None
    has_small = is_small.any(axis=axis, keepdims=True)
    exponent = floor_log2(largest)
    exponent = np.where(exponent == NONE, NONE, np.maximum(exponent, least))
    subnormal = np.where(has_small, least, NONE)
    if exponents is not None:
        exponents = np.where(x == 0, NONE, exponents)
        exponent = exponents.max(axis=axis, keepdims=True, initial=NONE)
        subnormal = exponent
    significand, powers = np.frexp(x)
    integers = np.ldexp(significand, 53).astype(np.int64)
    lowest = floor_log2((integers & -integers).astype(np.float64)) + powers - 53
    lowest = np.where(x == 0, -NONE, lowest).astype(np.int16)
    unit = lowest.min(axis=axis, keepdims=True, initial=-NONE)
    return Lines(x, largest, exponent, subnormal, lowest, unit, small)


def _classes(exponents: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of the exponents below -NONE, with about as many numbers in each."""
    values, counts = np.unique(exponents, return_counts=True)
    values, counts = values[values < -NONE], counts[values < -NONE]
    if not len(values):
        return
    which = np.cumsum(counts) * _CLASSES // (counts.sum() + 1)
    starts = values[np.flatnonzero(np.diff(which, prepend=-1))]
    yield from pairwise([*starts.tolist(), -NONE])


def error_of_sum(k: int) -> float:
    """Return the relative error of a float64 sum of k products, in any order."""
    return 1.01 * (k + 2) * _HALF_ULP


def sizes(a: Lines, b: Lines, c: Array | None) -> Sizes:
    """Return the sizes of stacks of matrices (..., m, k) times (..., k, n), plus c."""
    x, y = a.values, b.values
    k = x.shape[-1]
    relative, tiny = error_of_sum(k), (k + 2) * 2.0**-1074
    exact = x @ y
    absolute = np.abs(x) @ np.abs(y)
    unit = a.unit + b.unit
    has_c = np.zeros(exact.shape, bool)
    if c is not None:
        exact = exact + c
        absolute = absolute + np.abs(c)
        has_c = np.broadcast_to(c != 0, exact.shape)
        of_c = lines_of(np.asarray(c, np.float64)[..., np.newaxis], NONE, -1).unit
        unit = np.minimum(unit, of_c[..., 0])
    absolute = absolute * (1 + 2 * relative) + tiny
    # Sums of multiples of 2^unit are exact up to 2^(unit + 53).
    room = np.ldexp(1.0, np.clip(unit + 53, -1074, 1023))
    slack = np.where(absolute <= room, 0.0, absolute * relative + tiny)
    product = np.minimum(a.largest * b.largest, absolute)
    largest = ((absolute + np.abs(exact)) / 2 + slack) * (1 + 2 * _HALF_ULP)
    exponent = a.exponent + b.exponent
    subnormal = np.maximum(a.subnormal + b.exponent, a.exponent + b.subnormal)
    flushed = np.zeros(exact.shape)
    if a.small is not None:
        flushed = flushed + np.abs(a.small) @ np.abs(y)
    if b.small is not None:
        flushed = flushed + np.abs(x) @ np.abs(b.small)
    flushed = flushed * (1 + 2 * relative)
    product, exponent, subnormal, unit = (
        np.broadcast_to(z, exact.shape) for z in (product, exponent, subnormal, unit)
    )
    return Sizes(
        exact, slack, absolute, largest, product, exponent, subnormal, unit, flushed,
        has_c, (a, b),
    )  # fmt: skip
