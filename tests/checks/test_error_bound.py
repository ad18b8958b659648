"""error_bound: no order of additions exceeds it, and it is not too large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.checks.random_products import KINDS, Operands, in_some_order, operands
from tf32dtype.tensor_core.device import MODELS

PAIRS = {(m.a, m.b, m.accumulator, m.device, m.instruction): m for m in MODELS}


def exact(x: Any, y: Any, c: Any, dtype: Any) -> Any:
    """Return the exact products in extended precision, as float64 pairs."""
    with np.errstate(all="ignore"):
        added = 0 if c is None else c.astype(dtype).astype(np.float64)
    return x.astype(np.float64) @ y.astype(np.float64) + added


def exceeds(model: Any, given: Operands, rng: np.random.Generator) -> str:
    """Return what is wrong with the bound of a random order, or nothing."""
    a, b, c = given
    dtype = np.dtype(model.accumulator)
    found = in_some_order(model, given, rng)[0].astype(np.float64)
    with np.errstate(all="ignore"):
        addend = None if c is None else c.astype(dtype)
        if addend is not None and not np.isfinite(addend).all():
            return ""
        bound = td.error_bound(
            a, b, addend, unit=model.device, instruction=model.instruction,
            accumulator=dtype,
        )  # fmt: skip
        k = a.shape[1]
        magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        slack = (k + 4) * 2.0**-52 * magnitude
        off = np.abs(found - exact(a, b, c, dtype))
        bad = (off > bound + slack) | (~np.isfinite(found) & np.isfinite(bound))
    if not bad.any():
        return ""
    i, j = np.argwhere(bad)[0]
    return f"{model.name}: [{i}, {j}] off by {off[i, j]}, bound {bound[i, j]}, k {k}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", range(len(PAIRS)))
def test_no_order_exceeds_the_bound(row: int, kind: str) -> None:
    model = [*PAIRS.values()][row]
    rng = np.random.default_rng(row)
    k = int(rng.integers(1, 300))
    given = operands(kind, (model.a, model.b), 8, k, 8, rng)
    assert not exceeds(model, given, rng)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(40))
def test_many_orders_do_not_exceed_the_bound(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    models = [*PAIRS.values()]
    for _ in range(85):  # with all seeds 10^8 elements
        model = models[rng.integers(len(models))]
        m, n = (int(x) for x in rng.integers(50, 300, 2))
        k = int(rng.choice([1, 2, 7, 16, 17, 33, 130, 600, 2000]))
        given = operands(str(rng.choice(KINDS)), (model.a, model.b), m, k, n, rng)
        assert not exceeds(model, given, rng)


def normal(m: int, k: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    shapes = (m, k), (k, n)
    a, b = (rng.standard_normal(shape).astype(td.bfloat16) for shape in shapes)
    return a, b


def test_the_worst_error_is_a_fiftieth_of_the_bound() -> None:
    a, b = normal(256, 4096, 256)
    d = td.tensor_core.matmul(a, b, device="H100")
    off = np.abs(d - a.astype(np.float64) @ b.astype(np.float64))
    assert np.max(off / td.error_bound(a, b, unit="H100")) >= 1 / 50


def test_a_missing_tile_of_a_long_sum_is_beyond_the_bound() -> None:
    a, b = normal(48, 16384, 48)
    d = td.tensor_core.matmul(a[:, 32:], b[32:], device="H100")
    found = td.testing.check_matmul(d, a, b, unit="H100")
    assert found.diagnoses
    assert found.diagnoses[0].startswith("k 0 to 31 is missing")


def test_sums_of_small_integers_have_no_error() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (2, 64, 64)).astype(np.float16)
    for unit in ("V100", "A100", "H100", "MI100", "MI300X", "AMX", "float32"):
        if unit == "AMX":
            a, b = a.astype(td.bfloat16), b.astype(td.bfloat16)
        assert not td.error_bound(a, b, unit=unit).any()
        a, b = a.astype(np.float16), b.astype(np.float16)


@pytest.mark.parametrize(
    "name",
    ["f32", "tf32", "tf32x3", "bf16", "bf16x3", "bf16x6", "bf16x9", "f16", "fp8_e4m3",
     "fp8_e5m2"],
)  # fmt: skip
@pytest.mark.parametrize("k", [1, 31, 700])
def test_precisions(name: str, k: int) -> None:
    rng = np.random.default_rng(k)
    for spread in (0, 6):
        a, b = (
            np.ldexp(
                rng.standard_normal(s), rng.integers(-spread, spread + 1, s)
            ).astype(np.float32)
            for s in ((20, k), (k, 20))
        )
        exact_values = a.astype(np.float64) @ b.astype(np.float64)
        for dtype in (np.float32, td.bfloat16):
            d = td.matmul(a, b, precision=name).astype(dtype)
            bound = td.error_bound(a, b, precision=name, dtype=dtype)
            assert (np.abs(d.astype(np.float64) - exact_values) <= bound).all()


def test_operands_of_a_unit_are_rounded() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float32)
    exact_values = a.astype(np.float64) @ b.astype(np.float64)
    for precision in (None, "tf32", "bf16", "f16"):
        bound = td.error_bound(a, b, unit="H100", precision=precision)
        if precision:
            d = td.matmul(a, b, precision=precision, device="H100")
        else:
            d = td.tensor_core.matmul(a, b, device="H100")
        assert (np.abs(d - exact_values) <= bound).all()


def test_promotions_and_addends_have_smaller_bounds() -> None:
    a, b = (x.astype(td.float8_e4m3fn) for x in normal(32, 1024, 32))
    options: Any = {"unit": "H100", "instruction": "wgmma"}
    whole = td.error_bound(a, b, **options)
    promoted = td.error_bound(a, b, promote_every=128, **options)
    assert (promoted < whole / 4).all()
    d = td.tensor_core.matmul(a, b, device="H100", promote_every=128)
    off = np.abs(d - a.astype(np.float64) @ b.astype(np.float64))
    assert (off <= promoted).all()


def test_overflow_and_special_operands() -> None:
    a = np.full((2, 16), 60000, np.float16)
    a[1, 0] = np.inf
    b = np.full((16, 1), 60000, np.float16)
    wide = td.error_bound(a, b, unit="A100")
    narrow = td.error_bound(a, b, unit="A100", accumulator="float16")
    assert np.isfinite(wide[0, 0])
    assert np.isinf(narrow[0, 0])
    assert np.isnan(wide[1, 0])


@pytest.mark.parametrize("shape", [(7,), (3, 5, 7), (5, 7)])
def test_shapes(shape: tuple[int, ...]) -> None:
    a, b = np.ones(shape, np.float32), np.ones(7, np.float32)
    bound = td.error_bound(a, b, unit="float32")
    assert bound.shape == shape[:-1]
    assert bound.dtype == np.float64


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, TypeError, "must be given unit= or precision="),
        ({"precision": "bf17"}, ValueError, "precision must be one of"),
        ({"precision": "bf16", "instruction": "wgmma"}, ValueError, "with unit"),
        ({"precision": "fp8_e4m3", "unit": "H100"}, ValueError, "without scales"),
        ({"precision": "bf16x9", "unit": "MI300X"}, ValueError, "does not support"),
        ({"unit": "float32", "dtype": int}, TypeError, "dtype must be a floating"),
        ({"unit": "H10"}, ValueError, "unit must be one of"),
    ],
)
def test_errors(options: Any, error: type[Exception], text: str) -> None:
    a = np.ones((4, 4), np.float32)
    with pytest.raises(error, match=text):
        td.error_bound(a, a, **options)


@pytest.mark.parametrize("name", ["tf32x3", "bf16x3", "bf16x6", "bf16x9"])
@pytest.mark.parametrize("unit", ["A100", "H100", "B200"])
def test_components_on_a_unit(unit: Any, name: Any) -> None:
    rng = np.random.default_rng(0)
    for k, spread in ((1, 0), (16, 8), (300, 0), (300, 8)):
        a, b = (
            np.ldexp(
                rng.standard_normal(s), rng.integers(-spread, spread + 1, s)
            ).astype(np.float32)
            for s in ((20, k), (k, 20))
        )
        d = td.matmul(a, b, precision=name, device=unit)
        off = np.abs(d - a.astype(np.float64) @ b.astype(np.float64))
        assert (off <= td.error_bound(a, b, precision=name, unit=unit)).all()


FORMATS = ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("unit", ["B200", "RTX Blackwell", "H100"])
def test_blocks(unit: Any, form: Any) -> None:
    if unit == "H100" and "8" not in form:
        pytest.skip("H100 does not multiply this format")
    rng = np.random.default_rng(0)
    for k, spread in ((32, 0), (160, 8), (1024, 4)):
        numbers = [
            np.ldexp(rng.standard_normal(s), rng.integers(-spread, spread + 1, s))
            for s in ((24, k), (k, 24))
        ]
        a = td.blocks.quantize(numbers[0], form)
        b = td.blocks.quantize(numbers[1], form, axis=0)
        d = td.tensor_core.matmul(a, b, device=unit)
        bound = td.error_bound(a, b, unit=unit)
        found = td.testing.check_matmul(d, a, b, unit=unit)
        assert found.verdict == "identical"
        assert "one chain" in str(found.origin)
        assert found.worst.share <= 1
        wrong = td.tensor_core.matmul(
            td.blocks.quantize(numbers[0] * (np.arange(k) >= 32), form), b, device=unit
        )
        if k > 32:
            missing = td.testing.check_matmul(wrong, a, b, unit=unit)
            assert missing.verdict == "wrong"
        assert bound.shape == (24, 24)
