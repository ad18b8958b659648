"""Replace functions of dask, so that they support the formats."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import dask
import dask.array

from ..._base.caller import warn
from . import products, reductions

Function = Callable[..., Any]

_STATISTICS = (
    "sum prod mean var std moment cumsum cumprod"
    " nansum nanprod nanmean nanvar nanstd nancumsum nancumprod"
).split()

#: The replacement of each function of dask, made from the original function.
ANSWERS: dict[str, Callable[[Function], Function]] = {
    **{f"dask.array.reductions.{name}": reductions.statistic for name in _STATISTICS},
    "dask.array.routines.average": reductions.average,
    "dask.array.linalg.norm": reductions.norm,
    "dask.array.routines.matmul": products.matmul_answer,
    "dask.array.routines.tensordot": products.tensordot_answer,
    "dask.array.einsumfuncs.einsum": products.einsum_answer,
}


def install() -> None:
    """Replace the functions in all modules of `dask.array`."""
    unknown = []
    found: dict[int, Function] = {}
    for path, answer in ANSWERS.items():
        place, _, name = path.rpartition(".")
        own = getattr(import_module(place), name, None)
        if callable(own):
            found[id(own)] = answer(own)
        else:
            unknown.append(path)
    modules = [
        module
        for name, module in list(sys.modules.items())
        if f"{name}.".startswith("dask.array.")
    ]
    for module in modules:
        for name, value in list(vars(module).items()):
            if id(value) in found:
                setattr(module, name, found[id(value)])
    if unknown:
        warn(
            f"this version of tf32dtype does not support dask {dask.__version__}:"
            f" {', '.join(unknown)} round each chunk. Use a newer tf32dtype, or dask"
            " 2026.8",
            RuntimeWarning,
        )
