"""No measured figure is on two pages, unless it is a definition."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

FIGURE = re.compile(
    r"(?<![\w.`/-])(\d[\d,]*(?:\.\d+)?)\s"
    r"(times|dB|ms|us|ns|minutes|seconds|[GT]B/s|TFLOP/s|[kMG]B|tests|cases|models)\b"
)
LEFT_OUT = (
    re.compile(
        r"<!-- (benchmark|table):.*?:begin -->.*?<!-- \1:.*?:end -->", re.DOTALL
    ),
    re.compile(r"```.*?```", re.DOTALL),
    re.compile(r"`[^`\n]*`"),
)
#: Figures that several pages may have, and the reason.
EXPLAINED = {
    "20 dB": "a decimal digit",
    "6 dB": "a bit",
    "40 dB": "what a report requires unless it is told otherwise",
    "30 dB": "a threshold in two examples",
    "10 times": "the limit of a slow class, and an error of FP8 sums",
}


def repeated(pages: dict[str, str]) -> dict[str, list[str]]:
    """Return the figures that are on more than one page, and the pages."""
    found: dict[str, set[str]] = defaultdict(set)
    for page, text in pages.items():
        for pattern in LEFT_OUT:
            text = pattern.sub(" ", text)
        for number, unit in FIGURE.findall(text):
            found[f"{number} {unit}"].add(page)
    return {figure: sorted(x) for figure, x in found.items() if len(x) > 1}


def test_no_figure_is_repeated() -> None:
    docs = ROOT / "docs"
    pages = {
        path.relative_to(docs).as_posix(): path.read_text()
        for path in docs.rglob("*.md")
    }
    assert len(pages) > 60
    found = repeated(pages)
    assert {x: found[x] for x in found.keys() - EXPLAINED.keys()} == {}
    assert EXPLAINED.keys() <= found.keys()
    assert repeated({"one": "It takes 1.5 ms.", "other": "1.5 ms of `2 ms`, 2 ms"}) == {
        "1.5 ms": ["one", "other"]
    }
