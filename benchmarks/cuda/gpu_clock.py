"""Measure time and energy on a GPU."""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Functions = dict[str, Callable[[], Any]]


#: float32 multiply-adds of a multiprocessor per clock, by compute capability, from the
#: table of throughput in CUDA's programming guide; others have `_LANES`
LANES = {"70": 64, "75": 64, "80": 64}
_LANES = 128


def clocks() -> dict[str, str]:
    """Return the present clocks and power from nvidia-smi, empty on failure."""
    names = "clocks.sm", "clocks.max.sm", "clocks.mem", "power.draw", "power.limit"
    asked = f"--query-gpu={','.join(names)}"
    command = ["nvidia-smi", asked, "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = done.stdout.partition("\n")[0].split(", ")
    return dict(zip(names, values, strict=True)) if len(values) == len(names) else {}


_WAIT = r"""
extern "C" __global__ void wait(long long nanoseconds)
{
    long long begun, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begun < nanoseconds);
}
"""


class Clock:
    """Time calls by CUDA events; the functions take turns."""

    _wait: Any = None

    def peak(self) -> float:
        """Return the float32 operations per second at the highest clock."""
        import cupy

        device = cupy.cuda.Device()
        lanes = LANES.get(device.compute_capability, _LANES)
        facts = device.attributes
        return 2e3 * lanes * facts["MultiProcessorCount"] * facts["ClockRate"]

    def medians(
        self, functions: Functions, repeats: int, budget: float, host: bool = False
    ) -> dict[str, float]:
        """Return the median seconds per call on the device.

        A sample is as many calls as take two milliseconds, 64 at most. Without `host`
        the device is kept busy until the host has launched a sample's calls. The
        host's time, which gpu_host.py measures, does not count then.
        """
        calls, ahead = {}, {}
        for name, function in functions.items():
            function()
            once, called = map(min, *(self.once(function) for _ in range(3)))
            calls[name] = max(1, min(64, int(2e-3 / max(once, 1e-9))))
            ahead[name] = 0.0 if host else 1.5 * called * calls[name]
        samples: dict[str, list[float]] = {name: [] for name in functions}
        started = time.monotonic()
        for turn in range(repeats):
            for name, function in functions.items():
                if ahead[name]:
                    self.occupy(ahead[name])
                samples[name].append(self.seconds(function, calls[name]))
            if turn >= 2 and time.monotonic() - started > budget:
                break
        return {name: statistics.median(values) for name, values in samples.items()}

    def once(self, function: Callable[[], Any]) -> tuple[float, float]:
        """Return a call's seconds on the device, and an upper bound of the host's.

        The latter includes the device's time, and is 5 ms at most.
        """
        started = time.perf_counter()
        seconds = self.seconds(function, 1)
        return seconds, min(time.perf_counter() - started, 5e-3)

    def occupy(self, seconds: float) -> None:
        """Keep the device busy for some seconds, so that later calls queue up."""
        import cupy

        if self._wait is None:
            self._wait = cupy.RawKernel(_WAIT, "wait")
        self._wait((1,), (1,), (np.int64(seconds * 1e9),))

    def seconds(self, function: Callable[[], Any], calls: int) -> float:
        """Return the seconds per call of `calls` calls after one another."""
        import cupy

        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) * 1e-3 / calls


class Energy:
    """The energy counter of the current device, by NVML.

    Raises
    ------
    OSError
        If NVML or the counter is missing; the message names the call that failed.
    """

    def __init__(self) -> None:
        import cupy

        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._check("nvmlInit_v2")
        self._device = ctypes.c_void_p()
        device = cupy.cuda.Device()
        self._check(
            "nvmlDeviceGetHandleByPciBusId_v2",
            device.pci_bus_id.encode(),
            ctypes.byref(self._device),
        )
        self.joules()

    def joules(self) -> float:
        """Return the joules that the device used since the driver was loaded."""
        millijoules = ctypes.c_ulonglong()
        self._check(
            "nvmlDeviceGetTotalEnergyConsumption",
            self._device,
            ctypes.byref(millijoules),
        )
        return millijoules.value * 1e-3

    def _check(self, name: str, *arguments: Any) -> None:
        function = getattr(self._nvml, name, None)
        if function is None:
            raise OSError(f"this NVML has no {name}")
        status = function(*arguments)
        if status != 0:
            raise OSError(f"{name} failed with {status}")

    def per_call(self, function: Callable[[], Any], seconds: float) -> dict[str, float]:
        """Return the joules and seconds per call, over calls that take `seconds`.

        The counter is updated about every 20 ms and lags behind, so that a measurement
        must take seconds.
        """
        import cupy

        function()
        cupy.cuda.get_current_stream().synchronize()
        calls, started, before = 0, time.perf_counter(), self.joules()
        while time.perf_counter() - started < seconds:
            for _ in range(8):  # so that the device rarely waits for the host
                function()
            cupy.cuda.get_current_stream().synchronize()
            calls += 8
        spent = time.perf_counter() - started
        return {
            "joules": (self.joules() - before) / calls,
            "seconds": spent / calls,
        }
