"""`tf32dtype compare --precision`: products of float32 results, against float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import blocks as arrays_of_blocks
from .. import matmul
from .._matmul.precisions import PRECISIONS, Precision, find_precision
from ..blocks.formats import formats as block_formats
from . import CommandError
from .error_measures import Distance, blocks
from .format_facts import facts, known
from .text import Table, decibels, number, size

Array = NDArray[Any]


class Way(NamedTuple):
    """A way to multiply: in a precision, or with both operands in a block format."""

    name: str
    precision: Precision | None  # None: a block format

    @property
    def products(self) -> int:
        """How many products of parts there are for one of the operands."""
        if self.precision is None:
            return block_formats[self.name].levels ** 2
        parts = range(self.precision.parts)
        return sum(i + j < self.precision.split_orders for i in parts for j in parts)

    def multiply(self, a: Array, b: Array) -> tuple[Array, int]:
        """The product in float32, and the bytes of what is multiplied."""
        if self.precision is None:
            packed = arrays_of_blocks.quantize(a, self.name)
            other = arrays_of_blocks.quantize(b, self.name, axis=0)
            return packed @ other, packed.nbytes + other.nbytes
        x, y = a.astype(np.float32), b.astype(np.float32)
        itemsize = facts(self.precision.format).dtype.itemsize
        count = self.precision.parts * itemsize * (a.size + b.size)
        return matmul(x, y, precision=self.precision.short), count


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
        """What decides between equal bytes."""
        return self.way.products

    def take(self, truth: Array, product: Array) -> None:
        """Take in rows of the product."""
        self.gather(product.astype(np.float64), truth)
        self.not_finite += int(np.count_nonzero(~np.isfinite(product)))

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "precision": self.name,
            "snr_db": self.snr,
            "largest_relative_error": self.largest_relative,
            "not_finite": self.not_finite,
            "products": self.way.products,
            "bytes": self.bytes,
        }


def select(names: Sequence[str]) -> list[Way]:
    """The precisions and block formats of these names.

    Raises
    ------
    CommandError
        For a name that is neither; it lists the known ones.
    """
    return [_find(name) for name in names]


def _find(name: str) -> Way:
    if name in block_formats:
        return Way(name, None)
    try:
        precision = find_precision(name)
    except ValueError:
        shorts = ", ".join(precision.short for precision in PRECISIONS)
        hint = f"; {name} is one of --formats" if name in known() else ""
        raise CommandError(
            f"unknown precision {name!r}; known are {shorts}, and the block formats"
            f" {', '.join(block_formats)}{hint}"
        ) from None
    return Way(precision.short, precision)


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
    """The results as text."""
    header = "precision", "SNR dB", "max rel. error", "Inf, NaN", "products", "bytes"
    return Table(
        "A @ B in each precision, results in float32, against float64",
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
