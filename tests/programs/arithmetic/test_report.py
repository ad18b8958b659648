"""The report of arithmetic: rows, table, records and advice."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import quiet
from tf32dtype._base.text import strict_json
from tf32dtype._base.wording import page
from tf32dtype._programs.report import arithmetic as report


def overflow(x: Any) -> Any:
    return (x * 1e4) * (x * 1e4)


def underflow(x: Any) -> Any:
    return x * np.float32(1e-2) * np.float32(1e-3)


def cancel(x: Any) -> Any:
    return (x + 1) - x


def invalid(x: Any) -> Any:
    return np.sqrt(-1 - x)


def mean(x: Any) -> Any:
    return x.mean()


@pytest.fixture
def sites() -> tuple[report.ArithmeticCallSite, ...]:
    x = np.linspace(1, 1.9, 100, dtype="f4")
    with quiet(), td.arithmetic("float16", watch=True):
        for compute in (overflow, underflow, cancel, invalid, mean):
            compute(x)
    return report.arithmetic_call_sites()


def test_call_sites(sites: tuple[report.ArithmeticCallSite, ...]) -> None:
    found: Counter[str] = Counter()
    for site in sites:
        assert site.user is not None
        name = f"{site.user.function} {site.function} "
        for kind in ("overflows", "underflows", "nans"):
            found[name + kind] += getattr(site, kind)
    assert found["overflow multiply overflows"] == 100
    assert found["underflow multiply underflows"] > 90
    assert found["invalid sqrt nans"] == 100
    assert [x.results for x in sites] == sorted(
        (x.results for x in sites), reverse=True
    )
    (reduced,) = (x for x in sites if x.library)
    assert reduced.user is not None
    assert reduced.user.function == "mean"
    assert reduced.library is not None
    assert reduced.library.function == "_mean"


def test_advice(sites: tuple[report.ArithmeticCallSite, ...]) -> None:
    lines = report.advise("float16", sites)
    texts = [line.text for line in lines]
    assert texts[0].startswith("Overflow in float16: ")
    assert "overflow: multiply (100 of 100)" in texts[0]
    assert "underflow: multiply" in texts[1]
    assert texts[2].startswith("NaN in float16: ")
    assert "invalid: sqrt (100 of 100)" in texts[2]
    assert [line.kind for line in lines] == [
        *["out_of_range"] * 3,
        "largest_error",
        "not_reached",
    ]
    assert page("how_to/arithmetic") in texts[-1]


def test_advice_of_operands() -> None:
    x = np.linspace(1, 1.9, 100, dtype="f4")
    with quiet(), td.arithmetic("float16", watch=True):
        x * np.float32(1e5)
        x * np.float32(1e-7)
    texts = [
        one.text for one in report.advise("float16", report.arithmetic_call_sites())
    ]
    over, under = (x for x in texts if x.startswith("Operands"))
    assert over.startswith("Operands overflow in float16: ")
    assert "multiply (1 of 101)" in over
    assert "multiply (1 of 101)" in under


def test_advice_of_cancellation() -> None:
    x = np.full(100, 1000, "f4")
    with td.arithmetic("bf16", watch=True):
        cancel(x)
    lines = report.advise("bf16", report.arithmetic_call_sites())
    (line,) = (x for x in lines if x.kind == "canceled_digits")
    assert line.text.startswith("Sums that lose more than half of 8 bits by")
    assert line.text.endswith("cancel: subtract (100.0 % of 100)")


def test_advice_of_absorption() -> None:
    x = np.full(100, 1000, "f4")
    with td.arithmetic("bf16", watch=True):
        x + np.float32(1)
        x - np.float32(1)
        np.float32(1) - x
        x + np.float32(0)  # exact
        x + np.float32(1000)  # exact
    lines = report.advise("bf16", report.arithmetic_call_sites())
    (line,) = (x for x in lines if x.kind == "absorbed")
    assert line.text.count("(100.0 % of 100)") == 3
    assert line.text.count(" % of ") == 3


def test_nothing_was_computed() -> None:
    with td.arithmetic("bf16", watch=True):
        pass
    lines = report.advise("bf16", report.arithmetic_call_sites())
    assert lines[0].text.startswith("Nothing was rounded")
    assert [line.kind for line in lines] == ["not_measured", "not_reached"]
    assert report.table("bf16", ()).rows == []


def test_table(
    sites: tuple[report.ArithmeticCallSite, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    report.table("float16", sites, most=2).print()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "NumPy arithmetic in float16, compared with float64"
    assert len(lines) == 5
    assert all(len(row) == 11 for row in report.table("float16", sites).rows)


def test_records(sites: tuple[report.ArithmeticCallSite, ...]) -> None:
    record = json.loads(strict_json(report.records("float16", sites)))
    assert record["format"] == "float16"
    assert record["left_out"] == 0
    assert len(record["call_sites"]) == len(sites)
    first = record["call_sites"][0]
    assert set(first["user"]) == {"file", "line", "function"}
    assert first["results"] == sites[0].results
    names = {row["name"] for row in record["not_reached"]}
    assert names >= {"np.linalg", "np.fft"}
    assert "products" not in names  # the report computes products in f16
    record = report.records("float8_e3m4", sites)  # no precision has this name
    assert {row["name"] for row in record["not_reached"]} == names | {"products"}
    assert record["advice"][0]["kind"] == "out_of_range"
