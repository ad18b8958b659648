"""The diagrams are current, and readable on a phone in both themes."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from tests.support.documents import DOCUMENTS
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

NAMES = ["formats", "block", "mma_group", "split", "chain", "scope"]
THEMES = ["light", "dark"]
#: The lightest and the darkest page behind each theme, on the site and on GitHub.
PAGES = {"light": ["#ffffff"], "dark": ["#0d1117", "#22272e"]}
PHONE = 390

#: Characters whose width is not 0.65 of the size, or 0.8 for capitals. These widths are
#: a little above those of DejaVu Sans, the widest common font.
NARROW, WIDE = "fijlrtI.,:;'()[]|/- ", "mwMW+=^"
SHOWN = re.compile(r"!\[(.*)\]\(\.\./figures/(\w+)\.svg\)")


class Words(NamedTuple):
    """A string in a picture: its characters, and the box around them."""

    words: str
    size: int
    color: str
    left: float
    right: float
    top: float
    bottom: float


def width(words: str, kind: str) -> float:
    """Return the largest width of a string, in units of the font size."""
    if "code" in kind:
        return 0.61 * len(words)
    of = (
        0.42 if x in NARROW else 1 if x in WIDE else 0.8 if x.isupper() else 0.65
        for x in words
    )
    bold = 1.1 if {"head", "title"} & {*kind.split()} else 1
    return sum(of) * bold


def read(name: str) -> ElementTree.Element:
    return ElementTree.parse(ROOT / f"docs/figures/{name}.svg").getroot()


def styles(svg: ElementTree.Element, theme: str) -> dict[str, str]:
    """Return the fill color, or the digits of an opacity, of each class in a theme."""
    (style,) = svg.iter("{http://www.w3.org/2000/svg}style")
    light, dark = (style.text or "").split("@media(prefers-color-scheme:dark)")
    rules = light if theme == "light" else light + dark
    colors = dict(re.findall(r"\.(\w+)\{fill:(#\w+)\}", rules))
    shades = re.findall(r"\.(\w+)\{fill-opacity:([.\d]+)\}", rules)
    return colors | {name: f"{round(255 * float(x)):02x}" for name, x in shades}


def parts(
    svg: ElementTree.Element, kind: str, theme: str = "light"
) -> list[dict[str, str]]:
    """Return the attributes of elements. `fill` is the color, as #RRGGBB[AA]."""
    found, style = svg.iter(f"{{http://www.w3.org/2000/svg}}{kind}"), styles(svg, theme)

    def fill(classes: str) -> str:
        return "".join(style.get(name, "") for name in classes.split())

    return [
        {**x.attrib, "words": x.text or "", "fill": fill(x.get("class", ""))}
        for x in found
    ]


def texts(svg: ElementTree.Element, theme: str) -> list[Words]:
    found = []
    for x in parts(svg, "text", theme):
        kind = x.get("class", "")
        size = 13 if "code" in kind else 17 if "title" in kind else 14
        left, wide = float(x["x"]), width(x["words"], kind) * size
        left -= wide / 2 if "middle" in kind else 0
        top, bottom = float(x["y"]) - 0.8 * size, float(x["y"]) + 0.25 * size
        box = left, left + wide, top, bottom
        found.append(Words(x["words"], size, x["fill"], *box))
    return found


def rgb(color: str, page: str = "#000000") -> list[float]:
    """Blend a color, which may be transparent, with the color of a page."""
    numbers = [
        [int(x[i : i + 2], 16) / 255 for i in range(1, len(x), 2)]
        for x in (color, page)
    ]
    (*front, share), (*back, _) = (x + [1.0] * (4 - len(x)) for x in numbers)
    return [share * f + (1 - share) * b for f, b in zip(front, back, strict=True)]


def contrast(color: str, *behind: str) -> float:
    """Return the contrast of WCAG 2 between a color and the colors behind it."""
    page, *boxes = behind
    back = rgb(page)
    for box in boxes:
        written = "#" + "".join(f"{round(255 * x):02x}" for x in back)
        back = rgb(box, written)

    def luminance(linear: list[float]) -> float:
        of = [
            x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in linear
        ]
        return 0.2126 * of[0] + 0.7152 * of[1] + 0.0722 * of[2]

    low, high = sorted(map(luminance, (rgb(color), back)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#000000", "#ffffff", "#00000080") == pytest.approx(5.3, abs=0.1)


@pytest.fixture
def diagrams(monkeypatch: pytest.MonkeyPatch) -> Any:
    for folder in ("whole", "support"):
        monkeypatch.syspath_prepend(ROOT / "benchmarks" / folder)
    return pytest.importorskip("diagrams")


def test_they_are_current(diagrams: Any) -> None:
    assert list(diagrams.DIAGRAMS) == NAMES
    for name in NAMES:
        written = (ROOT / f"docs/figures/{name}.svg").read_text()
        assert diagrams.picture(name) == written, f"{name}: run readme.py"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", NAMES)
def test_they_are_readable(name: str, theme: str) -> None:
    svg = read(name)
    _, _, wide, high = map(float, svg.attrib["viewBox"].split())
    assert (svg.attrib["width"], svg.attrib["height"]) == (f"{wide:g}", f"{high:g}")
    found = texts(svg, theme)
    assert found
    for x in found:
        assert x.size * min(1, PHONE / wide) >= 11
        assert x.left >= 0, x
        assert x.right <= wide, x
        assert x.top >= 0, x
        assert x.bottom <= high, x
        behind = [
            box["fill"]
            for box in parts(svg, "rect", theme)
            if float(box["x"]) < x.right
            and float(box["x"]) + float(box["width"]) > x.left
            and float(box["y"]) < x.bottom
            and float(box["y"]) + float(box["height"]) > x.top
        ]
        for page in PAGES[theme]:
            assert contrast(x.color, page) >= 4.5, x
            assert all(contrast(x.color, page, box) >= 4.5 for box in behind), x
    for x, y in combinations(found, 2):
        beside = x.right <= y.left or y.right <= x.left
        assert beside or x.bottom <= y.top or y.bottom <= x.top, (x, y)
    for box in parts(svg, "rect"):
        assert float(box["x"]) >= 0
        assert float(box["x"]) + float(box["width"]) <= wide
        assert float(box["y"]) + float(box["height"]) <= high


@pytest.mark.parametrize("name", NAMES)
def test_pages_show_them_with_the_title(name: str) -> None:
    title = parts(read(name), "title")[0]["words"]
    assert re.fullmatch(r"[A-Z].*\.", title)
    for path in DOCUMENTS:
        shown = [x for x in SHOWN.findall(path.read_text()) if x[1] == name]
        assert shown in ([], [(title, name)])
        count = path.read_text().count(f"figures/{name}.")
        assert count == len(shown), f"{path.name}: not an image with the title"
