"""Arm's BFDOT and BFMMLA, on a processor that has them or in QEMU.

FPCR.EBF is 0, its default. BFDOT also runs with FPCR.EBF = 1, which QEMU has since 9.0.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tensor_core.arrays import blocks
from tests.tensor_core.cases import Array, Cases
from tf32dtype.tensor_core.look_up import find_model

pytestmark = pytest.mark.once

SOURCE = Path(__file__).with_name("arm_dots.c")
OPTIONS = ["-O1", "-static", "-march=armv8.2-a+bf16"]
SOME, MANY = 20_000, 2_000_000  # rows
LENGTHS = (4, 8, 64)
NO_EBF16 = 3


def is_arm() -> bool:
    features = Path("/proc/cpuinfo")
    arm = platform.machine() in ("aarch64", "arm64")
    return arm and features.exists() and " bf16 " in features.read_text()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Return the command that runs arm_dots."""
    compiler = shutil.which("cc" if is_arm() else "aarch64-linux-gnu-gcc")
    names = "qemu-aarch64", "qemu-aarch64-static"
    emulator = None if is_arm() else next(filter(None, map(shutil.which, names)), None)
    if not compiler or not (is_arm() or emulator):
        pytest.skip("no processor with BFDOT; no cross compiler and QEMU either")
    built = tmp_path_factory.mktemp("arm") / "arm_dots"
    subprocess.run([compiler, *OPTIONS, SOURCE, "-o", built], check=True)
    return [*([emulator, "-cpu", "max"] if emulator else []), os.fspath(built)]


def run(program: list[str], instruction: str, cases: Cases) -> Array:
    k = cases.a.shape[1]
    row = np.dtype([("a", "<u2", k), ("b", "<u2", k), ("c", "<u4")])
    rows = np.empty(len(cases.c), row)
    rows["a"], rows["b"], rows["c"] = cases.a >> 16, cases.b >> 16, cases.c
    words = [*program, instruction, str(k)]
    done = subprocess.run(words, input=rows.tobytes(), capture_output=True)
    if done.returncode == NO_EBF16:
        pytest.skip("no FEAT_EBF16")
    done.check_returncode()
    return np.frombuffer(done.stdout, "<u4")


def drawn(rng: np.random.Generator, count: int, k: int) -> Cases:
    """Return rows of bfloat16 numbers, and a c of the size of a product or any size.

    Exponents spread over 2, 12, 60 or all binades. Their center is 1, the smallest
    products or nearly the largest numbers. Zeros, subnormal numbers, Inf and NaN are
    among the operands.
    """
    spread = rng.choice([2, 12, 60, 254], (count, 1))
    center = rng.choice([127, 64, 190, 40], (count, 1))

    def numbers(low: int) -> Array:
        drawn = center + rng.integers(-spread, spread + 1, (count, k))
        exponents = np.clip(drawn, 0, 254).astype(np.uint32)
        codes = rng.integers(0, 256, (count, k), np.uint32)
        bits = codes >> 7 << 31 | exponents << 23 | (codes & 0x7F) << 16
        bits[rng.random((count, k)) < 0.1] &= 0x80000000
        rare = rng.random((count, k)) < low / k
        bits[rare] = rng.integers(0, 1 << 16, np.count_nonzero(rare), np.uint32) << 16
        return bits

    a, b = numbers(0.05), numbers(0.05)
    sizes = (a[:, :1] >> 23 & 255).astype(np.int64) + (b[:, :1] >> 23 & 255) - 127
    sizes = sizes[:, 0] + rng.integers(-26, 27, count)
    c = np.clip(sizes, 0, 254).astype(np.uint32) << 23
    c |= (
        rng.integers(0, 1 << 23, count, np.uint32)
        | rng.integers(0, 2, count, np.uint32) << 31
    )
    anything = rng.random(count) < 0.1
    c[anything] = rng.integers(0, 1 << 32, np.count_nonzero(anything), np.uint32)
    c[rng.random(count) < 0.1] &= 0x80000000
    return Cases(a, b, c)


def check(program: list[str], instruction: str, count: int, seed: int) -> int:
    model = find_model("Arm BF16", instruction, "bfloat16", "bfloat16", "float32")
    rng = np.random.default_rng(seed)
    compared = 0
    for k in LENGTHS:
        cases = drawn(rng, max(count * 4 // k, 1000), k)
        got, want = run(program, instruction, cases), blocks(model, cases)
        nan = np.isnan(got.view(np.float32)) & np.isnan(want.view(np.float32))
        wrong = np.flatnonzero((got != want) & ~nan)
        shown = [(hex(got[i]), hex(want[i])) for i in wrong[:4]]
        message = f"k = {k}: {len(wrong)} differ; instruction, model: {shown}"
        assert not wrong.size, message
        compared += len(got)
    return compared


each = pytest.mark.parametrize("instruction", ["bfdot", "bfmmla", "bfdot_ebf"])


@each
def test_rows(program: Any, instruction: str, compared: Any) -> None:
    compared(check(program, instruction, SOME, 1))


@pytest.mark.exhaustive
@each
def test_many_rows(program: Any, instruction: str, compared: Any) -> None:
    compared(check(program, instruction, MANY, 2))
