"""Trials of plans: the metric of a model that runs in a plan, each taken once."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from ...._base.errors import UserError
from ...._base.version import __version__
from ...._base.wording import brief
from ...._files.layer_plans import PlannedLayer, layer_plan_text
from ...._programs.tune.journal import Trials
from ..hook.mode import ProductMode
from ..hook.recipe import Recipe
from ..layer_report.running import copied
from .apply import Forward, running
from .items import Item, Recording
from .plan import Plan

Metric = Callable[[Any, Any], Any]
Better = Literal["lower", "higher"]
Levels = tuple[int, ...]


class OutOfTime(Exception):
    """The time limit has passed."""


class Level:
    """Formats that items may have, and what they cost."""

    def __init__(self, planned: PlannedLayer, recipe: Recipe) -> None:
        self.planned = planned
        self.weight_bits = recipe.weights.bits
        #: bits of both operands of a multiply-add
        self.bits = recipe.weights.bits + recipe.activations.bits


class _Silent(Forward):
    """A forward function in a plan whose first run has given the warnings."""

    def end(self, mode: ProductMode) -> None:
        pass


class Runner:
    """Runs a metric of a model in plans, and remembers the results.

    Parameters
    ----------
    model, batches, metric
        As for `tune`.
    better : {"lower", "higher"} or None
        The direction of changes that do not count.
    base : Plan
        The device and instruction.
    levels : sequence of Level
        The formats, the cheapest first.
    journal : Trials or None
        Results of earlier runs.
    until : float
        The time at which trials end.

    Attributes
    ----------
    advance : callable
        Called after each trial.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Any,
        metric: Metric,
        better: Better | None,
        base: Plan,
        levels: Sequence[Level],
        journal: Trials | None,
        until: float,
    ) -> None:
        self.model, self.better = model, better
        self.levels = [*levels]
        self.items: list[Item] = []
        self.truth = math.nan
        #: reasons for which plans could not run
        self.failures: dict[Levels, str] = {}
        self._batches, self._metric, self._device = batches, metric, base
        self._journal, self._until = journal, until
        self.advance: Callable[[], None] = lambda: None
        self._records: dict[str, dict[str, Any]] = {}
        self._call: Any = None
        self._output: Tensor | None = None
        formats = [level.planned.formats for level in self.levels]
        self._base = _hash(
            _digest(model),
            formats,
            [base.device, base.instruction],
            [torch.__version__, __version__],
        )

    # -- the model as it is ----------------------------------------------------------

    def record(self) -> Recording:
        """Run the unrounded model for its layers, and twice for the metric.

        Raises
        ------
        ValueError
            If the metric is not a finite number, or not the same in two runs.
        """
        recording = Recording(self.model)
        with running(recording):
            self._metric(self.model, self._batches)
        self.advance()
        self._call = recording.call
        self.truth = self._unrounded()
        if not math.isfinite(self.truth):
            raise ValueError(
                f"metric must be finite for the unrounded model; got {self.truth}"
            )
        before = self._find("reference")
        other = before["metric"] if before else self._unrounded()
        if other != self.truth:
            if before:
                raise UserError(
                    "the unrounded model must have the same metric as before; got"
                    f" {self.truth!r}, before {other!r}. Start again without resume"
                )
            raise ValueError(
                "metric must be deterministic; got two values for the unrounded model:"
                f" {self.truth!r} and {other!r}. Use model.eval(), and let metric seed"
                " its random numbers"
            )
        if not before:
            self._keep("reference", {"metric": self.truth})
        return recording

    def _unrounded(self) -> float:
        found = self._measure(Plan())
        self.advance()
        return found

    def _measure(self, plan: Plan) -> float:
        with running(_Silent(self.model, plan)):
            value = self._metric(self.model, self._batches)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"metric must return a number; got {brief(value)}"
            ) from None

    # -- trials ----------------------------------------------------------------------

    def plan(self, levels: Levels, **facts: Any) -> Plan:
        """Return the plan that has an item's formats at its level."""
        formats = {
            layer.name: self.levels[level].planned if level < len(self.levels) else None
            for item, level in zip(self.items, levels, strict=True)
            for layer in item.layers
        }
        whole = self._device
        return Plan(
            formats, device=whole.device, instruction=whole.instruction, **facts
        )

    def metric(self, levels: Levels) -> float:
        """Return the metric of a plan; NaN if the plan cannot run."""
        if all(level == len(self.levels) for level in levels):
            return self.truth
        record = self._trial("", self.plan(levels), self._measure)
        if record["why"]:
            self.failures[levels] = record["why"]
        return _number(record, math.nan)

    def known(self, levels: Levels) -> float | None:
        """Return the metric of a plan that was tried; else None."""
        if all(level == len(self.levels) for level in levels):
            return self.truth
        record = self._find(layer_plan_text(self.plan(levels)))
        return None if record is None else _number(record, math.nan)

    def loss(self, metric: float) -> float:
        """Return how much a metric is worse than that of the unrounded model."""
        change = metric - self.truth
        if self.better is None:
            change = abs(change)
        elif self.better == "higher":
            change = -change
        return math.inf if math.isnan(change) else change

    def sensitivity(self, item: int, level: int) -> float:
        """Return the error of the model's output if one item is rounded.

        It is the square of the relative error of the first tensor of the first call's
        output, or the loss of the metric if there is no such tensor.
        """
        levels = [len(self.levels)] * len(self.items)
        levels[item] = level
        if self._first() is None:
            return self.loss(self.metric(tuple(levels)))
        record = self._trial("sensitivity ", self.plan(tuple(levels)), self._error)
        return _number(record, math.inf)

    def _first(self) -> Tensor | None:
        """Return the unrounded output of the first call; None: it has no numbers."""
        if self._output is None and self._call is not None:
            self._output = self._output_in(Plan())
            if self._output is None:
                self._call = None
        return self._output

    def _output_in(self, plan: Plan) -> Tensor | None:
        """Return the first floating-point tensor of the first call's output."""
        args, kwargs = copied(self._call)
        with torch.no_grad(), running(_Silent(self.model, plan)):
            found = self.model(*args, **kwargs)
        leaves = tree_leaves({**found} if isinstance(found, Mapping) else found)
        numbers = (x for x in leaves if isinstance(x, Tensor) and x.is_floating_point())
        return next((x.double() for x in numbers), None)

    def _error(self, plan: Plan) -> float:
        found, wanted = self._output_in(plan), self._first()
        assert found is not None
        assert wanted is not None
        power = wanted.square().sum()
        return float((found - wanted).square().sum() / power) if power else 0.0

    def _trial(
        self, kind: str, plan: Plan, take: Callable[[Plan], float]
    ) -> dict[str, Any]:
        """Return the record of a trial; formats that cannot round a value fail."""
        key = kind + layer_plan_text(plan)
        if record := self._find(key):
            return record
        if time.monotonic() > self._until:
            raise OutOfTime
        record = {"metric": None, "why": ""}
        try:
            number = take(plan)
            record["metric"] = number if math.isfinite(number) else None
        except (ValueError, MemoryError) as error:
            record["why"] = str(error)
        self.advance()
        self._keep(key, record)
        return record

    # -- the journal -----------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many trials the search has used, those of the journal included."""
        return len(self._records)

    def _find(self, key: str) -> dict[str, Any] | None:
        key = _hash(self._base, key)
        record = self._records.get(key) or (self._journal and self._journal.find(key))
        if record:
            self._records[key] = record
        return record or None

    def _keep(self, key: str, record: dict[str, Any]) -> None:
        key = _hash(self._base, key)
        self._records[key] = record
        if self._journal is not None:
            self._journal.write(key, record)


def _number(record: Mapping[str, Any], otherwise: float) -> float:
    """Return the number of a trial, or another one if it was not finite."""
    return otherwise if record["metric"] is None else float(record["metric"])


def _hash(*things: Any) -> str:
    return hashlib.sha256(json.dumps(things).encode()).hexdigest()


def _digest(model: nn.Module) -> str:
    """Return a digest of a model's structure, parameters and buffers."""
    digest = hashlib.sha256(repr(model).encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} ".encode())
        if isinstance(tensor, Tensor):
            digest.update(f"{tensor.dtype} {tuple(tensor.shape)} ".encode())
            data = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
            digest.update(data.numpy())
        else:
            digest.update(repr(tensor).encode())
    return digest.hexdigest()
