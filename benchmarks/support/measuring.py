"""Share the rows of benchmarks, and how all benchmark scripts measure them."""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import Functions, machine, medians, usual_environment
from report import BELOW, MORE, merge, quote, show, show_all, table


@dataclass
class Case:
    """One operation on one kind of data; its functions are timed in turns."""

    name: str
    data: str
    functions: Functions  # "ours", "reference" and peers
    operations: float = 0  # per call; a multiply-add counts as two
    peak: str = ""  # the name of the machine's peak that bounds them


@dataclass
class Row:
    """A row of a table; `minimum` and `target` are ratios, or milliseconds."""

    name: str
    unit: str  # one of report.MORE (more is better), "x" or "ms" (less is better)
    minimum: float
    target: float
    cases: Callable[[], Iterator[Case]]
    measured: list[dict[str, Any]] = field(default_factory=list)

    def take(self, case: str, data: str, who: str, ratio: float) -> dict[str, Any]:
        """Add a measurement and return it."""
        taken = {"case": case, "data": data, "who": who, "ratio": ratio}
        self.measured.append(taken)
        return taken

    def record(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {
            "name": self.name,
            "unit": self.unit,
            "minimum": self.minimum,
            "target": self.target,
            "measured": self.measured,
        }


def blocks(functions: Functions, repeats: int, budget: float) -> dict[str, float]:
    """Return the median seconds per call, with many calls of a function in a row.

    This is for libraries with their own threads, which spin for a while after a call.
    If such libraries took turns, they would take the cores from each other.
    """
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(3):
        for name, function in functions.items():
            function()
            started = time.perf_counter()
            for _ in range(repeats):
                start = time.perf_counter()
                function()
                samples[name].append(time.perf_counter() - start)
                if samples[name][-1] + start - started > budget:
                    break
            time.sleep(0.2)
    return {name: statistics.median(values) for name, values in samples.items()}


def threads(count: int, function: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call of the function with `count` threads of GNU's OpenMP library."""
    library = ctypes.CDLL(ctypes.util.find_library("gomp") or "libgomp.so.1")

    def call() -> Any:
        library.omp_set_num_threads(count)
        return function()

    return call


def measure_rows(
    rows: list[Row],
    repeats: int,
    budget: float,
    timing: Callable[[Functions, int, float], dict[str, float]] = medians,
    peaks: dict[str, float] | None = None,
) -> list[dict[str, Any]]:
    """Measure every row once in this process and return the rows for JSON.

    `peaks` are operations per second.
    """
    results = []
    for row in rows:
        for case in row.cases():
            with np.errstate(all="ignore"):
                times = timing(case.functions, repeats, budget)
            reference = times.pop("reference")
            for who, seconds in times.items():
                more = row.unit in MORE
                ratio = reference / seconds if more else seconds / reference
                share = None
                if peaks and case.peak in peaks:
                    share = case.operations / seconds / peaks[case.peak]
                if row.unit == "of peak":
                    if share is not None:
                        row.take(case.name, case.data, who, share)
                    continue
                taken = row.take(case.name, case.data, who, ratio)
                if share is not None:
                    taken["of peak"] = share
        results.append(row.record())
        print(f"  {row.name}: {quote(results[-1], 'ours')}", file=sys.stderr)
    return results


def command_line(doc: str, quick: str) -> argparse.ArgumentParser:
    """Return the parser that benchmarks share; `quick` is the help text of --quick."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument(
        "--runs", type=int, default=1, help="use the worst of N runs (default: 1)"
    )
    parser.add_argument("--all", action="store_true", help="print every measurement")
    parser.add_argument("--json", type=Path, help="write all measurements to this file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def print_child(measured: list[dict[str, Any]]) -> None:
    """Write the measured rows as JSON to stdout, for the parent process."""
    import tf32dtype as td

    json.dump({"machine": machine(), "isa": td.isa(), "rows": measured}, sys.stdout)


def run_child(
    script: str, arguments: list[str], variables: dict[str, str]
) -> dict[str, Any]:
    """Run the script in its own process, with additional environment variables."""
    command = [sys.executable, script, "--child", *arguments]
    environment = usual_environment() | variables
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def run_settings(
    script: str,
    options: argparse.Namespace,
    settings: list[tuple[list[str], dict[str, str]]],
) -> int:
    """Run, show and write each setting, a pair of arguments and environment variables.

    Return 1 if a row of the first setting is below its minimum, else 0.
    """
    results = []
    started = time.monotonic()
    quick = ["--quick"] if options.quick else []
    for arguments, variables in settings:
        runs = [
            run_child(script, [*arguments, *quick], variables)
            for _ in range(options.runs)
        ]
        results.append(merge(runs) | {"set": variables})
        show(results[-1])
        if options.all:
            show_all(results[-1])
    print(f"{options.runs} run(s), {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        written = {"runs": options.runs, "results": results}
        options.json.write_text(json.dumps(written, indent=1))
    return int(any(line[4] == BELOW for line in table(results[0])))


def run_children(
    doc: str,
    quick: str,
    script: str,
    settings: list[tuple[list[str], dict[str, str]]],
    child: Callable[[str, bool], list[dict[str, Any]]],
) -> int:
    """Run the command line of a benchmark whose settings have one argument, a name."""
    parser = command_line(doc, quick)
    parser.add_argument("setting", nargs="?", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print_child(child(options.setting, options.quick))
        return 0
    return run_settings(script, options, settings)
