"""Sums over k whose bits do not depend on chunks.

They have one order (:doc:`/concepts/accumulation`): chains of so many consecutive k,
which are added one after the other. So a chunk along k holds whole chains, and each
tile of the result passes from chunk to chunk of k, which adds its chains to it, in
float32. Tiles are computed side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import dask.array as da
import numpy as np

from ..._formats.table import as_own

#: Of the terms of the sums: of k one after the other, or as chunks are there.
Order = Literal["k", "any"]
Multiply = Callable[..., Any]

_SINGLE = np.dtype(np.float32)


def as_chunks(x: Any, name: str) -> da.Array:
    """A dask array of an argument.

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
    """An array, and which index of the product each axis has."""

    array: da.Array
    indices: list[int]

    def rechunked(self, index: int, chunks: tuple[int, ...]) -> Operand:
        axis = self.indices.index(index)
        return self._replace(array=self.array.rechunk({axis: chunks}))

    def chunks(self, index: int) -> tuple[int, ...]:
        found: tuple[int, ...] = self.array.chunks[self.indices.index(index)]
        return found

    def block(self, index: int, number: int) -> Operand:
        """The chunks of one number along an index."""
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
    """The float32 sums of products over the one index that the result lacks.

    Parameters
    ----------
    a, b : Operand
    result : list of int
        The indices of the axes of the sums.
    multiply : callable
        Multiplies two chunks; its sums are float32.
    chain : int or None
        So many consecutive k are one term of the sum of them all; None: all are.
    order : {"k", "any"}
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
    """Chunks of both that hold whole chains; as they are, if they do."""
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
    """Tiles pass from chunk to chunk of k."""
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
    """Add the chains of a chunk to the sum of those before."""
    a, b = only(a), only(b)
    with np.errstate(all="ignore"):  # the last rounding reports what overflows
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
    """The chunk of an index that has one, which dask puts in lists."""
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
