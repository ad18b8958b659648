"""Find the ranges of k whose products are missing from results, or counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .product import Product

Array = NDArray[Any]

#: The most unknowns of a fit, and the fewest elements for each of them.
_UNKNOWNS, _ELEMENTS = 512, 2
#: The fewest elements to fit.
_LEAST = 6
#: The share of the residual that a fit may leave.
_LEFT = 0.2


def k_ranges(part: Product, d: Array, wrong: Array) -> Iterator[tuple[int, int, int]]:
    """Find the ranges of k that explain the difference of d to its exact values.

    The residual is fitted by the sums of pieces of k. A weight of -1 means that the
    piece is missing, and 1 that it is counted twice. The pieces become shorter until
    they have one k, first over the range found, then only at its ends.

    Parameters
    ----------
    part : Product
        The product of a sample of rows and columns.
    d : ndarray of float64
        Its results.
    wrong : ndarray of bool
        The elements that are off.

    Yields
    ------
    int, int, int
        The first k, the k after the last one, and how often the range counts.
    """
    exact = part.values().exact
    i, j = np.nonzero(wrong & np.isfinite(d) & np.isfinite(exact))
    if len(i) < _LEAST:
        return
    residual = (d - exact)[i, j]
    a, b = part.scaled()
    most = min(_UNKNOWNS, len(i) // _ELEMENTS)
    start, end, inner = 0, part.k, (0, 0)
    step = part.k + 1
    while step > 1:
        span = end - start - (inner[1] - inner[0])
        step = min(step - 1, max(1, -(-span // most)))
        edges = [*range(start, inner[0] or end, step)]
        if inner[1]:
            edges += [inner[0], *range(inner[1], end, step)]
        stops = [*edges[1:], end]
        sums = np.stack(
            [
                (a[i, k:stop] * b[k:stop, j].T).sum(1)
                for k, stop in zip(edges, stops, strict=True)
            ],
            axis=1,
        )
        weights, *_ = np.linalg.lstsq(sums, residual, rcond=None)
        left = np.abs(residual - sums @ weights)
        if not np.median(left) <= _LEFT * np.median(np.abs(residual)):
            return
        here = np.abs(weights) > 0.5
        if not here.any():
            return
        first, last = np.flatnonzero(here)[[0, -1]]
        found = edges[first], stops[last]
        times = 1 + int(np.round(np.median(weights[first : last + 1])))
        yield (*found, times)
        start, end = max(0, found[0] - step), min(part.k, found[1] + step)
        whole = found[0] + step, found[1] - step
        inner = whole if whole[1] - whole[0] > 2 * step else (0, 0)
