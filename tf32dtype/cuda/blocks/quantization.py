"""Quantize arrays on a GPU to blocks with common scales."""

from __future__ import annotations

from typing import Any, Unpack

import cupy
import numpy as np

from ... import _core
from ..._base.options import refuse_unknown, shows
from ..._formats.quantize import ROUNDINGS
from ...blocks import quantization as cpu
from ...blocks.formats import POWERS, RULES, BlockFormatLike, find
from ...blocks.layout import Layout, checked_axis
from .._arrays import casts
from .._runtime import backend, strides
from .._runtime.backend import Kernel
from .._runtime.storage import is_ours, plain
from . import kernels
from .array import BlockArray


@shows(cpu.Options, cpu.Settings)
def quantize(
    x: Any,
    format: BlockFormatLike,
    axis: int = -1,
    **options: Unpack[cpu.Options],
) -> BlockArray:
    """Round numbers on a GPU to codes of a few bits, with a scale for each block.

    The bytes are those of `tf32dtype.blocks.quantize` on the CPU.

    Parameters
    ----------
    x : cupy.ndarray
        Real numbers of any dtype, NumPy's or this package's, with one axis or more.
    format, axis
        As for `tf32dtype.blocks.quantize`.
    block_size, scale, scale_format, rounding, overflow, rng
        As for `tf32dtype.blocks.quantize`. With ``rounding="stochastic"``, random
        numbers are drawn on the CPU.

    Returns
    -------
    BlockArray
        The codes and scales on the GPU, with the shape of `x`.

    Raises
    ------
    TypeError, ValueError
        As for `tf32dtype.blocks.quantize`, and a TypeError if `x` is not a CuPy array.

    See Also
    --------
    asarray : Copy an array of blocks from the CPU.
    matmul : Multiply arrays of blocks.
    tf32dtype.blocks.quantize : Quantize an array on the CPU.

    Notes
    -----
    Formats that do not accept Inf and NaN wait for the GPU once, because errors are
    raised before the array is made. Scale formats other than float8_e8m0fnu also wait,
    because the largest magnitude determines the tensor scale. The mx formats do not
    wait, nor does ``overflow="saturate"`` with float8_e8m0fnu scales and elements that
    have NaN.

    Examples
    --------
    >>> import numpy as np, tf32dtype.cuda as tfc
    >>> x = tfc.asarray(np.ones((2, 32), np.float32))
    >>> tfc.blocks.quantize(x, "mxfp8").nbytes
    66
    """
    row = find(format)
    refuse_unknown("quantize", options, cpu.Options)
    settings = cpu.Settings(**options)
    size, rule, named = cpu.resolved(row, settings)
    overflow, rng = settings.overflow, settings.rng
    _check(x)
    along = checked_axis(axis, x.ndim)
    lines = _lines(x, along, overflow)
    poisons = row.poisons and named == POWERS and overflow == "raise"
    tensor = 1.0
    keeps = overflow == "saturate" and cpu.holds_nan(row)
    if named != POWERS or not (poisons or keeps):
        greatest, least, special, nan = kernels.bounds(lines, size)
        if special if overflow == "raise" else nan and not keeps:
            cpu.check_finite(_on_host(x), row, overflow)
        if named is None:
            named, tensor = cpu.finest(row, greatest, least)
        elif named != POWERS:
            tensor = cpu.tensor_scale(row, named, greatest)
    layout = Layout(row, x.shape, along, size, named, tensor)
    plan = _core.block_plan(
        layout.core,
        RULES.index(rule),
        tensor,
        ROUNDINGS.index(settings.rounding),
        poisons,
    )
    draws = None
    if rng is not None:
        drawn = rng.integers(0, 2**64, size=x.shape, dtype=np.uint64)
        moved = np.ascontiguousarray(np.moveaxis(drawn, along, -1))
        draws = backend.current().put(moved)
    result = BlockArray._of(layout, cupy.empty((layout.size,), np.uint8))
    kernels.quantize(layout, lines, draws, plan, rule == "mse", result._parts)
    return result


def _check(x: Any) -> None:
    if not isinstance(x, cupy.ndarray):
        raise TypeError(
            f"x must be an array on a GPU; got {type(x).__module__}.{type(x).__name__}."
            " Use tf32dtype.cuda.asarray"
        )
    if not is_ours(x.dtype) and x.dtype.kind not in "biuf":
        raise TypeError(f"x must be an array of real numbers; got {x.dtype}")
    if x.ndim == 0:
        raise ValueError(
            "x must have at least one axis, which blocks are along; got a scalar"
        )


def _lines(x: Any, axis: int, overflow: cpu.Overflow) -> Any:
    """Return the numbers as a float32 matrix in C order, with rows along the axis.

    Values that float32 cannot represent are rounded to odd, or become infinite, as on
    the CPU.
    """
    moved = cupy.moveaxis(plain(x), axis, -1)
    shape = (-1 if x.size else moved.size, x.shape[axis])
    if x.dtype == np.float32:
        if not moved.flags.c_contiguous:
            moved = backend.current().call("ascontiguousarray", moved)
    else:
        single = cupy.empty(moved.shape, np.float32)
        to_odd = 1 if overflow == "saturate" else 2
        options = (
            f"-DFROM={casts.kind(x.dtype)}", "-DTO=TF_FLOAT32", f"-DTO_ODD={to_odd}"
        )  # fmt: skip
        kernel = Kernel("cuda/formats/cast.cu", "cast", options)
        strides.elementwise(kernel, [single], [moved], np.int32(0), np.int32(0))
        moved = single
    if x.size == 0:
        others = [n for i, n in enumerate(x.shape) if i != axis]
        shape = (int(np.prod(others, dtype=np.int64)), x.shape[axis])
    return moved.reshape(shape)


def _on_host(x: Any) -> Any:
    """Copy an array to the host, for an error message that shows one of its values."""
    host = backend.current().get(plain(x))
    return host.view(x.dtype) if is_ours(x.dtype) else host
