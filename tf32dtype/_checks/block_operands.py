"""Operands whose blocks have scales: values, scales, and the unit that adds them.

If the instruction applies the scales, each operand has its values, and the exponents by
which the unit aligns them. Otherwise a kernel multiplies the sum of each block by the
scales, and adds it to a float32 accumulator.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import _core
from .._base.wording import brief
from ..tensor_core import block_products
from ..tensor_core.block_products import Operand, Request, is_blocks
from ..tensor_core.block_scaled import BlockScaled
from ..tensor_core.models import Aligned
from .sizes import floor_log2
from .unit_bounds import FLOAT32
from .units import PLAIN, Unit, unit_of

Array = NDArray[Any]

#: The exponent of the smallest normal number of the scale format "ue4m3".
_LEAST_SCALE = -6

__all__ = ["BlockOperands", "block_operands", "is_blocks"]


class BlockOperands(NamedTuple):
    """Operands in float64, (..., m, k) and (..., k, n), and what belongs to them."""

    a: Array
    b: Array
    unit: Unit
    #: scales of blocks, (m, groups) and (groups, n), if a kernel applies them
    scale_a: Array | None
    scale_b: Array | None
    #: exponents by which values are aligned, if the instruction applies the scales
    exponents: tuple[Array, Array] | None
    #: product of the scales of both arrays
    alpha: float


def block_operands(
    a: Any, b: Any, unit: object, instruction: str | None, accumulator: DTypeLike | None
) -> BlockOperands:
    """Read arrays of blocks or tiles.

    Raises
    ------
    TypeError, ValueError
        As `tf32dtype.tensor_core.matmul` does, and for units and arrays that have no
        bound.
    """
    if unit in PLAIN:
        raise ValueError(
            f"unit must be a device for arrays of blocks; got {brief(unit)}"
        )
    name: Any = unit
    found = block_products.resolve(a, b, name, instruction, accumulator, None)
    for operand in (found.a, found.b):
        if len(operand.levels) > 1:
            raise ValueError(
                f"{operand.name} must have one scale per block; got an array with"
                " residuals, for which no bound is known"
            )
        if operand.levels[0].elements.ndim > 2:
            raise ValueError(
                f"{operand.name} must be a matrix or a vector of blocks; got shape"
                f" {operand.shape}"
            )
    if isinstance(found.model, BlockScaled):
        return _scaled_inside(found, found.model)
    assert isinstance(found.model, Aligned)
    (a_values, a_scales), (b_values, b_scales) = (
        (
            x.levels[0].elements.astype(np.float64),
            x.levels[0].values.astype(np.float64),
        )
        for x in (found.a, found.b)
    )
    return BlockOperands(
        _shaped(a_values, found.a),
        _shaped(b_values.T, found.b),
        unit_of(found.model),
        a_scales,
        b_scales.T,
        None,
        1.0,
    )


def _shaped(x: Array, operand: Operand) -> Array:
    return x.reshape(-1) if operand.is_vector else x


def _scaled_inside(found: Request, model: BlockScaled) -> BlockOperands:
    values, exponents = [], []
    pairs = zip((found.a, found.b), model.least_exponents, strict=True)
    for operand, least in pairs:
        level = operand.levels[0]
        elements = level.elements.astype(np.float64)
        table = _core.scale_values(operand.scale_format).astype(np.float64)
        with np.errstate(all="ignore"):
            scales = np.repeat(table[level.scales], operand.block_size, axis=-1)
            scales = scales[..., : elements.shape[-1]]
            exponent = np.maximum(floor_log2(np.abs(scales)), _least(operand))
            if model.group == 1:
                exponent += np.maximum(floor_log2(np.abs(elements)), least)
            values.append(elements * scales)
        exponents.append(exponent)
    unit = Unit(model.name, FLOAT32, (-126, -126), model)
    alpha = float(found.a.tensor_scale) * float(found.b.tensor_scale)
    return BlockOperands(
        _shaped(values[0], found.a),
        _shaped(values[1].T, found.b),
        unit,
        None,
        None,
        (exponents[0], exponents[1].T),
        alpha,
    )


def _least(operand: Operand) -> int:
    """Return the smallest exponent of a scale: subnormal scales keep it."""
    return -127 if operand.scale_format == "float8_e8m0fnu" else _LEAST_SCALE
