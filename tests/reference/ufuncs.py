"""Every float ufunc for whole arrays: result items and flags.

A function is evaluated in float64 and rounded once. This could go wrong if the
float64 result with its error bound reaches a rounding boundary. Then
`operations` decides the element with integers.

Why float64 suffices for + - * / and the operations built on them, for formats
of precision p <= 11 and exponents within +-136:

* a product has at most 2p <= 22 bits, so it is exact;
* a sum is exact if the exponents differ by less than 53 - p; else the smaller
  operand is below half a unit in the 41st place of the larger one, which moves
  no sum across a boundary, because boundaries have p + 1 bits (this is the
  53 >= 2p + 2 of Figueroa, "When is double rounding innocuous?", 1995);
* a quotient x/y that is not a boundary t of p + 1 bits is away from it by
  |x - t y| / y: at least one unit in the last place of integers with at most
  2p + 1 bits, that is 2**-23 of t or more, where float64 errs by 2**-53. The
  same holds for boundaries with fewer bits, as subnormal results have.
"""

from collections.abc import Callable

import numpy as np

from . import operations
from .codec import DIVIDE, INVALID, OVER
from .codec_arrays import (
    Flags,
    Floats,
    Items,
    Mask,
    encode,
    flag,
    least_normal,
    near_boundary,
    values,
)
from .formats import Format

#: An upper bound of the relative errors of NumPy's float64 functions
#: (tests/formats/test_reference.py samples them).
RELATIVE_ERROR = 2.0**-44


def _remainder(x: Floats, y: Floats) -> Floats:
    rest = np.fmod(x, y)  # exact in every format
    moved = np.where((rest != 0) & (np.signbit(rest) != np.signbit(y)), rest + y, rest)
    return np.where(moved == 0, np.copysign(0.0, y), moved)


def _floor_divide(x: Floats, y: Floats) -> Floats:
    # A quotient that is not an integer differs from the nearest integer by at least
    # 1/m, where m is the integer significand of y. Above 2**23, floor cannot move it
    # across a boundary. Below, float64 distinguishes the quotient from the integer.
    result = np.floor(x / y)
    apart = np.isinf(y) & np.isfinite(x) & (x != 0) & (np.signbit(x) != np.signbit(y))
    result = np.where(apart, -1.0, result)
    return np.where(np.isinf(x) & (y != 0), np.nan, result)


def _larger(x: Floats, y: Floats) -> Floats:
    return np.where((x > y) | ((x == y) & np.signbit(y)), x, y)


def _smaller(x: Floats, y: Floats) -> Floats:
    return np.where((x > y) | ((x == y) & np.signbit(y)), y, x)


def _either_nan(
    pick: Callable[[Floats, Floats], Floats],
) -> Callable[[Floats, Floats], Floats]:
    return lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, pick(x, y))


def _no_nan(
    pick: Callable[[Floats, Floats], Floats],
) -> Callable[[Floats, Floats], Floats]:
    return lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, pick(x, y)))


#: Operations that integers need not decide: exact in float64, or shown above.
EXACT_BINARY: dict[str, Callable[[Floats, Floats], Floats]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "fmod": np.fmod,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    "maximum": _either_nan(_larger),
    "minimum": _either_nan(_smaller),
    "fmax": _no_nan(_larger),
    "fmin": _no_nan(_smaller),
    "heaviside": np.heaviside,
}
EXACT_UNARY = ("sign", "rint", "floor", "ceil", "trunc", "square", "reciprocal")
#: Irrational but never close to a boundary, like a quotient.
ROOT = ("sqrt",)


def _pole(name: str, x: Floats, y: Floats | None) -> Mask:
    """Return where an infinite result is exact although the operands are finite."""
    if name in ("log", "log2", "log10", "reciprocal"):
        return x == 0
    if name == "log1p":
        return x == -1
    if name == "arctanh":
        return np.abs(x) == 1
    if name in ("divide", "floor_divide"):
        return (y == 0) & (x != 0)
    if name == "power":
        assert y is not None
        return (x == 0) & (y < 0)
    return np.zeros(x.shape, bool)


def _finish(
    name: str,
    f: Format,
    result: Floats,
    inexact: Mask | bool,
    x: Floats,
    y: Floats | None = None,
) -> tuple[Items, Flags]:
    """Round, and add the flags of the operation itself."""
    finite, nan = np.isfinite(x), np.isnan(x)
    if y is not None:
        finite, nan = finite & np.isfinite(y), nan | np.isnan(y)
    items, flags = encode(f, result, inexact)
    if f.nan is None or name != "heaviside":
        flags |= flag(np.isnan(result) & ~nan, INVALID)
    pole = finite & np.isinf(result) & _pole(name, x, y)
    flags |= flag(pole, DIVIDE)
    if f.powers:
        return items, flags
    flags |= flag(finite & np.isinf(result), OVER)
    flags[pole] &= ~np.uint8(OVER)
    return items, flags


