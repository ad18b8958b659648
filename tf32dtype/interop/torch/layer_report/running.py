"""Run a model on batches, and compare its outputs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ...._base.wording import brief
from ...._measures.error_measures import BLOCK_ELEMENTS, errors, squares
from ..plan.apply import Forward

Array = NDArray[Any]
#: The positional and the keyword arguments of a call.
Call = tuple[tuple[Any, ...], dict[str, Any]]
#: The floats of a model's outputs for a batch, tensor by tensor.
Outputs = list[Array]


def calls_of(inputs: Any, kwargs: Mapping[str, Any] | None) -> list[Call]:
    """Return the calls of a model.

    Parameters
    ----------
    inputs : tuple, or list of tuples and dicts
        The positional arguments of a call, or those of several; a dict has keywords.
    kwargs : mapping, optional
        Keywords of all calls.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        For no batches.
    """
    named = _keywords("kwargs", {} if kwargs is None else kwargs)
    batches = inputs if isinstance(inputs, list) else [inputs]
    if not batches:
        raise ValueError("inputs must have at least one batch; got an empty list")
    calls: list[Call] = []
    for batch in batches:
        if isinstance(batch, Mapping):
            calls.append(((), {**_keywords("inputs", batch), **named}))
        elif isinstance(batch, tuple):
            calls.append((tuple(batch), named))
        else:
            fix = ". Use (inputs,)" if isinstance(batch, Tensor) else ""
            raise TypeError(
                "inputs must be a tuple of the model's arguments, or a list of tuples"
                f" and dicts; got {brief(batch)}{fix}"
            )
    return calls


def _keywords(argument: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(x, str) for x in given):
        raise TypeError(
            f"{argument} must have names of the model's arguments; got {brief(given)}"
        )
    return dict(given)


class Runs:
    """Run a model again and again in one state.

    Each run has copies of the batches, and the random numbers of one seed. Buffers that
    a run changes, such as running means, are restored.

    Parameters
    ----------
    model : Module
        The model.
    calls : sequence of Call
        The batches.
    seed : int
        The seed of `torch.manual_seed` before each run.
    """

    def __init__(self, model: nn.Module, calls: Sequence[Call], seed: int) -> None:
        self.model: nn.Module = model
        self._calls, self._seed = calls, seed

    def outputs(self) -> list[Outputs]:
        """Run the model, and return its outputs for each batch.

        Raises
        ------
        ValueError
            If an output has no floats.
        """
        found = []
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=[]),
            _buffers_restored(self.model),
        ):
            torch.manual_seed(self._seed)
            for call in self._calls:
                args, kwargs = copied(call)
                found.append(_floats(self.model(*args, **kwargs)))
        return found


def copied(call: Any) -> Any:
    """Return a copy of the arguments of a call; tensors have no history."""
    return pytree.tree_map(
        lambda x: x.detach().clone() if isinstance(x, Tensor) else copy.deepcopy(x),
        call,
    )


@contextmanager
def unplanned(model: nn.Module) -> Iterator[None]:
    """Let a model and its parts run without the plans of `apply`."""
    plans = []
    for module in model.modules():
        forward = vars(module).get("forward")
        if isinstance(forward, Forward):
            plans.append((module, forward))
            del vars(module)["forward"]
    try:
        yield
    finally:
        for module, forward in plans:
            vars(module)["forward"] = forward


@contextmanager
def _buffers_restored(model: nn.Module) -> Iterator[None]:
    before = [(x, x.clone()) for x in model.buffers()]
    try:
        yield
    finally:
        for buffer, old in before:
            if not torch.equal(buffer, old):
                buffer.copy_(old)


def _floats(output: Any) -> Outputs:
    """Return the floats of an output; complex ones as pairs."""
    leaves = pytree.tree_leaves(output)
    found = []
    for x in leaves:
        if not isinstance(x, Tensor):
            continue
        if x.is_complex():
            x = torch.view_as_real(x)
        if x.is_floating_point():
            wide = x.detach().cpu() if x.dtype == torch.float64 else x.cpu().float()
            found.append(wide.numpy().copy())
    if not found:
        kinds = sorted({type(x).__name__ for x in leaves}) or ["nothing"]
        raise ValueError(
            "the model's output must have tensors of floats, in tuples, lists or"
            f" dicts; got {brief(output)}, which has {', '.join(kinds)}"
        )
    return found


def check(outputs: Sequence[Outputs]) -> None:
    """Raise a ValueError if outputs without rounding have NaN, or only Inf."""
    for i, batch in enumerate(outputs):
        for j, x in enumerate(batch):
            which = f"tensor {j} of the output for batch {i}"
            if count := int(np.isnan(x).sum()):
                raise ValueError(
                    f"the model's output must be numbers without rounding; got {count}"
                    f" NaN among {x.size} values of {which}"
                )
        if any(x.size for x in batch) and not any(np.isfinite(x).any() for x in batch):
            raise ValueError(
                "the model's output must be finite without rounding; got only Inf for"
                f" batch {i}"
            )


def change(outputs: Sequence[Outputs], usual: Sequence[Outputs]) -> tuple[float, float]:
    """Return the sums of squares of the outputs' changes, and of the usual outputs.

    Only values count that are usually finite. The first sum is Inf if one of them is
    not finite any more, or an output has another shape.
    """
    error = truth = 0.0
    for batch, usual_batch in zip(outputs, usual, strict=True):
        if [x.shape for x in batch] != [x.shape for x in usual_batch]:
            return float("inf"), 1.0
        for x, y in zip(batch, usual_batch, strict=True):
            for start in range(0, x.size, BLOCK_ELEMENTS):
                piece = slice(start, start + BLOCK_ELEMENTS)
                a, b = (one.reshape(-1)[piece].astype(np.float64) for one in (x, y))
                finite = np.isfinite(b)
                with np.errstate(all="ignore"):
                    error += squares(errors(a[finite], b[finite]))
                truth += squares(b[finite])
    return error, truth
