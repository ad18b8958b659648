"""Compute Fourier transforms of the formats by SciPy, in float32 as for float16.

`scipy.fft` converts float16 to float32, and passes other floats to its compiled code,
which does not support the formats. float32 represents all values of the formats. If a
later version of SciPy lacks the changed function, transforms raise as before.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

from .._base.imports import when_imported
from .._formats.table import format_of_dtype


def register() -> None:
    """Make SciPy's transforms accept the formats, once they are imported."""

    def widen(module: ModuleType) -> None:
        own = vars(module).get("_asfarray")
        if own is None:
            return

        @functools.wraps(own)
        def as_floats(x: Any) -> Any:
            has_dtype = isinstance(x, np.ndarray | np.generic)
            ours = has_dtype and format_of_dtype(x.dtype) is not None
            return own(x.astype(np.float32) if ours else x)

        vars(module)["_asfarray"] = as_floats

    for folder in ("_pocketfft", "_duccfft"):  # up to SciPy 1.17, and from 1.18 on
        when_imported(f"scipy.fft.{folder}.helper", widen)
