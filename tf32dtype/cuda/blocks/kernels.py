"""Kernels on the parts of arrays of blocks: src/cuda/blocks/decode.cu and others."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ...blocks.formats import (
    BlockFormat,
    Element,
    ScaleFormat,
    elements,
    scale_formats,
)
from ...blocks.layout import Layout
from .._matmul.tile_options import MOST, pieces
from .._runtime import backend
from .._runtime.backend import KEPT, Constant, Kernel, int32, int64
from .._runtime.strides import THREADS, blocks

#: float32 numbers of 16 bytes, which is what products copy at a time
CHUNK = 4
#: Numbers that a thread of decode.cu has.
_EACH = 4
#: Threads of quantize.cu; and how many numbers each has, there and in bounds.cu.
_QUANTIZERS, _SHARE = 128, 4

#: struct tf_operand of decode.cu
_LINES = np.dtype(
    [
        ("lines", np.int64),
        ("length", np.int64),
        ("block", np.int32),
        ("scale", np.int32),
        ("tensor_scale", np.float32),
        ("odd", np.int32),
    ]
)


def _element(x: Element | None) -> str:
    return "-1" if x is None else f"tf_element_{x.name}"


def _of_lines(plan: Layout, odd: bool = False) -> Any:
    scale = list(scale_formats).index(plan.scale_format)
    fields = (plan.lines, plan.length, plan.block_size, scale, plan.tensor_scale, odd)
    return np.array(fields, _LINES)


def _each(kernel: Kernel, plan: Layout, *arguments: Any) -> None:
    """Start a kernel of decode.cu on all numbers of lines."""
    if plan.lines * plan.length == 0:
        return
    needed = pieces(plan.length, _EACH)
    wide = min(THREADS, 1 << (needed - 1).bit_length())
    high = THREADS // wide
    backend.current().launch(
        kernel,
        (pieces(needed, wide), min(pieces(plan.lines, high), MOST)),
        (wide, high),
        *arguments,
    )


def decode(
    plan: Layout, parts: tuple[Any, Any, Any], out: Any, *, odd: bool = False
) -> None:
    """The numbers of codes, scales and residuals (or None) as lines.

    Parameters
    ----------
    out : cupy.ndarray
        float32 or float64, (lines, length), C-contiguous.
    odd : bool
        float32 is rounded to odd, which a cast to fewer bits takes for the number.
    """
    which = "single" if out.dtype == np.float32 else "double"
    options = f"-DHI={_element(plan.element)}", f"-DLO={_element(plan.residual)}"
    kernel = Kernel("cuda/blocks/decode.cu", f"block_decode_{which}", options)
    _each(kernel, plan, *parts, out, _of_lines(plan, odd))


def unpack(plan: Layout, packed: Any, element: Element) -> Any:
    """Packed codes as lines of items: integers, or the storage of a format."""
    bytes_ = element.dtype.itemsize
    out = cupy.empty((plan.lines, plan.length), f"u{bytes_}")
    name = "block_unpack_bytes" if bytes_ == 1 else "block_unpack_words"
    options = f"-DHI={_element(element)}", "-DLO=-1"
    _each(
        Kernel("cuda/blocks/decode.cu", name, options),
        plan,
        packed,
        out,
        _of_lines(plan),
    )
    return out.view(element.dtype) if element.is_integer else out


def as_e4m3(plan: Layout, packed: Any, element: Element) -> Any:
    """The same numbers as E4M3 codes, a byte each: (*others, blocks, block size).

    For elements of 4 and of 6 bits, whose numbers all are among E4M3's.
    """
    whole = replace(plan, shape=(plan.lines, plan.blocks * plan.block_size), axis=1)
    out = cupy.empty((*plan.others, plan.blocks, plan.block_size), np.uint8)
    options = f"-DHI={_element(element)}", "-DLO=-1"
    kernel = Kernel("cuda/blocks/decode.cu", "block_as_e4m3", options)
    _each(kernel, whole, packed, out, _of_lines(whole))
    return out


class _Scales(NamedTuple):
    """What makes numbers of scales, wherever these are."""

    shape: tuple[int, ...]
    grid: tuple[int, ...]
    sizes: tuple[Constant, ...]


@lru_cache(maxsize=KEPT)
def _scales(
    row: BlockFormat,
    others: tuple[int, ...],
    count: int,
    block: int,
    scale_format: ScaleFormat,
) -> _Scales:
    """For lines of so many blocks."""
    *batch, lines = others or (1,)
    levels, pitch = row.levels, pieces(lines, CHUNK) * CHUNK
    shape = (*batch, count, levels * pitch)
    scale = list(scale_formats).index(scale_format)
    residual = -1 if row.residual is None else elements[row.residual].index
    of_line = count * levels
    sizes = (lines * of_line, of_line, math.prod(batch), count, lines, pitch)
    rest = (scale, levels, residual)
    told = *map(int64, sizes), *map(int32, rest)
    return _Scales(shape, (blocks(math.prod(shape) // levels),), told)


SCALES = Kernel("cuda/blocks/scales.cu", "block_scales")


def scale_numbers(plan: Layout, scales: Any) -> Any:
    """Scales as products take them: float32, (..., blocks, levels * pitch).

    The lines, the last of the axes that are not the block axis, lie side by side,
    filled up with zeros to whole chunks; after those of S those of S R.
    """
    told = _scales(
        plan.row, plan.others, plan.blocks, plan.block_size, plan.scale_format
    )
    found = cupy.empty(told.shape, np.float32)
    if found.size:
        tensor_scale = np.float32(plan.tensor_scale)
        backend.current().launch(
            SCALES, told.grid, (THREADS,), scales, found, tensor_scale, *told.sizes
        )
    return found


#: struct tf_bounds of bounds.cu: what is less than 0 was inverted
_BOUNDS = np.dtype(
    [("greatest", "u4"), ("least", "u4"), ("special", "u8"), ("nan", "u8")]
)


def bounds(lines: Any, block: int) -> tuple[float, float, bool, bool]:
    """What must be known of lines of float32 before they are blocks; waits for the GPU.

    Returns
    -------
    greatest, least : float
        The greatest finite magnitude, and the least that a block other than zero has;
        Inf: none has.
    special, nan : bool
        Whether some number is not finite, and whether one is NaN.
    """
    count, length = lines.shape
    found = backend.current().put(np.zeros(_BOUNDS.itemsize, np.uint8))
    if lines.size:
        backend.current().launch(
            Kernel("cuda/blocks/bounds.cu", "block_bounds"),
            (blocks(count * pieces(length, block) * block // _SHARE),),
            (THREADS,),
            lines,
            found,
            *map(np.int64, (count, length)),
            np.int32(block),
        )
    (seen,) = backend.current().get(found).view(_BOUNDS)
    greatest, least = np.array([seen["greatest"], ~seen["least"]]).view(np.float32)
    least = float(least) if seen["least"] else math.inf
    return float(greatest), least, bool(seen["special"]), bool(seen["nan"])


def quantize(
    plan: Layout, lines: Any, draws: Any, settings: bytes, searches: bool, out: Any
) -> None:
    """Lines of float32 as codes, scales and residuals.

    Parameters
    ----------
    settings : bytes
        Of `_core.block_plan`.
    searches : bool
        Whether these say the rule "mse".
    out : tuple of cupy.ndarray
        The parts, of which the last may be None.
    """
    if lines.size == 0:
        return
    options = (
        f"-DHI={_element(plan.element)}",
        f"-DRESIDUAL={_element(plan.residual)}",
        f"-DBLOCK_SIZE={plan.block_size}",
        f"-DSEARCHES={int(searches)}",
    )
    count = plan.lines * plan.blocks * plan.block_size // _SHARE
    most = 64 * backend.current().processors()  # what remains is the threads' loop
    backend.current().launch(
        Kernel("cuda/blocks/quantize.cu", "block_quantize", options),
        (min(pieces(count, _QUANTIZERS), most),),
        (_QUANTIZERS,),
        np.frombuffer(settings, [("plan", np.uint8, len(settings))]),
        lines,
        draws,
        *out,
        *map(np.int64, (plan.lines, plan.length)),
    )
