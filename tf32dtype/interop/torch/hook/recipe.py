"""Recipes: the formats of the operands of a layer's products, and who multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict, Unpack, get_args

from ...._base.wording import joined, one_of
from ...._formats.quantize import Tf32Rounding
from ...._matmul.precisions import Settings, SpecialValues, resolve
from ....tensor_core.device import DeviceName
from ....tensor_core.models import Instruction
from .multiply import Way, way_of
from .operand_format import (
    SCALES,
    UNROUNDED,
    OperandFormat,
    Scale,
    operand_format,
)
from .unit import OWN, Unit

#: The kinds of operands. Only attention has operands of the last two kinds.
Role = Literal["weights", "activations", "gradients", "kv_cache", "probabilities"]
ROLES = get_args(Role)
#: The roles of operands that are multiplied, in both orders.
_PAIRS: tuple[tuple[Role, Role], ...] = (
    ("activations", "weights"),
    ("activations", "activations"),
    ("activations", "kv_cache"),
    ("probabilities", "kv_cache"),
    ("gradients", "weights"),
    ("gradients", "activations"),
    ("gradients", "kv_cache"),
    ("gradients", "probabilities"),
)


class Formats(TypedDict, total=False):
    """The formats of operands, and who multiplies: see `matmul_precision`."""

    weights: str | None
    activations: str | None
    gradients: str | None
    kv_cache: str | None
    probabilities: str | None
    scale: Scale
    rounding: Tf32Rounding | None
    special_values: SpecialValues
    device: DeviceName | None
    instruction: Instruction | None


@dataclass(frozen=True)
class Recipe:
    """The formats of operands by their role."""

    weights: OperandFormat = UNROUNDED
    activations: OperandFormat = UNROUNDED
    gradients: OperandFormat = UNROUNDED
    kv_cache: OperandFormat = UNROUNDED
    probabilities: OperandFormat = UNROUNDED
    unit: Unit = OWN

    def of(self, role: Role) -> OperandFormat:
        """Return the format of a role."""
        format: OperandFormat = getattr(self, role)
        return format

    @property
    def others(self) -> list[str]:
        """The other roles whose format is not that of activations, with the format."""
        roles = (x for x in ROLES[2:] if self.of(x) != self.activations)
        return [f"{role} {self.of(role)}" for role in roles]

    def way(self, left: Role, right: Role) -> Way:
        """Return the way to multiply operands of two roles.

        Raises
        ------
        ValueError
            If the device cannot multiply their formats.
        """
        return way_of(self.of(left), self.of(right), self.unit)

    def __str__(self) -> str:
        usual = self.activations
        first = str(usual) if self.weights == usual else f"{self.weights} x {usual}"
        device = f" @{self.unit.device}" if self.unit.device else ""
        return ", ".join([first, *self.others]) + device


class Defaults(NamedTuple):
    """The arguments of `make_recipe`."""

    weights: str | None = None
    activations: str | None = None
    gradients: str | None = None
    kv_cache: str | None = None
    probabilities: str | None = None
    scale: Scale = "tensor"
    rounding: Tf32Rounding | None = None
    special_values: SpecialValues = "propagate"
    device: DeviceName | None = None
    instruction: Instruction | None = None


def make_recipe(precision: str | None, **given: Unpack[Formats]) -> Recipe:
    """Return the recipe that arguments of `matmul_precision` describe.

    Raises
    ------
    ValueError
        For an unknown name; for an argument that no format uses; for two formats that
        the device cannot multiply.
    """
    chosen = Defaults(**given)
    scale = chosen.scale
    if scale not in SCALES:
        raise ValueError(one_of("scale", scale, SCALES))
    others = chosen.activations if precision is None else precision
    formats: dict[Role, OperandFormat] = {}
    for role in ROLES:
        own = getattr(chosen, role)
        usual = precision if role in ("weights", "activations") else others
        name = next((x for x in (own, usual) if x is not None), "f32")
        try:
            formats[role] = operand_format(name, scale)
        except ValueError as error:
            if own is None:
                raise
            raise ValueError(f"{role}: {error}") from None
    if scale != "tensor" and not any(form.scale for form in formats.values()):
        names = joined(sorted({*map(str, formats.values())}))
        raise ValueError(f"scale={scale!r} must be given with FP8; got {names}")
    unit = Unit(
        chosen.device, chosen.instruction, chosen.rounding, chosen.special_values
    )
    _check_options(unit, [*formats.values()])
    made = Recipe(**formats, unit=unit)
    for left, right in _PAIRS:
        made.way(left, right)
        made.way(right, left)
    return made


def formats_on(
    device: DeviceName | None,
    names: Sequence[str],
    instruction: Instruction | None = None,
) -> tuple[str, ...]:
    """Return those formats that a device can multiply; all if it has none of them."""
    found = []
    for name in names:
        with suppress(ValueError):
            make_recipe(name, device=device, instruction=instruction)
            found.append(name)
    return tuple(found or names)


def _check_options(unit: Unit, formats: list[OperandFormat]) -> None:
    """Raise the errors of `td.matmul` for options that none of the formats uses."""
    names = {form.name for form in formats}
    tf32 = "tf32" if "tf32" in names else "bf16"
    resolve(Settings(tf32, rounding=unit.rounding))
    split = min((form.name for form in formats if form.is_split), default="bf16")
    resolve(Settings(split, special_values=unit.special_values))
    if unit.device is None and unit.instruction is not None:
        resolve(Settings("bf16", instruction=unit.instruction))
