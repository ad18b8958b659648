"""Start kernels on codes, scales and residuals: src/cuda/blocks/decode.cu etc."""

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

#: float32 scales that products copy at a time: 16 bytes.
CHUNK = 4
#: Values per thread of decode.cu.
_EACH = 4
#: Threads per block of quantize.cu; values per thread of quantize.cu and bounds.cu.
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
    """Start a kernel of decode.cu on all values of the lines."""
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
    """Decode codes, scales and residuals (or None) to lines of values.

    Parameters
    ----------
    out : cupy.ndarray
        Array to write to: float32 or float64, (lines, length), C-contiguous.
    odd : bool
        Whether to round float32 to odd, so that a later cast to fewer bits rounds as if
        from the exact value.
    """
    which = "single" if out.dtype == np.float32 else "double"
    options = f"-DHI={_element(plan.element)}", f"-DLO={_element(plan.residual)}"
    kernel = Kernel("cuda/blocks/decode.cu", f"block_decode_{which}", options)
    _each(kernel, plan, *parts, out, _of_lines(plan, odd))


def unpack(plan: Layout, packed: Any, element: Element) -> Any:
    """Unpack codes to lines of elements: integers, or the storage of a format."""
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
    """Convert codes of 4 or 6 bits to E4M3 codes: (*others, blocks, block size).

    Each E4M3 code is one byte. E4M3 represents all values of such elements.
    """
    whole = replace(plan, shape=(plan.lines, plan.blocks * plan.block_size), axis=1)
    out = cupy.empty((*plan.others, plan.blocks, plan.block_size), np.uint8)
    options = f"-DHI={_element(element)}", "-DLO=-1"
    kernel = Kernel("cuda/blocks/decode.cu", "block_as_e4m3", options)
    _each(kernel, whole, packed, out, _of_lines(whole))
    return out


class _Scales(NamedTuple):
    """A plan to convert scales to float32, without their addresses."""

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
    """Plan the conversion of scales for lines of `count` blocks."""
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
    """Return scales as products read them: float32, (..., blocks, levels * pitch).

    The last axis has the scales of all lines next to each other, padded with zeros to
    whole chunks. Lines are along the last axis that is not the block axis. The scales S
    R of residuals follow the scales S.
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


#: struct tf_bounds of bounds.cu. All fields but `greatest` are stored inverted, so that
#: 0 means none.
_BOUNDS = np.dtype(
    [("greatest", "u4"), ("least", "u4"), ("special", "u8"), ("nan", "u8")]
)


def bounds(lines: Any, block: int) -> tuple[float, float, bool, bool]:
    """Return the range of float32 lines before quantization, and wait for the GPU.

    Returns
    -------
    largest, smallest : float
        The largest finite magnitude of all lines, and the smallest largest magnitude of
        a nonzero block; Inf if there is no such block.
    special, nan : bool
        Whether any value is not finite, and whether any value is NaN.
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
    """Quantize lines of float32 to codes, scales and residuals.

    Parameters
    ----------
    settings : bytes
        Result of `_core.block_plan`.
    searches : bool
        Whether the settings have the rule "mse", for which scales are searched.
    out : tuple of cupy.ndarray
        Arrays of codes, scales and residuals to write to; the last may be None.
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
    most = 64 * backend.current().processors()  # threads loop over what remains
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
