"""Emulated precisions of GPU arrays, and exact products by integers: the CPU's bits."""

# ruff: noqa: F811

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import ROUNDINGS
from tests.exact.stage_cases import cases
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.support.cuda_operands import assert_same, bits, on_gpu, on_host
from tests.support.sass import check, remarks
from tests.support.simulator.backend import KernelError
from tf32dtype._integer_products.schemes import COUNTS, MODULI, Scheme
from tf32dtype.cuda._matmul import exact, integer_products, wgmma
from tf32dtype.cuda._matmul.product_plan import plan_product

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CASES = {case.name: case for case in cases(40, 97, 33, 1)}
FORMS = (np.float32, np.float64)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(HOST, "processors", lambda: 1)  # which has all tiles
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def hopper(backend):
    """Return a backend that has the instruction."""
    if backend is not HOST and backend.architecture() != wgmma.ARCHITECTURE:
        pytest.skip("another GPU")
    return backend


def drawn(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Return numbers of several magnitudes, with zeros, Inf and NaN."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-9, 9, shape))
    x[rng.random(shape) < 0.1] = 0
    rows = x.reshape(-1, shape[-1])
    if len(rows) > 6:
        rows[1] = 0
        rows[2] *= 2.0 ** (-140 if dtype == np.float32 else -1060)
        rows[3] *= 2.0 ** (115 if dtype == np.float32 else 1000)
        rows[4, 0], rows[5, -1], rows[5, 0] = np.nan, np.inf, -np.inf
    return x.astype(dtype)


def compare(a: Any, b: Any, name: str, **how: Any) -> None:
    got = tfc.matmul(on_gpu(a), on_gpu(b), precision=name, **how)
    assert_same(got, td.matmul(a, b, precision=name, **how), (name, how))


# -- emulated precisions ---------------------------------------------------------------


@pytest.mark.parametrize("descends", [False, True])
@pytest.mark.parametrize("name", ["crt2", "crt10", "crt7_fast", "crt15_fast", "crt20"])
def test_bits(hopper, name, descends):
    HOST.descends = descends
    for dtype in FORMS:
        a = drawn((21, 70), dtype, 1)
        b = drawn((33, 70), dtype, 2).T
        compare(a, b, name)
        compare(a, b, name, dtype=np.float64)
        compare(a, b, name, dtype=np.float32)


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", COUNTS)
def test_all_precisions(hopper, count):
    for name in (f"crt{count}", f"crt{count}_fast"):
        for dtype in FORMS:
            a, b = drawn((130, 150), dtype, 3), drawn((260, 150), dtype, 4).T
            compare(a, b, name)


def test_wrapped_around(hopper):
    """Products in fast mode that are larger than half of P."""
    for dtype in FORMS:
        a = np.full((9, 60), 0.01, dtype)
        b = np.full((60, 8), 0.0127, dtype)
        b[:, 3] *= -1
        for count in (2, 5, 9):
            compare(a, b, f"crt{count}_fast")


def test_shapes_and_dtypes(hopper):
    for m, k, n in ((1, 1, 1), (3, 200, 2), (5, 33, 9)):
        for dtypes in ((np.float32, np.float32), (np.float64, np.float32)):
            a, b = (
                drawn(x, t, 5) for x, t in zip(((m, k), (k, n)), dtypes, strict=True)
            )
            compare(a, b, "crt6")
    a, b = drawn((2, 3, 9, 40), np.float32, 6), drawn((3, 40, 5), np.float32, 7)
    compare(a, b, "crt3")
    compare(a[0, 0, ::-1, ::2], b[0, ::2, ::-1], "crt3")
    compare(a[:, :1, :, :0], b[:, :0], "crt3")
    compare(a[:, 0], b[0], "crt3", dtype=td.bfloat16)
    out = on_gpu(np.zeros((9, 5)))
    wanted = td.matmul(a[0, 0], b[0], precision="crt4").astype(np.float64)
    tfc.matmul(on_gpu(a[0, 0]), on_gpu(b[0]), precision="crt4", out=out)
    assert_same(out, wanted)


def test_scope(hopper):
    a, b = drawn((9, 40), np.float32, 8), drawn((40, 7), np.float32, 9)
    wanted = td.matmul(a, b, precision="crt5")
    with td.matmul_precision("crt5"):
        assert_same(tfc.matmul(on_gpu(a), on_gpu(b)), wanted)


@pytest.mark.parametrize("name", ["crt5", "crt4_fast"])
def test_other_dtypes_in_a_scope(hopper, name):
    """Operands that promote to float32 or float64 are cast, as NumPy's loops do."""
    rng = np.random.default_rng(13)
    a, b = rng.standard_normal((9, 40)), rng.standard_normal((40, 7))
    integers = rng.integers(-99, 99, b.shape, np.int32)
    with td.matmul_precision(name):
        for dtype in (td.bfloat16, np.float16, np.float32):
            x = a.astype(dtype)
            for y in (b.astype(np.float32), b, integers):
                if dtype != td.bfloat16 or y is not integers:
                    assert_same(tfc.matmul(on_gpu(x), on_gpu(y)), np.matmul(x, y))


@pytest.mark.exhaustive
def test_sums_are_reduced(hopper):
    """Sums of 127^2 and of -127^2, the largest for the modulus 255, beyond int32."""
    k, number = 134_000, 4 * 255 + 127
    assert 127**2 * k > 2**31
    a = np.full((1, k), number, np.float64)
    scheme = Scheme.of("crt5")
    assert (np.array(scheme.scales(a, a, True)) == 0).all()
    compare(a, np.hstack([a.T, -a.T]), "crt5")


def test_errors(backend, monkeypatch):
    x = on_gpu(np.ones((4, 4), np.float32))
    with pytest.raises(ValueError, match="'int8x4' is only available on the CPU"):
        tfc.matmul(x, x, precision="int8x4")
    with pytest.raises(TypeError, match="must be float32 or float64"):
        tfc.matmul(tfc.asarray(x, td.bfloat16), x, precision="crt4")
    if backend is HOST:
        many = on_gpu(np.ones((1, 2, 2), np.float32))
        many = cupy.broadcast_to(many, (1 << 16, 2, 2))
        with pytest.raises(ValueError, match="at most 65535 matrices"):
            tfc.matmul(many, many, precision="crt4_fast")
        monkeypatch.setattr(HOST, "arch", "sm_80")
        plan_product.cache_clear()
        with pytest.raises(ValueError, match=r"available on compute capability 9\.0"):
            tfc.matmul(x, x, precision="crt4")
        plan_product.cache_clear()


@pytest.mark.parametrize(
    "name", [f"crt{i}{end}" for i in COUNTS for end in ("", "_fast")]
)
def test_limits_of_scales(name):
    scheme = Scheme.of(name)
    limits = integer_products.limits_of(scheme).value
    factor, bits = (32, 56) if scheme.is_fast else (2, 31)
    assert limits["limits"][0] >> bits
    for i in range(int(limits["count"])):
        c, limit = int(limits["first"]) + i, int(limits["limits"][i])
        for x in (limit, limit + 1):
            fits = factor * x * 4 ** max(c, 0) <= (scheme.product - 1) * 4 ** max(-c, 0)
            assert fits == (x == limit) or limit == 2**64 - 1
    assert 128 * 4 ** int(limits["most"]) <= scheme.product - 1
    assert 128 * 4 ** (int(limits["most"]) + 1) > scheme.product - 1


# -- exact products --------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_exact_products_by_integers(hopper, name):
    case = CASES[name]
    for dtype in FORMS:
        x, y = case.x.astype(dtype), case.y.astype(dtype)
        for rounding in ROUNDINGS:
            got = tfc.matmul(
                on_gpu(x), on_gpu(y.T), precision="exact", strategy="eager",
                rounding=rounding,
            )  # fmt: skip
            wanted = td.matmul(x, y.T, precision="exact", rounding=rounding)
            assert_same(got, wanted, rounding)


def test_integers_replace_float64_products(hopper):
    if hopper is not HOST:
        pytest.skip("which counts calls")
    a, b = drawn((3, 9, 40), np.float32, 10), drawn((40, 7), np.float64, 11)
    HOST.counts.clear()
    got = tfc.matmul(on_gpu(a), on_gpu(b), precision="exact", strategy="eager")
    assert HOST.counts["gemm"] == 0
    assert_same(got, td.matmul(a, b, precision="exact"))


def test_moduli_of_exact_products():
    found = [
        exact.moduli_for(k, np.dtype(dtype)) for dtype in FORMS for k in (1, 1024, 8192)
    ]
    assert found == sorted(found)
    assert found[1] == 11
    assert found[-1] == len(MODULI)


# -- faults ----------------------------------------------------------------------------

FAULTS = {
    "one exponent more": ("x <= of.limits[i]", "x / 4 <= of.limits[i]", "crt5"),
    "bounds rounded down": ("+ (kept << -shift != x.significand)", "", "crt5"),
    "scales that are not kept": ("rows[here.row0 + i].scale", "int lost", "crt5"),
    "residues are not reduced": ("rest >= by.p ? rest - by.p : rest", "rest", "crt5"),
    "half of a row": ("__shfl_xor_sync(~0u, most, 2)", "most", "crt5"),
    "residues of the first modulus only": ("/ all.count", "* 0", "crt5"),
    "cuts do not count": ("rest, error);", "rest, more);", "exact"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(backend, fault, monkeypatch):
    if backend is not HOST:
        pytest.skip("which changes kernels")
    before, after, name = FAULTS[fault]
    case = CASES["2^-30 to 2^30"]
    a, b = case.x, case.y.T
    strategy: Any = "eager" if name == "exact" else "performant"
    monkeypatch.setattr(exact, "moduli_for", lambda k, dtype: 9)
    plan_product.cache_clear()
    HOST.put_fault(fault, before, after)
    try:
        got = tfc.matmul(on_gpu(a), on_gpu(b), precision=name, strategy=strategy)
    except KernelError:
        return
    wanted = td.matmul(a, b, precision=name)
    assert (bits(on_host(got)) != bits(wanted)).any()


def test_reductions_within_a_sum(backend):
    if backend is not HOST:
        pytest.skip("which changes kernels")
    a, b = drawn((9, 700), np.float64, 14), drawn((7, 700), np.float64, 15).T
    wanted = td.matmul(a, b, precision="crt9")
    HOST.put_fault("sums of few slices", "1023", "2")
    assert_same(tfc.matmul(on_gpu(a), on_gpu(b), precision="crt9"), wanted)


# -- instructions ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FORMS)
def test_instructions(dtype):
    dtype = np.dtype(dtype)
    for kernel in (
        integer_products.rows_kernel("residues", dtype),
        integer_products.last_kernel(dtype, dtype),
        exact.rounding_kernel(dtype, True),
    ):
        check(kernel, wgmma.ARCHITECTURE)


@pytest.mark.parametrize("has_maxima", [False, True])
@pytest.mark.parametrize("tile", wgmma.CHAINS)
def test_tensor_cores(tile, has_maxima):
    kernel = integer_products.product_kernel(tile, has_maxima)
    instruction = f"IGMMA.64x{tile.columns}x32.S8.S8"
    found = check(kernel, wgmma.ARCHITECTURE, (instruction,))
    assert found[instruction] == 4
    assert "serialized" not in remarks(kernel, wgmma.ARCHITECTURE)
