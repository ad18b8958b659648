"""Bound the speed of kernels on an H100 by their machine code. It needs no GPU.

    python benchmarks/cuda/gpu_bounds.py [--json FILE]

The main loop of a kernel is the inner loop that computes the most. Its instructions
give two bounds. "At most" counts the work of the busiest kind of unit: the tensor
cores, the FP32 lanes, the conversions, FP64 or the memory. "Issued" is at most as high:
a scheduler begins one instruction per clock, and it counts all instructions of the
loop, also those that a branch may skip. Neither bound counts beginnings and ends of
thread blocks, waits or caches. The script needs NVRTC and nvdisasm, as the tests of
machine code do.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import cupy
import numpy as np

import tf32dtype as td
from tf32dtype._base import nvrtc

RESULTS = Path(__file__).resolve().parents[1] / "results" / "gpu_bounds.json"
ARCH = "sm_90a"


class Gpu(NamedTuple):
    """An H100 SXM. A multiprocessor has four schedulers, each with its own units."""

    processors: int = 132
    clock: float = 1.755e9  # under load; at most 1.98e9
    memory: float = 3.35e12  # bytes per second, by the data sheet
    schedulers: int = 4
    #: mma.sync's share of wgmma's rate, by published measurements (arXiv 2402.13499);
    #: all other figures of this class are NVIDIA's own
    mma_sync: float = 0.62


H100 = Gpu()

#: Clocks for which an instruction of a warp occupies a unit of a scheduler, by the
#: start of its opcode. Source: CUDA's programming guide, throughput of instructions,
#: compute capability 9.0. A tensor core multiplies 512 pairs of 16 bits per clock, 256
#: of tf32, or 1024 of FP8. Four warps begin a wgmma together: a tensor core does a
#: quarter of it.
TENSOR, FP32, CONVERSION, FP64 = "tensor cores", "FP32", "conversions", "FP64"
MEMORY, ISSUE = "memory", "instructions"
CLOCKS = (
    ("HGMMA.64x256x", TENSOR, 128),
    ("HGMMA.64x128x", TENSOR, 64),
    ("HGMMA.64x64x", TENSOR, 32),
    ("QGMMA.64x128x", TENSOR, 64),
    ("HMMA.16816", TENSOR, 4 / H100.mma_sync),
    ("HMMA.1688.F32.TF32", TENSOR, 4 / H100.mma_sync),
    ("HMMA.1688", TENSOR, 2 / H100.mma_sync),
    ("F2I", CONVERSION, 8),
    ("I2F", CONVERSION, 8),
    ("MUFU", CONVERSION, 8),
    ("DADD", FP64, 2),
    ("DMUL", FP64, 2),
    ("DFMA", FP64, 2),
    ("FFMA", FP32, 1),
    ("FADD", FP32, 1),
    ("FMUL", FP32, 1),
)
#: Multiply-adds of an instruction of a warp; for wgmma, the quarter of one warp.
PAIRS = (
    ("HGMMA.64x256x16", 65536),
    ("HGMMA.64x256x8", 32768),
    ("HGMMA.64x128x16", 32768),
    ("HGMMA.64x128x8", 16384),
    ("HGMMA.64x64x16", 16384),
    ("QGMMA.64x128x32", 65536),
    ("HMMA.16816", 2048),
    ("HMMA.1688", 1024),
    ("FFMA", 32),
    ("F2I", 32),
)
ACCESS = re.compile(r"(?:LDG|STG)\.E(?:\.(U8|S8|U16|S16|64|128))?\b")
BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, None: 4, "64": 8, "128": 16}


class Row(NamedTuple):
    """A kernel, and the instruction whose loop is its main one."""

    name: str
    kernel: Any
    works: str  # the start of that instruction's opcode
    unit: str  # TFLOP/s, TMAC/s or TB/s


def rows() -> Iterator[Row]:
    """Yield the kernels to bound."""
    with mock.patch.object(cupy.cuda.runtime, "getDeviceCount", return_value=1):
        from tf32dtype.cuda._arrays import casts
        from tf32dtype.cuda._matmul import fma, mma_model, native, wgmma
    from tf32dtype.cuda._runtime.backend import Kernel
    from tf32dtype.cuda.blocks import native as blocks
    from tf32dtype.cuda.blocks import wgmma as wide_blocks
    from tf32dtype.tensor_core.look_up import find_model

    bf16, single = np.dtype(td.bfloat16), np.dtype(np.float32)
    for name, size in (("bfloat16", 2), ("tf32", 4)):
        kernel = native.kernel((name, name), size, True, True, native.WIDE)
        yield Row(f"`mma.sync`, {name}", kernel, "HMMA", "TFLOP/s")
    kernel = native.kernel(("bfloat16",) * 2, 2, True, True, native.SUMS, 16)
    yield Row("leading split order of bf16x9", kernel, "HMMA", "TFLOP/s")
    for name, size in (("bfloat16", 2), ("tf32", 4)):
        kernel = wgmma.kernel((name, name), size, wgmma.WIDE)
        yield Row(f"`wgmma`, {name}", kernel, "HGMMA", "TFLOP/s")
    nine = wgmma.kernel(("bfloat16",) * 2, 2, wgmma.WIDE, True, True, 3, 5)
    name = "leading split order of bf16x9 by `wgmma`"
    yield Row(name, nine, "HGMMA.64x64", "TFLOP/s")
    yield Row("other split orders of bf16x9", nine, "HGMMA.64x256", "TFLOP/s")
    names, terms = ("float8_e4m3fn",) * 2, [(0, 0), (0, 1), (1, 0)]
    options = blocks.options(names, 32, terms, blocks.LARGE)
    kernel = Kernel("cuda/blocks/native_matmul.cu", "block_native", options)
    yield Row("TCFP-16 by `mma.sync`, each of 3 terms", kernel, "HMMA", "TFLOP/s")
    kernel = wide_blocks.kernel(names, 32, terms)
    yield Row("TCFP-16 by `wgmma` of FP8, each term", kernel, "QGMMA", "TFLOP/s")
    kernel = wide_blocks.kernel(names, 32, terms, 2)
    yield Row("TCFP-16 by `wgmma` of float16, each term", kernel, "HGMMA", "TFLOP/s")
    kernel = Kernel(
        "cuda/matmul/fma_matmul.cu", fma.LARGE.kernel, fma.options(bf16, bf16, bf16)
    )
    yield Row('"chain", bfloat16', kernel, "FFMA", "TFLOP/s")
    for device, instruction in (("A100", None), ("H100", "mma.sync")):
        found = find_model(device, instruction, "bfloat16", "bfloat16", "float32")
        kernel = Kernel(
            "cuda/tensor_core/mma_model.cu",
            "model",
            mma_model.options(found, bf16, bf16),
        )
        yield Row(f'"model" of {device}, bfloat16', kernel, "F2I", "TMAC/s")
    for one, other, works in (
        (single, bf16, "LDG.E.128"),
        (bf16, single, "STG.E.128"),
    ):
        kernel = casts.kernel(one, other, False)
        yield Row(f"cast of {one} to {other}", kernel, works, "TB/s")


# -- machine code ----------------------------------------------------------------------


def listing(kernel: Any) -> str:
    """Compile a kernel's file and return nvdisasm's listing of its machine code."""
    cubin = nvrtc.compile_cuda(kernel.file, kernel.options, ARCH)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        for program in nvrtc.disassemblers():
            done = subprocess.run(
                [program, "-c", file.name], capture_output=True, text=True
            )
            if done.returncode == 0:
                return done.stdout
    raise SystemExit("no nvdisasm that knows this machine code")


def working(loop: Counter[str], works: str) -> int:
    """Return how many opcodes of a loop start with `works`."""
    return sum(count for opcode, count in loop.items() if opcode.startswith(works))


def main_loop(text: str, name: str, works: str) -> Counter[str]:
    """Return the opcodes of a function's loop with the most instructions `works`.

    While a loop in it has at least half as many of them, take that inner loop.
    """
    sections = re.split(r"(?m)^\s*\.section\s+\.text\.", text)[1:]
    (section,) = (x for x in sections if re.match(rf"{name}\b", x))
    opcodes: list[str] = []
    labels: dict[str, int] = {}
    spans = []
    for line in section.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(opcodes)
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            instruction = re.sub(r"^@!?U?P\w+\s+", "", found[1])
            opcodes.append(instruction.split()[0])
            target = re.search(r"(\.L_\w+)", instruction)
            if opcodes[-1].startswith("BRA") and target and target[1] in labels:
                spans.append((labels[target[1]], len(opcodes)))
    found = {span: Counter(opcodes[slice(*span)]) for span in set(spans)}

    def work(span: tuple[int, int]) -> tuple[int, int]:
        return working(found[span], works), span[0] - span[1]

    best = max(found, key=work)
    while inner := [
        span
        for span in found
        if best[0] <= span[0] and span[1] <= best[1] and span != best
        and 2 * work(span)[0] >= work(best)[0]
    ]:  # fmt: skip
        best = max(inner, key=work)
    return found[best]


# -- bounds ----------------------------------------------------------------------------


def _sum(loop: Counter[str], of: tuple[tuple[str, float], ...]) -> float:
    return sum(
        count * next((x for start, x in of if opcode.startswith(start)), 0)
        for opcode, count in loop.items()
    )


def bound(row: Row, loop: Counter[str], gpu: Gpu = H100) -> dict[str, Any]:
    """Return the bounds that a loop's instructions set, in the row's unit."""
    lanes = 32
    moved = lanes * sum(
        count * BYTES[found[1]]
        for opcode, count in loop.items()
        if (found := ACCESS.match(opcode))
    )
    clocks = {
        unit: _sum(loop, tuple((x, n) for x, kind, n in CLOCKS if kind == unit))
        for unit in (TENSOR, FP32, CONVERSION, FP64)
    }
    schedulers = gpu.processors * gpu.schedulers
    if row.unit == "TB/s":
        work = moved
        clocks[MEMORY] = moved / (gpu.memory / gpu.clock / schedulers)
    else:
        pairs = tuple(x for x in PAIRS if x[0].startswith(row.works))
        work = _sum(loop, pairs) * (2 if row.unit == "TFLOP/s" else 1)
    limit = max(clocks, key=clocks.__getitem__)
    issued = max(clocks[limit], loop.total())
    rate = work * schedulers * gpu.clock * 1e-12
    return {
        "kernel": row.name,
        "unit": row.unit,
        "instructions": loop.total(),
        "working": working(loop, row.works),
        "works": row.works,
        "limit": limit,
        "at most": round(rate / clocks[limit], 2),
        "issued": round(rate / issued, 2),
    }


def nvrtc_version() -> str:
    """Return NVRTC's version, because another one may generate other machine code."""
    return ".".join(map(str, cupy.cuda.nvrtc.getVersion()))


def counted(row: Row) -> dict[str, Any]:
    """Compile a row's kernel, find its main loop, and return its bounds."""
    return bound(row, main_loop(listing(row.kernel), row.kernel.name, row.works))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    found = []
    for row in rows():
        found.append(x := counted(row))
        print(
            f"{x['kernel']:40} {x['instructions']:5} of them {x['working']:4}"
            f" {x['works']:10} {x['limit']:14} at most {x['at most']:8}"
            f" issued {x['issued']:8} {x['unit']}"
        )
    if options.json:
        report = {"gpu": H100._asdict(), "arch": ARCH, "nvrtc": nvrtc_version()}
        report["kernels"] = found
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
