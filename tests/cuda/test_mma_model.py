"""Tensor cores emulated on a GPU: the bits of `td.tensor_core.matmul`."""

from __future__ import annotations

import contextlib
from functools import cache

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.cuda_operands import assert_same, numbers, on_gpu
from tests.support.cuda_products import by_plan
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import LINE, KernelError

# ruff: noqa: F811
from tests.tensor_core import arrays
from tests.tensor_core.cases import by_parameters, lengths, named, random_cases
from tests.tensor_core.edge_cases import edges
from tf32dtype.cuda._matmul import mma_model as models
from tf32dtype.cuda._matmul.matmul import matmul
from tf32dtype.cuda._matmul.mode import matmul_mode
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.tensor_core.look_up import find_model
from tf32dtype.tensor_core.models import ALIGNED

#: Models that compute different things.
DIFFERENT = [group[0] for group in by_parameters(ALIGNED)]
#: One model for each path through the kernel: terms that fit or may wrap, truncated
#: results, two accumulators, two formats, emulated instructions.
USUAL = {
    "float16-float16-float16-4-4-23",
    "bfloat16-bfloat16-float32-8-16-24",
    "tf32-tf32-float32-4-8-24",
    "float16-float16-float32-16-16-25",
    "float8_e5m2-float8_e4m3fn-float32-16-32-13",
    "float8_e4m3fn-float8_e5m2-float16-16-32-25-emulated",
    "float4_e2m1fn-float8_e4m3fn-float32-32-32-25",
}
assert {named(model) for model in DIFFERENT} >= USUAL
SIDE = models.ROWS


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def product(model, a, b, c=None, **keywords):
    """Return the product by the kernel, and by the CPU."""
    dtype = np.dtype(model.accumulator)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    start = np.zeros(shape, dtype) if c is None else np.broadcast_to(c, shape)
    out = on_gpu(start.copy())
    x, y = on_gpu(a), on_gpu(b)
    by_plan(models.plan, x, y, out, model, continues=c is not None, **keywords)
    want = td.tensor_core.matmul(
        a, b, c, device=model.device, instruction=model.instruction, accumulator=dtype
    )
    return out, want


def square(model, cases, limit):
    """Return cases as stacked matrices: each row meets all columns of its matrix."""
    order = np.random.default_rng(0).permutation(len(cases.a))
    count = min(limit, len(order)) // SIDE * SIDE
    cases = cases.take(order[:count])
    k = cases.a.shape[1]
    a = arrays.operand(model.a, cases.a).reshape(-1, SIDE, k)
    b = arrays.operand(model.b, cases.b).reshape(-1, SIDE, k).swapaxes(1, 2)
    c = arrays.accumulator(model.accumulator, cases.c).reshape(-1, SIDE, 1)
    return a, b, np.repeat(c, SIDE, axis=2)


@cache
def all_cases(model):
    """Return edges of the arithmetic, and random cases: ordinary, over many binades,
    special, subnormal, canceling."""
    longest = lengths(model)[-1]
    return [
        *edges(model),
        *(random_cases(model, 24 * SIDE, k, 1) for k in (longest, 33)),
    ]


def compare(model, limit):
    for cases in all_cases(model):
        given = square(model, cases, limit)
        got, want = product(model, *given)
        assert_same(got, want, named(model))


@pytest.mark.parametrize(
    "model", [m for m in DIFFERENT if named(m) in USUAL], ids=named
)
def test_models(backend, model):
    compare(model, 8 * SIDE)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", DIFFERENT, ids=named)
def test_every_model(backend, model):
    for descends in (False, True):
        backend.descends = descends
        compare(model, 10**9)


@pytest.mark.exhaustive
@pytest.mark.parametrize("row", range(len(ALIGNED)))
def test_every_row(backend, row):
    model = ALIGNED[row]
    cases = random_cases(model, 2 * SIDE, 70, row)
    got, want = product(model, *square(model, cases, 2 * SIDE))
    assert_same(got, want, model.name)


@pytest.mark.parametrize(
    "model", [m for m in DIFFERENT if named(m) in USUAL], ids=named
)
def test_integers(backend, model):
    """If only the integer function computes, the bits are the same."""
    for cases in (random_cases(model, 2 * SIDE, 70, 2), edges(model)[0]):
        given = square(model, cases, 2 * SIDE)
        got, want = product(model, *given, exactly=True)
        assert_same(got, want, named(model))


A100 = find_model("A100", None, "bfloat16", "bfloat16", "float32")
H100 = find_model("H100", "mma.sync", "float8_e4m3fn", "float8_e4m3fn", "float32")


def test_more_than_a_grid(backend, monkeypatch):
    """Several launches share the matrices and columns."""
    monkeypatch.setattr(models, "MOST", 2)
    a, b = (
        numbers("ordinary", shape, td.bfloat16, 1)
        for shape in ((3, 5, 20), (3, 20, 300))
    )
    backend.counts.clear() if backend is HOST else None
    got, want = product(A100, a, b, np.full((3, 5, 300), 1, np.float32))
    assert_same(got, want)
    assert backend is not HOST or backend.counts["launch"] == 6


@pytest.mark.parametrize("model", [A100, H100], ids=["A100", "H100"])
@pytest.mark.parametrize("descends", [False, True])
def test_shapes(backend, model, descends):
    backend.descends = descends
    dtype = arrays.dtype(model.a)
    for seed, (s, m, k, n) in enumerate(
        [(1, 1, 1, 1), (2, 65, 33, 3), (3, 5, 64, 130), (1, 70, 100, 66), (2, 3, 0, 4),
         (1, 0, 4, 4), (1, 17, 31, 16)]
    ):  # fmt: skip
        a = numbers("ordinary", (s, m, k), dtype, seed)
        b = numbers("codes", (s, k, n), dtype, seed)
        got, want = product(model, a, b)
        assert_same(got, want, (s, m, k, n))


