"""Measure the samples of a call site: ranges, conditions, and errors in each way."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.ma  # np.median would import it after the program
from numpy.typing import NDArray

from ..._measures.error_measures import Distance, underflows
from ..._measures.format_facts import facts
from ..._measures.ways import Way
from ..context import matmul_precision
from .call_sites import CallSite, Sample
from .exponents import Exponents, real_parts
from .multiply import Lost, multiply

Array = NDArray[Any]


@dataclass
class Errors(Distance):
    """How far one way's products are from float64, gathered sample by sample.

    Only elements count whose row, column and float64 product are finite.
    """

    way: Way
    #: largest |error| / (|A| |B|) of an element
    to_norm: float = field(default=0.0, init=False)
    #: finite numbers of operands and of the float64 product that became Inf or NaN
    overflows: int = field(default=0, init=False)
    result_overflows: int = field(default=0, init=False)
    #: nonzero numbers below the smallest normal that did not stay exact; of block
    #: formats: that became zero
    underflows: int = field(default=0, init=False)
    result_underflows: int = field(default=0, init=False)
    #: largest share of |A| |B| that these numbers lose; 1: everything is lost
    vanished: float = field(default=0.0, init=False)

    def take(self, product: Array, truth: Array, norm: Array, scale: int) -> None:
        """Take in results, their float64 products and |A| |B|, all 1-D.

        Squares are those of numbers times 2^scale.
        """
        self.result_overflows += int(np.count_nonzero(~np.isfinite(product)))
        for exact, rounded in zip(real_parts(truth), real_parts(product), strict=True):
            self._take_tiny(exact, rounded)
        wide = np.result_type(truth, np.float64)
        error = self.gather(_ldexp(product.astype(wide), scale), _ldexp(truth, scale))
        wrong = error > 0
        with np.errstate(divide="ignore"):
            ratio = error[wrong] / np.ldexp(norm[wrong], scale)
        self.to_norm = max(self.to_norm, float(np.max(ratio, initial=0.0)))

    def _take_tiny(self, exact: Array, rounded: Array) -> None:
        """Take in results that are below float32's range."""
        form = facts("float32")
        if count := underflows(form, exact, rounded):
            self.result_underflows += count
            tiny = (exact != 0) & (np.abs(exact) < form.smallest_normal)
            lost = np.abs(rounded[tiny] - exact[tiny]) / np.abs(exact[tiny])
            self.vanished = max(self.vanished, float(np.max(lost)))

    def take_lost(self, a: Lost, b: Lost, sample: Sample, norm: Array) -> None:
        """Take in the errors of the operands; |A| |B| is NaN for elements to skip."""
        self.overflows += a.overflows + b.overflows
        self.underflows += a.underflows + b.underflows
        lost = np.zeros_like(norm)
        if a.errors is not None:
            lost += a.errors @ np.abs(sample.b)
        if b.errors is not None:
            lost += np.abs(sample.a) @ b.errors
        shares = lost / norm
        shares = np.minimum(shares[~np.isnan(shares)], 1.0)
        self.vanished = max(self.vanished, float(np.max(shares, initial=0.0)))

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "precision": self.way.name,
            "snr_db": self.snr,
            "largest_relative_error": self.largest_relative,
            "largest_error_to_norm": self.to_norm,
            "overflows": {"operands": self.overflows, "results": self.result_overflows},
            "underflows": {
                "operands": self.underflows,
                "results": self.result_underflows,
                "largest_share": self.vanished,
            },
        }


