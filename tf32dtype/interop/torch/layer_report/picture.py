"""The picture of a model's layers: cells in their order, colored by SNR, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ...._base.text import shortened
from ...._programs.report.naming import share, snr_text
from .verdict import decibels_of

if TYPE_CHECKING:
    from .result import LayerReport

_WIDTH, _LEFT, _RIGHT = 1120, 132, 4
_ROW, _GAP = 24, 2
_LEAST = 3.0  # width of a cell
_LETTER = 6.2  # width of a letter
_NAMES = 80  # height of slanted names
_BETWEEN = 16  # distance of slanted names

#: The classes of an SNR less the target: the least difference, and the meaning.
_CLASSES = (
    ("far", 12.0, "12 dB or more above the target"),
    ("above", 0.0, "above the target"),
    ("near", -6.0, "less than 6 dB below the target"),
    ("below", float("-inf"), "6 dB or more below the target"),
)
_STYLE = """
.cells { min-width: 56rem; max-width: none; width: 100%; }
.cells .far { fill: var(--good); fill-opacity: .55; }
.cells .above { fill: var(--good); fill-opacity: .24; }
.cells .near { fill: var(--fair); fill-opacity: .34; }
.cells .below { fill: var(--bad); fill-opacity: .5; }
.cells .mark { fill: var(--bad); }
.cells .none { fill: none; stroke: var(--line); }
"""


@dataclass(frozen=True)
class _Column:
    """A column of cells: where it is, and its SNR in each precision."""

    name: str
    share: float
    snr: dict[str, float]
    x: float = 0
    width: float = 0


def picture(report: LayerReport) -> str:
    """Draw the products' SNR, and below it that of the outputs, group by group."""
    products = [
        _Column(row.name, row.share, {k: v.snr_db for k, v in row.errors.items()})
        for row in report.rows
    ]
    parts: list[str] = []
    y = _band(parts, report, 0, "Products of layers: SNR in dB", products)
    groups = [_Column(x.name, x.share, x.output_db) for x in report.groups]
    if any(group.snr for group in groups):
        heading = "Outputs of the model with only this rounded: SNR in dB"
        y = _band(parts, report, y + 14, heading, groups)
    y = _key(parts, y + 8)
    title = f"SNR of the layers of {report.model} in each precision"
    text = (
        "One row per precision, one cell per product or group of layers in the order of"
        " the model. The width of a cell is its share of the multiply-adds. The tables"
        " below have the same values."
    )
    return (
        f'<svg class="cells" viewBox="0 0 {_WIDTH} {y:.0f}" role="img"'
        ' aria-labelledby="picture-title picture-text">'
        f'<title id="picture-title">{escape(title)}</title>'
        f'<desc id="picture-text">{escape(text)}</desc><style>{_STYLE}</style>'
        + "".join(parts)
        + "</svg>"
    )


def _band(
    parts: list[str],
    report: LayerReport,
    y: float,
    heading: str,
    columns: Sequence[_Column],
) -> float:
    """Draw rows of cells, one per precision; return the y below them."""
    parts.append(f'<text x="0" y="{y + 13:.0f}">{escape(heading)}</text>')
    y += 22
    placed = _placed(columns)
    for precision in report.precisions:
        label = _fitted(precision, _LEFT - 10)
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 15:.0f}" text-anchor="end">'
            f"{escape(label)}</text>"
        )
        for one in placed:
            parts += _cell(one, precision, y, report.target_db)
        y += _ROW
    return y + _names(parts, placed, y)


def _placed(columns: Sequence[_Column]) -> list[_Column]:
    """Return the columns with places: as wide as their shares, but all visible."""
    room = _WIDTH - _LEFT - _RIGHT
    least = min(_LEAST, room / max(len(columns), 1))
    free = room - least * len(columns)
    whole = sum(one.share for one in columns) or 1
    placed, x = [], float(_LEFT)
    for one in columns:
        width = least + free * one.share / whole
        placed.append(_Column(one.name, one.share, one.snr, x, width))
        x += width
    return placed


def _cell(one: _Column, precision: str, y: float, target_db: float) -> Iterable[str]:
    width = max(one.width - min(_GAP, one.width / 10), 0.5)
    height = _ROW - _GAP
    box = f'x="{one.x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{height}"'
    if precision not in one.snr:
        yield f'<rect class="none" {box}/>'
        return
    snr = one.snr[precision]
    kind = next(name for name, least, _ in _CLASSES if snr - target_db >= least)
    tip = (
        f"{one.name}, {precision}: {decibels_of(snr)}, {share(one.share, 1)} % of work"
    )
    yield f'<rect class="{kind}" {box}><title>{escape(tip)}</title></rect>'
    if snr < target_db:
        yield (
            f'<rect class="mark" x="{one.x:.1f}" y="{y + height - 3:.0f}"'
            f' width="{width:.1f}" height="3"/>'
        )
    text = snr_text(snr)
    if len(text) * _LETTER < width:
        yield (
            f'<text x="{one.x + width / 2:.1f}" y="{y + 14:.0f}"'
            f' text-anchor="middle" pointer-events="none">{text}</text>'
        )


def _names(parts: list[str], placed: Sequence[_Column], y: float) -> float:
    """Write names below the cells, as many as fit; return their height."""
    end = float("-inf")
    slanted = any(len(one.name) * _LETTER > one.width for one in placed)
    for one in placed:
        middle = one.x + one.width / 2
        if not slanted:
            parts.append(
                f'<text class="dim" x="{middle:.1f}" y="{y + 12:.0f}"'
                f' text-anchor="middle">{escape(one.name)}</text>'
            )
        elif middle - end >= _BETWEEN:
            name = _fitted(one.name, 1.3 * _NAMES)
            parts.append(
                f'<text class="dim" text-anchor="end" transform="translate('
                f'{middle + 4:.1f} {y + 10:.0f}) rotate(-40)">{escape(name)}</text>'
            )
            end = middle
    return _NAMES if slanted else 18


def _fitted(name: str, width: float) -> str:
    """Return a name that is no wider."""
    room = int(width / _LETTER)
    short = shortened(name, room)
    return (
        short if len(short) <= room else "\N{HORIZONTAL ELLIPSIS}" + short[1 - room :]
    )


def _key(parts: list[str], y: float) -> float:
    """Draw the meaning of the colors; return the y below."""
    x = float(_LEFT)
    for name, _, meaning in _CLASSES:
        parts.append(
            f'<rect class="{name}" x="{x:.0f}" y="{y:.0f}" width="16" height="14"/>'
        )
        if name in ("near", "below"):
            parts.append(
                f'<rect class="mark" x="{x:.0f}" y="{y + 11:.0f}" width="16"'
                ' height="3"/>'
            )
        parts.append(
            f'<text class="dim" x="{x + 22:.0f}" y="{y + 11:.0f}">{meaning}</text>'
        )
        x += 40 + len(meaning) * _LETTER
    return y + 22
