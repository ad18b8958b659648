"""Bounds of the rounding errors of a unit, whatever order it adds in.

A library divides k into parts, adds groups of products to the accumulator of each
part, and adds the sums of the parts in float32. The bounds hold for any assignment of
the k to parts and groups, for any order, and for any tree of additions. All groups have
the unit's number of products, but the last one of a part may have fewer. If parts end
within a group, there are at most `PARTS` of them, and all but one have `LEAST_PART` k
or more.

See :doc:`/concepts/error_bounds`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..tensor_core.block_scaled import BlockScaled
from ..tensor_core.models import Aligned, Model
from ..tensor_core.rounded import Rounded
from .sizes import NONE, Sizes, floor_log2

Array = NDArray[Any]

#: The most parts that k is divided into, and the least k of a part, unless all parts
#: are whole groups.
PARTS, LEAST_PART = 64, 16


class Format(NamedTuple):
    """A format that sums are rounded to."""

    #: fraction bits
    kept: int
    #: exponent of the smallest normal number
    least: int
    #: the largest finite number
    largest: float

    def quantum(self, x: Array) -> Array:
        """Return the distance of numbers whose magnitude is at most x."""
        exponents = np.maximum(floor_log2(x), self.least) - self.kept
        found: Array = np.ldexp(1.0, exponents)
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of NumPy with these fraction bits."""
        return np.dtype({10: np.float16, 23: np.float32, 52: np.float64}[self.kept])

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> Format:
        """Return the format of a dtype."""
        facts = np.finfo(dtype)
        return cls(int(facts.nmant), int(facts.minexp), float(facts.max))


FLOAT16, FLOAT32, FLOAT64 = (
    Format.of(np.dtype(x)) for x in (np.float16, np.float32, np.float64)
)
OF_ACCUMULATOR = {"float16": FLOAT16, "float32": FLOAT32, "float64": FLOAT64}


class Bound(NamedTuple):
    """A bound of the error of sums, and of the magnitude of all partial sums.

    The error holds if no partial sum overflows.
    """

    error: Array
    reach: Array


