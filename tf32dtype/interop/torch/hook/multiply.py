"""One product of two arrays whose operands are rounded to formats.

Each way to multiply is a product of this package, and has its bits. The first one
counts whose condition holds:

1. Both operands have one precision: `tf32dtype.matmul`, which rounds and scales them.
2. Both have blocks of one size, or both have tiles: `tf32dtype.blocks.matmul`; with a
   device `tf32dtype.tensor_core.matmul`.
3. One has blocks or tiles, the other one a precision: `tf32dtype.matmul` of the values
   in that precision.
4. Both have precisions, of two formats: the product of their elements in float32 sums,
   times the scales of the first one, then of the second one. A device multiplies
   elements in their formats, or in the format that they promote to.
5. Otherwise the sizes of blocks differ: `tf32dtype.matmul` of the values, in "f32".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .... import _core, blocks, tensor_core
from ...._formats.quantize import quantize
from ...._formats.table import find_dtype, formats
from ...._matmul.matmul import matmul, product_in
from ...._matmul.precisions import Precision, find_precision, resolve, rounding_of
from ....blocks.formats import formats as block_formats
from ....tensor_core.look_up import find_device, find_model
from .operand_format import TILE, UNROUNDED, OperandFormat
from .unit import Unit

Array = NDArray[Any]

_BF16 = OperandFormat("bf16")
#: The least scale of FP8, as in src/matmul/operand_scales.c.
_LEAST_SCALE = np.float32(2.0**-126)


class Rounded(NamedTuple):
    """An operand's elements, and the scales that its product is multiplied by."""

    #: numbers, BlockArray or TileArray
    elements: Any
    #: for each line, or one for each matrix; None: no scales
    scales: Array | None = None


class Way(NamedTuple):
    """How operands of two formats are rounded and multiplied."""

    #: the formats of the operands; "f32": unchanged
    formats: tuple[OperandFormat, OperandFormat]
    unit: Unit
    #: whether operands become their values in float32 before the product
    has_values: bool
    #: the precision of the product; None: a product of elements or blocks
    spec: _core.MatmulSpec | None
    #: the dtype that a device multiplies elements in; None: their own
    common: np.dtype[Any] | None = None

    @property
    def takes_bfloat16(self) -> bool:
        """Whether bfloat16 operands are multiplied as they are, with the same bits."""
        return self.formats == (_BF16, _BF16) and self.unit.device is None

    def multiply(self, a: Array, b: Array) -> Array:
        """Return a product.

        Parameters
        ----------
        a, b : numpy.ndarray
            float32 matrices, (..., m, k) and (..., k, n), of one stack; the elements
            of `way_of_elements`. If `takes_bfloat16` says so, both may be bfloat16.

        Returns
        -------
        numpy.ndarray
            float32, (..., m, n).

        Raises
        ------
        ValueError
            For NaN and Inf in tiles, and in formats of blocks that have none.
        """
        with np.errstate(all="ignore"):
            if a.dtype != np.float32 and self.takes_bfloat16:
                narrow: Array = matmul(a, b, dtype=np.float32)
                return narrow
            if self.spec is not None and not self.has_values:
                whole: Array = product_in(a, b, self.spec)
                return whole
            return self.product(self.round(a, 0), self.round(b, 1))

    def round(self, x: Array, which: int) -> Rounded:
        """Return the first operand (0) or the second (1), rounded to its format."""
        return round_operand(x, self.formats[which], which, self.unit)

    def product(self, x: Rounded, y: Rounded) -> Array:
        """Return the product of rounded operands."""
        sums: Array
        if self.spec is not None:
            left, right = (_as_float32(one.elements) for one in (x, y))
            sums = product_in(left, right, self.spec)
        elif self.unit.device is None:
            sums = blocks.matmul(x.elements, y.elements)
        else:
            a, b = x.elements, y.elements
            if self.common is not None:
                a, b = a.astype(self.common), b.astype(self.common)
            sums = tensor_core.matmul(
                a, b, device=self.unit.device, instruction=self.unit.instruction
            )
        for scales in (x.scales, y.scales):
            if scales is not None:
                sums *= scales
        return sums


def _as_float32(elements: Any) -> Array:
    """Return numbers, or the values of blocks or tiles."""
    return np.asarray(elements, dtype=np.float32)


