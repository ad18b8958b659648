"""Compare and bound arrays of a format by numbers that are not rounded, on a GPU.

The bits are those of src/ufuncs/exact_compare.h on the CPU. A comparison uses the exact
number. A bound out of the format's range is exact, too, and overflows if it is the
result. This module replaces Python numbers by numbers of the format that give the same
results, because kernels only take arrays and scalars of the format.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ... import _core
from .._arrays.casts import cast
from .._arrays.ndarray import empty
from .._runtime import backend
from .._runtime.backend import KEPT
from .._runtime.storage import STORAGE, is_ours, plain
from . import lookup_tables

#: The dtype of operands that are not rounded, in NumPy's loops.
EXACT = _core.exact_number

_MIRRORED = {
    np.equal: np.equal,
    np.not_equal: np.not_equal,
    np.less: np.greater,
    np.less_equal: np.greater_equal,
    np.greater: np.less,
    np.greater_equal: np.less_equal,
}

#: A function that runs a loop of a format: ufunc, dtypes, operands, targets.
Compute = Callable[[Any, tuple[Any, ...], list[Any], list[Any]], None]


def compute(
    ufunc: Any,
    loop: tuple[np.dtype[Any], ...],
    operands: list[Any],
    target: Any,
    run: Compute,
) -> None:
    """Compute a loop whose operands include exact numbers, which are not cast.

    Parameters
    ----------
    ufunc : numpy.ufunc
        A comparison, an extreme, clip or nextafter.
    loop : tuple of dtype
        Dtypes of the operands and the result; `EXACT` for exact numbers.
    operands : list
        Python numbers, NumPy scalars and arrays on the GPU; at least one array.
    target : cupy.ndarray
        Array to write the result to.
    run : function
        Function that computes a loop of a format.
    """
    if ufunc in _MIRRORED:
        _compare(ufunc, loop, operands, target, run)
    elif ufunc is np.nextafter:
        x, bound = operands
        _nextafter(loop[-1], x, bound, target, run)
    elif ufunc.nin == 3:
        _clip(loop[-1], operands, target, run)
    else:
        x, bound = operands if loop[1] == EXACT else operands[::-1]
        _extreme(ufunc, loop[-1], x, bound, target, run)


# -- comparisons -----------------------------------------------------------------------


def _compare(
    ufunc: Any, loop: Any, operands: list[Any], target: Any, run: Compute
) -> None:
    (a, b), dtype = operands, loop[0]
    if loop[0] == EXACT:
        a, b, ufunc, dtype = b, a, _MIRRORED[ufunc], loop[1]
    call = backend.current().call
    if isinstance(b, cupy.ndarray):
        x = _double(a) if isinstance(a, cupy.ndarray) else np.float64(a)
        call("copyto", target, call(ufunc.__name__, x, _odd(b)))
        return
    if not isinstance(a, cupy.ndarray):
        raise TypeError(
            f"np.{ufunc.__name__} must have an operand on the GPU; got none"
        )
    b = b.item() if isinstance(b, np.generic) else b
    found = _comparison(ufunc, dtype, b)
    if found is None:
        call("copyto", target, np.bool(ufunc is np.not_equal))
        return
    ufunc, nearest = found
    run(ufunc, (dtype, dtype, np.dtype(bool)), [a, nearest], [target])


def _comparison(ufunc: Any, dtype: np.dtype[Any], b: Any) -> tuple[Any, Any] | None:
    """Return a comparison with a number of the format that has the same results.

    None means that all numbers of the format are unequal to `b`.
    """
    if b != b:
        return None
    nearest = _rounded(dtype, b)
    if np.isnan(nearest):
        nearest = _greatest(dtype) if b > 0 else _least(dtype)
    known = float(nearest)  # Python compares a float with an int of any size exactly
    if known != b:
        if ufunc in (np.equal, np.not_equal):
            return None
        # No number of the format is between b and the nearest number.
        if ufunc in (np.less, np.less_equal):
            ufunc = np.less_equal if known < b else np.less
        else:
            ufunc = np.greater if known < b else np.greater_equal
    return ufunc, nearest


class Simple(NamedTuple):
    """A loop whose operands are an array and a scalar of the same format."""

    ufunc: Any
    loop: tuple[np.dtype[Any], ...]
    number: Any


def simple(ufunc: Any, loop: tuple[np.dtype[Any], ...], number: Any) -> Simple | None:
    """Return the only loop that `compute` runs for an array and a Python number.

    Return None if `compute` does more than this loop.
    """
    if type(number) not in (int, float):
        return None
    return _simple(ufunc, loop, number, *apart(number))


def apart(number: int | float) -> tuple[Any, float]:
    """Return a number's type and sign, by which equal numbers like 0 and -0 differ."""
    is_float = isinstance(number, float)
    return type(number), math.copysign(1, number) if is_float else 0


