"""Measure a GPU: casts and products against copies and cuBLAS, emulation, energy.

    python benchmarks/cuda/gpu.py [--quick] [--parts NAMES] [--json FILE]
        [--tables FOLDER] [--figure FILE]

Functions take turns; times are medians between CUDA events. The measurements and the
device's name are written to benchmarks/results/gpu_DEVICE.json again after each row.
The crossover table of `strategy="performant"` is written into the package. Ratios are
ratios of speeds: 1 is as fast as the named reference. If a step of PARTS raises, the
report keeps the error, and the next step runs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = str(HERE), str(HERE.parent / "support")
sys.path.append(str(HERE.parents[1]))  # the developers' tools

import gpu_cases as cases  # noqa: E402
import gpu_clock  # noqa: E402
import gpu_products as products  # noqa: E402
from common import machine, restart_as_usual  # noqa: E402
from gpu_report import file_name  # noqa: E402
from measuring import measure_rows  # noqa: E402
from report import show  # noqa: E402

from tf32dtype._base.nvrtc import CudaError  # noqa: E402
from tools.tensor_core_recorder.launch import Gpu  # noqa: E402


def versions() -> dict[str, str]:
    """Return the device's name and the versions of its software."""
    return {name: str(value) for name, value in Gpu().facts().items()}


class Report:
    """All measurements, in a file that is complete up to the last finished one."""

    def __init__(self, path: Path, device: dict[str, str]) -> None:
        self.path = path
        self.errors: dict[str, str] = {}
        self.facts: dict[str, Any] = {
            "device": device,
            "machine": machine(),
            "results": [],
            "errors": self.errors,
        }
        path.parent.mkdir(parents=True, exist_ok=True)

    def save(self) -> None:
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(json.dumps(self.facts, indent=1))
        os.replace(new, self.path)

    def attempt(self, name: str, work: Callable[[], None]) -> None:
        """Call `work`, keep an error that it raises under `name`, and save."""
        try:
            work()
        except Exception as error:  # CuPy's errors have no common class
            self.errors[name] = f"{type(error).__name__}: {error}"
            print(f"ERROR {name}: {self.errors[name]}", file=sys.stderr)
        self.save()


def crossover(
    clock: Any, precision: str, grid: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the seconds of the emulated and the native product over M = N and K."""
    for mn in grid:
        for k in grid:
            functions = products.products((mn, mn, k), precision)
            times = clock.medians(functions, 15, 2.0, host=True)
            yield {
                "mn": mn,
                "k": k,
                "emulated": times["ours"],
                "native": times["reference"],
            }


def tabled(
    device: dict[str, str], precision: str, measured: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the fields of `tf32dtype.cuda._matmul.crossover.Crossover`."""
    speedup = {(c["mn"], c["k"]): c["native"] / c["emulated"] for c in measured}
    sides, depths = (sorted({case[name] for case in measured}) for name in ("mn", "k"))
    rows = [[round(speedup[side, depth], 3) for depth in depths] for side in sides]
    return {
        "device": device["gpu"],
        "measured": {name: value for name, value in device.items() if name != "gpu"},
        "sides": sides,
        "depths": depths,
        "speedup": {precision: rows},
    }


def performant(clock: Any, precision: str, measured: list[dict[str, Any]]) -> None:
    """Add to each case the time of `performant` over the faster of its two choices.

    All three are measured again, in turns.
    """
    for case in measured:
        shape = case["mn"], case["mn"], case["k"]
        both = products.products(shape, precision)
        functions = {
            "performant": products.products(shape, precision, "performant")["ours"],
            "emulated": both["ours"],
            "native": both["reference"],
        }
        times = clock.medians(functions, 15, 2.0, host=True)
        better = min(times["emulated"], times["native"])
        case["performant over the better"] = times["performant"] / better


def energy(sizes: tuple[int, ...]) -> Iterator[dict[str, float]]:
    """Yield GFLOP per joule, which equals GFLOP/s per watt, and TFLOP/s of each n."""
    counter = gpu_clock.Energy()
    for n in sizes:
        line: dict[str, float] = {"n": n}
        for name, call in products.products((n, n, n), "bf16x9").items():
            used = counter.per_call(call, 2.0)
            who = "bf16x9" if name == "ours" else "SGEMM"
            line[f"{who} GFLOP/J"] = 2 * n**3 / used["joules"] * 1e-9
            line[f"{who} TFLOP/s"] = 2 * n**3 / used["seconds"] * 1e-12
        print(line)
        yield line


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        prog="python benchmarks/cuda/gpu.py",
    )
    parser.add_argument("--quick", action="store_true", help="measure only small sizes")
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, default=PARTS, metavar="NAME",
        help=f"measure only these (default: all): {', '.join(PARTS)}",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="write all measurements to this file")
    parser.add_argument(
        "--tables", type=Path, help="copy the crossover table to this file"
    )
    parser.add_argument(
        "--figure", type=Path, help="draw the measurements into this file"
    )
    return parser.parse_args(arguments)


