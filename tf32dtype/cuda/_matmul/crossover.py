"""Where emulation of float32 products is faster than float32: measured, per device.

A file tf32dtype/cuda/crossover/DEVICE.json has, of each precision, how many times as
fast as cuBLAS's float32 product it was on a grid of M = N and K:

    {"device": "NVIDIA H100 80GB HBM3",
     "measured": {"driver": "...", "cuda": "...", ...},
     "sides": [64, 128, ...], "depths": [64, 128, ...],
     "speedup": {"bf16x9": [[of the first side, by depth], ...], ...}}

`python benchmarks/cuda/gpu.py` writes one on a machine that has the device, and a
release ships those that are there (package data in pyproject.toml). Without one
"performant" does not emulate. On a CPU it never does, as a CPU has nothing that is
faster than its float32.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ..._base.whole_files import write_whole
from ..._base.wording import one_of
from ..._matmul.precisions import find_precision
from .._runtime.backend import current

Strategy = Literal["performant", "eager"]
_KNOWN = get_args(Strategy)

FOLDER = Path(__file__).parents[1] / "crossover"


class Crossover(NamedTuple):
    """What was measured on a device."""

    device: str
    measured: dict[str, Any]
    sides: list[int]
    depths: list[int]
    speedup: dict[str, list[list[float]]]


def _check(table: Crossover) -> None:
    for name in ("sides", "depths"):
        values = getattr(table, name)
        if not values or values != sorted(set(values)) or values[0] < 1:
            raise ValueError(
                f"{name} must be positive numbers in ascending order; got {values!r}"
            )
    for precision, rows in table.speedup.items():
        find_precision(precision)
        if [len(row) for row in rows] != [len(table.depths)] * len(table.sides):
            raise ValueError(
                f"speedup of {precision} must be {len(table.sides)} rows of"
                f" {len(table.depths)} values"
            )


def path_of(device: str) -> Path:
    """Where a device's table is."""
    return FOLDER / (re.sub(r"[^A-Za-z0-9]+", "_", device).strip("_") + ".json")


def write(table: Crossover) -> Path:
    """Keep a table for its device, instead of one that is there.

    Raises
    ------
    ValueError
        If it is not as this module describes.
    """
    _check(table)
    path = path_of(table.device)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, json.dumps(table._asdict(), indent=1) + "\n")
    read.cache_clear()
    return path


@cache
def read(device: str) -> Crossover | None:
    """A device's table; None if there is none.

    Raises
    ------
    ValueError
        If it is not as this module describes.
    """
    path = path_of(device)
    if not path.is_file():
        return None
    try:
        table = Crossover(**json.loads(path.read_text()))
        _check(table)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    if table.device != device:
        raise ValueError(f"{path} must be for {device}; got a table of {table.device}")
    return table


def _around(grid: list[int], value: float) -> range:
    """The places in a grid next to a value: one where it is met, or beyond the end."""
    last = len(grid) - 1
    return range(
        min(bisect_right(grid, value) - 1, last),
        min(bisect_left(grid, value), last) + 1,
    )


def is_faster(table: Crossover, precision: str, m: int, n: int, k: int) -> bool:
    """Whether a product of (m, k) and (k, n) is faster so than in float32.

    A product that is not square is taken for the square one of as many elements, m n.
    Matrices of a stack are taken one by one. Between points of the grid all that are
    next to it must be faster, beyond its end its last ones. Where m, n or k is less
    than the least that was measured, it is not.
    """
    rows = table.speedup.get(precision)
    side = (m * n) ** 0.5
    if rows is None or min(m, n) < table.sides[0] or k < table.depths[0]:
        return False
    return all(
        rows[i][j] > 1
        for i in _around(table.sides, side)
        for j in _around(table.depths, k)
    )


def emulates(precision: str, strategy: Strategy, m: int, n: int, k: int) -> bool:
    """Whether a product is computed of parts.

    Raises
    ------
    ValueError
        For an unknown precision or strategy.
    """
    row = find_precision(precision)
    if strategy not in _KNOWN:
        raise ValueError(one_of("strategy", strategy, _KNOWN))
    if row.components == 1:
        return False
    if strategy == "eager":
        return True
    table = read(current().name())
    return table is not None and is_faster(table, row.short, m, n, k)
