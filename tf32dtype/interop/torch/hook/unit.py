"""Who multiplies: this package's own sums, or the tensor core of a device."""

from __future__ import annotations

from dataclasses import dataclass

from ...._formats.quantize import Tf32Rounding
from ...._matmul.precisions import Settings, SpecialValues
from ....tensor_core.device import DeviceName
from ....tensor_core.models import Instruction
from .operand_format import OperandFormat


@dataclass(frozen=True)
class Unit:
    """The options of a product that do not belong to an operand."""

    device: DeviceName | None = None
    instruction: Instruction | None = None
    rounding: Tf32Rounding | None = None
    special_values: SpecialValues = "propagate"

    def settings(self, format: OperandFormat) -> Settings:
        """Return the arguments of `tf32dtype.matmul` for operands of a precision."""
        row = format.precision
        assert row is not None
        return Settings(
            row.short,
            rounding=self.rounding if row.short == "tf32" else None,
            scale="row" if format.scale == "row" else "tensor",
            special_values=self.special_values if format.is_split else "propagate",
            device=self.device,
            instruction=self.instruction,
        )


#: This package's own sums.
OWN = Unit()
