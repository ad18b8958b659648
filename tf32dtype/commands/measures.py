"""What several commands measure and choose."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .facts import Facts


def snr_db(error_squares: float, truth_squares: float) -> float:
    """Signal-to-noise ratio in dB from the sums of squares of error and truth.

    Infinite if nothing is lost, minus infinity if the error is not finite.
    """
    if error_squares == 0:
        return math.inf
    if truth_squares == 0 or not math.isfinite(error_squares):
        return -math.inf
    return 10 * math.log10(truth_squares / error_squares)


def power_of_two_scale(x: NDArray[Any], form: Facts) -> float:
    """The largest power of two by which all of x stays within the format.

    Parameters
    ----------
    x : numpy.ndarray
        Finite numbers.
    form : Facts
        The format that is to hold `x * scale`.

    Returns
    -------
    float
        The scale; 1.0 if x is empty or all zeros.
    """
    amax = float(np.max(np.abs(x), initial=0))
    if amax == 0:
        return 1.0
    # amax = a * 2^i and max = m * 2^j with a, m in [0.5, 1)
    a, i = math.frexp(amax)
    m, j = math.frexp(form.max)
    return math.ldexp(1.0, j - i if a <= m else j - i - 1)
