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
_TICKS = 4  # numbers of rows and of columns
#: The largest share of small errors, and the part of a cell that is nearly all of it.
_SMALL, _ALL = 0.1, 0.9
#: Classes and opacities: small errors, errors within the bound, some and all wrong.
_CLASSES = (("good", 0.25), ("good", 0.6), ("bad", 0.6), ("bad", 1.0))


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
            _SYMBOLS[0 if part == 0 else 2 if part > _ALL else 1] for part in row
        )


def svg_map(shares: Array) -> str:
    """Return an SVG with a square for each cell of a matrix.

    It uses the classes "good" and "bad" of a page, and a class "axis".
    """
    largest, wrong, (height, width) = cells(shares, SVG)
    rows, columns = largest.shape
    m, n = shares.shape
    classes = np.where(largest > _SMALL, 1, 0)
    classes = np.where(wrong > 0, np.where(wrong > _ALL, 3, 2), classes)
    wide, high = columns * _CELL + 60, rows * _CELL + 30
    parts = [
        f'<svg viewBox="0 0 {wide} {high}" role="img" width="{wide}" aria-label="errors'
        f' of {m} x {n} elements, in cells of {height} x {width}">'
    ]
    for i, row in enumerate(classes):
        begins = np.flatnonzero(np.diff(row, prepend=-1))
        for j, end in zip(begins, [*begins[1:], columns], strict=True):
            name, opacity = _CLASSES[row[j]]
            parts.append(
                f'<rect x="{50 + j * _CELL}" y="{20 + i * _CELL}"'
                f' width="{(end - j) * _CELL}" height="{_CELL}" class="{name}"'
                f' opacity="{opacity}"/>'
            )
    for part in range(_TICKS):
        j, i = (length * part // _TICKS for length in (columns, rows))
        parts += [
            f'<text x="{50 + j * _CELL}" y="14">{j * width}</text>',
            f'<text x="44" y="{20 + (i + 1) * _CELL}" text-anchor="end">{i * height}'
            "</text>",
        ]
    return "\n".join([*parts, "</svg>"])
