"""The strings in the views of casts, sums and products."""

import numpy as np
import pytest

import tf32dtype as td

pytestmark = pytest.mark.once


def test_a_chain_that_rounds_twice(explorer):
    one = explorer().open("#chain?x=0.1")
    assert "gives the same" in one.page.inner_text(".verdict")
    one.page.click("text=Find a number that differs")
    x = float(one.page.get_by_label("Number", exact=True).input_value())
    through = float(np.float16(x).astype(td.float8_e4m3fn))
    once = float(np.float64(x).astype(td.float8_e4m3fn))
    assert through != once
    told = f"The chain gives {through:g}; one cast gives {once:g}."
    assert one.page.inner_text(".verdict") == f"Double rounding. {told}"
    assert "is a tie here" in one.page.inner_text(".steps li:last-child >> nth=0")


def test_a_small_number_is_subnormal_or_zero(explorer):
    one = explorer().open("#number?format=float8_e4m3fn&x=0.1")
    rows = one.page.locator("tr")
    assert "subnormal" in rows.filter(has_text="float6_e2m3fn").inner_text()
    assert "underflow to zero" in rows.filter(has_text="float4_e2m1fn").inner_text()


def test_the_first_chain_rounds_twice(explorer):
    one = explorer().open("#chain")
    assert "The chain gives 1; one cast gives 1.125." in one.text


def test_a_chain_of_wide_formats_has_no_example(explorer):
    one = explorer().open("#chain?chain=float8_e4m3fn,float64&x=1")
    one.page.click("text=Find a number that differs")
    assert "no such value" in one.page.inner_text("#view-chain")


def test_a_chain_that_widens_is_not_double_rounding(explorer):
    one = explorer().open("#chain?chain=float8_e4m3fn,float64&x=1.03125")
    assert one.page.inner_text(".verdict").startswith("Rounded earlier.")


@pytest.mark.parametrize(
    ("what", "a", "b", "digits", "told"),
    [
        ("add", 1.5, 0.0625, ["11000000", "00001000", "11001000"], "It is a tie"),
        ("multiply", 1.125, 1.375, ["1001", "1011", "1100011"], "stay as they are"),
        ("add", 1, 0.5, ["10000", "01000", "11000"], "the result is exact"),
    ],
)
def test_steps_of_arithmetic(explorer, what, a, b, digits, told):
    one = explorer().open(f"#arithmetic?format=float8_e4m3fn&what={what}&a={a}&b={b}")
    shown = one.page.locator(".sum .digits").all_inner_texts()
    assert [text.strip("\u2007") for text in shown] == digits
    x, y = td.float8_e4m3fn(a), td.float8_e4m3fn(b)
    result = x + y if what == "add" else x * y
    assert one.page.inner_text(".headline strong:visible") == f"{float(result):g}"
    assert told in one.page.inner_text("#view-arithmetic")


def test_arithmetic_without_digits(explorer):
    one = explorer().open("#arithmetic?format=bfloat16&what=add&a=inf&b=-inf")
    assert one.page.inner_text(".headline strong:visible") == "NaN"
    assert "no digits to align" in one.page.inner_text(".verdict")
