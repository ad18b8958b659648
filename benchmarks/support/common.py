"""Measure interleaved calls on one pinned core by medians, on named data."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MEGABYTE = 1 << 20
Functions = dict[str, Callable[[], Any]]


# Variables that make OpenBLAS use other kernels than it chooses for the processor. Some
# machines of developers set them, but users do not. With Haswell's kernels, NumPy's
# float32 products take twice their usual time on a processor with AVX-512.
CHOICES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
#: Limits our kernels and those of OpenBLAS to AVX2.
HASWELL = {"TF32DTYPE_ISA": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell"}


def usual_environment() -> dict[str, str]:
    """Return the environment without the variables that choose OpenBLAS' kernels."""
    return {name: value for name, value in os.environ.items() if name not in CHOICES}


def restart_as_usual(**variables: str) -> None:
    """Restart this program if its environment chooses kernels for OpenBLAS.

    It restarts, too, if these variables have other values: libraries read the number of
    threads when they are loaded.
    """
    environment = usual_environment() | variables
    if environment != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def blas() -> str:
    """Return NumPy's BLAS and the kernels that it chose, by threadpoolctl."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return "unknown (threadpoolctl is not installed)"
    here = str(Path(np.__file__).parent)  # prefix of numpy.libs; holds .dylibs
    for library in ThreadpoolController().info():
        if library["user_api"] == "blas" and here in library["filepath"]:
            name = {"openblas": "OpenBLAS"}.get(library["internal_api"])
            name = name or library["internal_api"].upper()
            return f"{name} {library.get('architecture', '')}".strip()
    return "unknown (threadpoolctl does not know it)"


def pin() -> int:
    """Bind this process to its last core; return its number, or -1 without support."""
    if not hasattr(os, "sched_setaffinity"):
        return -1
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def machine() -> dict[str, str]:
    """Return the hardware, the software and the date that the figures depend on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": blas(),
        "date": time.strftime("%Y-%m-%d"),
    }


def medians(functions: Functions, repeats: int, budget: float) -> dict[str, float]:
    """Return the median seconds per call. The functions take turns.

    A sample is as many calls as take 300 us. A function that would need more than
    `budget` seconds for all its repeats skips rounds, but runs in three at least.
    """
    calls, every = {}, {}
    for name, function in functions.items():
        function()
        once = min(_clock(function, 1) for _ in range(3))
        calls[name] = max(1, int(300e-6 / max(once, 1e-9)))
        whole = repeats * calls[name] * once
        every[name] = max(1, min(repeats // 3, int(whole / budget)))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(repeats):
        for name, function in functions.items():
            if turn % every[name] == 0:
                samples[name].append(_clock(function, calls[name]))
    return {name: statistics.median(values) for name, values in samples.items()}


def _clock(function: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def least_times(
    calls: list[Callable[[], Any]], repeats: int, floor: float = 0.0
) -> list[float]:
    """Return the smallest seconds of each call, or `floor`; the calls take turns."""
    found = [float("inf")] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            found[i] = min(found[i], _clock(call, 1))
    return [max(seconds, floor) for seconds in found]


def memcpy(count: int) -> Callable[[], None]:
    """Return a call that reads `count` bytes and writes as many."""
    source, target = np.ones(count, np.uint8), np.zeros(count, np.uint8)
    return lambda: np.copyto(target, source)


def data(kind: str, count: int, dtype: np.dtype) -> np.ndarray:
    """Return random elements of the kind:

    normal   N(0, 1)
    binades  random signs, exponents uniform over 40 binades around 1
    codes    uniformly random codes of the dtype, which include Inf and NaN
    """
    rng = np.random.default_rng(2024)
    if kind == "codes":
        width = dtype.itemsize
        raw = np.frombuffer(rng.bytes(count * width), f"u{width}").copy()
        if dtype.name == "tf32":
            raw &= np.uint32(0xFFFFE000)
        return raw.view(dtype)
    values = rng.standard_normal(count, np.float32)
    if kind == "binades":
        scale = rng.integers(-20, 20, count, np.int8).astype(np.int32)
        values = np.ldexp(np.sign(values) * (1 + rng.random(count, np.float32)), scale)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


# -- peers -------------------------------------------------------------------------


def peer_type(name: str) -> Any:
    """Return the type of that name in ml_dtypes, or None."""
    with contextlib.suppress(ImportError):
        import ml_dtypes

        return getattr(ml_dtypes, name, None)
    return None


TORCH_NAMES = ("bfloat16", "float8_e4m3fn", "float32", "float64")


def torch_tensor(array: np.ndarray, name: str) -> Any:
    """Return a torch tensor of the named dtype with these bits; None without torch."""
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)
        if name in TORCH_NAMES:
            raw = torch.from_numpy(array.view(f"i{array.itemsize}"))
            return raw.view(getattr(torch, name))
    return None


def with_torch(functions: Functions, call: Callable[[], Any]) -> Functions:
    """Add torch's call if torch has the operation for the dtype."""
    with contextlib.suppress(RuntimeError, NotImplementedError, TypeError):
        call()
        functions["torch"] = call
    return functions
