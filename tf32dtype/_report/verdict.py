"""The verdict for a place: what it bears, and what is lost where it does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .._measures.format_facts import facts
from .._measures.ways import Way
from .figures import Errors, Figures
from .places import Place

#: The ratio of errors up to which a way is as good as float32.
LIKE_FLOAT32 = 2.0

Kind = Literal["bears", "needs", "float64", "unmeasured"]


@dataclass(frozen=True)
class Verdict:
    """What a place bears.

    Acceptable is a way whose SNR reaches the target of T dB, whose every error is at
    most 10^(-T/20) of |A| |B|, the sum of the magnitudes of the same row's and column's
    products, and where the errors of numbers that became subnormal or zero are no more
    of it either. The last two do not depend on cancellation, but tell of small rows and
    columns that leave a range, which the SNR overlooks.
    """

    #: bears: one product of parts is enough; needs: several, or float32; float64: none
    #: that was measured is acceptable, and float32 always is measured
    kind: Kind
    #: the cheapest acceptable precision
    way: str | None
    #: the cheapest whose errors are at most twice those of float32, by both figures
    like_float32: str | None
    #: the cheapest acceptable block format
    block: str | None
    #: precisions that lose range: numbers became Inf or NaN, or they vanished, which
    #: costs more than rounding
    loses_range: tuple[str, ...]
    #: decimal digits that cancel: of the median condition beyond sqrt(k), which sums of
    #: k products with random signs have; None: unknown
    digits: float | None

    @property
    def text(self) -> str:
        """In two words."""
        if self.kind == "unmeasured":
            return "not measured"
        if self.kind == "float64":
            return "needs float64"
        return f"{self.kind} {self.way}"

    @property
    def ranges(self) -> tuple[str, ...]:
        """What loses range: of float32's loss, which all others share, that alone."""
        return ("f32",) if "f32" in self.loses_range else self.loses_range

    @property
    def cancels(self) -> bool:
        """Whether a decimal digit or more is lost by cancellation."""
        return self.digits is not None and self.digits >= 1

    @property
    def losses(self) -> str:
        """What is lost, in a few words; "" if nothing."""
        found = []
        if ranges := self.ranges:
            found.append(f"range in {', '.join(ranges)}")
        if self.cancels:
            found.append(f"{self.digits:.1f} digits")
        return "; ".join(found)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "text": self.text,
            "kind": self.kind,
            "precision": self.way,
            "like_float32": self.like_float32,
            "block_format": self.block,
            "loses_range": list(self.loses_range),
            "digits_canceled": self.digits,
        }


def judge(place: Place, figures: Figures, target_db: float) -> Verdict:
    """The verdict from a place's figures.

    Parameters
    ----------
    place : Place
        The place; its samples tell how long the sums are.
    figures : Figures
        Of these samples.
    target_db : float
        The SNR in dB that is asked for.
    """
    measured = list(figures.errors.values())
    if not figures.elements or not measured:
        return Verdict("unmeasured", None, None, None, (), None)
    here = [e for e in measured if e.way.precision and not e.way.unit]
    good = [e for e in here if acceptable(e, target_db)]
    blocks = [e for e in measured if not e.way.precision and acceptable(e, target_db)]
    best = cheapest(good)
    kind: Kind = "float64"
    if best:
        narrow = best.products == 1 and best.name != "f32"
        kind = "bears" if narrow else "needs"
    single = figures.errors.get("f32")
    like = [e for e in here if single and _is_like(e, single)]
    return Verdict(
        kind,
        best and best.name,
        _name(cheapest(like)),
        _name(cheapest(blocks)),
        tuple(e.way.name for e in here if loses_range(e)),
        _digits(place, figures),
    )


def acceptable(errors: Errors, target_db: float) -> bool:
    """Whether errors are within the target: `Verdict` says how."""
    worst = max(errors.to_norm, errors.vanished)
    return errors.snr >= target_db and worst <= tolerance(target_db)


def tolerance(target_db: float) -> float:
    """The ratio of amplitudes that so many dB are."""
    return float(10.0 ** (-target_db / 20))


def cheapest(found: Sequence[Errors]) -> Way | None:
    """The way that has the fewest bits to multiply; float32, which tensor cores do not
    have, only where it is alone. Of equals the first."""
    ways = [errors.way for errors in found]
    return min(ways, key=lambda way: (way.name == "f32", way.bits), default=None)


def loses_range(errors: Errors) -> bool:
    """Whether a precision's range is to blame for a loss.

    Numbers became Inf or NaN, or subnormal and zero so that this costs more than
    rounding both operands to p bits, which is up to 2^(1-p) of |A| |B|.
    """
    if errors.overflows or errors.result_overflows:
        return True
    precision = errors.way.precision
    if precision is None:
        return False
    digits = 24
    if precision.parts == 1:
        digits = facts(precision.format).mantissa_bits + 1
    return errors.vanished > 2.0 ** (1 - digits)


def _is_like(errors: Errors, single: Errors) -> bool:
    decibels = 20 * math.log10(LIKE_FLOAT32)
    return (
        single.snr > -math.inf
        and errors.snr >= single.snr - decibels
        and errors.to_norm <= LIKE_FLOAT32 * single.to_norm
    )


def _digits(place: Place, figures: Figures) -> float | None:
    condition = figures.condition_median
    if math.isnan(condition):
        return None
    depth = max((s.k for s in place.samples[: figures.samples]), default=1)
    return max(0.0, math.log10(condition / math.sqrt(max(depth, 1))))


def _name(way: Way | None) -> str | None:
    return way and way.name
