"""Arrays of blocks: a few bits a value, and a scale or two a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import indexing, layout, packing, values, wrapping
from .formats import BlockFormat, Element, ScaleFormat
from .layout import Facts, Layout, Parts
from .lines import from_lines


class BlockArray:
    """An array whose values share scales in blocks along one axis.

    `tf32dtype.blocks.quantize` makes them, and `from_codes` of data that exist. A value
    is S * hi, or S * (hi + R * lo) with a residual: hi and lo are elements, S and R the
    scales of the block. The bytes are one buffer: all codes, then all scales, then all
    residuals, each C-contiguous with the block axis last. They are read-only, so arrays
    share them.

    NumPy functions do not take these arrays, but for `np.asarray` (the values as
    float32) and `np.matmul`.

    See Also
    --------
    quantize, matmul
    """

    __slots__ = ("_buffer", "_layout")
    __hash__ = None  # type: ignore[assignment]  # like an ndarray

    _layout: Layout
    _buffer: NDArray[np.uint8]

    def __init__(self) -> None:
        raise TypeError(
            "an array of blocks is made by tf32dtype.blocks.quantize, or of codes that "
            "exist by BlockArray.from_codes"
        )

    @classmethod
    def _of(cls, plan: Layout, buffer: NDArray[np.uint8]) -> BlockArray:
        self = object.__new__(cls)
        self._layout = plan
        self._buffer = buffer.view()
        self._buffer.flags.writeable = False
        return self

    @classmethod
    def from_codes(
        cls,
        format: str | BlockFormat,
        codes: ArrayLike,
        scales: ArrayLike,
        residuals: ArrayLike | None = None,
        *,
        shape: tuple[int, ...],
        axis: int = -1,
        block_size: int | None = None,
        scale_format: ScaleFormat | None = None,
        tensor_scale: float = 1.0,
    ) -> BlockArray:
        """An array of codes and scales that exist, as checkpoints hold them.

        Parameters
        ----------
        format : str
            A name of `tf32dtype.blocks.formats`.
        codes : array_like
            Packed, as `.codes`: uint8 of shape (*others, blocks, bytes of a block), or
            with the last two axes as one, where others is `shape` without the block
            axis. Or one an item, as `.elements`: an array of `shape` whose dtype is the
            element's.
        scales : array_like
            As `.scales`: uint8 of shape (*others, blocks), with a residual
            (*others, blocks, 2). float8_e8m0fnu scales, and ue4m3 ones as
            float8_e4m3fn, may have that dtype.
        residuals : array_like
            As codes, of formats that have a residual.
        shape : tuple of int
        axis, block_size, scale_format
            As for `quantize`; a scale format is needed where `quantize` chooses one.
        tensor_scale : float
            What multiplies all scales but float8_e8m0fnu ones: a positive float32, a
            power of two unless scales are ue4m3.

        Raises
        ------
        TypeError
            For other dtypes.
        ValueError
            For other shapes and numbers; for integers that no code stands for, negative
            ue4m3 scales, and padding that is not zero.
        """
        plan = layout.make(format, shape, axis, block_size, scale_format, tensor_scale)
        return cls._of(plan, wrapping.buffer_of(plan, codes, scales, residuals))

    # -- facts -----------------------------------------------------------------

    @property
    def format(self) -> str:
        """Name of the block format."""
        return self._layout.row.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self._layout.shape

    @property
    def ndim(self) -> int:
        return len(self._layout.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return self._layout.lines * self._layout.length

    @property
    def axis(self) -> int:
        """The axis that blocks lie along, counted from 0."""
        return self._layout.axis

    @property
    def block_size(self) -> int:
        return self._layout.block_size

    @property
    def scale_format(self) -> str:
        return self._layout.scale_format

    @property
    def tensor_scale(self) -> np.float32:
        """What multiplies all scales; 1 where they are float8_e8m0fnu."""
        return np.float32(self._layout.tensor_scale)

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and residuals, and 4 for a tensor's scale."""
        return self._layout.size + 4 * self._layout.has_tensor_scale

    @property
    def bits_per_value(self) -> float:
        """Bits of a value in a full block, its share of the block's scales included.

        8.25 for tcfp8. ``8 * nbytes / size`` is more by a tensor's scale and what fills
        up short blocks.
        """
        return self._layout.row.bits(self._layout.block_size)

    # -- parts -----------------------------------------------------------------

    @property
    def buffer(self) -> NDArray[np.uint8]:
        """All bytes, read-only: codes, scales, residuals."""
        return self._buffer

    def tobytes(self) -> bytes:
        """The buffer as bytes."""
        return self._buffer.tobytes()

    @property
    def codes(self) -> NDArray[np.uint8]:
        """Packed codes, of shape (*others, blocks, bytes of a block).

        The first code lies in the lowest bits: of 4 bits low nibble first, of 6 bits
        four in three bytes, of 12 two in three, of 16 the low byte first.
        """
        return self._parts[0]

    @property
    def scales(self) -> NDArray[np.uint8]:
        """Codes of scales: (*others, blocks), with a residual (*others, blocks, 2)."""
        return self._parts[1]

    @property
    def residuals(self) -> NDArray[np.uint8] | None:
        """Packed codes of residuals, like `codes`; None for formats without."""
        return self._parts[2]

    @property
    def elements(self) -> NDArray[Any]:
        """The elements one an item, of this array's shape.

        Of the element's dtype; integers are int8 or int16 (those of mxint8 count 2^-6
        each).
        """
        return self._unpacked(self.codes, self._layout.element)

    @property
    def residual_elements(self) -> NDArray[Any] | None:
        """The residuals one an item, of this array's shape; None without."""
        packed = self.residuals
        if packed is None:
            return None
        assert self._layout.residual is not None
        return self._unpacked(packed, self._layout.residual)

    @property
    def block_scales(self) -> NDArray[np.float32]:
        """The scale S of every block, the tensor's included: (*others, blocks)."""
        plan = self._layout
        codes = self.scales if plan.row.levels == 1 else self.scales[..., 0]
        return wrapping.block_scales(plan)[codes]

    @property
    def _parts(self) -> Parts:
        return self._layout.parts(self._buffer)

    def _unpacked(self, packed: NDArray[np.uint8], element: Element) -> NDArray[Any]:
        plan = self._layout
        codes = packing.unpack(packed, element.width)
        padded = codes.reshape(plan.lines, plan.blocks * plan.block_size)
        lines = wrapping.items_of(padded[:, : plan.length], element)
        return np.ascontiguousarray(from_lines(lines, plan.shape, plan.axis))

    # -- values ----------------------------------------------------------------

    def dequantize(
        self, dtype: DTypeLike = np.float32, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """The values.

        Parameters
        ----------
        dtype : dtype
            float32, float64, float16 or a format of this package. Values are exact in
            float64; in the others they are rounded once, ties to even. float32 stays
            finite: beyond its maximum it is the maximum.
        out : ndarray, optional
            An array of this shape and dtype to write into, with any strides.

        Returns
        -------
        ndarray
            C-contiguous; `out` if given.

        Raises
        ------
        TypeError
            For another dtype; if `out` is no array of that dtype.
        ValueError
            If `out` has another shape or is read-only.
        """
        return values.dequantize(self._layout, self._parts, dtype, out)

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the values of an array of blocks are always a copy")
        if dtype is None:
            return self.dequantize()
        try:
            return self.dequantize(dtype)
        except TypeError:
            return self.dequantize().astype(dtype)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if ufunc is not np.matmul or method != "__call__":
            name = (
                ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            )
            raise TypeError(_no_function(name))
        options = dict(kwargs)
        out = options.pop("out", (None,))[0]
        dtype = options.pop("dtype", np.float32)
        if options:
            raise TypeError(
                f"np.matmul takes out and dtype here, not {', '.join(options)}"
            )
        return _product(*inputs, out=out, dtype=dtype)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        raise TypeError(_no_function(func.__name__))

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)

    # -- parts of the array ----------------------------------------------------

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[BlockArray]:
        if self.axis == 0:
            raise TypeError(
                "iteration would take the block axis apart: iterate over dequantize()"
            )
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> BlockArray:
        plan = self._layout
        taken, shape, axis = indexing.take(key, plan.shape, plan.axis)
        return self._lines(taken, shape, axis)

    @property
    def T(self) -> BlockArray:
        """The array with its axes reversed."""
        return self._transposed(tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> BlockArray:
        """The array with its last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError("a matrix transpose needs two axes or more")
        *first, m, n = range(self.ndim)
        return self._transposed((*first, n, m))

    def _transposed(self, axes: tuple[int, ...]) -> BlockArray:
        plan = self._layout
        shape = tuple(plan.shape[axis] for axis in axes)
        numbers = np.arange(plan.lines).reshape(plan.others)
        moved = [axis - (axis > plan.axis) for axis in axes if axis != plan.axis]
        return self._lines(numbers.transpose(moved), shape, axes.index(plan.axis))

    def _lines(
        self, lines: NDArray[np.intp], shape: tuple[int, ...], axis: int
    ) -> BlockArray:
        """An array of these lines, by their numbers."""
        old = self._layout
        plan = Layout(
            old.row, shape, axis, old.block_size, old.scale_format, old.tensor_scale
        )
        order = lines.reshape(-1)
        if order.size == old.lines and (order == np.arange(order.size)).all():
            return self._of(plan, self._buffer)
        buffer = np.empty(plan.size, np.uint8)
        for part, new in zip(self._parts, plan.parts(buffer), strict=True):
            if part is not None and new is not None and order.size:
                rows = part.reshape(old.lines, part.size // old.lines)
                np.take(rows, order, 0, out=new.reshape(order.size, rows.shape[1]))
        return self._of(plan, buffer)

    # -- as an object ----------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether both are the same: formats, shape, axis, scales and all bytes.

        One bool, and of codes: NaN equals itself, and numbers that other codes stand
        for are different.
        """
        if not isinstance(other, BlockArray):
            return NotImplemented
        return self._layout == other._layout and np.array_equal(
            self._buffer, other._buffer
        )

    def __repr__(self) -> str:
        plan = self._layout
        facts = [repr(plan.row.name), f"shape={plan.shape}", f"axis={plan.axis}"]
        if plan.block_size != plan.row.block_size:
            facts.append(f"block_size={plan.block_size}")
        facts.append(f"scale_format={plan.scale_format!r}")
        if plan.has_tensor_scale:
            facts.append(f"tensor_scale={plan.tensor_scale:.9g}")
        return f"BlockArray({', '.join(facts)}, {self.bits_per_value:g} bits)"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, (self._layout.facts, self._buffer)


def restore(facts: Facts, buffer: NDArray[np.uint8]) -> BlockArray:
    """The array of a layout's facts and its bytes, all checked.

    Raises
    ------
    ValueError, TypeError
        If they do not make an array.
    """
    plan = layout.make(*facts)
    wrapping.check_buffer(plan, buffer)
    return BlockArray._of(plan, buffer)


def _no_function(name: str) -> str:
    return (
        f"np.{name} does not take arrays of blocks (np.matmul does): call dequantize() "
        "on them first"
    )


def _product(a: Any, b: Any, **options: Any) -> Any:
    from .products import matmul

    return matmul(a, b, **options)
