"""The address holds the whole state: links, the back button, tabs."""

import pytest

from .browser import PAGE, VIEWS

pytestmark = pytest.mark.once

NUMBER = "#number?format=float8_e5m2&x=3.14159"


@pytest.mark.parametrize("name", VIEWS)
def test_reload(explorer, name):
    """A state other than the initial state survives a reload of the page."""
    one = explorer().open(f"#{name}")
    choice = one.page.locator("main section:not([hidden]) select").first
    options = choice.locator("option").evaluate_all("all => all.map((x) => x.value)")
    before = one.text
    choice.select_option(next(x for x in options[::-1] if x != choice.input_value()))
    link, text = one.link, one.text
    assert text != before
    one.page.reload()
    one.page.wait_for_selector("main section:not([hidden])")
    assert (one.link, one.text) == (link, text)
    assert explorer().open(link).text == text


def test_back_and_forward(explorer):
    one = explorer().open(NUMBER)
    first = one.text
    one.page.click("text=largest")
    second = one.text
    assert second != first
    one.page.click("nav >> text=Codes")
    third = one.text
    assert "format=float8_e5m2" in one.link
    for go, expected in (
        (one.page.go_back, second),
        (one.page.go_back, first),
        (one.page.go_forward, second),
        (one.page.go_forward, third),
    ):
        go()
        assert one.text == expected


def test_typing_is_one_step(explorer):
    one = explorer().open(NUMBER)
    one.page.click("nav >> text=Codes")
    one.page.click("nav >> text=Number >> nth=0")
    box = one.page.get_by_label("Number or code")
    box.fill("")
    box.press_sequentially("1/3")
    assert one.link == "#number?format=float8_e5m2&x=1%2F3"
    one.page.go_back()
    assert one.link.startswith("#codes?")


def test_what_is_chosen_goes_with_the_tabs(explorer):
    one = explorer().open("#codes?format=float6_e2m3fn&sort=-value")
    one.page.click("nav >> text=Number line")
    assert "format=float6_e2m3fn" in one.link
    one.page.click("nav >> text=Codes")
    assert one.link == "#codes?format=float6_e2m3fn&sort=-value"


@pytest.mark.parametrize(
    ("link", "full"),
    [
        ("#number?format=bf16&x=1", "#number?format=bfloat16&x=1"),
        ("#codes?format=FP4&sort=code", "#codes?format=float4_e2m1fn&sort=code"),
        ("#line?format=fp16&other=&x=1", "#line?format=float16&other="),
        ("#chain?chain=fp64,bf16&x=1", "#chain?chain=float64%2Cbfloat16&x=1"),
    ],
)
def test_short_names_in_a_link(explorer, link, full):
    one = explorer().open(link)
    assert one.link.startswith(full)
    assert "does not know these parts" not in one.text


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("#number?format=tf33&x=1", "format=tf33"),
        ("#codes?format=tf32&sort=code", "format=tf32"),
        ("#nowhere?x=1", "nowhere"),
    ],
)
def test_a_link_to_what_is_not_there(explorer, link, told):
    one = explorer().open(link)
    assert told in one.page.inner_text("[role=alert]")
    one.page.get_by_label("Format", exact=True).select_option("float8_e5m2")
    assert one.page.inner_text("[role=alert]") == ""


@pytest.mark.parametrize(
    ("start", "end"),
    [("1", "1"), ("2", "1"), ("0", "5e-324"), ("1", "1.0000000000001")],
)
def test_a_stretch_that_cannot_be_drawn(explorer, start, end):
    """The page draws another stretch, and says so."""
    one = explorer().open(f"#line?from={start}&to={end}")
    assert f"The interval from {start} to {end} cannot be drawn" in one.text
    assert "Numbers from \N{MINUS SIGN}2 to 2:" in one.text


def test_copy(explorer):
    one = explorer(permissions=["clipboard-read", "clipboard-write"]).open(NUMBER)
    one.page.click("text=Copy link")
    one.page.wait_for_selector("text=Copied")
    assert one.run("() => navigator.clipboard.readText()") == PAGE + NUMBER
