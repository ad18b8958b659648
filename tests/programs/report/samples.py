"""Call sites and samples for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tf32dtype._programs.report.call_sites import (
    CallSite,
    Frame,
    NotReached,
    Run,
    Sample,
)

Array = NDArray[Any]
HERE = Frame("/program/solver.py", 12, "step")


def sample(a: Array, b: Array) -> Sample:
    return Sample(a, b, a.shape[0], b.shape[1], a.shape[1], True)


def gaussian(
    m: int = 20, n: int = 15, k: int = 70, dtype: Any = np.float32, seed: int = 0
) -> Sample:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> Array:
        x: Array = rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.standard_normal(shape)
        return x.astype(dtype)

    return sample(draw(m, k), draw(k, n))


def site(*samples: Sample, work: int = 1000, user: Frame | None = HERE) -> CallSite:
    dtype = samples[0].a.dtype.name if samples else "float32"
    return CallSite(
        user, None, "x.so", "gemm", dtype, 3, work, 0.5, {(20, 15, 70): 3}, samples
    )


def run(*sites: CallSite, argv: tuple[str, ...] = ("solver.py",)) -> Run:
    not_reached = (NotReached("LAPACK", "dgesdd", 2, None, "add --lapack"),)
    return Run(argv, 2.0, sites, not_reached, "3.13", "2.5", "0.1")