def _unary_inexact(name: str, f: Format, x: Floats, result: Floats) -> Mask | bool:
    """Return where the function's value is not exactly the float64 number. This matters
    only for results below the smallest normal number."""
    if name in (*EXACT_UNARY, *ROOT):
        return False
    if name == "exp2":
        return np.isfinite(x) & ((x != np.rint(x)) | (result == 0))
    if name in ("log2", "log10"):
        return np.isfinite(x) & (result != np.rint(result))
    if name == "cbrt":  # a cube root of p bits has at most p bits
        candidate = values(f, encode(f, result)[0])
        return np.isfinite(x) & (candidate**3 != x)
    if name in ("arctan", "tanh"):
        return x != 0
    exact_at = {"log": 1.0, "arccos": 1.0, "arccosh": 1.0}.get(name, 0.0)
    return np.isfinite(x) & (x != exact_at)


def unary(name: str, f: Format, items: Items) -> tuple[Items, Flags]:
    """Apply `operations.unary` to arrays."""
    name = operations.SYNONYMS.get(name, name)
    x = values(f, items)
    with np.errstate(all="ignore"):
        result = np.asarray(getattr(np, name)(x))
        inexact = _unary_inexact(name, f, x, result)
        if name == "cbrt":  # on some processors NumPy misses exact roots
            exact = np.isfinite(x) & ~np.asarray(inexact)
            result = np.where(exact, values(f, encode(f, result)[0]), result)
        found, flags = _finish(name, f, result, inexact, x)
    if name not in (*EXACT_UNARY, *ROOT):
        close = near_boundary(f, result, np.abs(result) * RELATIVE_ERROR)
        close |= inexact & (np.abs(result) == least_normal(f))
        for i in np.flatnonzero(close):
            found[i], flags[i] = operations.unary(name, f, int(items[i]))
    return found, flags


def _log_error(x: Floats, y: Floats, result: Floats) -> Floats:
    # max(x, y) + log(...): bits cancel where the sum is small
    high = np.where(x > y, x, y)
    return (np.abs(high) + np.abs(result)) * RELATIVE_ERROR


def _hypot(x: Floats, y: Floats) -> Floats:
    return np.where(np.isinf(x) | np.isinf(y), np.inf, np.sqrt(x * x + y * y))


FUNCTIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "power": np.power,
    "hypot": _hypot,
    "arctan2": np.arctan2,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
}


def _binary_inexact(
    name: str, f: Format, x: Floats, y: Floats, result: Floats
) -> Mask | bool:
    finite = np.isfinite(x) & np.isfinite(y)
    if name == "hypot":  # if this matters, both operands are small: exact
        rounded = values(f, encode(f, result)[0])
        return finite & (rounded * rounded != x * x + y * y)
    if name == "arctan2":
        return ~np.isnan(result) & (result != 0)
    if name == "logaddexp":
        return finite
    if name == "logaddexp2":
        return finite & (x != y)
    return finite & (x != 0) & (result == 0)  # power


def binary(name: str, f: Format, first: Items, second: Items) -> tuple[Items, Flags]:
    """Apply `operations.binary` to arrays of one shape (1-d)."""
    x, y = values(f, first), values(f, second)
    with np.errstate(all="ignore"):
        if name in EXACT_BINARY:
            result = EXACT_BINARY[name](x, y)
            return _finish(name, f, result, False, x, y)
        result = FUNCTIONS[name](x, y)
        inexact = _binary_inexact(name, f, x, y, result)
        found, flags = _finish(name, f, result, inexact, x, y)
        error = np.abs(result) * RELATIVE_ERROR
        if name.startswith("log"):
            error = _log_error(x, y, result)
        close = near_boundary(f, result, error)
        close |= inexact & (np.abs(result) == least_normal(f))
        if name == "power":  # decide which small results are exact
            small = np.abs(result) < least_normal(f)
            close |= small & (result != 0) & (values(f, found) == result)
        if f.powers:  # a result that float64 rounds to zero is nonzero
            close |= inexact & (result == 0)
    for i in np.flatnonzero(close):
        found[i], flags[i] = operations.binary(name, f, int(first[i]), int(second[i]))
    return found, flags


def comparison(name: str, f: Format, first: Items, second: Items) -> Mask:
    """Apply one of `operations.COMPARISON` to arrays."""
    with np.errstate(all="ignore"):
        result: Mask = getattr(np, name)(values(f, first), values(f, second))
    return result
