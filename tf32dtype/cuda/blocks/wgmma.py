"""Multiply arrays of blocks by Hopper's wgmma: src/cuda/blocks/wgmma_matmul.cu.

With the FP8 instruction, a chain of instructions from +0 computes the sum of a block,
for each of its terms. `tf32dtype.tensor_core.matmul` with device="H100" and
instruction="wgmma" gives the bits of this sum. The accumulators keep 13 bits.

With the float16 instruction, the bits are those of FP8 mma.sync, which Hopper's
assembler translates to float16 instructions. Codes are converted to float16, in the
order of k that mma.sync uses, and need twice the memory. This is supported for blocks
of 32, which are one mma.sync instruction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from .._matmul import wgmma
from .._matmul.native import Lines
from .._matmul.tile_options import pieces
from .._matmul.wgmma import COLUMNS, ROWS, SLICE
from .._runtime import backend, strides
from .._runtime.backend import Kernel
from .._runtime.tensor_maps import MAP
from . import native

#: Bytes of shared memory for stages: all that a block can have, less the alignment.
ROOM = wgmma.ROOM - wgmma.ALIGNED

#: struct Side of wgmma_matmul.cu
SIDE = np.dtype([(name, MAP) for name in ("codes", "residuals", "scales")])


def stages(block: int, levels: list[tuple[int, int]], size: int = 1) -> tuple[int, int]:
    """Return the stages of codes and scales, and the bytes of shared memory.

    Codes have `size` bytes.
    """
    lines = ROWS * (1 + max(i for i, _ in levels))
    lines += COLUMNS * (1 + max(j for _, j in levels))
    filled = lines * (SLICE + SLICE // size // block * 4)
    stage = pieces(filled, wgmma.ALIGNED) * wgmma.ALIGNED + 16
    count = min(ROOM // stage, 6)
    return count, count * stage + wgmma.ALIGNED


def kernel(
    names: tuple[str, str], block: int, levels: list[tuple[int, int]], size: int = 1
) -> Kernel:
    """Return the kernel for elements, a block size and terms.

    With `size` 2, elements are multiplied as float16.
    """
    a, b = map(_multiplied, names)
    macros = {
        **wgmma.options(
            (a, b) if size == 1 else ("float16",) * 2,
            size,
            stages(block, levels, size)[0],
        ),
        "BLOCK_K": block,
        "A_LEVELS": 1 + max(i for i, _ in levels),
        "B_LEVELS": 1 + max(j for _, j in levels),
        "LAST": int((1, 1) in levels),
    }
    options = tuple(f"-D{name}={value}" for name, value in macros.items())
    return Kernel("cuda/blocks/wgmma_matmul.cu", "block_wgmma", options)


def _multiplied(name: str) -> str:
    """Return the FP8 format in which an element's codes are multiplied."""
    return name if name in native.FORMATS else native.E4M3


def product(
    a: Any, b: Any, c: Any, levels: list[tuple[int, int]], *, halves: bool = False
) -> None:
    """Write a @ b to c, (s, m, n), float32 in C order.

    Parameters
    ----------
    a, b : Operand
        Operands of three axes, with one byte per code.
    halves : bool
        Whether to multiply codes as float16, for the bits of mma.sync.

    Raises
    ------
    TensorMapError
        If the driver cannot make tensor maps of the operands.
    """
    block, size = a.layout.block_size, 1 + halves
    tiles = wgmma.tiles(c.shape)
    given = zip((a, b), (ROWS, COLUMNS), zip(*levels, strict=True), strict=True)
    sides = [_side(x, lines, 1 + max(used), size) for x, lines, used in given]
    backend.current().launch(
        kernel((a.names[0], b.names[0]), block, levels, size),
        (min(tiles, backend.current().processors()),),
        (wgmma.SQUARE.threads,),
        *(side.maps for side in sides),
        c,
        *map(np.int64, (*c.shape[1:], a.k)),
        *(np.int32(side.stacks) for side in sides),
        np.int32(tiles),
        shared=stages(block, levels, size)[1],
    )


class Side(NamedTuple):
    """The kernel's arguments for an operand."""

    maps: Any
    stacks: bool  #: whether the matrices of the stack differ
    kept: list[Any]  #: arrays that maps point to, to keep them alive for the launch


def _side(x: Any, lines: int, levels: int, size: int) -> Side:
    """Return tensor maps of codes, residuals and scales."""
    maps = np.zeros((), SIDE)
    kept = [_operand(first, x) for first in (x.hi, x.lo)[:levels]]
    depth = x.k
    if size > 1:
        names = x.names[:levels]
        kept = [_halves(y, name, x.k) for y, name in zip(kept, names, strict=True)]
        depth = kept[0].storage.shape[-1]
    for name, operand in zip(("codes", "residuals"), kept, strict=False):
        rows = operand.storage.shape[1]
        told = wgmma.map_of(operand.lines, size, rows, depth, lines)
        maps[name] = backend.current().tensor_map(operand.storage, size, *told, True)
    count, blocks, width = x.scales.shape
    stored = x.layout.row.levels
    stack = x.scales.strides[0] if count > 1 else 0
    maps["scales"] = backend.current().tensor_map(
        x.scales,
        4,
        (width // stored, levels, blocks, count if stack else 1),
        (width // stored * 4, width * 4, stack or blocks * width * 4),
        (lines, levels, SLICE // size // x.layout.block_size, 1),
        swizzled=False,
    )
    return Side(maps, stack > 0, kept)


class Operand(NamedTuple):
    """The storage of an operand's codes, (stack, lines, k), and its layout."""

    storage: Any
    lines: Lines


def _operand(first: Any, x: Any) -> Operand:
    """Return codes as an operand, copied if a tensor map cannot describe them."""
    for place in (native.aligned, native.copied):
        found = _lines(place(first, x))
        if wgmma.has_map(found.lines.pitch, found.lines.stack):
            break
    return found


def _halves(x: Operand, name: str, k: int) -> Operand:
    """Convert codes to float16, in mma.sync's order of k, by halves.cu."""
    count, lines, blocks = x.storage.shape
    count = count if x.lines.stack else 1
    out = cupy.empty((count, lines, blocks * native.LEAST), np.uint16)
    chunks = out.shape[-1] // 16
    codes = native.FORMATS[_multiplied(name)]
    backend.current().launch(
        Kernel("cuda/blocks/halves.cu", "block_halves", (f'-DCODES="{codes}"',)),
        (strides.blocks(count * lines * chunks),),
        (strides.THREADS,),
        x.storage,
        out,
        *map(
            np.int64,
            (x.lines.stack, x.lines.pitch, lines, chunks, k, count * lines * chunks),
        ),
    )
    return _lines(out)


def _lines(storage: Any) -> Operand:
    """Return storage (stack, lines, k) as an operand."""
    count, lines, _ = storage.shape
    stack, pitch, _ = storage.strides
    pitch, stack = pitch if lines > 1 else 0, stack if count > 1 else 0
    return Operand(storage, Lines(True, pitch, stack, count))
