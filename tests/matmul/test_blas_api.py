"""BLAS's gemm below NumPy's products: its shape and its rules."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import oracle
from tf32dtype import _core

M, N, K = 7, 5, 40


def columns(matrix: np.ndarray, ld: int) -> np.ndarray:
    """The elements as BLAS has them: columns, `ld` apart; what lies between is NaN."""
    out = np.full((matrix.shape[1], ld), np.nan, matrix.dtype)
    out[:, : matrix.shape[0]] = matrix.T
    return out


def operands(dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = ((M, K), (K, N), (M, N))
    a, b, c = (rng.normal(0, 1, shape).astype(dtype) for shape in shapes)
    return a, b, c


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    alpha: float = 1,
    beta: float = 0,
    trans: str = "NN",
    **how: Any,
) -> np.ndarray:
    """c after alpha a @ b + beta c, which fits the operands as they are given."""
    stored = [x.T if t in "TtCc" else x for x, t in zip((a, b), trans, strict=True)]
    lds = [x.shape[0] + 3 for x in (*stored, c)]
    x, y, z = (columns(s, ld) for s, ld in zip((*stored, c), lds, strict=True))
    codes = [t.encode() for t in trans]
    sizes = (*c.shape, a.shape[1])
    status = _core.gemm(
        *codes, *sizes, alpha, x, lds[0], y, lds[1], beta, z, lds[2], **how
    )
    assert status == 0
    assert np.all(np.isnan(z[:, c.shape[0] :].astype(np.float32)))  # not written
    return z[:, : c.shape[0]].T


def wanted(a: Any, b: Any, c: Any, alpha: float, beta: float, dtype: Any) -> np.ndarray:
    """RN(beta c + RN(alpha sum)), rounded to dtype; the float64 fma is exact enough:
    24 + 24 bits of a product, a sum within 2^5 of it."""
    sums = oracle.product_float32(a.astype(float), b.astype(float)).astype(np.float32)
    scaled = np.float32(alpha) * sums if alpha else np.zeros_like(sums)
    if beta:
        scaled = (float(np.float32(beta)) * c.astype(float) + scaled).astype(np.float32)
    return scaled.astype(dtype)


@pytest.mark.parametrize("trans", [x + y for x, y in product("NTc", "NtC")])
@pytest.mark.parametrize("dtype", [td.bfloat16, td.tf32, np.float32])
def test_layouts(dtype: Any, trans: str) -> None:
    a, b, c = operands(dtype)
    got = gemm(a, b, c, trans=trans)
    assert np.array_equal(got, wanted(a, b, c, 1, 0, dtype))


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.5, 0), (1, 1), (-3, 0.25), (0, 2), (1.1, -1)]
)
@pytest.mark.parametrize("dtype", [td.bfloat16, td.float8_e4m3fn, np.float32])
def test_alpha_and_beta(dtype: Any, alpha: float, beta: float) -> None:
    a, b, c = operands(dtype, 1)
    with np.errstate(all="ignore"):
        got = gemm(a, b, c, alpha, beta)
        assert np.array_equal(got, wanted(a, b, c, alpha, beta, dtype), equal_nan=True)


def test_what_is_not_read() -> None:
    """beta = 0: C; alpha = 0 or no k: A and B. NaN there does not show."""
    a, b, c = operands(np.float32, 2)
    nan = np.full_like(c, np.nan)
    assert np.array_equal(gemm(a, b, nan), wanted(a, b, c, 1, 0, np.float32))
    for how in (
        {},
        {"format": "bfloat16", "parts": 3, "split_orders": 5},
        {"scaling": 1},
    ):
        if "scaling" in how:
            how = {"format": "float8_e4m3fn", **how}
        got = gemm(a * np.nan, b * np.nan, c, 0, 2, **how)
        assert np.array_equal(got, 2 * c)
        assert np.array_equal(gemm(a * np.nan, b * np.nan, nan, 0, 0, **how), 0 * c)
    assert np.array_equal(gemm(a[:, :0], b[:0], c, 1, 0.5), c / 2)
    assert np.array_equal(gemm(a[:, :0], b[:0], nan), 0 * c)


def test_mixed_kinds() -> None:
    """Operands are multiplied as they are; C has a kind of its own."""
    a, b, _ = operands(np.float32, 3)
    x, y = a.astype(td.float8_e4m3fn), b.astype(td.bfloat16)
    for dtype in (td.float8_e5m2, td.tf32, np.float16, np.float32, np.float64):
        c = np.zeros((M, N), dtype)
        with np.errstate(all="ignore"):
            assert np.array_equal(gemm(x, y, c), wanted(x, y, c, 1, 0, dtype))
    halves = a.astype(np.float16)
    assert np.array_equal(
        gemm(halves, b, np.zeros((M, N), np.float32)),
        wanted(halves, b, None, 1, 0, np.float32),
    )


@pytest.mark.parametrize("mode", ["bf16x9", "bf16x3", "tf32", "fp8_e4m3"])
def test_precisions(mode: str) -> None:
    """With alpha = 1 and beta = 0 it is td.matmul's product, also of tall matrices."""
    how = {
        "bf16x9": {"format": "bfloat16", "parts": 3, "split_orders": 5},
        "bf16x3": {"format": "bfloat16", "parts": 2, "split_orders": 2},
        "tf32": {"format": "tf32"},
        "fp8_e4m3": {"format": "float8_e4m3fn", "scaling": 2},
    }[mode]
    options = {"scale": "row"} if mode == "fp8_e4m3" else {}
    rng = np.random.default_rng(4)
    for m, n in ((M, N), (40, 2), (2, 40)):
        a, b = (rng.normal(0, 1, s).astype(np.float32) for s in ((m, 300), (300, n)))
        got = gemm(a, b, np.zeros((m, n), np.float32), **how)
        assert np.array_equal(got, td.matmul(a, b, precision=mode, **options))


def test_arguments_that_blas_would_not_take() -> None:
    """The number of the first of them, counted from 1, and nothing is written."""
    a, b, c = operands(np.float32, 5)
    good = [b"N", b"N", M, N, K, 1.0, a.ravel(), M, b.ravel(), K, 0.0, c.ravel(), M]
    before = c.copy()
    for place, value in [(0, b"X"), (1, b"-"), (7, M - 1), (9, K - 1), (12, M - 1)]:
        bad = [*good]
        bad[place] = value
        assert _core.gemm(*bad) == place + 1
        bad[2:5] = [0, 0, 0] if place < 2 else bad[2:5]
        assert _core.gemm(*bad) == place + 1
    for place in (2, 3, 4):
        bad = [*good]
        bad[place] = -1
        assert _core.gemm(*bad) == place + 1
    assert np.array_equal(c, before)


def test_free_buffers() -> None:
    """Products go on without what was given back."""
    a, b, _ = operands(td.bfloat16, 6)
    before = a @ b
    td.free_buffers()
    td.free_buffers()
    assert np.array_equal(a @ b, before)
