"""The devices as text: what each has, how fast it is, and how its models are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .block_scaled import BlockScaled
from .device import Device
from .models import Model

_SHORT = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "tf32": "tf32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "float6_e3m2fn": "fp6",
    "float6_e2m3fn": "fp6",
    "float4_e2m1fn": "fp4",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "fp8",
    "float32": "fp32",
    "float64": "fp64",
}
#: How models are verified, the best first.
_VERIFIED = {
    "recorded": "recorded",
    "two simulators": "simulators",
    "one source": "one source",
    "documented": "documented",
}
_WIDTHS = (19, 32)


def listing(devices: Iterable[Device]) -> str:
    """Return a line for each device and, below it, one for each of its instructions.

    The kinds of block-scaled ones follow the instruction that they are kinds of.
    """
    lines = [
        _line("device", "architecture", "peak of a board, in dense TFLOP/s"),
        _line("  instruction", "formats", "models by how they were verified"),
    ]
    for device in devices:
        lines += _of_device(device)
    return "\n".join(lines)


def _of_device(device: Device) -> Iterator[str]:
    formats: dict[float, list[str]] = {}  # by their peak
    for name, peak in device.peak.items():
        formats.setdefault(peak, []).append(_SHORT[name])
    peaks = ", ".join(f"{' '.join(names)} {peak:g}" for peak, names in formats.items())
    of_board = f"{device.board}: {peaks}" if device.board else "a CPU's"
    yield _line(device.name, device.architecture, of_board)
    for instruction in device.instructions:
        yield _of_instruction(
            instruction, [m for m in device.models if m.instruction == instruction]
        )
        kinds: dict[str, list[BlockScaled]] = {}
        for model in device.block_scaled:
            base, kind = model.instruction.rsplit(".", 1)
            if base == instruction:
                kinds.setdefault(f".{kind}", []).append(model)
        for kind, models in kinds.items():
            yield _of_instruction(kind, models)


def _of_instruction(name: str, models: Sequence[Model] | Sequence[BlockScaled]) -> str:
    formats = dict.fromkeys(_SHORT[name] for m in models for name in (m.a, m.b))
    counts = Counter[str](m.verified for m in models)
    verified = ", ".join(
        f"{word} {counts[how]}" for how, word in _VERIFIED.items() if counts[how]
    )
    return _line(f"  {name}", " ".join(formats), verified)


def _line(*cells: str) -> str:
    *firsts, last = cells
    return "".join(x.ljust(n) for x, n in zip(firsts, _WIDTHS, strict=True)) + last