def values_of(x: Rounded) -> Array:
    """Return the values of a rounded operand in float32."""
    wide = _as_float32(x.elements)
    return wide if x.scales is None else wide * x.scales


def round_operand(x: Array, format: OperandFormat, which: int, unit: Unit) -> Rounded:
    """Round an operand of a product.

    Parameters
    ----------
    x : numpy.ndarray
        float32 matrices: (..., m, k) if it is the first operand, else (..., k, n).
    format : OperandFormat
        Not a split precision.
    which : int
        0 for the first operand, 1 for the second.
    unit : Unit
        It chooses the rounding to tf32.
    """
    along = -1 if which == 0 else -2
    row = format.precision
    if row is None:
        return Rounded(blocks.quantize(x, block_formats[format.name], axis=along))
    if format.is_tiled:
        lines = TILE if format.scale == "tile" else 1
        tile = (lines, TILE) if which == 0 else (TILE, lines)
        return Rounded(blocks.quantize_tiles(x, formats[row.format], tile))
    if format.is_unrounded:
        return Rounded(x)
    if format.scale is None:
        return Rounded(_plainly(x, row, unit))
    magnitudes = np.where(np.isfinite(x), np.abs(x), np.float32(0))
    axes = (along,) if format.scale == "row" else (-2, -1)
    largest = magnitudes.max(axis=axes, keepdims=True, initial=0)
    scales = np.maximum(largest / np.float32(formats[row.format].max), _LEAST_SCALE)
    scales[largest == 0] = 1
    return Rounded((x / scales).astype(find_dtype(row.format)), scales)


def _plainly(x: Array, row: Precision, unit: Unit) -> Array:
    """Round to a precision without scales."""
    if row.short != "tf32":
        return x.astype(find_dtype(row.format))
    settings = unit.settings(OperandFormat("tf32"))
    model = None
    if unit.device is not None:
        model = find_model(unit.device, unit.instruction, "tf32", "tf32", "float32")
    return quantize(x, "tf32", rounding=rounding_of(settings, row, model))


@lru_cache(maxsize=1024)
def way_of(left: OperandFormat, right: OperandFormat, unit: Unit) -> Way:
    """Return the way to multiply operands of two formats.

    Raises
    ------
    ValueError
        For a split precision of only one operand; for two formats that the device
        cannot multiply.
    """
    both = left, right
    in_blocks = [form.block is not None for form in both]
    if left == right and not any(in_blocks):
        return Way(both, unit, False, resolve(unit.settings(left)))
    for form in both:
        if form.is_split:
            raise ValueError(
                f"{form} must be the format of both operands; got {left} x {right}"
            )
    if all(in_blocks):
        same = left.block == right.block and left.is_tiled == right.is_tiled
        if same:
            way = Way(both, unit, False, None)
            one = np.ones((1, 1), np.float32)
            way.multiply(one, one)  # raises if the device has no such product
            return way
        if unit.device is not None:
            raise ValueError(
                f"blocks of both operands must have one size with device="
                f"{unit.device!r}; got {left} x {right}"
            )
        return Way(both, unit, True, resolve(unit.settings(UNROUNDED)))
    if any(in_blocks):
        other = right if in_blocks[0] else left
        kept = (UNROUNDED, right) if in_blocks[1] else (left, UNROUNDED)
        return Way(kept, unit, True, resolve(unit.settings(other)))
    names = [find_precision(form.name).format for form in both]
    return way_of_elements(*names, unit)._replace(formats=both)


@lru_cache(maxsize=256)
def way_of_elements(left: str, right: str, unit: Unit) -> Way:
    """Return the way to multiply elements of two formats, which are not rounded.

    Raises
    ------
    ValueError
        If the device cannot multiply the formats.
    """
    both = UNROUNDED, UNROUNDED
    if unit.device is None:
        return Way(both, unit, True, resolve(unit.settings(UNROUNDED)))
    return Way(both, unit, False, None, _common(left, right, unit))


def _common(left: str, right: str, unit: Unit) -> np.dtype[Any] | None:
    """Return the dtype that a device multiplies elements of two formats in."""
    models = find_device(unit.device).models
    if any((m.a, m.b, m.accumulator) == (left, right, "float32") for m in models):
        return None
    common = np.promote_types(find_dtype(left), find_dtype(right))
    find_model(unit.device, unit.instruction, common.name, common.name, "float32")
    return common
