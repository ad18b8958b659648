"""The precisions in which programs of float32 are shown here."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from scripts import COLORS as COLORS_OF_PRECISIONS
from scripts import FLOAT64

import tf32dtype as td

NUMPY = "NumPy float32"
CUT = "tf32, cut"  # operands are cut off, not rounded, as some devices do

COLORS = {
    **COLORS_OF_PRECISIONS,
    NUMPY: "tab:gray",
    "tf32x3": "tab:green",
    CUT: "tab:purple",
}


def mode(name: str, **options: Any) -> AbstractContextManager[Any]:
    """A scope for the products of a mode; float64 and NumPy float32 are NumPy's own."""
    if name in (FLOAT64, NUMPY):
        return nullcontext()
    if name == CUT:
        return td.matmul_precision("tf32", rounding="toward_zero", **options)
    return td.matmul_precision(name, **options)


def digits(x: Any) -> float:
    """Four significant digits, for JSON."""
    return float(f"{x:.3e}")
