"""check_matmul and error_bound: unusual operands, scales, results and faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tf32dtype as td

Array = NDArray[Any]
check = td.testing.check_matmul


@pytest.fixture(scope="module")
def operands() -> tuple[Array, Array, Array]:
    """Return operands, and their product on an H100."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 64, 64)).astype(td.bfloat16)
    return a, b, td.tensor_core.matmul(a, b, device="H100")


# -- bounds ----------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["H100", "A100", "RTX Blackwell"])
def test_subnormal_accumulators(unit: Any) -> None:
    k = 2048
    a = np.full((1, k), 1.984375 * 2.0**-76).astype(td.bfloat16)
    b = np.full((k, 1), 2.0**-76).astype(td.bfloat16)
    a[0, 0], b[0, 0] = 2.0**-75, 2.0**-74
    assert check(td.tensor_core.matmul(a, b, device=unit), a, b, unit=unit)


@pytest.mark.parametrize("unit", ["H100", "L40S"])
def test_subnormal_float16_accumulators(unit: Any) -> None:
    k = 1024
    a = np.full((1, k), 1.75 * 2.0**-14).astype(td.float8_e5m2)
    b = np.full((k, 1), 2.0**-14).astype(td.float8_e5m2)
    a[0, 0] = b[0, 0] = 2.0**-12
    d = td.tensor_core.matmul(a, b, device=unit, accumulator="float16")
    assert check(d, a, b, unit=unit, accumulator="float16")


