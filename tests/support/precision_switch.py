"""Helpers of tests of `arithmetic`: arrays, their products, and NumPy's functions."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy._core import multiarray

import tf32dtype as td
from tf32dtype._programs import numpy_patch

Array = np.ndarray[Any, Any]

OWN = {"dot": np.dot, "inner": np.inner, "vdot": np.vdot}


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x.astype(dtype))


A, B, SQUARE = random(7, 300), random(300, 5), random(6, 6)


def typed(a: Array, b: Array, scalar_type: Any = td.bfloat16) -> Array:
    """Return the float32 product of operands rounded to a format."""
    x, y = a.astype(scalar_type), b.astype(scalar_type)
    return np.asarray(np.matmul(x, y, dtype=np.float32))


def same(got: Any, wanted: Any) -> bool:
    """Return whether classes, dtypes, shapes and bits are equal."""
    x, y = np.asarray(got), np.asarray(wanted)
    return (
        type(got) is type(wanted)
        and (x.dtype, x.shape) == (y.dtype, y.shape)
        and x.tobytes() == y.tobytes()
    )


def is_own() -> bool:
    """Return whether NumPy has its own functions again, with its own results."""
    modules = [m for n, m in sys.modules.items() if n.partition(".")[0] == "numpy"]
    left = [
        name
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type(numpy_patch._OURS[0]))
    ]
    names = all(
        getattr(module, name) is function
        for module in (np, multiarray, np._core.numeric, np._core)
        for name, function in OWN.items()
    )
    return names and not left and same(A @ B, PLAIN) and same(np.dot(A, B), PLAIN)


PLAIN = A @ B
ROUNDED = typed(A, B)
