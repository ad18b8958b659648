"""Correctly rounded products of GPU arrays: the bits of the CPU."""

# ruff: noqa: F811

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import FORMS, ROUNDINGS, dtype_of
from tests.exact.stage_cases import Case, cases
from tests.exact.test_stages import near_midpoints
from tests.support.cuda import HOST, backend, tfc  # noqa: F401
from tests.support.cuda_operands import assert_same, bits, on_gpu, on_host
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import KernelError
from tf32dtype.cuda._matmul import exact
from tf32dtype.cuda._matmul.product_plan import plan_product

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CASES = {case.name: case for case in cases(40, 97, 33, 1)}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def compare(a: Any, b: Any, what: Any = "", **how: Any) -> None:
    got = tfc.matmul(on_gpu(a), on_gpu(b), precision="exact", **how)
    wanted = td.matmul(a, b, precision="exact", **how)
    if wanted.dtype.kind == "c":
        assert_same(got.real, wanted.real, (what, how))
        assert_same(got.imag, wanted.imag, (what, how))
    else:
        assert_same(got, wanted, (what, how))


def compare_all(case: Case) -> None:
    for dtype in ("float32", "float64"):
        x, y = case.x.astype(dtype), case.y.astype(dtype)
        for rounding in ROUNDINGS:
            compare(x, y.T, case.name, rounding=rounding)
        compare(x, y.T, case.name, dtype="f8" if dtype == "float32" else "f4")


# -- results ---------------------------------------------------------------------------


@pytest.mark.parametrize("descends", [False, True])
@each_case
def test_every_stage(backend, case, descends):
    HOST.descends = descends
    compare_all(case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [(70, 150, 70), (10, 2500, 66)])
def test_other_shapes(backend, shape):
    for case in cases(*shape, 2):
        compare_all(case)


@pytest.mark.parametrize("name", FORMS)
def test_formats(backend, name):
    rng = np.random.default_rng(3)
    a, b = (
        abs(rng.standard_normal(shape)).astype(np.float32).astype(dtype_of(name))
        for shape in ((9, 70), (70, 5))
    )
    for rounding in ROUNDINGS:
        compare(a, b, rounding=rounding)
        compare(a, b, rounding=rounding, dtype=np.float32)
        wide = a.astype(np.float32), b.astype(np.float32)
        compare(*wide, rounding=rounding, dtype=dtype_of(name))


@pytest.mark.parametrize("dtypes", [("D", "D"), ("F", "F"), ("F", "f"), ("d", "F")])
def test_complex(backend, dtypes):
    rng = np.random.default_rng(4)
    a, b = (
        (rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape)))
        .astype(dtype)
        for dtype, shape in zip(dtypes, ((5, 30), (30, 4)), strict=True)
    )  # fmt: skip
    for rounding in ROUNDINGS:
        compare(a, b, rounding=rounding)
    out = on_gpu(np.zeros((2, 5, 4), np.complex128))
    assert tfc.matmul(on_gpu(a), on_gpu(b), precision="exact", out=out) is out
    wanted = td.matmul(a, b, precision="exact", dtype=np.complex128)
    assert (backend.get(out) == wanted).all()
    with pytest.raises(TypeError, match="dtype must be complex"):
        tfc.matmul(on_gpu(a), on_gpu(b), precision="exact", dtype=np.float32)


def test_integers_beside_floats(backend):
    rng = np.random.default_rng(5)
    a = rng.standard_normal((6, 20))
    b = rng.integers(-(2**31), 2**31, (20, 3), dtype=np.int32)
    compare(a, b)
    with pytest.raises(TypeError, match="must be floating-point numbers"):
        tfc.matmul(on_gpu(b.T), on_gpu(b), precision="exact")


