"""Results with wrong elements, and how well a hypothesis explains a sample of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .product import Product, Values

Array = NDArray[Any]

#: Wrong rows and columns that hypotheses are tried on.
SIDE = 64
#: Rows and columns that refute most hypotheses.
_FEW = 8
#: The least share of wrong elements that a fault of parts of the operands explains.
_POSSIBLE = 0.3


class Fit(NamedTuple):
    """How well a hypothesis explains the wrong elements of a sample."""

    explains: float
    left: float


@dataclass(frozen=True)
class Case:
    """A matrix of results with wrong elements, and a sample of these."""

    #: the product, and its results
    product: Product
    d: Array
    #: share of its bound that each result is off
    shares: Array
    #: the product from which rows and columns were chosen, and these
    whole: Product
    rows: Array
    columns: Array
    #: operands before they were rounded to the formats of the unit
    given: tuple[Array, Array]

    @cached_property
    def wrong(self) -> Array:
        """Which elements are beyond their bound."""
        found: Array = self.shares > 1
        return found

    @cached_property
    def sample(self) -> tuple[Array, Array]:
        """Rows and columns that have wrong elements."""
        return self._lines(SIDE)

    def _lines(self, side: int) -> tuple[Array, Array]:
        rows = spread(np.flatnonzero(self.wrong.any(1)), side)
        columns = spread(np.flatnonzero(self.wrong[rows].any(0)), side)
        return rows, columns

    def finite(self) -> Case:
        """Return the case without the elements that are Inf or NaN."""
        odd = ~np.isfinite(self.d.astype(np.float64))
        return replace(self, shares=np.where(odd, 0, self.shares))

    def part(self, rows: Array, columns: Array) -> tuple[Values, Array, Array]:
        """Return values and results of rows and columns, and which are wrong."""
        values = self.product.part(rows, columns).values()
        return values, self.d[rows][:, columns], self.wrong[rows][:, columns]

    def explains(self, changed: Product | None) -> Fit:
        """Return how well a change of the whole product explains the sample."""
        if changed is None or changed.shape != self.whole.shape:
            return Fit(0.0, 1.0)
        changed = replace(changed, exponents=None)  # those of other operands
        fit = Fit(0.0, 1.0)
        for side in (_FEW, SIDE):  # few elements refute most hypotheses
            rows, columns = self._lines(side)
            part = changed.part(self.rows[rows], self.columns[columns])
            fit = self.fit(part.values(), rows, columns)
            if fit.explains < _POSSIBLE:
                break
        return fit

    def fit(
        self, values: Values, rows: Array | None = None, columns: Array | None = None
    ) -> Fit:
        """Return how well values explain the wrong elements of rows and columns."""
        if rows is None or columns is None:
            rows, columns = self.sample
        wrong = self.wrong[rows][:, columns]
        after = values.shares(self.d[rows][:, columns])[wrong]
        before = self.shares[rows][:, columns][wrong]
        if not len(after):
            return Fit(0.0, 1.0)
        left = np.median(after) / max(float(np.median(before)), 1e-300)
        return Fit(float((after <= 1).mean()), float(left))


def spread(indices: Array, count: int) -> Array:
    """Return up to `count` of the indices, at equal distances."""
    if len(indices) <= count:
        return indices
    found: Array = indices[np.arange(count) * len(indices) // count]
    return found
