"""Ways to multiply: a precision, a device's tensor core, a block format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .. import blocks as arrays_of_blocks
from .._base.errors import UserError
from .._base.wording import one_of
from .._integer_products.schemes import IntegerPrecision, advice
from .._matmul.matmul import matmul
from .._matmul.precisions import COMMON, EXACT, PRECISIONS, Precision, find_precision
from ..blocks.formats import formats as block_formats
from .format_facts import facts, known
from .units import Unit

Array = NDArray[Any]


class Way(NamedTuple):
    """A way to multiply: in a precision, or with both operands in a block format."""

    name: str
    precision: Precision | None  # None: a block format
    unit: Unit | None = None  # the tensor core that multiplies; None: td.matmul's sums

    @property
    def products(self) -> int:
        """How many products of components there are for one of the operands."""
        if self.precision is None:
            return block_formats[self.name].levels ** 2
        components = range(self.precision.components)
        return sum(
            i + j < self.precision.split_orders for i in components for j in components
        )

    @property
    def bits(self) -> float:
        """Return the bits per operand value, summed over all products of components.

        They measure the work of a tensor core; ways are ordered by cost with them.
        """
        if self.precision is None:
            return block_formats[self.name].bits_per_value
        return facts(self.precision.format).bits * self.products

    def prepare(self, x: Array, axis: int) -> Any:
        """Return an operand as `product` takes it.

        Parameters
        ----------
        x : numpy.ndarray
            A real matrix.
        axis : int
            The one that the product sums over, along which blocks lie.

        Returns
        -------
        numpy.ndarray or BlockArray
            float32, or in the block format.
        """
        if self.precision is None:
            return arrays_of_blocks.quantize(x, block_formats[self.name], axis=axis)
        return x.astype(np.float32)

    def product(self, a: Any, b: Any) -> Array:
        """Return the product in float32 of two operands that `prepare` returned."""
        if self.precision is None:
            in_blocks: Array = a @ b
            return in_blocks
        device, instruction = self.unit or (None, None)
        product: Array = matmul(
            a,
            b,
            precision=self.precision.short,
            device=device,
            instruction=instruction,
        )
        return product

    def multiply(self, a: Array, b: Array) -> tuple[Array, int]:
        """Return the product in float32, and the bytes of the rounded operands."""
        x, y = self.prepare(a, -1), self.prepare(b, 0)
        if self.precision is None:
            return self.product(x, y), x.nbytes + y.nbytes
        itemsize = facts(self.precision.format).dtype.itemsize
        count = self.precision.components * itemsize * (a.size + b.size)
        return self.product(x, y), count


def all_names() -> list[str]:
    """Return the names of all precisions and block formats."""
    return [*(precision.short for precision in PRECISIONS), *block_formats]


def select(names: Sequence[str]) -> list[Way]:
    """Return the precisions and block formats of these names.

    Raises
    ------
    UserError
        For a name that is neither; it lists the known ones.
    """
    return [_find(name) for name in names]


def on_unit(ways: Iterable[Way], unit: Unit, name: str) -> list[Way]:
    """Return the ways that a tensor core has, on that tensor core.

    Parameters
    ----------
    ways : iterable of Way
        Ways without a unit.
    unit : Unit
        The tensor core.
    name : str
        The tensor core's name as the user wrote it, for names such as "bf16@H100".

    Returns
    -------
    list of Way
        Splits too, as their components are of a format that it has.
    """
    return [
        way._replace(name=f"{way.name}@{name}", unit=unit)
        for way in ways
        if way.precision is not None and unit.has(way.precision)
    ]


def _find(name: str) -> Way:
    if name in block_formats:
        return Way(block_formats[name].name, None)
    try:
        precision = find_precision(name)
    except ValueError:
        names = [*COMMON, *all_names(), EXACT, *get_args(IntegerPrecision)]
        fix = advice(name) or None
        if name in known():
            fix = f"Use --formats for the format {name}"
        listing = "td.typing.PrecisionName or td.blocks.formats"
        raise UserError(one_of("precision", name, names, listing, fix)) from None
    return Way(precision.short, precision)
