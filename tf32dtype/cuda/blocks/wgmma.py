"""Products of arrays of blocks by Hopper's wgmma: src/cuda/block_wgmma.cu.

What `native` is for mma.sync: the sum of a block, for each of its terms, is a chain of
the FP8 instruction from +0, as `tf32dtype.tensor_core.matmul` has it with device="H100"
and instruction="wgmma", whose accumulators keep 13 bits.

Untested on a GPU, as `tf32dtype.cuda.wgmma` is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import backend, wgmma
from ..backend import Kernel
from ..native import Operand
from ..tensor_maps import MAP
from ..tiles import LARGEST, pieces
from ..wgmma import COLUMNS, ROWS, SLICE
from . import native

#: k of a slice, in FP8
DEPTH = SLICE
#: Bytes of shared memory for stages, a block's most but what finds their beginning.
ROOM = (227 << 10) - wgmma.ALIGNED

#: struct Side of block_wgmma.cu
SIDE = np.dtype([(name, MAP) for name in ("codes", "residuals", "scales")])


def stages(block: int, levels: list[tuple[int, int]]) -> tuple[int, int]:
    """How many stages of codes and scales there are, and their bytes, with barriers."""
    lines = ROWS * (1 + max(i for i, _ in levels))
    lines += COLUMNS * (1 + max(j for _, j in levels))
    filled = lines * (SLICE + DEPTH // block * 4)
    stage = pieces(filled, wgmma.ALIGNED) * wgmma.ALIGNED + 16
    count = min(ROOM // stage, 6)
    return count, count * stage + wgmma.ALIGNED


def kernel(names: tuple[str, str], block: int, levels: list[tuple[int, int]]) -> Kernel:
    """The kernel for elements, a block size and terms."""
    a, b = (name if name in native.FORMATS else native.E4M3 for name in names)
    macros = {
        **wgmma.options((a, b), 1, stages(block, levels)[0]),
        "BLOCK_K": block,
        "A_LEVELS": 1 + max(i for i, _ in levels),
        "B_LEVELS": 1 + max(j for _, j in levels),
        "LAST": int((1, 1) in levels),
    }
    options = tuple(f"-D{name}={value}" for name, value in macros.items())
    return Kernel("block_wgmma.cu", "block_wgmma", options)


def product(a: Any, b: Any, c: Any, levels: list[tuple[int, int]]) -> None:
    """Write a @ b to c, (s, m, n), float32 in C order; a and b are operands of
    `products`, of bytes."""
    count, m, n = c.shape
    block = a.layout.block_size
    grid = count * pieces(m, ROWS) * pieces(n, COLUMNS)
    if grid >= 1 << 31 or max(m, n, a.k, count) > LARGEST:
        raise ValueError(f"a product of shape {c.shape} is too large for one launch")
    given = zip((a, b), (ROWS, COLUMNS), zip(*levels, strict=True), strict=True)
    sides = [_side(x, lines, 1 + max(used)) for x, lines, used in given]
    backend.current().launch(
        kernel((a.names[0], b.names[0]), block, levels),
        (grid,),
        (ROWS * 2 + wgmma.COPYING,),
        *(side.maps for side in sides),
        c,
        *map(np.int64, (m, n, a.k)),
        *(np.int32(side.stacks) for side in sides),
        shared=stages(block, levels)[1],
    )


class Side(NamedTuple):
    """What the kernel is told of an operand."""

    maps: Any
    stacks: bool  #: whether matrices differ
    kept: list[Any]  #: what maps point to, which no kernel's argument keeps


def _side(x: Any, lines: int, levels: int) -> Side:
    """Maps of codes, residuals and scales."""
    maps = np.zeros((), SIDE)
    kept = [_operand(first, x) for first in (x.hi, x.lo)[:levels]]
    for name, operand in zip(("codes", "residuals"), kept, strict=False):
        maps[name] = wgmma.codes_map(operand, x.k, lines)
    count, blocks, width = x.scales.shape
    stored = x.layout.row.levels
    stack = x.scales.strides[0] if count > 1 else 0
    maps["scales"] = backend.current().tensor_map(
        x.scales,
        4,
        (width // stored, levels, blocks, count if stack else 1),
        (width // stored * 4, width * 4, stack or blocks * width * 4),
        (lines, levels, DEPTH // x.layout.block_size, 1),
        swizzled=False,
    )
    return Side(maps, stack > 0, kept)


def _operand(first: Any, x: Any) -> Operand:
    """Where codes are, copied if there is no map of them there."""
    for place in (native.aligned, native.copied):
        codes = place(first, x)
        count, lines, _ = codes.shape
        stack, pitch, _ = codes.strides
        found = Operand(
            codes, True, pitch if lines > 1 else 0, stack if count > 1 else 0
        )
        if wgmma.has_map(found.pitch, found.stack):
            break
    return found
