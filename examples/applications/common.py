"""The command line of an application, what it ran on, and its files."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tf32dtype as td

NUMPY = "NumPy float32"
COLOURS = {
    "float64": "black",
    NUMPY: "tab:gray",
    "f32": "gold",
    "bf16x9": "tab:blue",
    "tf32x3": "tab:green",
    "tf32": "tab:red",
    "tf32, cut": "tab:purple",
    "bf16": "tab:brown",
}

Report = dict[str, Any]


def main(
    doc: str,
    measure: Callable[[bool], Report],
    show: Callable[[Report], str],
    draw: Callable[[Report, Path], None],
) -> int:
    """Measure, or read what was measured; print, write and draw it."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small, for a first look")
    parser.add_argument("--read", type=Path, help="take this JSON; compute nothing")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--figure", type=Path, help="draw them here (matplotlib)")
    options = parser.parse_args()
    if options.read:
        report = json.loads(options.read.read_text())
    else:
        start = time.perf_counter()
        report = {"machine": machine(), "quick": options.quick}
        report |= measure(options.quick)
        report["seconds"] = round(time.perf_counter() - start)
    print(show(report))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.figure:
        draw(report, options.figure)
    return 0


def machine() -> dict[str, str]:
    """What float32 results depend on beside the program."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


@contextlib.contextmanager
def precision(mode: str, **options: Any) -> Iterator[None]:
    """A scope for the products of a mode: those of `td.matmul_precision`, and

    float64, NumPy float32   as NumPy computes
    tf32, cut                tf32 of operands that are cut off, not rounded
    """
    if mode in ("float64", NUMPY):
        yield
        return
    if mode == "tf32, cut":
        mode, options = "tf32", options | {"rounding": "toward_zero"}
    with td.matmul_precision(mode, **options):
        yield


def progress(what: str) -> None:
    print(f"  {what}", file=sys.stderr)


def figure(path: Path, rows: int, columns: int, size: tuple[float, float]) -> Any:
    """An empty drawing and its axes; `drawing.savefig(path)` writes it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    drawing = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing, drawing.subplots(rows, columns, squeeze=False)
