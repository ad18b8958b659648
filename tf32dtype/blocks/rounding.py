"""Round numbers to the values of a block format, without codes in between."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._base.options import refuse_unknown, shows
from .formats import BlockFormatLike
from .lines import from_lines
from .quantization import Options, Settings, Work, prepare


@shows(Options, Settings)
def round(
    x: ArrayLike,
    format: BlockFormatLike,
    axis: int = -1,
    *,
    out: NDArray[np.float32] | None = None,
    **options: Unpack[Options],
) -> NDArray[np.float32]:
    """Round numbers to the values of a block format, without their codes.

    Use this function in training, which needs the rounded numbers but not their codes.
    It does the same as `quantize` and `dequantize`, in one pass on all threads.

    Parameters
    ----------
    x, format, axis
        As in `quantize`.
    out : ndarray, optional
        A float32 array of x's shape to write into; it may be x itself, and must not
        share memory with x in another way.
    block_size, scale, scale_format, rounding, overflow, rng
        As in `quantize`.

    Returns
    -------
    ndarray
        float32, of x's shape: ``quantize(x, ...).dequantize()``, bit for bit; `out` if
        given.

    Raises
    ------
    ValueError, TypeError
        As `quantize`, and for an `out` of another shape or dtype, before it is written.

    See Also
    --------
    quantize : Return the codes and scales.
    tf32dtype.quantize : Round to a format without scales.
    ErrorFeedback : Quantize so that the errors of many steps cancel.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.blocks.round([1, 2.2, 3.4, 100], "mxfp4").tolist()
    [0.0, 0.0, 0.0, 96.0]
    """
    refuse_unknown("round", options, Options)
    work = prepare(x, format, axis, Settings(**options))
    shape, along = work.layout.shape, work.layout.axis
    lines = work.arguments[0]
    if out is not None:
        _check(out, shape)
        if along == len(shape) - 1 and out.flags.carray:
            _round(work, out.reshape(lines.shape))
            return out
    rounded = np.empty_like(lines)
    _round(work, rounded)
    result = from_lines(rounded, shape, along)
    if out is None:
        return result
    out[...] = result
    return out


def _round(work: Work, lines: NDArray[np.float32]) -> None:
    arguments: tuple[Any, ...] = (*work.arguments, lines)
    _core.block_round(*arguments)


def _check(out: object, shape: tuple[int, ...]) -> None:
    if not isinstance(out, np.ndarray) or out.dtype != np.dtype(np.float32):
        found = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"out must be a float32 array; got {found}")
    if out.shape != shape:
        raise ValueError(f"out must have the shape of x, {shape}; got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out must be writable; got a read-only array")
