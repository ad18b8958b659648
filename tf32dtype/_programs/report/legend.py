"""The meaning of the report's columns and verdicts."""

from __future__ import annotations

from ..._base.text import number
from .verdict import LIKE_FLOAT32, tolerance

_COLUMNS = """\
product alone     the cheapest precision that is enough for this matrix multiplication,
                  and for later sums of its results; other uses do not count
warning           values out of range, or digits that cancel, in the product or later
calls             calls of the routine from this line
% work, % time    share of all multiply-adds, and of the program's time
exp. A, exp. B    smallest and largest exponent of the operands: e stands for 2^e
NAME              SNR in dB: -20 log10 of the relative error, over all samples; "exact"
                  without an error, "none" if the relative error is infinite
condition         median of |A||B| / |AB|; "infinite" if the results are zero

NAME is enough    the cheapest precision (fewest bits to multiply) within the target
needs NAME        the same for a precision of several components (bf16x3), or float32
needs float64     float32 is not enough
out of range      values became Inf or NaN, or vanished at a cost above that of rounding
bits cancel later bits that a later sum or difference of the results loses; results are
                  followed through sums, scaling and signs, not through copies
digits canceled   log10 of the median condition over sqrt(k)
"""
_ARITHMETIC = """\
With --arithmetic, for each ufunc of a line, compared with float64:
% inexact         results that differ from those of float64
% overflow        results above the format's range
% underflow       inexact results below the format's normal values
mean, max ulps    errors in units of the format's last place
% absorbed        sums x + y that are x, though y is not 0
% canceled        sums that lost more than half of the format's bits, or all
"""


def legend(target_db: float) -> str:
    """Return the line below the table on a terminal."""
    return (
        f"Target: {target_db:g} dB. `tf32dtype report --explain` explains columns and"
        " verdicts."
    )


def explanation(target_db: float) -> str:
    """Return the meaning of all columns and verdicts."""
    return f"{_COLUMNS}\n{rule(target_db)}\n\n{_ARITHMETIC}"


def rule(target_db: float) -> str:
    """Return the full definition of verdicts and warnings."""
    return (
        f"A precision is enough if its SNR reaches {target_db:g} dB against the float64"
        " product of the same operands (--target-db), with 6 dB more for each bit that"
        " cancels later, and no error exceeds"
        f" {number(tolerance(target_db))} of |A||B|, the sum of the magnitudes of the"
        " same row's and column's products. Errors of values that became subnormal or"
        " zero have the same limit. The verdict names the cheapest such precision: the"
        " one with the fewest bits to multiply, summed over all products of components."
        f" A precision is as good as float32 if its errors are at most {LIKE_FLOAT32:g}"
        " times those of float32. Canceled digits are log10 of the"
        " median condition |A||B| / |AB| over sqrt(k), the condition of sums with"
        " random signs."
    )
