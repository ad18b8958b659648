"""Results of the dot products of CPUs: the recordings, and how to record them.

    python -m tests.tensor_core.cpu_recordings FOLDER

records the instructions that this CPU has. tests/data has such folders. The file of an
instruction holds arrays for each length k. a_k and b_k are numbers of its format, c_k
and d_k are float32's bits. d is the whole sum: an instruction starts from the result of
the preceding instruction.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.paths import ROOT
from tests.tensor_core.arrays import operand
from tests.tensor_core.cases import Array, Cases, random_cases
from tests.tensor_core.cpu_cases import KINDS, OTHER
from tests.tensor_core.cpu_instructions import (
    TDPBF16PS,
    TDPFP16PS,
    VDPBF16PS,
    instruction,
)

MODELS = VDPBF16PS, TDPBF16PS, TDPFP16PS
#: The number of rows of each length. 34 is longer than any instruction.
ROWS = {2: 1050, 8: 1050, 34: 350}
RECORDED = ROOT / "tests" / "data" / "xeon_6"


def cases_of(model: Any, k: int, rows: int) -> Cases:
    """Return some cases of each kind."""
    if model.a == "float16":
        return random_cases(OTHER[model.a], rows, k, 11)
    rng = np.random.default_rng([11, k])
    each = [kind(rng, rows // len(KINDS), k) for kind in KINDS]
    return Cases(*(np.concatenate(x) for x in zip(*each, strict=True)))


def record(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        try:
            compute = instruction(model)
        except pytest.skip.Exception as no:
            print(f"{model.instruction}: {no}")
            continue
        arrays: dict[str, Array] = {}
        for k, rows in ROWS.items():
            cases = cases_of(model, k, rows)
            for name in "ab":
                numbers = operand(model.a, getattr(cases, name))
                arrays[f"{name}_{k}"] = numbers.view(np.uint16)
            arrays |= {f"c_{k}": cases.c, f"d_{k}": compute(cases)}
        file = folder / f"{model.instruction}.npz"
        np.savez_compressed(file, **arrays)
        print(f"{file}: {file.stat().st_size} bytes")


def read(model: Any, k: int) -> tuple[Cases, Array]:
    """Return the rows of a length, and the recorded results."""
    with np.load(RECORDED / f"{model.instruction}.npz") as data:
        a, b, c, d = (data[f"{name}_{k}"] for name in "abcd")
    if model.a == "float16":
        a, b = (x.view(np.float16).astype(np.float32).view(np.uint32) for x in (a, b))
    else:
        a, b = (x.astype(np.uint32) << 16 for x in (a, b))
    return Cases(a, b, c), d


if __name__ == "__main__":
    [folder] = sys.argv[1:]
    record(Path(folder))
