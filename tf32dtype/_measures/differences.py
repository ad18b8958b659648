"""How far two arrays of one shape are from each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .error_measures import errors, snr_db
from .format_facts import Facts
from .ulps import NAN_ULPS, distances

Array = NDArray[Any]

#: Elements per piece, so that intermediate arrays stay in a cache.
_AT_A_TIME = 1 << 17
#: Distances are counted with 14 significant bits, so that there are not too many.
_UNCOUNTED_BITS = np.finfo(np.float64).nmant - 13
_KEY_OF_ZERO = (int(np.float64(1).view(np.int64)) >> _UNCOUNTED_BITS) - 1
#: The sum of squares above which squares that underflow do not matter.
_TINY = 1e-200


@dataclass
class Differences:
    """The second array against the first, gathered piece by piece.

    Zeros of either sign are equal, and so are two NaNs.
    """

    #: format whose ulps are counted; None: no ulps, as for integers
    form: Facts | None
    #: False: the elements are bytes of one dtype, such as strings
    is_numeric: bool = True
    elements: int = field(default=0, init=False)
    #: values that are not equal, before any rounding
    differing: int = field(default=0, init=False)
    #: infinite where a NaN meets a number
    largest_ulps: float = field(default=0, init=False)
    _error_squares: Fraction | float = field(default=Fraction(0), init=False)
    _squares: Fraction | float = field(default=Fraction(0), init=False)
    _counts: Array = field(default_factory=lambda: np.zeros(1, np.int64), init=False)

    @property
    def snr(self) -> float:
        """In dB: the second array is the first one and noise.

        Minus infinity if Inf or NaN is on one side only.
        """
        return snr_db(self._error_squares, self._squares)

    @property
    def median_ulps(self) -> float:
        """The median over all elements; the lower one of two in the middle."""
        seen = np.cumsum(self._counts)
        key = int(np.searchsorted(2 * seen, self.elements))
        if key == 0:
            return 0.0
        value = float(np.int64((key + _KEY_OF_ZERO) << _UNCOUNTED_BITS).view("f8"))
        return math.inf if value >= NAN_ULPS else value

    def take(self, first: Array, second: Array) -> None:
        """Take in a piece of both arrays.

        Parameters
        ----------
        first, second : ndarray
            Arrays of one shape, contiguous or small. They have dtypes of numbers, or
            one dtype.
        """
        x, y = first.reshape(-1), second.reshape(-1)
        with np.errstate(all="ignore"):
            for start in range(0, x.size, _AT_A_TIME):
                some = slice(start, start + _AT_A_TIME)
                if self.is_numeric:
                    self._take(x[some], y[some])
                else:
                    self._take_bytes(x[some], y[some])

    def _take(self, first: Array, second: Array) -> None:
        is_complex = "c" in (first.dtype.kind, second.dtype.kind)
        work = np.dtype(np.complex128 if is_complex else np.float64)
        is_one = first.dtype == second.dtype
        x = first.astype(work)
        y = x
        # Compare before int64 and longdouble, which have more digits, become float64.
        unequal = first != second if is_one else None
        if unequal is None or unequal.any():
            y = second.astype(work)
            unequal = x != y if unequal is None else unequal
            if np.isnan(x).any():
                unequal &= ~(np.isnan(x) & np.isnan(y))
        self.elements += x.size
        self._squares = _sum(self._squares, x, np.isfinite)
        differing = int(np.count_nonzero(unequal))
        self.differing += differing
        if differing == 0:
            self._counts[0] += x.size
            return
        error = errors(y, x)
        if is_one and first.dtype.kind in "iu":
            error = np.where(first > second, first - second, second - first)
            error = error.view(f"u{error.itemsize}").astype(np.float64)
        error[~unequal] = 0  # that of two infinities is NaN
        self._error_squares = _sum(self._error_squares, error)
        if self.form is not None:
            self._count(distances(first, second, self.form))

    def _take_bytes(self, first: Array, second: Array) -> None:
        raw = np.dtype((np.void, first.dtype.itemsize))
        x, y = (np.ascontiguousarray(array).view(raw) for array in (first, second))
        self.elements += x.size
        self.differing += int(np.count_nonzero(x != y))

    def _count(self, ulps: NDArray[np.uint64]) -> None:
        largest = int(np.max(ulps))
        found = math.inf if largest == NAN_ULPS else largest
        self.largest_ulps = max(self.largest_ulps, found)
        codes = ulps.astype(np.float64).view(np.int64)
        keys = (codes + (1 << _UNCOUNTED_BITS - 1)) >> _UNCOUNTED_BITS
        keys = np.maximum(keys - _KEY_OF_ZERO, 0)
        counts = np.bincount(keys, minlength=self._counts.size)
        counts[: self._counts.size] += self._counts
        self._counts = counts

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        has_ulps = self.form is not None
        return {
            "elements": self.elements,
            "differing": self.differing,
            "median_ulps": self.median_ulps if has_ulps else None,
            "largest_ulps": self.largest_ulps if has_ulps else None,
            "snr_db": self.snr if self.is_numeric else None,
        }


def _sum(
    total: Fraction | float, x: Array, wanted: Callable[[Array], Array] | None = None
) -> Fraction | float:
    """Add the squares of an array to a sum that neither overflows nor underflows.

    With `wanted`, only of those elements that it selects; without, the sum is infinite
    once an element is infinite.
    """
    found = _squares(x)
    if isinstance(total, Fraction) and _TINY < found < math.inf:
        return total + Fraction(found)
    if wanted is not None:
        x = x[wanted(x)]
    largest = float(np.max(np.abs(x), initial=0))
    if not (isinstance(total, Fraction) and math.isfinite(largest)):
        return math.inf
    if largest == 0:
        return total
    _, exponent = math.frexp(largest)
    half = exponent // 2  # in two steps: 2^1074 is not a float64
    scaled = x * 2.0**-half * 2.0 ** (half - exponent)
    return total + Fraction(_squares(scaled)) * Fraction(4) ** exponent


def _squares(x: Array) -> float:
    """Return the sum of squares, without BLAS, which would wake its threads."""
    return float(np.square(x.view(np.float64)).sum())
