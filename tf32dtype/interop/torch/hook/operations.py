"""The operations of PyTorch that multiply matrices, as products of two matrices.

An operation's result is made of float32 products in this order: the product times
alpha, plus beta times the added tensor, each rounded to float32; then one rounding to
the dtype of the result. Factors of 1 and addends of 0 are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from .recipe import Role

aten = torch.ops.aten


class Multiplier(Protocol):
    """Multiplies matrices that are made of the operands of one layer."""

    @property
    def takes_parts(self) -> bool:
        """Whether lines of operands can be multiplied apart.

        The parts need a line with the largest magnitude of the whole.
        """
        ...

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the float32 product of (..., m, k) and (..., k, n) of one stack."""
        ...


class Products(Protocol):
    """What an operation needs: a product of two stacks of matrices."""

    def product(
        self,
        a: Tensor,
        b: Tensor,
        left: Role | None = None,
        right: Role | None = None,
    ) -> Tensor:
        """Return the float32 product of (..., m, k) and (..., k, n) of one stack.

        `left` and `right` are the operands' roles; None: to be found.
        """
        ...

    def multiplier(
        self,
        a: Tensor,
        b: Tensor,
        left: Role | None = None,
        right: Role | None = None,
    ) -> Multiplier:
        """Return what multiplies matrices that are made of two operands."""
        ...

    def again(self, func: Any, *args: Any) -> Tensor:
        """Return the result of another operation, whose products are replaced, too."""
        ...


#: Computes an operation with its arguments.
Operation = Callable[..., Any]

#: The operations by their overload.
OPERATIONS: dict[Any, Operation] = {}
#: Dtypes of operands that are multiplied; results of others are PyTorch's own.
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def operation(*overloads: Any) -> Callable[[Operation], Operation]:
    """Register a function for overloads of an operation."""

    def registered(function: Operation) -> Operation:
        for overload in overloads:
            OPERATIONS[overload] = function
        return function

    return registered


def finished(
    sums: Tensor,
    dtype: torch.dtype,
    addend: Tensor | None = None,
    alpha: Any = 1,
    beta: Any = 1,
) -> Tensor:
    """Return alpha times float32 sums plus beta times an addend, in a dtype."""
    if alpha != 1:
        sums = sums * alpha
    if addend is not None and beta != 0:
        wide = addend.float()
        sums = sums + (wide if beta == 1 else wide * beta)
    return sums.to(dtype)


@operation(aten.mm.default, aten.bmm.default)
def _mm(products: Products, a: Tensor, b: Tensor) -> Tensor:
    return finished(products.product(a, b), a.dtype)


@operation(aten.mm.dtype, aten.bmm.dtype)
def _mm_to(products: Products, a: Tensor, b: Tensor, out_dtype: torch.dtype) -> Tensor:
    return finished(products.product(a, b), out_dtype)


@operation(aten.addmm.default, aten.baddbmm.default)
def _addmm(
    products: Products,
    c: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Tensor:
    return finished(products.product(a, b), a.dtype, c, alpha, beta)


@operation(aten._addmm_activation.default)
def _addmm_activation(
    products: Products,
    c: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    use_gelu: bool = False,
) -> Tensor:
    sums = _addmm(products, c, a, b, beta=beta, alpha=alpha)
    if use_gelu:
        return torch.nn.functional.gelu(sums)
    return sums.relu()


@operation(aten.addbmm.default)
def _addbmm(
    products: Products,
    c: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Tensor:
    # The sum over matrices is a part of the sum over k.
    left = a.transpose(0, 1).reshape(a.shape[1], -1)
    right = b.reshape(-1, b.shape[2])
    return finished(products.product(left, right), a.dtype, c, alpha, beta)


@operation(aten.linear.default)
def _linear(
    products: Products, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Compute what `linear` does outside of inference mode: one product of all rows."""
    if weight.ndim == 1:
        return products.again(aten.matmul.default, x, weight)
    rows = x.reshape(-1, x.shape[-1])
    if bias is None:
        result = products.again(aten.mm.default, rows, weight.t())
    else:
        result = products.again(aten.addmm.default, bias, rows, weight.t())
    return result.reshape(*x.shape[:-1], weight.shape[0])


@operation(aten.mv.default)
def _mv(products: Products, a: Tensor, x: Tensor) -> Tensor:
    return finished(products.product(a, x[:, None])[:, 0], a.dtype)


@operation(aten.addmv.default)
def _addmv(
    products: Products,
    c: Tensor,
    a: Tensor,
    x: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Tensor:
    return finished(products.product(a, x[:, None])[:, 0], a.dtype, c, alpha, beta)


@operation(aten.dot.default, aten.vdot.default)
def _dot(products: Products, x: Tensor, y: Tensor) -> Tensor:
    return finished(products.product(x[None], y[:, None])[0, 0], x.dtype)
