"""Make a model run in a plan in all of its calls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import nn

from ...._base.wording import brief
from ..hook.mode import ProductMode
from ..names import warn_of_names
from ..precision import warn_unreached
from .plan import Plan, checked_plan

M = TypeVar("M", bound=nn.Module)


class Forward:
    """The forward function of a model that runs in a plan.

    It replaces ``model.forward``, since PyTorch does not call a forward hook after
    KeyboardInterrupt: the products of other code would then stay rounded. A copy or a
    pickle of the model has a function of its own.
    """

    def __init__(self, model: nn.Module, plan: Plan) -> None:
        self.model, self.plan = model, plan

    @property
    def __wrapped__(self) -> Any:
        """The forward function of the model's class, whose signature this one has."""
        return type(self.model).forward.__get__(self.model)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = self.mode()
        with mode.watch(), mode.layers.inside(self.model):
            result = self.__wrapped__(*args, **kwargs)
        self.end(mode)
        return result

    def mode(self) -> ProductMode:
        """Return the mode of a call."""
        return ProductMode(self.plan.recipe, self.model)

    def end(self, mode: ProductMode) -> None:
        """Report what a call did not reach."""
        warn_unreached(mode)


@contextmanager
def running(forward: Forward) -> Iterator[None]:
    """Replace the forward function of a model in a block."""
    own = vars(forward.model)
    before = own.get("forward")
    own["forward"] = forward
    try:
        yield
    finally:
        del own["forward"]
        if before is not None:
            own["forward"] = before


def check_model(model: object) -> None:
    """Raise TypeError for a model whose forward function cannot be replaced."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got {brief(model)}")
    own = vars(model).get("forward")
    if own is not None and not isinstance(own, Forward):
        raise TypeError(
            "model must have the forward function of its class; got another one:"
            f" {brief(own)}"
        )


def apply(plan: Plan | str | os.PathLike[str] | None, model: M) -> M:
    """Make a model run in a plan: its calls round the operands of products.

    Parameters
    ----------
    plan : Plan, path or None
        The plan, or its file. None: the model runs as usual again.
    model : Module
        The model. Its parameters do not change.

    Returns
    -------
    Module
        The same model.

    Raises
    ------
    TypeError
        For another argument, and for a model whose `forward` was replaced before.
    ValueError
        If the file is not a plan.

    Warns
    -----
    UserWarning
        For names of the plan that match no layer of the model.

    See Also
    --------
    matmul_precision : Use it for training: ``matmul_precision(plan=..., model=...)``.
    tune : Find a plan.

    Notes
    -----
    Each call of the model, in any thread, has the bits of a call within
    ``matmul_precision(plan=plan, model=model)``. Calls of parts of the model, and a
    backward pass after the call, are PyTorch's own. A copy or a pickle of the model
    keeps the plan; its `state_dict` does not have it.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False))
    >>> _ = torch.nn.init.constant_(model[0].weight, 1.001)
    >>> model = tt.apply(tt.Plan({"0": "bf16"}), model)
    >>> with torch.no_grad():
    ...     model(torch.ones(2))
    tensor([2.])
    """
    check_model(model)
    found = None if plan is None else checked_plan(plan)
    vars(model).pop("forward", None)
    if found is not None:
        known = [name for name, _ in model.named_modules(remove_duplicate=False)]
        warn_of_names([layer.name for layer in found.layers], known, "plan")
        vars(model)["forward"] = Forward(model, found)
    return model
