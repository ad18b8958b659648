"""The array class for values in blocks with common scales, on a GPU."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import cupy
import numpy as np
from numpy.typing import DTypeLike, NDArray

from ... import blocks
from ...blocks.base import Blocks
from ...blocks.dequantization import value_dtype
from ...blocks.formats import Element
from ...blocks.layout import Layout
from ...blocks.lines import from_lines
from .._arrays.ndarray import wrap
from .._matmul.matmul import cast, copy_into
from .._runtime import backend
from . import kernels
from .products import matmul


class BlockArray(Blocks[Any, Any]):
    """An array in a GPU's memory whose values share scales in blocks along one axis.

    Create one by `tf32dtype.cuda.blocks.quantize`, or by `asarray` of a CPU array,
    `tf32dtype.blocks.BlockArray`. It has the same attributes and the same bytes as the
    CPU array. `codes`, `scales` and `residuals` are CuPy arrays. They are views of one
    buffer that several arrays may share, so do not write to them.

    Slices along axes without blocks, and transposed arrays, copy lines if the order of
    the lines changes. Only `get`, `tobytes` and ``==`` wait for the GPU.

    See Also
    --------
    quantize : Quantize an array on the GPU.
    asarray : Copy an array of blocks from the CPU.
    matmul : Multiply arrays of blocks.

    Examples
    --------
    >>> import numpy as np, tf32dtype.cuda as tfc
    >>> x = tfc.asarray(np.full((2, 32), 3.0, np.float32))
    >>> b = tfc.blocks.quantize(x, "mxfp8")
    >>> b.shape, b.format, b.dequantize().get()[1, :2]
    ((2, 32), 'mxfp8_e4m3', array([3., 3.], dtype=float32))
    """

    __slots__ = ()
    __hash__: ClassVar[None] = None  # because the class defines __eq__
    _name = "cuda.blocks.BlockArray"

    def __init__(self) -> None:
        raise TypeError(
            "cannot create a BlockArray directly; use tf32dtype.cuda.blocks.quantize,"
            " or tf32dtype.cuda.blocks.asarray of a CPU array of blocks"
        )

    @classmethod
    def _of(cls, plan: Layout, buffer: Any) -> Self:
        self = object.__new__(cls)
        self._layout = plan
        self._buffer = buffer
        return self

    def _taken(self, order: NDArray[np.intp], plan: Layout) -> Any:
        buffer = cupy.empty((plan.size,), np.uint8)
        call, count = backend.current().call, order.size
        if plan.size == 0:
            return buffer
        first = int(order[0])
        step = int(order[1]) - first if count > 1 else 1
        runs = step > 0 and bool((order == first + step * np.arange(count)).all())
        places = None if runs else backend.current().put(order)
        for part, new in zip(self._parts, plan.parts(buffer), strict=True):
            if part is None or new is None:
                continue
            rows = part.reshape(self._layout.lines, -1)
            to = new.reshape(count, -1)
            if runs:
                call("copyto", to, rows[first : first + step * count : step])
            else:
                call("take", rows, places, axis=0, out=to)
        return buffer

    @staticmethod
    def _product(a: Any, b: Any, **options: Any) -> Any:
        return matmul(a, b, **options)

    # -- parts -----------------------------------------------------------------

    @property
    def elements(self) -> Any:
        """Return the unpacked elements, in the shape of the array.

        They have the dtype of the elements. Integers are int8 or int16; an integer of
        mxint8 is a multiple of 2^-6.
        """
        return self._unpacked(self.codes, self._layout.element)

    @property
    def residual_elements(self) -> Any:
        """Return the unpacked residuals, in the shape of the array, or None."""
        if self._layout.residual is None:
            return None
        return self._unpacked(self.residuals, self._layout.residual)

    @property
    def block_scales(self) -> Any:
        """Return the scales S of blocks, with the tensor scale, as (others, blocks)."""
        plan = self._layout
        numbers = kernels.scale_numbers(plan, self.scales)
        lines = plan.others[-1] if plan.others else 1
        by_line = numbers[..., :lines].swapaxes(-1, -2)
        found = backend.current().call("ascontiguousarray", by_line)
        return found.reshape(*plan.others, plan.blocks)

    def _unpacked(self, packed: Any, element: Element) -> Any:
        lines = kernels.unpack(self._layout, packed, element)
        array = self._in_order(lines)
        return array if element.is_integer else wrap(array, element.dtype)

    def _in_order(self, lines: Any) -> Any:
        """Return lines as an array of this shape, in C order."""
        moved = from_lines(lines, self.shape, self.axis)
        if moved.flags.c_contiguous:
            return moved
        return backend.current().call("ascontiguousarray", moved)

    # -- values ----------------------------------------------------------------

    def dequantize(self, dtype: DTypeLike | None = np.float32, out: Any = None) -> Any:
        """Return the values, as `tf32dtype.blocks.BlockArray.dequantize` does.

        Parameters
        ----------
        dtype : dtype
            float32 (default, also for None), float64, float16 or a format of this
            package.
        out : cupy.ndarray, optional
            An array of this shape and dtype to write into, with any strides.

        Returns
        -------
        cupy.ndarray
            A C-contiguous array, of this package's class if the dtype is a format;
            `out` if given. All NaN are positive.

        Raises
        ------
        TypeError
            If the dtype is not one of these, or if `out` is not a CuPy array of the
            dtype.
        ValueError
            If `out` has another shape.
        """
        plan = self._layout
        wanted = value_dtype(dtype)
        if out is not None:
            _check_out(out, wanted, plan.shape)
        item = np.dtype(np.float64 if wanted == np.float64 else np.float32)
        last = plan.axis == self.ndim - 1
        if out is not None and wanted == item and last and out.flags.c_contiguous:
            kernels.decode(plan, self._parts, out.reshape(plan.lines, plan.length))
            return out
        lines = cupy.empty((plan.lines, plan.length), item)
        kernels.decode(plan, self._parts, lines, odd=wanted not in (item, np.float64))
        if out is None:
            return cast(self._in_order(lines), wanted)
        copy_into(from_lines(lines, plan.shape, plan.axis), out)
        return out

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> Any:
        raise TypeError(
            "an array of blocks on a GPU cannot be converted to NumPy implicitly; use"
            " get() or dequantize().get()"
        )

    # -- as an object ----------------------------------------------------------

    def get(self) -> blocks.BlockArray:
        """Copy the array to the CPU, with the same bytes, and wait for the copy.

        Returns
        -------
        tf32dtype.blocks.BlockArray
            An array with the same shape, format and bytes.
        """
        return blocks.BlockArray._of(self._layout, backend.current().get(self._buffer))

    def tobytes(self) -> bytes:
        """Return the buffer as bytes, on the CPU."""
        return self.get().tobytes()

    def __eq__(self, other: object) -> bool:
        """Compare formats, shape, axis, scales and all bytes.

        The comparison waits for the GPU.
        """
        if not isinstance(other, BlockArray):
            return NotImplemented
        if self._layout != other._layout:
            return False
        same = backend.current().call("array_equal", self._buffer, other._buffer)
        return bool(backend.current().get(same) if hasattr(same, "get") else same)

    def __reduce__(self) -> tuple[Any, ...]:
        return asarray, (self.get(),)


def asarray(x: blocks.BlockArray | BlockArray) -> BlockArray:
    """Copy an array of blocks to the current GPU's memory.

    Parameters
    ----------
    x : tf32dtype.blocks.BlockArray or BlockArray
        Array on the CPU or on a GPU. A GPU array is returned unchanged.

    Returns
    -------
    BlockArray
        An array with the same shape, format and bytes.

    Raises
    ------
    TypeError
        If `x` is not an array of blocks.

    See Also
    --------
    quantize : Quantize an array on the GPU.
    BlockArray.get : Copy the array to the CPU.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td, tf32dtype.cuda as tfc
    >>> b = td.blocks.quantize(np.ones((2, 32), np.float32), "mxfp8")
    >>> tfc.blocks.asarray(b).get() == b
    True
    """
    if isinstance(x, BlockArray):
        return x
    if not isinstance(x, blocks.BlockArray):
        raise TypeError(
            "x must be an array of blocks; got"
            f" {type(x).__module__}.{type(x).__name__}. Use"
            " tf32dtype.cuda.blocks.quantize for numbers"
        )
    return BlockArray._of(x._layout, backend.current().put(x.buffer))


def _check_out(out: Any, wanted: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if not isinstance(out, cupy.ndarray):
        raise TypeError(f"out must be a CuPy array; got {type(out).__name__}")
    if out.dtype != wanted:
        raise TypeError(
            f"out must be an array of {wanted}; got {out.dtype}. Use dtype=out.dtype"
        )
    if out.shape != shape:
        raise ValueError(f"out must have shape {shape}; got {out.shape}")
