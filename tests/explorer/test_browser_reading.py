"""The page can be read and used: widths, themes, keys, labels, errors."""

import pytest

from .browser import VIEWS

pytestmark = pytest.mark.once

#: Returns elements that are wider than the page, outside of frames that scroll.
TOO_WIDE = """() => {
    const scrolls = (x) => x && (x !== document.body && /auto|scroll/.test(
        getComputedStyle(x).overflowX) || scrolls(x.parentElement));
    const out = [...document.querySelectorAll("body *")].filter((x) => {
        const box = x.getBoundingClientRect();
        return box.width > 0 && !x.closest(".skip, .unseen")
            && !scrolls(x.parentElement) && !x.parentElement.closest("svg")
            && (box.right > innerWidth + 1 || box.left < -1);
    }).map((x) => `${x.tagName} ${x.className.baseVal ?? x.className}`);
    const root = document.documentElement;
    return root.scrollWidth > root.clientWidth ? ["the page", ...out] : out;
}"""

#: Returns strings whose contrast with their background is below 4.5: WCAG 2.2, 1.4.3.
TOO_FAINT = """() => {
    const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92
        : ((v + 0.055) / 1.055) ** 2.4;
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) =>
        0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const under = (x) => {
        if (!x) return [255, 255, 255];
        const color = numbers(getComputedStyle(x).backgroundColor);
        return color.length === 4 && color[3] === 0 ? under(x.parentElement) : color;
    };
    const faint = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode());) {
        const x = node.parentElement;
        if (!node.data.trim() || !x.checkVisibility()
            || x.closest("script, title, desc, noscript")) continue;
        const svg = x.closest("svg");
        const style = getComputedStyle(x);
        const ink = light(numbers(svg ? style.fill : style.color));
        const paper = light(under(svg ? svg.parentElement : x));
        const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        if (ratio < 4.5) faint.push(`${node.data.trim()}: ${ratio.toFixed(2)}`);
    }
    return faint;
}"""

#: Returns controls, drawings and tables without a name for screen readers.
WITHOUT_NAMES = """() => [...document.querySelectorAll(
    "main section:not([hidden]) :is(button, a, input, select, svg, table), header *")]
    .filter((x) => x.checkVisibility()).filter((x) =>
        x.matches("svg") ? !(x.querySelector("title")?.textContent
                && x.querySelector("desc")?.textContent)
            : x.matches("table")
                ? !(x.caption?.textContent && x.querySelector("th[scope]"))
                : x.matches("input, select") ? !(x.labels.length || x.ariaLabel)
                    : !(x.textContent.trim() || x.ariaLabel))
    .map((x) => x.outerHTML.slice(0, 100))"""

#: Returns the number of elements that the Tab key should reach.
REACHABLE = """() => [...document.querySelectorAll(
    "a, button, input, select, textarea, [tabindex='0']")].filter((x) =>
    x.checkVisibility() && !x.disabled && x.tabIndex >= 0).length"""

#: Returns "" if the focus is visible, else the element with the focus, or "end" after
#: the last control.
FOCUS = """() => {
    const x = document.activeElement;
    if (!x || x === document.body) return "end";
    const style = getComputedStyle(x);
    return style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2
        ? x.outerHTML.slice(0, 100) : "";
}"""


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("width", [360, 768, 1440, 3840])
def test_nothing_is_wider_than_the_page(explorer, name, width):
    one = explorer(viewport={"width": width, "height": 900}).open(f"#{name}")
    assert one.run(TOO_WIDE) == []


#: Returns elements that do not stay in sight when a frame scrolls sideways on a narrow
#: screen.
OUT_OF_SIGHT = """() => [...document.querySelectorAll(
    "main section:not([hidden]) .frame")].filter((frame) => {
        frame.scrollLeft = 1000;
        if (frame.scrollLeft === 0) return false;
        const left = frame.getBoundingClientRect().left;
        return frame.matches(".stacks") || [...frame.querySelectorAll("tbody th")].some(
            (key) => Math.abs(key.getBoundingClientRect().left - left) > 2);
    }).map((frame) => frame.ariaLabel)"""


@pytest.mark.parametrize("name", VIEWS)
def test_keys_of_tables_stay_in_sight(explorer, name):
    one = explorer(viewport={"width": 360, "height": 900}).open(f"#{name}")
    assert one.run(OUT_OF_SIGHT) == []


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(explorer, name, scheme):
    one = explorer(color_scheme=scheme).open(f"#{name}")
    dark = one.run("() => getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(21, 24, 28)") == (scheme == "dark")
    assert one.run(TOO_FAINT) == []


@pytest.mark.parametrize("name", VIEWS)
def test_all_has_a_name(explorer, name):
    assert explorer().open(f"#{name}").run(WITHOUT_NAMES) == []


@pytest.mark.parametrize("name", VIEWS)
def test_tab_reaches_all(explorer, name):
    one = explorer().open(f"#{name}")
    expected = one.run(REACHABLE)
    seen = 0
    while seen <= expected:
        one.page.keyboard.press("Tab")
        focus = one.run(FOCUS)
        if focus == "end":
            break
        assert focus == "", "the focus is not seen"
        seen += 1
    assert seen == expected


def test_the_page_has_landmarks_and_one_heading(explorer):
    one = explorer().open()
    for landmark in ("header", "nav[aria-label]", "main", "footer", "[aria-live]"):
        assert one.page.locator(landmark).count() == 1, landmark
    assert one.page.locator("h1:visible").count() == 1


