"""The errors of a product in a precision, gathered sample by sample."""

from __future__ import annotations

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


class Gathered:
    """The sums of a product's errors in a precision.

    Parameters
    ----------
    recipe : Recipe
        The formats, and who multiplies.
    place : Place
        The roles of the operands.
    """

    def __init__(self, recipe: Recipe, place: Place) -> None:
        self.recipe = recipe
        left, right = recipe.of(place.left), recipe.of(place.right)
        self._way = way_of(left, right, OWN)
        self._on_unit = way_of(left, right, recipe.unit)
        #: with only the first, and with only the second operand rounded
        self._one_sided: list[Way] = []
        if not (left.is_split or right.is_split):
            pairs = ((left, UNROUNDED), (UNROUNDED, right))
            self._one_sided = [way_of(*pair, OWN) for pair in pairs]
        self.truth: float = 0.0
        #: squared errors in this package's sums, in the unit's, and without outliers
        self.error: float = 0.0
        self.unit_error: float = 0.0
        self.rest: float = 0.0
        self.one_sided: list[float] = [0.0, 0.0]
        #: of each operand the counts of `RangeLost`
        self.lost: Array = np.zeros((2, 4), int)

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
            self.lost[i] += _lost((sample.a, sample.b)[i], self._way)

    def result(self, is_swapped: bool) -> ProductErrors:
        """Return the errors; with `is_swapped` the second operand is the first."""
        one_sided: list[float | None] = [None, None]
        lost: list[RangeLost | None] = [None, None]
        if self._one_sided:
            one_sided = [snr_db(x, self.truth) for x in self.one_sided]
            lost = [RangeLost(*map(int, counts)) for counts in self.lost]
        first, second = (1, 0) if is_swapped else (0, 1)
        return ProductErrors(
            snr_db(self.unit_error, self.truth),
            one_sided[first],
            one_sided[second],
            1 - self.rest / self.error if 0 < self.error < np.inf else None,
            lost[first],
            lost[second],
        )


def _lost(operand: Operand, way: Way) -> list[int]:
    """Return the counts of `RangeLost`."""
    rounded = operand.rounded(way)
    x, values = operand.measured, values_of(rounded)
    is_clipped = _is_clipped(x, rounded, way.formats[operand.which], operand.which)
    lost = (x != 0, (x != 0) & (values == 0), ~np.isfinite(values), is_clipped)
    return [int(np.count_nonzero(one)) for one in lost]


def _is_clipped(x: Array, rounded: Rounded, format: OperandFormat, which: int) -> Any:
    """Return whether values are more than half a step above their block's largest."""
    found = block_formats.get(format.name)
    if found is None or found.levels > 1:
        return False
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
    return np.abs(lines, dtype=np.float64) > limits[:, : lines.shape[1]]
