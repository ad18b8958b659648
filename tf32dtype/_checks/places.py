"""Say in words where the wrong elements of a matrix are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.text import counted

Array = NDArray[Any]

#: Sides of tiles that kernels have.
_TILES = (256, 192, 128, 96, 64, 48, 32, 16, 8)
_MOST = 4  # ranges or tiles that are named
#: The share of a place that has to be wrong.
_FULL = 0.9


def ranges(indices: Array) -> list[tuple[int, int]]:
    """Return the first and the last index of each run of sorted indices."""
    if not len(indices):
        return []
    breaks = np.flatnonzero(np.diff(indices) > 1)
    starts = indices[np.r_[0, breaks + 1]]
    ends = indices[np.r_[breaks, len(indices) - 1]]
    return [(int(i), int(j)) for i, j in zip(starts, ends, strict=True)]


def listed(indices: Array, one: str, several: str) -> str:
    """Name indices: "row 3", "rows 0-7, 16-23"."""
    found = ranges(indices)
    words = [f"{i}" if i == j else f"{i}-{j}" for i, j in found[:_MOST]]
    more = f" and {len(found) - _MOST} more ranges" if len(found) > _MOST else ""
    return f"{one if len(indices) == 1 else several} {', '.join(words)}{more}"


def where(wrong: Array) -> str:
    """Say where the True elements of a matrix are.

    Parameters
    ----------
    wrong : ndarray of bool, shape (m, n)
        At least one element is True.

    Returns
    -------
    str
        All elements, whole rows or columns, tiles, or the box that holds them.
    """
    m, n = wrong.shape
    total = int(wrong.sum())
    if total == 1:
        i, j = np.argwhere(wrong)[0].tolist()
        return f"[{i}, {j}]"
    if total > _FULL * wrong.size:
        return "all elements" if total == wrong.size else "nearly all elements"
    rows, columns = np.flatnonzero(wrong.any(1)), np.flatnonzero(wrong.any(0))
    box = len(rows) * len(columns)
    if total > _FULL * box:
        if len(columns) == n:
            return listed(rows, "row", "rows")
        if len(rows) == m:
            return listed(columns, "column", "columns")
        return (
            f"{listed(rows, 'row', 'rows')} of {listed(columns, 'column', 'columns')}"
        )
    tiles = _tiles(wrong, total)
    if tiles:
        return tiles
    spread = "in all rows and columns"
    if len(rows) < m or len(columns) < n:
        spread = f"in {counted(len(rows), 'row')} and {counted(len(columns), 'column')}"
    return f"{total:,} elements {spread}"


def _tiles(wrong: Array, total: int) -> str:
    """Name the tiles that hold all wrong elements, or nothing if there are none."""
    m, n = wrong.shape
    for height, width in ((h, w) for h in _TILES for w in _TILES):
        if height > m or width > n or (height >= m and width >= n):
            continue
        padded = np.zeros((-(-m // height) * height, -(-n // width) * width), bool)
        padded[:m, :n] = wrong
        shape = len(padded) // height, height, -1, width
        counts = padded.reshape(shape).sum(axis=(1, 3))
        hit = counts > 0
        if total <= _FULL * hit.sum() * height * width or hit.mean() > 0.5:
            continue
        named = [f"({i}, {j})" for i, j in np.argwhere(hit)[:_MOST]]
        more = f" and {int(hit.sum()) - _MOST} more" if hit.sum() > _MOST else ""
        kind = "tile" if hit.sum() == 1 else "tiles"
        return f"{kind} {', '.join(named)}{more} of {height} x {width}"
    return ""
