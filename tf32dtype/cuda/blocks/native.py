"""Multiply arrays of blocks on tensor cores: src/cuda/blocks/native_matmul.cu.

For each term of a block, a chain of FP8 mma.sync instructions from +0 computes the sum
of the block. `tf32dtype.tensor_core.matmul` with `native.device_of(...)` gives the bits
of this sum. One float32 fused multiply-add adds the sum times its scale.

Without a GPU, tests compute the instruction by its model, and inspect the machine code.
The choice of tiles is an estimate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from .._matmul import native
from .._matmul.native import Tile
from .._matmul.tile_options import Matrices
from .._runtime import backend
from .._runtime.backend import Constant, Kernel, Shape, View, int64
from . import kernels
from .operands import Levels, Lines

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
    names: tuple[str, str], block: int, levels: Levels, tile: Tile
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


def shared(tile: Tile, block: int, levels: Levels) -> int:
    """Return the bytes of shared memory: stages of codes and of their scales."""
    lines = tile.rows * (1 + max(i for i, _ in levels))
    lines += tile.columns * (1 + max(j for _, j in levels))
    return tile.stages * lines * (tile.slice + tile.slice // block * 4)


def choose_tile(
    arch: str, processors: int, shape: Shape, block: int, levels: Levels
) -> Tile:
    """Return the tile for a product; all tiles give the same bits."""
    count, m, n = shape
    if block > LEAST:
        return LONG_OF_FOUR if (1, 1) in levels else LONG
    little = native.number(arch) in native.LITTLE
    fits = shared(LARGE, block, levels) < (99 << 10) or not little
    blocks = count * -(-m // LARGE.rows) * -(-n // LARGE.columns)
    return LARGE if fits and blocks >= processors else SMALL


class Plan(NamedTuple):
    """A launch of the kernel, called with the arrays of a, b and the result."""

    kernel: Kernel
    blocks: int
    threads: int
    shared: int
    copies: tuple[int, ...]  #: positions of arrays of codes that are copied first
    block: int
    numbers: tuple[Constant, ...]

    def __call__(self, *arrays: View) -> None:
        given: list[Any] = [*arrays]
        for i in self.copies:
            given[i] = copied(given[i], self.block)
        backend.current().launch(
            self.kernel, (self.blocks,), (self.threads,), *given, *self.numbers,
            shared=self.shared,
        )  # fmt: skip


def plan(
    a: Lines, b: Lines, c: Matrices, levels: Levels, tile: Tile | None = None
) -> Plan:
    """Plan a @ b for c, (s, m, n), float32 in C order."""
    machine = backend.current()
    arch, processors = machine.architecture(), machine.processors()
    count, m, n = c.shape
    tile = tile or choose_tile(arch, processors, c.shape, a.block, levels)
    blocks = count * -(-m // tile.rows) * -(-n // tile.columns)
    if blocks >= 1 << 31:
        raise ValueError(
            "a and b must be small enough for one launch; got a matrix multiplication"
            f" of shape {c.shape}"
        )
    names = str(a.names[0]), str(b.names[0])  # not None: see `check`
    codes = [(0, a.hi), (1, a.lo)][: a.levels] + [(3, b.hi), (4, b.lo)][: b.levels]
    return Plan(
        Kernel(
            "cuda/blocks/native_matmul.cu",
            "block_native",
            options(names, a.block, levels, tile),
        ),
        blocks,
        tile.threads,
        shared(tile, a.block, levels),
        # Codes must begin at a multiple of 16 bytes. Residuals may not, because they
        # begin where scales end.
        tuple(i for i, x in codes if not x.aligned),
        a.block,
        (_side(a), _side(b), *map(int64, (m, n, a.k))),
    )


def _side(x: Lines) -> Constant:
    side = np.zeros((), SIDE)
    side["stack"], side["pitch"] = _strides(x.hi, x.block)
    side["lo_stack"], side["lo_pitch"] = _strides(x.lo, x.block)
    side["block"] = x.scales.shape[2]
    side["level"] = x.scales.shape[2] // x.levels
    side["scale_stack"] = x.scales.strides[0] // 4
    return Constant(side)


def _strides(x: Matrices, block: int) -> Shape:
    """Return the strides of a stack and of lines of codes, copied if necessary."""
    if x.aligned:
        return x.strides[:2]
    _, lines, blocks = x.shape
    return (lines * blocks * block if x.distinct > 1 else 0), blocks * block


def copied(first: Any, block: int) -> Any:
    """Copy all codes so that the blocks of a line are contiguous; return the first.

    `first` has the first codes of blocks, (stack, lines, blocks).
    """
    stack = first.shape[0] if first.strides[0] else 1
    whole = cupy.ndarray(
        (stack, *first.shape[1:], block), np.uint8, first.data, (*first.strides, 1)
    )
    copy = backend.current().call("ascontiguousarray", whole)
    if copy.data.ptr == whole.data.ptr:
        copy = backend.current().call("ndarray.copy", whole)
    return cupy.broadcast_to(copy[..., 0], first.shape)
