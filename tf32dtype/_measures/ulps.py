"""Measure distances in units in the last place (ulps), steps between neighbors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .._base.wording import brief
from .._formats.codes import bits
from .._formats.table import format_of_dtype, own_array
from .format_facts import NUMPY_NAMES, Facts, facts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._formats.typed import Number

#: The distance of a NaN from a number, which no two numbers have.
NAN_ULPS = (1 << 64) - 1


@overload
def ulp_distance(a: Number, b: Number) -> np.uint64: ...
@overload
def ulp_distance(a: ArrayLike, b: ArrayLike) -> NDArray[np.uint64]: ...
def ulp_distance(a: ArrayLike, b: ArrayLike) -> Any:
    """Count the steps of a format from each element of `a` to that of `b`.

    Parameters
    ----------
    a, b : array_like
        Numbers of a format of this package or of float16, float32 or float64, of shapes
        that broadcast. One of the two may hold integers or bools. Arrays of blocks
        count as their values in float32.

    Returns
    -------
    ndarray of uint64, or uint64 for two numbers
        Has the broadcast shape: 0 for equal numbers, 1 for neighbors, and so on.

    Raises
    ------
    TypeError
        If neither dtype is such a format, and for longdouble, complex and other dtypes.
    ValueError
        If the shapes do not broadcast.

    See Also
    --------
    tf32dtype.testing.assert_max_ulp : Raise an error for larger distances.

    Notes
    -----
    Two formats are measured in the coarser one: the format with fewer mantissa bits; if
    these are equal, the one with the smaller range. Numbers of the other format are
    first rounded to it, as `astype` does, so that a number and its rounded value have
    the distance 0.

    - -0 and +0 are equal.
    - Infinity is one step from the largest finite number.
    - Two NaNs have the distance 0, whatever their signs and payloads.
    - A NaN and a number have the largest distance, ``2**64 - 1``. So does a number that
      becomes NaN as it is rounded, because it is out of range for a format without
      infinity.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([1, 100, 0.0, np.inf], td.bfloat16)
    >>> b = np.array([1, 101, -0.0, 3.3895e38], td.bfloat16)
    >>> td.ulp_distance(a, b)
    array([0, 2, 0, 1], dtype=uint64)
    >>> td.ulp_distance(np.float32(1.001), td.bfloat16(1))
    np.uint64(0)
    """
    x, y = own_array(a), own_array(b)
    for name, array in (("a", x), ("b", y)):
        if format_facts(array.dtype) is None and array.dtype.kind not in "biu":
            raise TypeError(
                f"{name} must have a dtype of td.formats, float16, float32 or float64;"
                f" got {array.dtype}"
            )
    form = coarser(x.dtype, y.dtype)
    if form is None:
        raise TypeError(
            "a or b must have a dtype of floating-point numbers; got"
            f" {x.dtype} and {y.dtype}"
        )
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise ValueError(
            f"a and b must have shapes that broadcast; got {brief(x.shape)} and"
            f" {brief(y.shape)}"
        ) from None
    return distances(x, y, form)[()]


def format_facts(dtype: np.dtype[Any]) -> Facts | None:
    """Return the facts of a dtype whose ulps are known; None for any other dtype."""
    # Other byte orders count, too: the name of >f4 is float32.
    known = format_of_dtype(dtype) is not None or dtype.name in NUMPY_NAMES
    return facts(dtype.name) if known else None


def coarser(a: np.dtype[Any], b: np.dtype[Any]) -> Facts | None:
    """Return the format in whose ulps numbers of two dtypes are measured.

    None if neither has ulps, or if one is neither a float with ulps nor an integer.
    """
    known = [form for form in map(format_facts, (a, b)) if form is not None]
    integers = (a.kind in "biu") + (b.kind in "biu")
    if not known or len(known) + integers < 2:
        return None
    return min(known, key=lambda x: (x.mantissa_bits, x.max, -x.smallest_subnormal))


def distances(x: NDArray[Any], y: NDArray[Any], form: Facts) -> NDArray[np.uint64]:
    """Return the distances in ulps of a format that numbers are rounded to."""
    with np.errstate(all="ignore"):
        (p, nan_p), (q, nan_q) = (_steps(array, form) for array in (x, y))
        # Wraps around from 2^63 on, as it must: a distance has 64 bits.
        apart = np.asarray(np.maximum(p, q) - np.minimum(p, q)).view(np.uint64)
    both = nan_p & nan_q
    if nan_p.any() or nan_q.any():
        nans = np.where(both, np.uint64(0), np.uint64(NAN_ULPS))
        apart = np.where(nan_p | nan_q, nans, apart)
    return apart


def _steps(x: NDArray[Any], form: Facts) -> tuple[NDArray[np.int64], NDArray[np.bool]]:
    """Return how many steps each number is from 0, in int64, and which are NaN.

    The steps of negative numbers are negative. A format without zero counts from its
    smallest number.
    """
    rounded = x.astype(form.dtype, copy=False)
    # FP6 and FP4 have no NaN: it became 0.
    nans = np.isnan(rounded) | np.isnan(x)
    if format_of_dtype(form.dtype) is not None:
        codes = np.asarray(bits(rounded)) >> form.unused_low_bits
    else:
        codes = rounded.view(f"u{form.dtype.itemsize}")
    if not form.signed:
        return codes.astype(np.int64), nans
    sign = codes.dtype.type(1 << (form.bits - 1))
    magnitudes = (codes & (sign - codes.dtype.type(1))).astype(np.int64)
    return np.where(codes < sign, magnitudes, -magnitudes), nans
