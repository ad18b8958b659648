"""The exponents of numbers: their range, and how many have each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class Exponents:
    """Counts of numbers by exponent, gathered array by array.

    A number of magnitude 2^e up to, but without, 2^(e+1) has the exponent e, also if it
    is subnormal. Real and imaginary parts are a number each.
    """

    counts: Counter[int] = field(default_factory=Counter)
    zeros: int = 0
    infinities: int = 0
    nans: int = 0

    @property
    def numbers(self) -> int:
        """All that were gathered."""
        return self.counts.total() + self.zeros + self.infinities + self.nans

    @property
    def least(self) -> int | None:
        """Of the finite numbers that are not zero; None: there are none."""
        return min(self.counts, default=None)

    @property
    def greatest(self) -> int | None:
        """Likewise."""
        return max(self.counts, default=None)

    def gather(self, x: Array) -> None:
        """Take in the numbers of an array."""
        for part in real_parts(x):
            self.zeros += int(np.count_nonzero(part == 0))
            self.infinities += int(np.count_nonzero(np.isinf(part)))
            self.nans += int(np.count_nonzero(np.isnan(part)))
            _, exponents = np.frexp(part[np.isfinite(part) & (part != 0)])
            found, counts = np.unique(exponents, return_counts=True)
            for exponent, count in zip(found.tolist(), counts.tolist(), strict=True):
                self.counts[exponent - 1] += count

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "least": self.least,
            "greatest": self.greatest,
            "zeros": self.zeros,
            "infinities": self.infinities,
            "nans": self.nans,
            "numbers": self.numbers,
            "counts": {str(e): self.counts[e] for e in sorted(self.counts)},
        }


def real_parts(x: Array) -> list[Array]:
    """The array itself; of complex numbers the real and the imaginary parts."""
    return [x.real, x.imag] if np.iscomplexobj(x) else [x]
