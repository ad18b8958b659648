"""Finding a device by any of its names, and the model of one of its instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from .._base.wording import brief, did_you_mean, one_of
from .block_scaled import BlockScaled
from .device import DEVICES, MODELS, Device
from .listing import listing
from .models import Board, Instruction, Model

#: Patterns of series of boards that drivers print, and their board: "NVIDIA RTX 4000
#: SFF Ada Generation". The first pattern that matches counts.
_SERIES: tuple[tuple[str, Board], ...] = (
    (r"rtx .*\bada\b|rtx 40\d\d\b", "L40S"),
    (r"rtx .*\bblackwell\b|rtx pro \d{3,4}\b|rtx 50\d\d\b", "RTX Blackwell"),
    (r"rtx a\d{3,4}\b|rtx 30\d\d\b|rtx 2050\b", "A100"),
    (r"quadro rtx \d{4}\b|titan rtx\b|rtx 20\d\d\b", "T4"),
)
#: Other words of the names that drivers print: "NVIDIA A100-SXM4-80GB", "Tesla
#: V100-PCIE-16GB"; parts of a board (MIG, vGPU); the memory settings in gfx names.
_VENDOR = r"(nvidia|geforce|tesla|grid|amd|instinct|radeon) "
_REST = (
    r"( (sxm\d?|pcie|nvl|fhhl|dgxs|3e|active|hbm\d?e?|\d+gb?|mig \S+)"
    r"| (oam|mcm|ac|mba|vf)|(?<=\d)[a-z]{0,2} \d+[abcq]"
    r"| ?/ ?mi\d+x?|:(sramecc|xnack)[+ ]?)*"
)
#: The other kinds of device names; the advice if no name is near.
_OTHER_NAMES = (
    "Other names are architectures (Hopper, sm_90, gfx942), boards (H200), names that"
    " drivers print (NVIDIA H100 80GB HBM3) and CPU cores (Zen 5, Neoverse V2). Use"
    " instruction= for an instruction"
)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def _printed(name: str) -> str:
    """Return the board's own name in a name that a driver prints.

    The name may be printed by nvidia-smi, rocminfo or PyTorch.
    """
    words = re.sub(r"[\s_-]+", " ", name.lower()).strip()
    words = re.sub(rf"^({_VENDOR})*", "", words)
    for pattern, board in _SERIES:
        if re.match(pattern, words):
            return board
    return re.sub(rf"{_REST}$", "", words)


class Devices(Mapping[str, Device]):
    """Find devices by name, alias, or the board name that drivers print.

    Board names are, for example, "NVIDIA H100 80GB HBM3" and "AMD Instinct MI300X".
    Case is ignored.
    """

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self._devices: dict[str, Device] = {device.name: device for device in devices}
        self._names = {
            _plain(name): device.name
            for device in devices
            for name in (device.name, *device.aliases)
        }

    def _written(self) -> Iterator[str]:
        """Yield all names and aliases as they are written."""
        for device in self._devices.values():
            yield from (device.name, *device.aliases)

    def __getitem__(self, name: str) -> Device:
        """Find a device.

        Raises
        ------
        KeyError
            For an unknown name; the message lists the known names.
        """
        found = None
        if isinstance(name, str):
            names = self._names
            found = names.get(_plain(name)) or names.get(_plain(_printed(name)))
        if found is None:
            raise KeyError(
                one_of(
                    "device",
                    name,
                    self,
                    "td.tensor_core.devices",
                    did_you_mean(name, self._written()) or _OTHER_NAMES,
                )
            )
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
        For an unknown name; the message lists the known names.
    """
    if isinstance(name, Model):
        raise ValueError(
            f"device must be a name here; got the model {name.name}. Use"
            f" device={name.device!r}, instruction={name.instruction!r}"
        )
    if isinstance(getattr(name, "model", None), Model):
        raise ValueError(
            f"device must be a name or a model; got {brief(name)}. Use"
            " device=found.model"
        )
    try:
        return devices[name]  # type: ignore[index]
    except KeyError as error:
        raise ValueError(error.args[0]) from None


def check_instruction(instruction: object) -> None:
    """Raise TypeError unless the instruction is a string or None."""
    if instruction is not None and not isinstance(instruction, str):
        raise TypeError(
            f"instruction must be a string or None; got {brief(instruction)}"
        )


def find_instruction(device: Device, instruction: str | None) -> Instruction:
    """Return one of a device's instructions; by default the one of GEMM libraries.

    Raises
    ------
    ValueError
        If the device lacks the instruction; the message lists the device's own.
    """
    known = device.instructions
    if instruction is None:
        return known[0]
    check_instruction(instruction)
    if instruction in {model.instruction for model in device.block_scaled}:
        raise ValueError(
            f"instruction {instruction!r} multiplies only block-scaled arrays"
            f" (tf32dtype.blocks); for other arrays, {device.name} must use one of"
            f" {', '.join(known)}"
        )
    for name in known:
        if name == instruction:
            return name
    raise ValueError(one_of(f"instruction of {device.name}", instruction, known))


def find_model(
    device: object, instruction: str | None, a: str, b: str, accumulator: str
) -> Model:
    """Find the model of an instruction, by default the first one for these formats.

    Raises
    ------
    ValueError
        If there is no such model; the message lists the device's models.
    """
    found = find_device(device)
    wanted = (a, b, accumulator)
    takes = [m.instruction for m in found.models if _formats(m) == wanted]
    if instruction is None:
        instruction = next(iter(takes), None)
    chosen = find_instruction(found, instruction)
    model = _table().get((found.name, chosen, *wanted))
    if model is None:
        those = [
            f"{m.device} {m.instruction}" if m.device == found.name else m.device
            for m in MODELS
            if _formats(m) == wanted
        ]
        others = ", ".join(dict.fromkeys(those))
        raise ValueError(
            f"{found.name} {chosen} cannot multiply {a} x {b} -> {accumulator}; its"
            f" models are {_modeled(found, chosen)}"
            + f". Devices that can: {others}"
            * bool(others)
        )
    return model


def _formats(model: Model) -> tuple[str, str, str]:
    return model.a, model.b, model.accumulator


def find_block_scaled(
    device: Device, instruction: str | None, a: str, b: str, scale: str, block_size: int
) -> BlockScaled | None:
    """Find the model of a block-scaled instruction; None: the device has none.

    Raises
    ------
    ValueError
        If a named instruction does not take these operands; the message lists those
        that do.
    """
    check_instruction(instruction)
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
    has = "; ".join(
        m.takes for m in device.block_scaled if m.instruction == instruction
    )
    raise ValueError(
        f"{device.name} {instruction} cannot multiply {a} x {b} with {scale} scales and"
        f" block size {block_size}; its models are {has}"
    )


def _modeled(device: Device, instruction: str) -> str:
    """Return the formats that an instruction multiplies, by accumulator."""
    by_accumulator: dict[str, list[Model]] = {}
    for m in device.models:
        if m.instruction == instruction:
            by_accumulator.setdefault(m.accumulator, []).append(m)
    return "; ".join(
        f"{instruction} -> {accumulator}: {_formats_of(models)}"
        for accumulator, models in by_accumulator.items()
    )


def _formats_of(models: Sequence[Model]) -> str:
    """Formats that are multiplied with themselves, and those of pairs."""
    names = [m.a for m in models if m.a == m.b]
    paired = {name for m in models if m.a != m.b for name in (m.a, m.b)}
    pairs = ", ".join(name for name in names if name in paired)
    return ", ".join(names) + f", and pairs of {pairs}" * bool(pairs)
