"""The error measures of the commands and the report, and the scales they choose."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .format_facts import Facts

Array = NDArray[Any]

BLOCK_ELEMENTS = 1 << 22  # of a result: 32 MiB in float64


def blocks(m: int, n: int) -> Iterator[slice]:
    """Yield rows of an (m, n) result, so many at a time that blocks stay small."""
    step = max(1, BLOCK_ELEMENTS // n)
    for start in range(0, m, step):
        yield slice(start, min(m, start + step))


def largest_magnitude(x: Array) -> float:
    """Return the largest magnitude."""
    return max(abs(float(x.max())), abs(float(x.min())))


def errors(x: Array, truth: Array) -> Array:
    """Return magnitudes of errors; Inf if x is NaN, which counts as overflow here."""
    error: Array = np.abs(x - truth)
    error[np.isnan(error)] = np.inf
    return error


def largest_relative(error: Array, truth: Array) -> float:
    """Return the largest error relative to the true value; 0 if there is no error."""
    wrong = error > 0
    return float(np.max(error[wrong] / np.abs(truth[wrong]), initial=0.0))


def _saturates(form: Facts) -> bool:
    return not (form.has_infinity or form.has_nan)


def overflows(form: Facts, source: Array, rounded: Array) -> int:
    """Count the numbers that are out of the format's range."""
    if _saturates(form):
        half = form.spacing(Fraction(form.max)) / 2
        limit = float(Fraction(form.max) + half)  # the tie goes up, to an even number
        beyond = np.abs(source) >= limit
    else:
        beyond = np.isfinite(source) & ~np.isfinite(rounded)
    return int(np.count_nonzero(beyond))


def underflows(form: Facts, source: Array, rounded: Array) -> int:
    """Count the nonzero numbers below the smallest normal that are not exact."""
    tiny = (source != 0) & (np.abs(source) < form.smallest_normal)
    got = rounded[tiny].astype(np.float64)
    return int(np.count_nonzero((got != source[tiny]) & np.isfinite(got)))


def squares(x: Array) -> float:
    """Return the sum of squares."""
    return float(np.vdot(x, x).real)


def snr_db(error_squares: Fraction | float, truth_squares: Fraction | float) -> float:
    """Signal-to-noise ratio in dB from the sums of squares of error and truth.

    Infinite if nothing is lost, minus infinity if the error is not finite.
    """
    if error_squares == 0:
        return math.inf
    if (
        truth_squares == 0
        or error_squares == math.inf
        or error_squares != error_squares
    ):
        return -math.inf
    ratio = truth_squares / error_squares
    if isinstance(ratio, Fraction):  # which may be out of range for a float
        return 10 * (math.log10(ratio.numerator) - math.log10(ratio.denominator))
    return 10 * math.log10(ratio)


@dataclass
class Distance:
    """How far results are from the truth, gathered piece by piece."""

    error_squares: float = field(default=0.0, init=False)
    truth_squares: float = field(default=0.0, init=False)
    largest_relative: float = field(default=0.0, init=False)

    @property
    def snr(self) -> float:
        """In dB."""
        return snr_db(self.error_squares, self.truth_squares)

    def gather(self, result: Array, truth: Array) -> Array:
        """Take in a piece, both in float64 and without a scale; its `errors`."""
        error = errors(result, truth)
        self.error_squares += squares(error)
        self.truth_squares += squares(truth)
        worst = largest_relative(error, truth)
        self.largest_relative = max(self.largest_relative, worst)
        return error


def power_of_two_scale(amax: float, form: Facts) -> float:
    """Return the largest power of two that keeps a tensor within a format.

    Parameters
    ----------
    amax : float
        The largest magnitude in the tensor.
    form : Facts
        The format that is to hold the tensor times the scale.

    Returns
    -------
    float
        The scale; 1.0 for a tensor of zeros.
    """
    if amax == 0:
        return 1.0
    # amax = a * 2^i and max = m * 2^j with a, m in [0.5, 1)
    a, i = math.frexp(amax)
    m, j = math.frexp(form.max)
    return math.ldexp(1.0, j - i if a <= m else j - i - 1)
