"""Measure the peak rate of a core's multiply-adds, by peak.c."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path


def measure() -> dict[str, float]:
    """Return a core's operations per second: "singles" (float32), "pairs" (bfloat16).

    A multiply-add is two operations. Without a C compiler the result is empty. A name
    is missing if the processor lacks its instructions.
    """
    source = Path(__file__).with_name("peak.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "peak.so")
        command = ["cc", "-O2", "-march=native", "-shared", "-fPIC"]
        try:
            subprocess.run(
                [*command, str(source), "-o", str(library)],
                check=True,
                capture_output=True,
            )
            functions = ctypes.CDLL(str(library))
        except (OSError, subprocess.CalledProcessError):
            return {}
        return {
            name: _best(getattr(functions, name))
            for name in ("singles", "pairs")
            if hasattr(functions, name)
        }


def _best(function: ctypes._CFuncPtr) -> float:
    function.restype = ctypes.c_double
    out = (ctypes.c_float * 16)()
    rates = []
    for _ in range(20):
        start = time.perf_counter()
        operations = function(ctypes.c_long(500_000), out)
        rates.append(operations / (time.perf_counter() - start))
    return max(rates)


if __name__ == "__main__":
    for name, rate in measure().items():
        print(f"{name}: {rate / 1e9:.0f} GFLOP/s")
