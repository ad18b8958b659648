"""Strings of reports with extreme or missing figures."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RNG = np.random.default_rng(0)
F32 = np.float32


def full(value: float, dtype: Any = F32) -> Any:
    return np.full((64, 64), value, dtype)


def normal() -> Any:
    return RNG.standard_normal((64, 64)).astype(F32)


def with_specials(value: float) -> Any:
    x = normal()
    x[3] = x[:, 5] = value
    return x


def whole() -> Any:
    return RNG.integers(-4, 5, (64, 64)).astype(F32)


PROGRAMS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "zeros": lambda: full(0) @ full(0),
    "zeros times numbers": lambda: full(0) @ normal(),
    "a NaN in each result": lambda: with_specials(np.nan) @ with_specials(np.nan),
    "a row of NaN": lambda: np.vstack([full(np.nan)[:1], normal()]) @ normal(),
    "NaN": lambda: full(np.nan) @ full(np.nan),
    "Inf": lambda: full(np.inf) @ full(-np.inf),
    "an Inf": lambda: with_specials(np.inf) @ normal(),
    "1 x 1": lambda: np.dot(full(1.5)[:1, :1], full(1.5)[:1, :1]),
    "1 x 1, float64": lambda: full(1.5, float)[:1, :1] @ full(1.5, float)[:1, :1],
    "one number": lambda: normal()[0] @ normal()[0],
    "no terms": lambda: full(1)[:, :0] @ full(1)[:0],
    "integers": lambda: whole() @ whole(),
    "integers in float64": lambda: whole().astype(float) @ whole().astype(float),
    "complex integers": lambda: (whole() + 1j) @ (whole() + 1j),
    "exact zeros": lambda: np.tile(np.array([1, -1], F32), (64, 32)) @ full(1),
    "zeros of rounded numbers": lambda: (
        np.tile(np.array([1.1, -1.1], F32), (64, 32)) @ full(1.1)
    ),
    "overflow": lambda: full(1e30) @ full(1e30),
    "underflow": lambda: full(1e-30) @ full(1e-30),
    "overflow in float64": lambda: full(1e200, float) @ full(1e200, float),
    "underflow in float64": lambda: full(1e-200, float) @ full(1e-200, float),
    "subnormal": lambda: full(1e-42) @ full(1),
    "times zeros": lambda: normal() @ np.zeros(64, F32),
}


class Texts(HTMLParser):
    """Collect the text of a page, without scripts, styles and source code."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("script", "style", "pre"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "pre"):
            self.inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.found.append(data)


def texts_of(report: td.report, path: Any) -> list[str]:
    """Return the lines of a report on a terminal, and the text of its page."""
    shown = io.StringIO()
    report.print(shown)
    report.save(path / "r.html")
    page = Texts()
    page.feed((path / "r.html").read_text())
    return [*shown.getvalue().splitlines(), *page.found]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("options", [{}, {"device": "H100"}, {"arithmetic": "bf16"}])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_figure_is_inf_or_nan(
    name: str, options: dict[str, Any], tmp_path: Any
) -> None:
    program = PROGRAMS[name]
    with td.report(dots=True, trial=lambda: [program(), 1.0], **options) as r:
        program()
    for text in texts_of(r, tmp_path):
        text = text.replace("  NaN  ", "") if text != "NaN" else ""  # a column
        text = re.sub(r"\d+ (Inf|NaN)|became Inf or NaN|-> (inf|nan)", "", text)
        assert not re.search(r"\b(?i:inf|nan)\b|(exact|none) dB|None", text)
    r.save(tmp_path / "r.json")
    json.loads((tmp_path / "r.json").read_text())  # strict


@pytest.mark.parametrize("program", ["nothing", "1 x 1, float64", "no terms"])
def test_a_program_without_products_is_told_of_arithmetic(program: str) -> None:
    with td.report() as r:
        PROGRAMS[program]()
    assert not r.call_sites
    assert r.advice[0].text == (
        "No matrix multiplication was measured in this program. Use --arithmetic bf16,"
        " or td.report(arithmetic=...), to measure NumPy's other operations"
    )


def test_overflow_in_words() -> None:
    with td.report() as r:
        PROGRAMS["overflow"]()
    shown = io.StringIO()
    r.print(shown)
    assert "(bf16 all digits wrong, f32 all digits wrong)" in shown.getvalue()
    assert shown.getvalue().count("  none") == 6  # columns


def test_exact_zeros_in_words() -> None:
    with td.report() as r:
        PROGRAMS["exact zeros"]()
    assert "(all digits, condition infinite)" in r.advice[-1].text


def test_no_share_of_time_is_above_100(tmp_path: Any) -> None:
    """Limit the share of time to 100 %, as threads multiply longer than the program."""
    x = np.ones((400, 400))

    def work() -> None:
        for _ in range(10):
            x @ x
            x.T @ np.ones((400, 300))

    with td.report(precision="bf16") as r:
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    r.save(tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    shares = [site["seconds_share"] for site in found["call_sites"]]
    assert len(shares) == 2
    assert 0 < sum(shares) <= 1 + 1e-9
