"""`tf32dtype compare --device`: tensor cores against float64, and each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._base.errors import UserError
from .._base.text import Table, decibels, number
from .._measures.differences import Differences
from .._measures.error_measures import (
    Distance,
    blocks,
    errors,
    largest_magnitude,
    power_of_two_scale,
    snr_db,
    squares,
)
from .._measures.format_facts import Facts, facts, known
from .._measures.units import ACCUMULATOR, Unit
from .._measures.ways import Way

Array = NDArray[Any]

#: A k that is a multiple of the size of all blocks.
_FEW = 256


class Subject(Protocol):
    """A way to round operands and to multiply them, on a device or without one."""

    @property
    def name(self) -> str:
        """The name that the user gave."""

    def has(self, unit: Unit) -> bool:
        """Return whether a unit multiplies such operands."""

    def on(self, unit: Unit) -> Unit:
        """Return the unit with the instruction that multiplies such operands."""

    def operands(
        self, a: Array, b: Array, scale: bool
    ) -> tuple[Any, Any, tuple[float, float]]:
        """Both, and their scales."""

    def multiply(self, unit: Unit, a: Any, b: Any) -> Array:
        """In float32."""

    def exact(self, x: Any) -> Array | None:
        """Return an operand in float64; None: it stands for more than is multiplied."""


class Plain(NamedTuple):
    """A format, each number by itself."""

    form: Facts

    @property
    def name(self) -> str:
        return self.form.name

    def has(self, unit: Unit) -> bool:
        return self.form.name in unit.formats

    def on(self, unit: Unit) -> Unit:
        return unit.of(self.form.name)

    def operands(
        self, a: Array, b: Array, scale: bool
    ) -> tuple[Array, Array, tuple[float, float]]:
        scales = (1.0, 1.0)
        if scale and self.form.bits < 16:
            first, second = (largest_magnitude(x) for x in (a, b))
            scales = (
                power_of_two_scale(first, self.form),
                power_of_two_scale(second, self.form),
            )
        return (
            _rounded(a, self.form, scales[0]),
            _rounded(b, self.form, scales[1]),
            scales,
        )

    def multiply(self, unit: Unit, a: Array, b: Array) -> Array:
        return unit.multiply(a, b)

    def exact(self, x: Array) -> Array | None:
        return x.astype(np.float64)


class Named(NamedTuple):
    """A precision, whose parts the unit multiplies, or a block format."""

    way: Way

    @property
    def name(self) -> str:
        return self.way.name

    def has(self, unit: Unit) -> bool:
        if self.way.precision is not None:
            return unit.has(self.way.precision)
        few = np.zeros((1, _FEW), np.float32)
        x, y, _ = self.operands(few, few.T, False)
        try:
            self.multiply(unit, x, y)
        except (TypeError, ValueError):
            return False
        return True

    def on(self, unit: Unit) -> Unit:
        precision = self.way.precision
        return unit if precision is None else unit.of(precision.format)

    def operands(
        self, a: Array, b: Array, scale: bool
    ) -> tuple[Any, Any, tuple[float, float]]:
        return self.way.prepare(a, -1), self.way.prepare(b, 0), (1.0, 1.0)

    def multiply(self, unit: Unit, a: Any, b: Any) -> Array:
        if self.way.precision is not None:
            return self.way._replace(unit=unit).product(a, b)
        return unit.multiply_blocks(a, b)

    def exact(self, x: Any) -> Array | None:
        if self.way.precision is None:
            found: Array = x.dequantize(np.float64)
            return found
        return None


def formats(units: Sequence[Unit]) -> list[str]:
    """Return all formats that one of them has."""
    return [name for name in known() if any(name in unit.formats for unit in units)]


def check(units: Sequence[Unit], subjects: Sequence[Subject]) -> None:
    """Whether a unit multiplies each.

    Raises
    ------
    UserError
        If not; it lists the formats that they have.
    """
    for subject in subjects:
        if not any(subject.has(unit) for unit in units):
            names = ", ".join(unit.name for unit in units)
            has = ", ".join(formats(units))
            raise UserError(
                f"{names} does not support {subject.name}; use one of {has}"
            )


@dataclass
class Result(Distance):
    """How far a unit is from float64, gathered block by block."""

    unit: Unit
    format: str
    scales: tuple[float, float]
    #: squared errors of exact sums of the rounded operands; None: they have components
    exact_error_squares: float | None = 0.0

    @property
    def exact_snr(self) -> float | None:
        """The ratio in dB with exact sums: only the operands' rounding counts."""
        if self.exact_error_squares is None:
            return None
        return snr_db(self.exact_error_squares, self.truth_squares)

    def take(self, truth: Array, exact: Array | None, product: Array) -> None:
        """Take in a block of the product, all without scales."""
        self.gather(product, truth)
        if exact is None or self.exact_error_squares is None:
            self.exact_error_squares = None
        else:
            self.exact_error_squares += squares(errors(exact, truth))

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            **self.unit.record(),
            "format": self.format,
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
    format: str
    #: differences of the two units' results
    found: Differences = field(default_factory=lambda: Differences(facts(ACCUMULATOR)))

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "format": self.format,
            "first": self.first.record(),
            "second": self.second.record(),
            **self.found.record(),
        }


