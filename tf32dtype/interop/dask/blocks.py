"""Lazy arrays of blocks in chunks, for data that exceed the memory of one process."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, ClassVar, Unpack

import dask
import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize
from dask.sizeof import sizeof
from numpy.typing import DTypeLike

from ... import blocks
from ..._base.matrices import check_axes, check_k
from ..._base.options import refuse_unknown, shows
from ..._base.wording import brief
from ..._formats.aliases import BlockFormatName
from ...blocks.dequantization import value_dtype
from ...blocks.formats import BlockFormatLike, find
from ...blocks.layout import checked_axis
from ...blocks.quantization import Options, Settings
from .chains import as_chunks, only

sizeof.register(blocks.BlockArray, attrgetter("nbytes"))


class BlockArray:
    """An array of blocks whose chunks are `tf32dtype.blocks.BlockArray`.

    `quantize` and `from_blocks` return them. The block axis is not divided into chunks,
    so blocks and sums over blocks equal those of the whole array. These arrays support
    ``@``, but not the functions of NumPy; `dequantize` converts them to dask arrays.

    See Also
    --------
    quantize : Quantize a dask array.
    from_blocks : Divide an array of blocks in memory into chunks.

    Examples
    --------
    >>> import dask.array as da, tf32dtype as td
    >>> q = td.interop.dask.quantize(da.ones((64, 32), chunks=16), "mxfp8")
    >>> q.chunks, q.dequantize().sum().compute()
    (((16, 16, 16, 16), (32,)), np.float32(2048.0))
    """

    __slots__ = ("_chunks", "axis", "format")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    __array_ufunc__ = None  # so `@` of a NumPy or dask array calls __rmatmul__

    def __init__(self, chunks: da.Array, format: BlockFormatName, axis: int) -> None:
        #: a dask array whose chunks are arrays of blocks; its dtype is only the default
        #: of `dequantize`
        self._chunks = chunks
        #: name of the block format
        self.format: BlockFormatName = format
        #: the axis that blocks are along, counted from 0
        self.axis: int = axis

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        found: tuple[int, ...] = self._chunks.shape
        return found

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of the chunks along each axis."""
        found: tuple[tuple[int, ...], ...] = self._chunks.chunks
        return found

    def dequantize(self, dtype: DTypeLike = np.float32) -> da.Array:
        """Convert to a dask array, as `tf32dtype.blocks.BlockArray.dequantize` does.

        Parameters
        ----------
        dtype : dtype
            The dtype of the values (default: float32), as for
            `tf32dtype.blocks.BlockArray.dequantize`.

        Returns
        -------
        dask.array.Array
            The values, with the shape and chunks of this array.

        Raises
        ------
        TypeError
            For any other dtype.
        """
        dtype = value_dtype(dtype)
        return self._chunks.map_blocks(
            _dequantize, to=dtype, dtype=dtype, meta=np.empty((0,) * self.ndim, dtype)
        )

    def to_delayed(self) -> Any:
        """Return an object array of the chunks, each a `dask.delayed.Delayed`."""
        return self._chunks.to_delayed()

    def persist(self, **keywords: Any) -> BlockArray:
        """Compute the chunks and keep them in the memory of their workers.

        Parameters
        ----------
        **keywords
            Keyword arguments of `dask.persist`.

        Returns
        -------
        BlockArray
            An array whose chunks are computed.
        """
        return BlockArray(self._chunks.persist(**keywords), self.format, self.axis)

    def compute(self, **keywords: Any) -> blocks.BlockArray:
        """Compute the array and return it in the memory of this process.

        Parameters
        ----------
        **keywords
            Keyword arguments of `dask.compute`.

        Returns
        -------
        tf32dtype.blocks.BlockArray
            The whole array.

        Raises
        ------
        ValueError
            If chunks have different scale formats or tensor scales, which is possible
            for formats that choose them. `dequantize` also works for such arrays.
        """
        parts = self.to_delayed()
        found = dask.compute(*parts.flat, **keywords)
        whole: Any = np.empty(parts.shape, object)
        for place, chunk in zip(np.ndindex(parts.shape), found, strict=True):
            whole[place] = chunk
        return _joined(whole, self.shape)

    def __matmul__(self, other: Any) -> da.Array:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> da.Array:
        return _matmul(other, self)

    def __repr__(self) -> str:
        return (
            f"BlockArray({self.format!r}, shape={self.shape}, axis={self.axis},"
            f" chunksize={self._chunks.chunksize})"
        )


