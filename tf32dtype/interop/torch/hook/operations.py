"""The operations of PyTorch that multiply matrices, as products of two matrices.

An operation's result is made of float32 products in this order: the product times
alpha, plus beta times the added tensor, each rounded to float32; then one rounding to
the dtype of the result. Factors of 1 and addends of 0 are left out.

Tensors of FP8 are multiplied as they are: a recipe only chooses who multiplies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .mode import ProductMode

aten = torch.ops.aten


class Multiplier(NamedTuple):
    """Multiplies matrices that are made of the operands of one layer."""

    #: returns the float32 product of (..., m, k) and (..., k, n) of one stack
    product: Callable[[Tensor, Tensor], Tensor]
    #: whether lines of operands can be multiplied apart, if each part has a line with
    #: the largest magnitude of the whole
    takes_parts: bool


#: Computes an operation with its arguments.
Operation = Callable[..., Any]

#: The operations by their overload.
OPERATIONS: dict[Any, Operation] = {}
#: Dtypes of operands that are multiplied as they are.
CODES = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
)
#: Dtypes of operands that are multiplied; results of others are PyTorch's own.
DTYPES = (torch.float32, torch.bfloat16, torch.float16, *CODES)


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


#: Returns the float32 product of two operands, in the shape of the result.
_Product = Callable[["ProductMode", Tensor, Tensor], Tensor]


def _matrices(mode: ProductMode, a: Tensor, b: Tensor) -> Tensor:
    return mode.product(a, b)


def _summed_matrices(mode: ProductMode, a: Tensor, b: Tensor) -> Tensor:
    # The sum over matrices is a part of the sum over k.
    left = a.transpose(0, 1).reshape(a.shape[1], -1)
    return mode.product(left, b.reshape(-1, b.shape[2]))


def _matrix_and_vector(mode: ProductMode, a: Tensor, x: Tensor) -> Tensor:
    return mode.product(a, x[:, None])[:, 0]


def _vectors(mode: ProductMode, x: Tensor, y: Tensor) -> Tensor:
    return mode.product(x[None], y[:, None])[0, 0]


def _plain(product: _Product) -> Operation:
    """Return the operation whose result is a product."""

    def operate(
        mode: ProductMode, a: Tensor, b: Tensor, out_dtype: torch.dtype | None = None
    ) -> Tensor:
        return finished(product(mode, a, b), out_dtype or a.dtype)

    return operate


def _added(product: _Product) -> Operation:
    """Return the operation that adds a tensor to a product."""

    def operate(
        mode: ProductMode,
        c: Tensor,
        a: Tensor,
        b: Tensor,
        *,
        beta: Any = 1,
        alpha: Any = 1,
    ) -> Tensor:
        return finished(product(mode, a, b), a.dtype, c, alpha, beta)

    return operate


operation(aten.mm.default, aten.bmm.default, aten.mm.dtype, aten.bmm.dtype)(
    _plain(_matrices)
)
operation(aten.mv.default)(_plain(_matrix_and_vector))
operation(aten.dot.default, aten.vdot.default)(_plain(_vectors))
operation(aten.addmm.default, aten.baddbmm.default)(_added(_matrices))
operation(aten.addbmm.default)(_added(_summed_matrices))
operation(aten.addmv.default)(_added(_matrix_and_vector))


@operation(aten._addmm_activation.default)
def _addmm_activation(
    mode: ProductMode, *operands: Tensor, use_gelu: bool = False, **factors: Any
) -> Tensor:
    sums: Tensor = OPERATIONS[aten.addmm.default](mode, *operands, **factors)
    return torch.nn.functional.gelu(sums) if use_gelu else sums.relu()


@operation(aten._foreach_mm.default)
def _foreach_mm(
    mode: ProductMode, left: Sequence[Tensor], right: Sequence[Tensor]
) -> list[Tensor]:
    pairs = zip(left, right, strict=True)
    return [mode.again(aten.mm.default, a, b) for a, b in pairs]


@operation(aten._scaled_mm.default)
def _scaled_mm(
    mode: ProductMode,
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """Multiply the sums by the scales of the rows, then by those of the columns."""
    sums = mode.product(a, b) * scale_a.float() * scale_b.float()
    if bias is not None:
        sums = sums + bias.float()
    dtype = out_dtype or a.dtype
    if scale_result is not None and dtype in CODES:
        sums = sums / scale_result
    return sums.to(dtype)


@operation(aten._scaled_mm_v2.default)
def _scaled_mm_v2(
    mode: ProductMode,
    a: Tensor,
    b: Tensor,
    scale_a: Sequence[Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: Tensor | None,
    out_dtype: torch.dtype | None,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    (row,), (column,) = scale_a, scale_b
    result: Tensor = _scaled_mm(mode, a, b, row, column, bias, None, out_dtype)
    return result
