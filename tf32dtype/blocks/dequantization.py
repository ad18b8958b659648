"""Compute the values of block arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import _core
from .._base.caller import cast
from .._base.wording import brief
from .._formats.table import find, find_dtype
from .layout import Layout, Parts
from .lines import from_lines

_BY_CORE = (np.float32, np.float64)


def dequantize(
    plan: Layout,
    parts: Parts,
    wanted: np.dtype[Any],
    out: NDArray[Any] | None,
) -> NDArray[Any]:
    """Compute `BlockArray.dequantize` of codes, scales and residuals (or None)."""
    direct = out is not None and _takes_lines(out, plan.axis)
    if out is not None and direct:
        lines = out.reshape(plan.lines, plan.length)
    else:
        item = wanted if wanted in _BY_CORE else np.dtype(np.float32)
        lines = np.empty((plan.lines, plan.length), item)
    codes, scales, residuals = parts
    _core.block_dequantize(
        codes.reshape(-1),
        scales.reshape(-1),
        None if residuals is None else residuals.reshape(-1),
        plan.core,
        plan.tensor_scale,
        plan.length,
        lines,
        wanted not in _BY_CORE,  # to odd, so that the cast is the one rounding
    )
    if out is not None and direct:
        return out
    result = cast(from_lines(lines, plan.shape, plan.axis), wanted)
    if out is None:
        return np.ascontiguousarray(result)
    out[...] = result
    return out


def value_dtype(dtype: DTypeLike | None) -> np.dtype[Any]:
    """float32, float64, float16 or a format's dtype, of native order."""
    if dtype is None:
        return np.dtype(np.float32)
    try:
        return find(dtype).dtype
    except (TypeError, ValueError):
        pass
    try:
        wanted = find_dtype(dtype).newbyteorder("=")
    except TypeError:
        wanted = None
    if wanted not in (*_BY_CORE, np.float16):
        raise TypeError(
            "dtype must be float32, float64, float16 or one of td.formats; got"
            f" {brief(dtype) if wanted is None else wanted}"
        )
    return wanted


def check_out(out: object, wanted: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an array; got {brief(out)}")
    if find_dtype(out.dtype).newbyteorder("=") != wanted:
        raise TypeError(
            f"out must be an array of {wanted}; got {out.dtype}. Use dtype=out.dtype"
        )
    if out.shape != shape:
        raise ValueError(f"out must have shape {shape}; got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out must be writable; got a read-only array")


def _takes_lines(out: NDArray[Any], axis: int) -> bool:
    """Return whether the core can write into this memory."""
    flags = out.flags
    native = out.dtype.isnative and out.dtype in _BY_CORE
    return native and flags.c_contiguous and flags.aligned and axis == out.ndim - 1
