"""Compute sums over k whose bits do not depend on chunks.

The sums have a fixed order (see :doc:`/concepts/accumulation`). A chain is the sum over
a fixed number of consecutive k, and chains are added one after the other. Therefore a
chunk along k must contain whole chains. Each tile of the result passes from chunk to
chunk along k, and each chunk adds its chains to the tile in float32. Different tiles
are computed in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import dask.array as da
import numpy as np

from ..._formats.table import as_own

#: The order of the terms of a sum: in the order of k, or in any order.
Order = Literal["k", "any"]
Multiply = Callable[..., Any]

_SINGLE = np.dtype(np.float32)


def as_chunks(x: Any, name: str) -> da.Array:
    """Convert an argument to a dask array.

    Raises
    ------
    TypeError
        For an array of blocks or of tiles.
    """
    if hasattr(x, "dequantize"):
        raise TypeError(
            f"{name} must be an array of numbers; got a {type(x).__name__}. Use a @ b"
            " for BlockArrays of dask, dequantize() for other arrays"
        )
    return da.asanyarray(as_own(x))


class Operand(NamedTuple):
    """An array, with the index of the product that belongs to each axis."""

    array: da.Array
    indices: list[int]

    def rechunked(self, index: int, chunks: tuple[int, ...]) -> Operand:
        axis = self.indices.index(index)
        return self._replace(array=self.array.rechunk({axis: chunks}))

    def chunks(self, index: int) -> tuple[int, ...]:
        found: tuple[int, ...] = self.array.chunks[self.indices.index(index)]
        return found

    def block(self, index: int, number: int) -> Operand:
        """Return the chunks at a position along an index."""
        key = [slice(None)] * self.array.ndim
        axis = self.indices.index(index)
        key[axis] = slice(number, number + 1)
        return self._replace(array=self.array.blocks[tuple(key)])


def sum_over_k(
    a: Operand,
    b: Operand,
    result: list[int],
    multiply: Multiply,
    chain: int | None,
    order: Order,
) -> da.Array:
    """Return the float32 sums of products over the index that the result lacks.

    Parameters
    ----------
    a, b : Operand
    result : list of int
        The indices of the axes of the sums.
    multiply : callable
        Multiplies two chunks; its sums are float32.
    chain : int or None
        The number of consecutive k that form one term of the sum; None: all of k.
    order : {"k", "any"}
        The order in which the terms are added.
    """
    (k,) = set(a.indices) & set(b.indices) - set(result)
    chunks = _chunks_along_k(a.chunks(k), b.chunks(k), chain)
    a, b = a.rechunked(k, chunks), b.rechunked(k, chunks)
    if order == "any":
        return _in_any_order(a, b, result, multiply, k)
    return _in_order(a, b, result, partial(_add, multiply=multiply, chain=chain), k)


def _chunks_along_k(
    one: tuple[int, ...], other: tuple[int, ...], chain: int | None
) -> tuple[int, ...]:
    """Return chunks for both operands that contain whole chains."""
    k = sum(one)
    if chain is None:
        return (k,)
    if one == other and all(length % chain == 0 for length in one[:-1]):
        return one
    length = -(-min(max(one), max(other)) // chain) * chain or chain
    return tuple(min(length, k - start) for start in range(0, k, length)) or (0,)


def _in_order(
    a: Operand, b: Operand, result: list[int], add: Multiply, k: int
) -> da.Array:
    """Sum in the order of k: tiles pass from chunk to chunk along k."""
    add = partial(add, axes=(a.indices.index(k), b.indices.index(k)))
    sums: da.Array | None = None
    for number in range(len(a.chunks(k))):
        before = () if sums is None else (sums, result)
        operands = [x for part in (a, b) for x in part.block(k, number)]
        sums = da.blockwise(
            add,
            result,
            *operands,
            *before,
            concatenate=False,
            dtype=_SINGLE,
            meta=np.empty((0,) * len(result), _SINGLE),
        )
    return sums


def _add(
    a: Any,
    b: Any,
    total: Any = None,
    *,
    multiply: Multiply,
    chain: int | None,
    axes: tuple[int, int],
) -> Any:
    """Add the chains of a chunk to the sum of the previous chunks."""
    a, b = only(a), only(b)
    with np.errstate(all="ignore"):  # the last rounding reports overflow
        if total is None:
            return multiply(a, b)
        assert chain is not None
        total = total.copy()
        for start in range(0, a.shape[axes[0]], chain):
            part = slice(start, start + chain)
            total += multiply(_cut(a, axes[0], part), _cut(b, axes[1], part))
    return total


def _cut(x: Any, axis: int, part: slice) -> Any:
    return x[(slice(None),) * axis + (part,)]


def only(chunks: Any) -> Any:
    """Return the only chunk along an index, which dask passes in nested lists."""
    while isinstance(chunks, list):
        (chunks,) = chunks
    return chunks


def _in_any_order(
    a: Operand, b: Operand, result: list[int], multiply: Multiply, k: int
) -> da.Array:
    sums = da.blockwise(
        partial(_with_k, multiply=multiply),
        [*result, k],
        *a,
        *b,
        adjust_chunks={k: 1},
        concatenate=False,
        dtype=_SINGLE,
        meta=np.empty((0,) * (len(result) + 1), _SINGLE),
    )
    return sums.sum(axis=-1, dtype=np.float64).astype(_SINGLE)


def _with_k(a: Any, b: Any, multiply: Multiply) -> Any:
    with np.errstate(all="ignore"):
        return multiply(a, b)[..., None]
