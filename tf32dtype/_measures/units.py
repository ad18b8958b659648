"""Units that multiply: the tensor cores of devices, used by an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from .. import tensor_core
from .._base.errors import UserError
from .._matmul.precisions import Precision
from ..tensor_core.device import Device
from ..tensor_core.look_up import find_device, find_instruction
from ..tensor_core.models import Board, Instruction, Model

Array = NDArray[Any]

ACCUMULATOR = "float32"


class Unit(NamedTuple):
    """The tensor core of a device, used by an instruction."""

    device: Board
    #: instruction; None: the one that `matmul` uses for each format
    instruction: Instruction | None

    @property
    def name(self) -> str:
        """In words."""
        return " ".join(filter(None, self))

    @property
    def models(self) -> list[Model]:
        """Those of products of a format with itself that it adds in float32."""
        return [
            model
            for model in find_device(self.device).models
            if self.instruction in (None, model.instruction)
            and model.a == model.b
            and model.accumulator == ACCUMULATOR
        ]

    @property
    def formats(self) -> list[str]:
        """The formats of these."""
        return [*dict.fromkeys(model.a for model in self.models)]

    def has(self, precision: Precision) -> bool:
        """Return whether the unit multiplies a precision's operands or components."""
        return any(
            model.a == precision.format
            and (precision.components == 1 or model.adds_components)
            for model in self.models
        )

    def of(self, form: str) -> Unit:
        """This one, by the instruction that multiplies a format which it has."""
        return next(
            self._replace(instruction=model.instruction)
            for model in self.models
            if model.a == form
        )

    def multiply(self, a: Array, b: Array) -> Array:
        """a @ b."""
        product: Array = tensor_core.matmul(
            a, b, device=self.device, instruction=self.instruction
        )
        return product

    def multiply_blocks(self, a: Any, b: Any) -> Array:
        """Return a @ b of arrays of blocks.

        If this is the usual unit of the device, its block-scaled instruction multiplies
        them. Otherwise this unit does, block after block.
        """
        usual = self.instruction in (None, find_device(self.device).instructions[0])
        product: Array = tensor_core.matmul(
            a, b, device=self.device, instruction=None if usual else self.instruction
        )
        return product

    def record(self) -> dict[str, str | None]:
        """Return a record for JSON."""
        return {"device": self.device, "instruction": self.instruction}


def find(names: Sequence[str]) -> list[Unit]:
    """Return the units that "H100" or "H100:mma.sync" name.

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
            chosen = find_instruction(device, instruction) if colon else _usual(device)
        except ValueError as error:
            raise UserError(str(error)) from None
        unit = Unit(device.name, chosen)
        if unit in units:
            raise UserError(
                f"device must be given only once; got {unit.name} again, as {name}"
            )
        units.append(unit)
    return units


def _usual(device: Device) -> Instruction | None:
    """Return the instruction that `matmul` uses for all formats; None if several."""
    every = Unit(device.name, None)
    first, *others = dict.fromkeys(every.of(form).instruction for form in every.formats)
    return None if others else first
