"""Run a GPU program on the host, except for work that only a GPU can do.

    python -m tests.support.simulator.dry_run PROGRAM ARGUMENTS...

PROGRAM is a file or a module. Kernels run on the CPU (backend.py), and models replace
tensor cores (tests/recorder/made_up_gpu.py). cublasLt multiplies nothing, the clock
returns made-up times (1 us for the first function, 2 us for the second, ...), and sizes
are tiny.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.paths import GPU_BENCHMARKS


class Clock:
    """Call each function once, and report its position in us as the time."""

    def peak(self) -> float:
        return 1e12

    def medians(
        self,
        functions: dict[str, Callable[[], Any]],
        repeats: int,
        budget: float,
        host: bool = False,
    ) -> dict[str, float]:
        for function in functions.values():
            function()
        return {name: 1e-6 * (i + 1) for i, name in enumerate(functions)}


def sizes(cases: Any) -> Any:
    """Return the sizes of benchmarks/cuda/gpu_cases.py, as small as possible."""
    few = (16,)
    return cases.Sizes(1 << 14, few, (32,), few, few, few, (16, 32), energy=few)


def replace_gpu() -> None:
    """Replace the interfaces through which programs use a GPU by the host's."""
    import cupy
    import gpu_cases
    import gpu_clock

    from tests.recorder.made_up_gpu import MadeUp
    from tests.support.simulator import backend as cuda_host
    from tf32dtype.cuda._matmul import cublaslt
    from tf32dtype.cuda._runtime import backend
    from tools.tensor_core_recorder import command, launch

    cupy.cuda.set_allocator(cuda_host.allocate)
    backend.use(cuda_host.Host())
    launch.Gpu = command.Gpu = MadeUp  # type: ignore[misc]
    cublaslt._multiply = lambda *_: None
    gpu_clock.Clock = Clock  # type: ignore[misc]
    gpu_cases.FULL = gpu_cases.QUICK = sizes(gpu_cases)


def main(program: str, arguments: list[str]) -> None:
    os.environ["TF32DTYPE_DRY"] = "1"
    sys.path[:0] = map(str, GPU_BENCHMARKS)
    replace_gpu()
    from tf32dtype.cuda._matmul import crossover

    sys.argv = [program, *arguments]
    with tempfile.TemporaryDirectory() as folder:
        crossover.FOLDER = Path(folder)
        if program.endswith(".py"):
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
