"""Tests with so many elements or calls that rare faults show, for which only a GPU is
fast enough."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.support.cuda_operands import assert_same, numbers


@pytest.fixture
def gpu(backend):  # noqa: F811
    if backend is HOST:
        pytest.skip("of a GPU")
    return backend


@pytest.mark.parametrize("dtype", [td.bfloat16, td.tf32, td.float8_e4m3fn])
def test_a_hundred_million_elements(gpu, dtype, compared):
    """Bits are the CPU's, also for numbers over many binades. k ends within a tile."""
    n, k = 10_007, 45
    for seed, kind in enumerate(("ordinary", "wide")):
        a, b = (
            numbers(kind, (n, k), dtype, seed),
            numbers(kind, (k, n), dtype, seed + 2),
        )
        got = tfc.matmul(tfc.asarray(a), tfc.asarray(b), dtype=np.float32)
        with np.errstate(all="ignore"):
            assert_same(got, td.matmul(a, b, dtype=np.float32), kind)
        compared(n * n)


def test_nothing_leaks(gpu):
    """10,000 products in all modes, with their caches, leave no memory allocated."""
    x = np.random.default_rng(1).standard_normal((64, 64), np.float32)
    a, single = tfc.asarray(x, td.bfloat16), cupy.asarray(x)
    ways = (
        lambda: tfc.matmul(a, a),
        lambda: tfc.matmul(a, a, mode="model", device="A100"),
        lambda: tfc.matmul(a, a, mode="native"),
        lambda: tfc.matmul(a, a, mode="native", instruction="mma.sync"),
        lambda: tfc.matmul(single, single, precision="bf16x9", strategy="eager"),
    )
    pool = cupy.get_default_memory_pool()

    def left() -> int:
        cupy.cuda.get_current_stream().synchronize()
        gc.collect()
        return int(pool.used_bytes())

    for way in ways:
        way()
    before = left()
    for _ in range(2000):
        for way in ways:
            way()
    assert left() <= before