def test_sums_begin_with_c(backend):
    a, b = (
        numbers("ordinary", s, td.bfloat16, i) for i, s in enumerate(((3, 40), (40, 5)))
    )
    for c in (np.float32(1), np.float32(-0.0), np.float32("inf"), np.float32("nan")):
        got, want = product(A100, a[None], b[None], np.full((1, 3, 5), c))
        assert_same(got, want, c)
        none = a[None, :, :0], b[None, :0]
        got, want = product(A100, *none, np.full((1, 3, 5), c))
        assert_same(got, want, c)


# -- through matmul --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "instruction", "first", "second", "wanted"),
    [
        ("A100", None, "bfloat16", "bfloat16", None),
        ("H100", "wgmma", "float8_e5m2", "float8_e4m3fn", "float32"),
        ("V100", None, "float16", "float16", "float16"),
        ("hopper", "mma.sync", "tf32", "tf32", None),
        ("RTX 4090", None, "float32", "tf32", None),
        ("A100", None, "float32", "float32", "float32"),
    ],
)
def test_matmul(backend, device, instruction, first, second, wanted):
    first, second = (np.dtype(getattr(td, x, None) or x) for x in (first, second))
    a, b = numbers("ordinary", (2, 9, 50), first), numbers("wide", (50, 7), second, 1)
    x, y = on_gpu(a)[..., ::-1, :], on_gpu(b.T.copy()).T
    want = td.tensor_core.matmul(
        a[..., ::-1, :],
        b,
        device=device,
        instruction=instruction,
        accumulator=wanted or np.float32,
    )
    where = {"device": device, "instruction": instruction}
    assert_same(matmul(x, y, mode="model", dtype=wanted, **where), want)
    out = cupy.empty(want.shape, want.dtype)
    with matmul_mode("model", **where):
        assert matmul(x, y, dtype=wanted, out=out) is out
    assert_same(out, want)
    assert_same(
        matmul(x[0], y[:, 0], mode="model", dtype=wanted, **where), want[0, :, 0]
    )


def test_sums_are_rounded_once(backend):
    a, b = (
        numbers("ordinary", (9, 50), td.bfloat16),
        numbers("wide", (50, 7), td.bfloat16),
    )
    sums = td.tensor_core.matmul(a, b, device="A100")
    for wanted in (td.bfloat16, td.float8_e5m2, np.float64):
        got = matmul(on_gpu(a), on_gpu(b), mode="model", device="A100", dtype=wanted)
        assert_same(got, sums.astype(wanted))


@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_operands_that_no_unit_has(backend, dtype):
    x = on_gpu(np.ones((4, 4), dtype))
    with pytest.raises(TypeError, match=f"a must .*; got {np.dtype(dtype)}"):
        matmul(x, x, mode="model", device="A100")


# -- faults ----------------------------------------------------------------------------


FAULTS = {
    "no barrier before a stage is written": (LINE, ""),
    "no barrier behind it": (LINE, ""),
    "a column of another thread": ("LDB + x * WIDE);", "LDB + y * WIDE);"),
    "swapped exponents": (
        "greatest[r][1] = __viaddmax_s16x2(e[r], of_b.y",
        "greatest[r][1] = __viaddmax_s16x2(e[r], of_b.x",
    ),
    "the last k left out": ("k < task.k; k += STAGE", "k + 1 < task.k; k += STAGE"),
    "groups of instructions not filled": (
        "k < filled; k += MODEL_GROUP",
        "k < depth - 1; k += MODEL_GROUP",
    ),
    "a product beyond the range": ("HIGHEST = 2 * BIAS - 2", "HIGHEST = 2 * BIAS + 2"),
    "a product below it": (
        "LOWEST = MODEL_FRACTION + 2",
        "LOWEST = MODEL_FRACTION - 20",
    ),
    "nothing redone": ("if (doubts | task.exactly)", "if (task.exactly)"),
    "one accumulator redone as another": (
        "mine[i][thread], none, surely",
        "mine[0][thread], none, surely",
    ),
    "subnormal operands as normal ones": ("max(field - BIAS, least)", "field - BIAS"),
}


@cache
def fault_cases():
    found = [square(A100, cases, 4 * SIDE) for cases in all_cases(A100)]
    return found


def models_differ():
    """Return whether a product differs from the CPU's, in either order of threads."""
    for descends in (False, True):
        HOST.descends = descends
        for given in fault_cases():
            try:
                assert_same(*product(A100, *given))
            except AssertionError:
                return True
    return False


def test_models_do_not_differ(backend):
    if backend is HOST:
        assert not models_differ()


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are put in where the host runs kernels")
    backend.put_fault(fault, *FAULTS[fault])
    with contextlib.suppress(KernelError):
        assert models_differ()


# -- machine code ----------------------------------------------------------------------


def kernel_of(model):
    dtypes = arrays.dtype(model.a), arrays.dtype(model.b)
    return Kernel(
        "cuda/tensor_core/mma_model.cu", "model", models.options(model, *dtypes)
    )


def check_code(model, arch):
    found = check(kernel_of(model), arch, ("F2I.TRUNC", "FMUL"))
    # For 16 elements: four products in a loop over a block's products, and c.
    conversions = sum(n for x, n in found.items() if x.startswith("F2I"))
    assert conversions >= 16 * 4 + 16


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_machine_code(arch):
    check_code(A100, arch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("model", DIFFERENT, ids=named)
def test_machine_code_of_all(model, arch):
    check_code(model, arch)
