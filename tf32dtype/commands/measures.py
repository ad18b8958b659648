"""What several commands measure and choose."""

import math

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


def power_of_two_scale(amax: float, form: Facts) -> float:
    """The largest power of two that keeps a tensor within a format.

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