@shows(Options, Settings)
def quantize(
    x: Any, format: BlockFormatLike, axis: int = -1, **options: Unpack[Options]
) -> BlockArray:
    """Round a dask array to blocks, chunk by chunk, when it is computed.

    Parameters
    ----------
    x : dask.array.Array or array_like
        An array as for `tf32dtype.blocks.quantize`. The block axis is rechunked to one
        chunk.
    format, axis
        As for `tf32dtype.blocks.quantize`.
    block_size, scale, scale_format, rounding, overflow, rng
        As for `tf32dtype.blocks.quantize`; `rng` must be None.

    Returns
    -------
    BlockArray
        The array of blocks. If scales are float8_e8m0fnu, its blocks equal those of the
        whole array. A format with one scale per tensor has one scale per chunk here. A
        format that chooses its scale format chooses it for each chunk.

    Raises
    ------
    ValueError
        As for `tf32dtype.blocks.quantize`: errors of arguments are raised at once,
        errors of values (NaN, Inf) when they are computed. Also if `rng` is given.
    TypeError
        As for `tf32dtype.blocks.quantize`.

    See Also
    --------
    from_blocks : Divide an array of blocks in memory into chunks.
    tf32dtype.blocks.quantize : Quantize an array in memory.

    Examples
    --------
    >>> import dask.array as da, tf32dtype as td
    >>> x = da.ones((64, 64), chunks=(16, 16))
    >>> q = td.interop.dask.quantize(x, "mxfp8_e4m3")
    >>> q.chunks
    ((16, 16, 16, 16), (64,))
    >>> float((q @ x.astype("f4")).sum().compute())
    262144.0
    """
    refuse_unknown("quantize", options, Options)
    if options.get("rng") is not None:
        raise ValueError(
            "rng must be None, because all chunks would use the same draws; got"
            f" {brief(options['rng'])}. Quantize each chunk"
        )
    row = find(format)
    x = as_chunks(x, "x")
    axis = checked_axis(axis, x.ndim)
    small = np.ones((1,) * x.ndim, x.dtype)
    blocks.quantize(small, row, axis, **options)  # raises for invalid arguments
    x = x.rechunk({axis: -1})
    quantized = x.map_blocks(
        _quantize,
        format=row.name,
        block_axis=axis,
        options=dict(options),
        dtype=np.float32,
        meta=_meta(x.ndim),
    )
    return BlockArray(quantized, row.name, axis)


def from_blocks(x: blocks.BlockArray, chunks: Any = "auto") -> BlockArray:
    """Divide an array of blocks in memory into chunks.

    Parameters
    ----------
    x : tf32dtype.blocks.BlockArray
        The array in memory.
    chunks : int, tuple or "auto"
        As for `dask.array.from_array` (default: "auto"), except that the block axis is
        always one chunk.

    Returns
    -------
    BlockArray
        A lazy array with the same shape, blocks and values.

    Raises
    ------
    TypeError
        If `x` is not an array of blocks.
    ValueError
        If `chunks` do not match the shape.

    See Also
    --------
    quantize : Quantize a dask array.
    BlockArray.compute : Return the array in memory.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> b = td.blocks.quantize(np.ones((64, 32), np.float32), "mxfp8")
    >>> td.interop.dask.from_blocks(b, 16)
    BlockArray('mxfp8_e4m3', shape=(64, 32), axis=1, chunksize=(16, 32))
    """
    if not isinstance(x, blocks.BlockArray):
        raise TypeError(f"x must be a BlockArray; got {brief(x)}")
    lengths = list(normalize_chunks(chunks, x.shape, dtype=np.float32))
    lengths[x.axis] = (x.shape[x.axis],)
    parts = da.from_array(
        _Sliced(x),
        chunks=tuple(lengths),
        name=f"from-blocks-{tokenize(x)}",
        asarray=False,
        meta=_meta(x.ndim),
    )
    return BlockArray(parts, x.format, x.axis)


