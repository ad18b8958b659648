"""Operands that end in each of the stages of exact products, and their digest.

``python -m tests.exact.stage_cases`` prints the digest of all results, and checks each
of them against exact sums. ``python -m tests.exact.stage_cases M K N`` does not check,
but takes larger operands.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tf32dtype as td
from tf32dtype import _core
from tf32dtype._exact import stages

Array = NDArray[Any]

#: Values of `enum tf_rounding`, to odd among them.
ROUNDINGS = range(6)
DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Case(NamedTuple):
    """Rows along k of two operands."""

    name: str
    x: Array
    y: Array


def narrowed(x: Array) -> Array:
    """Return numbers that float32 holds."""
    return x.astype(np.float32).astype(np.float64)


def cases(m: int, k: int, n: int, seed: int) -> Iterator[Case]:
    """Return operands with m and n rows."""
    rng = np.random.default_rng(seed)

    def normal() -> tuple[Array, Array]:
        return rng.standard_normal((m, k)), rng.standard_normal((n, k))

    def scaled(low: int, high: int) -> tuple[Array, Array]:
        """Return numbers whose exponents are anywhere between."""
        x, y = normal()
        return (
            np.ldexp(x, rng.integers(low, high, x.shape)),
            np.ldexp(y, rng.integers(low, high, y.shape)),
        )

    x, y = normal()
    a, b = narrowed(x), narrowed(y)
    yield Case("normal", x, y)
    yield Case("float32", a, b)
    yield Case("bfloat16", *(z.astype(td.bfloat16).astype(np.float64) for z in (x, y)))
    near = narrowed(b * (1 + 2.0**-12 * rng.standard_normal(b.shape)))
    yield Case("canceling", np.hstack([a, -a]), np.hstack([b, near]))
    near = y * (1 + 2.0**-45 * rng.standard_normal(y.shape))
    yield Case("canceling more", np.hstack([x, -x]), np.hstack([y, near]))
    yield Case("zero", np.hstack([a, -a]), np.hstack([b, b]))
    yield Case("integers", np.rint(99 * x), np.rint(99 * y))
    yield Case("large integers", np.rint(2.0**30 * x), np.rint(2.0**30 * y))
    for low, high in ((-30, 30), (-100, 100), (-1050, 1000), (-540, -530), (500, 511)):
        yield Case(f"2^{low} to 2^{high}", *scaled(low, high))
    rows = rng.integers(-1070, -500, (m, 1)), rng.integers(-500, 0, (n, 1))
    yield Case("rows apart", np.ldexp(x, rows[0]), np.ldexp(y, rows[1]))
    yield Case("float32 subnormal", np.ldexp(a, -70), np.ldexp(b, -75))
    yield Case("float32 large", np.ldexp(a, 62), np.ldexp(b, 63))
    p, q = scaled(-27, 3)
    p, q = (np.ldexp(np.sign(z), np.frexp(z)[1]) for z in (p, q))
    yield Case("ties", p * (rng.random(p.shape) < 0.2), q)
    p, q = x.copy(), y.copy()
    p[3, 4], p[7, 4], p[9], p[::5, ::2] = np.inf, 0, np.nan, -0.0
    q[5, 6], q[8, 3] = np.nan, -np.inf
    yield Case("special", p, q)
    for large in (600.0, 1000.0):
        p, q = x.copy(), y.copy()
        p[:, 0], p[:, 1] = 2.0**large, -(2.0**large)
        q[:, 1] = q[:, 0]
        yield Case(f"2^{large:.0f} cancels", p, q)


def exact_rows(x: Array, y: Array, dtype: np.dtype[Any], rounding: int) -> Array:
    """Return products by exact sums only."""
    result = np.empty((len(x), len(y)), dtype)
    pairs = np.stack(np.divmod(np.arange(result.size), len(y)), axis=1)
    one, other = (np.ascontiguousarray(z) for z in (x, y))
    _core.exact_dots(one, other, pairs, result.reshape(-1), rounding)
    return result


def differing(case: Case, dtype: np.dtype[Any], rounding: int) -> int:
    """Return how many results differ from exact sums."""
    found = stages.multiply_rows(case.x, case.y, dtype, rounding)[0]
    wanted = exact_rows(case.x, case.y, dtype, rounding)
    bits = f"u{dtype.itemsize}"
    return int((found.view(bits) != wanted.view(bits)).sum())


def digest(shape: Sequence[int], roundings: Iterable[int], is_checked: bool) -> str:
    """Return the digest of all products and sums; check the products if asked to."""
    found = hashlib.sha256()
    for case in cases(*shape, 1):
        for dtype in DTYPES:
            found.update(td.exact_sum(case.x, axis=1, dtype=dtype).tobytes())
            for rounding in roundings:
                result = stages.multiply_rows(case.x, case.y, dtype, rounding)[0]
                found.update(result.tobytes())
                assert not is_checked or not differing(case, dtype, rounding), case.name
    return found.hexdigest()


if __name__ == "__main__":
    if shape := [int(x) for x in sys.argv[1:]]:
        result = digest(shape, [0], is_checked=False)
    else:
        result = digest((40, 97, 33), ROUNDINGS, is_checked=True)
    print(_core.isa(), result)
