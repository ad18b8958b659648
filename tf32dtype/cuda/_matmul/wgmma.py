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
from typing import NamedTuple

import numpy as np

from .._runtime.backend import Constant, Kernel, Shape, View, current, int32, int64
from . import native
from .native import Lines, Reading
from .tile_options import LARGEST, Launches, Matrices, Writer, pieces

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


#: Arguments of `tensor_maps.tensor_map`: extents, strides and a box.
Map = tuple[Shape, Shape, Shape]


class Plan(NamedTuple):
    """A launch of the kernel.

    A call raises a `TensorMapError` if the driver cannot make maps of the operands.
    """

    a: Reading
    b: Reading
    kernel: Kernel
    grid: tuple[int]
    tile: Tile
    size: int  #: bytes of an element
    maps: tuple[Map, Map]
    numbers: tuple[Constant, ...]

    def __call__(self, a: View, b: View, out: View) -> None:
        machine = current()
        x, y = self.a.storage(a), self.b.storage(b.swapaxes(1, 2))
        maps = (
            machine.tensor_map(storage, self.size, *told, True)
            for storage, told in zip((x, y), self.maps, strict=True)
        )
        machine.launch(
            self.kernel, self.grid, (self.tile.threads,), *maps, out, *self.numbers,
            shared=self.tile.shared,
        )  # fmt: skip


def plan(
    a: Matrices, b: Matrices, c: Matrices, parts: Parts = WHOLE, count: int = 1
) -> Writer:
    """Plan one chain of all k, or the sums of all products of operands in parts.

    Parameters
    ----------
    a, b : Matrices
        Operands (s, m, k) and (s, k, n). If they are in parts, their k are the parts
        one after the other, each of whole slices and contiguous. The largest part is
        first in a line of `a`, and last in a line of `b`.
    c : Matrices
        Result (count * s, m, n), float32 in C order, for `count` pieces of k.
    parts : Parts
        Number of parts, and order of the sums.
    count : int
        Number of pieces of k, at most the number of slices of a part.

    Raises
    ------
    ValueError
        If the product is too large for one launch.
    """
    if 0 in c.shape:
        return Launches()
    (s, m, k), n, size = a.shape, b.shape[2], a.dtype.itemsize
    if k == 0:  # tensor maps cannot be empty
        return native.plan(a, b, c)
    if k > LARGEST:
        raise ValueError(f"k must be at most {LARGEST} for one launch; got {k}")
    processors = current().processors()
    tile = WIDE if parts.orders else choose_tile(c.shape, processors)
    tiled = tiles(c.shape, tile)
    slices = pieces(k, SLICE // size) // parts.parts
    # The instruction also reads 2-byte elements that are contiguous across k.
    x, y = (native.reading(i, size == 2, has_map) for i in (a, b.flipped))
    stacks = x.lines.stack > 0, y.lines.stack > 0
    integers = slices, s, count, *stacks, tiled, parts.stretch
    between = Constant(np.float32(parts.between))
    names, along_k = (a.dtype.name, b.dtype.name), (x.lines.along_k, y.lines.along_k)
    return Plan(
        x,
        y,
        kernel(names, size, tile, *along_k, parts.parts, parts.orders),
        (min(tiled, processors),),
        tile,
        size,
        (
            map_of(x.lines, size, m, k, tile.rows),
            map_of(y.lines, size, n, k, tile.columns),
        ),
        (int64(m), int64(n), *map(int32, integers), between),
    )


def choose_pieces(shape: Shape, slices: int, parts: Parts) -> int:
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


def suits(shape: Shape, slices: int, parts: Parts, size: int) -> bool:
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
    unit = f"k{STEP // size}.f32.{a}.{b}"
    return macros_of(unit, size, stages, tile, along_k, transposed)


def macros_of(
    unit: str,
    size: int,
    stages: int,
    tile: Tile,
    along_k: tuple[bool, bool] = (True, True),
    tail: str = "",
) -> dict[str, object]:
    """Return the macros for an instruction, of which `unit` ends the name."""
    return {
        "UNIT": f'"{unit}"',
        "TAIL": f'"{tail}"',
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


def has_map(pitch: int, stack: int) -> bool:
    """Return whether a tensor map can have these strides of lines and stacks.

    A stride is 0 if there is only one line or matrix.
    """
    forward = all(0 <= i < FARTHEST and i % 16 == 0 for i in (pitch, stack))
    return forward and (not pitch or stack % pitch == 0)


def map_of(x: Lines, size: int, rows: int, k: int, lines: int) -> Map:
    """Describe a map of (k, rows, stacks) with boxes of a slice of `lines` lines.

    If storage is contiguous across k, the map is of (rows, k, stacks) and its boxes are
    64 lines of a slice.
    """
    inner, outer, box = k, rows, (SLICE // size, lines, 1)
    if not x.along_k:
        inner, outer, box = rows, k, (ACROSS, SLICE // size, 1)
    # The stride of a single line has no meaning.
    pitch = x.pitch or x.stack or pieces(inner * size, 16) * 16
    extents = inner, outer, x.matrices if x.stack else 1
    return extents, (pitch, x.stack or outer * pitch), box