def test_promotions_with_an_addend_that_cancels() -> None:
    k = 4096
    x = np.random.default_rng(0).uniform(0.02, 0.03, k)
    x[:16] = 65536
    a, b = x[None].astype(td.bfloat16), np.ones((k, 1), td.bfloat16)
    parts = [
        td.tensor_core.matmul(a[:, i : i + 16], b[i : i + 16], device="H100")
        for i in range(0, k, 16)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    c = -parts[0]
    assert check(total + c, a, b, c, unit="H100", promote_every=16)


@pytest.mark.parametrize(
    ("precision", "a", "b"),
    [
        ("bf16x9", "0x1.5cc036p63", "0x1.6adde2p64"),
        ("bf16x3", "0x1.50e1aep63", "0x1.2ec63ep64"),
        ("fp8_e4m3", "0x1.4c775ap122", "0x1.331372p-97"),
        ("fp8_e5m2", "0x1.baa0bcp125", "0x1.f7ca02p-119"),
    ],
)
def test_intermediate_overflow(precision: Any, a: str, b: str) -> None:
    x, y = (np.array([[float.fromhex(z)]], np.float32) for z in (a, b))
    with np.errstate(all="ignore"):
        d = td.matmul(x, y, precision=precision)
    bound = td.error_bound(x, y, precision=precision)
    assert np.isinf(bound).all() or np.isfinite(d).all()


def test_empty_products_have_empty_bounds() -> None:
    a = np.ones((0, 4), np.float32)
    assert td.error_bound(a, np.ones((4, 3), np.float32), unit="float32").shape == (
        0,
        3,
    )
    no_k = np.ones((2, 0), np.float32)
    assert not td.error_bound(no_k, no_k.T, unit="float32").any()
    assert check(np.zeros((2, 2), np.float32), no_k, no_k.T, unit="float32")
    assert not check(np.ones((2, 2), np.float32), no_k, no_k.T, unit="float32")


# -- epilogues and scales --------------------------------------------------------------


def test_epilogues_that_round_twice(operands: tuple[Array, Array, Array]) -> None:
    a, b, d = operands
    rng = np.random.default_rng(1)
    c = rng.standard_normal((64, 64)).astype(np.float32)
    bias = rng.standard_normal(64).astype(np.float32)

    def narrow(x: Array) -> Array:
        return x.astype(td.bfloat16).astype(np.float32)

    alpha, beta, scale = np.float32(1000), np.float32(2), np.float32(0.7)
    for result, options in (
        (narrow(d) + c, {"c": c}),
        (narrow(d + c) + bias, {"c": c, "bias": bias}),
        (narrow(d) * alpha + beta * c, {"c": c, "alpha": 1000, "beta": 2}),
        (narrow(narrow(d) * scale) + bias, {"scale_a": scale, "bias": bias}),
    ):
        found = check(result.astype(td.bfloat16), a, b, unit="H100", **options)
        assert found, found


@pytest.mark.parametrize("k", [256, 320, 500])
def test_scales_of_ranges_of_128_k(k: int) -> None:
    rng = np.random.default_rng(k)
    a = rng.standard_normal((64, k)).astype(td.float8_e4m3fn)
    b = rng.standard_normal((k, 192)).astype(td.float8_e4m3fn)
    groups = -(-k // 128)
    scale_a = rng.uniform(0.5, 2, (64, groups)).astype(np.float32)
    scale_b = rng.uniform(0.5, 2, (groups, 2)).astype(np.float32)  # of 128 columns
    wide = np.repeat(scale_b, 128, 1)[:, :192]
    d = np.zeros((64, 192), np.float32)
    for i in range(groups):
        ks = slice(128 * i, 128 * i + 128)
        part = td.tensor_core.matmul(a[:, ks], b[ks], device="H100")
        d += part * (scale_a[:, i : i + 1] * wide[i])
    options: Any = {"unit": "H100", "scale_a": scale_a, "scale_b": scale_b}
    assert check(d, a, b, **options)
    assert check(d, a, b, promote_every=128, **options)
    wrong = check(np.where(np.arange(192) < 64, 2 * d, d), a, b, **options)
    assert wrong.place == "columns 0-63"


def test_the_coarser_scales_are_repeated() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 256, 256)).astype(td.float8_e4m3fn)
    scale_a = rng.uniform(0.5, 2, (256, 4)).astype(np.float32)
    scale_b = rng.uniform(0.5, 2, (2, 256)).astype(np.float32)
    d = np.zeros((256, 256), np.float32)
    for i in range(4):
        ks = slice(64 * i, 64 * i + 64)
        part = td.tensor_core.matmul(a[:, ks], b[ks], device="H100")
        d += part * (scale_a[:, i : i + 1] * scale_b[i // 2])
    assert check(d, a, b, unit="H100", scale_a=scale_a, scale_b=scale_b)


def test_scales_of_zero_and_of_both_signs_with_inf() -> None:
    a = np.ones((2, 4), np.float32)
    a[1, 0] = np.inf
    scale = np.float32([[1], [-1]])
    with np.errstate(all="ignore"):
        d = (a @ a.T) * scale
    assert check(d, a, a.T, unit="float32", scale_a=scale)


# -- overflow --------------------------------------------------------------------------


def test_results_that_must_overflow() -> None:
    a = np.full((2, 16), 200, np.float16)
    exact = np.full((2, 2), np.inf, np.float16)
    options: Any = {"unit": "A100", "accumulator": "float16"}
    assert check(exact, a, a.T, **options)
    assert not check(np.full((2, 2), -3, np.float16), a, a.T, **options)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz"])
def test_results_above_a_format_without_inf(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (100 * rng.standard_normal((2, 32, 32))).astype(td.bfloat16)
    sums = td.tensor_core.matmul(a, b, device="H100")
    dtype = td.formats[name].dtype
    with np.errstate(all="ignore"):
        assert check(sums.astype(dtype), a, b, unit="H100")
        limit = float(td.formats[name].max)
        saturated = np.clip(sums, -limit, limit).astype(dtype)
    assert check(saturated, a, b, unit="H100")
    assert not check(np.zeros((32, 32), dtype), a, b, unit="H100")


# -- few wrong elements, and false names -----------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 10, 50])
def test_some_random_elements(count: int, operands: Any) -> None:
    a, b, right = operands
    rng = np.random.default_rng(count)
    d = right.copy()
    which = rng.choice(d.size, count, replace=False)
    d.reshape(-1)[which] += np.float32(20) * rng.standard_normal(count).astype("f4")
    found = check(d, a, b, unit="H100")
    assert found.wrong == count
    assert found.diagnoses == ()


def test_nan_beside_another_fault(operands: Any) -> None:
    a, b, right = operands
    d = right.copy()
    d[:, :32] = td.tensor_core.matmul(a[:, 16:], b[16:, :32], device="H100")
    d[3, 60] = np.nan
    found = check(d, a, b, unit="H100")
    assert found.diagnoses[0].startswith("NaN where the operands")
    assert found.diagnoses[1].startswith("k 0 to 15 is missing: columns 0-31")


def test_float32_results_of_a_tf32_unit() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 96, 96)).astype(np.float32)
    found = check(a @ b, a, b, unit="H100")
    assert found.diagnoses == (
        'the operands were not rounded to tf32: use unit="float32"',
    )


def test_a_bound_that_says_nothing() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((16, 16384)).astype(td.float8_e4m3fn)
    b = rng.standard_normal((16384, 16)).astype(td.float8_e4m3fn)
    found = check(np.zeros((16, 16), np.float32), a, b, unit="H100", search=False)
    assert found.zeros > 200
    assert "0 would pass" in repr(found)
    with pytest.warns(UserWarning, match="0 would pass"):
        td.testing.assert_matmul(np.zeros((16, 16), "f4"), a, b, unit="H100")


def test_zero_points_are_those_of_the_operand() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 255, (2, 64, 64)).astype(np.float32)
    d = np.float32(0.01) * ((a - 1) @ b)
    found = check(d, a, b, unit="float32", scale_a=0.01)
    assert found.diagnoses[0].endswith("the results are those of a - 1")