#: The step "energy" needs NVML's counters, and "figures" needs matplotlib.
PARTS = ("cases", "accuracy", "crossover", "energy", "figures")

# -- parts -----------------------------------------------------------------------------


def measure_cases(
    report: Report, clock: Any, sizes: Any, repeats: int, budget: float
) -> None:
    """Measure every row of gpu_cases.py, one after the other, and print the table."""
    rows = [
        (row, partial(measure_rows, [row], repeats, budget, clock.medians))
        for row in cases.rows(sizes)
    ]
    for row, rates in cases.rates(sizes, clock.peak()):
        taking = partial(cases.take_rates, row, rates, clock.medians, repeats, budget)
        rows.append((row, taking))
    result: dict[str, Any] = {
        "machine": report.facts["machine"],
        "isa": report.facts["device"]["gpu"],
        "rows": [],
        "set": {},
    }
    report.facts["results"].append(result)

    def measure(row: Any, work: Callable[[], Any]) -> None:
        try:
            work()
        finally:
            result["rows"].append(row.record())

    for row, work in rows:
        report.attempt(row.name, partial(measure, row, work))
    report.facts["clocks after the rows"] = gpu_clock.clocks()
    whole = [x for x in result["rows"] if x["name"] not in report.errors]
    show(result | {"rows": whole})


def measure_accuracy(report: Report, sizes: Any) -> None:
    """Measure the SNR in dB of bf16x9 products and of SGEMM."""
    found = report.facts["snr"] = {}
    for n in sizes.emulated:
        found[str(n)] = products.snr(n, "bf16x9")
    print("dB over float64:", found)


def measure_crossover(
    report: Report, clock: Any, grid: tuple[int, ...], tables: Path | None
) -> None:
    """Measure the crossover, write its table, and measure `performant` with it."""
    from tf32dtype.cuda._matmul import crossover as strategy

    measured: list[dict[str, Any]] = []
    report.facts["crossover"] = {"precision": "bf16x9", "cases": measured}
    for case in crossover(clock, "bf16x9", grid):
        measured.append(case)
        report.save()
    facts = tabled(report.facts["device"], "bf16x9", measured)
    table = strategy.write(strategy.Crossover(**facts))
    if tables:
        tables.mkdir(parents=True, exist_ok=True)
        shutil.copy(table, tables)
    performant(clock, "bf16x9", measured)
    slowest = max(case["performant over the better"] for case in measured)
    print(f"performant takes at most {slowest:.3f} times as long as the better choice")


def measure_energy(report: Report, sizes: tuple[int, ...]) -> None:
    """Measure the energy if the GPU counts it."""
    try:
        report.facts["energy"] = [*energy(sizes)]
    except OSError as error:
        print(f"no energy counters: {error}", file=sys.stderr)


def draw_figures(report: Report, path: Path) -> None:
    """Draw the measurements if matplotlib is installed."""
    from gpu_figure import draw

    try:
        draw(report.facts, path)
    except ImportError as error:
        print(f"no figure: {error}", file=sys.stderr)


def main(arguments: list[str] | None = None, clock: Any = None) -> int:
    options = options_of(arguments)
    try:
        importlib.import_module("tf32dtype.cuda")
        device = versions()
    except (ImportError, CudaError) as error:
        print(f"gpu.py: {error}", file=sys.stderr)
        return 1

    started = time.monotonic()
    clock = clock or gpu_clock.Clock()
    sizes = cases.QUICK if options.quick else cases.FULL
    repeats, budget = (3, 1.0) if options.quick else (25, 10.0)
    name = f"{file_name(device['gpu'])}.json"
    path = options.json or HERE.parent / "results" / name
    report = Report(path, device)
    parts = {
        "cases": partial(measure_cases, report, clock, sizes, repeats, budget),
        "accuracy": partial(measure_accuracy, report, sizes),
        "crossover": partial(
            measure_crossover, report, clock, sizes.grid, options.tables
        ),
        "energy": partial(measure_energy, report, sizes.energy),
    }
    if options.figure:
        parts["figures"] = partial(draw_figures, report, options.figure)
    for name, part in parts.items():
        if name in options.parts:
            report.attempt(name, part)
    print(f"{path}: {time.monotonic() - started:.0f} s")
    return 1 if report.errors else 0


if __name__ == "__main__":
    restart_as_usual()
    sys.exit(main())