class _Sliced:
    """An array of blocks with the attributes that dask needs to slice it."""

    dtype = np.dtype(np.float32)

    def __init__(self, array: blocks.BlockArray) -> None:
        self._array = array
        self.shape = array.shape
        self.ndim = array.ndim

    def __getitem__(self, key: Any) -> blocks.BlockArray:
        return self._array[key]


def _meta(ndim: int) -> Any:
    return np.empty((0,) * ndim, np.float32)


def _quantize(
    x: Any, format: BlockFormatLike, block_axis: int, options: Any
) -> blocks.BlockArray:
    return blocks.quantize(x, format, block_axis, **options)


def _dequantize(x: blocks.BlockArray, to: np.dtype[Any]) -> Any:
    return x.dequantize(to)


def _joined(parts: Any, shape: tuple[int, ...]) -> blocks.BlockArray:
    """Join all chunks to one array; the block axis has a single chunk."""
    first: blocks.BlockArray = parts.flat[0]
    facts = {(x.scale_format, float(x.tensor_scale)) for x in parts.flat}
    if len(facts) > 1:
        raise ValueError(
            f"chunks of {first.format} must have one scale_format and tensor_scale; got"
            f" {', '.join(map(str, sorted(facts)[:3]))}. Use dequantize(), or quantize"
            " with scale_format='float8_e8m0fnu'"
        )
    ((scale_format, tensor_scale),) = facts
    axis = first.axis
    grid = np.squeeze(parts, axis)  # as in codes, whose block axis is last
    whole = [
        _assembled([getattr(x, name) for x in grid.flat], grid.shape)
        for name in ("codes", "scales", "residuals")
        if getattr(first, name) is not None
    ]
    return blocks.BlockArray.from_codes(
        first.format,
        *whole,
        shape=shape,
        axis=axis,
        block_size=first.block_size,
        scale_format=scale_format,
        tensor_scale=tensor_scale,
    )


def _assembled(parts: Sequence[Any], grid: tuple[int, ...]) -> Any:
    """Join arrays along their first axes."""
    for axis in reversed(range(len(grid))):
        count = grid[axis]
        parts = [
            np.concatenate(parts[start : start + count], axis)
            for start in range(0, len(parts), count)
        ]
    return parts[0]


def _matmul(a: Any, b: Any) -> da.Array:
    """Multiply two arrays; each chunk of the product sums over all of k."""
    x, y = _factor(a, 0), _factor(b, 1)
    check_axes(x.shape, y.shape)
    stack = max(x.ndim, y.ndim, 2) - 2
    *others, m, k, n = range(stack + 3)
    of_x = [*others[stack + 2 - max(x.ndim, 2) :], *[m] * (x.ndim > 1), k]
    of_y = [*others[stack + 2 - max(y.ndim, 2) :], k, *[n] * (y.ndim > 1)]
    check_k(x.shape[-1], y.shape[of_y.index(k)], x.shape, y.shape)
    result = [*others, *[m] * (x.ndim > 1), *[n] * (y.ndim > 1)]
    return da.blockwise(
        _multiply,
        result,
        x,
        of_x,
        y,
        of_y,
        concatenate=False,
        dtype=np.float32,
        meta=_meta(len(result)),
    )


def _factor(x: Any, which: int) -> da.Array:
    """Return the chunks of an operand, each with all of k."""
    if isinstance(x, blocks.BlockArray):
        x = from_blocks(x, -1)
    if not isinstance(x, BlockArray):
        x = as_chunks(x, "ab"[which])
        return x.rechunk({max(x.ndim - 1 - which, 0): -1}) if x.ndim else x
    along = max(x.ndim - 1 - which, 0)
    if x.axis != along:
        raise ValueError(
            f"{'ab'[which]} must have its blocks along k, axis {along} of shape"
            f" {x.shape}; got axis {x.axis}"
        )
    return x._chunks


def _multiply(a: Any, b: Any) -> Any:
    return blocks.matmul(only(a), only(b))
