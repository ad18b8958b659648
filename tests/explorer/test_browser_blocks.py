"""The Block view shows the scales, codes and errors of td.blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype.blocks.formats import elements, formats

pytestmark = pytest.mark.once

STATE = "() => Object.fromEntries(new URLSearchParams(location.hash.split('?')[1]))"
#: Returns the cells of a table, by its caption.
CELLS = """(caption) => [...document.querySelectorAll("#view-block table")]
    .filter((table) => table.caption.textContent === caption)
    .flatMap((table) => [...table.tBodies[0].rows].map((row) =>
        [...row.cells].map((cell) => cell.textContent)))"""
#: Returns the code of the first scale of each block.
SCALES = """() => [...document.querySelectorAll(".block-card")].map((card) =>
    card.querySelector("dd .code").textContent.trim())"""


def given(one: Any) -> np.ndarray[Any, Any]:
    """Return the numbers in the input field."""
    texts = one.page.get_by_label("Numbers", exact=True).input_value().split(", ")
    return np.array([float.fromhex(t) if "0x" in t else float(t) for t in texts])


def codes(name: str, blocks: Any) -> list[int]:
    """Return right-aligned codes of the elements."""
    of = elements[formats[name].element]
    found = blocks.elements
    bits = found if of.is_integer else td.bits(found)
    return [int(x) & (1 << of.width) - 1 for x in bits]


def check(one: Any, name: str, rule: str | None = None) -> int:
    """Check everything that the page shows of the numbers in the input field."""
    x = given(one)
    want = td.blocks.quantize(x, name, scale=rule)
    scales = want.scales.reshape(len(want.scales), -1)[:, 0]
    assert [int(t, 16) for t in one.run(SCALES)] == scales.tolist()
    rows = [row for i in range(len(scales))
            for row in one.run(CELLS, f"Numbers of block {i + 1}")]  # fmt: skip
    assert [int(row[0]) for row in rows] == list(range(len(x)))
    assert [int(row[2], 16) for row in rows] == codes(name, want)
    held = [float(row[-3].replace("\u2212", "-")) for row in rows]
    np.testing.assert_allclose(held, want.dequantize(), rtol=1e-2)
    errors = [float(row[-2].replace("\u2212", "-")) for row in rows]
    np.testing.assert_allclose(
        errors, want.dequantize().astype(float) - x, rtol=1e-2, atol=1e-12
    )
    return len(x)


def test_drawn_numbers(explorer, compared):
    """The page is right for every format, with its own rule and another rule."""
    one = explorer().open("#block?count=32")
    for name in formats:
        one.page.get_by_label("Block format").select_option(name)
        for button, rule in (("Wide exponents", None), ("With an outlier", "mse")):
            one.page.click(f"#view-block >> text={button}")
            one.page.get_by_label("Rule", exact=True).select_option(rule or "")
            compared(check(one, name, rule))
    assert explorer().open(one.link).text == one.text


def test_rules_beside_each_other(explorer):
    """For each rule the page shows its scale, its errors, and how many numbers
    saturate."""
    one = explorer().open("#block")
    x = given(one)
    rows = one.run(CELLS, "The rules compared")
    assert [row[0] for row in rows] == ["amax", "floor", "even", "nf", "mse"]
    for rule, scale, rms, worst, saturated, _ in rows:
        want = td.blocks.quantize(x, "mxfp4", scale=rule)
        worth, code = scale.split()
        assert int(code, 16) == want.scales[0]
        assert float(worth) == 2.0 ** (int(want.scales[0]) - 127)
        error = want.dequantize() - x
        assert float(rms) == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-5)
        assert float(worst) == pytest.approx(abs(error).max(), rel=1e-5)
        assert int(saturated) == int((abs(x) >= 7 * float(worth)).sum())
    assert [row[4] for row in rows] == ["0", "1", "0", "0", "0"]
    one.page.click('#view-block a:text-is("amax")')
    assert one.run(STATE)["rule"] == "amax"
    assert one.page.locator(".block-chart .saturated").count() == 0


def test_what_saturates_is_marked(explorer):
    one = explorer().open("#block?block=mxfp4&rule=floor&values=1,2,3,7.9")
    assert one.page.locator(".block-chart .held.saturated").count() == 1
    assert [row[-1] for row in one.run(CELLS, "Numbers of block 1")] == [
        *["exact", "exact", "exact"], "saturated",
    ]  # fmt: skip


def test_a_rule_that_a_format_lacks(explorer):
    one = explorer().open("#block?block=mxfp4&rule=published&values=1,2,3")
    assert "mxfp4 has no rule published; its default, floor, is used." in one.text
    assert check_values(one) == [1, 2, 3]


def check_values(one: Any) -> list[float]:
    return [float(row[1]) for row in one.run(CELLS, "Numbers of block 1")]


def test_what_a_format_has_no_code_for(explorer):
    one = explorer().open("#block?block=int8&values=1,nan")
    box = one.page.get_by_label("Numbers", exact=True)
    assert box.get_attribute("aria-invalid") == "true"
    assert "value 1 is nan" in one.text
    one.page.get_by_label("Block format").select_option("mxfp8_e4m3")
    assert box.get_attribute("aria-invalid") == "false"
    assert one.run(SCALES) == ["0xFF"]
