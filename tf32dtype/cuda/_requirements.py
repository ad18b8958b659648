"""Check the requirements of tf32dtype.cuda, so that a clear error comes first."""

from __future__ import annotations

import importlib
import re

from .._base.nvrtc import EXTRA

OLDEST = (14, 0, 1)


def check() -> None:
    """Raise an ImportError that names the missing requirement, if there is one."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise ImportError(
            f"tf32dtype.cuda needs CuPy, which cannot be imported ({error}). Use"
            f" {EXTRA}"
        ) from error
    release = tuple(map(int, re.findall(r"\d+", cupy.__version__)[:3]))
    if release < OLDEST:
        needed = ".".join(map(str, OLDEST))
        raise ImportError(
            f"tf32dtype.cuda needs CuPy {needed} or newer, whose arrays support dtypes"
            f" of other libraries; got CuPy {cupy.__version__}. Use {EXTRA}"
        )
    runtime = cupy.cuda.runtime
    if runtime.is_hip:
        raise ImportError("tf32dtype.cuda needs an NVIDIA GPU; got a CuPy for AMD GPUs")
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise ImportError(
            f"tf32dtype.cuda needs an NVIDIA GPU and its driver; got {error}"
        ) from error
    if count == 0:
        raise ImportError("tf32dtype.cuda needs an NVIDIA GPU; got none")
