"""The Tensor core view shows the results of td.tensor_core, and the truncated bits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.explorer.test_browser_numbers import code, dtype
from tf32dtype.tensor_core.models import ALIGNED

pytestmark = pytest.mark.once

#: Returns rows of the last table: device and instruction, result, code, error, verdict.
ROWS = """() => {
    const tables = document.querySelectorAll("main section:not([hidden]) table");
    return [...tables[tables.length - 1].tBodies[0].rows].map((row) =>
        [...row.cells].slice(0, 5).map((cell) => cell.textContent));
}"""
STATE = "() => Object.fromEntries(new URLSearchParams(location.hash.split('?')[1]))"


def numbers(texts: str, name: str) -> np.ndarray[Any, Any]:
    """Return numbers of a format, from exact decimals or hexadecimal floats."""
    found = [float.fromhex(t) if "0x" in t else float(t) for t in texts.split(", ")]
    x = np.array(found).astype(dtype(name))
    assert x.astype(float).tolist() == found
    return x


def links(model: str, **more: str) -> str:
    """Return the address of a model, with more keys."""
    keys = {"model": model.replace(" ", "+").replace(">", "%3E"), **more}
    return "#tensor?" + "&".join(f"{key}={value}" for key, value in keys.items())


def test_promotion(explorer):
    """The control changes the address, and the page shows the package's result."""
    model = "H100 wgmma float8_e4m3fn -> float32"
    left, right = ", ".join(["1.125"] * 64), ", ".join(["0.0625"] * 64)
    one = explorer().open(links(model, left=left, right=right, c="4096"))
    assert one.page.locator("text=Promotion").count() == 0
    one.page.get_by_label("Promote every", exact=True).fill("32")
    assert one.run(STATE)["promoteEvery"] == "32"
    assert one.page.locator("h2 >> text=Promotion").count() == 2
    c = np.full((1, 1), 4096, np.float32)
    want = td.tensor_core.matmul(
        numbers(left, "float8_e4m3fn")[None], numbers(right, "float8_e4m3fn")[:, None],
        c=c, device="H100", instruction="wgmma", promote_every=32,
    )  # fmt: skip
    shown = int(one.page.inner_text(".step-bits a"), 16)
    assert shown == want.view(np.uint32)[0, 0]
    assert "with the same promotion" in one.text
    assert explorer().open(one.link).text == one.text
    one.page.get_by_label("Promote every", exact=True).fill("20")
    assert "enter a positive multiple of 32" in one.text
    one.page.get_by_label("Promote every", exact=True).fill("")
    assert one.page.locator("text=Promotion").count() == 0


def test_promotion_of_float16_sums(explorer):
    """Sums in float16 cannot be promoted, and the control is hidden."""
    one = explorer().open(links("H100 mma.sync float16 -> float16", promoteEvery="20"))
    assert one.page.get_by_label("Promote every", exact=True).is_hidden()
    assert "multiple of" not in one.text


def typed(one: Any, label: str) -> str:
    return str(one.page.get_by_label(label, exact=True).input_value())


def check(one: Any, name: str) -> int:
    """Check all rows of the comparison, for the model that the page shows."""
    model = next(m for m in ALIGNED if m.name == name)
    a, b = (numbers(typed(one, label), getattr(model, label)) for label in "ab")
    exact = sum((Fraction(float(x)) * Fraction(float(y))
                 for x, y in zip(a, b, strict=True)), Fraction(0))  # fmt: skip
    alike = [m for m in ALIGNED if (m.a, m.b, m.accumulator)
             == (model.a, model.b, model.accumulator)]  # fmt: skip
    rows = one.run(ROWS)
    assert [row[0] for row in rows] == [f"{m.device} {m.instruction}" for m in alike]
    codes = {}
    for other in alike:
        result = td.tensor_core.matmul(
            a, b, device=other.device, instruction=other.instruction,
            accumulator=other.accumulator,
        )  # fmt: skip
        codes[other.name] = code(other.accumulator, result), result
    for other, (_, _, shown, error, verdict) in zip(alike, rows, strict=True):
        found, result = codes[other.name]
        assert int(shown, 16) == found, other.name
        same = "the same" if found == codes[name][0] else "differs"
        assert verdict == ("this model" if other is model else same)
        assert (error == "0, exact") == (Fraction(float(result)) == exact)
    return len(rows)


