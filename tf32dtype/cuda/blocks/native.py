"""Products of arrays of blocks on tensor cores: src/cuda/blocks/native_matmul.cu.

The sum of a block, for each of its terms, is a chain of the FP8 instruction mma.sync
from +0, as `tf32dtype.tensor_core.matmul` has it with `native.device_of(...)`; it is
added with its scale by one float32 fused multiply-add.

Untested on a GPU, as the kernel of `cuda._matmul.native` is: the tests compute the
instruction by its model, and look at the machine code. Tiles are estimates.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .._matmul import native
from .._matmul.native import Tile
from .._runtime import backend
from .._runtime.backend import Kernel
from . import kernels

#: Elements that the instruction multiplies: PTX's names.
FORMATS = {name: native.FORMATS[name][0] for name in ("float8_e4m3fn", "float8_e5m2")}
#: Elements whose numbers are E4M3's, and what their codes are replaced by those of.
SMALLER = ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4")
E4M3 = "float8_e4m3fn"
#: The least k of a block: that of an instruction.
LEAST = 32

LARGE = Tile(128, 128, 64, 32, 64, 3, 1, 1.0)
SMALL = Tile(64, 64, 32, 32, 64, 3, 1, 1.7)
#: for blocks of 64 and 128, whose chains take registers besides those of the sums
LONG = Tile(64, 64, 32, 32, 128, 2, 1, 1.7)

#: struct Side of native_matmul.cu
SIDE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "pitch", "stack", "lo_pitch", "lo_stack", "level", "block", "scale_stack"
        )
    ]
)  # fmt: skip


def check(a: Any, b: Any) -> None:
    """Raise a ValueError for operands that the kernel does not have."""
    arch = backend.current().architecture()
    if native.number(arch) < 89:
        raise ValueError(
            f"the tensor cores of {arch} have no FP8: blocks are multiplied there in"
            " mode='chain'"
        )
    for name, x in (("a", a), ("b", b)):
        if x.layout is None:
            raise ValueError(
                f"{name} is an array of numbers: mode='native' multiplies two arrays of"
                " blocks"
            )
        known = (*FORMATS, *SMALLER)
        odd = [y for y in x.names if y is not None and y not in known]
        if odd:
            raise ValueError(
                f"{name} has {odd[0]} elements: mode='native' multiplies those of"
                f" {', '.join(known)}"
            )
        if x.layout.block_size < LEAST:
            raise ValueError(
                f"{name} has blocks of {x.layout.block_size}: an instruction takes"
                f" {LEAST} of k"
            )


def bytewise(x: Any, operand: Any) -> Any:
    """An operand whose codes are such as the instruction takes, one a byte."""
    plan, found = x._layout, {}
    parts = (("hi", x.codes, plan.element), ("lo", x.residuals, plan.residual))
    for level, packed, element in parts:
        if element is not None and element.name in SMALLER:
            codes = kernels.as_e4m3(plan, packed, element)[..., 0]
            found[level] = codes if x.ndim > 1 else codes[np.newaxis]
    return operand._replace(**found)


def options(
    names: tuple[str, str], block: int, levels: list[tuple[int, int]], tile: Tile
) -> tuple[str, ...]:
    """Of the compilation for elements, a block size, terms and a tile."""
    a, b = (FORMATS.get(name, FORMATS[E4M3]) for name in names)
    macros = {
        "UNIT": f'"m16n8k32.row.col.f32.{a}.{b}.f32"',
        "UNIT_BYTES": 32,
        "SIZE": 1,
        "A_ALONG_K": 1,
        "B_ALONG_K": 1,
        "ROWS": tile.rows,
        "COLUMNS": tile.columns,
        "WARP_ROWS": tile.warp_rows,
        "WARP_COLUMNS": tile.warp_columns,
        "SLICE": tile.slice,
        "STAGES": tile.stages,
        "RESIDENT": tile.resident,
        "BLOCK_K": block,
        "A_LEVELS": 1 + max(i for i, _ in levels),
        "B_LEVELS": 1 + max(j for _, j in levels),
        "LAST": int((1, 1) in levels),
    }
    return tuple(f"-D{name}={value}" for name, value in macros.items())


def shared(tile: Tile, block: int, levels: list[tuple[int, int]]) -> int:
    """Bytes of shared memory: stages of codes, and of the scales of their blocks."""
    lines = tile.rows * (1 + max(i for i, _ in levels))
    lines += tile.columns * (1 + max(j for _, j in levels))
    return tile.stages * lines * (tile.slice + tile.slice // block * 4)


def choose(
    count: int, m: int, n: int, block: int, levels: list[tuple[int, int]]
) -> Tile:
    """The tile for a product. All give the same bits."""
    if block > LEAST:
        return LONG
    little = native.number(backend.current().architecture()) in native.LITTLE
    fits = shared(LARGE, block, levels) < (99 << 10) or not little
    blocks = count * -(-m // LARGE.rows) * -(-n // LARGE.columns)
    return LARGE if fits and blocks >= backend.current().processors() else SMALL


def product(
    a: Any, b: Any, c: Any, levels: list[tuple[int, int]], tile: Tile | None = None
) -> None:
    """Write a @ b to c, (s, m, n), float32 in C order; a and b are operands of
    `products`."""
    count, m, n = c.shape
    block = a.layout.block_size
    tile = tile or choose(count, m, n, block, levels)
    blocks = count * -(-m // tile.rows) * -(-n // tile.columns)
    if blocks >= 1 << 31:
        raise ValueError(f"a product of shape {c.shape} is too large for one launch")
    left, right = _data(a), _data(b)
    backend.current().launch(
        Kernel(
            "cuda/blocks/native_matmul.cu",
            "block_native",
            options((a.names[0], b.names[0]), block, levels, tile),
        ),
        (blocks,),
        (tile.threads,),
        *left[:3],
        *right[:3],
        c,
        left[3],
        right[3],
        *map(np.int64, (m, n, a.k)),
        shared=shared(tile, block, levels),
    )


def _data(x: Any) -> tuple[Any, Any, Any, Any]:
    """Codes, residuals and scales as the kernel reads them, and how they lie."""
    side = np.zeros((), SIDE)
    hi = aligned(x.hi, x)
    side["stack"], side["pitch"] = hi.strides[:2]
    lo = None
    if x.lo is not None:
        lo = aligned(x.lo, x)
        side["lo_stack"], side["lo_pitch"] = lo.strides[:2]
    levels = x.layout.row.levels
    side["level"] = x.scales.shape[-1] // levels
    side["block"] = x.scales.shape[-1]
    side["scale_stack"] = x.scales.strides[0] // 4
    return hi, lo, x.scales, side


def aligned(first: Any, x: Any) -> Any:
    """Codes (stack, lines, blocks), of each block the first, or a copy of them all that
    begins where 16 bytes can be read at a time: residuals begin where scales end."""
    return first if first.data.ptr % 16 == 0 else copied(first, x)


def copied(first: Any, x: Any) -> Any:
    """The same, copied to where all blocks of a line lie side by side."""
    size = x.layout.block_size
    stack = first.shape[0] if first.strides[0] else 1
    whole = cupy.ndarray(
        (stack, *first.shape[1:], size), np.uint8, first.data, (*first.strides, 1)
    )
    copy = backend.current().call("ascontiguousarray", whole)
    if copy.data.ptr == whole.data.ptr:
        copy = backend.current().call("ndarray.copy", whole)
    return cupy.broadcast_to(copy[..., 0], first.shape)
