"""The loss of precision when a tensor is converted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._measures.error_measures import Distance

Array = NDArray[Any]

# The number of elements per step: few enough that temporary arrays stay in a cache and
# that OpenBLAS does not start threads.
_AT_A_TIME = 1 << 13


@dataclass
class Loss(Distance):
    """The loss of a tensor, gathered in pieces; NaN and Inf are counted separately."""

    beyond: int = 0
    to_zero: int = 0
    not_finite: int = 0
    #: whether elements have new codes while no value has changed
    recoded: bool = False

    def take(self, truth: Array, stored: Array, greatest: float) -> None:
        """Add the loss of some values, of any shape.

        `truth` has the values before the conversion, `stored` those after it, in the
        same order. `greatest` is the largest finite value of the format; it is Inf for
        formats with scales, which adapt to the values.
        """
        exact, found = truth.reshape(-1), stored.reshape(-1)
        with np.errstate(all="ignore"):
            for start in range(0, exact.size, _AT_A_TIME):
                some = slice(start, start + _AT_A_TIME)
                self._take(
                    exact[some].astype(np.float64),
                    found[some].astype(np.float64),
                    greatest,
                )

    def _take(self, exact: Array, found: Array, greatest: float) -> None:
        finite = np.isfinite(exact)
        if not finite.all():
            self.not_finite += exact.size - int(np.count_nonzero(finite))
            exact, found = exact[finite], found[finite]
        if exact.size == 0:
            return
        self.gather(found, exact)
        self.beyond += int(np.count_nonzero(np.abs(exact) > greatest))
        self.to_zero += int(np.count_nonzero((found == 0) & (exact != 0)))

    def record(self) -> dict[str, Any]:
        """Return the loss as a dictionary, for JSON output and for the journal."""
        return {
            "snr_db": self.snr,
            "largest_relative_error": self.largest_relative,
            "out_of_range": self.beyond,
            "to_zero": self.to_zero,
            "not_finite": self.not_finite,
            "recoded": self.recoded,
        }
