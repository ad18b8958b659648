"""The precisions in which the example programs in float32 run."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from scripts import COLORS as COLORS_OF_PRECISIONS
from scripts import FLOAT64

import tf32dtype as td

NUMPY = "NumPy float32"
CUT = "tf32, truncated"  # operands are truncated, not rounded, as on some devices

COLORS = {
    **COLORS_OF_PRECISIONS,
    NUMPY: "tab:gray",
    "tf32x3": "tab:green",
    CUT: "tab:purple",
}


def mode(name: str, **options: Any) -> AbstractContextManager[Any]:
    """Return a scope for products in a mode; NumPy computes float64 and its float32."""
    if name in (FLOAT64, NUMPY):
        return nullcontext()
    if name == CUT:
        return td.matmul_precision("tf32", rounding="toward_zero", **options)
    return td.matmul_precision(name, **options)


def digits(x: Any) -> float:
    """Round to four significant digits, for JSON."""
    return float(f"{x:.3e}")
