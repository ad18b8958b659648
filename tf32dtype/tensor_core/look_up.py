"""Finding a device by any of its names, and the model of one of its instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from .._wording import brief
from .block_scaled import BlockScaled
from .device import DEVICES, Device
from .listing import listing
from .models import MODELS, Board, Instruction, Model


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


class Devices(Mapping[str, Device]):
    """The devices by name; aliases are found too, and case is ignored."""

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self._devices: dict[str, Device] = {device.name: device for device in devices}
        self._names = {
            _plain(name): device.name
            for device in devices
            for name in (device.name, *device.aliases)
        }

    def __getitem__(self, name: str) -> Device:
        """Find a device.

        Raises
        ------
        KeyError
            For a name that is not known; it lists the known ones.
        """
        found = self._names.get(_plain(name)) if isinstance(name, str) else None
        if found is None:
            raise KeyError(f"unknown device {brief(name)}; known are {', '.join(self)}")
        return self._devices[found]

    def __iter__(self) -> Iterator[Board]:
        return (device.name for device in self._devices.values())

    def __len__(self) -> int:
        return len(self._devices)

    def __repr__(self) -> str:
        return listing(self._devices.values())


devices: Devices = Devices(DEVICES)


@cache
def _table() -> dict[tuple[str, str, str, str, str], Model]:
    return {(m.device, m.instruction, m.a, m.b, m.accumulator): m for m in MODELS}


def find_device(name: object) -> Device:
    """Find a device by a name or an alias.

    Raises
    ------
    ValueError
        For a name that is not known; it lists the known ones.
    """
    try:
        return devices[name]  # type: ignore[index]
    except KeyError as error:
        raise ValueError(error.args[0]) from None


def find_instruction(device: Device, instruction: str | None) -> Instruction:
    """One of a device's instructions; None: what GEMM libraries use.

    Raises
    ------
    ValueError
        If it has no such one; it lists those that it has.
    """
    known = device.instructions
    if instruction is None:
        return known[0]
    if instruction in {model.instruction for model in device.block_scaled}:
        raise ValueError(
            f"{instruction} multiplies block-scaled arrays (tf32dtype.blocks) alone;"
            f" other instructions of {device.name} are {', '.join(known)}"
        )
    for name in known:
        if name == instruction:
            return name
    raise ValueError(
        f"{device.name} has no instruction {brief(instruction)}; it has"
        f" {', '.join(known)}"
    )


def find_model(
    device: object, instruction: str | None, a: str, b: str, accumulator: str
) -> Model:
    """Find the model of an instruction.

    Raises
    ------
    ValueError
        If there is none; it lists what the device has.
    """
    found = find_device(device)
    chosen = find_instruction(found, instruction)
    wanted = (a, b, accumulator)
    model = _table().get((found.name, chosen, *wanted))
    if model is None:
        those = [m.device for m in MODELS if (m.a, m.b, m.accumulator) == wanted]
        others = ", ".join(dict.fromkeys(those))
        raise ValueError(
            f"{found.name} has no model of {chosen} for {a} x {b} -> {accumulator};"
            f" modelled are: {_modelled(found)}"
            + f". Devices that have one: {others}"
            * bool(others)
        )
    return model


def find_block_scaled(
    device: Device, instruction: str | None, a: str, b: str, scale: str, block_size: int
) -> BlockScaled | None:
    """Find the model of a block-scaled instruction; None: the device has none.

    Raises
    ------
    ValueError
        If an instruction is named and does not take these; it lists what does.
    """
    wanted = a, b, scale, block_size
    for model in device.block_scaled:
        if instruction in (None, model.instruction) and wanted == (
            model.a,
            model.b,
            model.scale,
            model.block_size,
        ):
            return model
    if instruction is None:
        return None
    has = "; ".join(f"{m.instruction} {m.takes}" for m in device.block_scaled)
    raise ValueError(
        f"{device.name} has no model of {instruction} for {a} x {b} with scales"
        f" {scale} of {block_size}; modelled are: {has}"
    )


def _modelled(device: Device) -> str:
    """What a device multiplies, by instruction and accumulator."""
    ways: dict[tuple[str, str], list[str]] = {}
    for m in device.models:
        name = m.a if m.a == m.b else f"{m.a} x {m.b}"
        ways.setdefault((m.instruction, m.accumulator), []).append(name)
    return "; ".join(
        f"{instruction} -> {accumulator}: {', '.join(names)}"
        for (instruction, accumulator), names in ways.items()
    )
