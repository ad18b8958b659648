"""dask's functions that are answered for our formats: the names, and their places."""

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

#: What answers each function of dask, given the function.
ANSWERS: dict[str, Callable[[Function], Function]] = {
    **{f"dask.array.reductions.{name}": reductions.statistic for name in _STATISTICS},
    "dask.array.routines.average": reductions.average,
    "dask.array.linalg.norm": reductions.norm,
    "dask.array.routines.matmul": products.matmul_answer,
    "dask.array.routines.tensordot": products.tensordot_answer,
    "dask.array.einsumfuncs.einsum": products.einsum_answer,
}


def install() -> None:
    """Put the answers in the place of dask's functions, in all of its modules."""
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
