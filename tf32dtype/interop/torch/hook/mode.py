"""The mode of PyTorch in which operations that multiply matrices are replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from .kinds import Kind, known
from .layers import Layers, Place
from .operations import DTYPES
from .recipe import Recipe, Role

#: Returns the recipe of a layer; None: PyTorch computes it.
Choose = Callable[[str], Recipe | None]


class NotReplaced(Exception):
    """PyTorch computes this operation."""


class ProductMode(TorchDispatchMode):
    """Replaces the products of this thread's operations while it is entered.

    Parameters
    ----------
    choose : callable
        Given a layer's name, returns its recipe.
    model : Module, optional
        The module that names of layers are relative to.

    Attributes
    ----------
    calls : Counter
        Replaced products by layer.
    unreached : Counter
        Operations that multiply and were not replaced, by their name and the reason.
    """

    def __init__(self, choose: Choose, model: nn.Module | None = None) -> None:
        super().__init__()
        self.choose = choose
        self.layers = Layers(model)
        self.calls: Counter[str] = Counter()
        self.unreached: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def watch(self) -> Iterator[Self]:
        """Replace products, and follow the modules that run."""
        with ExitStack() as stack:
            self.layers.watch(stack)
            leave_fast_paths(stack)
            stack.enter_context(self)
            yield self

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kind, operation, target = known(func)
        if kind is Kind.LEAVE:
            return func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        if kind is Kind.TAKE_APART:
            with self:
                return func.decompose(*args, **kwargs)
        if kind is Kind.UNREACHED:
            self.unreached[str(func), "has no replacement"] += 1
            return func(*args, **kwargs)
        assert operation is not None
        if why := _reason(args, kwargs):
            self.unreached[str(func), why] += 1
            return func(*args, **kwargs)
        return self.replaced(func, operation, target, args, kwargs)

    def replaced(
        self, func: Any, operation: Any, target: str, args: Any, kwargs: Any
    ) -> Any:
        """Compute an operation by products."""
        options = {k: v for k, v in kwargs.items() if k != "out"}
        try:
            result = operation(self, *args, **options)
        except NotReplaced:
            return func(*args, **kwargs)
        if target:
            out: Tensor = args[0] if target == "self" else kwargs["out"]
            if target == "out" and out.shape != result.shape:
                out.resize_(result.shape)
            return out.copy_(result)
        return result

    def again(self, func: Any, *args: Any) -> Tensor:
        """Return the result of another operation, whose products are replaced, too."""
        with self:
            result: Tensor = func(*args)
        return result

    def product(
        self,
        a: Tensor,
        b: Tensor,
        left: Role | None = None,
        right: Role | None = None,
    ) -> Tensor:
        """Return a product in float32, of operands that are rounded as a recipe says.

        Raises
        ------
        NotReplaced
            If the layer has no recipe.
        ValueError, TypeError, MemoryError
            If the operands cannot be rounded or multiplied; the message names the
            layer.
        """
        return self.multiplier(a, b, left, right)(a, b)

    def multiplier(
        self,
        a: Tensor,
        b: Tensor,
        left: Role | None = None,
        right: Role | None = None,
    ) -> Multiplier:
        """Return what multiplies matrices that are made of two operands.

        Raises
        ------
        NotReplaced
            If the layer has no recipe.
        """
        place = self.layers.place(a, b, (left, right))
        recipe = self.choose(place.layer)
        if recipe is None:
            raise NotReplaced
        self.calls[place.layer] += 1
        return Multiplier(self, place, recipe)

    def multiply(self, a: Tensor, b: Tensor, place: Place, recipe: Recipe) -> Tensor:
        """Return a product of a layer."""
        try:
            way = recipe.way(place.left, place.right)
            result = way.multiply(as_array(a), as_array(b))
        except (ValueError, TypeError, MemoryError) as error:
            raise type(error)(f"{where(place)}: {error}") from None
        return torch.from_numpy(result)


class Multiplier(NamedTuple):
    """Multiplies matrices that are made of the operands of one layer."""

    mode: ProductMode
    place: Place
    recipe: Recipe

    @property
    def takes_parts(self) -> bool:
        """Whether lines of operands can be multiplied apart."""
        return all(self.recipe.of(x).takes_parts for x in self.place[1:3])

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Return a product in float32."""
        return self.mode.multiply(a, b, self.place, self.recipe)


def where(place: Place) -> str:
    """Return words for a place in an error."""
    name = f"layer {place.layer!r}" if place.layer else "a product outside of layers"
    names = "x".join((place.left, place.right)).replace("x", " x ", 1)
    return f"{name}{' (backward)' * place.is_backward}, {names}"


def as_array(x: Tensor) -> NDArray[np.float32]:
    """Return a tensor as a float32 array; float32 tensors share their memory."""
    array: NDArray[np.float32] = x.detach().float().resolve_neg().numpy()
    return array


def leave_fast_paths(stack: ExitStack) -> None:
    """Keep PyTorch from computing layers in one operation until the stack closes."""
    attention = torch.backends.mha
    stack.callback(attention.set_fastpath_enabled, attention.get_fastpath_enabled())
    attention.set_fastpath_enabled(False)
    stack.callback(torch._C._set_mkldnn_enabled, torch._C._get_mkldnn_enabled())
    torch._C._set_mkldnn_enabled(False)


def _reason(args: Any, kwargs: Any) -> str:
    """Return why operands cannot be replaced; "" if they can."""
    for x in (*args, *kwargs.values()):
        if not isinstance(x, Tensor):
            continue
        if type(x) not in (Tensor, nn.Parameter, nn.Buffer):
            return f"{type(x).__name__} is no plain tensor"
        if x.dtype not in DTYPES:
            return f"of {str(x.dtype).removeprefix('torch.')}"
        if x.device.type != "cpu" or x.layout != torch.strided:
            return f"on {x.device}" if x.layout == torch.strided else f"{x.layout}"
    return ""
