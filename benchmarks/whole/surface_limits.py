"""Set how slow a call may be: its time over NumPy's on float32 in the same layout."""

from __future__ import annotations

from typing import NamedTuple

SMALL = 256  # elements; up to this many, the fixed cost of a call dominates
CALL = 1.2  # the lowest limit of such calls
PEER = 1.05  # times ml_dtypes' time; smaller differences are noise


class Limit(NamedTuple):
    """The limits of a kind of call, one per group of formats."""

    bfloat16: float
    narrow: float  # fp8, fp6 and fp4
    tf32: float

    def of(self, name: str) -> float:
        """Return the limit of the named format."""
        return getattr(self, name, self.narrow)


LIMITS = {
    "arithmetic, comparison, clip, where": Limit(1, 1, 1.1),
    "sqrt, square, reciprocal": Limit(1, 1, 1.1),
    "other unary functions": Limit(1, 1, 1.6),
    "remainder, power, hypot, ...": Limit(3, 1, 4),
    "reductions, cumulative sums": Limit(1, 1, 1.1),
    "sums on outer axes": Limit(2, 2, 2),
    "casts": Limit(1.1, 1.1, 1.2),
    "copies, indexing": Limit(1.1, 1.1, 1.1),
    "sorting, searching": Limit(1, 1, 1),
    "median, partition": Limit(8, 8, 8),
    "dot of two vectors": Limit(0.8, 0.8, 0.9),
    "matrix and vector, @": Limit(1, 1, 1.1),
    "matrices, @": Limit(0.5, 0.5, 1),
    "matrices of 128, @": Limit(1 / 1.9, 1 / 1.9, 1),
    "matrices of 64, @": Limit(1 / 1.3, 1 / 1.3, 1),
    "256 times matrices of 64, @": Limit(1 / 1.5, 1 / 1.5, 1),
    "np.dot, inner, ... of matrices": Limit(1, 1, 1.1),
    "np.dot, inner, ... of matrix and vector": Limit(1, 1, 1.1),
}


def limit(kind: str, size: int, name: str) -> float:
    """Return the limit of a call on `size` elements of the named format."""
    found = LIMITS[kind].of(name)
    return max(found, CALL) if size <= SMALL else found