@lru_cache(maxsize=KEPT)
def _simple(
    ufunc: Any, loop: tuple[np.dtype[Any], ...], number: Any, kind: Any, sign: float
) -> Simple | None:
    if ufunc in _MIRRORED:
        dtype = loop[0]
        if dtype == EXACT:
            ufunc, dtype = _MIRRORED[ufunc], loop[1]
        found = _comparison(ufunc, dtype, number)
        loop = (dtype, dtype, np.dtype(bool))
        return None if found is None else Simple(found[0], loop, found[1])
    dtype = loop[-1]
    if ufunc is np.nextafter or _side(dtype, number):
        return None
    return Simple(ufunc, (dtype,) * 3, _rounded(dtype, number))


def _double(x: Any) -> Any:
    return plain(cast(x, np.float64) if is_ours(x.dtype) else x)


def _odd(x: Any) -> Any:
    """Return integers or booleans as float64, rounded to odd.

    No number of a format is between an integer and its rounded value.
    """
    call = backend.current().call
    if x.dtype.itemsize < 8:
        return call("ndarray.astype", plain(x), np.float64)
    negative = call("less", plain(x), 0)
    magnitude = call("ndarray.astype", plain(x), np.uint64)
    magnitude = call("where", negative, call("negative", magnitude), magnitude)
    # From 2**53 on, bits 0 to 10 are or-ed into bit 11. A double has room for the rest.
    low = call("bitwise_and", magnitude, np.uint64(0x7FF))
    folded = call("bitwise_or", magnitude, call("add", low, np.uint64(0x7FF)))
    folded = call("bitwise_and", folded, np.uint64(2**64 - 2**11))
    is_wide = call("greater_equal", magnitude, np.uint64(2**53))
    odd = call("ndarray.astype", call("where", is_wide, folded, magnitude), np.float64)
    return call("where", negative, call("negative", odd), odd)


# -- bounds ----------------------------------------------------------------------------


