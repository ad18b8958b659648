"""The array of blocks on a GPU."""

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

    `tf32dtype.cuda.blocks.quantize` makes them, and `asarray` of such an array on the
    CPU, `tf32dtype.blocks.BlockArray`, whose attributes they have and whose bytes are
    the same. `codes`, `scales` and `residuals` are CuPy arrays, views of one buffer,
    which arrays share: nothing shall write to it.

    Slices along other axes than the blocks' and transposed arrays copy lines, if their
    order changes; nothing here waits for the GPU but `get`, `tobytes` and ``==``.

    See Also
    --------
    quantize, matmul
    """

    __slots__ = ()
    __hash__: ClassVar[None] = None  # as __eq__ is here
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
        """The elements one an item, of this array's shape.

        Of the element's dtype; integers are int8 or int16 (those of mxint8 count 2^-6
        each).
        """
        return self._unpacked(self.codes, self._layout.element)

    @property
    def residual_elements(self) -> Any:
        """The residuals one an item, of this array's shape; None without."""
        if self._layout.residual is None:
            return None
        return self._unpacked(self.residuals, self._layout.residual)

    @property
    def block_scales(self) -> Any:
        """The scale S of every block, the tensor's included: (others, blocks)."""
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
        """Lines as an array of this shape, in C order."""
        moved = from_lines(lines, self.shape, self.axis)
        if moved.flags.c_contiguous:
            return moved
        return backend.current().call("ascontiguousarray", moved)

    # -- values ----------------------------------------------------------------

    def dequantize(self, dtype: DTypeLike | None = np.float32, out: Any = None) -> Any:
        """The values, as `tf32dtype.blocks.BlockArray.dequantize` has them.

        Parameters
        ----------
        dtype : dtype
            float32 (None too), float64, float16 or a format of this package.
        out : cupy.ndarray, optional
            An array of this shape and dtype to write into, with any strides.

        Returns
        -------
        cupy.ndarray
            C-contiguous, of this package's class if the dtype is a format; `out` if
            given. NaN is the positive one.

        Raises
        ------
        TypeError
            For another dtype; if `out` is no array of that dtype.
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
        """The same array in the memory of the CPU, byte by byte; waits for it."""
        return blocks.BlockArray._of(self._layout, backend.current().get(self._buffer))

    def tobytes(self) -> bytes:
        """The buffer as bytes, on the CPU."""
        return self.get().tobytes()

    def __eq__(self, other: object) -> bool:
        """Compare formats, shape, axis, scales and all bytes.

        The comparison waits for them.
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
    """An array of blocks in the current GPU's memory.

    Parameters
    ----------
    x : tf32dtype.blocks.BlockArray or BlockArray
        One of the GPU is returned as it is.

    Raises
    ------
    TypeError
        For anything else.
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
