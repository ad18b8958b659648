"""The page's plots, as inline SVG: exponents of an operand, SNR of each precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..._measures.format_facts import facts
from .exponents import Exponents
from .figures import Errors
from .naming import snr_text
from .verdict import acceptable

_WIDTH = 540
_LEFT = 112  # of names
_RIGHT = 46
_HEIGHT = 90  # of the bars of a histogram
_ROW = 17

#: Formats whose ranges are marked, and whether a scale brings the largest value to
#: the top of the range.
_RANGES = (
    ("bf16", "bfloat16", False),
    ("f16", "float16", False),
    ("fp8_e5m2", "float8_e5m2", True),
    ("fp8_e4m3", "float8_e4m3fn", True),
)


def exponent_plot(name: str, of: Exponents) -> str:
    """Draw the count of each exponent, and below it the range of each format.

    Heights are logarithms of counts; "" if there is nothing to draw.
    """
    if of.smallest is None or of.largest is None:
        return ""
    first, last = of.smallest - 2, of.largest + 3
    step = (_WIDTH - _LEFT - 8) / (last - first)
    top = math.log10(1 + max(of.counts.values()))

    def x(exponent: float) -> float:
        return _LEFT + (min(max(exponent, first), last) - first) * step

    parts = []
    for exponent, count in sorted(of.counts.items()):
        height = _HEIGHT * math.log10(1 + count) / top
        title = f"{count} values of 2^{exponent} to 2^{exponent + 1}"
        parts.append(
            f'<rect class="{name.lower()}" x="{x(exponent):.1f}"'
            f' y="{_HEIGHT + 4 - height:.1f}" width="{max(step - 0.6, 0.6):.1f}"'
            f' height="{height:.1f}"><title>{title}</title></rect>'
        )
    y = _HEIGHT + 4
    parts.append(
        f'<line class="axis" x1="{_LEFT}" x2="{x(last):.1f}" y1="{y}" y2="{y}"/>'
    )
    ticks = max(1, math.ceil((last - first) / 9))
    for exponent in range(first - first % -ticks, last + 1, ticks):
        parts.append(_text(x(exponent), y + 13, f"2^{exponent}", "middle", "dim"))
    parts.append(_text(_LEFT - 8, _HEIGHT - 20, f"{name}, log scale", "end", "dim"))
    y += 20
    for label, form, scaled in _RANGES:
        low, high = _range(form)
        if scaled:  # the largest value becomes the largest of the format
            low, high = low + of.largest + 1 - high, of.largest + 1
        shown = label + (" scaled" if scaled else "")
        parts.append(_text(_LEFT - 8, y + 9, shown, "end", "dim"))
        parts.append(
            f'<rect class="format" x="{x(low):.1f}" y="{y + 2}"'
            f' width="{max(x(high) - x(low), 1):.1f}" height="7" rx="2">'
            f"<title>{label}: 2^{low} to 2^{high}</title></rect>"
        )
        y += _ROW - 3
    return _svg(y + 4, f"Exponents of {name}", parts)


def snr_plot(errors: Sequence[Errors], target_db: float) -> str:
    """Draw a bar for each precision's SNR, and the target."""
    finite = [e.snr for e in errors if math.isfinite(e.snr)]
    most = max([*finite, target_db, 1.0]) * 1.05
    room = _WIDTH - _LEFT - _RIGHT

    def x(db: float) -> float:
        return _LEFT + room * min(max(db, 0.0), most) / most

    parts, y = [], 4
    for one in errors:
        kind = "good" if acceptable(one, target_db) else "bad"
        end = x(one.snr)
        parts.append(_text(_LEFT - 6, y + 11, one.way.name, "end"))
        parts.append(
            f'<rect class="{kind}" x="{_LEFT}" y="{y + 2}"'
            f' width="{max(end - _LEFT, 1):.1f}" height="11" rx="2"/>'
        )
        parts.append(_text(end + 4, y + 12, snr_text(one.snr), "start", "dim"))
        y += _ROW
    at = x(target_db)
    parts.append(
        f'<line class="target" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{y}">'
        f"<title>target: {target_db:g} dB</title></line>"
    )
    return _svg(y + 4, "SNR in dB of each precision", parts)


def _range(name: str) -> tuple[int, int]:
    """Return a format's smallest exponent, and the first above its range."""
    form = facts(name)
    least = math.frexp(form.smallest_subnormal)[1] - 1
    return least, math.frexp(form.max)[1]


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' role="img" aria-label="{escape(title)}">' + "".join(parts) + "</svg>"
    )
