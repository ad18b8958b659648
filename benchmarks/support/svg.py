"""Pictures as SVG, in two files each: for a light page and for a dark one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Colors(NamedTuple):
    """Of one of the two files."""

    text: str
    #: lines of an axis
    faint: str
    #: what tells groups apart
    groups: tuple[str, str, str]


THEMES = {
    "light": Colors("#1f2328", "#d1d9e0", ("#0b66c3", "#b35900", "#1a7f37")),
    "dark": Colors("#f0f6fc", "#3d444d", ("#6cb6ff", "#f0a050", "#57c46c")),
}

STYLE = (
    "text{font:14px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}"
    ".title{font-size:17px;font-weight:600}.head{font-weight:600}"
    ".middle{text-anchor:middle}"
    ".code{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
)


def text(x: float, y: float, words: str, color: str, kind: str = "") -> str:
    """Words; `kind` is a class of `STYLE`."""
    named = f' class="{kind}"' if kind else ""
    safe = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:g}" y="{y:g}" fill="{color}"{named}>{safe}</text>'


def box(x: float, y: float, width: float, height: float, color: str) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} fill="{color}"/>'


def dot(x: float, y: float, color: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{color}"/>'


def page(width: float, height: float, drawn: Iterable[str], title: str = "") -> str:
    """A file; one with a title is as wide in a page as in its own units."""
    view = f'viewBox="0 0 {width:g} {height:g}"'
    if title:
        view = f'width="{width:g}" height="{height:g}" {view} role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {view}>'
    head += f"<title>{title}</title>" * bool(title) + f"<style>{STYLE}</style>"
    return "\n".join([head, *drawn, "</svg>\n"])
