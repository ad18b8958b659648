"""A picture of where the errors of a product are: cells with their largest share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Most rows and columns of cells, of the text and of the SVG.
TEXT, SVG = (16, 64), (64, 96)
_SYMBOLS = ".o#"  # no element is wrong, some are, all are
_CELL = 8  # pixels
#: Classes of cells: the largest share up to 0.1 of the bound, up to 1, and wrong ones.
_OPACITY = (0.25, 0.6)


def cells(x: Array, most: tuple[int, int]) -> tuple[Array, Array, tuple[int, int]]:
    """Divide a matrix of shares into cells.

    Parameters
    ----------
    x : ndarray, shape (m, n)
        Shares of the bound.
    most : tuple of int
        The most rows and columns of cells.

    Returns
    -------
    largest, wrong : ndarray
        The largest share of each cell, and the part of its elements that is wrong.
    size : tuple of int
        Rows and columns of elements in a cell. They divide powers of two, as tiles do.
    """
    height, width = (
        _side(length, limit) for length, limit in zip(x.shape, most, strict=True)
    )
    m, n = x.shape
    rows, columns = -(-m // height), -(-n // width)
    padded = np.full((rows * height, columns * width), np.nan, x.dtype)
    padded[:m, :n] = x
    blocks = padded.reshape(rows, height, columns, width)
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(blocks, axis=(1, 3))
        wrong = (blocks > 1).sum((1, 3)) / (~np.isnan(blocks)).sum((1, 3))
    return largest, wrong, (height, width)


def _side(length: int, limit: int) -> int:
    side = 1
    while -(-length // side) > limit:
        side *= 2
    return side


def text_map(shares: Array) -> Iterator[str]:
    """Yield the lines of a picture of wrong elements of a matrix."""
    _, wrong, (height, width) = cells(shares, TEXT)
    yield f"map: a character is {height} x {width} elements; o: some wrong, #: all"
    for row in wrong:
        yield "  " + "".join(
            _SYMBOLS[0 if part == 0 else 2 if part > 0.9 else 1] for part in row
        )


def svg_map(shares: Array) -> str:
    """Return an SVG with a square for each cell of a matrix.

    It uses the classes "good" and "bad" of a page, and a class "axis".
    """
    largest, wrong, (height, width) = cells(shares, SVG)
    rows, columns = largest.shape
    m, n = shares.shape
    parts = [
        f'<svg viewBox="0 0 {columns * _CELL + 60} {rows * _CELL + 30}" role="img"'
        f' width="{columns * _CELL + 60}"'
        f' aria-label="errors of {m} x {n} elements, in cells of {height} x {width}">'
    ]
    for i, j in np.ndindex(rows, columns):
        name, opacity = "good", _OPACITY[int(largest[i, j] > 0.1)]
        if wrong[i, j] > 0:
            name, opacity = "bad", 1.0 if wrong[i, j] > 0.9 else 0.6
        parts.append(
            f'<rect x="{50 + j * _CELL}" y="{20 + i * _CELL}" width="{_CELL - 1}"'
            f' height="{_CELL - 1}" class="{name}" opacity="{opacity}"/>'
        )
    parts += [
        '<text x="50" y="14">column 0</text>',
        f'<text x="{50 + columns * _CELL}" y="14" text-anchor="end">{n - 1}</text>',
        f'<text x="44" y="{20 + _CELL}" text-anchor="end">row 0</text>',
        f'<text x="44" y="{20 + rows * _CELL}" text-anchor="end">{m - 1}</text>',
        "</svg>",
    ]
    return "\n".join(parts)
