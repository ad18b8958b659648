"""Products in the contract's order, whose bits are the CPU's: see src/cuda/chain.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from . import backend
from .array import is_ours
from .backend import Kernel
from .tiles import MOST, option, pieces, task

FILE = "chain.cu"
THREADS = 256
#: k of a chain
CHAIN = 256
#: k of a tile in shared memory, and what its lines are longer than they are wide
_DEPTH, _PADDING = 8, 4
#: Bytes of chains' sums that are worth it to share k among blocks of threads.
_MOST_SUMS = 1 << 27


class Tile(NamedTuple):
    """A kernel and what of C its blocks of threads compute."""

    kernel: str
    rows: int
    columns: int

    @property
    def shared(self) -> int:
        """Bytes of shared memory: totals, and two tiles of each operand."""
        lines = self.rows + self.columns + 2 * _PADDING
        return 4 * (self.rows * self.columns + 2 * _DEPTH * lines)

    def blocks(self, m: int, n: int) -> tuple[int, int]:
        """How many, down and across."""
        return pieces(m, self.rows), pieces(n, self.columns)


LARGE = Tile("chain_large", 128, 128)
SMALL = Tile("chain_small", 64, 64)
#: It has 64 KiB of shared memory for a block, which are too few for a large tile.
TURING = "sm_75"
NARROW = Tile("chain_narrow", 256, 8)
VECTOR = Tile("chain_vector", 256, 1)


def options(
    a: np.dtype[Any], b: np.dtype[Any], c: np.dtype[Any]
) -> tuple[str, str, str]:
    """Of the compilation for operands and a result, which may be float32."""
    if not is_ours(c):
        c = np.result_type(a, b)  # never used, but products of one pair share a kernel
    return option("A_FORMAT", a), option("B_FORMAT", b), option("C_FORMAT", c)


def choose(count: int, m: int, n: int, processors: int) -> Tile:
    """The tile for matrices that are at least as high as they are wide."""
    if n <= NARROW.columns:
        return VECTOR if n == 1 else NARROW
    down, across = LARGE.blocks(m, n)
    return LARGE if count * down * across >= processors else SMALL


def product(a: Any, b: Any, out: Any, tile: Tile | None = None) -> None:
    """Write a @ b to `out`: (s, m, k), (s, k, n) and (s, m, n).

    Parameters
    ----------
    a, b : cupy.ndarray
        Of this package's formats, float16 or float32, and of any strides. float32 is
        multiplied as it is.
    out : cupy.ndarray
        Of a format of this package, or float32 for the sums as they are. It does not
        overlap the operands.
    tile : Tile, optional
        None: by the shapes.
    """
    if a.shape[1] < b.shape[2]:  # as high as wide, or higher
        a, b, out = (x.transpose(0, 2, 1) for x in (b, a, out))
    count, m, k = a.shape
    n = b.shape[2]
    if 0 in out.shape:
        return
    processors = backend.current().processors()
    tile = tile or choose(count, m, n, processors)
    if backend.current().architecture() == TURING and tile is LARGE:
        tile = SMALL
    down, across = tile.blocks(m, n)
    parts = pieces(k, CHAIN)
    few = count * down * across < processors
    shares = few and parts > 1 and 4 * parts * m * n <= _MOST_SUMS
    step = 1 if shares else MOST
    for first in range(0, count, step):
        x, y, z = (array[first : first + step] for array in (a, b, out))
        if k == 0:
            _end(x, y, z, None, 0)
        elif shares:
            _by_parts(x, y, z, tile, parts)
        else:
            rounds = is_ours(out.dtype)
            _launch(tile, x, y, z, len(x), z.dtype, parts=1, rounds=rounds)


def _launch(
    tile: Tile, a: Any, b: Any, c: Any, deep: int, result: Any, **fields: Any
) -> None:
    """Blocks of threads: tiles down and across, and as many in z as it is deep."""
    kernel = Kernel(FILE, tile.kernel, options(a.dtype, b.dtype, result))
    down, across = tile.blocks(a.shape[1], b.shape[2])
    backend.current().launch(
        kernel,
        (down, across, deep),
        (THREADS,),
        task(a, b, c, **fields),
        a,
        b,
        c,
        shared=tile.shared,
    )


def _by_parts(a: Any, b: Any, out: Any, tile: Tile, parts: int) -> None:
    """One product, whose chains are computed side by side."""
    m, n = out.shape[1:]
    sums = cupy.empty((parts, m, n), np.float32)
    for first in range(0, parts, MOST):
        here = sums[first : first + MOST]
        k = slice(first * CHAIN, (first + MOST) * CHAIN)
        _launch(
            tile, a[:, :, k], b[:, k], here[:1], len(here), out.dtype,
            parts=max(len(here), 2), part=sums.strides[0],
        )  # fmt: skip
    _end(a, b, out, sums, parts)


def _end(a: Any, b: Any, out: Any, sums: Any, parts: int) -> None:
    """Add the sums of chains; there are none where there is no k."""
    count, m, n = out.shape
    wide = min(32, 1 << (n - 1).bit_length())
    high = THREADS // wide
    backend.current().launch(
        Kernel(FILE, "chain_end", options(a.dtype, b.dtype, out.dtype)),
        (pieces(n, wide), min(pieces(m, high), MOST), count),
        (wide, high),
        # Of k there may be more than a task counts.
        task(a[:, :, :0], b[:, :0], out, parts=parts, rounds=is_ours(out.dtype)),
        out,
        sums,
    )