def _rounded(dtype: np.dtype[Any], x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(x, dtype)[()]


def _greatest(dtype: np.dtype[Any]) -> Any:
    return np.finfo(dtype).max


def _least(dtype: np.dtype[Any]) -> Any:
    return np.finfo(dtype).min


def _side(dtype: np.dtype[Any], x: Any) -> int:
    """Return 1 for a number above the format's range, -1 below it, otherwise 0."""
    if isinstance(x, cupy.ndarray | np.generic) or x != x:
        return 0
    try:
        with np.errstate(over="raise", invalid="raise", under="ignore"):
            np.asarray(x, dtype)
    except FloatingPointError:
        return 1 if x > 0 else -1
    return 0


def _extreme(
    ufunc: Any, dtype: np.dtype[Any], x: Any, bound: Any, target: Any, run: Compute
) -> None:
    """Compute maximum, minimum, fmax or fmin of an array and a Python number."""
    side = _side(dtype, bound)
    result = _rounded(dtype, bound)
    if not side:
        run(ufunc, (dtype,) * 3, [x, result], [target])
        return
    takes_nan = ufunc in (np.maximum, np.minimum)
    wins = (side > 0) == (ufunc in (np.maximum, np.fmax))
    is_nan = None
    if not (wins and not takes_nan):
        is_nan = cupy.empty(x.shape, np.bool)
        lookup_tables.one(np.isnan, (dtype, np.dtype(bool)), [is_nan], x)
        other = np.maximum if ufunc in (np.maximum, np.fmax) else np.minimum
        # Where the bound is not the result: use the last number on its side instead.
        far = result if np.isinf(result) else _extreme_of(dtype, side)
        run(other, (dtype,) * 3, [x, far], [target])
    if not wins:
        if not takes_nan:
            _fill(target, result, is_nan)
    elif takes_nan:
        _fill(target, result, backend.current().call("logical_not", is_nan))
    else:
        _fill(target, result, None)


def _extreme_of(dtype: np.dtype[Any], side: int) -> Any:
    return _greatest(dtype) if side > 0 else _least(dtype)


def _fill(target: Any, scalar: Any, where: Any) -> None:
    keywords = {} if where is None else {"where": where}
    backend.current().call(
        "copyto",
        target.view(cupy.ndarray).view(STORAGE[scalar.dtype.itemsize]),
        scalar.view(STORAGE[scalar.dtype.itemsize]),
        **keywords,
    )


def _clip(dtype: np.dtype[Any], operands: list[Any], target: Any, run: Compute) -> None:
    x, low, high = operands
    if not isinstance(x, cupy.ndarray):
        x, low = low, x  # max(x, low) is symmetric
    if isinstance(x, cupy.ndarray):
        raised = _raised(dtype, x, low, high, empty(target.shape, dtype), run)
    else:
        raised = _larger(*(_within(dtype, y) for y in (x, low)))
    if isinstance(raised, int | float):
        _extreme(np.minimum, dtype, high, raised, target, run)
    elif isinstance(high, int | float):
        _extreme(np.minimum, dtype, raised, high, target, run)
    else:
        run(np.minimum, (dtype,) * 3, [raised, high], [target])


def _raised(
    dtype: np.dtype[Any], x: Any, low: Any, high: Any, out: Any, run: Compute
) -> Any:
    """Return the maximum of an array and a lower bound."""
    if not isinstance(low, int | float):
        run(np.maximum, (dtype,) * 3, [x, low], [out])
    elif _side(dtype, low) > 0 and _side(dtype, high) <= 0:
        # The upper bound is the result, so the lower bound must not overflow.
        infinite = _rounded(dtype, low)
        bound = infinite if np.isinf(infinite) else _greatest(dtype)
        run(np.maximum, (dtype,) * 3, [x, bound], [out])
    else:
        _extreme(np.maximum, dtype, x, low, out, run)
    return out


def _nextafter(
    dtype: np.dtype[Any], x: Any, bound: Any, target: Any, run: Compute
) -> None:
    """Compute the next number of the format toward a Python number."""
    side, result = _side(dtype, bound), _rounded(dtype, bound)
    loop = (dtype,) * 3
    if not side:
        run(np.nextafter, loop, [x, result], [target])
        return
    last = _extreme_of(dtype, side)
    is_last = cupy.empty(x.shape, np.bool)
    run(np.equal, (dtype, dtype, np.dtype(bool)), [x, last], [is_last])
    run(np.nextafter, loop, [x, last], [target])
    _fill(target, result, is_last)


def _within(dtype: np.dtype[Any], x: Any) -> Any:
    """Round a number to the format if it is in the format's range."""
    return x if _side(dtype, x) else float(_rounded(dtype, x))


def _larger(x: Any, y: Any) -> Any:
    is_negative_zero = y == 0 and math.copysign(1, y) < 0
    return x if x != x or x > y or (x == y and is_negative_zero) else y
