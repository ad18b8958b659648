"""Operands for every ufunc that rounds, and the expected results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tf32dtype as td

FORMATS = ("bfloat16", "tf32", "float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn")
FORMATS += ("float16",)
DTYPES = ("f4", "f8")
UFUNCS = td.arithmetic.functions()

umath = np._core.umath  # type: ignore[attr-defined]


def rounded(x: Any, format: str) -> Any:
    """Round floats to the format in their dtype; return other values unchanged."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        return x
    with quiet():
        return np.asarray(td.quantize(x, format)).astype(x.dtype)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def inside(format: str, compute: Callable[[], Any], **options: Any) -> Any:
    """Compute in a format's arithmetic, also for float64 unless `options` deny it."""
    with quiet(), td.arithmetic(format, **{"float64": True} | options):
        return compute()


def operands(ufunc: np.ufunc, n: int, dtype: str, seed: int = 0) -> list[NDArray[Any]]:
    """Draw n numbers per operand, some special; most are in no format."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(ufunc.nin):
        with quiet():
            x = (rng.normal(size=n) * 2.0 ** rng.integers(-12, 12, n)).astype(dtype)
        special = np.array(
            [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 1, -1], dtype
        )
        x[rng.integers(0, n, n // 8)] = np.resize(special, n // 8)
        made.append(x)
    if ufunc.__name__ == "ldexp":
        made[1] = rng.integers(-20, 20, n).astype("i4")
    return made


def expected(
    ufunc: np.ufunc, args: list[Any], format: str, **options: Any
) -> list[Any]:
    """Return the rounded results of the ufunc for rounded operands."""
    with quiet():
        found = ufunc(*(rounded(x, format) for x in args), **options)
        many = found if isinstance(found, tuple) else (found,)
        return [rounded(x, format) for x in many]


def same_bits(x: Any, y: Any) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def all_same(found: Any, wanted: list[Any]) -> bool:
    many = found if isinstance(found, tuple) else (found,)
    return all(map(same_bits, many, wanted)) and len(many) == len(wanted)
