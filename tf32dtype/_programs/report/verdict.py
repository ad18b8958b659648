"""The verdict for a call site: the cheapest sufficient precision, and warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..._measures.format_facts import facts
from ..._measures.ways import Way
from .call_sites import CallSite, LaterSum
from .figures import Errors, Figures

#: The number of bits from which cancellation in a later sum counts.
_LEAST_BITS = 2.0
#: The factor up to which errors count as equally good as float32's.
LIKE_FLOAT32 = 2.0

Kind = Literal["sufficient", "insufficient", "float64", "not_measured"]


@dataclass(frozen=True)
class Verdict:
    """The cheapest acceptable precision of a call site, and its warnings.

    A precision is acceptable if its SNR reaches the target of T dB, after bits that
    cancel in a later sum of the results are subtracted (6 dB each), and every error is
    at most 10^(-T/20) of |A| |B|, the sum of the magnitudes of the same row's and
    column's products; the errors of values that became subnormal or zero have the same
    limit. The limits on |A| |B| do not depend on cancellation. They detect small rows
    and columns that are out of range, which the SNR does not show.
    """

    #: sufficient: one multiplication per product is enough; insufficient: several
    #: components or float32 are needed; float64: no measured precision is acceptable,
    #: and float32 is always measured
    kind: Kind
    #: the cheapest acceptable precision
    way: str | None
    #: the cheapest precision whose errors are at most twice those of float32
    like_float32: str | None
    #: the cheapest acceptable block format
    block: str | None
    #: precisions in which values became Inf or NaN, or in which values that became
    #: subnormal or zero cost more than rounding does
    out_of_range: tuple[str, ...]
    #: log10 of the median condition over sqrt(k), the condition of sums with random
    #: signs: the decimal digits that cancel; None: unknown
    canceled_digits: float | None
    #: the later sum of the results in which the most bits cancel; None: none do
    later_sum: LaterSum | None = None

    @property
    def text(self) -> str:
        """The verdict in a table's column."""
        if self.kind == "not_measured":
            return "not measured"
        if self.kind == "sufficient":
            return f"{self.way} is enough"
        return f"needs {self.needed}"

    @property
    def needed(self) -> str:
        """The precision that is needed, in words."""
        if self.kind == "float64":
            return "float64"
        return "float32" if self.way == "f32" else str(self.way)

    @property
    def ranges(self) -> tuple[str, ...]:
        """The precisions to warn of: only float32 if its range is already exceeded."""
        return ("f32",) if "f32" in self.out_of_range else self.out_of_range

    @property
    def cancels(self) -> bool:
        """Whether a decimal digit or more is lost by cancellation."""
        return self.canceled_digits is not None and self.canceled_digits >= 1

    @property
    def digits(self) -> str:
        """The digits that cancel, in words."""
        if self.canceled_digits == math.inf:  # the exact results are zero
            return "all digits"
        return f"{self.canceled_digits:.1f} digits"

    @property
    def warning(self) -> str:
        """The warnings in a table's column; "" if there are none."""
        found = []
        if ranges := self.ranges:
            found.append(f"out of range in {', '.join(ranges)}")
        if self.cancels:
            found.append(f"{self.digits} canceled")
        if self.later_sum:
            found.append(f"{later_bits(self.later_sum)} cancel later")
        return "; ".join(found)

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "text": self.text,
            "kind": self.kind,
            "precision": self.way,
            "like_float32": self.like_float32,
            "block_format": self.block,
            "out_of_range": list(self.out_of_range),
            "canceled_digits": self.canceled_digits,
            "later_sum": self.later_sum and self.later_sum.record(),
        }


def judge(
    site: CallSite, figures: Figures, target_db: float, named: Sequence[str] = ()
) -> Verdict:
    """Return the verdict from a call site's figures.

    Parameters
    ----------
    site : CallSite
        The call site; its samples tell how long the sums are.
    figures : Figures
        The measurements of these samples.
    target_db : float
        The required SNR in dB.
    named : sequence of str
        The precisions that the user named: block formats among them count too.
    """
    measured = list(figures.errors.values())
    if not figures.elements or not measured:
        return Verdict("not_measured", None, None, None, (), None)
    here = [e for e in measured if e.way.precision and not e.way.unit]
    later = next((x for x in site.later_sums if x.bits >= _LEAST_BITS), None)
    wanted_db = target_db + decibels_of(later)
    good = [e for e in here if acceptable(e, target_db, wanted_db)]
    blocks = [
        e
        for e in measured
        if not e.way.precision and acceptable(e, target_db, wanted_db)
    ]
    best = cheapest(good + [e for e in blocks if e.way.name in named])
    kind: Kind = "float64"
    if best:
        narrow = best.products == 1 and best.name != "f32"
        kind = "sufficient" if narrow else "insufficient"
    single = figures.errors.get("f32")
    like = [e for e in here if single and _is_like(e, single)]
    return Verdict(
        kind,
        best and best.name,
        _name(cheapest(like)),
        _name(cheapest(blocks)),
        tuple(e.way.name for e in here if is_out_of_range(e)),
        _digits(site, figures),
        later,
    )


def acceptable(errors: Errors, target_db: float, snr_db: float | None = None) -> bool:
    """Return whether errors are within the target, as `Verdict` defines it.

    The SNR must reach `snr_db` instead, if that is given.
    """
    worst = max(errors.to_norm, errors.vanished)
    wanted = target_db if snr_db is None else snr_db
    return errors.snr >= wanted and worst <= tolerance(target_db)


def decibels_of(later: LaterSum | None) -> float:
    """Return the SNR that a later sum takes away."""
    return 20 * math.log10(2) * later.bits if later else 0.0


def later_bits(later: LaterSum) -> str:
    """Return the bits that cancel in words."""
    return "all bits" if later.bits == math.inf else f"{later.bits:.0f} bits"


def tolerance(target_db: float) -> float:
    """Return the ratio of amplitudes of a number of dB."""
    return float(10.0 ** (-target_db / 20))


def cheapest(found: Sequence[Errors]) -> Way | None:
    """Return the way with the fewest bits to multiply, the first of equal ones.

    float32, which tensor cores do not have, is returned only if nothing else is given.
    """
    ways = [errors.way for errors in found]
    return min(ways, key=lambda way: (way.name == "f32", way.bits), default=None)


def is_out_of_range(errors: Errors) -> bool:
    """Return whether a precision's range costs more than its rounding.

    Values became Inf or NaN, or they became subnormal or zero at a higher cost than
    that of rounding both operands to p bits, which is up to 2^(1-p) of |A| |B|.
    """
    if errors.overflows or errors.result_overflows:
        return True
    precision = errors.way.precision
    if precision is None:
        return False
    digits = 24
    if precision.components == 1:
        digits = facts(precision.format).mantissa_bits + 1
    return errors.vanished > 2.0 ** (1 - digits)


def _is_like(errors: Errors, single: Errors) -> bool:
    decibels = 20 * math.log10(LIKE_FLOAT32)
    return (
        single.snr > -math.inf
        and errors.snr >= single.snr - decibels
        and errors.to_norm <= LIKE_FLOAT32 * single.to_norm
    )


def _digits(site: CallSite, figures: Figures) -> float | None:
    condition = figures.condition_median
    if math.isnan(condition):
        return None
    depth = max((s.k for s in site.samples[: figures.samples]), default=1)
    return max(0.0, math.log10(condition / math.sqrt(max(depth, 1))))


def _name(way: Way | None) -> str | None:
    return way and way.name
