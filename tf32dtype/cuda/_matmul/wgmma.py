"""Products by wgmma, the instruction of Hopper's tensor cores for 128 threads.

The kernel (src/cuda/matmul/wgmma.cu) is what that of `native` is for mma.sync: each
element of the result is one chain of instructions from +0, k ascending. Its bits are
those of `tf32dtype.tensor_core.matmul` with device="H100" and instruction="wgmma", of
which the models of all formats but FP8 are those of mma.sync too.

The kernel also sums all products of parts of a split product, in one launch: see
`Parts`.

Split products take it where it `suits`, and products of blocks of 32 where there are
tiles for half of the device. The environment variable ``TF32DTYPE_CUDA_WGMMA=0`` leaves
these to cuBLAS and mma.sync.
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

#: The architecture whose instruction it is.
ARCHITECTURE = "sm_90a"
#: Whether split products, and those of blocks, are by it where it is there.
ENABLED = os.environ.get("TF32DTYPE_CUDA_WGMMA") != "0"

#: Bytes of k that are copied at a time, all of a permuted line.
SLICE = 128
#: Bytes of k of an instruction.
STEP = 32
#: A multiple of it is where a slice begins; the kernel finds the first one.
ALIGNED = 1024
#: Threads besides those that multiply.
COPYING = 128
#: Strides of maps are less.
FARTHEST = 1 << 40
#: Lines of a box across k.
ACROSS = 64
#: Bytes of shared memory that a block has.
ROOM = 227 << 10
#: Of the largest device.
PROCESSORS = 132
#: Slices of all products of parts, and tiles, from which on cuBLAS is faster: blocks
#: are at the same slices no longer, and find less of them in L2. Of bf16x9 both are as
#: fast at 8192^3; at 16384^3 cuBLAS' way took 20 % less time, that on an H100.
LONG_SLICES, MANY_TILES = 2048, 4096
#: The part of many tiles that a stack of small results fills at least. An estimate.
LEAST_FILLED = 1 / 8
#: In steps of a slice of a wide tile, 0.7 us: what a tile takes before and after,
#: float32 results that are moved in one, and what an addition waits for. Estimates.
_BEGIN, _MOVED, _ADDED = 6.0, 1 << 19, 0.15


class Tile(NamedTuple):
    """Of the result, a block's: a warpgroup has 64 rows, a warp 16."""

    rows: int
    columns: int
    weight: float = 1.0  #: of time for an element, an estimate: more is copied for it

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows * 2 + COPYING

    @property
    def stages(self) -> int:
        """Slices in shared memory."""
        return (ROOM - ALIGNED) // self._stage

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return ALIGNED + self.stages * self._stage

    @property
    def _stage(self) -> int:  # with two barriers of 8 bytes
        return (self.rows + self.columns) * SLICE + 16


WIDE, SQUARE = Tile(128, 256), Tile(128, 128, 1.25)
#: What chains may have; parts have the wide one, of which most is reused.
CHAINS = WIDE, SQUARE


class Parts(NamedTuple):
    """Describe operands in parts, and the order of the sums of their products.

    For each piece of k ::

        t = +0
        for order from the last to 1:
            t = t + the chain of all products of parts i + j = order  # i, k ascending
            t = t * between
        for each stretch of order 0:  # the greatest parts
            for each instruction of the stretch:
                t = t + the instruction's result  # float32, to nearest
            out = out + t, or t if it is the first; then t = +0

    where a chain goes on from t, by the instruction.
    """

    parts: int = 1
    #: split orders; 0: there are no parts, but one chain
    orders: int = 0
    #: what an order counts of the one before, a power of two
    between: float = 1.0
    #: slices of a stretch
    stretch: int = 1 << 30

    @property
    def products(self) -> int:
        """How many products of parts there are."""
        ends = ((i, 2 * (self.parts - 1) - i) for i in range(self.orders))
        return sum(1 + min(pair) for pair in ends)


#: What is no parts.
WHOLE = Parts()

#: of the tile that other kernels have
ROWS, COLUMNS = SQUARE[:2]


def is_here() -> bool:
    """Whether the current device has the instruction."""
    return current().architecture() == ARCHITECTURE


def leads(shape: tuple[int, ...]) -> bool:
    """Say whether this instruction computes a block product (s, m, n).

    The bits are those of mma.sync, too. It has only large tiles, and few of them leave
    the device idle.
    """
    return ENABLED and is_here() and 2 * tiles(shape) >= current().processors()


