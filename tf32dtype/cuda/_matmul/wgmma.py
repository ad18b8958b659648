"""Products by wgmma, the instruction of Hopper's tensor cores for 128 threads.

The kernel (src/cuda/matmul/wgmma.cu) is what that of `native` is for mma.sync: each
element of the result is one chain of instructions from +0, k ascending, or a sum of
such. Its bits are those of `tf32dtype.tensor_core.matmul` with device="H100" and
instruction="wgmma", of which the models of all formats but FP8 are those of mma.sync
too.

Products of leading parts, and of blocks of 32, take it where their bits are those of
mma.sync and there are tiles for half of the device. The environment variable
``TF32DTYPE_CUDA_WGMMA=0`` leaves these to mma.sync.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._runtime.backend import KEPT, Kernel, current, int32, int64
from . import native
from .tile_options import LARGEST, pieces

#: The architecture whose instruction it is.
ARCHITECTURE = "sm_90a"
#: Whether products of leading parts are this kernel's where it can.
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


class Tile(NamedTuple):
    """Of the result, a block's: a warpgroup has 64 rows, a warp 16."""

    rows: int
    columns: int
    weight: float = 1.0  #: of time for an element, an estimate: more is copied for it
    totals: bool = False  #: whether sums of stretches lie in shared memory

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows * 2 + COPYING

    @property
    def stages(self) -> int:
        """Slices in shared memory."""
        return (ROOM - ALIGNED - self._totals) // self._stage

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return ALIGNED + self.stages * self._stage + self._totals

    @property
    def _stage(self) -> int:  # with two barriers of 8 bytes
        return (self.rows + self.columns) * SLICE + 16

    @property
    def _totals(self) -> int:
        return self.rows * self.columns * 4 if self.totals else 0


WIDE, SQUARE = Tile(128, 256), Tile(128, 128, 1.25)
#: What chains may have; sums, which take three times the registers, have the other one.
CHAINS = WIDE, SQUARE
SUMS = SQUARE._replace(totals=True)
#: of the tile that other kernels have
ROWS, COLUMNS = SQUARE[:2]


def is_here() -> bool:
    """Whether the current device has the instruction."""
    return current().architecture() == ARCHITECTURE


def leads(shape: tuple[int, ...]) -> bool:
    """Whether a product (s, m, n) whose bits are mma.sync's too is to be this kernel's:
    it has large tiles alone, of which few leave the device idle."""
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
        raise ValueError(f"a product of shape {shape} is too large for one launch")
    return count


@lru_cache(maxsize=KEPT)
def choose_tile(shape: tuple[int, ...], processors: int) -> Tile:
    """For chains, that which is estimated to take the least time. All give the same
    bits."""

    def time(tile: Tile) -> float:
        rounds = pieces(tiles(shape, tile), processors)
        return rounds * tile.rows * tile.columns * tile.weight

    return min(CHAINS, key=time)


def sums_here(sums: native.Sums, size: int, k: int) -> bool:
    """Whether the kernel has chains of elements of `size` bytes."""
    return k > 0 and sums.promote * size == STEP


def multiply(
    a: Any,
    b: Any,
    out: Any,
    formats: tuple[str, str],
    sums: native.Sums = native.CHAIN,
) -> None:
    """The kernel, on storage, as `native.multiply`.

    Raises
    ------
    TensorMapError
        If the driver makes no maps of the operands.
    ValueError
        For sums of chains that are not one instruction each, or too large a product.
    """
    s, m, k = a.shape
    n = b.shape[-1]
    size = a.dtype.itemsize
    if sums.promote * size not in (0, STEP):
        raise ValueError(f"chains of {sums.promote} k are not one instruction each")
    processors = current().processors()
    tile = SUMS if sums.promote else choose_tile((s, m, n), processors)
    count = tiles((s, m, n), tile)
    if count == 0:
        return
    if k == 0:  # of which there are no maps
        native.multiply(a, b, out, formats, sums=sums)
        return
    x, y = operand(a), operand(b.swapaxes(-1, -2))
    current().launch(
        kernel(formats, size, bool(sums.promote), tile, x.along_k, y.along_k),
        (min(count, processors),),
        (tile.threads,),
        codes_map(x, m, k, tile.rows),
        codes_map(y, n, k, tile.columns),
        out,
        *(int64(i) for i in (m, n, k)),
        *(int32(i) for i in (x.stack > 0, y.stack > 0, count, sums.stretch or 1 << 30)),
        np.float32(sums.beta),
        shared=tile.shared,
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
        "UNIT": f'"m64n{tile.columns}k{STEP // size}.f32.{a}.{b}"',
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
    promotes: bool,
    tile: Tile,
    a_along_k: bool = True,
    b_along_k: bool = True,
) -> Kernel:
    """The kernel for elements of `size` bytes, contiguous as said."""
    along_k = a_along_k, b_along_k
    macros = options(formats, size, tile.stages, tile, along_k)
    macros["PROMOTE"] = int(promotes)
    return Kernel(
        "cuda/matmul/wgmma.cu",
        "wgmma",
        tuple(f"-D{name}={x}" for name, x in macros.items()),
    )


def operand(x: Any) -> native.Operand:
    """Storage (s, lines, k), copied if there is no map of it where it is. The
    instruction has 2-byte elements across k, too."""
    mixed = x.dtype.itemsize == 2
    found = native.operand(x, mixed)
    if has_map(found.pitch, found.stack):
        return found
    return native.operand(x, mixed, always=True)


def has_map(pitch: int, stack: int) -> bool:
    """Whether there are maps with strides of lines and stacks, 0 if there is one."""
    forward = all(0 <= i < FARTHEST and i % 16 == 0 for i in (pitch, stack))
    return forward and (not pitch or stack % pitch == 0)


def codes_map(x: native.Operand, rows: int, k: int, lines: int) -> Any:
    """A map of (k, rows, stacks) by boxes of a slice of so many lines, or across k of
    (rows, k, stacks) by boxes of 64 lines of a slice."""
    size = x.storage.dtype.itemsize
    inner, outer, box = k, rows, (SLICE // size, lines, 1)
    if not x.along_k:
        inner, outer, box = rows, k, (ACROSS, SLICE // size, 1)
    # That of one line says nothing.
    pitch = x.pitch or x.stack or pieces(inner * size, 16) * 16
    return current().tensor_map(
        x.storage,
        size,
        (inner, outer, x.storage.shape[0] if x.stack else 1),
        (pitch, x.stack or outer * pitch),
        box,
        swizzled=True,
    )
