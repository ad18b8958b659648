"""The report as a page, as JSON and as a table."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.programs.report.samples import HERE, gaussian, run, sample, site
from tf32dtype._base.errors import UserError
from tf32dtype._programs.report.call_sites import Frame
from tf32dtype._programs.report.options import options
from tf32dtype._programs.report.report import Report

pytestmark = pytest.mark.once

EVIL = "<script>alert('x & y')</script>"
VOID = {"meta", "br", "rect", "line"}


class Page(HTMLParser):
    """Check that tags close in order; collect the tags and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Make a report with names that break pages, and numbers that break JSON."""
    evil = tmp_path / "<b> & 'x'.py"
    evil.write_text(f"a = '{EVIL}'\nb = 2\n" + "c = 3\n" * 20)
    nan = sample(np.full((2, 2), np.nan), np.ones((2, 2)))
    frame = Frame(str(evil), 1, "<lambda>")
    seen = run(
        site(gaussian(), user=frame),
        site(gaussian(dtype="complex64"), user=HERE._replace(function=EVIL)),
        site(nan),
        site(user=None),
        argv=("solver.py", EVIL),
    )
    return Report(seen, options(device="H100"), ending=f"raised ValueError: {EVIL}")


def test_the_page_is_whole_and_escaped(report: Report) -> None:
    text = report.to_html()
    page = Page(text)
    assert EVIL not in text
    assert page.tags.count("script") == 1
    assert page.tags.count("details") == 4
    assert page.tags.count("svg") == 2 * 3
    shown = "".join(page.texts)
    assert EVIL in shown
    assert f"a = '{EVIL}'" in shown
    assert (
        f"The program raised ValueError: {EVIL}; the report covers the run before that."
        in shown
    )
    assert "bf16 is enough" in shown
    assert "not measured" in shown


def test_the_page_needs_no_network(report: Report) -> None:
    page = Page(report.to_html())
    assert {"link", "img", "iframe"}.isdisjoint(page.tags)
    names = {name for name, _ in page.attributes}
    assert "src" not in names
    targets = [value for name, value in page.attributes if name == "href"]
    assert targets
    assert all(re.fullmatch("#p[0-9]+", str(value)) for value in targets)
    assert not re.search(r"https?:|url\(|@import", report.to_html())


def test_links_lead_to_sections(report: Report) -> None:
    page = Page(report.to_html())
    ids = {value for name, value in page.attributes if name == "id"}
    targets = {value for name, value in page.attributes if name == "href"}
    assert {f"#{one}" for one in ids} == targets


def test_json_is_strict_and_whole(report: Report) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    record = json.loads(report.to_json(), parse_constant=refuse)
    assert record["program"] == ["solver.py", EVIL]
    assert record["ending"].startswith("raised ValueError")
    assert len(record["call_sites"]) == 4
    first = record["call_sites"][0]
    assert first["user"]["line"] == 1
    assert first["calls"] == 3
    assert first["multiply_adds_share"] == 0.25
    assert first["shapes"] == [{"m": 20, "n": 15, "k": 70, "calls": 3}]
    assert first["verdict"]["text"] == "bf16 is enough"
    names = [row["precision"] for row in first["precisions"]]
    assert names[:2] == ["f32", "tf32"]
    assert "bf16@H100" in names
    counts = first["exponents"]["a"]["counts"]
    assert sum(counts.values()) == 20 * 70
    assert record["call_sites"][2]["condition"]["median"] == "nan"
    assert record["not_reached"][0]["remedy"] == "add --lapack"
    assert record["advice"][0]["kind"] == "sufficient"


def test_the_table_in_a_pipe(report: Report) -> None:
    stream = io.StringIO()
    report.print(stream)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("solver.py <script>")
    head = next(line for line in lines if line.startswith("call site "))
    for name in (
        "product alone",
        "% work",
        "exp. A",
        "bf16x3",
        "bf16@H100",
        "condition",
    ):
        assert name in head
    assert "library" not in head
    (row,) = [x for x in lines if x.startswith("/program/solver.py:12 step")][:1]
    assert "not measured" in row
    assert any(line.startswith("Not reached: ") for line in lines)


def test_named_precisions_have_a_column() -> None:
    stream = io.StringIO()
    Report(run(site(gaussian())), options(precision="nvfp4,bf16x6")).print(stream)
    head = next(x for x in stream.getvalue().splitlines() if x.startswith("call site "))
    assert head.split()[-4:] == ["f32", "nvfp4", "bf16x6", "condition"]


def test_threads_take_no_more_than_all_of_the_time() -> None:
    many = [site(gaussian(), user=HERE._replace(line=i)) for i in range(8)]  # 4 s of 2
    report = Report(run(*many), options(precision="bf16"))
    stream = io.StringIO()
    report.print(stream)
    assert " 12.5 " in stream.getvalue()
    shares = [
        row["seconds_share"] for row in json.loads(report.to_json())["call_sites"]
    ]
    assert shares == [1 / 8] * 8


def test_one_line_explains_the_table() -> None:
    stream = io.StringIO()
    Report(run(site(gaussian())), options(target_db=30)).print(stream)
    (line,) = [x for x in stream.getvalue().splitlines() if "--explain" in x]
    assert line.startswith("Target: 30 dB.")
    assert len(line) <= 88


def test_exact_products_and_zeros_have_words() -> None:
    ones = np.ones((2, 2), np.float32)
    zero = sample(np.array([[1, -1]], np.float32), np.ones((2, 1), np.float32))
    nothing = sample(0 * ones, ones)
    stream = io.StringIO()
    sites = [site(x, user=HERE._replace(line=i)) for i, x in enumerate((zero, nothing))]
    report = Report(run(site(sample(ones, ones)), *sites), options(precision="bf16"))
    report.print(stream)
    text = stream.getvalue()
    assert "(bf16 exact)" in text
    assert "all digits canceled" in text
    for word in ("inf digits", "exact dB", "nan"):
        assert word not in text + report.to_html()


def test_a_librarys_frame_has_a_column() -> None:
    inner = Frame("/usr/lib/python3/site-packages/tenpy/npc.py", 3, "tensordot")
    one = site(gaussian())
    seen = run(type(one)(**{**vars(one), "library": inner}))
    stream = io.StringIO()
    report = Report(seen, options(precision="bf16"))
    report.print(stream)
    assert "library" in stream.getvalue()
    assert "tenpy/npc.py:3 tensordot" in stream.getvalue()
    assert "computed by tenpy/npc.py:3 tensordot" in report.to_html()


def test_the_many_places_of_a_table_end() -> None:
    many = [site(gaussian(), user=HERE._replace(line=i)) for i in range(40)]
    stream = io.StringIO()
    report = Report(run(*many), options(precision="bf16"))
    report.print(stream)
    assert "and 10 call sites with 25.0 %" in stream.getvalue()
    assert Page(report.to_html()).tags.count("details") == 40


def test_nothing_at_all() -> None:
    report = Report(run(), options(precision="bf16"))
    stream = io.StringIO()
    report.print(stream)
    assert "No matrix multiplication was measured" in stream.getvalue()
    Page(report.to_html())
    assert json.loads(report.to_json())["call_sites"] == []


def test_save(report: Report, tmp_path: Path) -> None:
    report.save(str(tmp_path / "x.html"))
    report.save(str(tmp_path / "x.json"))
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == report.to_html()
    assert (tmp_path / "x.json").read_text() == report.to_json()
    with pytest.raises(UserError, match=r"must end in \.html or \.json; got 'x\.txt'"):
        report.save("x.txt")
    with pytest.raises(UserError, match="must be in an existing folder"):
        report.save(str(tmp_path / "missing" / "x.html"))
    assert not [x for x in tmp_path.iterdir() if x.suffix == ".part"]
