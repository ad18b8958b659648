"""How slow a call may be: its time over NumPy float32's of the same call and layout."""

from __future__ import annotations

from typing import NamedTuple

SMALL = 256  # elements up to which the cost of a call counts, not that of the elements
CALL = 1.2
PEER = 1.05  # times ml_dtypes' time; less than that is noise


class Limit(NamedTuple):
    """The limits of a kind of call, a group of formats each."""

    bfloat16: float
    narrow: float  # fp8, fp6 and fp4
    tf32: float

    def of(self, name: str) -> float:
        """Of the named format."""
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
    """The limit of a case of so many elements in the named format."""
    found = LIMITS[kind].of(name)
    return max(found, CALL) if size <= SMALL else found
