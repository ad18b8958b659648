"""Sum, multiply and promote whole arrays in slow ways whose correctness is plain.

All functions take float64 arrays that hold values of a format exactly. Formats and
their rounding come from `tests.reference`.
"""

from __future__ import annotations

import functools
import math
from functools import cache
from typing import Any

import numpy as np

from tests.reference.codec_arrays import all_items, encode, spacing_exponents, values
from tests.reference.formats import FLOAT16, FLOAT32, FORMATS

ROWS = FORMATS | {"float16": FLOAT16, "float32": FLOAT32}


def eps(name: str) -> float:
    """Return the spacing of the format at 1."""
    return 2.0 ** -ROWS[name].mantissa_bits


def round_to(name: str, x: Any) -> np.ndarray:
    """Round float64 values once to format `name`, ties to even."""
    x = np.asarray(x, dtype=np.float64)
    if name == "float32":  # no table of 2^32 codes; the CPU is right
        with np.errstate(all="ignore"):
            return x.astype(np.float32).astype(np.float64)
    row = ROWS[name]
    return values(row, encode(row, np.atleast_1d(x))[0]).reshape(x.shape)


def ulp(name: str, x: Any) -> np.ndarray:
    """Return the distance of the neighbors of x in the format."""
    return np.ldexp(1.0, spacing_exponents(ROWS[name], np.asarray(x, np.float64)))


def exact_sum(x: np.ndarray, axis: Any = None) -> np.ndarray:
    """Return correctly rounded float64 sums over `axis` (an int, a tuple or None)."""
    x = np.asarray(x, dtype=np.float64)
    if axis is None:
        axis = tuple(range(x.ndim))
    axes = [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = [x.shape[a] for a in kept]
    count = math.prod(x.shape[a] for a in axes)
    rows = x.transpose(kept + axes).reshape(math.prod(shape), count)
    return np.array([math.fsum(row) for row in rows.tolist()]).reshape(shape)


def add_float32(total: np.ndarray, term: np.ndarray) -> np.ndarray:
    """Return float32(total + term), rounded once, for any float64 `term` and `total`.

    An inexact float64 sum is moved to an odd last bit. The second rounding then cannot
    meet a false tie (Boldo and Melquiond, 2008).
    """
    with np.errstate(all="ignore"):
        total, term = np.asarray(total, np.float64), np.asarray(term, np.float64)
        rounded = np.asarray(total + term)
        virtual = rounded - total
        error = (total - (rounded - virtual)) + (term - virtual)
        even = (rounded.view(np.int64) & 1) == 0
        inexact = np.isfinite(rounded) & np.isfinite(error) & (error != 0)
        toward = np.where(error > 0, np.inf, -np.inf)
        odd = np.where(inexact & even, np.nextafter(rounded, toward), rounded)
        return odd.astype(np.float32)


def product_float32(a: np.ndarray, b: np.ndarray, block: int = 256) -> np.ndarray:
    """Return a @ b of 2-d arrays as float32, in the documented order of sums.

    A chain of FMAs over each `block` consecutive k starts from +0. float32 additions in
    k order add the sums of the blocks. Products of two formats of up to 11 significant
    bits are exact in float64.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    whole = a.shape[1] // block * block
    parts = [(a[:, :whole], b[:whole], block)] if whole else []
    if whole < a.shape[1] or not whole:
        parts.append((a[:, whole:], b[whole:], a.shape[1] - whole))
    chains = []
    with np.errstate(all="ignore"):
        for rows, columns, length in parts:  # computes these chains together
            count = rows.shape[1] // length if length else 1
            x = rows.reshape(rows.shape[0], count, length)
            y = columns.reshape(count, length, columns.shape[1])
            chain = np.zeros((count, x.shape[0], y.shape[2]), np.float32)
            for k in range(length):
                chain = add_float32(chain, x[:, :, k].T[:, :, None] * y[:, None, k])
            chains += list(chain)
        return functools.reduce(np.add, chains)


def same(got: Any, expected: Any) -> np.ndarray:
    """Return where values and signs of zero are equal, or both are NaN."""
    got = np.asarray(got).astype(np.float64)
    expected = np.asarray(expected, dtype=np.float64)
    both_nan = np.isnan(got) & np.isnan(expected)
    return both_nan | ((got == expected) & (np.signbit(got) == np.signbit(expected)))


# -- promotion -------------------------------------------------------------------

_BUILTIN_FLOATS = ("float16", "float32", "float64")


def _cast(name: str, x: np.ndarray) -> np.ndarray:
    return x if name == "float64" else round_to(name, x)


@cache
def holds(wide: str, narrow: str) -> bool:
    """Return whether `wide` has every value of `narrow`, with Inf, NaN and -0."""
    if narrow in ("float32", "float64"):
        return wide in ("float32", "float64")[narrow == "float64" :]
    every = values(ROWS[narrow], all_items(ROWS[narrow]))
    return bool(np.all(same(_cast(wide, every), every)))


@cache
def common(a: str, b: str) -> str:
    """Return the name of the dtype that two dtypes, one of them ours, promote to."""
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    if a not in FORMATS:
        a, b = b, a
    if b in ("int8", "uint8"):
        integers = np.arange(-128 if b == "int8" else 0, 128 if b == "int8" else 256.0)
        if np.all(same(round_to(a, integers), integers)):
            return a
        return "float16" if holds("float16", a) else "float32"
    if b in FORMATS or b in _BUILTIN_FLOATS:
        candidates = (a, b, "float8_e4m3fn", "bfloat16", *_BUILTIN_FLOATS)
        return next(c for c in candidates if holds(c, a) and holds(c, b))
    if b in ("int16", "uint16"):
        return "float32"
    if b in ("int32", "uint32", "int64", "uint64"):
        return "float64"
    return np.result_type(np.float32, b).name  # longdouble and complex