@pytest.mark.parametrize("name", ["a", "b"])
def test_operands_in_the_other_order(name: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((48, 64)).astype(td.bfloat16)
    b = rng.standard_normal((64, 80)).astype(td.bfloat16)
    x, y = (
        np.ascontiguousarray(np.ravel(z).reshape(z.shape[::-1]).T) if n == name else z
        for n, z in (("a", a), ("b", b))
    )
    found = check(td.tensor_core.matmul(x, y, device="H100"), a, b, unit="H100")
    assert found.diagnoses == (f"{name} is read in column order",)


def test_columns_in_groups_of_8_are_reversed(operands: Any) -> None:
    a, b, d = operands
    order = np.arange(64).reshape(-1, 8)[:, ::-1].ravel()
    found = check(d[:, order], a, b, unit="H100")
    assert found.diagnoses[0].startswith("columns of d have the results of other")


def test_missing_k_with_scales(operands: Any) -> None:
    a, b, _ = operands
    d = td.tensor_core.matmul(a[:, :48], b[:48], device="H100") * np.float32(0.5)
    found = check(d, a, b, unit="H100", scale_a=0.5)
    assert found.diagnoses == ("k 48 to 63 is missing: all elements",)


def test_operand_faults_in_a_sample(operands: Any) -> None:
    a, b, _ = operands
    d = td.tensor_core.matmul(np.ascontiguousarray(a.T), b, device="H100")
    found = check(d, a, b, unit="H100", sample=400)
    assert found.diagnoses[0].startswith("a is transposed")


# -- arguments -------------------------------------------------------------------------


def test_broadcast_stacks_are_not_copied() -> None:
    import tracemalloc

    rng = np.random.default_rng(0)
    a = rng.standard_normal((256, 256)).astype(td.bfloat16)
    b = rng.standard_normal((64, 256, 1)).astype(td.bfloat16)
    d = td.tensor_core.matmul(a, b, device="H100")
    tracemalloc.start()
    assert check(d, a, b, unit="H100", sample=64, search=False)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"alpha": np.nan}, ValueError, "alpha must be finite"),
        ({"beta": np.inf}, ValueError, "beta must be finite"),
        ({"scale_a": np.nan}, ValueError, "scale_a must be finite"),
        ({"bias": 1j}, TypeError, "bias must hold real numbers"),
        ({"scale_a": "x"}, TypeError, "scale_a must hold real numbers"),
        ({"search": 1}, TypeError, "search must be True or False"),
    ],
)
def test_errors(options: Any, error: type[Exception], text: str, operands: Any) -> None:
    a, b, d = operands
    with pytest.raises(error, match=text):
        check(d, a, b, unit="H100", **options)


def test_arrays_of_other_libraries(operands: Any) -> None:
    class OnGpu:
        """Stands for an array of CuPy."""

        __cuda_array_interface__ = None

        def __init__(self, x: Array) -> None:
            self._x = x

        def get(self) -> Array:
            return self._x

    a, b, d = (OnGpu(x) for x in operands)
    assert check(d, a, b, unit="H100").verdict == "identical"


def test_a_unit_that_does_not_multiply_a_format(operands: Any) -> None:
    a, b, d = operands
    with pytest.raises(ValueError, match="use unit='float32' and a factor"):
        check(d, a.astype(np.float16), b.astype(np.float16), unit="AVX512_BF16")


def test_units_of_other_names(operands: Any) -> None:
    a, b, d = operands
    with pytest.raises(ValueError, match="unit must be 'float32' for sums in float32"):
        check(d, a, b, unit="fp32")
    with pytest.raises(TypeError, match="Integer products are exact"):
        check(d.astype(np.int32), a, b, unit="H100")