def compare(
    a: Array,
    b: Array,
    units: Sequence[Unit],
    subjects: Sequence[Subject],
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
        for subject in subjects:
            here = [subject.on(unit) for unit in units if subject.has(unit)]
            x, y, scales = subject.operands(a, b, scale)
            both = scales[0] * scales[1]
            of_form = [Result(unit, subject.name, scales) for unit in here]
            of_two = [Pair(*two, subject.name) for two in combinations(here, 2)]
            products = {unit: subject.multiply(unit, x, y) for unit in here}
            exact_a, exact_b = subject.exact(x), subject.exact(y)
            for rows in blocks(a.shape[0], b.shape[1]):
                truth = a[rows].astype(np.float64) @ truth_b
                exact = None
                if exact_a is not None and exact_b is not None:
                    exact = exact_a[rows] @ exact_b / both
                for result in of_form:
                    product = products[result.unit][rows].astype(np.float64) / both
                    result.take(truth, exact, product)
                for pair in of_two:
                    pair.found.take(
                        products[pair.first][rows], products[pair.second][rows]
                    )
            results += of_form
            pairs += of_two
    return results, pairs


def _rounded(x: Array, form: Facts, scale: float) -> Array:
    return (x if scale == 1 else x.astype(np.float64) * scale).astype(form.dtype)


# -- text ---------------------------------------------------------------------


def tables(
    results: Sequence[Result], pairs: Sequence[Pair], *, scaled: bool
) -> list[Table]:
    """Return the results, and the pairs if there are any."""
    found = [
        Table(
            f"Error of A @ B ({ACCUMULATOR}) on tensor cores, relative to float64"
            + ", scaled below 16 bits" * scaled,
            (
                "device",
                "instruction",
                "format",
                "SNR dB",
                "exact SNR dB",
                "max rel. error",
            ),
            [
                [
                    result.unit.device,
                    result.unit.instruction or "",
                    result.format,
                    decibels(result.snr),
                    "-" if result.exact_snr is None else decibels(result.exact_snr),
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
                "Pairwise comparison",
                (
                    "format",
                    "first",
                    "second",
                    "differing",
                    "differing %",
                    "median ulps",
                    "max ulps",
                    "SNR dB",
                ),
                [
                    [
                        pair.format,
                        pair.first.name,
                        pair.second.name,
                        str(pair.found.differing),
                        number(100 * pair.found.differing / pair.found.elements),
                        number(pair.found.median_ulps, 4),
                        number(pair.found.largest_ulps, 4),
                        decibels(pair.found.snr),
                    ]
                    for pair in pairs
                ],
                keys=3,
            )
        )
    return found
