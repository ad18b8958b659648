"""Write pictures as SVG files that adapt to a light and a dark page.

Each element has a class for its color. The style of a file has one color for each class
and theme. A browser takes the theme from the page around the picture.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Classes of colors, and their colors on a light and on a dark page. "faint" is for the
#: lines of an axis. The last three tell groups apart.
COLORS = {
    "ink": ("#1f2328", "#f0f6fc"),
    "faint": ("#d1d9e0", "#3d444d"),
    "blue": ("#0b66c3", "#6cb6ff"),
    "orange": ("#b35900", "#f0a050"),
    "green": ("#1a7f37", "#57c46c"),
}
#: Classes of opacity: how much of the page a box covers.
SHADES = {"pale": 0.1, "light": 0.22, "medium": 0.38, "strong": 0.56}
#: The colors of groups, in their order.
GROUPS = ("blue", "orange", "green")


def _fills(theme: int) -> str:
    return "".join(f".{name}{{fill:{both[theme]}}}" for name, both in COLORS.items())


STYLE = (
    "text{font:14px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}"
    ".title{font-size:17px;font-weight:600}.head{font-weight:600}"
    ".middle{text-anchor:middle}"
    ".code{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
    + "".join(f".{name}{{fill-opacity:{of:g}}}" for name, of in SHADES.items())
    + f"{_fills(0)}@media(prefers-color-scheme:dark){{{_fills(1)}}}"
)


def text(x: float, y: float, words: str, color: str = "ink", kind: str = "") -> str:
    """Return words. `color` is a key of COLORS, and `kind` has classes of STYLE."""
    safe = words.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<text x="{x:g}" y="{y:g}" class="{f"{color} {kind}".strip()}">{safe}</text>'
    )


def box(x: float, y: float, width: float, height: float, color: str) -> str:
    """Return a filled rectangle. A key of SHADES may follow the color."""
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} class="{color}"/>'


def dot(x: float, y: float, color: str) -> str:
    """Return a filled circle."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="5" class="{color}"/>'


def page(width: float, height: float, drawn: Iterable[str], title: str = "") -> str:
    """Return a file of this width and height in pixels."""
    view = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img">'
    head += f"<title>{title}</title>" * bool(title) + f"<style>{STYLE}</style>"
    return "\n".join([head, *drawn, "</svg>\n"])
