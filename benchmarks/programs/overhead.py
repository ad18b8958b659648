"""Measure the nanoseconds that intercepting adds to a call of BLAS.

    python benchmarks/programs/overhead.py [--quick] [--json FILE]

A C library calls `dgemm_` and `ddot_` of another library in a loop. They return at
once, so that only the way to them is measured. SciPy's BLAS is measured with 64 x 64
matrices, too. The states are: plain (nothing is intercepted), counting (the process, or
a scope, has a precision only for float32, so that float64 products reach the library),
off (no precision is set any more), and gathering call sites, behind 1 and 20 frames of
a library, and by operand. The script needs gcc.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import machine, pin, restart_as_usual

PROVIDER = """
void dgemm_() {}
double ddot_() { return 0; }
"""
CALLER = """
void dgemm_(const char *, const char *, const int *, const int *, const int *,
            const double *, const double *, const int *, const double *, const int *,
            const double *, double *, const int *, long, long);
double ddot_(const int *, const double *, const int *, const double *, const int *);

void gemms(long count)
{
    int four = 4;
    double one = 1, zero = 0, a[16] = {0}, b[16] = {0}, c[16];
    while (count--)
        dgemm_("N", "N", &four, &four, &four, &one, a, &four, b, &four, &zero, c, &four,
               1, 1);
}
double dots(long count)
{
    int four = 4, one = 1;
    double a[4] = {0}, b[4] = {0}, sum = 0;
    while (count--)
        sum += ddot_(&four, a, &one, b, &one);
    return sum;
}
"""
CALLS = 20000


def caller(folder: Path) -> ctypes.CDLL:
    """Compile the two libraries and open the calling one."""
    for name, text, others in (
        ("provider", PROVIDER, []),
        ("caller", CALLER, ["-lprovider"]),
    ):
        source = folder / f"{name}.c"
        source.write_text(text)
        command = [
            "gcc",
            "-O2",
            "-w",
            "-shared",
            "-fPIC",
            "-o",
            folder / f"lib{name}.so",
        ]
        command += [source, f"-L{folder}", f"-Wl,-rpath,{folder}", *others]
        subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "libcaller.so"))


def nested(depth: int, function: Callable[[int], Any]) -> Callable[[int], Any]:
    """Return `function` behind `depth` frames of code in Python's own json package."""
    scope: dict[str, Any] = {"call": function}
    text = (
        "def down(depth, count):\n"
        "    return call(count) if depth <= 1 else down(depth - 1, count)"
    )
    exec(compile(text, f"{Path(json.__file__).parent}/nested.py", "exec"), scope)
    return lambda count: scope["down"](depth, count)


def clock(function: Callable[[int], Any], calls: int) -> float:
    began = time.perf_counter()
    function(calls)
    return 1e9 * (time.perf_counter() - began) / calls


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="repeat less often")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    restart_as_usual()
    core = pin()
    import numpy as np
    from scipy.linalg import blas

    import tf32dtype as td
    from tf32dtype import _core
    from tf32dtype._programs.report.collect import set_folders

    repeats = 20 if arguments.quick else 200
    x = np.asfortranarray(np.random.default_rng(0).standard_normal((64, 64)))
    out = np.zeros_like(x, order="F")

    def products(count: int) -> None:
        for _ in range(count):
            blas.dgemm(1.0, x, x, c=out, overwrite_c=1)

    with tempfile.TemporaryDirectory() as folder:
        library = caller(Path(folder))
        library.gemms.argtypes = library.dots.argtypes = [ctypes.c_long]
        library.dots.restype = ctypes.c_double
        calls = {
            "gemm 4": (library.gemms, CALLS),
            "dot 4": (library.dots, CALLS),
            "gemm 64 (SciPy)": (products, 200),
        }
        deep = {"gemm 4": (nested(20, library.gemms), CALLS)}
        times: dict[str, dict[str, list[float]]] = {}

        def measure(state: str, which: dict[str, Any]) -> None:
            for name, (function, count) in which.items():
                found = times.setdefault(name, {}).setdefault(state, [])
                found.extend(clock(function, count) for _ in range(repeats))

        measure("plain", calls)
        measure("plain, 20 frames", deep)
        td.set_matmul_precision("bf16", blas=True)
        measure("counting", calls)
        td.set_matmul_precision(None)
        with td.matmul_precision("bf16", blas=True):
            measure("counting, scope", calls)
        measure("off", calls)
        set_folders()
        _core.blas_begin()
        _core.watch_call_sites(0, dots=True)
        measure("call sites", calls)
        measure("call sites, 20 frames", deep)
        _core.watch_call_sites(0, dots=True, operands=True)
        measure("operands", calls)
        _core.stop_watching()
        _core.blas_end()
    report: dict[str, Any] = {"machine": machine(), "core": core, "ns": {}}
    print(f"{'call':18} {'state':20} {'ns':>8} {'more':>8}")
    for name, states in times.items():
        medians = {state: median(found) for state, found in states.items()}
        for state, ns in medians.items():
            plain = medians["plain, 20 frames" if "20" in state else "plain"]
            print(f"{name:18} {state:20} {ns:8.1f} {ns - plain:+8.1f}")
        report["ns"][name] = medians
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
