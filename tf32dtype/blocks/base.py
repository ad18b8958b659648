"""The base class of block arrays, in any memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._formats.aliases import BlockFormatName
from . import indexing
from .formats import BlockSize, ScaleFormat
from .layout import Layout
from .scaled import Product, Scaled

#: An array of uint8 in the memory of a kind of machine.
Buffer = TypeVar("Buffer", bound=Any)


class Blocks(Scaled[Product], Generic[Buffer, Product]):
    """A layout and a buffer, and all properties that do not depend on the bytes."""

    __slots__ = ("_buffer", "_layout")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # like an ndarray

    _layout: Layout
    _buffer: Buffer
    #: The name that repr shows.
    _name: ClassVar[str]

    # -- of a kind of memory

    @classmethod
    @abstractmethod
    def _of(cls, plan: Layout, buffer: Buffer) -> Self:
        """Return an array of these bytes."""

    @abstractmethod
    def _taken(self, order: NDArray[np.intp], plan: Layout) -> Buffer:
        """Return bytes of a layout whose lines are some of these, by their numbers."""

    # -- facts -------------------------------------------------------------------

    @property
    def format(self) -> BlockFormatName:
        """Name of the block format."""
        return self._layout.row.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._layout.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._layout.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return self._layout.lines * self._layout.length

    @property
    def axis(self) -> int:
        """The axis that blocks are along, counted from 0."""
        return self._layout.axis

    @property
    def block_size(self) -> BlockSize:
        """Number of values per block."""
        return self._layout.block_size

    @property
    def scale_format(self) -> ScaleFormat:
        """Name of the scales' format."""
        return self._layout.scale_format

    @property
    def tensor_scale(self) -> np.float32:
        """The factor of all scales; 1 if they are float8_e8m0fnu."""
        return np.float32(self._layout.tensor_scale)

    @property
    def nbytes(self) -> int:
        """The bytes of codes, scales and residuals, and 4 for a tensor's scale."""
        return self._layout.size + 4 * self._layout.has_tensor_scale

    @property
    def bits_per_value(self) -> float:
        """The bits of a value in a full block, including its share of the scales.

        It is 8.25 for tcfp8. ``8 * nbytes / size`` is larger: it also counts a tensor's
        scale and the padding of short blocks.
        """
        return self._layout.row.bits(self._layout.block_size)

    # -- parts -------------------------------------------------------------------

    @property
    def buffer(self) -> Buffer:
        """All bytes, read-only: codes, scales, residuals."""
        return self._buffer

    @property
    def codes(self) -> Buffer:
        """Packed codes, of shape (others, blocks, bytes of a block).

        The first code is in the lowest bits: for 4 bits in the low nibble. Three bytes
        hold four codes of 6 bits, or two of 12 bits. For 16 bits, the low byte comes
        first.
        """
        return self._parts[0]

    @property
    def scales(self) -> Buffer:
        """Codes of scales: (others, blocks), with a residual (others, blocks, 2)."""
        return self._parts[1]

    @property
    def residuals(self) -> Buffer | None:
        """Packed codes of residuals, like `codes`; None for formats without."""
        return self._parts[2]

    @property
    def _parts(self) -> tuple[Buffer, Buffer, Buffer | None]:
        found: tuple[Any, Any, Any] = self._layout.parts(self._buffer)
        return found

    # -- parts of the array ------------------------------------------------------

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        if self.axis == 0:
            raise TypeError(
                "an array of blocks cannot be iterated along its block axis; use"
                " dequantize()"
            )
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        plan = self._layout
        taken, shape, axis = indexing.take(key, plan.shape, plan.axis)
        return self._lines(taken, shape, axis)

    @property
    def T(self) -> Self:
        """The array with its axes reversed."""
        return self._transposed(tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Self:
        """The array with its last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError(
                f"mT needs an array with at least two axes; got {self.ndim}"
            )
        *first, m, n = range(self.ndim)
        return self._transposed((*first, n, m))

    def _transposed(self, axes: tuple[int, ...]) -> Self:
        plan = self._layout
        shape = tuple(plan.shape[axis] for axis in axes)
        numbers = np.arange(plan.lines).reshape(plan.others)
        moved = [axis - (axis > plan.axis) for axis in axes if axis != plan.axis]
        return self._lines(numbers.transpose(moved), shape, axes.index(plan.axis))

    def _lines(
        self, lines: NDArray[np.intp], shape: tuple[int, ...], axis: int
    ) -> Self:
        """Return an array of these lines, by their numbers."""
        old = self._layout
        plan = Layout(
            old.row, shape, axis, old.block_size, old.scale_format, old.tensor_scale
        )
        order = lines.reshape(-1)
        if order.size == old.lines and (order == np.arange(order.size)).all():
            return self._of(plan, self._buffer)
        return self._of(plan, self._taken(order, plan))

    # -- as an object ------------------------------------------------------------

    def __repr__(self) -> str:
        plan = self._layout
        facts = [repr(plan.row.name), f"shape={plan.shape}", f"axis={plan.axis}"]
        if plan.block_size != plan.row.block_size:
            facts.append(f"block_size={plan.block_size}")
        facts.append(f"scale_format={plan.scale_format!r}")
        if plan.has_tensor_scale:
            facts.append(f"tensor_scale={plan.tensor_scale:.9g}")
        return f"{self._name}({', '.join(facts)}, {self.bits_per_value:g} bits)"