def tiles(shape: tuple[int, ...], tile: Tile = SQUARE) -> int:
    """How many a product (s, m, n) has.

    Raises
    ------
    ValueError
        For more than a launch has.
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
    """Choose the tile for chains that should take the least time.

    All tiles give the same bits.
    """

    def time(tile: Tile) -> float:
        rounds = pieces(tiles(shape, tile), processors)
        return rounds * tile.rows * tile.columns * tile.weight

    return min(CHAINS, key=time)


def multiply(a: Any, b: Any, out: Any, formats: tuple[str, str]) -> None:
    """The kernel, on storage, as `native.multiply`: one chain of all k.

    Raises
    ------
    TensorMapError
        If the driver makes no maps of the operands.
    ValueError
        For too large a product.
    """
    s, m, k = a.shape
    n = b.shape[-1]
    machine = current()
    if out.size == 0:
        return
    if k == 0:  # of which there are no maps
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
    """The same of operands in parts.

    Parameters
    ----------
    a, b : cupy.ndarray or View
        Storage (s, m, parts * depth) and (s, n, parts * depth) in C order, or of one
        matrix for all: parts of `depth` k each, whole slices; of a line of `a` the
        greatest is the first, of `b` the last.
    out : cupy.ndarray or View
        float32 (count * s, m, n) in C order, for so many pieces of k.
    format : str
        Of the parts: "bfloat16" or "tf32".
    count : int
        No more than there are slices.

    Raises
    ------
    TensorMapError
        If the driver makes no maps of the operands.
    ValueError
        For too large a product.
    """
    machine = current()
    launch = _planned_parts(
        format, a.dtype.itemsize, a.shape, b.shape, out.shape[0] // count, count,
        parts, machine.processors(),
    )  # fmt: skip
    _start(machine, launch, a, b, out)


#: Of `tensor_maps.tensor_map`: extents, strides and a box.
_Map = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class _Launch(NamedTuple):
    """All but where things are."""

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
    """Of lines of these shapes, in C order."""
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
    """Choose into how many pieces of k a product of parts is divided.

    The choice should take the least time, in steps of a slice of a tile, on
    `PROCESSORS`: the bits are the same on all devices.
    """
    tiled = tiles(shape, WIDE)

    def time(count: int) -> float:
        rounds = pieces(tiled * count, PROCESSORS)
        work = rounds * (pieces(slices, count) * (parts.products + 0.6) + _BEGIN)
        # Each piece is written, read again and added.
        return work + (count > 1) * count * (math.prod(shape) / _MOVED + _ADDED)

    return min(range(1, min(slices, PROCESSORS) + 1), key=time)


def suits(shape: tuple[int, int, int], slices: int, parts: Parts, size: int) -> bool:
    """Say whether the kernel can multiply parts, and no other way is faster.

    Parts have so many slices, with elements of `size` bytes.
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
    """What kernels with this instruction are compiled with."""
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
    """Return the kernel for elements of `size` bytes, contiguous as said.

    It computes one chain, or so many split orders.
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

    The instruction has 2-byte elements across k, too.
    """
    mixed = x.dtype.itemsize == 2
    found = native.operand(x, mixed)
    if has_map(found.lines.pitch, found.lines.stack):
        return found
    return native.operand(x, mixed, always=True)


def has_map(pitch: int, stack: int) -> bool:
    """Whether there are maps with strides of lines and stacks, 0 if there is one."""
    forward = all(0 <= i < FARTHEST and i % 16 == 0 for i in (pitch, stack))
    return forward and (not pitch or stack % pitch == 0)


def codes_map(x: native.Operand, rows: int, k: int, lines: int) -> Any:
    """Return a map of (k, rows, stacks) by boxes of a slice of so many lines.

    Across k it is of (rows, k, stacks), by boxes of 64 lines of a slice.
    """
    size = x.storage.dtype.itemsize
    told = _map(x.lines, size, rows, k, lines)
    return current().tensor_map(x.storage, size, *told, True)


def _map(x: Lines, size: int, rows: int, k: int, lines: int) -> _Map:
    inner, outer, box = k, rows, (SLICE // size, lines, 1)
    if not x.along_k:
        inner, outer, box = rows, k, (ACROSS, SLICE // size, 1)
    # That of one line says nothing.
    pitch = x.pitch or x.stack or pieces(inner * size, 16) * 16
    extents = inner, outer, x.matrices if x.stack else 1
    return extents, (pitch, x.stack or outer * pitch), box
