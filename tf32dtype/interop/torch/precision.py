"""Run models with their matrix products in other precisions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from threading import Lock, get_ident
from typing import Any, Self, Unpack

from torch import nn

from ..._base.caller import warn
from ..._base.options import refuse_unknown, shows
from ..._base.scopes import Scope
from ..._base.wording import brief
from .hook.mode import ProductMode, innermost
from .hook.recipe import ROLES, Defaults, Formats, Recipe, make_recipe
from .names import checked_names, is_one_of, warn_of_names
from .plan.plan import Plan, checked_plan

#: Held while a scope adds the counts of one thread.
_COUNTS = Lock()


class matmul_precision(Scope):
    """Run PyTorch's matrix products in another precision, in a scope or function.

    Use the object in a ``with`` statement, or as a decorator of a function. Inside,
    products of this thread's tensors round their operands and have the bits of
    `tf32dtype.matmul`, or of a device's tensor core: those of linear layers,
    convolutions and attention, of `torch.matmul`, ``@`` and `torch.einsum`, and of the
    backward pass. See :doc:`/reference/torch_products` for the operations. Sums,
    softmax and all other operations are PyTorch's own.

    Parameters
    ----------
    precision : str or None
        The format of all operands: a precision of `tf32dtype.matmul_precision`, or a
        block format of `tf32dtype.blocks.formats`, with blocks along k. After FP8 it
        may have what shares a scale: "fp8_e4m3:row". With None, only the operands that
        are named below are rounded; if none is, PyTorch computes as usual, also inside
        another scope.
    only, skip : iterable of str
        Names of the layers that are rounded, and of those that are not, as in
        `named_modules`; ``*`` matches any characters. By default all are rounded.
    model : Module, optional
        The module that names of layers are relative to. None: the outermost module
        that is called.
    plan : Plan or path, optional
        The formats of each layer, as `tune` finds them. It excludes all other formats
        and options but `only`, `skip` and `model`.
    weights, activations, gradients : str, optional
        The formats of parameters and buffers, of all other operands, and of gradients
        in the backward pass. None: `precision`; for `gradients`, without it, that of
        `activations`.
    kv_cache, probabilities : str, optional
        The formats of keys and values, and of the results of the softmax, in
        `torch.nn.functional.scaled_dot_product_attention`. None: `precision`, else
        that of `activations`.
    scale : {"tensor", "row", "block", "tile"}
        The numbers that share a scale in FP8: those of a matrix; of a row of the first
        operand or a column of the second; 128 numbers along k; 128 x 128 numbers.
    rounding, special_values, device, instruction
        As in `tf32dtype.matmul_precision`.

    Attributes
    ----------
    calls : Counter
        The products that were replaced, by layer.
    unreached : Counter
        Operations that multiply matrices and were not replaced, by name and reason.

    Raises
    ------
    ValueError
        For an unknown name; for an argument that no format uses; for formats that the
        device cannot multiply. In the scope, for operands that cannot be rounded; the
        message names the layer.

    Warns
    -----
    UserWarning
        At the end of the scope, for operations that multiply matrices and were not
        replaced, and for names of `only`, `skip` and the plan that match no layer.

    See Also
    --------
    tf32dtype.matmul_precision : The same for NumPy's products.
    apply : Make a model run in a plan in all of its calls.
    convert : Make layers round their weights to a block format.

    Notes
    -----
    The precision belongs to the thread. Modules with weights that other threads run
    meanwhile, outside of scopes of their own, are counted in `unreached`. The precision
    also applies to a backward pass in the scope, whose products belong to the layer of
    the forward pass, also if that ran before the scope. In the scope, PyTorch does not
    use its fused kernels for transformer layers, nor oneDNN.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> _ = torch.nn.init.constant_(model.weight, 1.001)
    >>> with torch.no_grad(), tt.matmul_precision("bf16"):
    ...     model(torch.ones(2))
    tensor([2.])
    """

    calls: Counter[str]
    unreached: Counter[tuple[str, str]]
    recipe: Recipe
    warns: bool

    @shows(Formats, Defaults)
    def __init__(
        self,
        precision: str | None = None,
        *,
        only: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        model: nn.Module | None = None,
        plan: Plan | str | os.PathLike[str] | None = None,
        **formats: Unpack[Formats],
    ) -> None:
        refuse_unknown("matmul_precision", formats, Formats)
        if model is not None and not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module; got {brief(model)}")
        self._plan = None
        if plan is not None:
            _refuse_formats({"precision": precision, **formats})
            self._plan = checked_plan(plan)
        #: the formats of operands, if there is no plan
        self.recipe = make_recipe(precision, **formats)
        self._only = None if only is None else checked_names(only, "only")
        self._skip = checked_names(skip, "skip")
        self._model = model
        given = (plan, precision, *(formats.get(role) for role in ROLES))
        self._rounds = any(x is not None for x in given)
        #: whether the end of the scope warns of operations that were not replaced
        self.warns = True
        #: what each thread entered, by its number
        self._open: dict[int, list[tuple[ProductMode | None, ExitStack]]] = {}
        self.calls, self.unreached = Counter(), Counter()

    def _choose(self, layer: str) -> Recipe | None:
        if self._only is not None and not is_one_of(layer, self._only):
            return None
        if is_one_of(layer, self._skip):
            return None
        return self._plan.recipe(layer) if self._plan else self.recipe

    def __enter__(self) -> Self:
        mode = ProductMode(self._choose, self._model) if self._rounds else None
        with ExitStack() as stack:
            stack.enter_context(mode.watch() if mode else innermost(None))
            self._open.setdefault(get_ident(), []).append((mode, stack.pop_all()))
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        mode, stack = self._open[get_ident()].pop()
        stack.close()
        if mode is None:
            return
        with _COUNTS:
            self.calls += mode.calls
            self.unreached += mode.unreached
        if error is None and self.warns:
            warn_unreached(mode)
            self._warn_of_names(mode)

    def _warn_of_names(self, mode: ProductMode) -> None:
        """Warn of names that match no layer of the modules that ran."""
        known = mode.layers.names
        if known:
            warn_of_names(self._only or (), known, "only")
            warn_of_names(self._skip, known, "skip")
            if self._plan is not None:
                warn_of_names([x.name for x in self._plan.layers], known, "plan")

    def __repr__(self) -> str:
        return f"<matmul_precision({self._plan or self.recipe})>"


def _refuse_formats(given: Mapping[str, Any]) -> None:
    """Refuse formats and options next to a plan."""
    for name, value in given.items():
        if value != getattr(Defaults(), name, None):
            raise ValueError(
                f"{name} must not be given with a plan, which sets it; got"
                f" {brief(value)}"
            )


def warn_unreached(mode: ProductMode) -> None:
    """Warn of operations that multiply and were not replaced."""
    if not mode.unreached:
        return
    most = mode.unreached.most_common(5)
    names = ", ".join(f"{name} {why} ({count})" for (name, why), count in most)
    more = len(mode.unreached) - len(most)
    warn(
        "PyTorch itself computed these operations, which multiply or may multiply"
        f" matrices: {names}{f' and {more} more' if more else ''}"
    )
