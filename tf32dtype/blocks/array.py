"""Arrays of blocks: a few bits per value, and one or two scales per block."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._formats import bit_packing
from . import dequantization, layout
from . import from_codes as wrapping
from .base import Blocks
from .formats import BlockFormatLike, BlockSize, Element, ScaleFormat
from .layout import Facts, Layout
from .lines import from_lines
from .products import matmul
from .scaled import HostScaled
from .torch_operands import TorchOperand, operand


class BlockArray(Blocks[NDArray[np.uint8], NDArray[np.float32]], HostScaled):
    """An array whose values share scales in blocks along one axis.

    `tf32dtype.blocks.quantize` makes such arrays from numbers, and `from_codes` makes
    them from existing data. A value is S * hi, or S * (hi + R * lo) with a residual: hi
    and lo are elements, S and R are the scales of the block.

    The bytes are in one buffer: all codes, then all scales, then all residuals, each
    C-contiguous with the block axis last. The buffer is read-only, so that arrays can
    share it.

    Only two NumPy functions accept these arrays: `np.asarray` (the values as float32)
    and `np.matmul`.

    See Also
    --------
    quantize : Create an array from numbers.
    matmul : Multiply arrays of blocks.
    TileArray : An array with scales for tiles of rows and columns.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> b = td.blocks.quantize([[0.5, -6, 1.1, 96]], "mxfp4")
    >>> b
    BlockArray('mxfp4', shape=(1, 4), axis=1, scale_format='float8_e8m0fnu', 4.25 bits)
    >>> b.elements.tolist(), b.block_scales.tolist()
    ([[0.0, -0.5, 0.0, 6.0]], [[16.0]])
    >>> np.asarray(b)
    array([[ 0., -8.,  0., 96.]], dtype=float32)
    """

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as __eq__ is here
    _name = "BlockArray"

    def __init__(self) -> None:
        raise TypeError(
            "cannot create a BlockArray directly; use tf32dtype.blocks.quantize, or"
            " BlockArray.from_codes for existing codes"
        )

    @classmethod
    def _of(cls, plan: Layout, buffer: NDArray[np.uint8]) -> Self:
        self = object.__new__(cls)
        self._layout = plan
        # Lock both arrays: a view of writeable memory could be made writeable again.
        buffer.flags.writeable = False
        self._buffer = buffer.view()
        return self

    def _taken(self, order: NDArray[np.intp], plan: Layout) -> NDArray[np.uint8]:
        old = self._layout
        buffer = np.empty(plan.size, np.uint8)
        for part, new in zip(self._parts, plan.parts(buffer), strict=True):
            if part is not None and new is not None and order.size:
                rows = part.reshape(old.lines, part.size // old.lines)
                np.take(rows, order, 0, out=new.reshape(order.size, rows.shape[1]))
        return buffer

    def _values(self, wanted: np.dtype[Any], out: NDArray[Any] | None) -> NDArray[Any]:
        return dequantization.dequantize(self._layout, self._parts, wanted, out)

    @staticmethod
    def _product(a: Any, b: Any, **options: Any) -> Any:
        return matmul(a, b, **options)

    @classmethod
    def from_codes(
        cls,
        format: BlockFormatLike,
        codes: ArrayLike,
        scales: ArrayLike,
        residuals: ArrayLike | None = None,
        *,
        shape: tuple[int, ...],
        axis: int = -1,
        block_size: BlockSize | None = None,
        scale_format: ScaleFormat | None = None,
        tensor_scale: float = 1.0,
    ) -> BlockArray:
        """Create an array from existing codes and scales, as checkpoints hold them.

        Parameters
        ----------
        format : str
            A name of `tf32dtype.blocks.formats`.
        codes : array_like
            Packed, as `.codes`: uint8 of shape (others, blocks, bytes of a block), or
            with the last two axes as one, where others are those of `shape` but the
            block axis. Or one code per item, as `.elements`: an array of `shape` whose
            dtype is the element's.
        scales : array_like
            As `.scales`: uint8 of shape (others, blocks), with a residual
            (others, blocks, 2). float8_e8m0fnu scales, and ue4m3 ones as
            float8_e4m3fn, may have that dtype. Scales of the padded shape are taken as
            tiles of 128 x 4 (see `swizzle_scales`) if their zeros can only be the
            padding of such tiles. Use `unswizzle_scales` for other scales in tiles: if
            nothing is padded, scales are taken in row-major order.
        residuals : array_like
            The codes of the residuals, like `codes`, for formats that have residuals.
        shape : tuple of int
            The shape of the array.
        axis, block_size, scale_format
            As for `quantize`. Name a scale format if `quantize` would choose it.
        tensor_scale : float
            A factor of all scales except float8_e8m0fnu ones: a positive float32, and a
            power of two unless scales are ue4m3.

        Returns
        -------
        BlockArray
            An array with a copy of the codes and scales.

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

    # -- parts -----------------------------------------------------------------

    def tobytes(self) -> bytes:
        """Return the buffer as bytes.

        Returns
        -------
        bytes
            All codes, then all scales, then all residuals.
        """
        return self._buffer.tobytes()

    def to_torch_scaled_mm(self) -> TorchOperand:
        """Return the codes and scales as the tensors that `torch._scaled_mm` takes.

        Returns
        -------
        TorchOperand
            A named tuple of tensors on the CPU with memory of their own: `data`, float8
            or float4_e2m1fn_x2 of this array's shape (with two values per byte, the
            block axis is half as long); `scale`, float8_e8m0fnu or float8_e4m3fn, in
            the layout of `swizzle_scales`; and `tensor_scale`, float32 of no axes for
            nvfp4, and None for other formats. Blocks along axis 1 make the row-major
            first operand, and blocks along axis 0 the column-major second one.

        Raises
        ------
        ValueError
            If the format is not mxfp8, mxfp4 or nvfp4 with its own block size and
            scales; if the array is not a matrix, or the block axis not a multiple of
            32, which PyTorch needs.
        ImportError
            Without PyTorch 2.13 or newer.

        Notes
        -----
        `torch._scaled_mm` does not know of tensor scales: multiply its result by
        them. `torch.nn.functional.scaled_mm` takes them as second scales. PyTorch
        multiplies such operands on GPUs only.

        Examples
        --------
        >>> import numpy as np, tf32dtype as td
        >>> x = td.blocks.quantize(np.ones((64, 128), np.float32), "mxfp8")
        >>> w = td.blocks.quantize(np.ones((32, 128), np.float32), "mxfp8")
        >>> a, b = x.to_torch_scaled_mm(), w.T.to_torch_scaled_mm()  # doctest: +SKIP
        >>> y = torch._scaled_mm(
        ...     a.data.cuda(), b.data.cuda(), a.scale.cuda(), b.scale.cuda(),
        ...     out_dtype=torch.bfloat16,
        ... )  # doctest: +SKIP
        """
        return operand(self._layout, self.codes, self.scales)

    @property
    def elements(self) -> NDArray[Any]:
        """The elements, one per item, in an array of this array's shape.

        Its dtype is the element's. Integers are int8 or int16; those of mxint8 are in
        units of 2^-6.
        """
        return self._unpacked(self.codes, self._layout.element)

    @property
    def residual_elements(self) -> NDArray[Any] | None:
        """The residuals, one per item, in this array's shape; None if it has none."""
        packed = self.residuals
        if packed is None:
            return None
        assert self._layout.residual is not None
        return self._unpacked(packed, self._layout.residual)

    @property
    def block_scales(self) -> NDArray[np.float32]:
        """The scale S of every block, the tensor's included: (others, blocks)."""
        plan = self._layout
        codes = self.scales if plan.row.levels == 1 else self.scales[..., 0]
        return wrapping.block_scales(plan)[codes]

    def _unpacked(self, packed: NDArray[np.uint8], element: Element) -> NDArray[Any]:
        plan = self._layout
        codes = bit_packing.unpack(packed, element.width)
        padded = codes.reshape(plan.lines, plan.blocks * plan.block_size)
        lines = wrapping.items_of(padded[:, : plan.length], element)
        return np.ascontiguousarray(from_lines(lines, plan.shape, plan.axis))

    # -- as an object ----------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same: formats, shape, axis, scales and all bytes.

        One bool, and of codes: NaN equals itself, and numbers that other codes stand
        for are different.
        """
        if not isinstance(other, BlockArray):
            return NotImplemented
        return self._layout == other._layout and np.array_equal(
            self._buffer, other._buffer
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, (facts_of(self), self._buffer)


def facts_of(array: BlockArray) -> Facts:
    """Return the arguments of `restore` besides the bytes, which are `buffer`."""
    return array._layout.facts


def restore(facts: Facts, buffer: NDArray[np.uint8]) -> BlockArray:
    """Return the array of a layout's facts and its bytes, all checked.

    Raises
    ------
    ValueError, TypeError
        If they do not make an array.
    """
    plan = layout.make(*facts)
    wrapping.check_buffer(plan, buffer)
    return BlockArray._of(plan, buffer)
