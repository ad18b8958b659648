"""Number lines in text: all numbers of a format, and those around one."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._base.text import line_width, number
from .._measures.format_facts import Facts, floor_log2
from .codes import neighbors, round_to
from .exact import Number, exact_value, finite

_EDGE = 8  # blanks on both sides of a line, for labels below its ends
_LONGEST_LABEL = 12  # of a number that is written exactly
_EACH_SIDE = 2  # numbers that are drawn on each side of one

WHOLE_LEGEND = (
    "(|: one value; 2 to 9: this many values; +: more; ~: between subnormals)"
)
AROUND_LEGEND = (
    "(v: the input; |: values of the format; #: the rounded input;"
    " ~: between subnormals)"
)


def whole(form: Facts, values: Sequence[float]) -> list[str]:
    """Draw all finite numbers of a format on a line, with labels below it.

    If the format has no sign, its powers of two are placed by their exponents.
    """
    # With an odd number of columns, zero has the middle one and both sides look alike.
    columns = (line_width() - 2 * _EDGE - 1) | 1
    ends = form.min, form.max
    if form.signed:
        low, high = ends
        places = list(set(values))  # zero and -0 are one place
        normal = form.smallest_normal
        labels = [(x, number(x, 6)) for x in (low, low / 2, 0.0, high / 2, high)]
    else:
        low, high = (math.log2(end) for end in ends)
        places = [math.log2(value) for value in values]
        normal = -math.inf
        labels = [(x, f"2^{x:.0f}") for x in (low, 0.0, high)]
    step = (high - low) / (columns - 1)

    def column(place: float) -> int:
        return round(place / step) - round(low / step)

    counts = [0] * columns
    for place in places:
        counts[column(place)] += 1
    line = "".join(
        _density(count, abs(low + i * step) < normal) for i, count in enumerate(counts)
    )
    at = [(column(place), text) for place, text in labels]
    return [" " * _EDGE + line, _labeled(at, columns)]


def around(form: Facts, exact: Number) -> list[str]:
    """Return a number on a line of those of a format that are near it; none for NaN.

    Where it is beyond the last number, the line ends in an arrow to it.
    """
    x = finite(exact)
    if x is None:
        if math.isnan(exact):
            return []
        x = Fraction(form.max) * (4 if exact > 0 else -4)
    points = _near(form, x)
    low, high = points[0], points[-1]
    ends = {x: "<"} if x < low else {x: ">"} if x > high else {}
    if x < low:
        low -= points[1] - points[0]
    elif x > high:
        high += points[-1] - points[-2]
    columns = line_width() - 2 * _EDGE
    step = (high - low) / (columns - 1)

    def column(place: Fraction) -> int:
        return round((min(max(place, low), high) - low) / step)

    has_subnormals = form.smallest_subnormal < form.smallest_normal
    normal = Fraction(form.smallest_normal) if has_subnormals else 0
    line = ["~" if abs(low + i * step) < normal else "-" for i in range(columns)]
    became = exact_value(round_to(form, exact))
    for point in points:
        line[column(point)] = "#" if point == became else "|"
    for place, arrow in ends.items():
        line[column(place)] = arrow
    marker = " " * (_EDGE + column(x)) + "v"
    # The nearest have their labels first.
    nearest = sorted(points, key=lambda point: abs(point - x))
    labels = [(column(point), _short(form, point)) for point in nearest]
    return [marker, " " * _EDGE + "".join(line), _labeled(labels, columns)]


def spacing_here(form: Facts, exact: Number) -> str:
    """How far numbers are apart at one, in words."""
    x = finite(exact)
    if x is None:
        return ""
    spacing = form.spacing(min(abs(x), Fraction(form.max)))
    return f"spacing 2^{floor_log2(spacing)}"


def _near(form: Facts, x: Fraction) -> list[Fraction]:
    """Return numbers of a format on each side of one, in order."""
    clipped = min(max(x, Fraction(form.min)), Fraction(form.max))
    start = form.round(clipped)
    found: list[np.floating[Any]] = [start]
    for side in (0, 1):
        at: np.floating[Any] | None = start
        for _ in range(_EACH_SIDE):
            at = None if at is None else neighbors(form, at)[side]
            if at is not None:
                found.append(at)
    return sorted({Fraction(float(value)) for value in found})


def _short(form: Facts, point: Fraction) -> str:
    """Format a number exactly or with few digits.

    The digits distinguish it from its neighbors and from a typed point near it.
    """
    exactly = repr(float(point))
    if len(exactly) <= _LONGEST_LABEL:
        return exactly
    digits = math.ceil((form.mantissa_bits + 1) * math.log10(2)) + 2
    return number(float(point), min(digits, 17))


def _density(count: int, is_subnormal: bool) -> str:
    if count == 0:
        return "~" if is_subnormal else "-"
    return "|" if count == 1 else str(count) if count < 10 else "+"


def _labeled(labels: Sequence[tuple[int, str]], columns: int) -> str:
    """Texts below their columns; the first ones have their places before others."""
    line = [" "] * (columns + 2 * _EDGE)
    for column, text in labels:
        start = min(max(_EDGE + column - len(text) // 2, 0), len(line) - len(text))
        taken = line[max(start - 1, 0) : start + len(text) + 1]
        if start >= 0 and not any(letter.strip() for letter in taken):
            line[start : start + len(text)] = text
    return "".join(line).rstrip()
