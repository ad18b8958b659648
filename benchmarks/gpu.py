"""A GPU: our casts and products against copies and cuBLAS, emulation, energy.

    python benchmarks/gpu.py [--quick] [--json FILE] [--figure FILE] [--no-energy]

Functions take turns; times are medians between CUDA events. All measurements go with
the device's name to benchmarks/results/gpu_DEVICE.json, and the crossover table of
`strategy="performant"` into the package. Ratios are those of speed: 1 is as fast as
what is named.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # the other files are scripts beside this one
sys.path.append(str(HERE.parent))  # the developers' tools

import gpu_cases as cases  # noqa: E402
import gpu_clock  # noqa: E402
from common import machine, restart_as_usual  # noqa: E402
from promises import measure_rows  # noqa: E402
from report import show  # noqa: E402

from tf32dtype._nvrtc import CudaError  # noqa: E402
from tools.tensor_core_recorder.launch import Gpu  # noqa: E402


def versions() -> dict[str, str]:
    """What a reader must know of the device."""
    return {name: str(value) for name, value in Gpu().facts().items()}


def crossover(
    clock: Any, precision: str, grid: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Seconds of both ways, and of `performant`, over M = N and K."""
    cells = []
    for mn in grid:
        for k in grid:
            functions = cases.products((mn, mn, k), precision)
            times = clock.medians(functions, 15, 2.0)
            cells.append(
                {
                    "mn": mn,
                    "k": k,
                    "emulated": times["ours"],
                    "native": times["reference"],
                }
            )
    return cells


def tabled(
    device: dict[str, str], precision: str, cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """The fields of `strategy.Crossover`."""
    speedup = {(c["mn"], c["k"]): c["native"] / c["emulated"] for c in cells}
    sides, depths = (sorted({cell[name] for cell in cells}) for name in ("mn", "k"))
    rows = [[speedup[side, depth] for depth in depths] for side in sides]
    return {
        "device": device["gpu"],
        "measured": {name: value for name, value in device.items() if name != "gpu"},
        "sides": sides,
        "depths": depths,
        "speedup": {precision: rows},
    }


def performant(clock: Any, precision: str, cells: list[dict[str, Any]]) -> None:
    """Into the cells: how `performant` does, measured again beside both."""
    for cell in cells:
        shape = cell["mn"], cell["mn"], cell["k"]
        both = cases.products(shape, precision)
        functions = {
            "performant": cases.products(shape, precision, "performant")["ours"],
            "emulated": both["ours"],
            "native": both["reference"],
        }
        times = clock.medians(functions, 15, 2.0)
        better = min(times["emulated"], times["native"])
        cell["performant over the better"] = times["performant"] / better


def energy(sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """GFLOP a joule, which is GFLOP/s a watt."""
    counter, found = gpu_clock.Energy(), []
    for n in sizes:
        line: dict[str, float] = {"n": n}
        for name, call in cases.products((n, n, n), "bf16x9").items():
            used = counter.per_call(call, 2.0)
            who = "bf16x9" if name == "ours" else "SGEMM"
            line[f"{who} GFLOP/J"] = 2 * n**3 / used["joules"] * 1e-9
            line[f"{who} TFLOP/s"] = 2 * n**3 / used["seconds"] * 1e-12
        found.append(line)
        print(line)
    return found


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], prog="python benchmarks/gpu.py"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it")
    parser.add_argument("--no-energy", action="store_true", help="no NVML counters")
    parser.add_argument("--json", type=Path, help="write all measurements here")
    parser.add_argument("--tables", type=Path, help="copy the crossover table here")
    parser.add_argument("--figure", type=Path, help="draw the two heat maps here")
    return parser.parse_args(arguments)


def add_energy(report: dict[str, Any], sizes: Any) -> None:
    """Measure it where the GPU counts it."""
    try:
        report["energy"] = energy(sizes.energy)
    except OSError as error:
        print(f"no energy counters: {error}", file=sys.stderr)


def draw_figure(report: dict[str, Any], path: Path) -> None:
    """Draw it where matplotlib is installed: the figures in numbers are saved."""
    from gpu_figure import draw

    try:
        draw(report, path)
    except ImportError as error:
        print(f"no figure: {error}", file=sys.stderr)


def main(arguments: list[str] | None = None, clock: Any = None) -> int:
    options = options_of(arguments)
    try:
        from tf32dtype.cuda._matmul import crossover as strategy

        device = versions()
    except (ImportError, CudaError) as error:
        print(f"gpu.py: {error}", file=sys.stderr)
        return 1

    clock = clock or gpu_clock.Clock()
    sizes = cases.QUICK if options.quick else cases.FULL
    repeats, budget = (3, 1.0) if options.quick else (25, 10.0)
    name = re.sub(r"[^a-z0-9]+", "_", device["gpu"].lower()).strip("_")
    path = options.json or HERE / "results" / f"gpu_{name}.json"
    report: dict[str, Any] = {"device": device, "machine": machine(), "results": []}

    def save() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1))

    started = time.monotonic()
    rows = measure_rows(cases.rows(sizes), repeats, budget, clock.medians)
    rows.append(cases.modelled(sizes, clock.medians, repeats, budget).record())
    result = {
        "machine": report["machine"],
        "isa": device["gpu"],
        "rows": rows,
        "set": {},
    }
    report["results"].append(result)
    report["snr"] = {str(n): cases.snr(n, "bf16x9") for n in sizes.emulated}
    save()
    show(result)
    print("dB over float64:", report["snr"])

    cells = crossover(clock, "bf16x9", sizes.grid)
    table = strategy.write(strategy.Crossover(**tabled(device, "bf16x9", cells)))
    if options.tables:
        options.tables.mkdir(parents=True, exist_ok=True)
        shutil.copy(table, options.tables)
    performant(clock, "bf16x9", cells)
    report["crossover"] = {"precision": "bf16x9", "cells": cells}
    save()
    slowest = max(cell["performant over the better"] for cell in cells)
    print(f"performant takes at most {slowest:.3f} times the better of its two")

    if not options.no_energy:
        add_energy(report, sizes)
        save()
    if options.figure:
        draw_figure(report, options.figure)
    print(f"{path}: {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    restart_as_usual()
    sys.exit(main())
