"""Multiply matrices by wgmma, the instruction of Hopper's tensor cores for 128 threads.

Like the kernel of `native` for mma.sync, the kernel (src/cuda/matmul/wgmma.cu) computes
each element of the result by one chain of instructions from +0, k ascending.
`tf32dtype.tensor_core.matmul` with device="H100" and instruction="wgmma" gives the same
bits. For all formats except FP8, they are also the bits of mma.sync.

If operands are split into components (parts), the kernel sums all products of parts in
one launch: see `Parts`.

The kernel is used for split operands if it `suits` the product. It is also used for
arrays of blocks of 32, if there are tiles for at least half of the processors. With the
environment variable ``TF32DTYPE_CUDA_WGMMA=0``, cuBLAS and mma.sync are used instead.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._runtime.backend import (
    KEPT,
    Backend,
    Constant,
    Kernel,
    current,
    int32,
    int64,
)
from . import native
from .native import Lines
from .tile_options import LARGEST, pieces

#: The architecture that has the instruction.
ARCHITECTURE = "sm_90a"
#: Whether to use the instruction for split operands and arrays of blocks if available.
ENABLED = os.environ.get("TF32DTYPE_CUDA_WGMMA") != "0"

#: Bytes of k that are copied at a time: a whole permuted line.
SLICE = 128
#: Bytes of k per instruction.
STEP = 32
#: Alignment of slices in shared memory, in bytes; the kernel finds the first multiple.
ALIGNED = 1024
#: Threads that copy, in addition to those that multiply.
COPYING = 128
#: Strides of tensor maps are below this limit, in bytes.
FARTHEST = 1 << 40
#: Lines of a box across k.
ACROSS = 64
#: Bytes of shared memory per block.
ROOM = 227 << 10
#: Multiprocessors of the largest device.
PROCESSORS = 132
#: Slices of all products of parts, and tiles, from which on cuBLAS is faster. Blocks no
#: longer work on the same slices at a time, and find fewer of them in L2. On an H100,
#: both are equally fast for bf16x9 at 8192^3. At 16384^3, cuBLAS took 20 % less time.
LONG_SLICES, MANY_TILES = 2048, 4096
#: Smallest filled fraction of tiles for which a stack of small results uses the kernel
#: if there are many tiles (an estimate).
LEAST_FILLED = 1 / 8
#: Estimated times, in steps of a slice of a wide tile (0.7 us each): the begin and end
#: of a tile, and the latency of an addition. `_MOVED` is the number of float32 results
#: that are moved in one step.
_BEGIN, _MOVED, _ADDED = 6.0, 1 << 19, 0.15


class Tile(NamedTuple):
    """The part of the result that a block computes: 64 rows per warpgroup."""

    rows: int
    columns: int
    #: estimated time per element; small tiles copy more per element
    weight: float = 1.0

    @property
    def threads(self) -> int:
        """Return the number of threads per block."""
        return self.rows * 2 + COPYING

    @property
    def stages(self) -> int:
        """Return the number of slices in shared memory."""
        return (ROOM - ALIGNED) // self._stage

    @property
    def shared(self) -> int:
        """Return the bytes of shared memory."""
        return ALIGNED + self.stages * self._stage

    @property
    def _stage(self) -> int:  # with two barriers of 8 bytes
        return (self.rows + self.columns) * SLICE + 16


WIDE, SQUARE = Tile(128, 256), Tile(128, 128, 1.25)
#: Tiles for chains. Parts use the wide tile, which reuses most.
CHAINS = WIDE, SQUARE


class Parts(NamedTuple):
    """Describe operands in parts, and the order of the sums of their products.

    For each piece of k ::

        t = +0
        for order from the last to 1:
            t = t + the chain of all products of parts i + j = order  # i, k ascending
            t = t * between
        for each stretch of order 0:  # the largest parts
            for each instruction of the stretch:
                t = t + the instruction's result  # float32, to nearest
            out = out + t, or t if it is the first; then t = +0

    Each instruction of a chain adds to t. A stretch is a segment of k.
    """

    parts: int = 1  #: number of parts of an operand
    #: number of split orders; 0 means one chain, without parts
    orders: int = 0
    #: weight of an order relative to the order before it, a power of two
    between: float = 1.0
    #: slices per stretch
    stretch: int = 1 << 30

    @property
    def products(self) -> int:
        """Return the number of products of parts."""
        ends = ((i, 2 * (self.parts - 1) - i) for i in range(self.orders))
        return sum(1 + min(pair) for pair in ends)


#: Operands that are not split.
WHOLE = Parts()

#: Size of the tile that other kernels use.
ROWS, COLUMNS = SQUARE[:2]


def is_here() -> bool:
    """Return whether the current device has the instruction."""
    return current().architecture() == ARCHITECTURE


def leads(shape: tuple[int, ...]) -> bool:
    """Return whether this instruction replaces mma.sync for a product of blocks.

    `shape` is (s, m, n). The bits are the same. This instruction only has large tiles,
    and a few tiles would leave most of the device idle.
    """
    return ENABLED and is_here() and 2 * tiles(shape) >= current().processors()


def tiles(shape: tuple[int, ...], tile: Tile = SQUARE) -> int:
    """Return the number of tiles of a product (s, m, n).

    Raises
    ------
    ValueError
        If the product is too large for one launch.
    """
    s, m, n = shape
    count = s * pieces(m, tile.rows) * pieces(n, tile.columns)
    if count >= 1 << 31 or max(m, n, s) > LARGEST:
        raise ValueError(
            "a and b must be small enough for one launch; got a matrix multiplication"
            f" of shape {shape}"
        )
    return count


def choose_tile(shape: tuple[int, ...], processors: int) -> Tile:
    """Choose the tile for chains with the shortest estimated time.

    All tiles give the same bits.
    """

    def time(tile: Tile) -> float:
        rounds = pieces(tiles(shape, tile), processors)
        return rounds * tile.rows * tile.columns * tile.weight

    return min(CHAINS, key=time)


def multiply(a: Any, b: Any, out: Any, formats: tuple[str, str]) -> None:
    """Start the kernel on storage, for one chain of all k; see `native.multiply`.

    Raises
    ------
    TensorMapError
        If the driver cannot make tensor maps of the operands.
    ValueError
        If the product is too large for one launch.
    """
    s, m, k = a.shape
    n = b.shape[-1]
    machine = current()
    if out.size == 0:
        return
    if k == 0:  # tensor maps cannot be empty
        native.multiply(a, b, out, formats)
        return
    x, y = operand(a), operand(b.swapaxes(-1, -2))
    size = a.dtype.itemsize
    slices = pieces(k, SLICE // size)
    launch = _planned(
        formats, size, None, (s, m, n, k), slices, 1, WHOLE, x.lines, y.lines,
        machine.processors(),
    )  # fmt: skip
    _start(machine, launch, x.storage, y.storage, out)


def multiply_parts(
    a: Any, b: Any, out: Any, format: str, parts: Parts, count: int
) -> None:
    """Start the kernel on operands in parts, and sum all their products.

    Parameters
    ----------
    a, b : cupy.ndarray or View
        Storage (s, m, parts * depth) and (s, n, parts * depth) in C order, or of one
        matrix for all. Each part has `depth` k, which are whole slices. The largest
        part is first in a line of `a`, and last in a line of `b`.
    out : cupy.ndarray or View
        float32 array (count * s, m, n) in C order, for `count` pieces of k.
    format : str
        Format of the parts: "bfloat16" or "tf32".
    parts : Parts
        Number of parts, and order of the sums.
    count : int
        Number of pieces of k, at most the number of slices.

    Raises
    ------
    TensorMapError
        If the driver cannot make tensor maps of the operands.
    ValueError
        If the product is too large for one launch.
    """
    machine = current()
    launch = _planned_parts(
        format, a.dtype.itemsize, a.shape, b.shape, out.shape[0] // count, count,
        parts, machine.processors(),
    )  # fmt: skip
    _start(machine, launch, a, b, out)


#: Arguments of `tensor_maps.tensor_map`: extents, strides and a box.
_Map = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class _Launch(NamedTuple):
    """A launch of the kernel, without the addresses of operands."""

    kernel: Kernel
    grid: tuple[int]
    tile: Tile
    size: int  #: bytes of an element
    maps: tuple[_Map, _Map]
    numbers: tuple[Constant, ...]


@lru_cache(maxsize=KEPT)
def _planned(
    formats: tuple[str, str],
    size: int,
    tile: Tile | None,
    shape: tuple[int, int, int, int],
    slices: int,
    count: int,
    parts: Parts,
    a: Lines,
    b: Lines,
    processors: int,
) -> _Launch:
    """Plan a product by its stacks, m, n and k."""
    s, m, n, k = shape
    if k > LARGEST:
        raise ValueError(f"k must be at most {LARGEST} for one launch; got {k}")
    tile = tile or choose_tile((s, m, n), processors)
    tiled = tiles((count * s, m, n), tile)
    stacks = a.stack > 0, b.stack > 0
    numbers = (
        *map(int64, (m, n)),
        *map(int32, (slices, s, count, *stacks, tiled, parts.stretch)),
    )
    return _Launch(
        kernel(formats, size, tile, a.along_k, b.along_k, parts.parts, parts.orders),
        (min(tiled, processors),),
        tile,
        size,
        (_map(a, size, m, k, tile.rows), _map(b, size, n, k, tile.columns)),
        (*numbers, Constant(np.float32(parts.between))),
    )


@lru_cache(maxsize=KEPT)
def _planned_parts(
    format: str,
    size: int,
    a: tuple[int, int, int],
    b: tuple[int, int, int],
    stacks: int,
    count: int,
    parts: Parts,
    processors: int,
) -> _Launch:
    """Plan a product of parts from the shapes of their lines, in C order."""
    k = a[-1]
    slices = k * size // SLICE // parts.parts
    x, y = (
        Lines(True, k * size, rows * k * size if matrices > 1 else 0, matrices)
        for matrices, rows, _ in (a, b)
    )
    return _planned(
        (format, format), size, WIDE, (stacks, a[1], b[1], k), slices, count, parts, x,
        y, processors,
    )  # fmt: skip


def _start(machine: Backend, launch: _Launch, a: Any, b: Any, out: Any) -> None:
    function, grid, tile, size, (of_a, of_b), numbers = launch
    machine.launch(
        function, grid, (tile.threads,), machine.tensor_map(a, size, *of_a, True),
        machine.tensor_map(b, size, *of_b, True), out, *numbers, shared=tile.shared,
    )  # fmt: skip


@lru_cache(maxsize=KEPT)
def choose_pieces(shape: tuple[int, int, int], slices: int, parts: Parts) -> int:
    """Choose the number of pieces into which k of a product of parts is divided.

    The number has the shortest estimated time on a device with `PROCESSORS`. It is the
    same on all devices, so that the bits are, too.
    """
    tiled = tiles(shape, WIDE)

    def time(count: int) -> float:
        rounds = pieces(tiled * count, PROCESSORS)
        work = rounds * (pieces(slices, count) * (parts.products + 0.6) + _BEGIN)
        # Each piece is written, read again and added.
        return work + (count > 1) * count * (math.prod(shape) / _MOVED + _ADDED)

    return min(range(1, min(slices, PROCESSORS) + 1), key=time)


def suits(shape: tuple[int, int, int], slices: int, parts: Parts, size: int) -> bool:
    """Return whether the kernel can multiply parts, and cuBLAS is not faster.

    Each part has `slices` slices of k, with elements of `size` bytes.
    """
    tiled = tiles(shape, WIDE)
    filled = math.prod(shape) / (tiled * WIDE.rows * WIDE.columns)
    return not (
        slices * (SLICE // size) * parts.parts > LARGEST
        or (tiled >= MANY_TILES and slices * parts.products >= LONG_SLICES)
        or (tiled > PROCESSORS and filled < LEAST_FILLED)
    )


def options(
    formats: tuple[str, str],
    size: int,
    stages: int,
    tile: Tile = SQUARE,
    along_k: tuple[bool, bool] = (True, True),
) -> dict[str, object]:
    """Return the macros with which kernels with this instruction are compiled."""
    a, b = (native.FORMATS[name][0] for name in formats)
    transposed = "".join(f", {int(not x)}" for x in along_k) if size == 2 else ""
    return {
        "UNIT": f'"k{STEP // size}.f32.{a}.{b}"',
        "TAIL": f'"{transposed}"',
        "SIZE": size,
        "A_ALONG_K": int(along_k[0]),
        "B_ALONG_K": int(along_k[1]),
        "ROWS": tile.rows,
        "COLUMNS": tile.columns,
        "WARP_ROWS": 16,
        "WARP_COLUMNS": tile.columns,
        "SLICE": SLICE,
        "STAGES": stages,
        "RESIDENT": 1,
    }


@lru_cache(maxsize=KEPT)
def kernel(
    formats: tuple[str, str],
    size: int,
    tile: Tile,
    a_along_k: bool = True,
    b_along_k: bool = True,
    parts: int = 1,
    orders: int = 0,
) -> Kernel:
    """Return the kernel for elements of `size` bytes, of given layouts.

    It computes one chain if `orders` is 0, otherwise so many split orders.
    """
    along_k = a_along_k, b_along_k
    macros = options(formats, size, tile.stages, tile, along_k)
    macros |= {"PARTS": parts, "ORDERS": max(orders, 1), "PROMOTE": int(orders > 0)}
    return Kernel(
        "cuda/matmul/wgmma.cu",
        "wgmma",
        tuple(f"-D{name}={x}" for name, x in macros.items()),
    )


def operand(x: Any) -> native.Operand:
    """Return storage (s, lines, k), copied if its memory cannot be mapped.

    The instruction also reads 2-byte elements that are contiguous across k.
    """
    mixed = x.dtype.itemsize == 2
    found = native.operand(x, mixed)
    if has_map(found.lines.pitch, found.lines.stack):
        return found
    return native.operand(x, mixed, always=True)


def has_map(pitch: int, stack: int) -> bool:
    """Return whether a tensor map can have these strides of lines and stacks.

    A stride is 0 if there is only one line or matrix.
    """
    forward = all(0 <= i < FARTHEST and i % 16 == 0 for i in (pitch, stack))
    return forward and (not pitch or stack % pitch == 0)


def codes_map(x: native.Operand, rows: int, k: int, lines: int) -> Any:
    """Return a tensor map of (k, rows, stacks) with boxes of a slice of `lines` lines.

    If storage is contiguous across k, the map is of (rows, k, stacks) and its boxes are
    64 lines of a slice.
    """
    size = x.storage.dtype.itemsize
    told = _map(x.lines, size, rows, k, lines)
    return current().tensor_map(x.storage, size, *told, True)


def _map(x: Lines, size: int, rows: int, k: int, lines: int) -> _Map:
    inner, outer, box = k, rows, (SLICE // size, lines, 1)
    if not x.along_k:
        inner, outer, box = rows, k, (ACROSS, SLICE // size, 1)
    # The stride of a single line has no meaning.
    pitch = x.pitch or x.stack or pieces(inner * size, 16) * 16
    extents = inner, outer, x.matrices if x.stack else 1
    return extents, (pitch, x.stack or outer * pitch), box
