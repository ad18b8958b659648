"""The exponents of values: their range, and the count of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class Exponents:
    """Counts of values by exponent, gathered array by array.

    A value of magnitude 2^e up to, but without, 2^(e+1) has the exponent e, also if it
    is subnormal. Real and imaginary parts count as one value each.
    """

    counts: Counter[int] = field(default_factory=Counter)
    zeros: int = 0
    infinities: int = 0
    nans: int = 0

    @property
    def values(self) -> int:
        """The count of all values."""
        return self.counts.total() + self.zeros + self.infinities + self.nans

    @property
    def smallest(self) -> int | None:
        """The smallest exponent of finite nonzero values; None: there are none."""
        return min(self.counts, default=None)

    @property
    def largest(self) -> int | None:
        """The largest exponent of finite nonzero values; None: there are none."""
        return max(self.counts, default=None)

    def gather(self, x: Array) -> None:
        """Add the values of an array."""
        for part in real_parts(x):
            self.zeros += int(np.count_nonzero(part == 0))
            self.infinities += int(np.count_nonzero(np.isinf(part)))
            self.nans += int(np.count_nonzero(np.isnan(part)))
            _, exponents = np.frexp(part[np.isfinite(part) & (part != 0)])
            found, counts = np.unique(exponents, return_counts=True)
            for exponent, count in zip(found.tolist(), counts.tolist(), strict=True):
                self.counts[exponent - 1] += count

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "smallest": self.smallest,
            "largest": self.largest,
            "zeros": self.zeros,
            "infinities": self.infinities,
            "nans": self.nans,
            "values": self.values,
            "counts": {str(e): self.counts[e] for e in sorted(self.counts)},
        }


def real_parts(x: Array) -> list[Array]:
    """Return the array itself, or the real and imaginary parts of a complex one."""
    return [x.real, x.imag] if np.iscomplexobj(x) else [x]
