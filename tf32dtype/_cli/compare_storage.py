"""`tf32dtype compare` of one array: what storing it in each format loses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import blocks as arrays_of_blocks
from .._base.text import Table, decibels, number, size
from .._measures.error_measures import (
    BLOCK_ELEMENTS,
    Distance,
    largest_magnitude,
    overflows,
    power_of_two_scale,
    underflows,
)
from .._measures.format_facts import Facts
from ..blocks.formats import formats as block_formats

Array = NDArray[Any]


@dataclass
class Stored(Distance):
    """The errors of an array stored in one format, gathered piece by piece."""

    name: str
    bits: float  # of a number, scales of blocks included
    scale: float = 1.0
    bytes: int = 0
    largest: float = 0.0
    overflows: int | None = None  # blocks have none: their scales follow the numbers
    underflows: int | None = None

    @property
    def cost(self) -> float:
        """The cost that decides between results of equal bytes."""
        return self.bits

    def take(self, truth: Array, stored: Array) -> None:
        """Take in a piece, both in float64 and without a scale."""
        error = self.gather(stored, truth)
        self.largest = max(self.largest, float(error.max()))

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "format": self.name,
            "bits_per_value": self.bits,
            "scale": self.scale,
            "snr_db": self.snr,
            "largest_relative_error": self.largest_relative,
            "largest_error": self.largest,
            "overflows": self.overflows,
            "underflows": self.underflows,
            "bytes": self.bytes,
        }


def store(
    x: Array,
    forms: Sequence[Facts | str],
    advance: Callable[[], None],
    *,
    scale: bool = False,
) -> list[Stored]:
    """Compare an array in each format with the array as it is.

    Parameters
    ----------
    x : numpy.ndarray
        Finite numbers of any real dtype.
    forms : sequence of Facts or str
        Formats, and names of block formats, whose blocks lie along the last axis.
    advance : callable
        Called after each format.
    scale : bool
        Whether formats below 16 bits get a scale.

    Returns
    -------
    list of Stored
        In the order of the formats.
    """
    results = []
    with np.errstate(all="ignore"):
        for form in forms:
            if isinstance(form, str):
                results.append(_in_blocks(x, form))
            else:
                results.append(_by_itself(x, form, scale=scale and form.bits < 16))
            advance()
    return results


def _by_itself(x: Array, form: Facts, *, scale: bool) -> Stored:
    by = power_of_two_scale(largest_magnitude(x), form) if scale else 1.0
    count = form.dtype.itemsize * x.size
    found = Stored(form.name, 8.0 * form.dtype.itemsize, by, count)
    found.overflows = found.underflows = 0
    flat = x.ravel(order="K")
    for start in range(0, flat.size, BLOCK_ELEMENTS):
        piece = flat[start : start + BLOCK_ELEMENTS]
        truth = piece.astype(np.float64)
        rounded = (piece if by == 1 else truth * by).astype(form.dtype)
        found.take(truth, rounded.astype(np.float64) / by)
        found.overflows += overflows(form, truth * by, rounded)
        found.underflows += underflows(form, truth * by, rounded)
    return found


def _in_blocks(x: Array, name: str) -> Stored:
    packed = arrays_of_blocks.quantize(np.atleast_1d(x), block_formats[name])
    found = Stored(name, packed.bits_per_value, bytes=packed.nbytes)
    rest = packed.dequantize(np.float64)
    found.take(x.astype(np.float64).reshape(rest.shape), rest)
    return found


def table(results: Sequence[Stored], *, scaled: bool) -> Table:
    """Return the results as text."""
    header = ["format", "bits", "SNR dB", "max rel. error", "max error"]
    return Table(
        "Error of storing the array in each format" + ", scaled below 16 bits" * scaled,
        [*header, "overflows", "underflows", "bytes"],
        [
            [
                stored.name,
                f"{stored.bits:g}",
                decibels(stored.snr),
                number(stored.largest_relative),
                number(stored.largest),
                "-" if stored.overflows is None else str(stored.overflows),
                "-" if stored.underflows is None else str(stored.underflows),
                size(stored.bytes),
            ]
            for stored in results
        ],
    )
