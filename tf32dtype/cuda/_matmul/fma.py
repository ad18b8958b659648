"""Multiply matrices with the bits of the CPU: see src/cuda/matmul/fma_matmul.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._runtime import backend
from .._runtime.backend import Kernel
from .._runtime.storage import is_ours
from .tile_options import (
    FLOAT32,
    MOST,
    SUMS,
    A,
    B,
    C,
    Launch,
    Launches,
    Matrices,
    option,
    pieces,
    task,
)

FILE = "cuda/matmul/fma_matmul.cu"
#: k of an FMA chain.
CHAIN = 256
#: k of a tile in shared memory, and the padding of its rows.
_DEPTH, _PADDING = 8, 4
#: Threads per block of the kernel that adds the sums of chains.
_END_THREADS = 256
#: Largest memory for sums of chains, in bytes, up to which blocks of threads share k.
_MOST_SUMS = 1 << 27


class Tile(NamedTuple):
    """A kernel, and the size of the tile of C that a block of threads computes."""

    kernel: str
    rows: int
    columns: int
    threads: int = 256

    @property
    def shared(self) -> int:
        """Return the bytes of shared memory: totals, and two tiles of each operand."""
        lines = self.rows + self.columns + 2 * _PADDING
        row = self.columns + (0 if self.columns % 4 else _PADDING)
        return 4 * (self.rows * row + 2 * _DEPTH * lines)

    def blocks(self, m: int, n: int) -> tuple[int, int]:
        """Return the number of blocks along m and along n."""
        return pieces(m, self.rows), pieces(n, self.columns)


LARGE = Tile("chain_large", 128, 128)
SMALL = Tile("chain_small", 64, 64, 128)
#: Time of four small tiles compared with one large tile. Small tiles have 1.1 times as
#: many instructions, and a larger share of them are loads from shared memory.
_SMALL_COSTS = 1.15
#: An architecture with 64 KiB of shared memory per block, too little for a large tile.
TURING = "sm_75"
NARROW = Tile("chain_narrow", 256, 8)
VECTOR = Tile("chain_vector", 256, 1)


def options(
    a: np.dtype[Any], b: np.dtype[Any], c: np.dtype[Any]
) -> tuple[str, str, str]:
    """Return the compilation options for operands and a result."""
    if not is_ours(c):
        c = np.result_type(a, b)  # not used; the kernel is shared with rounded results
    return option("A_FORMAT", a), option("B_FORMAT", b), option("C_FORMAT", c)


def choose_tile(count: int, m: int, n: int, processors: int) -> Tile:
    """Choose the tile for results with at least as many rows as columns."""
    if n <= NARROW.columns:
        return VECTOR if n == 1 else NARROW

    def turns(tile: Tile) -> int:
        """Return the number of blocks of the processor with the most blocks."""
        down, across = tile.blocks(m, n)
        return pieces(count * down * across, processors)

    down, across = LARGE.blocks(m, n)
    few = count * down * across < processors
    return SMALL if few or _SMALL_COSTS * turns(SMALL) < 4 * turns(LARGE) else LARGE


def plan(a: Matrices, b: Matrices, c: Matrices, tile: Tile | None = None) -> Launches:
    """Plan a @ b for matrices (s, m, k), (s, k, n) and (s, m, n).

    Parameters
    ----------
    a, b : Matrices
        Operands of this package's formats, float16 or float32, with any strides.
        float32 is multiplied without rounding.
    c : Matrices
        Result of a format of this package, or float32 for sums that are not rounded
        further. It must not overlap the operands.
    tile : Tile, optional
        Tile of the kernel (default: chosen from the shapes).
    """
    of_a, of_b = A, B
    if a.shape[1] < b.shape[2]:  # make the result as high as wide, or higher
        a, b, c = b.flipped, a.flipped, c.flipped
        of_a, of_b = B, A
    (count, m, k), n = a.shape, b.shape[2]
    if 0 in (count, m, n):
        return Launches()
    machine = backend.current()
    processors = machine.processors()
    tile = tile or choose_tile(count, m, n, processors)
    if tile is LARGE and machine.architecture() == TURING:
        tile = SMALL
    down, across = tile.blocks(m, n)
    parts, size = pieces(k, CHAIN), 4 * m * n
    few = count * down * across < processors
    shares = few and parts > 1 and parts * size <= _MOST_SUMS
    compiled, rounds = options(a.dtype, b.dtype, c.dtype), is_ours(c.dtype)
    kernel = Kernel(FILE, tile.kernel, compiled)

    def launched(x: Matrices, y: Matrices, z: Matrices, to: int, **how: Any) -> Launch:
        arrays = (of_a, x.start), (of_b, y.start), (to, z.start)
        grid = down, across, z.shape[0]
        told = task(x, y, z, **how)
        return Launch(kernel, grid, (tile.threads,), told, arrays, tile.shared)

    launches = []
    step = 1 if shares else MOST
    for first in range(0, count, step):
        x, y, z = (i.part(0, first, step) for i in (a, b, c))
        if k and not shares:
            launches.append(launched(x, y, z, C, parts=1, rounds=rounds))
            continue
        for chain in range(0, parts, MOST):
            here = min(parts - chain, MOST)
            x_k = x.part(2, chain * CHAIN, MOST * CHAIN)
            y_k = y.part(1, chain * CHAIN, MOST * CHAIN)
            sums = Matrices((here, m, n), (size, 4 * n, 4), FLOAT32, chain * size)
            how = {"parts": max(here, 2), "part": size}
            launches.append(launched(x_k, y_k, sums, SUMS, **how))
        launches.append(_end(x, y, z, compiled, parts))
    return Launches(tuple(launches), parts * m * n if shares else 0)


def _end(
    a: Matrices, b: Matrices, c: Matrices, compiled: tuple[str, ...], parts: int
) -> Launch:
    """Return the launch that adds the sums of chains; without k it writes zeros."""
    count, m, n = c.shape
    wide = min(32, 1 << (n - 1).bit_length())
    high = _END_THREADS // wide
    # k is set to 0, because it may be larger than a task allows.
    x, y = a.part(2, 0, 0), b.part(1, 0, 0)
    return Launch(
        Kernel(FILE, "chain_end", compiled),
        (pieces(n, wide), min(pieces(m, high), MOST), count),
        (wide, high),
        task(x, y, c, parts=parts, rounds=is_ours(c.dtype)),
        ((C, c.start), (SUMS, 0) if parts else (C, c.start)),
    )
