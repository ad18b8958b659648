"""Rows of numbers for exact products: their bounds, and their slices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .. import _core

Array = NDArray[Any]

U = 2.0**-53

#: Rows whose numbers are multiples of 2^-480 and at most 2^400 are used as they are: no
#: product or sum of products leaves float64's range.
_LEAST, _MOST = 2.0**-480, 2.0**400
#: Other rows are multiplied by powers of two, to numbers of at most 1. Then they are
#: rounded to multiples of 2^-400.
_KEPT = 2.0**-400


class Rows(NamedTuple):
    """Rows of an operand, and their facts."""

    #: the rows as given, float32 or float64, with their special values
    given: Array
    #: the rows times 2^-exponents, except for `lost`; 0 for special values
    operand: Array
    #: upper bounds of the rows' norms, `lost` included
    norms: Array
    #: norms in units of the rows' last bits; Inf for rows that lost something
    ratios: Array
    #: powers of two by which rows were divided; None: none
    exponents: Array | None
    #: upper bounds of the norms of lost parts; None: no row lost anything
    lost: Array | None
    #: whether a row has special values; None: none has
    special: Array | None
    #: the largest norm
    most: float

    @classmethod
    def of(cls, given: Array) -> Self:
        """Describe the rows of a matrix of float32 or float64."""
        values, special = given, None
        (norms, ratios, unit, largest), extremes = _core.exact_facts(given)
        if extremes[2] == np.inf:
            special = ~np.isfinite(largest)
            values = np.where(np.isfinite(given), given, 0)
            (norms, ratios, unit, largest), extremes = _core.exact_facts(values)
        exponents = lost = None
        most, least_unit, most_magnitude = extremes
        if most_magnitude > _MOST or least_unit < _LEAST:
            exponents = np.frexp(largest)[1].astype(np.int64)
            values = np.ldexp(values, -exponents[:, None])
            small = np.abs(values) < _KEPT * 2.0**50
            much = 1.5 * 2.0**52 * _KEPT
            values = np.where(small, (values + much) - much, values)
            unscaled = np.frexp(np.where(np.isinf(unit), 1, unit))[1] - 1
            is_cut = ~np.isinf(unit) & (unscaled - exponents < -400)
            lost = np.where(is_cut, _KEPT * (1 + values.shape[1]), 0.0)
            (norms, ratios, _, _), _ = _core.exact_facts(values)
            norms += lost
            ratios[lost > 0] = most = np.inf
        return cls(given, values, norms, ratios, exponents, lost, special, most)

    def ready_for(self, elements: int) -> Self:
        """Return the rows, in contiguous float64 if many elements need them."""
        given, m = self.given, len(self.given)
        is_contiguous = given.strides[1] == given.itemsize
        if elements <= m and (4 * elements <= m or is_contiguous):
            return self
        whole = _core.exact_load(given)
        is_same = self.operand is given
        operand = whole if is_same else _core.exact_load(self.operand)
        return self._replace(given=whole, operand=operand)

    @property
    def k(self) -> int:
        """The number of terms of a sum."""
        return int(self.given.shape[1])


#: The k of a block, and the most blocks: shorter sums allow slices with more bits.
_DEPTH, _MOST_BLOCKS = 1024, 8


class Slices:
    """Rows as sums of slices with few bits, whose products are exact.

    Each row is cut into blocks along k. Slice s of a block, counted from 1, has
    multiples of 2^(top - s * bits), of magnitudes of at most 2^(top - 1 - (s - 1) *
    bits).
    """

    def __init__(self, rows: Rows, bits: int | None = None) -> None:
        k = rows.k
        self.blocks = min(-(-max(k, 1) // _DEPTH), _MOST_BLOCKS)
        #: the k of a block
        self.depth = -(-k // self.blocks)
        missing = self.blocks * self.depth - k
        whole = _core.exact_load(rows.operand)
        whole = np.pad(whole, ((0, 0), (0, missing))) if missing else whole
        self._rest = whole.reshape(-1, self.depth)
        (norms, _, _, largest), _ = _core.exact_facts(self._rest)
        self._tops = np.frexp(largest)[1].astype(np.int64) + 1
        self._scale = np.where(rows.norms > 0, rows.norms, 1.0)
        #: the largest norm of a block in units of 2^top
        self.density = float(np.ldexp(norms, -self._tops).max(initial=0))
        #: the bits of a slice
        self.bits = bits or 0
        #: the slices, each with rows of all blocks
        self.parts: list[Array] = []
        #: the norms of the rows of each slice
        self.norms: list[Array] = []
        #: the norms of the rest, which no slice has
        self.rests = rows.norms
        #: the largest norm of a slice's block in its unit
        self.most = 0.0

    def share(self, number: int) -> float:
        """Return the largest norm of a slice, relative to the norm of its row."""
        return float(np.max(self.norms[number] / self._scale, initial=0.0))

    def cut_until(self, smallest: float, most: int) -> None:
        """Cut slices until the rest is a small share of each row."""
        while (self.rests > smallest * self._scale).any() and len(self.parts) < most:
            exponents = self._tops - (len(self.parts) + 1) * self.bits
            part = np.empty(self._rest.shape, self._dtype(exponents))
            norms = _core.exact_slice(self._rest, part, exponents)
            counts = np.ldexp(norms[:, 0], -exponents)
            self.most = max(self.most, float(counts.max(initial=0)))
            squares = (norms**2).reshape(-1, self.blocks, 2).sum(1) * (1 + 2.0**-40)
            whole, self.rests = np.sqrt(squares).T.copy()
            self.parts.append(part.reshape(-1, self.blocks * self.depth))
            self.norms.append(whole)

    def _dtype(self, exponents: Array) -> type[np.floating[Any]]:
        """Return float32 if it holds a slice of multiples of 2^exponents."""
        is_narrow = self.bits <= 25 and exponents.min(initial=0) >= -149
        is_narrow &= exponents.max(initial=0) + self.bits <= 127
        return np.float32 if is_narrow else np.float64

    def products_are_exact(self, other: Slices) -> bool:
        """Return whether all products of slices are sums of integers up to 2^53."""
        bits = most_bits(self.depth)
        return self.bits <= bits or self.most * other.most <= 2.0**53


def most_bits(k: int) -> int:
    """Return the bits of slices for which products of k terms are always exact.

    Magnitudes are at most 2^(bits - 1) units, and sums at most 2^53.
    """
    return (55 - math.ceil(math.log2(max(k, 1)))) // 2


def likely_bits(one: Slices, other: Slices) -> int:
    """Return the bits for which products of slices are exact for ordinary numbers.

    The bound is the product of the norms. Numbers of slices after the first one are
    usually spread evenly: their norm is sqrt(k / 12) * 2^bits.
    """
    even = 0.31 * math.sqrt(max(one.depth, 1))
    norms = max(one.density, even) * max(other.density, even)
    return max(most_bits(one.depth), int((53 - math.log2(norms)) / 2))
