"""Multiply matrices with the bits of the CPU: see src/cuda/matmul/fma_matmul.cu."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._arrays.ndarray import allocate, lying
from .._runtime import backend
from .._runtime.backend import KEPT, Constant, Kernel
from .._runtime.storage import is_ours
from .stacks import of_stack
from .tile_options import MOST, Matrices, matrices, option, pieces, task

FILE = "cuda/matmul/fma_matmul.cu"
#: k of an FMA chain.
CHAIN = 256
#: k of a tile in shared memory, and the padding of its rows.
_DEPTH, _PADDING = 8, 4
_SINGLE = np.dtype(np.float32)
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


class _Launch(NamedTuple):
    """A launch of one of the kernels that compute a product."""

    kernel: Kernel
    grid: tuple[int, ...]
    block: tuple[int, ...]
    task: Constant
    shared: int = 0


class _Plan(NamedTuple):
    """A plan of a product, without the addresses of its operands."""

    flipped: bool  #: whether the transposed product of b and a is computed
    #: number of matrices at a time; if it is not all, the plan has no other content
    step: int
    #: launches for consecutive ranges of k; one launch has all k
    launches: tuple[_Launch, ...] = ()
    parts: int = 0  #: number of chains whose sums are stored, or 0
    end: _Launch | None = None  #: launch that adds the sums of chains


@lru_cache(maxsize=KEPT)
def _plan(
    a: Matrices,
    b: Matrices,
    c: Matrices,
    dtypes: tuple[np.dtype[Any], ...],
    tile: Tile | None,
    processors: int,
    turing: bool,
) -> _Plan:
    flipped = a.shape[1] < b.shape[2]
    if flipped:  # then the result has at least as many rows as columns
        a, b, c = b.flipped, a.flipped, c.flipped
        dtypes = dtypes[1], dtypes[0], dtypes[2]
    (count, m, k), n = a.shape, b.shape[2]
    if 0 in (count, m, n):
        return _Plan(flipped, count)
    tile = tile or choose_tile(count, m, n, processors)
    if turing and tile is LARGE:
        tile = SMALL
    down, across = tile.blocks(m, n)
    parts = pieces(k, CHAIN)
    few = count * down * across < processors
    shares = few and parts > 1 and 4 * parts * m * n <= _MOST_SUMS
    step = 1 if shares else MOST
    rounds = is_ours(dtypes[2])
    if count > step:
        return _Plan(flipped, step)
    kernel = Kernel(FILE, tile.kernel, options(*dtypes))

    def launched(a: Matrices, b: Matrices, c: Matrices, **fields: Any) -> _Launch:
        grid = down, across, c.shape[0]
        told = task(a, b, c, **fields)
        return _Launch(kernel, grid, (tile.threads,), told, tile.shared)

    if k == 0:
        return _Plan(flipped, count, (), 0, _end(a, b, c, dtypes, 0))
    if not shares:
        return _Plan(flipped, count, (launched(a, b, c, parts=1, rounds=rounds),))
    size = 4 * m * n
    launches = []
    for first in range(0, parts, MOST):
        here = min(parts - first, MOST)
        depth = min(k - first * CHAIN, MOST * CHAIN)
        x = a._replace(shape=(1, m, depth))
        y = b._replace(shape=(1, depth, n))
        z = Matrices((here, m, n), (size, 4 * n, 4))
        launches.append(launched(x, y, z, parts=max(here, 2), part=size))
    return _Plan(flipped, count, tuple(launches), parts, _end(a, b, c, dtypes, parts))


def _end(
    a: Matrices, b: Matrices, c: Matrices, dtypes: tuple[np.dtype[Any], ...], parts: int
) -> _Launch:
    """Return the launch that adds the sums of chains; without k it writes zeros."""
    count, m, n = c.shape
    wide = min(32, 1 << (n - 1).bit_length())
    high = _END_THREADS // wide
    # k is set to 0, because it may be larger than a task allows.
    x, y = a._replace(shape=(count, m, 0)), b._replace(shape=(count, 0, n))
    return _Launch(
        Kernel(FILE, "chain_end", options(*dtypes)),
        (pieces(n, wide), min(pieces(m, high), MOST), count),
        (wide, high),
        task(x, y, c, parts=parts, rounds=is_ours(dtypes[2])),
    )


def product(a: Any, b: Any, out: Any, tile: Tile | None = None) -> None:
    """Write a @ b to `out`: (s, m, k), (s, k, n) and (s, m, n), or without s.

    Parameters
    ----------
    a, b : cupy.ndarray
        Arrays of this package's formats, float16 or float32, with any strides. float32
        is multiplied without rounding. One matrix, or a stack of one, is multiplied by
        all matrices of the other operand.
    out : cupy.ndarray
        Array to write to: of a format of this package, or float32 for sums that are not
        rounded further. It must not overlap the operands.
    tile : Tile, optional
        Tile of the kernel (default: chosen from the shapes).
    """
    machine = backend.current()
    count = len(out) if out.ndim == 3 else 1
    plan = _plan(
        matrices(a, count),
        matrices(b, count),
        matrices(out, count),
        (a.dtype, b.dtype, out.dtype),
        tile,
        machine.processors(),
        machine.architecture() == TURING,
    )
    if plan.step < count:
        for first in range(0, count, plan.step):
            part = slice(first, first + plan.step)
            x, y = (of_stack(x, count, part) for x in (a, b))
            product(x, y, out[part], tile)
        return
    sums = None
    if plan.parts:
        shape = plan.parts, out.shape[-2] * out.shape[-1]
        sums = allocate(shape, _SINGLE, lying(shape, 4))
    x, y = (b, a) if plan.flipped else (a, b)
    for i, launch in enumerate(plan.launches):
        given = x, y, out if sums is None else sums
        if sums is not None and len(plan.launches) > 1:
            k = slice(i * MOST * CHAIN, (i + 1) * MOST * CHAIN)
            x_k = x[..., k, :] if plan.flipped else x[..., k]
            y_k = y[..., k] if plan.flipped else y[..., k, :]
            given = x_k, y_k, sums[i * MOST :]
        machine.launch(
            launch.kernel, launch.grid, launch.block, launch.task, *given,
            shared=launch.shared,
        )  # fmt: skip
    if plan.end is not None:
        machine.launch(
            plan.end.kernel, plan.end.grid, plan.end.block, plan.end.task, out, sums
        )
