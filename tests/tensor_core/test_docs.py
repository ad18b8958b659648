"""The pages of tensor cores have the tables of models, and show computed results."""

from __future__ import annotations

from itertools import permutations

import pytest

import tf32dtype as td
from tests.support.documents import DOCS, HOW_TO, REFERENCE, blocks, check_block, table
from tests.support.interpreters import run as run_python
from tests.support.paths import ROOT
from tf32dtype.tensor_core.block_scaled import BLOCK_SCALED
from tf32dtype.tensor_core.device import MODELS
from tf32dtype.tensor_core.look_up import devices
from tf32dtype.tensor_core.models import ALIGNED, CONTESTED, POINTS, VERIFIED

pytestmark = pytest.mark.once

CONCEPT, DEVICES = DOCS / "concepts" / "tensor_cores.md", REFERENCE / "devices.md"
REPRODUCE = HOW_TO / "reproduce_gpu_results.md"
EXPLAIN = HOW_TO / "explain_differences.md"
VERIFICATION = DOCS / "benchmarks" / "verification.md"


def pairs(operands: str) -> list[tuple[str, str]]:
    """Return the pairs that a table cell lists. The cell may be "a, b, any two of
    them", "a x b, in either order", "a, a x b" or "a, any two of them, or with b"."""
    operands, _, others = operands.partition(", or with ")
    names = operands.split(", ")
    if others:
        every = [*names[:-1], *others.split(", ")]
        both = [(x, x) for x in names[:-1]] + list(permutations(every, 2))
        return [pair for pair in both if {*pair} & {*names[:-1]}]
    if names[-1] == "any two of them":
        return [(x, x) for x in names[:-1]] + list(permutations(names[:-1], 2))
    if names[-1] == "in either order":
        return list(permutations(names[0].split(" x "), 2))
    return [tuple(x.split(" x ")) if " x " in x else (x, x) for x in names]


def rows_of(columns: int) -> list[list[str]]:
    """Return the rows of the table about devices that has this number of columns."""
    return [row for row in table(DEVICES, "device") if len(row) == columns]


def test_every_model_is_in_the_table():
    """The table in the docs, read as a reader would, is the table of the code."""
    found = []
    for row in rows_of(9):
        device, instruction, operands, accumulator, depth, fraction, *rest = row
        rounding, instruction_depth, verified = rest
        depth, comma, emulated = depth.partition(", ")
        assert emulated == "emulated" * bool(comma)
        kept = rounding.removeprefix("to ").removesuffix(" bits, toward zero")
        half = rounding == "to float16, to nearest"
        for a, b in pairs(operands):
            names = device, instruction, a, b, accumulator
            numbers = int(depth), int(fraction), 10 if half else int(kept)
            found.append(
                (*names, *numbers, int(instruction_depth), verified, bool(emulated))
            )
    assert sorted(found) == sorted(
        (m.device, m.instruction, m.a, m.b, m.accumulator, m.depth, m.fraction, m.kept,
         m.instruction_depth, m.verified, m.emulated)
        for m in ALIGNED
    )  # fmt: skip


def test_every_block_scaled_model_is_in_the_table():
    found = []
    for device, instruction, elements, scales, *numbers, verified in rows_of(8):
        scale, size = scales.split(" of ")
        for a, b in pairs(elements):
            names = device, instruction, a, b, scale
            found.append((*names, int(size), *map(int, numbers), verified))
    assert sorted(found) == sorted(
        (m.device, m.instruction, m.a, m.b, m.scale, m.block_size, m.depth, m.group,
         m.fraction, m.verified)
        for m in BLOCK_SCALED
    )  # fmt: skip


def test_devices():
    rows = rows_of(5)
    for device, row in zip(devices.values(), rows, strict=True):
        name, architecture, aliases, board, peaks = row
        assert (name, architecture, board) == (
            device.name,
            device.architecture,
            device.board or "-",
        )
        assert all(devices[alias] is device for alias in aliases.split(", "))
        found = dict(peak.rsplit(" ", 1) for peak in peaks.split(", ") if peak != "-")
        assert {k: float(v) for k, v in found.items()} == device.peak


def test_what_is_contested():
    rows = table(VERIFICATION, "point")
    assert {row[0] for row in rows} == set(POINTS)
    assert {row[0] for row in rows if row[3] == "-"} == set(CONTESTED)
    assert all(row[4] == POINTS[row[0]].reason for row in rows)
    assert all(taken and others for _, taken, others, *_ in rows)
    assert {row[0] for row in table(VERIFICATION, "word")} == set(VERIFIED)


@pytest.mark.exhaustive  # tests/docs/test_accuracy_figures.py runs the same command
def test_the_tables_are_written_by_the_code():
    run_python(str(ROOT / "benchmarks" / "readme.py"), "--check")


@pytest.mark.parametrize("path", [CONCEPT, REPRODUCE, EXPLAIN], ids=lambda x: x.stem)
def test_examples(path, capsys):
    found = blocks(path, "python")
    assert sum(block.count("# -> ") for block in found) >= 3
    names = {}
    for block in found:
        check_block(block, names)
    printed = capsys.readouterr().out + names.get("text", "") + "\n"
    assert [x for x in blocks(path, "text") if x not in printed] == []


# -- print(devices) ------------------------------------------------------------


@pytest.mark.parametrize("text", [repr, str])
def test_devices_are_shown(text):
    lines = text(td.tensor_core.devices).splitlines()
    assert max(map(len, lines)) <= 116
    starts = [line.split("  ")[0] for line in lines if not line.startswith("  ")]
    assert starts == ["device", *devices]
    instructions = [line.split()[0] for line in lines if line.startswith("  ")]
    known = ["instruction"]
    for device in devices.values():
        for name in device.instructions:
            kinds = (m.instruction for m in device.block_scaled)
            of_name = (k for k in kinds if k.startswith(f"{name}."))
            known += [name, *(k.removeprefix(name) for k in dict.fromkeys(of_name))]
    assert instructions == known
    counts = [int(x) for line in lines[2:] for x in numbers_of(line)]
    assert sum(counts) == len(MODELS) + len(BLOCK_SCALED)
    (ampere,) = [line for line in lines if line.startswith("A100")]
    assert "Ampere, sm_80, sm_86" in ampere
    assert "tf32 156, bf16 fp16 312" in ampere


def numbers_of(line: str) -> list[str]:
    """Return the counts of models in an instruction's line."""
    if not line.startswith("  "):
        return []
    last = line[51:]
    return [word.strip(",") for word in last.split() if word.strip(",").isdigit()]


def test_peaks_are_of_formats_that_are_modeled():
    for device in devices.values():
        modeled = {m.a for m in device.models}
        assert set(device.peak) <= modeled
        assert list(device.peak.values()) == sorted(device.peak.values())