@pytest.mark.parametrize("rows", [1, 64])
def test_lost_remainders_of_midpoints(backend, rows):
    """The rest of a sum loses 2^-120, and is 0. The sum is a midpoint of float32."""
    x = np.zeros((rows, 160), np.float32)
    x[:, ::32] = 1, 2.0**-24, 2.0**-60, 2.0**-120, -(2.0**-60)
    for sign in (1, -1):
        compare(sign * x, np.ones((160, rows), np.float32))


# -- layouts ---------------------------------------------------------------------------

SHAPES = [
    ((70,), (70,)), ((70,), (70, 3)), ((2, 70), (70,)), ((0, 7), (7, 2)),
    ((4, 0), (0, 3)), ((1, 1), (1, 1)), ((3, 1, 6, 50), (4, 50, 7)),
    ((5, 50), (3, 50, 2)), ((2, 3, 5, 50), (50, 4)), ((9, 66, 20), (1, 20, 67)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, td.bfloat16])
def test_shapes(backend, dtype):
    rng = np.random.default_rng(6)
    for of_a, of_b in SHAPES:
        compare(*(rng.standard_normal(x).astype(dtype) for x in (of_a, of_b)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strides(backend, dtype):
    rng = np.random.default_rng(7)
    a = rng.standard_normal((3, 68, 40)).astype(dtype)
    b = rng.standard_normal((3, 40, 35)).astype(dtype)
    x, y = on_gpu(a), on_gpu(b)
    for of_a in (np.s_[:], np.s_[::-1], np.s_[:, ::-2], np.s_[..., ::-1], np.s_[1]):
        for of_b in (np.s_[:], np.s_[:, :, ::3], np.s_[:, ::-1], np.s_[2]):
            got = tfc.matmul(x[of_a], y[of_b], precision="exact")
            assert_same(got, td.matmul(a[of_a], b[of_b], precision="exact"))
    got = tfc.matmul(y.swapaxes(1, 2), x.swapaxes(1, 2), precision="exact")
    wanted = td.matmul(b.swapaxes(1, 2), a.swapaxes(1, 2), precision="exact")
    assert_same(got, wanted)


def test_out_may_overlap(backend):
    a = np.random.default_rng(8).standard_normal((2, 33, 33))
    x = on_gpu(a)
    assert tfc.matmul(x, x, precision="exact", out=x) is x
    assert_same(x, td.matmul(a, a, precision="exact"))


def test_results_are_rounded_to_the_dtype_of_out(backend):
    rng = np.random.default_rng(12)
    a, b = rng.standard_normal((6, 50)), rng.standard_normal((50, 4))
    for dtype in (np.float32, td.bfloat16, np.float64):
        for given in (np.float32, np.float64):
            x, y = a.astype(given), b.astype(given)
            wanted = td.matmul(
                x, y, precision="exact", rounding="toward_zero", dtype=dtype
            )
            with td.matmul_precision("exact", rounding="toward_zero"):
                for how in ({}, {"precision": "exact", "rounding": "toward_zero"}):
                    out = on_gpu(np.zeros((6, 4), dtype))
                    tfc.matmul(on_gpu(x), on_gpu(y), out=out, **how)
                    assert_same(out, wanted)


def test_in_parts(backend, monkeypatch):
    """Products of several parts of the result, and of k."""
    monkeypatch.setattr(exact, "DEPTH", 30)
    rng = np.random.default_rng(9)
    for most in (50, 64 * 70, 3 * 70 * 70):
        monkeypatch.setattr(exact, "MOST_SUMS", most)
        plan_product.cache_clear()
        a, b = rng.standard_normal((2, 7, 70, 70))
        compare(a, b[0] if most == 50 else b, most)
        compare(a[0, :, :65].astype("f4"), b[0, :65].astype("f4"), most)
    plan_product.cache_clear()


def test_nothing_waits_for_the_gpu(backend):
    if backend is not HOST:
        pytest.skip("which counts calls")
    x = on_gpu(np.ones((5, 5)))
    HOST.counts.clear()
    tfc.matmul(x, x, precision="exact")
    assert HOST.counts == {"launch": 3, "gemm": 1}


# -- scopes ----------------------------------------------------------------------------


def test_scopes(backend):
    rng = np.random.default_rng(10)
    a, b = rng.standard_normal((2, 20, 20)).astype(np.float32)
    x, y = tfc.asarray(a, td.tf32), tfc.asarray(b, td.tf32)
    wide = x.astype(np.float32), y.astype(np.float32)
    with td.matmul_precision("exact"):
        assert_same(x @ y, a.astype(td.tf32) @ b.astype(td.tf32))  # of a format
        wanted = td.matmul(a, b, precision="exact")
        assert_same(tfc.matmul(on_gpu(a), on_gpu(b)), wanted)
        assert_same(tfc.asarray(a, np.float32) @ tfc.asarray(b, np.float32), wanted)
        narrow = a.astype(td.tf32).astype("f4"), b.astype(td.tf32).astype("f4")
        wanted = td.matmul(*narrow, precision="exact")
        assert_same(tfc.matmul(*wide), wanted)
    with pytest.raises(ValueError, match="must not both be given"):
        tfc.matmul(*wide, precision="exact", mode="native")
    with pytest.raises(ValueError, match="rounding"):
        tfc.matmul(*wide, precision="exact", rounding="up")


# -- faults ----------------------------------------------------------------------------


def differs(case: Case, dtype: str = "float32") -> bool:
    x, y = case.x.astype(dtype), case.y.astype(dtype)
    got = tfc.matmul(on_gpu(x), on_gpu(y.T), precision="exact")
    wanted = td.matmul(x, y.T, precision="exact")
    return bool((bits(on_host(got)) != bits(wanted)).any())


@pytest.mark.parametrize("which", [0, 1])
def test_a_bound_that_is_too_small(backend, monkeypatch, which):
    case = near_midpoints(2.0**-56 if which == 0 else 2.0**-110)
    assert not differs(case, "float64")
    given = exact.errors(case.x.shape[1])
    wrong = [*given]
    wrong[which] *= 2.0**-17
    monkeypatch.setattr(exact, "errors", lambda k: tuple(wrong))
    plan_product.cache_clear()
    x, y = on_gpu(case.x), on_gpu(case.y.T)
    got = tfc.matmul(x, y, precision="exact", dtype=np.float32)
    wanted = td.matmul(case.x, case.y.T, precision="exact", dtype=np.float32)
    assert (backend.get(got) != wanted).any()
    plan_product.cache_clear()


FAULTS = {
    "every sum is decided": ("low == high", "1", "canceling"),
    "errors are forgotten": ("rest +=", "rest =", "canceling more"),
    "exact sums of scaled rows": ("value.exponent += exponent;", "", "2^600 cancels"),
    "no barrier before the next numbers": ("__syncthreads();", "", "normal"),
    "no barrier before numbers are used": ("__syncthreads();", "", "normal"),
    "no barrier before the next slice": ("__syncthreads();", "", "canceling"),
    "no barrier before a slice is used": ("__syncthreads();", "", "canceling"),
    "undecided results are counted early": ("__syncthreads();", "", "canceling"),
    "results are counted before the count is reset": ("__syncthreads();", "", "zero"),
    "digits cleared while they are read": ("__syncwarp();", "", "2^600 cancels"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(backend, fault):
    if backend is not HOST:
        pytest.skip("which changes kernels")
    before, after, name = FAULTS[fault]
    HOST.put_fault(fault, before, after)
    found = False
    for descends in (False, True):
        HOST.descends = descends
        try:
            found |= differs(CASES[name], "float64") or differs(CASES[name])
        except KernelError:
            found = True
    assert found


# -- instructions ----------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_instructions(arch, dtype):
    check(exact.rows_kernel(np.dtype(dtype)), arch, ("DMUL",))
    check(exact.rounding_kernel(np.dtype(dtype)), arch, ("DFMA", "ATOMS"))
