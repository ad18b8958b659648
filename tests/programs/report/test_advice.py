"""Verdicts and advice for operands with known problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.programs.report.samples import HERE, gaussian, run, sample, site
from tf32dtype._base.errors import UserError
from tf32dtype._programs.report.call_sites import CallSite, Frame
from tf32dtype._programs.report.options import options
from tf32dtype._programs.report.report import Report
from tf32dtype._programs.report.verdict import Verdict

pytestmark = pytest.mark.once


def report(*sites: CallSite, **chosen: Any) -> Report:
    return Report(run(*sites), options(**chosen))


def verdict(*samples: Any, **chosen: Any) -> Verdict:
    return report(site(*samples), **chosen).call_sites[0].verdict


def canceling(dtype: Any) -> Any:
    """Return [B A] times [I; -X], where B is A X up to 2^-9 of it: 9 bits cancel."""
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((30, 40)), rng.standard_normal((40, 20))
    b = a @ x * (1 + rng.standard_normal((30, 20)) * 2.0**-9)
    left, right = np.hstack([b, a]), np.vstack([np.eye(20), -x])
    return sample(left.astype(dtype), right.astype(dtype))


def wide() -> Any:
    """Return a matrix whose rows have very different magnitudes."""
    a, b, *_ = gaussian()
    return sample(np.ldexp(a, -np.arange(0, 60, 3)[:, None]), b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_gaussian_numbers_bear_bf16(dtype: str) -> None:
    found = verdict(gaussian(dtype=dtype))
    assert (found.kind, found.way) == ("sufficient", "bf16")
    assert found.text == "bf16 is enough"
    assert found.out_of_range == ()
    assert not found.cancels
    assert found.warning == ""
    assert found.like_float32 in ("tf32x3", "bf16x6", "bf16x9")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (20, "fp8_e4m3 is enough"),
        (60, "f16 is enough"),
        (90, "needs bf16x3"),
        (115, "needs tf32x3"),
        (300, "needs float64"),
    ],
)
def test_the_target_decides(target: float, text: str) -> None:
    assert verdict(gaussian(k=300), target_db=target).text == text


def test_only_what_is_named_can_be_advised() -> None:
    found = verdict(gaussian(), precision="tf32, mxfp4")
    assert found.text == "tf32 is enough"
    assert verdict(gaussian(), precision="mxfp4").text == "needs float32"
    assert verdict(gaussian(), precision="int12").block == "int12"
    assert verdict(gaussian(), target_db=10).text == "fp8_e4m3 is enough"
    found = verdict(gaussian(), precision="mxfp4,nvfp4", target_db=10)
    assert (found.kind, found.text) == ("sufficient", "mxfp4 is enough")


def test_cancellation_loses_digits() -> None:
    found = verdict(canceling(np.float32))
    assert found.text == "needs bf16x3"
    assert found.cancels
    assert found.canceled_digits is not None
    assert 2 < found.canceled_digits < 5
    assert found.out_of_range == ()
    text = "\n".join(line.text for line in report(site(canceling("f4"))).advice)
    assert "Canceled digits: " in text
    assert f"{found.canceled_digits:.1f} digits, condition" in text
    assert "bf16x3 is needed at 1 call site (100.0 % of the multiply-adds): " in text


def test_rows_that_vanish_lose_range_though_the_snr_is_good() -> None:
    found = report(site(wide()))
    ((_, figures, judged),) = found.call_sites
    assert figures.errors["f16"].snr > 60
    assert figures.errors["f16"].vanished == 1
    assert judged.out_of_range == ("f16", "fp8_e4m3", "fp8_e5m2")
    assert judged.text == "bf16 is enough"
    assert judged.warning == "out of range in f16, fp8_e4m3, fp8_e5m2"
    text = "\n".join(line.text for line in found.advice)
    assert "Out of range in f16: " in text
    assert "% underflow" in text


def test_numbers_beyond_a_range() -> None:
    a, b, *_ = gaussian()
    assert verdict(sample(a * np.float32(1e6), b)).out_of_range == ("f16",)
    huge = verdict(sample(a.astype(float) * 1e300, b.astype(float)))
    assert huge.text == "needs float64"
    assert huge.warning == "out of range in f32"
    tiny = verdict(sample(a.astype(float) * 1e-300, b.astype(float)))
    assert tiny.text == "needs float64"
    assert "f32" in tiny.out_of_range


def test_small_numbers_that_stay_exact_lose_nothing() -> None:
    a = np.full((4, 8), 2.0**-20, np.float32)
    found = verdict(sample(a, np.ones((8, 4), np.float32)))
    assert found.out_of_range == ()


def test_what_has_no_finite_number_is_not_measured() -> None:
    nan = sample(np.full((2, 2), np.nan, np.float32), np.ones((2, 2), np.float32))
    assert verdict(nan).text == "not measured"
    assert verdict().text == "not measured"
    zeros = sample(np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32))
    assert verdict(zeros).text == "fp8_e4m3 is enough"


def test_places_are_told_by_what_they_bear() -> None:
    there = Frame("/program/other.py", 3, "<module>")
    lines = [
        line.text
        for line in report(
            site(gaussian(), work=900),
            site(canceling(np.float32), work=90, user=there),
            site(gaussian(seed=2), work=10, user=HERE._replace(line=13)),
        ).advice
    ]
    assert lines[0].startswith(
        "The product alone: bf16 is enough at 2 call sites (91.0 % of the"
        " multiply-adds): "
    )
    assert "solver.py:12 step (bf16 5" in lines[0]
    assert lines[1].startswith(
        "The product alone: bf16x3 is needed at 1 call site (9.0 % of the"
        " multiply-adds): "
    )
    assert "other.py:3 (bf16 " in lines[1]
    assert "bf16x3 " in lines[1]
    assert lines[-1] == "Not reached: LAPACK dgesdd (2 calls). add --lapack"


def test_nothing_reached_is_the_first_line() -> None:
    first, *_ = report().advice
    assert first.text.startswith("No matrix multiplication was measured")
    assert "--arithmetic bf16" in first.text


def test_many_places_are_counted() -> None:
    many = [site(gaussian(), user=HERE._replace(line=i)) for i in range(9)]
    first, *_ = report(*many, precision="bf16").advice
    assert "; and 5 more; each product was judged separately" in first.text


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"precision": "bf17"}, "precision must be one of"),
        ({"precision": " "}, "precision must name at least one precision"),
        ({"device": "H900"}, "got 'H900'"),
        ({"device": "H100:mma"}, "mma"),
        ({"device": "V100", "precision": "bf16"}, "V100"),
        ({"target_db": 0.0}, "target_db must be more than 0"),
        ({"target_db": float("nan")}, "target_db must be more than 0"),
        ({"only": "missing.py"}, "an existing file; got 'missing.py"),
        ({"excepted": "missing.py:f"}, "an existing file; got 'missing.py"),
        ({"only": f"{__file__}:missing"}, "; got 'missing'"),
    ],
)
def test_what_cannot_be(chosen: Any, said: str) -> None:
    with pytest.raises(UserError, match=r"^[^\n]+$") as caught:
        options(**chosen)
    assert said in str(caught.value)


def test_regions() -> None:
    found = options(only=[f"{__file__}:verdict", __file__]).collector.only
    assert [region.function for region in found] == ["verdict", None]
    assert {region.file for region in found} == {__file__}