@dataclass
class Figures:
    """The measurements of a call site, gathered sample by sample."""

    a: Exponents = field(default_factory=Exponents)
    b: Exponents = field(default_factory=Exponents)
    #: exponents of the float64 product
    result: Exponents = field(default_factory=Exponents)
    errors: dict[str, Errors] = field(default_factory=dict)
    samples: int = 0
    #: elements of the product that were measured
    elements: int = 0
    conditions: list[Array] = field(default_factory=list)
    _scale: int | None = None

    @property
    def values(self) -> int:
        """The number of values in both operands."""
        return self.a.values + self.b.values

    @property
    def condition_median(self) -> float:
        """The median of |A| |B| / |A B| over the elements; NaN if none is known."""
        known = self._known()
        return float(np.median(known)) if known.size else np.nan

    @property
    def condition_largest(self) -> float:
        """The largest |A| |B| / |A B| of an element; NaN if none is known."""
        known = self._known()
        return float(np.max(known)) if known.size else np.nan

    def _known(self) -> Array:
        """Return the conditions, without those of products of only zeros: NaN."""
        found: Array = np.concatenate([np.empty(0), *self.conditions])
        known: Array = found[~np.isnan(found)]
        return known

    def take(self, sample: Sample, ways: Sequence[Way]) -> None:
        """Take in a sample."""
        a, b = sample.a, sample.b
        wide = np.result_type(a, np.float64)
        with np.errstate(all="ignore"), matmul_precision(None):
            truth = a.astype(wide) @ b.astype(wide)
            norm = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
            rows = np.isfinite(a).all(axis=1, keepdims=True)
            finite = rows & np.isfinite(b).all(axis=0)
            finite &= np.isfinite(truth)
            self.a.gather(a)
            self.b.gather(b)
            self.result.gather(truth[finite])
            norm[~finite] = np.nan
            exact = truth[finite]
            self.conditions.append(norm[finite] / np.abs(exact))
            scale = self._common_scale(exact)
            for way in ways:
                product, lost_a, lost_b = multiply(way, a, b)
                errors = self.errors.setdefault(way.name, Errors(way))
                errors.take(product[finite], exact, norm[finite], scale)
                errors.take_lost(lost_a, lost_b, sample, norm)
        self.samples += 1
        self.elements += exact.size

    def _common_scale(self, truth: Array) -> int:
        """Return the power of two that keeps squares in float64's range.

        It is that of the first sample that has a number, since squares of all samples
        are added.
        """
        greatest = float(np.max(np.abs(truth), initial=0.0))
        if self._scale is None and 0 < greatest < np.inf:
            self._scale = -int(np.frexp(greatest)[1])
        return self._scale or 0

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "samples": self.samples,
            "elements": self.elements,
            "exponents": {
                "a": self.a.record(),
                "b": self.b.record(),
                "result": self.result.record(),
            },
            "condition": {
                "median": self.condition_median,
                "largest": self.condition_largest,
            },
            "precisions": [errors.record() for errors in self.errors.values()],
        }


def measure(
    sites: Sequence[CallSite],
    ways: Sequence[Way],
    seconds: float | None,
    advance: Callable[[], None] = lambda: None,
) -> list[Figures]:
    """Measure the samples of call sites.

    Parameters
    ----------
    sites : sequence of CallSite
        The call sites.
    ways : sequence of Way
        The ways to measure.
    seconds : float or None
        One sample of each call site is measured; then, the heaviest call sites first,
        another of each and so on, until so much time is used. None: all samples.
    advance : callable
        Called after each sample, and for those that time was too short for.

    Returns
    -------
    list of Figures
        In the order of the call sites.
    """
    start = time.perf_counter()
    found = [Figures() for _ in sites]
    order = sorted(range(len(sites)), key=lambda i: -sites[i].multiply_adds)
    rounds = max((len(site.samples) for site in sites), default=0)
    for number in range(rounds):
        for i in order:
            if number >= len(sites[i].samples):
                continue
            used = time.perf_counter() - start
            if number == 0 or seconds is None or used < seconds:
                found[i].take(sites[i].samples[number], ways)
            advance()
    return found


def _ldexp(x: Array, exponent: int) -> Array:
    if not np.iscomplexobj(x):
        scaled: Array = np.ldexp(x, exponent)
        return scaled
    scaled = np.empty_like(x)
    scaled.real, scaled.imag = np.ldexp(x.real, exponent), np.ldexp(x.imag, exponent)
    return scaled
