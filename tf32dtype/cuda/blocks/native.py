"""Multiply arrays of blocks on tensor cores: src/cuda/blocks/native_matmul.cu.

For each term of a block, a chain of FP8 mma.sync instructions from +0 computes the sum
of the block. `tf32dtype.tensor_core.matmul` with `native.device_of(...)` gives the bits
of this sum. One float32 fused multiply-add adds the sum times its scale.

Without a GPU, tests compute the instruction by its model, and inspect the machine code.
The choice of tiles is an estimate.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from .._matmul import native
from .._matmul.native import Tile
from .._runtime import backend
from .._runtime.backend import KEPT, Constant, Kernel, Shape, int64
from . import kernels
from .operands import Lines, Operand, lines_of

#: Elements that the instruction multiplies, with their names in PTX.
FORMATS = {name: native.FORMATS[name][0] for name in ("float8_e4m3fn", "float8_e5m2")}
#: Elements whose values E4M3 represents; their codes are converted to E4M3 codes.
SMALLER = ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4")
E4M3 = "float8_e4m3fn"
#: Smallest block size: the k of an instruction.
LEAST = 32

LARGE = Tile(128, 128, 64, 32, 64, 3, 1, 1.0)
SMALL = Tile(64, 64, 32, 32, 64, 3, 1, 1.7)
#: Tile for blocks of 64 and 128, whose chains need additional registers.
LONG = Tile(64, 64, 32, 32, 128, 2, 1, 1.7)
#: Tile for such blocks with four terms, for which LONG has too few registers.
LONG_OF_FOUR = Tile(64, 64, 32, 16, 128, 2, 1, 1.7)

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
    """Raise a ValueError for operands that the kernel does not support."""
    arch = backend.current().architecture()
    if native.number(arch) < 89:
        raise ValueError(
            f"the tensor cores of {arch} do not support FP8; use mode='chain' for"
            " arrays of blocks"
        )
    for name, x in (("a", a), ("b", b)):
        if x.layout is None:
            raise ValueError(
                f"{name} must be an array of blocks with mode='native'; got an array of"
                " numbers"
            )
        known = (*FORMATS, *SMALLER)
        odd = [y for y in x.names if y is not None and y not in known]
        if odd:
            raise ValueError(
                f"elements of {name} must be one of {', '.join(known)} with"
                f" mode='native'; got {odd[0]}"
            )
        if x.layout.block_size < LEAST:
            raise ValueError(
                f"block size of {name} must be at least {LEAST}, the K of an"
                f" instruction; got {x.layout.block_size}"
            )


def bytewise(x: Any, operand: Any) -> Any:
    """Return an operand with one FP8 code per byte, as the instruction reads it."""
    plan, found = x._layout, {}
    for level, part, element in (
        ("hi", "codes", plan.element), ("lo", "residuals", plan.residual),
    ):  # fmt: skip
        if element is not None and element.name in SMALLER:
            codes = kernels.as_e4m3(plan, getattr(x, part), element)[..., 0]
            found[level] = codes if x.ndim > 1 else codes[np.newaxis]
    return operand._replace(**found) if found else operand


def options(
    names: tuple[str, str], block: int, levels: list[tuple[int, int]], tile: Tile
) -> tuple[str, ...]:
    """Return the compilation options for elements, a block size, terms and a tile."""
    a, b = (FORMATS.get(name, FORMATS[E4M3]) for name in names)
    macros = {
        "UNIT": f'"m16n8k32.row.col.f32.{a}.{b}.f32"',
        "UNIT_BYTES": 32,
        "SIZE": 1,
        "A_ALONG_K": 1,
        "B_ALONG_K": 1,
        **tile.macros,
        "BLOCK_K": block,
        "A_LEVELS": 1 + max(i for i, _ in levels),
        "B_LEVELS": 1 + max(j for _, j in levels),
        "LAST": int((1, 1) in levels),
    }
    return tuple(f"-D{name}={value}" for name, value in macros.items())


def shared(tile: Tile, block: int, levels: list[tuple[int, int]]) -> int:
    """Return the bytes of shared memory: stages of codes and of their scales."""
    lines = tile.rows * (1 + max(i for i, _ in levels))
    lines += tile.columns * (1 + max(j for _, j in levels))
    return tile.stages * lines * (tile.slice + tile.slice // block * 4)


def choose_tile(
    arch: str, processors: int, shape: Shape, block: int, levels: list[tuple[int, int]]
) -> Tile:
    """Return the tile for a product; all tiles give the same bits."""
    count, m, n = shape
    if block > LEAST:
        return LONG_OF_FOUR if (1, 1) in levels else LONG
    little = native.number(arch) in native.LITTLE
    fits = shared(LARGE, block, levels) < (99 << 10) or not little
    blocks = count * -(-m // LARGE.rows) * -(-n // LARGE.columns)
    return LARGE if fits and blocks >= processors else SMALL


class _Plan(NamedTuple):
    """A plan of a product, without the addresses of its operands."""

    kernel: Kernel
    tile: Tile
    grid: tuple[int, ...]
    a: Constant
    b: Constant
    shared: int


@lru_cache(maxsize=KEPT)
def _plan(
    a: Lines,
    b: Lines,
    shape: Shape,
    levels: tuple[tuple[int, int], ...],
    tile: Tile | None,
    arch: str,
    processors: int,
) -> _Plan:
    """Plan a product from the layouts of operands and the shape of the result."""
    count, m, n = shape
    terms = [*levels]
    tile = tile or choose_tile(arch, processors, shape, a.block, terms)
    blocks = count * -(-m // tile.rows) * -(-n // tile.columns)
    if blocks >= 1 << 31:
        raise ValueError(
            "a and b must be small enough for one launch; got a matrix multiplication"
            f" of shape {shape}"
        )
    names = str(a.names[0]), str(b.names[0])  # not None: see `check`
    return _Plan(
        Kernel(
            "cuda/blocks/native_matmul.cu",
            "block_native",
            options(names, a.block, terms, tile),
        ),
        tile,
        (blocks,),
        _side(a),
        _side(b),
        shared(tile, a.block, terms),
    )


def _side(x: Lines) -> Constant:
    side = np.zeros((), SIDE)
    side["stack"], side["pitch"] = x.hi[:2]
    if x.lo is not None:
        side["lo_stack"], side["lo_pitch"] = x.lo[:2]
    side["level"] = x.width // x.levels
    side["block"] = x.width
    side["scale_stack"] = x.scales // 4
    return Constant(side)


def product(
    a: Any, b: Any, c: Any, levels: list[tuple[int, int]], tile: Tile | None = None
) -> None:
    """Write a @ b to c, (s, m, n), float32 in C order.

    a and b are `Operand` tuples of three axes.
    """
    machine = backend.current()
    a, b = _readable(a), _readable(b)
    plan = _plan(
        lines_of(a), lines_of(b), c.shape, tuple(levels), tile,
        machine.architecture(), machine.processors(),
    )  # fmt: skip
    _, m, n = c.shape
    machine.launch(
        plan.kernel, plan.grid, (plan.tile.threads,),
        a.hi, a.lo, a.scales, b.hi, b.lo, b.scales, c, plan.a, plan.b,
        int64(m), int64(n), int64(a.k),
        shared=plan.shared,
    )  # fmt: skip


def _readable(x: Operand) -> Operand:
    """Return an operand whose codes are aligned for the kernel."""
    hi, lo = aligned(x.hi, x), x.lo
    return x._replace(hi=hi, lo=None if lo is None else aligned(lo, x))


def aligned(first: Any, x: Any) -> Any:
    """Return the first codes of blocks, or a copy of all codes that is aligned.

    The codes are (stack, lines, blocks). Codes must begin at a multiple of 16 bytes.
    Residuals may not, because they begin where scales end.
    """
    return first if first.data.ptr % 16 == 0 else copied(first, x)


def copied(first: Any, x: Any) -> Any:
    """Copy all codes so that the blocks of a line are contiguous; return the first."""
    size = x.layout.block_size
    stack = first.shape[0] if first.strides[0] else 1
    whole = cupy.ndarray(
        (stack, *first.shape[1:], size), np.uint8, first.data, (*first.strides, 1)
    )
    copy = backend.current().call("ascontiguousarray", whole)
    if copy.data.ptr == whole.data.ptr:
        copy = backend.current().call("ndarray.copy", whole)
    return cupy.broadcast_to(copy[..., 0], first.shape)
