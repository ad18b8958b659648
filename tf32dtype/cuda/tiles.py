"""What kernels of products are told: src/cuda/tiles.h has the same."""

from __future__ import annotations

from typing import Any

import numpy as np

#: struct tf_task
TASK = np.dtype(
    [
        *((name, np.int64, 3) for name in "abc"),
        ("part", np.int64),
        *((name, np.int32) for name in ("m", "n", "k", "count")),
        *((name, np.int32) for name in ("a_across", "b_across", "parts", "rounds")),
        *((name, np.int32) for name in ("continues", "exactly")),
    ]
)

#: int32, with room for a tile beyond it.
LARGEST = (1 << 31) - (1 << 10)
#: The most blocks of threads along y and z.
MOST = 65535


def task(a: Any, b: Any, c: Any, **fields: Any) -> Any:
    """A task for (s, m, k) times (s, k, n) into (s, m, n), of any strides."""
    x = np.zeros((), TASK)
    count, m, k = a.shape
    if max(m, k, b.shape[2]) > LARGEST:
        raise ValueError(
            f"matrices of {m} x {k} and {k} x {b.shape[2]}: kernels of products count"
            f" to {LARGEST} along an axis"
        )
    s, of_k, across = b.strides
    x["a"], x["b"], x["c"] = a.strides, (s, across, of_k), c.strides
    x["m"], x["n"], x["k"], x["count"] = m, b.shape[2], k, count
    x["a_across"] = abs(a.strides[1]) < abs(a.strides[2])
    x["b_across"] = abs(across) < abs(of_k)
    for name, value in fields.items():
        x[name] = value
    return x


def option(macro: str, dtype: np.dtype[Any]) -> str:
    """The option of a compilation that says an operand's format."""
    rows = {"float16": "half", "float32": "single"}
    return f"-D{macro}=tf_{rows.get(dtype.name, dtype.name)}"


def pieces(whole: int, piece: int) -> int:
    """How many it takes."""
    return -(-whole // piece)
