"""Results that were recorded on GPUs: every row, from the reference and the package.

tests/data/matlab_tensor_core has the recordings, and names their source.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.reference.codec_arrays import values
from tests.reference.formats import FORMATS as BY_NAME
from tests.support.paths import ROOT
from tests.tensor_core.arrays import assert_results, blocks, diagonals, truth
from tests.tensor_core.cases import Array, Cases, parameters
from tf32dtype.tensor_core.look_up import find_model
from tf32dtype.tensor_core.models import ALIGNED

FORMATS = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "tf32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}
#: The device's name in the package, and the formats that were recorded on it.
WIDE = "bf16 d_f32, fp16 d_f32, fp16 d_f16, tf32 d_f32"
FP8 = "e4m3 d_f32, e4m3 d_f16, e5m2 d_f32, e5m2 d_f16"
RECORDED = {
    "V100": ("V100", "fp16 d_f32, fp16 d_f16"),
    "A100": ("A100", WIDE),
    "A2": ("A100", WIDE),
    "Ada": ("L40S", f"{WIDE}, {FP8}"),
    "L40S": ("L40S", f"{WIDE}, e4m3 d_f32, e5m2 d_f32"),
    "H100": ("H100", f"{WIDE}, {FP8}"),
    "H200": ("H100", f"{WIDE}, {FP8}"),
    "B200": ("B200", f"{WIDE}, {FP8}"),
}
ROWS = 1000  # of each recording


class Recording(NamedTuple):
    """The recording of a device, a format and an accumulator."""

    device: str
    format: str
    result: str

    def __str__(self) -> str:
        return "-".join(self)

    @property
    def accumulator(self) -> str:
        return "float32" if self.result == "d_f32" else "float16"

    @property
    def instruction(self) -> str:
        """The recorded instruction: wgmma for fp8 into float32 on Hopper, else
        mma.sync."""
        hopper = RECORDED[self.device][0] == "H100"
        fp8 = self.format in ("e4m3", "e5m2")
        return "wgmma" if hopper and fp8 and self.result == "d_f32" else "mma.sync"

    @property
    def models(self) -> list[Any]:
        """The instruction's model, and models of the device that compute the same."""
        name, f = RECORDED[self.device][0], FORMATS[self.format]
        model = find_model(name, self.instruction, f, f, self.accumulator)
        same = parameters(model)
        return [m for m in ALIGNED if m.device == name and parameters(m) == same]

    def rows(self) -> tuple[Cases, Array]:
        """Return operands, and the recorded results."""
        data = recordings()
        a, b, c, d = (
            data["/".join((self.device, self.format, x))]
            for x in ("a", "b", "c", self.result)
        )
        if self.instruction == "wgmma":  # the recorded wgmma had no c
            c = np.zeros_like(c)
        if self.result == "d_f16":
            half = c.view(np.float32).astype(np.float16)
            c = half.astype(np.float32).view(np.uint32)
        return Cases(a, b, c), d


RECORDINGS = [
    Recording(device, *what.split())
    for device, (_, recorded) in RECORDED.items()
    for what in recorded.split(", ")
]
each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=str)


@cache
def recordings() -> dict[str, Array]:
    """Return all recordings as float32's bits."""
    with np.load(
        ROOT / "tests" / "data" / "matlab_tensor_core" / "hardware.npz"
    ) as data:
        return {name: widened(name, data[name]) for name in data.files}


def widened(name: str, codes: Array) -> Array:
    """Return float32's bits of an array in the file, by its name."""
    _, format, what = name.split("/")
    if what in ("c", "d_f32"):
        return codes
    if format == "tf32" and what in ("a", "b"):
        return codes  # float32's bits as they are
    if format == "bf16" and what in ("a", "b"):
        return codes.astype(np.uint32) << 16  # float32's upper 16 bits
    if what == "d_f16" or format == "fp16":
        numbers = codes.view(np.float16).astype(np.float32)
    else:
        numbers = values(BY_NAME[FORMATS[format]], codes).astype(np.float32)
    return numbers.view(np.uint32)


def test_nothing_recorded_is_left_out():
    results = {name for name in recordings() if name.rpartition("/")[2][0] == "d"}
    assert results == {"/".join(recording) for recording in RECORDINGS}
    assert {len(d) for d in recordings().values()} == {ROWS}


@pytest.mark.sampled(6)
@each_recording
def test_reference(recording, compared):
    cases, recorded = recording.rows()
    for model in recording.models[:1]:  # the others compute the same by definition
        assert_results(model.name, cases, truth(model, cases), recorded)
    compared(len(recorded), recording.device)


@each_recording
def test_blocks(recording, compared):
    """The integer code in C has the recorded bits."""
    cases, recorded = recording.rows()
    assert recording.instruction in {model.instruction for model in recording.models}
    for model in recording.models:
        assert_results(model.name, cases, blocks(model, cases), recorded)
    compared(len(recorded), recording.device)


@each_recording
def test_matmul(recording, compared):
    """Single rows, and rows on the diagonals of matrices, have the recorded bits."""
    cases, recorded = recording.rows()
    for model in recording.models:
        for size in (1, 50):
            got = diagonals(model, cases, size)
            assert_results(model.name, cases, got, recorded)
    compared(len(recorded), recording.device)
