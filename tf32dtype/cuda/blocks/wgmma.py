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
from .._matmul.native import Lines as Stored
from .._matmul.tile_options import CHUNK, Matrices, pieces
from .._matmul.wgmma import COLUMNS, ROWS, SLICE
from .._runtime import backend, strides
from .._runtime.backend import Kernel, View, int32, int64
from .._runtime.tensor_maps import MAP
from . import native
from .operands import Levels, Lines, Writer

#: Bytes of shared memory for stages: all that a block can have, less the alignment.
ROOM = wgmma.ROOM - wgmma.ALIGNED

#: struct Side of wgmma_matmul.cu
SIDE = np.dtype([(name, MAP) for name in ("codes", "residuals", "scales")])


def stages(block: int, levels: Levels, size: int = 1) -> tuple[int, int]:
    """Return the stages of codes and scales, and the bytes of shared memory.

    Codes have `size` bytes.
    """
    lines = ROWS * (1 + max(i for i, _ in levels))
    lines += COLUMNS * (1 + max(j for _, j in levels))
    filled = lines * (SLICE + SLICE // size // block * 4)
    stage = pieces(filled, wgmma.ALIGNED) * wgmma.ALIGNED + 16
    count = min(ROOM // stage, 6)
    return count, count * stage + wgmma.ALIGNED


def kernel(names: tuple[str, str], block: int, levels: Levels, size: int = 1) -> Kernel:
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


def plan(
    a: Lines, b: Lines, c: Matrices, levels: Levels, *, halves: bool = False
) -> Writer:
    """Plan a @ b for c, (s, m, n), float32 in C order.

    Parameters
    ----------
    a, b : Lines
        Operands of three axes, with one byte per code.
    halves : bool
        Whether to multiply codes as float16, for the bits of mma.sync.

    Returns
    -------
    callable
        A function that is called with the arrays of a, b and the result. It raises a
        `TensorMapError` if the driver cannot make tensor maps of the operands.
    """
    block, size = a.block, 1 + halves
    names = str(a.names[0]), str(b.names[0])  # not None: see `native.check`
    used_a, used_b = (1 + max(used) for used in zip(*levels, strict=True))
    tiles = wgmma.tiles(c.shape)
    grid = (min(tiles, backend.current().processors()),)
    compiled = kernel(names, block, levels, size)
    _, shared = stages(block, levels, size)
    sizes = [int64(i) for i in (*c.shape[1:], a.k)]

    def write(*arrays: View) -> None:
        x = _side(a, arrays[:3], ROWS, used_a, size)
        y = _side(b, arrays[3:6], COLUMNS, used_b, size)
        stacks = int32(x.stacks), int32(y.stacks)
        backend.current().launch(
            compiled, grid, (wgmma.SQUARE.threads,), x.maps, y.maps, arrays[6], *sizes,
            *stacks, int32(tiles), shared=shared,
        )  # fmt: skip

    return write


class Side(NamedTuple):
    """The kernel's arguments for an operand."""

    maps: Any
    stacks: bool  #: whether the matrices of the stack differ
    kept: list[Any]  #: arrays that maps point to, to keep them alive for the launch


def _side(
    x: Lines, arrays: tuple[View, ...], lines: int, levels: int, size: int
) -> Side:
    """Return tensor maps of codes, residuals and scales."""
    maps = np.zeros((), SIDE)
    *codes, scales = arrays
    kept = [_operand(first, x.block) for first in codes[:levels]]
    depth = x.k
    if size > 1:
        names = x.names[:levels]
        kept = [_halves(y, str(of), x.k) for y, of in zip(kept, names, strict=True)]
        depth = kept[0].storage.shape[-1]
    for name, operand in zip(("codes", "residuals"), kept, strict=False):
        rows = operand.storage.shape[1]
        told = wgmma.map_of(operand.lines, size, rows, depth, lines)
        maps[name] = backend.current().tensor_map(operand.storage, size, *told, True)
    count, blocks, width = scales.shape
    stack = scales.strides[0] if count > 1 else 0
    maps["scales"] = backend.current().tensor_map(
        scales,
        4,
        (width // x.levels, levels, blocks, count if stack else 1),
        (width // x.levels * 4, width * 4, stack or blocks * width * 4),
        (lines, levels, SLICE // size // x.block, 1),
        swizzled=False,
    )
    return Side(maps, stack > 0, kept)


class Operand(NamedTuple):
    """The storage of an operand's codes, (stack, lines, k), and its layout."""

    storage: Any
    lines: Stored


def _operand(first: Any, block: int) -> Operand:
    """Return codes as an operand, copied if a tensor map cannot describe them."""
    if first.data.ptr % CHUNK == 0:
        found = _lines(first)
        if wgmma.has_map(found.lines.pitch, found.lines.stack):
            return found
    return _lines(native.copied(first, block))


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
    return Operand(storage, Stored(True, pitch, stack, count))
