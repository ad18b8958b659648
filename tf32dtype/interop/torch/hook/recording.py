"""Watch the products of PyTorch's operations, without a change of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from .kinds import Kind, known
from .layers import Place
from .mode import ProductMode
from .recipe import Recipe

#: The recipe of all layers.
_UNROUNDED = Recipe()


class RecordingMode(ProductMode):
    """Tells of each product; the results of operations are PyTorch's own.

    Parameters
    ----------
    tell : callable
        It is given the operands of a product, and its place.
    model : Module, optional
        The module that names of layers are relative to.
    """

    in_parts = False  # each operation is one product

    def __init__(
        self,
        tell: Callable[[Tensor, Tensor, Place], None],
        model: nn.Module | None = None,
    ) -> None:
        super().__init__(lambda layer: _UNROUNDED, model)
        self._tell = tell
        self._has_onednn = False

    @contextmanager
    def watch(self) -> Iterator[Self]:
        self._has_onednn = torch._C._get_mkldnn_enabled()
        with super().watch():
            yield self

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if known(func).kind is Kind.TAKE_APART:
            return super().__torch_dispatch__(func, types, args, kwargs)
        # oneDNN is switched off for operations that PyTorch would fuse with it, but a
        # single operation has its usual bits only with it.
        usual = torch._C._get_mkldnn_enabled()
        torch._C._set_mkldnn_enabled(self._has_onednn)
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            torch._C._set_mkldnn_enabled(usual)

    def replaced(
        self, func: Any, operation: Any, target: str, args: Any, kwargs: Any
    ) -> Any:
        super().replaced(func, operation, "", args, kwargs)
        return func(*args, **kwargs)

    def multiply(self, a: Tensor, b: Tensor, place: Place, recipe: Recipe) -> Tensor:
        self._tell(a, b, place)
        return torch.matmul(a.float(), b.float())
