"""Arguments and options of kernels for products: src/cuda/matmul/tile_loader.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._runtime.backend import Constant

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

#: Largest size along an axis: int32, less the size of a tile.
LARGEST = (1 << 31) - (1 << 10)
#: Largest number of blocks of threads along y and z.
MOST = 65535


class Matrices(NamedTuple):
    """Describe the memory layout of a matrix or a stack of matrices.

    Strides are those of (s, rows, columns), in bytes.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def flipped(self) -> Matrices:
        """Return the layout of the transposed matrices."""
        (s, m, n), (stack, down, across) = self
        return Matrices((s, n, m), (stack, across, down))


def matrices(x: Any, count: int) -> Matrices:
    """Return the layout of an array of two or three axes as a stack of matrices.

    `count` is the number of matrices. A single matrix is repeated.
    """
    shape, strides = x.shape, x.strides
    if len(shape) == 2:
        return Matrices((count, *shape), (0, *strides))
    if shape[0] != count:  # 1
        return Matrices((count, *shape[1:]), (0, *strides[1:]))
    return Matrices(shape, strides)


def task(a: Matrices, b: Matrices, c: Matrices, **fields: Any) -> Constant:
    """Return a kernel's argument for the product of (s, m, k) and (s, k, n)."""
    x = np.zeros((), TASK)
    (count, m, k), n = a.shape, b.shape[2]
    if max(m, k, n) > LARGEST:
        raise ValueError(
            f"a and b must have at most {LARGEST} elements along an axis; got matrices"
            f" of {m} x {k} and {k} x {n}"
        )
    x["a"], x["b"], x["c"] = a.strides, b.flipped.strides, c.strides
    x["m"], x["n"], x["k"], x["count"] = m, n, k, count
    for name, lines in (("a_across", a), ("b_across", b.flipped)):
        _, down, across = lines.strides
        x[name] = abs(down) < abs(across)
    for name, value in fields.items():
        x[name] = value
    return Constant(x)


def option(macro: str, dtype: np.dtype[Any]) -> str:
    """Return the compilation option that sets a macro to an operand's format."""
    row = "single" if dtype.name == "float32" else dtype.name
    return f"-D{macro}=tf_{row}"


def pieces(whole: int, piece: int) -> int:
    """Return how many pieces cover a whole."""
    return -(-whole // piece)
