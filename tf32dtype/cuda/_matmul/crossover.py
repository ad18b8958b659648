"""Tables of measurements that show where emulation of float32 products is faster.

For each precision, a file tf32dtype/cuda/crossover/DEVICE.json has the speedup compared
with cuBLAS's float32 product, on a grid of M = N and K:

    {"device": "NVIDIA H100 80GB HBM3",
     "measured": {"driver": "...", "cuda": "...", ...},
     "sides": [64, 128, ...], "depths": [64, 128, ...],
     "speedup": {"bf16x9": [[of the first side, by depth], ...], ...}}

`python benchmarks/cuda/gpu.py` writes the file of a device on a machine that has it. A
release contains all files of the folder (package data in pyproject.toml). Without a
file, the strategy "performant" does not emulate. On a CPU it never does, because no
unit of a CPU is faster than its float32.
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
    """The measurements of a device."""

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
    """Return the path of a device's table."""
    return FOLDER / (re.sub(r"[^A-Za-z0-9]+", "_", device).strip("_") + ".json")


def write(table: Crossover) -> Path:
    """Write a table to the file of its device, and replace an existing file.

    Raises
    ------
    ValueError
        If the table does not have the form that this module describes.
    """
    _check(table)
    path = path_of(table.device)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, json.dumps(table._asdict(), indent=1) + "\n")
    read.cache_clear()
    return path


@cache
def read(device: str) -> Crossover | None:
    """Read the table of a device; return None if there is none.

    Raises
    ------
    ValueError
        If the file does not have the form that this module describes.
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
    """Return the indices of the grid points next to a value.

    There is one index if the value is a grid point, or above the last one.
    """
    last = len(grid) - 1
    return range(
        min(bisect_right(grid, value) - 1, last),
        min(bisect_left(grid, value), last) + 1,
    )


def is_faster(table: Crossover, precision: str, m: int, n: int, k: int) -> bool:
    """Return whether emulation multiplies (m, k) by (k, n) faster than float32.

    m and n stand for a square result with as many elements, m n. For a stack, pass the
    sizes of one matrix. Between grid points, emulation must be faster at all points
    next to the sizes; above the grid, at its last points. If m, n or k is below the
    smallest measured size, the result is False.
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
    """Return whether float32 operands of a product are split into components.

    Raises
    ------
    ValueError
        If the precision or the strategy is unknown.
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
