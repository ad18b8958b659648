"""Units that multiply: the tensor cores of devices, used by an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from .. import tensor_core
from ..tensor_core.look_up import find_device, find_instruction
from ..tensor_core.models import Board, Instruction
from . import UserError

Array = NDArray[Any]

ACCUMULATOR = "float32"


class Unit(NamedTuple):
    """The tensor core of a device, used by an instruction."""

    device: Board
    instruction: Instruction

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.device} {self.instruction}"

    @property
    def formats(self) -> list[str]:
        """Formats whose products with themselves it adds in float32."""
        return [
            model.a
            for model in find_device(self.device).models
            if model.instruction == self.instruction
            and model.a == model.b
            and model.accumulator == ACCUMULATOR
        ]

    def multiply(self, a: Array, b: Array) -> Array:
        """a @ b."""
        product: Array = tensor_core.matmul(
            a, b, device=self.device, instruction=self.instruction
        )
        return product

    def multiply_blocks(self, a: Any, b: Any) -> Array:
        """a @ b of arrays of blocks: by the device's block-scaled instruction, if this
        is its usual unit, or by this one block after block.
        """
        usual = find_instruction(find_device(self.device), None) == self.instruction
        product: Array = tensor_core.matmul(
            a, b, device=self.device, instruction=None if usual else self.instruction
        )
        return product

    def record(self) -> dict[str, str]:
        """For JSON."""
        return {"device": self.device, "instruction": self.instruction}


def find(names: Sequence[str]) -> list[Unit]:
    """The units that "H100" or "H100:mma.sync" name.

    Raises
    ------
    UserError
        For what is not known, and for a unit that is named twice.
    """
    units: list[Unit] = []
    for name in names:
        device_name, colon, instruction = name.partition(":")
        try:
            device = find_device(device_name)
            chosen = find_instruction(device, instruction if colon else None)
        except ValueError as error:
            raise UserError(str(error)) from None
        unit = Unit(device.name, chosen)
        if unit in units:
            raise UserError(f"{name} is {unit.name}, which was named before")
        units.append(unit)
    return units
