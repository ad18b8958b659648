"""`tf32dtype compare --precision`: products of float32 results, against float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.text import Table, decibels, number, size
from .._measures.error_measures import Distance, blocks
from .._measures.ways import Way

Array = NDArray[Any]


@dataclass
class Result(Distance):
    """How far a way is from float64."""

    way: Way
    bytes: int
    not_finite: int = 0

    @property
    def name(self) -> str:
        """The precision, or block format."""
        return self.way.name

    @property
    def cost(self) -> int:
        """The cost that decides between results of equal bytes."""
        return self.way.products

    def take(self, truth: Array, product: Array) -> None:
        """Take in rows of the product."""
        self.gather(product.astype(np.float64), truth)
        self.not_finite += int(np.count_nonzero(~np.isfinite(product)))

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "precision": self.name,
            "snr_db": self.snr,
            "largest_relative_error": self.largest_relative,
            "not_finite": self.not_finite,
            "products": self.way.products,
            "bytes": self.bytes,
        }


def compare(
    a: Array, b: Array, ways: Sequence[Way], advance: Callable[[], None]
) -> list[Result]:
    """Compare the product in each way with the product in float64.

    Parameters
    ----------
    a, b : numpy.ndarray
        Finite matrices, (m, k) and (k, n), of any real dtype. They are rounded to
        float32 first, but for block formats.
    ways : sequence of Way
        The ways.
    advance : callable
        Called after each way.

    Returns
    -------
    list of Result
        In the order of the ways.
    """
    results = []
    truth_b = b.astype(np.float64)
    with np.errstate(all="ignore"):
        for way in ways:
            product, count = way.multiply(a, b)
            result = Result(way, count + product.nbytes)
            for rows in blocks(*product.shape):
                result.take(a[rows].astype(np.float64) @ truth_b, product[rows])
            results.append(result)
            advance()
    return results


def table(results: Sequence[Result]) -> Table:
    """Return the results as text."""
    header = "precision", "SNR dB", "max rel. error", "Inf, NaN", "matmuls", "bytes"
    return Table(
        "Error of A @ B (float32) in each precision, relative to float64",
        header,
        [
            [
                result.name,
                decibels(result.snr),
                number(result.largest_relative),
                str(result.not_finite),
                str(result.way.products),
                size(result.bytes),
            ]
            for result in results
        ],
    )