def test_first_example(explorer):
    """An H100 keeps float16 products that an A100 truncates."""
    one = explorer().open("#tensor")
    headline = one.page.locator("#view-tensor .headline strong")
    assert "2.98023e\u22128" in headline.inner_text()
    assert one.page.locator(".sum-picture rect.cut").count() == 0
    assert check(one, "H100 wgmma float16 -> float32") == 10
    assert {row[0]: row[2] for row in one.run(ROWS)} == {
        "V100 mma.sync": "0x00000000", "T4 mma.sync": "0x00000000",
        "T4 mma.sync.m8n8k4": "0x00000000",
        "A100 mma.sync": "0x00000000", "L40S mma.sync": "0x00000000",
        "H100 wgmma": "0x33000000", "H100 mma.sync": "0x33000000",
        "B200 tcgen05": "0x33000000", "B200 mma.sync": "0x33000000",
        "RTX Blackwell mma.sync": "0x33000000",
    }  # fmt: skip
    one.page.click("main section >> text=A100 mma.sync")
    assert headline.inner_text() == "0"
    one.page.wait_for_selector(".sum-picture rect.cut", state="attached")
    assert one.page.locator(".sum-picture rect.cut").count() == 1
    assert "1 term loses bits" in one.text
    one.page.get_by_label("Device", exact=True).select_option("H100")
    one.page.get_by_label("a", exact=True).fill("1, 2")
    assert "a has 2" in one.text
    one.page.click("text=Where H100 and A100 differ")
    assert "2.98023e\u22128" in headline.inner_text()


DRAWN = (
    "A100 mma.sync tf32 -> float32",
    "V100 mma.sync float16 -> float16",
    "H100 mma.sync float8_e4m3fn x float8_e5m2 -> float32",
    "B200 tcgen05 float4_e2m1fn x float8_e4m3fn -> float32",
)


def test_drawn_numbers(explorer, compared):
    """Drawn pairs are in the address, and every device's result is the package's."""
    one = explorer()
    for name in DRAWN:
        one.open(links(name, count="32"))
        for button in ("Normal", "Wide exponents", "Canceling"):
            one.page.click(f"#view-tensor >> text={button}")
            assert one.run(STATE)["left"] == typed(one, "a")
            assert typed(one, "a").count(",") == 31
            compared(check(one, name))
    assert explorer().open(one.link).text == one.text


def test_what_is_cut_is_what_explain_says(explorer):
    """Terms with bits below the unit are marked in the table and hatched in the
    picture."""
    name = "A100 mma.sync float16 -> float32"
    one = explorer().open(links(name, count="8"))
    one.page.click("text=Canceling")
    one.page.get_by_label("a", exact=True).fill(
        one.run(STATE)["left"].rpartition(",")[0] + ", 0x1p-24"
    )
    state = one.run(STATE)
    told = td.tensor_core.explain(
        numbers(state["left"], "float16"), numbers(state["right"], "float16"),
        device="A100",
    )  # fmt: skip
    # Lines of products have a seventh column if bits are truncated.
    cut = [line.split()[0] for line in told.splitlines()
           if line.split() and line.split()[0].isdigit()
           and len(line.split()) == 7]  # fmt: skip
    assert cut
    shown = one.run(
        """() => [...document.querySelectorAll(".group-card tr.cut th")].map((x) =>
            x.textContent)"""
    )
    assert shown == [f"k {k}" for k in cut]


def test_scaled(explorer):
    """The page shows a block-scaled product with a scale for each block."""
    name = "B200 tcgen05.mxf4nvf4 float4_e2m1fn x float4_e2m1fn, ue4m3 of 16 -> float32"
    left, right = [6.0, 0.5] * 16, [1.5, -3.0] * 8 + [4.0, 1.0] * 8
    one = explorer().open(
        links(name, left=",".join(map(str, left)), right=",".join(map(str, right)),
              scalesLeft="0.5,0x40", scalesRight="3"))  # fmt: skip
    # 0x40 is 2. b has one scale, which both blocks use.
    first = 0.5 * 3 * float(np.dot(left[:16], right[:16]))
    second = 2 * 3 * float(np.dot(left[16:], right[16:]))
    shown = one.page.inner_text("#view-tensor .headline strong")
    assert shown == f"{first + second:g}"
    assert one.page.get_by_label("Scales of a").is_visible()


def test_another_format_keeps_the_numbers(explorer):
    """When a new format gives a code another meaning, the page keeps the number."""
    one = explorer().open(
        links("A100 mma.sync float16 -> float32", left="0x3C00,2", right="1,0x3800")
    )
    one.page.get_by_label("Formats of a").select_option("bfloat16")
    state = one.run(STATE)
    assert state["model"] == "A100 mma.sync bfloat16 -> float32"
    assert (state["left"], state["right"]) == ("1, 2", "1, 0.5")
    assert one.page.inner_text("#view-tensor .headline strong") == "2"


def test_what_is_no_number_is_named(explorer):
    one = explorer().open(links("A100 mma.sync tf32 -> float32", left="1,x,3"))
    box = one.page.get_by_label("a", exact=True)
    assert box.get_attribute("aria-invalid") == "true"
    assert "number 1, x" in one.text
    box.fill("1, 2, 3")
    assert box.get_attribute("aria-invalid") == "false"
