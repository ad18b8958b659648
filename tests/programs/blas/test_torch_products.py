"""PyTorch's products on the CPU, by MKL, which is inside the calling library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.precision_switch import random
from tf32dtype import _core

torch = pytest.importorskip("torch")
if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)
if "BLAS_INFO=mkl" not in torch.__config__.show():
    pytest.skip("this PyTorch has another BLAS", allow_module_level=True)

A, B, V = random(60, 50), random(50, 40), random(50)
MANY_A, MANY_B = random(3, 60, 50), random(3, 50, 40)
EVERY = {"blas": True, "float64": True, "complex64": True, "dots": True}


def bf16(a: Any, b: Any) -> Any:
    return td.matmul(a, b, precision="bf16")


@pytest.mark.parametrize(
    ("product", "operands"),
    [
        (lambda a, b: a @ b, (A, B)),
        (torch.mm, (A, B)),
        (torch.bmm, (MANY_A, MANY_B)),
        (torch.mv, (A, V)),
        (torch.dot, (V, V)),
        (lambda a, b: torch.nn.functional.linear(a, b.T.contiguous()), (A, B)),
        (lambda a, b: torch.einsum("ij,jk->ik", a, b), (A, B)),
        (lambda a, b: torch.addmm(torch.zeros(60, 40), a, b), (A, B)),
        (lambda a, b: (a.double() @ b.double()).float(), (A, B)),
        (lambda a, b: (a.cfloat() @ b.cfloat()).real, (A, B)),
    ],
    ids="@ mm bmm mv dot linear einsum addmm float64 complex64".split(),
)
def test_products_obey(product: Callable[..., Any], operands: tuple[Any, Any]) -> None:
    a, b = map(torch.from_numpy, operands)
    own = product(a, b)
    with td.matmul_precision("bf16", **EVERY):
        got = product(a, b)
    assert np.array_equal(np.asarray(got), bf16(*operands))
    assert not torch.equal(got, own)
    assert torch.equal(product(a, b), own)


def test_lapack_is_left_out() -> None:
    a, b = torch.from_numpy(A[:50]), torch.from_numpy(B)
    own = torch.linalg.solve(a, b), *torch.linalg.svd(a)
    with td.matmul_precision("bf16", **EVERY):
        got = torch.linalg.solve(a, b), *torch.linalg.svd(a)
    assert all(map(torch.equal, own, got))


def test_gradients() -> None:
    """Compute gradients, too, in PyTorch's own threads."""
    a, b = (torch.from_numpy(x).requires_grad_() for x in (A, B))
    up = np.ones((60, 40), np.float32)
    td.set_matmul_precision("bf16", blas=True)
    try:
        (a @ b).backward(torch.from_numpy(up))
    finally:
        td.set_matmul_precision(None)
    assert np.array_equal(a.grad, bf16(up, B.T))
    assert np.array_equal(b.grad, bf16(A.T, up))