class _Chains(NamedTuple):
    """How often sums are rounded: the groups of all parts, and the sums of parts."""

    groups: int
    parts: int

    @classmethod
    def of(cls, k: int, depth: int) -> _Chains:
        groups = -(-k // depth)
        return cls(groups, min(max(groups, -(-k // LEAST_PART)), PARTS))

    @property
    def total(self) -> int:
        """The number of groups if each part has one more."""
        return self.groups + self.parts

    def errors(self, first: Array, later: Array, addition: Array, c: Array) -> Array:
        """Return the sum of all errors.

        Parameters
        ----------
        first, later : ndarray
            Error of a part's first group, and of another group.
        addition : ndarray
            Error of an addition of two sums of parts.
        c : ndarray
            Whether an addend begins a part, or is added at the end.
        """
        n, p = self
        some = max(n - 1, 0) * later + p * first + max(p - 1, 0) * addition
        each = n * first + max(n - 1, 0) * addition
        found: Array = np.maximum(some, each) + np.where(c, later + addition, 0)
        return found


def bound_of_unit(model: Model | BlockScaled, s: Sizes, k: int) -> Bound:
    """Return the bound of a unit's model for sums of k products."""
    if isinstance(model, BlockScaled):
        found = _aligned(model, s, k)
    elif isinstance(model, Aligned):
        found = _emulated(model, s, k) if model.emulated else _aligned(model, s, k)
    else:
        assert isinstance(model, Rounded)
        if model.accumulator == "float64":
            found = bound_of_chain(s, k, FLOAT64)
        elif model.arithmetic == "two stages":
            found = _two_stages(model, s, k)
        else:
            found = _rounded(model, s, k)
    return found


def bound_of_chain(s: Sizes, k: int, form: Format, *, exact: bool = False) -> Bound:
    """Return the bound of additions in a format, with or without a fused product.

    Parameters
    ----------
    s : Sizes
        The sizes of the products and sums.
    k : int
        The number of products.
    form : Format
        The format that products and sums are rounded to.
    exact : bool
        Whether products are exact in the format, apart from subnormal ones.
    """
    u = 2.0 ** -(form.kept + 1)
    tiny = (
        np.ldexp(1.0, form.least - form.kept - 1) if form.least > -1022 else 2.0**-1074
    )
    reach = s.largest * _growth(k + 2, u) + (k + 1) * tiny
    steps = np.where(s.has_c, k + 1, k) * form.quantum(reach) / 2
    of_products = k * tiny + (0 if exact else u * s.absolute)
    error = np.where(_is_exact(s, form.kept, form.least), 0, steps + of_products)
    return Bound(error, reach)


def _growth(additions: int, u: float) -> float:
    """Return the most by which so many roundings to nearest raise a sum."""
    return float(np.exp(additions * u * 1.001))


def _is_exact(s: Sizes, kept: int, least: int) -> Array:
    """Return where every sum of terms is a number of the format: nothing is rounded."""
    room = np.ldexp(1.0, np.clip(s.unit + kept + 1, -1074, 1023))
    found: Array = (s.largest <= room) & (s.unit >= least - kept)
    return found


def _fewest(s: Sizes, count: int, reach: Array) -> Array:
    """Return the largest magnitude of a sum of `count` products."""
    return np.minimum(count * s.product * (1 + 2.0**-20), reach)


# -- aligned sums ----------------------------------------------------------------------


def _cut(
    s: Sizes, model: Aligned | BlockScaled, most: Array, least: int
) -> tuple[Array, Array, Array]:
    """Return the errors of aligning all products, and of aligning an accumulator.

    The last array tells where no bit is lost. `most` is the largest magnitude of a sum
    that products are aligned with. A subnormal accumulator has the exponent `least`.
    """
    floor = NONE if model.floor is None else model.floor
    top = np.maximum(np.maximum(floor_log2(most), s.aligned), max(floor, least))
    unit = top - model.fraction
    products = s.count_below(unit) * np.ldexp(1.0, unit)
    of_products = np.maximum(s.aligned, floor) - model.fraction
    of_accumulator = np.ldexp(1.0, np.maximum(of_products, -1074))
    return products, of_accumulator, s.unit >= unit


def _aligned(model: Aligned | BlockScaled, s: Sizes, k: int) -> Bound:
    form = OF_ACCUMULATOR[model.accumulator]._replace(kept=model.kept)
    nearest = model.rounding == "ties_to_even"
    chains = _Chains.of(k, model.depth)
    u = 2.0 ** -(form.kept + 1) if nearest else 2.0**-24
    tiny = np.ldexp(1.0, form.least - form.kept - 1) if nearest else 0.0
    reach = s.largest * _growth(2 * chains.total + 2, u) + chains.total * tiny
    few = _fewest(s, model.depth, reach)
    first, later = (form.quantum(x) / (2 if nearest else 1) for x in (few, reach))
    if isinstance(model, Aligned) and model.cut_first is not None:
        cut = form._replace(kept=model.cut_first)
        first, later = first + cut.quantum(few), later + cut.quantum(reach)
    addition = FLOAT32.quantum(reach) / 2
    products, accumulator, whole = _cut(s, model, reach, form.least)
    error = chains.errors(first, later + accumulator, addition, s.has_c) + products
    exact = _is_exact(s, form.kept, form.least) & whole
    return Bound(np.where(exact, 0, error), reach)


def _emulated(model: Aligned, s: Sizes, k: int) -> Bound:
    """Return the bound of instructions that are two float16 groups and an addition."""
    form = OF_ACCUMULATOR[model.accumulator]
    nearest = model.rounding == "ties_to_even"
    chains = _Chains.of(k, model.instruction_depth)
    u = 2.0 ** -(form.kept + 1)
    tiny = np.ldexp(1.0, form.least - form.kept - 1)
    reach = s.largest * _growth(4 * chains.total + 2, u) + 3 * chains.total * tiny
    few = _fewest(s, model.instruction_depth, reach)
    products, accumulator, whole = _cut(s, model, few, form.least)
    group = form.quantum(few) / (2 if nearest else 1)
    later = 2 * group + accumulator + form.quantum(reach) / 2
    error = chains.errors(later, later, form.quantum(reach) / 2, s.has_c) + products
    exact = _is_exact(s, form.kept, form.least) & whole
    return Bound(np.where(exact, 0, error), reach)


# -- other units -----------------------------------------------------------------------


def _rounded(model: Rounded, s: Sizes, k: int) -> Bound:
    """Return the bound of fused and stepwise sums, to nearest or to odd."""
    form = FLOAT32
    is_chain = model.lanes == 0 and model.arithmetic == "fused"
    per_step = model.instruction_depth if model.lanes else model.depth
    chains = _Chains.of(k, per_step)
    # The roundings before each addition to the accumulator: of the chains and their
    # sums, or of the products and their sums. The last ones are exact in float32, or
    # subnormal.
    inner = 0
    if model.lanes:
        inner = -(-per_step // model.depth) + model.lanes - 1
    elif model.arithmetic == "stepwise":
        inner = model.depth - 1
    share = 1.0 if model.rounding == "to_odd" else 0.5
    lost = 2.0**-126 if model.flushes_results else 2.0**-149
    times = (inner + 2) * chains.total + 2 + k
    tiny = times * lost
    reach = s.largest * _growth(times, share * 2.0**-22) + tiny
    few = _fewest(s, per_step, reach)
    before = inner * share * form.quantum(few)
    later = before + share * form.quantum(reach)
    first = share * form.quantum(few) if is_chain else later
    error = chains.errors(first, later, form.quantum(reach) / 2, s.has_c) + tiny
    exact = _is_exact(s, form.kept, form.least)
    if model.flushed != "kept":
        error = error + s.flushed
    if model.flushed != "kept" or model.flushes_results:
        exact &= (s.flushed == 0) & (s.unit >= -126)
    return Bound(np.where(exact, 0, error), reach)


def _two_stages(model: Rounded, s: Sizes, k: int) -> Bound:
    """Return the bound of products that are truncated and added, then rounded down."""
    form = FLOAT32
    chains = _Chains.of(k, model.depth)
    # Rounding downward raises the magnitude of negative sums.
    reach = s.largest
    for _ in range(3):
        top = np.maximum(np.maximum(floor_log2(reach), s.aligned), -126)
        unit = np.ldexp(1.0, top - 24)
        grown = s.largest * _growth(2 * chains.total + 2, 2.0**-22)
        reach = grown + 4 * chains.total * unit
    few = _fewest(s, model.depth, reach) + 4 * unit
    # Errors of the sum of each lane, of the products, and of the accumulator.
    of_products = np.maximum(s.aligned, -126)
    steps = (model.lanes + 2) * np.ldexp(1.0, of_products - 24)
    downward = steps + np.ldexp(1.0, top - 30)
    first = downward + form.quantum(few) / 2
    later = downward + form.quantum(reach) / 2
    products = s.count_below(of_products - 24) * np.ldexp(1.0, of_products - 24)
    error = chains.errors(first, later, form.quantum(reach) / 2, s.has_c) + products
    exact = _is_exact(s, form.kept, form.least) & (s.unit >= top - 24)
    return Bound(np.where(exact, 0, error), reach)
