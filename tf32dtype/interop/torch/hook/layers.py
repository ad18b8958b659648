"""Which layer of a model computes a product, and what its operands are."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from . import graph
from .owners import Layer, Owners
from .recipe import Role

#: Products of forward passes that are remembered for the backward pass.
_MOST = 1 << 16
#: The name that `torch.compile` gives the module in its own.
_COMPILED = "_orig_mod"
#: Numbers that `torch.func` and its parts may take for one product.
_LEVELS = 8
#: The name of products outside of all modules.
OUTSIDE = ""


class Place(NamedTuple):
    """A layer by its name in `named_modules`, and the roles of two operands."""

    layer: str
    left: Role
    right: Role
    is_backward: bool = False


_OUTSIDE = Layer(OUTSIDE)


class _Running(NamedTuple):
    """A module that runs."""

    layer: Layer
    is_linear: bool
    #: the backward pass that it runs in; -1: none
    task: int
    #: the call; None: it ends by itself
    frame: FrameType | None


class _Forward(NamedTuple):
    """A product of the forward pass, and what its tensors are by their addresses."""

    layer: Layer
    #: whether autograd made a node of the product
    has_node: bool
    #: the outermost module that computes it or a product of the same node, its depth
    caller: tuple[int, Layer]
    roles: dict[int, tuple[Role, StorageWeakRef]]

    def learn(self, x: Tensor, role: Role) -> None:
        """Remember the role of a tensor."""
        self.roles[x.data_ptr()] = role, StorageWeakRef(x.untyped_storage())

    def role(self, x: Tensor) -> Role | None:
        """Return the role of a tensor, if it is still in memory."""
        role, storage = self.roles.get(x.data_ptr(), (None, None))
        return None if storage is None or storage.expired() else role

    def knows(self, tensors: Iterable[Tensor]) -> bool:
        """Return whether one of the tensors was an operand."""
        return any(self.role(x) is not None for x in tensors)


class _Thread(threading.local):
    """Keeps what all scopes of a thread share."""

    def __init__(self) -> None:
        #: products by autograd's sequence numbers, which each thread counts itself
        self.forwards: OrderedDict[int, _Forward] = OrderedDict()
        #: the depth and the module that called `checkpoint`
        self.frames: weakref.WeakKeyDictionary[Any, tuple[int, Layer]] = (
            weakref.WeakKeyDictionary()
        )
        #: the backward pass in which a function of `checkpoint` runs again
        self.tasks: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        #: open scopes
        self.scopes: list[Layers] = []


_thread = _Thread()


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
    tell : callable, optional
        It is given the name of a module with weights that another thread runs.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        tell: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._model = model
        self._tell = tell
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = (
            weakref.WeakKeyDictionary()
        )
        self._owners = Owners()
        self._running: list[_Running] = []
        self._thread_number = 0
        if model is not None:
            self._learn(model)

    def watch(self, stack: ExitStack) -> None:
        """Follow the modules that this thread runs, until the stack closes."""
        self._thread_number = get_ident()
        _thread.scopes.append(self)
        stack.callback(_thread.scopes.remove, self)
        for handle in (
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ):
            stack.callback(handle.remove)

    @contextmanager
    def inside(self, module: nn.Module) -> Iterator[None]:
        """Let a module run that was called before the scope began."""
        self._push(module, None)
        try:
            yield
        finally:
            self._running.clear()

    def _enter(self, module: nn.Module, *_: Any) -> None:
        if get_ident() != self._thread_number:
            self._enter_elsewhere(module)
            return
        self._drop_interrupted()
        self._push(module, sys._getframe(1))

    def _push(self, module: nn.Module, frame: FrameType | None) -> None:
        if not self._running or module not in self._names:
            self._learn(module)
        task = torch._C._current_graph_task_id()
        is_linear = isinstance(module, nn.Linear)
        layer = Layer(self._names[module], weakref.ref(module))
        self._running.append(_Running(layer, is_linear, task, frame))

    def _leave(self, module: nn.Module, *_: Any) -> None:
        if get_ident() == self._thread_number and self._running:
            self._running.pop()

    def _enter_elsewhere(self, module: nn.Module) -> None:
        """Tell of a module with weights in another thread."""
        name = self._names.get(module)
        is_table = isinstance(module, (nn.Embedding, nn.EmbeddingBag))
        if (
            (name is not None or self._model is None)
            and not is_table
            and "forward" not in vars(module)  # such a module may open a scope itself
            and any(x is not None and x.ndim > 1 for x in module._parameters.values())
        ):
            self._tell(name or type(module).__name__)

    def _drop_interrupted(self) -> None:
        """Forget modules that do not run: KeyboardInterrupt calls no hooks."""
        while self._running and (wanted := self._running[-1].frame) is not None:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame is not wanted:
                frame = frame.f_back
            if frame is not None:
                return
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
            layer = Layer(self._names[part], weakref.ref(part))
            for tensors, least in ((part._parameters, 1), (part._buffers, 2)):
                for tensor in tensors.values():
                    if tensor is not None and tensor.ndim >= least:
                        self._owners.own(tensor, layer)

    def _prefix(self, module: nn.Module) -> str:
        """Return the name of a module that no known module contains."""
        kind = type(module).__name__
        if self._running:
            return ".".join(filter(None, (self.running, kind)))
        return kind if self._names else OUTSIDE

    def cast(self, x: Tensor, result: Tensor) -> None:
        """Remember a tensor that may have the numbers of a parameter."""
        self._owners.cast(x, result)

    @property
    def names(self) -> list[str]:
        """The names of the modules that ran, and of their parts."""
        return [*self._names.values()]

    @property
    def running(self) -> str:
        """The innermost module that runs."""
        return self._innermost.name

    @property
    def _innermost(self) -> Layer:
        return self._running[-1].layer if self._running else _OUTSIDE

    def _renamed(self, layer: Layer) -> Layer:
        """Return a layer of any scope with its name in this scope."""
        module = layer.module and layer.module()
        name = layer.name if module is None else self._names.get(module, layer.name)
        return layer._replace(name=name)

    def owner(self, tensors: Sequence[Tensor]) -> str:
        """Return the layer that owns one of some tensors, else the one that runs."""
        owners = (self._owners.layer(x, self.running) for x in reversed(tensors))
        return next((x.name for x in owners if x is not None), self.running)

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
        self._drop_interrupted()
        node = self._backward_node()
        if node is not None:
            return self._backward(node, (left, right), roles)
        here = self._here()
        owners = [self._owners.layer(x, here.name) for x in (left, right)]
        layer = next((x for x in reversed(owners) if x is not None), here)
        found: list[Role] = [
            role or ("activations" if owner is None else "weights")
            for role, owner in zip(roles, owners, strict=True)
        ]
        if self._running and self._running[-1].is_linear and "weights" not in found:
            found[1] = "weights"  # it is computed for each call, as by weight_norm
        self._remember(layer, (left, right), found)
        return Place(layer.name, found[0], found[1])

    def _here(self) -> Layer:
        """Return the innermost module of a forward pass.

        A function that `checkpoint` runs again has the module that called it before.
        """
        here = self._innermost
        frame, again = graph.checkpoint_frame()
        if frame is not None:
            depth, layer = _thread.frames.get(frame, (len(self._running), here))
            if again is None and len(self._running) <= depth:
                _thread.frames[frame] = len(self._running), here
            if again is not None and not self._running:
                return self._renamed(layer)
        elif not self._running and torch._C._current_graph_task_id() != -1:
            number = torch._C._current_autograd_node()._sequence_nr()
            if forward := _thread.forwards.get(number):
                return self._renamed(forward.caller[1])
        return here

    def _remember(
        self, layer: Layer, operands: tuple[Tensor, Tensor], roles: list[Role]
    ) -> None:
        """Remember a product by the number of the newest node, which may be its own.

        Without gradients it is of an older operation, or of a function with its own
        backward pass, or of `torch.func`.
        """
        if torch.is_inference_mode_enabled():
            return
        if layer.module is None:  # a scope around this one may know the module
            running = (x._running[-1] for x in reversed(_thread.scopes) if x._running)
            layer = next(
                (layer._replace(module=x.layer.module) for x in running), layer
            )
        has_node = torch.is_grad_enabled() and any(x.requires_grad for x in operands)
        number = torch._C._autograd._get_sequence_nr() - 1
        forwards = _thread.forwards
        caller = len(self._running), self._innermost
        forward = forwards.get(number) or _Forward(layer, has_node, caller, {})
        if caller[0] < forward.caller[0]:
            forward = forward._replace(caller=caller)
        forwards[number] = forward
        if forward.has_node == has_node:
            for x, role in zip(operands, roles, strict=True):
                forward.learn(x, role)
        if len(forwards) > _MOST:
            forwards.popitem(last=False)

    def _backward_node(self) -> Any | None:
        """Return the node of autograd whose derivative is computed; else None.

        A module that runs in a backward pass computes its forward pass again, and so
        does a function of `checkpoint`.
        """
        task = torch._C._current_graph_task_id()
        if task == -1 or (self._running and self._running[-1].task == task):
            return None
        node = torch._C._current_autograd_node()
        if torch.is_grad_enabled():
            _, again = graph.checkpoint_frame()
            if graph.is_checkpoint(node):
                return None
            if again and _thread.tasks.setdefault(again, task) == task:
                return None
        return node

    def _forward(self, node: Any, operands: tuple[Tensor, Tensor]) -> _Forward | None:
        """Return the product of the forward pass that a node is of."""
        forwards, number = _thread.forwards, node._sequence_nr()
        forward = forwards.get(number)
        if forward and (forward.has_node or graph.is_own_function(node)):
            return forward
        if torch.is_grad_enabled():
            # In `torch.func`, each level and each view may have taken a number.
            tensors = graph.saved(node) or [*operands]
            for i in range(number, number + _LEVELS):
                if (forward := forwards.get(i)) and forward.knows(tensors):
                    return forward
        return None

    def _backward(
        self,
        node: Any,
        operands: tuple[Tensor, Tensor],
        given: tuple[Role | None, Role | None],
    ) -> Place:
        forward = self._forward(node, operands)
        layer = self._renamed(forward.layer) if forward else Layer(self.running)
        roles = [forward.role(x) if forward else None for x in operands]
        is_known = any(roles)
        owner: Layer | None = None
        for i, x in enumerate(operands):
            if roles[i] in (None, "activations"):
                found = self._owners.layer(x, layer.name)
                roles[i], owner = ("weights", found) if found else (roles[i], owner)
        saved = [] if is_known and not torch.is_grad_enabled() else graph.saved(node)
        if owner is None and not is_known:
            leaves = (*reversed(saved), *graph.leaves(node))
            owners = (self._owners.layer(x, layer.name) for x in leaves)
            owner = next((x for x in owners if x is not None), None)
        layer = owner or layer
        left, right = self._backward_roles(operands, given, roles, saved)
        if forward is not None:
            for x, role in zip(operands, (left, right), strict=True):
                if role == "gradients":
                    forward.learn(x, role)
        if torch.is_grad_enabled():  # this product may be differentiated, too
            self._remember(layer, operands, [left, right])
        return Place(layer.name, left, right, True)

    @staticmethod
    def _backward_roles(
        operands: tuple[Tensor, Tensor],
        given: tuple[Role | None, Role | None],
        known: list[Role | None],
        saved: list[Tensor],
    ) -> tuple[Role, Role]:
        """Return the roles of operands, given the known ones.

        Gradients are not saved, and have no gradients in a plain backward pass.
        """
        is_plain = not torch.is_grad_enabled()
        memory = {graph.address(x) for x in saved}
        roles: list[Role | None] = []
        for role, other, x in zip(given, known, operands, strict=True):
            role = role or other
            is_saved = graph.address(x) in memory
            if role is None and (is_saved or (is_plain and x.requires_grad)):
                role = "activations"
            roles.append(role)
        left, right = roles
        if left is None:
            left = "gradients" if right != "gradients" else "activations"
        if right is None:
            right = "gradients" if left != "gradients" else "activations"
        return left, right
