"""`tf32dtype compare`: the product in each format against that in float64."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._base.text import Table, decibels, number, size
from .._measures.error_measures import (
    Distance,
    blocks,
    errors,
    largest_magnitude,
    overflows,
    power_of_two_scale,
    snr_db,
    squares,
    underflows,
)
from .._measures.format_facts import Facts

Array = NDArray[Any]

_HEADER = (
    "format",
    "SNR dB",
    "sums SNR dB",
    "max rel. error",
    "overflows A,B,C",
    "underflows A,B,C",
    "bytes",
)
_TENSORS = ("a", "b", "result")


@dataclass(frozen=True)
class Scales:
    """The factors that numbers are multiplied by before they are rounded."""

    a: float = 1.0
    b: float = 1.0
    result: float = 1.0


@dataclass
class Loss(Distance):
    """The errors of one format, gathered block by block."""

    form: Facts
    scales: Scales
    bytes: int
    sum_error_squares: float = 0.0  # of the unrounded float32 sums
    overflows: Counter[str] = field(default_factory=Counter)
    underflows: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """The format."""
        return self.form.name

    @property
    def cost(self) -> int:
        """The cost that decides between results of equal bytes."""
        return self.form.bits

    @property
    def sum_snr(self) -> float:
        """In dB, of the float32 sums."""
        return snr_db(self.sum_error_squares, self.truth_squares)

    def round(self, name: str, x: Array) -> Array:
        """Return numbers of `a`, `b` or `result` in the format, with their scale."""
        scale = getattr(self.scales, name)
        return (x if scale == 1 else x.astype(np.float64) * scale).astype(
            self.form.dtype
        )

    def count(self, name: str, exact: Array, rounded: Array) -> None:
        """Count what left the range when `exact`, in float64, was rounded."""
        exact = exact * getattr(self.scales, name)
        self.overflows[name] += overflows(self.form, exact, rounded)
        self.underflows[name] += underflows(self.form, exact, rounded)

    def take(self, truth: Array, rounded_a: Array, rounded_b: Array) -> None:
        """Take in a block of the product."""
        sums = _float32_product(rounded_a, rounded_b).astype(np.float64)
        sums /= self.scales.a * self.scales.b
        rounded = self.round("result", sums)
        self.count("result", np.where(np.isfinite(sums), sums, truth), rounded)
        result = rounded.astype(np.float64) / self.scales.result
        self.gather(result, truth)
        self.sum_error_squares += squares(errors(sums, truth))

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "format": self.form.name,
            "scales": asdict(self.scales),
            "snr_db": self.snr,
            "snr_db_float32_sums": self.sum_snr,
            "largest_relative_error": self.largest_relative,
            "overflows": {name: self.overflows[name] for name in _TENSORS},
            "underflows": {name: self.underflows[name] for name in _TENSORS},
            "bytes": self.bytes,
        }


def compare(
    a: Array,
    b: Array,
    forms: list[Facts],
    advance: Callable[[], None] = lambda: None,
    *,
    scale: bool = False,
) -> tuple[dict[str, float], list[Loss]]:
    """Compare the product in each format with the product in float64.

    Parameters
    ----------
    a, b : numpy.ndarray
        Finite matrices, (m, k) and (k, n), of any real dtype.
    forms : list of Facts
        The formats.
    advance : callable
        Called as often as there are blocks of rows, for each format.
    scale : bool
        Whether formats below 16 bits get scales.

    Returns
    -------
    dict, list of Loss
        Condition numbers of the dot products, and a Loss for each format.

    Notes
    -----
    It works on blocks of rows. Besides the operands, memory holds B in float64, one
    rounded B at a time and, for the median, one condition number per entry.
    """
    numbers = a.size + b.size + a.shape[0] * b.shape[1]
    truth_b = b.astype(np.float64)
    with np.errstate(all="ignore"):
        conditions = _Conditions.of(a, truth_b)
        losses = []
        for form in forms:
            scales = Scales()
            if scale and form.bits < 16:
                amax = conditions.largest_result
                tensors = (largest_magnitude(a), largest_magnitude(b), amax)
                scales = Scales(*(power_of_two_scale(x, form) for x in tensors))
            loss = Loss(form, scales, form.dtype.itemsize * numbers)
            loss.count("b", truth_b, loss.round("b", b))
            losses.append(loss)
        for rows in blocks(a.shape[0], b.shape[1]):
            truth_a = a[rows].astype(np.float64)
            truth = truth_a @ truth_b
            for loss in losses:
                rounded_a = loss.round("a", a[rows])
                loss.count("a", truth_a, rounded_a)
                loss.take(truth, rounded_a, loss.round("b", b))
                advance()
    return conditions.record(a.shape[1]), losses


def conditions(a: Array, b: Array) -> dict[str, float]:
    """Condition numbers of the dot products, and bounds of float32's error."""
    with np.errstate(all="ignore"):
        found = _Conditions.of(a, b.astype(np.float64))
    return found.record(a.shape[1])


class _Conditions(NamedTuple):
    """The condition numbers of all dot products."""

    numbers: Array
    #: the largest magnitude of a dot product
    largest_result: float
    #: the largest magnitude of an operand, or sum of magnitudes of products
    largest: float

    @classmethod
    def of(cls, a: Array, truth_b: Array) -> Self:
        numbers = np.empty((a.shape[0], truth_b.shape[1]), np.float32)
        amax, largest = 0.0, float(np.abs(truth_b).max())
        for rows in blocks(*numbers.shape):
            truth_a = a[rows].astype(np.float64)
            truth = np.abs(truth_a @ truth_b)
            magnitudes = np.abs(truth_a) @ np.abs(truth_b)
            numbers[rows] = magnitudes / truth
            amax = max(amax, float(truth.max()))
            largest = max(
                largest, *(float(np.abs(x).max()) for x in (truth_a, magnitudes))
            )
        return cls(numbers, amax, largest)

    def record(self, k: int) -> dict[str, float]:
        """Summarize the numbers without the NaN of dot products of only zeros."""
        known = self.numbers[~np.isnan(self.numbers)]
        if known.size == 0:
            known = np.ones(1, np.float32)
        median = float(np.median(known))
        largest = float(np.max(known))
        overflows = self.largest > float(np.finfo(np.float32).max)
        unit = np.inf if overflows else k * 2.0**-24
        return {
            "median": median,
            "largest": largest,
            "float32_overflows": overflows,
            "float32_bound_median": unit * median,
            "float32_bound_largest": unit * largest,
        }


def _float32_product(a: Array, b: Array) -> Array:
    if a.dtype == np.float64:
        return a @ b
    if a.dtype in (np.float16, np.float32):
        return a.astype(np.float32) @ b.astype(np.float32)
    sums: Array = np.matmul(a, b, dtype=np.float32)
    return sums


# -- text ---------------------------------------------------------------------


def table(losses: list[Loss], *, scaled: bool) -> Table:
    return Table(
        "Error of A @ B in each format, relative to float64"
        + ", scaled below 16 bits" * scaled,
        _HEADER,
        [
            [
                loss.form.name,
                decibels(loss.snr),
                decibels(loss.sum_snr),
                number(loss.largest_relative),
                ",".join(str(loss.overflows[name]) for name in _TENSORS),
                ",".join(str(loss.underflows[name]) for name in _TENSORS),
                size(loss.bytes),
            ]
            for loss in losses
        ],
    )
