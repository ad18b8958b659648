"""Which layer of a model computes a product, and what its operands are."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from contextlib import ExitStack
from threading import get_ident
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from .recipe import Role

#: Products of forward passes that are remembered for the backward pass.
_MOST = 1 << 17
#: The name that `torch.compile` gives the module in its own.
_COMPILED = "_orig_mod"
#: The name of products outside of all modules.
OUTSIDE = ""


class Place(NamedTuple):
    """A layer by its name in `named_modules`, and the roles of two operands."""

    layer: str
    left: Role
    right: Role
    is_backward: bool = False


class _Owner(NamedTuple):
    """The layers that a parameter or buffer belongs to."""

    tensor: weakref.ref[Tensor]
    layers: list[str]


class _Running(NamedTuple):
    """A module that runs."""

    layer: str
    is_linear: bool
    #: the backward pass that it runs in; -1: none
    task: int


class _Forward(NamedTuple):
    """A product of the forward pass, and what its tensors are by their addresses."""

    layer: str
    roles: dict[int, tuple[Role, StorageWeakRef]]

    def learn(self, x: Tensor, role: Role) -> None:
        """Remember the role of a tensor."""
        self.roles[x.data_ptr()] = role, StorageWeakRef(x.untyped_storage())

    def role(self, x: Tensor) -> Role | None:
        """Return the role of a tensor, if it is still in memory."""
        role, storage = self.roles.get(x.data_ptr(), (None, None))
        return None if storage is None or storage.expired() else role


class Layers:
    """The modules that run in a thread, and the parameters that they have.

    A product belongs to the layer that owns its weight; without a weight, to the
    innermost module that runs. Names are those of `named_modules` of the outermost
    module that runs, or of `model`. A product of the backward pass belongs to the layer
    of the operation that it differentiates, which autograd's sequence numbers tell.

    Parameters
    ----------
    model : Module, optional
        The module that names are relative to.
    """

    def __init__(self, model: nn.Module | None = None) -> None:
        self._model = model
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = (
            weakref.WeakKeyDictionary()
        )
        self._owners: dict[int, _Owner] = {}
        self._running: list[_Running] = []
        self._forwards: OrderedDict[int, _Forward] = OrderedDict()
        self._thread = 0
        if model is not None:
            self._learn(model)

    def watch(self, stack: ExitStack) -> None:
        """Follow the modules that this thread runs, until the stack closes."""
        self._thread = get_ident()
        for register, hook in (
            (register_module_forward_pre_hook, self._enter),
            (register_module_forward_hook, self._leave),
        ):
            also: dict[str, Any] = {"always_call": True} if hook == self._leave else {}
            stack.callback(register(hook, **also).remove)

    def _enter(self, module: nn.Module, *_: Any) -> None:
        if get_ident() != self._thread:
            return
        if not self._running or module not in self._names:
            self._learn(module)
        task = torch._C._current_graph_task_id()
        is_linear = isinstance(module, nn.Linear)
        self._running.append(_Running(self._names[module], is_linear, task))

    def _leave(self, module: nn.Module, *_: Any) -> None:
        if get_ident() == self._thread and self._running:
            self._running.pop()

    def _learn(self, module: nn.Module) -> None:
        """Learn the names of a module's parts, and where its parameters are."""
        prefix = self._names.get(module)
        if prefix is None:
            prefix = self._prefix(module)
        for name, part in module.named_modules(remove_duplicate=True):
            parts = (prefix, *name.split("."))
            whole = ".".join(x for x in parts if x and x != _COMPILED)
            self._names.setdefault(part, whole)
            for tensors in (part._parameters, part._buffers):
                for tensor in tensors.values():
                    if tensor is not None and tensor.ndim > 1:
                        self._own(tensor, self._names[part])

    def _prefix(self, module: nn.Module) -> str:
        """Return the name of a module that no known module contains."""
        kind = type(module).__name__
        if self._running:
            return ".".join(filter(None, (self.running, kind)))
        return kind if self._names else OUTSIDE

    def _own(self, tensor: Tensor, layer: str) -> None:
        if isinstance(tensor, FakeTensor):
            return
        try:
            address = tensor.untyped_storage().data_ptr()
        except RuntimeError:  # it has no storage: it is not initialized
            return
        if address == 0:  # it has no numbers
            return
        found = self._owners.get(address)
        if found is None or found.tensor() is not tensor:
            self._owners[address] = _Owner(weakref.ref(tensor), [layer])
        elif layer not in found.layers:
            found.layers.append(layer)

    def owner(self, x: Tensor) -> str | None:
        """Return the layer that a weight belongs to; None: it is not a weight."""
        address = x.untyped_storage().data_ptr()
        found = self._owners.get(address)
        if found is None:
            return None
        tensor = found.tensor()
        if tensor is None or tensor.untyped_storage().data_ptr() != address:
            del self._owners[address]  # other numbers are there now
            return None
        return self.running if self.running in found.layers else found.layers[0]

    @property
    def names(self) -> list[str]:
        """The names of the modules that ran, and of their parts."""
        return [*self._names.values()]

    @property
    def running(self) -> str:
        """The innermost module that runs."""
        return self._running[-1].layer if self._running else OUTSIDE

    def place(
        self, left: Tensor, right: Tensor, roles: tuple[Role | None, Role | None]
    ) -> Place:
        """Return the layer of a product and the roles of its operands.

        Parameters
        ----------
        left, right : Tensor
            The operands, or views of them.
        roles : pair
            The roles that the operation knows; None: to be found.
        """
        node = self.backward_node()
        if node is not None:
            return self._backward(node, (left, right), roles)
        owners = [self.owner(x) for x in (left, right)]
        layer = next((x for x in reversed(owners) if x is not None), self.running)
        found: list[Role] = [
            role or ("activations" if owner is None else "weights")
            for role, owner in zip(roles, owners, strict=True)
        ]
        if self._running and self._running[-1].is_linear and "weights" not in found:
            found[1] = "weights"  # it is computed for each call, as by weight_norm
        # Operands that need no gradient may be those of `torch.func.grad`, or of a
        # function with its own backward pass.
        if not torch.is_inference_mode_enabled():
            self._remember(layer, (left, right), found)
        return Place(layer, found[0], found[1])

    def _remember(
        self, layer: str, operands: tuple[Tensor, Tensor], roles: list[Role]
    ) -> None:
        number = torch._C._autograd._get_sequence_nr() - 1
        forward = self._forwards.setdefault(number, _Forward(layer, {}))
        for x, role in zip(operands, roles, strict=True):
            forward.learn(x, role)
        if len(self._forwards) > _MOST:
            self._forwards.popitem(last=False)

    def backward_node(self) -> Any | None:
        """Return the node of autograd whose derivative is computed; else None.

        A module that runs in a backward pass computes its forward pass again.
        """
        task = torch._C._current_graph_task_id()
        if task == -1 or (self._running and self._running[-1].task == task):
            return None
        return torch._C._current_autograd_node()

    def _backward(
        self,
        node: Any,
        operands: tuple[Tensor, Tensor],
        roles: tuple[Role | None, Role | None],
    ) -> Place:
        number = node._sequence_nr()
        # In `torch.func.grad`, the number of the node is one less.
        forward = self._forwards.get(number) or self._forwards.get(number + 1)
        layer = forward.layer if forward else self.running
        found: list[Role | None] = []
        for role, x in zip(roles, operands, strict=True):
            if role is None and forward is not None:
                role = forward.role(x)
            if role is None and (owner := self.owner(x)) is not None:
                role = "weights"
                layer = layer if forward else owner
            found.append(role)
        left, right = found
        if left is None:
            left = "gradients" if right != "gradients" else "activations"
        if right is None:
            right = "gradients" if left != "gradients" else "activations"
        if forward is not None:
            for x, role in zip(operands, (left, right), strict=True):
                if role == "gradients":
                    forward.learn(x, role)
        return Place(layer, left, right, True)