def test_bits_by_keys(explorer):
    """Arrow keys move along the bits and from number to number; Space flips a bit."""
    one = explorer().open("#number?format=float8_e4m3fn&x=0x38")
    value = one.page.locator(".headline strong")
    assert value.inner_text() == "1"
    one.page.locator(".bit").first.focus()
    one.page.keyboard.press("End")
    one.page.keyboard.press("Space")
    assert value.inner_text() == "1.125"
    one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.press("Enter")
    assert value.inner_text() == "1.375"
    one.page.keyboard.press("ArrowUp")
    assert value.inner_text() == "1.5"
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("ArrowDown")
    assert value.inner_text() == "1.25"
    one.page.wait_for_function(
        "() => document.getElementById('live').textContent.includes('1.25 in')"
    )


def test_codes_by_keys(explorer):
    one = explorer().open("#codes?format=float8_e4m3fn&sort=code")
    one.page.locator(".codes a").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft"):
        one.page.keyboard.press(key)
    for _ in range(8):
        one.page.keyboard.press("ArrowRight")
    one.page.keyboard.press("Enter")
    assert one.link == "#number?format=float8_e4m3fn&x=0x38"
    assert one.page.locator(".headline strong").inner_text() == "1"


def test_sorting(explorer):
    """Rows are sorted by value up and down. The focus stays, and NaN is above all
    numbers."""
    one = explorer().open("#codes?format=float8_e4m3fn&sort=code")
    button = one.page.get_by_role("button", name="Value")
    button.focus()
    one.page.keyboard.press("Enter")
    first = ".frame:not(:has(.codes)) tbody tr:first-child td:nth-child(3)"
    assert one.page.inner_text(first) == "\u2212448"
    one.page.keyboard.press("Enter")
    assert one.page.inner_text(first) == "NaN"
    assert one.link.endswith("sort=-value")
    header = one.page.locator("th", has=button)
    assert header.get_attribute("aria-sort") == "descending"


def test_what_is_no_number_is_told(explorer):
    one = explorer().open("#number?format=tf32&x=abc")
    box = one.page.get_by_label("Number or code")
    assert box.get_attribute("aria-invalid") == "true"
    message = one.page.locator(f"#{box.get_attribute('aria-describedby')}")
    assert "abc" in message.inner_text()
    box.fill("1.5")
    assert box.get_attribute("aria-invalid") == "false"
    assert one.page.locator(".headline strong").inner_text() == "1.5"


LINE = "#line?format=float8_e4m3fn&other=&x=1&from=-2&to=2"
#: Returns the ends of the number line, from the address.
STRETCH = """() => ["from", "to"].map((name) =>
    Number(new URLSearchParams(location.hash.split("?")[1]).get(name)))"""


def test_number_line_by_wheel_drag_and_keys(explorer):
    one = explorer().open(LINE)
    place = one.page.locator(".line-place")
    box = place.bounding_box()
    one.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    one.page.mouse.wheel(0, -200)
    one.page.wait_for_function("() => !location.hash.includes('from=-2&')")
    low, high = one.run(STRETCH)
    assert -2 < low < 0 < high < 2
    one.page.mouse.down()
    one.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 60, steps=4)
    one.page.mouse.up()
    moved = one.run(STRETCH)
    assert moved[0] > low
    assert moved[1] - moved[0] == pytest.approx(high - low)
    place.focus()
    one.page.keyboard.press("-")
    wide = one.run(STRETCH)
    assert wide[1] - wide[0] == pytest.approx(2 * (high - low))
    one.page.keyboard.press("ArrowRight")
    assert "x=1.125" in one.link
    one.page.keyboard.press("Home")
    assert one.run(STRETCH)[1] > 448


def test_number_line_by_two_fingers(explorer):
    one = explorer(has_touch=True).open(LINE)
    place = one.page.locator(".line-place")
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    screen = one.context.new_cdp_session(one.page)

    def touch(kind, *xs):
        fingers = [{"x": x, "y": box["y"] + 60, "id": i} for i, x in enumerate(xs)]
        screen.send(
            "Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": fingers}
        )

    middle = box["x"] + box["width"] / 2
    touch("Start", middle - 40)
    touch("Start", middle - 40, middle + 40)
    touch("Move", middle - 80, middle + 80)
    touch("End")
    one.settle()
    low, high = one.run(STRETCH)
    assert high - low == pytest.approx(2, rel=0.05)  # half the width: 4 before


def test_print(explorer):
    """The print is light, without tabs and buttons, and long tables are complete."""
    one = explorer(color_scheme="dark").open("#codes")
    one.page.emulate_media(media="print")
    assert one.page.locator("nav").is_hidden()
    assert one.run("() => getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    frame = one.page.locator(".frame.long")
    assert frame.evaluate("(x) => x.scrollHeight === x.clientHeight")


def test_theme_switch(explorer):
    one = explorer(color_scheme="light").open()
    paper = "() => getComputedStyle(document.body).backgroundColor"
    light = one.run(paper)
    one.page.click("#theme")
    dark = one.run(paper)
    assert dark != light
    one.page.reload()
    one.page.wait_for_selector("main section")
    assert one.run(paper) == dark
    one.page.click("#theme")
    assert one.run(paper) == light


def test_errors_are_shown(explorer):
    one = explorer().open()
    one.run("() => setTimeout(() => { throw new Error('a test') })")
    one.page.wait_for_selector("[role=alert] >> text=a test")
    assert len(one.problems) == 1
    assert "a test" in one.problems.pop()
