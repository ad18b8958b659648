"""Make the tables of models, devices and contested points.

They are in docs/reference/devices.md and docs/benchmarks/verification.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from tf32dtype.tensor_core.block_scaled import BLOCK_SCALED, BlockScaled
from tf32dtype.tensor_core.look_up import devices
from tf32dtype.tensor_core.models import ALIGNED, POINTS, Aligned, Model
from tf32dtype.tensor_core.rounded import ROUNDED, Rounded


def models() -> str:
    """Return a row for all models that differ only in the formats of their operands."""
    groups: dict[tuple[str, ...], list[Aligned]] = {}
    for model in ALIGNED:
        groups.setdefault(_facts(model), []).append(model)
    header = ("device", "instruction", "operands", "accumulator")
    return _table(
        (*header, "K", "F", "rounding of a sum", "k per instruction", "verified"),
        [(*facts[:2], _operands(found), *facts[2:]) for facts, found in groups.items()],
    )


def _facts(model: Aligned) -> tuple[str, ...]:
    if model.accumulator == "float16":
        rounding = "to float16, to nearest"
    else:
        rounding = f"to {model.kept} bits, toward zero"
    return (
        model.device,
        model.instruction,
        model.accumulator,
        f"{model.depth}{', emulated' * model.emulated}",
        str(model.fraction),
        rounding,
        str(model.instruction_depth),
        model.verified,
    )


def rounded() -> str:
    """Return a row for all models of `rounded` that differ only in their operands."""
    groups: dict[tuple[str, ...], list[Rounded]] = {}
    for model in ROUNDED:
        facts = (
            model.device,
            model.instruction,
            str(model.depth),
            _arithmetic(model),
            _SUBNORMAL[model.flushed, model.flushes_results],
            str(model.instruction_depth),
            model.verified,
        )
        groups.setdefault(facts, []).append(model)
    header = ("unit", "instruction", "operands", "K", "arithmetic of a group")
    return _table(
        (*header, "subnormal numbers", "k per instruction", "verified"),
        [(*key[:2], _operands(found), *key[2:]) for key, found in groups.items()],
    )


#: Cells by how operands and accumulators are flushed, and whether results are.
_SUBNORMAL = {
    ("kept", False): "kept",
    ("+0", True): "operands and c become +0, results become zeros of the same sign",
    ("zero of their sign", True): "become zeros of the same sign",
}


def _arithmetic(model: Rounded) -> str:
    if model.arithmetic == "two stages":
        lanes = f", {_PARTS[model.lanes]}" if model.lanes > 1 else ""
        return f"two stages{lanes}"
    if model.arithmetic == "stepwise":
        return f"stepwise{', to odd' * (model.rounding == 'to_odd')}"
    if model.depth > 1:
        kind = "the exact sum"
        return f"{kind} of products, then c is added" if model.lanes else kind
    parts = f", {_PARTS[model.lanes]}" if model.lanes else ""
    return f"fma{parts}{', odd k first' * model.odd_first}"


_PARTS = {2: "even and odd k separately"}


def block_scaled() -> str:
    """Return a row for all block-scaled models that differ only in their elements."""
    groups: dict[tuple[str, ...], list[BlockScaled]] = {}
    for model in BLOCK_SCALED:
        facts = (
            model.device,
            model.instruction,
            f"{model.scale} of {model.block_size}",
        )
        numbers = model.depth, model.group, model.fraction
        key = (*facts, *map(str, numbers), model.verified)
        groups.setdefault(key, []).append(model)
    header = ("device", "instruction", "elements", "scales")
    return _table(
        (*header, "K", "products in a term", "F", "verified"),
        [(*key[:2], _operands(found), *key[2:]) for key, found in groups.items()],
    )


def _operands(found: Sequence[Model] | Sequence[BlockScaled]) -> str:
    """List the formats that are multiplied with themselves, then pairs of formats."""
    same = [model.a for model in found if model.a == model.b]
    pairs = [(model.a, model.b) for model in found if model.a != model.b]
    if pairs and set(pairs) == set(permutations(same, 2)):
        return f"{', '.join(same)}, any two of them"
    if len(pairs) == 2 and pairs[0] == pairs[1][::-1]:
        return f"{' x '.join(pairs[0])}, in either order"
    others = dict.fromkeys(a for a, _ in pairs if a not in same)
    if (
        same
        and others
        and set(pairs)
        == {(a, b) for a, b in permutations([*others, *same], 2) if {a, b} & set(same)}
    ):
        return f"{', '.join(same)}, any two of them, or with {', '.join(others)}"
    return ", ".join([*same, *(f"{a} x {b}" for a, b in pairs)])


def boards() -> str:
    """Return a row for each device with its board and its peak speeds."""
    return _table(
        ("device", "architecture", "aliases", "board", "dense TFLOP/s"),
        [
            (
                device.name,
                device.architecture,
                ", ".join(device.aliases),
                device.board or "-",
                ", ".join(f"{name} {peak:g}" for name, peak in device.peak.items())
                or "-",
            )
            for device in devices.values()
        ],
    )


def in_short() -> str:
    """Return a row for each device with the formats that it multiplies."""
    return _table(
        ("device", "architecture", "multiplies"),
        [
            (
                device.name,
                device.architecture,
                ", ".join(dict.fromkeys(model.a for model in device.models))
                + ", block-scaled FP8, FP6 and FP4" * bool(device.block_scaled),
            )
            for device in devices.values()
        ],
    )


def contested() -> str:
    """Return a row for each contested point, the unsettled points first."""
    return _table(
        ("point", "value used", "other values", "settled by", "meaning and reason"),
        [
            (
                point.name,
                _value(point.value),
                "; ".join(map(_value, point.alternatives)) or "-",
                _settled(point.settled_by),
                point.reason,
            )
            for point in sorted(POINTS.values(), key=lambda x: x.settled_by)
        ],
    )


def _settled(source: str) -> str:
    if not source:
        return "-"
    if source in devices:
        return f"recording of {source}"
    return f"{source}, which was compared with hardware"


def _value(value: object) -> str:
    if isinstance(value, dict):
        found = (f"{name} F={bits}: {x}" for (name, bits), x in value.items())
        return ", ".join(found) or "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


DEVICES = {
    "devices": in_short,
    "models": models,
    "rounded": rounded,
    "block_scaled": block_scaled,
    "boards": boards,
}

VERIFICATION = {"contested": contested}
