"""Samples of a product: some rows and columns that round as in the whole product.

A scale of a whole matrix depends on its largest magnitude. So the row and the column
that have it are multiplied too, and left out of the figures. Tiles of 128 lines are
sampled as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hook.multiply import Rounded, Way
from ..hook.operand_format import TILE, OperandFormat

Array = NDArray[Any]
Indices = NDArray[np.intp]

#: Lines of a call that are measured: rows of the first operand, columns of the second.
ROWS, COLUMNS = 64, 256
#: Matrices of a stack that are measured.
MATRICES = 4
#: One in so many k is an outlier.
OUTLIERS = 1000


@dataclass(frozen=True)
class Operand:
    """A matrix and the lines of it that are measured: rows, or columns of the second.

    Parameters
    ----------
    whole : numpy.ndarray
        (m, k) of the first operand, (k, n) of the second. NaN and Inf are 0.
    which : int
        0 for the first operand, 1 for the second.
    lines : numpy.ndarray
        The lines that are measured.
    finite : numpy.ndarray
        Whether each of them was finite.
    part : numpy.ndarray
        These lines, and those that have the largest magnitudes: of all k, and of all
        but the outliers.
    """

    whole: Array
    which: int
    lines: Indices
    finite: NDArray[np.bool]
    part: Array
    #: the k whose values are replaced by zeros
    zeros: Indices | None = None

    def of(self, x: Any) -> Any:
        """Return the measured lines of an array of lines."""
        count = len(self.lines)
        return x[:count] if self.which == 0 else x[:, :count]

    @property
    def measured(self) -> Array:
        """The measured lines."""
        lines: Array = self.of(self.part)
        return lines

    def without(self, k: Indices) -> Operand:
        """Return the operand with zeros for some k."""
        return replace(self, part=self._zeroed(self.part, k), zeros=k)

    def _zeroed(self, x: Array, k: Indices) -> Array:
        x = x.copy()
        x[(slice(None), k) if self.which == 0 else k] = 0
        return x

    def given_to(self, way: Way) -> Array:
        """Return the lines that a way rounds as it rounds the whole matrix."""
        is_tiled = way.formats[self.which].scale == "tile"
        return self.measured if is_tiled else self.part

    def rounded(self, way: Way) -> Rounded:
        """Return the measured lines as a way rounds them."""
        format = way.formats[self.which]
        if not format.takes_parts:
            whole = self.whole
            if self.zeros is not None:
                whole = self._zeroed(whole, self.zeros)
            elements = way.round(whole, self.which).elements
            at = self.lines if self.which == 0 else (slice(None), self.lines)
            return Rounded(elements[at])
        elements, scales = way.round(self.given_to(way), self.which)
        if format.scale == "tile":
            return Rounded(elements)
        if scales is not None and scales.size > 1:
            scales = self.of(scales)
        return Rounded(self.of(elements), scales)


@dataclass(frozen=True)
class Sample:
    """Two operands, and the k that are outliers."""

    a: Operand
    b: Operand
    outliers: Indices

    @property
    def truth(self) -> Array:
        """The product of the measured lines in float64."""
        wide: Array = self.a.measured.astype(np.float64) @ self.b.measured.astype(
            np.float64
        )
        return wide

    def without_outliers(self) -> Sample:
        """Return the sample with zeros for the outliers."""
        a, b = self.a.without(self.outliers), self.b.without(self.outliers)
        return Sample(a, b, self.outliers)

    def product(self, way: Way) -> Array:
        """Return the elements of the whole product that are in measured lines."""
        if all(x.takes_parts for x in way.formats):
            whole = way.multiply(self.a.given_to(way), self.b.given_to(way))
            return whole[: len(self.a.lines), : len(self.b.lines)]
        with np.errstate(all="ignore"):
            return way.product(self.a.rounded(way), self.b.rounded(way))


def samples(
    a: Array, b: Array, by: int, band: int, rng: np.random.Generator
) -> Iterator[Sample]:
    """Yield samples of a product of stacks of matrices.

    Parameters
    ----------
    a, b : numpy.ndarray
        float32, (..., m, k) and (..., k, n).
    by : int
        The operand whose magnitudes make outliers: 0 or 1.
    band : int
        Lines that are chosen together: those of a tile, or 1.
    rng : Generator
        Chooses the lines, one in each of equal parts of the matrix.
    """
    a, b = a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])
    if not (a.size and b.size):
        return
    stack = chosen(len(a), MATRICES, 1, rng)
    for i in stack:
        x, of_x, good_x = _finite(a[i], 0)
        y, of_y, good_y = _finite(b[i], 1)
        k = len(of_x)
        count = max(1, k // OUTLIERS)
        magnitudes = (of_x, of_y)[by]
        top = np.argpartition(magnitudes, k - count)[k - count :]
        rows = chosen(len(x), max(ROWS // len(stack), band), band, rng)
        columns = chosen(y.shape[1], max(COLUMNS // len(stack), band), band, rng)
        yield Sample(
            _operand(x, 0, rows, good_x, of_x, top),
            _operand(y, 1, columns, good_y, of_y, top),
            top,
        )


def band_of(formats: list[OperandFormat]) -> int:
    """Return how many lines must be chosen together."""
    return TILE if any(format.scale == "tile" for format in formats) else 1


def chosen(count: int, most: int, band: int, rng: np.random.Generator) -> Indices:
    """Return up to `most` of `count` lines in order, in whole bands."""
    if count <= most:
        return np.arange(count)
    bands, wanted = count // band, most // band
    edges = np.arange(wanted + 1) * bands // wanted
    first = rng.integers(edges[:-1], edges[1:]) * band
    lines: Indices = (first[:, None] + np.arange(band)).reshape(-1)
    return lines


def _finite(x: Array, which: int) -> tuple[Array, Array, NDArray[np.bool]]:
    """Return a matrix without NaN and Inf, its magnitudes by k, and finite lines."""
    across = which  # the axis of lines
    magnitudes = np.maximum(x.max(axis=across), -x.min(axis=across))
    if np.isfinite(magnitudes).all():
        return x, magnitudes, np.ones(x.shape[across], bool)
    is_finite = np.isfinite(x)
    x = np.where(is_finite, x, np.float32(0))
    return x, np.abs(x).max(axis=across), is_finite.all(axis=1 - across)


def _operand(
    x: Array,
    which: int,
    lines: Indices,
    finite: NDArray[np.bool],
    magnitudes: Array,
    outliers: Indices,
) -> Operand:
    others = magnitudes.copy()
    others[outliers] = -1
    largest = [_line(x, which, int(np.argmax(of))) for of in (magnitudes, others)]
    part = np.ascontiguousarray(x.take([*lines, *largest], axis=which))
    return Operand(x, which, lines, finite[lines], part)


def _line(x: Array, which: int, k: int) -> int:
    """Return the line with the largest magnitude at a k."""
    return int(np.argmax(np.abs(x.take(k, axis=1 - which))))
