"""Figures of samples equal a plain computation on the same operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tf32dtype as td
from tests.programs.report.samples import gaussian, sample, site
from tf32dtype._matmul.precisions import PRECISIONS
from tf32dtype._measures.ways import Way, select
from tf32dtype._programs.report import figures
from tf32dtype._programs.report.exponents import Exponents
from tf32dtype._programs.report.figures import Figures, measure
from tf32dtype._programs.report.multiply import multiply
from tf32dtype._programs.report.options import options

pytestmark = pytest.mark.once

Array = NDArray[Any]
SHORTS = [row.short for row in PRECISIONS]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def by_hand(name: str, a: Array, b: Array) -> Array:
    """Return a product of real operands in float32."""
    if name in SHORTS:
        single: Array = td.matmul(
            a.astype(np.float32), b.astype(np.float32), precision=name
        )
        return single
    packed: Array = td.blocks.quantize(a, name) @ td.blocks.quantize(b, name, axis=0)
    return packed


def take(*samples: Any, names: Any = ("f32", "bf16")) -> Figures:
    found = Figures()
    for one in samples:
        found.take(one, select(names))
    return found


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("name", [*SHORTS, *td.blocks.formats])
def test_errors_of_real_products(name: str, dtype: str) -> None:
    samples = [gaussian(dtype=dtype, seed=1), gaussian(m=3, dtype=dtype, seed=2)]
    errors = take(*samples, names=[name]).errors[name]
    noise = signal = worst = to_norm = 0.0
    for a, b, *_ in samples:
        truth = a.astype(float) @ b.astype(float)
        wrong = np.abs(by_hand(name, a, b).astype(float) - truth)
        noise += float((wrong**2).sum())
        signal += float((truth**2).sum())
        worst = max(worst, float((wrong / np.abs(truth)).max()))
        norm = np.abs(a.astype(float)) @ np.abs(b.astype(float))
        to_norm = max(to_norm, float((wrong / norm).max()))
    assert errors.snr == pytest.approx(10 * np.log10(signal / noise), rel=1e-9)
    assert errors.largest_relative == pytest.approx(worst)
    assert errors.to_norm == pytest.approx(to_norm)
    assert (errors.overflows, errors.result_overflows) == (0, 0)


@pytest.mark.parametrize("name", SHORTS)
def test_complex_products_are_those_of_a_scope(name: str) -> None:
    a, b, *_ = gaussian(dtype="complex64")
    product, *_ = multiply(select([name])[0], a, b)
    with td.matmul_precision(name, complex64=True):
        wanted = a @ b
    assert product.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", DTYPES[2:])
@pytest.mark.parametrize("name", ["f32", "bf16x3", "fp8_e4m3", "mxfp8_e4m3"])
def test_errors_of_complex_products(name: str, dtype: str) -> None:
    a, b, *_ = gaussian(dtype=dtype)
    errors = take(sample(a, b), names=[name]).errors[name]
    real = by_hand(name, a.real, b.real) - by_hand(name, a.imag, b.imag)
    imag = by_hand(name, a.real, b.imag) + by_hand(name, a.imag, b.real)
    truth = a.astype(complex) @ b.astype(complex)
    wrong = np.abs(real + 1j * imag.astype(float) - truth)
    snr = -20 * np.log10(np.linalg.norm(wrong) / np.linalg.norm(truth))
    assert errors.snr == pytest.approx(snr, rel=1e-9)
    assert errors.largest_relative == pytest.approx(float((wrong / abs(truth)).max()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_conditions(dtype: str) -> None:
    samples = [gaussian(dtype=dtype, seed=1), gaussian(m=3, dtype=dtype, seed=2)]
    found = take(*samples)
    wide = [(s.a.astype(complex), s.b.astype(complex)) for s in samples]
    each = [(np.abs(a) @ np.abs(b) / np.abs(a @ b)).ravel() for a, b in wide]
    conditions = np.concatenate(each)
    assert found.condition_median == pytest.approx(np.median(conditions))
    assert found.condition_largest == pytest.approx(conditions.max())
    assert found.elements == conditions.size
    assert found.samples == 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponents(dtype: str) -> None:
    x = np.array([1, 1.99, 2, -0.5, 0, -0.0, 3, np.inf, np.nan, 1e-40], dtype)
    found = Exponents()
    with np.errstate(all="ignore"):
        found.gather(x)
    counts = {0: 2, 1: 2, -1: 1, -133: 1}
    zeros = 2 + (10 if np.dtype(dtype).kind == "c" else 0)
    assert found.counts == counts
    assert (found.zeros, found.infinities, found.nans) == (zeros, 1, 1)
    assert (found.smallest, found.largest) == (-133, 1)
    assert found.values == x.size * (2 if np.dtype(dtype).kind == "c" else 1)


def test_nothing_but_zeros() -> None:
    zeros = sample(np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32))
    found = take(zeros)
    assert (found.a.smallest, found.a.largest, found.a.zeros) == (None, None, 6)
    assert np.isnan(found.condition_median)
    assert found.errors["bf16"].snr == np.inf
    assert found.errors["bf16"].to_norm == 0


def test_overflows_and_underflows_of_operands() -> None:
    a = np.array([[1, 7e4, 1e-9, 3e-6, 2.0**-20, 0]], np.float32)
    b = np.ones((6, 1), np.float32)
    errors = take(sample(a, b), names=["f16", "bf16"]).errors
    # 1e-9 and 3e-6 are below 2^-14 and inexact; 2^-20 is exact.
    assert (errors["f16"].overflows, errors["f16"].underflows) == (1, 2)
    assert errors["f16"].result_overflows == 1
    assert errors["f16"].snr == -np.inf
    assert (errors["bf16"].overflows, errors["bf16"].underflows) == (0, 0)


def test_scaled_formats_lose_what_is_small_beside_the_greatest() -> None:
    a = np.array([[1, 2.0**-13, 2.0**-20]], np.float32)
    errors = take(sample(a, np.ones((3, 1), np.float32)), names=["fp8_e4m3"]).errors
    scaled = a[0] * np.float32(448)
    kept = scaled.astype(td.float8_e4m3fn).astype(np.float32)
    lost = (scaled < 2.0**-6) & (kept != scaled)
    assert errors["fp8_e4m3"].underflows == int(lost.sum()) > 0
    assert errors["fp8_e4m3"].overflows == 0


def test_how_much_of_a_product_vanishes() -> None:
    a = np.array([[3e-8, 0.5], [3e-8, 3e-8], [1, 1]], np.float32)
    b = np.array([[1.0, 3.0], [2e-8, 2.0]], np.float32)
    found = take(sample(a, b), names=["f16", "bf16"]).errors
    wide_a, wide_b = a.astype(float), b.astype(float)
    with np.errstate(all="ignore"):
        held = [x.astype(np.float16).astype(float) for x in (a, b)]
    lost_a, lost_b = abs(wide_a - held[0]), abs(wide_b - held[1])
    shares = (lost_a @ wide_b + wide_a @ lost_b) / (wide_a @ wide_b)
    assert found["f16"].vanished == pytest.approx(shares.max())
    assert found["f16"].vanished > 0.5
    assert found["bf16"].vanished == 0


def test_blocks_lose_what_becomes_zero() -> None:
    a = np.full((1, 32), 2.0**-30, np.float32)
    a[0, 0] = 1
    errors = take(sample(a, np.ones((32, 1), np.float32)), names=["mxfp4"]).errors
    assert errors["mxfp4"].underflows == 31


def test_float64_beyond_float32() -> None:
    a, b = np.array([[1e39, 1.0], [1.0, 1e-50]]), np.ones((2, 1))
    names = ["f32", "bf16", "bf16x3", "mxfp4", "tcfp8"]
    errors = take(sample(a, b), names=names).errors
    for name in names:
        assert errors[name].overflows == 1, name
    assert errors["f32"].underflows == 1
    assert errors["f32"].result_overflows == 1
    tiny = take(sample(a[1:] * 1e-20, b * 1e-20))
    assert tiny.errors["f32"].result_underflows == 1


def test_rows_and_columns_that_are_not_finite_are_left_out() -> None:
    a, b, *_ = gaussian()
    bad, other = a.copy(), b.copy()
    bad[2, 5], other[7, 3] = np.nan, np.inf
    rows, columns = np.arange(20) != 2, np.arange(15) != 3
    names = ["f32", "bf16x3", "mxfp8_e4m3", "tcfp8"]
    found = take(sample(bad, other), names=names)
    wanted = take(sample(a[rows], b[:, columns]), names=names)
    assert found.elements == 19 * 14
    for name in names:
        assert found.errors[name].snr == pytest.approx(wanted.errors[name].snr), name
    assert (found.a.nans, found.b.infinities) == (1, 1)
    nothing = take(sample(np.full((2, 2), np.nan), np.ones((2, 2))))
    assert nothing.elements == 0


def test_squares_stay_in_range() -> None:
    a, b, *_ = gaussian(dtype="float64")
    wanted = take(sample(a, b)).errors["bf16"]
    a, b = np.ldexp(a, -100), np.ldexp(b, -20)
    found = take(sample(a, b)).errors["bf16"]
    assert found.snr == pytest.approx(wanted.snr)
    # Out of float32's range, where all digits are wrong, SNR is -inf without an error.
    assert take(sample(np.ldexp(a, 700), b)).errors["bf16"].snr == -np.inf
    lost = take(sample(np.ldexp(a, -800), b)).errors["bf16"]
    assert lost.snr == pytest.approx(0)
    assert lost.vanished == pytest.approx(1)


def test_a_scope_does_not_change_the_truth() -> None:
    wanted = take(gaussian(dtype="float64")).errors["f32"].snr
    with td.matmul_precision("bf16", float64=True, complex64=True):
        assert take(gaussian(dtype="float64")).errors["f32"].snr == wanted


def test_a_device_is_measured_with_its_own_sums() -> None:
    a, b, *_ = gaussian()
    ways = options(precision="bf16", device="H100:mma.sync").ways
    assert [way.name for way in ways] == ["f32", "bf16", "bf16@H100:mma.sync"]
    found = Figures()
    found.take(sample(a, b), ways)
    truth = a.astype(float) @ b.astype(float)
    product = td.matmul(a, b, precision="bf16", device="H100", instruction="mma.sync")
    snr = -20 * np.log10(np.linalg.norm(product - truth) / np.linalg.norm(truth))
    assert found.errors["bf16@H100:mma.sync"].snr == pytest.approx(snr)


# -- the budget ---------------------------------------------------------------------


def test_all_samples_are_measured_without_a_budget() -> None:
    sites = [site(gaussian(seed=1), gaussian(seed=2)), site(gaussian(seed=3))]
    steps: list[int] = []
    found = measure(sites, select(["bf16"]), None, lambda: steps.append(1))
    assert [x.samples for x in found] == [2, 1]
    assert len(steps) == 3


def test_the_heaviest_places_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sites = [
        site(*[gaussian(seed=i) for i in range(3)], work=work) for work in (5, 50, 7)
    ]
    now = iter(range(100))

    def take(self: Figures, one: Any, ways: Any) -> None:
        self.samples += 1

    monkeypatch.setattr(Figures, "take", take)
    monkeypatch.setattr(figures.time, "perf_counter", lambda: float(next(now)))
    found = measure(sites, [], 5.5)
    # One sample of each; then of call sites 1 and 2, until the time is used.
    assert [x.samples for x in found] == [1, 2, 2]


def test_one_sample_of_each_place_is_measured_anyway() -> None:
    sites = [site(gaussian(seed=i), gaussian(seed=i)) for i in range(3)]
    steps: list[int] = []
    found = measure(sites, select(["bf16"]), 0.0, lambda: steps.append(1))
    assert [x.samples for x in found] == [1, 1, 1]
    assert len(steps) == 6
    assert measure([], select(["bf16"]), None) == []
    assert measure([site()], select(["bf16"]), None)[0].samples == 0


def test_the_order_of_what_is_cheap() -> None:
    ways: list[Way] = select(SHORTS)
    assert [way.name for way in sorted(ways, key=lambda way: way.bits)] == [
        "fp8_e4m3", "fp8_e5m2", "bf16", "f16", "tf32", "f32", "bf16x3", "tf32x3",
        "bf16x6", "bf16x9",
    ]  # fmt: skip
