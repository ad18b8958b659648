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
from typing import Any, NamedTuple

import numpy as np

from .._runtime.backend import Kernel, current
from . import native
from .tile_options import LARGEST, pieces

#: The architecture whose instruction it is.
ARCHITECTURE = "sm_90a"
#: Whether products of leading parts are this kernel's where it can.
ENABLED = os.environ.get("TF32DTYPE_CUDA_WGMMA") != "0"

#: of the result, a block's; an instruction has 64 rows of it, a warp 16
ROWS = COLUMNS = 128
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


class Depth(NamedTuple):
    """Slices in shared memory, and what else is there."""

    stages: int
    totals: int  #: bytes

    @property
    def shared(self) -> int:
        """Bytes of shared memory, with two barriers of 8 bytes a stage."""
        stages = self.stages * ((ROWS + COLUMNS) * SLICE + 16)
        return ALIGNED + stages + self.totals


CHAINS, SUMS = Depth(6, 0), Depth(5, ROWS * COLUMNS * 4)


def is_here() -> bool:
    """Whether the current device has the instruction."""
    return current().architecture() == ARCHITECTURE


def leads(shape: tuple[int, ...]) -> bool:
    """Whether a product (s, m, n) whose bits are mma.sync's too is to be this kernel's:
    it has wide tiles alone, of which few leave the device idle."""
    return ENABLED and is_here() and 2 * tiles(shape) >= current().processors()


def tiles(shape: tuple[int, ...]) -> int:
    """Of a product (s, m, n).

    Raises
    ------
    ValueError
        For more than a launch has.
    """
    s, m, n = shape
    count = s * pieces(m, ROWS) * pieces(n, COLUMNS)
    if count >= 1 << 31 or max(m, n, s) > LARGEST:
        raise ValueError(f"a product of shape {shape} is too large for one launch")
    return count


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
    count = tiles((s, m, n))
    if count == 0:
        return
    if k == 0:  # of which there are no maps
        native.multiply(a, b, out, formats, sums=sums)
        return
    x, y = operand(a), operand(b.swapaxes(-1, -2))
    depth = SUMS if sums.promote else CHAINS
    current().launch(
        kernel(formats, size, bool(sums.promote)),
        (min(count, current().processors()),),
        (ROWS * 2 + COPYING,),
        codes_map(x, k, ROWS),
        codes_map(y, k, COLUMNS),
        out,
        *(np.int64(i) for i in (m, n, k)),
        *(np.int32(i.stack > 0) for i in (x, y)),
        np.int32(count),
        np.int32(sums.stretch or 1 << 30),
        np.float32(sums.beta),
        shared=depth.shared,
    )


def options(formats: tuple[str, str], size: int, stages: int) -> dict[str, object]:
    """What kernels with this instruction are compiled with."""
    a, b = (native.FORMATS[name][0] for name in formats)
    return {
        "UNIT": f'"m64n{COLUMNS}k{STEP // size}.f32.{a}.{b}"',
        "TAIL": '", 0, 0"' if size == 2 else '""',
        "SIZE": size,
        "A_ALONG_K": 1,
        "B_ALONG_K": 1,
        "ROWS": ROWS,
        "COLUMNS": COLUMNS,
        "WARP_ROWS": 16,
        "WARP_COLUMNS": COLUMNS,
        "SLICE": SLICE,
        "STAGES": stages,
        "RESIDENT": 1,
    }


def kernel(formats: tuple[str, str], size: int, promotes: bool) -> Kernel:
    """The kernel for elements of `size` bytes."""
    depth = SUMS if promotes else CHAINS
    macros = {**options(formats, size, depth.stages), "PROMOTE": int(promotes)}
    return Kernel(
        "cuda/matmul/wgmma.cu",
        "wgmma",
        tuple(f"-D{name}={x}" for name, x in macros.items()),
    )


def operand(x: Any) -> native.Operand:
    """Storage (s, lines, k), copied if there is no map of it where it is."""
    found = native.operand(x, mixed=False)
    if has_map(found.pitch, found.stack):
        return found
    return native.operand(x, mixed=False, always=True)


def has_map(pitch: int, stack: int) -> bool:
    """Whether there are maps with strides of lines and stacks, 0 if there is one."""
    forward = all(0 <= i < FARTHEST and i % 16 == 0 for i in (pitch, stack))
    return forward and (not pitch or stack % pitch == 0)


def codes_map(x: native.Operand, k: int, lines: int) -> Any:
    """A map of (k, lines, stacks) by boxes of a slice of so many lines."""
    count, rows, _ = x.storage.shape
    size = x.storage.dtype.itemsize
    # That of one line says nothing.
    pitch = x.pitch or x.stack or pieces(k * size, 16) * 16
    return current().tensor_map(
        x.storage,
        size,
        (k, rows, count if x.stack else 1),
        (pitch, x.stack or rows * pitch),
        (SLICE // size, lines, 1),
        swizzled=True,
    )
