"""Attention: two products, and a softmax in float32 between them.

The scores are the product of queries and keys, times the scale, plus the mask. Their
softmax, the probabilities, are multiplied by the values. Each head is a matrix of a
stack; a head of keys and values that several heads of queries share is repeated. The
backward pass computes the scores and probabilities again, then three gradients of
products, and adds those of shared heads in float32.

PyTorch takes attention apart into other operations if it has dropout, if its mask needs
a gradient, and for shapes that its kernel is not made for. `WatchAttention` gives the
roles of the two products. There, queries and keys are scaled before they are rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .operations import aten, operation
from .recipe import Role

if TYPE_CHECKING:
    from .mode import ProductMode

#: The roles of operands of the two products.
_ROLES: tuple[tuple[Role, Role], ...] = (
    ("activations", "kv_cache"),
    ("probabilities", "kv_cache"),
)


#: The functions that compute attention, perhaps by other operations.
_FUNCTIONS = (
    torch.nn.functional.scaled_dot_product_attention,
    aten.scaled_dot_product_attention,
    aten.scaled_dot_product_attention.default,
)


class WatchAttention(TorchFunctionMode):
    """Says when attention begins and ends.

    Parameters
    ----------
    tell : callable
        It is given the roles of the products that follow; afterwards no roles.
    named : callable
        Given an error and the arguments, it returns the error with the layer.
    """

    def __init__(
        self,
        tell: Callable[[tuple[tuple[Role, Role], ...]], None],
        named: Callable[[Exception, Any], Exception],
    ) -> None:
        super().__init__()
        self._tell, self._named = tell, named

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func not in _FUNCTIONS:
            return func(*args, **(kwargs or {}))
        self._tell(_ROLES)
        try:
            return func(*args, **(kwargs or {}))
        except RuntimeError as error:
            raise self._named(error, args) from None
        finally:
            self._tell(())


@operation(aten._scaled_dot_product_flash_attention_for_cpu.default)
def _attention(
    mode: ProductMode,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            "value must have a row for each row of key; got shapes"
            f" {tuple(value.shape)} and {tuple(key.shape)}"
        )
    factor = _factor(query, scale)
    keys, values = (_repeated(x, query) for x in (key, value))
    scores = _scores(mode, query, keys, factor, is_causal, attn_mask)
    sums = mode.product(_softmax(scores), values, "probabilities", "kv_cache")
    result = torch.empty_like(query)
    largest = scores.logsumexp(-1)
    # PyTorch gives the logarithm 0 to rows of which all is masked.
    largest = largest.masked_fill(largest == -torch.inf, 0)
    return result.copy_(sums), largest.mT.contiguous().mT


@operation(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def _attention_backward(
    mode: ProductMode,
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    result: Tensor,
    logsumexp: Tensor,
    dropout: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    factor = _factor(query, scale)
    product = mode.product
    keys, values = (_repeated(x, query) for x in (key, value))
    scores = _scores(mode, query, keys, factor, is_causal, attn_mask)
    probabilities = _softmax(scores)
    of_values = product(probabilities.mT, gradient, "probabilities", "gradients")
    of_probabilities = product(gradient, values.mT, "gradients", "kv_cache")
    shares = (gradient.float() * result.float()).sum(-1, keepdim=True)
    of_scores = probabilities * (of_probabilities - shares)
    of_queries = product(of_scores, keys, "gradients", "kv_cache") * factor
    of_keys = product(of_scores.mT, query, "gradients", "activations") * factor
    found = (of_queries, query), (of_keys, key), (of_values, value)
    return tuple(_added(sums, like) for sums, like in found)


def _factor(query: Tensor, scale: float | None) -> float:
    return query.shape[-1] ** -0.5 if scale is None else scale


def _repeated(x: Tensor, query: Tensor) -> Tensor:
    """Return keys or values with a head for each head of queries."""
    count = query.shape[1] // x.shape[1]
    return x if count == 1 else x.repeat_interleave(count, 1)


def _added(sums: Tensor, like: Tensor) -> Tensor:
    """Return a gradient; those of shared heads are added."""
    if sums.shape[1] != like.shape[1]:
        sums = sums.unflatten(1, (like.shape[1], -1)).sum(2)
    # As from PyTorch, all heads of a position are together in memory.
    return sums.transpose(1, 2).to(like.dtype).contiguous().transpose(1, 2)


def _scores(
    mode: ProductMode,
    query: Tensor,
    keys: Tensor,
    factor: float,
    is_causal: bool,
    mask: Tensor | None,
) -> Tensor:
    """Return the operands of the softmax in float32."""
    scores = mode.product(query, keys.mT, "activations", "kv_cache") * factor
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -torch.inf)
    return scores + mask.float()


def _softmax(scores: Tensor) -> Any:
    """Return the softmax; 0 for rows of which all is masked, as PyTorch does."""
    return aten._safe_softmax.default(scores, -1)
