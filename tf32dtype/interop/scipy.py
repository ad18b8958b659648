"""Fourier transforms by SciPy: of our numbers as of float16, in float32.

`scipy.fft` makes float32 of float16 and hands other floats to its loops, which do not
know ours. Float32 holds all our numbers. Where a later SciPy has no such function,
transforms raise, as before.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .._formats.table import Format
from .._imports import when_imported


def register(formats: Mapping[str, Format]) -> None:
    """Have SciPy's transforms take these formats, once they are imported."""
    known = {form.dtype for form in formats.values()}

    def widen(module: ModuleType) -> None:
        own = vars(module).get("_asfarray")
        if own is None:
            return

        @functools.wraps(own)
        def as_floats(x: Any) -> Any:
            ours = isinstance(x, np.ndarray | np.generic) and x.dtype in known
            return own(x.astype(np.float32) if ours else x)

        vars(module)["_asfarray"] = as_floats

    for folder in ("_pocketfft", "_duccfft"):  # up to SciPy 1.17, and from 1.18 on
        when_imported(f"scipy.fft.{folder}.helper", widen)
