"""`tf32dtype compare --device`: tensor cores against float64, and each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._measures.error_measures import (
    Distance,
    blocks,
    errors,
    largest_magnitude,
    power_of_two_scale,
    snr_db,
    squares,
)
from .._measures.format_facts import Facts, known
from .._measures.units import ACCUMULATOR, Unit
from .._text import Table, decibels, number
from . import CommandError

Array = NDArray[Any]


def formats(units: Sequence[Unit]) -> list[str]:
    """All formats that one of them has."""
    return [name for name in known() if any(name in unit.formats for unit in units)]


def check(units: Sequence[Unit], forms: Sequence[Facts]) -> None:
    """Whether each format is one that a unit has.

    Raises
    ------
    CommandError
        If not; it lists those that are.
    """
    has = formats(units)
    for form in forms:
        if form.name not in has:
            names = ", ".join(unit.name for unit in units)
            raise CommandError(f"{names}: no {form.name}, but {', '.join(has)}")


@dataclass
class Result(Distance):
    """How far a unit is from float64, gathered block by block."""

    unit: Unit
    form: Facts
    scales: tuple[float, float]
    exact_error_squares: float = 0.0  # of exact sums of the rounded operands

    @property
    def exact_snr(self) -> float:
        """In dB, of exact sums: what rounding the operands costs alone."""
        return snr_db(self.exact_error_squares, self.truth_squares)

    def take(self, truth: Array, exact: Array, product: Array) -> None:
        """Take in a block of the product, all without scales."""
        self.gather(product, truth)
        self.exact_error_squares += squares(errors(exact, truth))

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self.unit.record(),
            "format": self.form.name,
            "accumulator": ACCUMULATOR,
            "scales": dict(zip("ab", self.scales, strict=True)),
            "snr_db": self.snr,
            "snr_db_exact_sums": self.exact_snr,
            "largest_relative_error": self.largest_relative,
        }


@dataclass
class Pair:
    """How far two units are from each other, gathered block by block."""

    first: Unit
    second: Unit
    form: Facts
    elements: int = 0
    differing: int = 0
    largest_ulps: float = 0.0
    error_squares: float = 0.0
    squares: float = 0.0  # of the first one's results

    @property
    def snr(self) -> float:
        """In dB: what the second one has is the first one's and noise."""
        return snr_db(self.error_squares, self.squares)

    def take(self, first: Array, second: Array) -> None:
        """Take in a block of both products, in float32."""
        nans = np.isnan(first) + np.isnan(second).astype(int)
        ulps = np.abs(_places(first) - _places(second)).astype(np.float64)
        ulps = np.where(nans == 1, np.inf, np.where(nans == 2, 0, ulps))
        x, y = first.astype(np.float64), second.astype(np.float64)
        error = np.where(ulps == 0, 0, errors(y, x))
        signal = np.where(np.isfinite(x), x, 0)
        self.elements += ulps.size
        self.differing += int(np.count_nonzero(ulps))
        self.largest_ulps = max(self.largest_ulps, float(np.max(ulps)))
        self.error_squares += squares(error)
        self.squares += squares(signal)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        whole = math.isfinite(self.largest_ulps)
        return {
            "format": self.form.name,
            "first": self.first.record(),
            "second": self.second.record(),
            "elements": self.elements,
            "differing": self.differing,
            "largest_ulps": int(self.largest_ulps) if whole else self.largest_ulps,
            "snr_db": self.snr,
        }


def compare(
    a: Array,
    b: Array,
    units: Sequence[Unit],
    forms: Sequence[Facts],
    *,
    scale: bool = False,
) -> tuple[list[Result], list[Pair]]:
    """Compare products on tensor cores with the product in float64.

    Parameters
    ----------
    a, b : numpy.ndarray
        Finite matrices, (m, k) and (k, n), of any real dtype.
    units : sequence of Unit
        The tensor cores; each is used for the formats that it has.
    forms : sequence of Facts
        The formats that operands are rounded to, to nearest, ties to even.
    scale : bool
        Whether operands get scales in formats below 16 bits.

    Returns
    -------
    list of Result, list of Pair
        In the order of the formats.
    """
    truth_b = b.astype(np.float64)
    results, pairs = [], []
    with np.errstate(all="ignore"):
        for form in forms:
            here = [unit for unit in units if form.name in unit.formats]
            scales = (1.0, 1.0)
            if scale and form.bits < 16:
                scales = (
                    power_of_two_scale(largest_magnitude(a), form),
                    power_of_two_scale(largest_magnitude(b), form),
                )
            of_form = [Result(unit, form, scales) for unit in here]
            of_two = [Pair(*two, form) for two in combinations(here, 2)]
            rounded_b = _rounded(b, form, scales[1])
            exact_b = rounded_b.astype(np.float64)
            for rows in blocks(a.shape[0], b.shape[1]):
                truth = a[rows].astype(np.float64) @ truth_b
                rounded_a = _rounded(a[rows], form, scales[0])
                both = scales[0] * scales[1]
                exact = rounded_a.astype(np.float64) @ exact_b / both
                products = {unit: unit.multiply(rounded_a, rounded_b) for unit in here}
                for result in of_form:
                    product = products[result.unit].astype(np.float64) / both
                    result.take(truth, exact, product)
                for pair in of_two:
                    pair.take(products[pair.first], products[pair.second])
            results += of_form
            pairs += of_two
    return results, pairs


def _rounded(x: Array, form: Facts, scale: float) -> Array:
    return (x if scale == 1 else x.astype(np.float64) * scale).astype(form.dtype)


def _places(x: Array) -> Array:
    """Consecutive integers for consecutive float32; 0 for both zeros."""
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


# -- text ---------------------------------------------------------------------


def tables(
    results: Sequence[Result], pairs: Sequence[Pair], *, scaled: bool
) -> list[Table]:
    """The results, and the pairs if there are any."""
    found = [
        Table(
            f"A @ B on tensor cores, accumulators {ACCUMULATOR}, against float64"
            + ", scaled below 16 bits" * scaled,
            ("device", "instruction", "format", "SNR dB", "(exact)", "max rel. error"),
            [
                [
                    result.unit.device,
                    result.unit.instruction,
                    result.form.name,
                    decibels(result.snr),
                    f"({decibels(result.exact_snr)})",
                    number(result.largest_relative),
                ]
                for result in results
            ],
            keys=3,
        )
    ]
    if pairs:
        found.append(
            Table(
                "The same, two against each other",
                ("format", "one", "other", "differ", "%", "max ulps", "SNR dB"),
                [
                    [
                        pair.form.name,
                        pair.first.name,
                        pair.second.name,
                        str(pair.differing),
                        number(100 * pair.differing / pair.elements),
                        number(pair.largest_ulps, 4),
                        decibels(pair.snr),
                    ]
                    for pair in pairs
                ],
                keys=3,
            )
        )
    return found
