"""The errors of a product in a precision, gathered sample by sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...._measures.error_measures import errors, snr_db, squares
from ...._measures.format_facts import facts
from ....blocks.formats import elements as block_elements
from ....blocks.formats import formats as block_formats
from ..hook.layers import Place
from ..hook.multiply import Rounded, Way, values_of, way_of
from ..hook.operand_format import UNROUNDED, OperandFormat
from ..hook.recipe import Recipe
from ..hook.unit import OWN
from .rows import ProductErrors, RangeLost
from .sampling import Operand, Sample

Array = NDArray[Any]


@dataclass
class _Lost:
    """Counts of `RangeLost`."""

    values: int = 0
    zeros: int = 0
    infinities: int = 0
    clipped: int = 0

    def take(self, operand: Operand, way: Way) -> None:
        rounded = operand.rounded(way)
        x, values = operand.measured, values_of(rounded)
        is_nonzero = x != 0
        self.values += int(np.count_nonzero(is_nonzero))
        self.zeros += int(np.count_nonzero(is_nonzero & (values == 0)))
        self.infinities += int(np.count_nonzero(~np.isfinite(values)))
        self.clipped += _clipped(x, rounded, way.formats[operand.which], operand.which)

    def result(self) -> RangeLost:
        return RangeLost(self.values, self.zeros, self.infinities, self.clipped)


@dataclass
class Gathered:
    """The sums of a product's errors in a precision.

    Parameters
    ----------
    recipe : Recipe
        The formats, and who multiplies.
    place : Place
        The roles of the operands.
    """

    recipe: Recipe
    place: Place
    truth: float = field(default=0.0, init=False)
    #: squared errors with both operands rounded, in this package's sums and the unit's
    error: float = field(default=0.0, init=False)
    unit_error: float = field(default=0.0, init=False)
    #: with one operand rounded
    one_sided: list[float] = field(default_factory=lambda: [0.0, 0.0], init=False)
    #: of the product without outliers
    rest: float = field(default=0.0, init=False)
    lost: tuple[_Lost, _Lost] = field(
        default_factory=lambda: (_Lost(), _Lost()), init=False
    )

    def __post_init__(self) -> None:
        left, right = (self.recipe.of(x) for x in (self.place.left, self.place.right))
        self._way = way_of(left, right, OWN)
        self._on_unit = way_of(left, right, self.recipe.unit)
        rows = (left.precision, right.precision)
        self._is_split = any(row is not None and row.components > 1 for row in rows)
        self._one_sided: list[Way] = []
        if not self._is_split:
            pairs = ((left, UNROUNDED), (UNROUNDED, right))
            self._one_sided = [way_of(*pair, OWN) for pair in pairs]

    def take(
        self, sample: Sample, rest: Sample, truth: Array, truth_of_rest: Array
    ) -> None:
        """Take in a sample, and the same without outliers."""
        of = np.ix_(sample.a.finite, sample.b.finite)
        exact = truth[of]

        def error(sample: Sample, way: Way, exact: Array) -> float:
            return squares(errors(sample.product(way)[of].astype(np.float64), exact))

        self.truth += squares(exact)
        own = error(sample, self._way, exact)
        self.error += own
        is_own = self._on_unit == self._way
        self.unit_error += own if is_own else error(sample, self._on_unit, exact)
        self.rest += error(rest, self._way, truth_of_rest[of])
        for i, way in enumerate(self._one_sided):
            self.one_sided[i] += error(sample, way, exact)
            self.lost[i].take((sample.a, sample.b)[i], self._way)

    def result(self, is_swapped: bool) -> ProductErrors:
        """Return the errors; with `is_swapped` the second operand is the first."""
        one_sided = [snr_db(x, self.truth) for x in self.one_sided]
        lost = [x.result() for x in self.lost]
        order = (1, 0) if is_swapped else (0, 1)
        share = None
        if 0 < self.error < np.inf:
            share = 1 - self.rest / self.error
        first, second = (None if self._is_split else one_sided[i] for i in order)
        first_lost, second_lost = (None if self._is_split else lost[i] for i in order)
        return ProductErrors(
            snr_db(self.unit_error, self.truth),
            first,
            second,
            share,
            first_lost,
            second_lost,
        )


def _clipped(x: Array, rounded: Rounded, format: OperandFormat, which: int) -> int:
    """Count values that are more than half a step above their block's largest value."""
    found = block_formats.get(format.name)
    if found is None or found.levels > 1:
        return 0
    element = block_elements[found.element]
    if element.is_integer:
        half = 0.5 / (1 << element.fraction_bits)
    else:
        half = float(facts(element.name).spacing(Fraction(element.max)) / 2)
    lines = x if which == 0 else x.T
    scales = rounded.elements.block_scales
    limits = np.repeat(scales, rounded.elements.block_size, axis=1) * (
        element.max + half
    )
    beyond = np.abs(lines, dtype=np.float64) > limits[:, : lines.shape[1]]
    return int(np.count_nonzero(beyond))
