"""Share precisions, the command line, tables and figures of these scripts."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import tf32dtype as td

Report = dict[str, Any]

FLOAT64 = "float64"  # no precision: the program computes unchanged
PRECISIONS = ("f32", "bf16x9", "bf16x6", "bf16x3", "tf32", "bf16")
COLORS = dict(zip((FLOAT64, *PRECISIONS), (
    "black", "gold", "tab:blue", "tab:cyan", "tab:orange", "tab:red", "tab:brown",
), strict=True))  # fmt: skip


def region(precision: str, *, dots: bool = False) -> AbstractContextManager[Any]:
    """Return a region where float64 products have a precision, except `FLOAT64`."""
    if precision == FLOAT64:
        return nullcontext()
    return td.matmul_precision(precision, blas=True, float64=True, dots=dots)


def one_thread() -> None:
    """Restart this program with one thread, unless the environment sets the threads.

    The operands are small, so that threads take more time than they save.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    missing = {name: "1" for name in names if name not in os.environ}
    if missing:
        arguments = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, **missing})


def machine(packages: Iterable[str]) -> dict[str, str]:
    """Return the processor, the date and the versions that figures may depend on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {"cpu": cpu, "date": time.strftime("%Y-%m-%d"), **versions}


def measured_on(report: Report) -> str:
    """Describe the machine of a report in one sentence."""
    facts = dict(report["machine"])
    cpu, date = facts.pop("cpu"), facts.pop("date")
    versions = ", ".join(f"{name} {version}" for name, version in facts.items())
    return f"Measured on {cpu}, {versions}, {date}."


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format rows of strings as a Markdown table."""
    head, *body = ("| " + " | ".join(row) + " |" for row in (header, *rows))
    return "\n".join([head, "|" + "---|" * len(header), *body])


def figure(path: Path, columns: int, size: tuple[float, float]) -> Any:
    """Return an empty figure and its axes, which are in a row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    drawing = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing, drawing.subplots(1, columns, squeeze=False)[0]


def main(
    doc: str,
    packages: dict[str, str],
    measure: Callable[[bool], Report],
    block: Callable[[Report], str],
    draw: Callable[[Report, Path], None],
) -> int:
    """Run the command line of a script.

    `packages` has the names of the packages that it needs, by their modules' names.
    """
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="compute a small case in seconds"
    )
    parser.add_argument(
        "--read", type=Path, help="read this JSON file instead of computing"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--plot", type=Path, help="draw the results into this file")
    options = parser.parse_args()
    needed = {} if options.read else packages
    needed = needed | ({"matplotlib": "matplotlib"} if options.plot else {})
    for module, package in needed.items():  # reported before minutes of computing
        if importlib.util.find_spec(module) is None:
            parser.error(f"{package} is missing: pip install {package}")
    if options.read:
        report = json.loads(options.read.read_text())
    else:
        one_thread()
        start = time.perf_counter()
        found = measure(options.quick)
        seconds = round(time.perf_counter() - start, 1)
        facts = machine(["numpy", *packages.values()])
        report = {"machine": facts, "seconds": seconds, **found}
    print(block(report))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.plot:
        draw(report, options.plot)
    return 0


def say(what: str) -> None:
    """Print progress to standard error."""
    print(what, file=sys.stderr, flush=True)
