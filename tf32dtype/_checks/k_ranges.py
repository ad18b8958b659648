"""Find the ranges of k whose products are missing from results, or counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .product import Product

Array = NDArray[Any]

#: The most unknowns of a fit: pieces of k whose sums are tried as a whole.
_PIECES = 512


def k_ranges(part: Product, d: Array, wrong: Array) -> Iterator[tuple[int, int, int]]:
    """Find the ranges of k that explain what d lacks.

    The residual is fitted by the sums of pieces of k. A weight of -1 means that the
    piece is missing, and 1 that it is counted twice.

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
    used = wrong & np.isfinite(d) & np.isfinite(exact)
    i, j = np.nonzero(used)
    if not len(i):
        return
    residual = (d - exact)[used]
    a, b = part.a * part.alpha, part.b
    if part.scale_a is not None or part.scale_b is not None:
        return
    start, end = 0, part.k
    while True:
        step = max(1, -(-(end - start) // min(_PIECES, max(len(i) // 2, 1))))
        edges = np.arange(start, end, step)
        sums = np.stack(
            [
                (a[i, k : min(k + step, end)] * b[k : min(k + step, end), j].T).sum(1)
                for k in edges
            ],
            axis=1,
        )
        weights = np.linalg.lstsq(sums, residual, rcond=None)[0]
        here = np.abs(weights) > 0.25
        if not here.any():
            return
        first, last = np.flatnonzero(here)[[0, -1]]
        if step == 1:
            times = 1 + int(np.round(np.median(weights[first : last + 1])))
            yield int(edges[first]), int(edges[last]) + 1, times
            return
        middle = weights[first : last + 1]
        times = 1 + int(np.round(np.median(middle)))
        whole = int(edges[first]), min(int(edges[last]) + step, end)
        yield (*whole, times)
        # The ends of the range lie within the first and the last piece.
        wide = whole[1] - whole[0] + 2 * step
        start, end = max(0, whole[0] - step), min(part.k, whole[1] + step)
        if wide <= _PIECES:
            continue
        yield from _by_ends(a, b, i, j, residual, whole, step, times)
        return


def _by_ends(
    a: Array,
    b: Array,
    i: Array,
    j: Array,
    residual: Array,
    whole: tuple[int, int],
    step: int,
    times: int,
) -> Iterator[tuple[int, int, int]]:
    """Find both ends of a long range, from the k around them."""
    first, last = whole
    k = a.shape[1]
    inner = slice(min(first + step, last), max(last - step, first))
    middle = (a[i, inner] * b[inner, j].T).sum(1) * (times - 1)
    ends = [
        np.arange(max(0, first - step), inner.start),
        np.arange(inner.stop, min(k, last + step)),
    ]
    ks = np.concatenate(ends)
    terms = a[np.ix_(i, ks)] if False else a[i][:, ks] * b[ks][:, j].T
    weights = np.linalg.lstsq(terms, residual - middle, rcond=None)[0]
    there = ks[np.abs(weights) > 0.5]
    before = there[there < inner.start]
    after = there[there >= inner.stop]
    start = int(before.min()) if len(before) else inner.start
    stop = int(after.max()) + 1 if len(after) else inner.stop
    yield start, stop, times
