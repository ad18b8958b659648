"""Search the cheapest format of each layer that keeps a metric."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from torch import nn

from ...._base.arguments import checked_number, checked_path, checked_strings
from ...._base.caller import warn
from ...._base.text import counted, progress
from ...._base.wording import brief, one_of
from ...._programs.tune.journal import Trials
from ...._programs.tune.search import Search
from ..hook.recipe import formats_on
from ..names import warn_of_names
from .apply import check_model
from .budget import Budget, weight_bits
from .items import Groups, find_items
from .plan import GivenFormats, Plan
from .trials import Better, Level, Levels, Metric, OutOfTime, Runner

#: The precisions that are tried by default, of those that the device has.
PRECISIONS = ("nvfp4", "fp8_e4m3:row", "mxfp8", "bf16")


def tune(
    model: nn.Module,
    batches: Any,
    *,
    metric: Metric,
    tolerance: float | None = None,
    precisions: Sequence[GivenFormats] | None = None,
    budget_bits: float | None = None,
    absolute: bool = False,
    better: Better | None = None,
    device: str | None = None,
    instruction: str | None = None,
    groups: Groups = (),
    skip: Sequence[str] = (),
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    time_limit: float | None = None,
    quiet: bool = False,
) -> Plan:
    """Search the cheapest format of each layer that keeps a metric.

    The layers are those that multiply matrices when `metric` runs. Attention without
    weights is a layer of its own, the module that computes it.

    Parameters
    ----------
    model : Module
        The model, in evaluation mode. Afterwards it is as it was.
    batches : object
        The data, which `metric` gets.
    metric : callable
        ``metric(model, batches)`` calls the model and returns a number, such as a loss.
        It must return the same number again for the same model.
    tolerance : float, optional
        The largest change of the metric that is allowed, as a share of the metric of
        the unrounded model. It must be given without `budget_bits`.
    precisions : sequence, optional
        The formats to try: precisions of `matmul_precision`, or dictionaries of formats
        as in `Plan`. The cost of a format is the sum of bits of both operands of a
        multiply-add. None: "nvfp4", "fp8_e4m3:row", "mxfp8" and "bf16", as far as the
        device can multiply them.
    budget_bits : float, optional
        The largest mean of bits per weight, over all weights of the layers that are
        tuned. The plan then has the best metric that was found within this budget.
    absolute : bool
        Whether `tolerance` is the change itself, not a share.
    better : {"lower", "higher"}, optional
        Which metrics are better. Changes for the better are then allowed. None: all
        changes count.
    device, instruction : str, optional
        As in `matmul_precision`.
    groups : iterable, optional
        Layers that must have the same format: lists of names, or patterns with ``*``.
        Inference engines compute query, key and value layers in one product, so
        these need the same format.
    skip : iterable of str
        Names of layers, or patterns, that stay unrounded.
    journal : path, optional
        The file that keeps the results of trials. None: none.
    resume : bool
        Whether to use the results in the journal of an interrupted search.
    time_limit : float, optional
        Seconds after which no further trial begins.
    quiet : bool
        Whether to show no progress bar. It appears on terminals if rich is installed.

    Returns
    -------
    Plan
        The plan, with facts of the search in `Plan.found`. After Ctrl-C, or at the time
        limit, it is the best plan so far, and `Plan.final` is False.

    Raises
    ------
    ValueError
        If the metric is not finite, is 0 without `absolute`, or differs in two runs of
        the unrounded model; for unknown formats or layers; for a budget that no plan
        keeps; if there is no journal to resume, or it is of another metric.
    TypeError
        For arguments of other types, and without `tolerance` and `budget_bits`.
    KeyboardInterrupt
        Before the metric of the unrounded model is known.

    Warns
    -----
    UserWarning
        If the plan is not final; if it exceeds the tolerance because of the budget; if
        formats could not round the operands of a layer; for names of `skip` that match
        no layer.

    See Also
    --------
    apply : Make a model run in the plan.
    Plan.save : Write the plan to a file.

    Notes
    -----
    First, one layer at a time is rounded to each format, in a call of the model with
    the arguments of the first call of `metric`. The relative error of the first tensor
    of the output orders the layers. If the call returns no floating-point tensor, the
    metric orders them.

    Without a budget, the search starts from the unrounded model. For each format, the
    cheapest first, it lowers as many layers as pass together, by halving the list. At
    the end, no single layer can be lowered to its next format.

    With a budget, it lowers the layer that adds the smallest error per saved bit, until
    the budget is kept. Then it exchanges bits between two layers as long as the metric
    becomes better. Layers without weights stay unrounded.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    >>> def metric(model, batches):
    ...     with torch.no_grad():
    ...         return sum(model(x).square().mean() for x in batches)
    >>> batches = [torch.randn(16, 64)]
    >>> plan = tt.tune(model, batches, metric=metric, tolerance=0.001, quiet=True)
    >>> plan.final, [layer.name for layer in plan.layers]
    (True, ['0', '1'])
    """
    check_model(model)
    limits = _checked_limits(tolerance, budget_bits, time_limit, better)
    skipped = checked_strings(skip, "skip")
    base = Plan(device=device, instruction=instruction)
    levels = _levels(precisions, base)
    if resume and journal is None:
        raise ValueError("resume must be given with a journal; got journal=None")
    trials = None
    if journal is not None:
        path = checked_path(journal, "journal")
        trials = Trials(path, resume, warn, "resume")
    until = float("inf") if time_limit is None else time.monotonic() + time_limit
    try:
        runner = Runner(model, batches, metric, better, base, levels, trials, until)
        with progress(not quiet, "Running the model", 3, sys.stderr) as runner.advance:
            recording = runner.record()
        runner.items = find_items(recording.layers.values(), groups, skipped)
        known = [*recording.layers, *(name for name, _ in model.named_modules())]
        warn_of_names(skipped, known, "skip")
        # The search is short where formats pass for all layers, or for none.
        guess = len(levels) * (len(runner.items) + 4) + 2 * len(runner.items)
        with progress(not quiet, "Tuning", guess, sys.stderr) as runner.advance:
            return _searched(runner, *limits, absolute)
    finally:
        if trials is not None:
            trials.close()


def _checked_limits(
    tolerance: object, budget_bits: object, time_limit: object, better: object
) -> tuple[float | None, float | None]:
    if tolerance is None and budget_bits is None:
        raise TypeError("tolerance or budget_bits must be given; got neither")
    found = []
    for name, value in (("tolerance", tolerance), ("budget_bits", budget_bits)):
        number = None if value is None else checked_number(value, name)
        if number is not None and not 0 <= number < float("inf"):
            raise ValueError(f"{name} must be 0 or more; got {brief(value)}")
        found.append(number)
    if time_limit is not None and not checked_number(time_limit, "time_limit") > 0:
        raise ValueError(f"time_limit must be more than 0; got {brief(time_limit)}")
    if better not in (None, "lower", "higher"):
        raise ValueError(one_of("better", better, ("lower", "higher", None)))
    return found[0], found[1]


def _levels(precisions: Sequence[GivenFormats] | None, base: Plan) -> list[Level]:
    """Return the formats to try, the cheapest first."""
    if isinstance(precisions, str):
        raise TypeError(
            f"precisions must be a list of formats; got {brief(precisions)}. Use"
            f" [{brief(precisions)}]"
        )
    on: Any = {"device": base.device, "instruction": base.instruction}
    if precisions is None:
        precisions = formats_on(names=PRECISIONS, **on)
    found: dict[str, Level] = {}
    for given in precisions:
        try:
            plan = Plan({"precisions": given}, **on)
        except ValueError as error:
            why = str(error).removeprefix("layer 'precisions': ")
            raise ValueError(f"precisions: {why}") from None
        recipe = plan.recipe("precisions")
        if recipe is not None:
            found[str(recipe)] = Level(plan.layers[0], recipe)
    if not found:
        raise ValueError("precisions must name at least one format; got none")
    return sorted(found.values(), key=lambda level: level.bits)


def _searched(
    runner: Runner, tolerance: float | None, budget: float | None, absolute: bool
) -> Plan:
    limit = float("inf")
    if tolerance is not None:
        if tolerance and runner.truth == 0 and not absolute:
            raise ValueError(
                "metric of the unrounded model must not be 0 with a relative tolerance;"
                " got 0. Use absolute=True"
            )
        limit = tolerance * (1.0 if absolute else abs(runner.truth))
    levels, items = runner.levels, runner.items
    search: Search | Budget
    best: Levels = (len(levels),) * len(items)
    final = True
    try:
        if budget is None:
            search = _lowest(runner, limit)
        else:
            search = Budget(
                items,
                levels,
                budget,
                runner.sensitivity,
                lambda wanted: runner.loss(runner.metric(wanted)),
            )
        try:
            search.run()
        finally:
            best = search.best
    except (OutOfTime, KeyboardInterrupt):
        final = False
        warn(
            "the plan is not final, but the best so far: the search was interrupted."
            " With journal and resume=True, tune continues it"
        )
    return _plan(runner, best, tolerance, budget, absolute, limit, final)


def _lowest(runner: Runner, limit: float) -> Search:
    """Return the search for the lowest formats that pass, the safest layers first."""
    items = runner.items
    order = []
    for level in range(len(runner.levels)):
        errors = [runner.sensitivity(i, level) for i in range(len(items))]
        order.append(
            sorted(
                range(len(items)),
                key=lambda i: (errors[i], -items[i].multiply_adds),
            )
        )

    def attempt(wanted: Sequence[Levels]) -> list[bool | None]:
        passes = runner.loss(runner.metric(wanted[0])) <= limit
        return [passes, *[None] * (len(wanted) - 1)]

    return Search(order, len(items), attempt)


def _plan(
    runner: Runner,
    best: Levels,
    tolerance: float | None,
    budget: float | None,
    absolute: bool,
    limit: float,
    final: bool,
) -> Plan:
    """Return the plan with the facts of the search, and give its warnings."""
    metric = runner.known(best)
    facts: dict[str, Any] = {"metric_unrounded": runner.truth}
    if metric is not None:
        facts["metric"] = metric
        if not runner.loss(metric) <= limit:
            warn(
                f"the plan keeps the budget of {budget:g} bits, but not the tolerance:"
                f" metric is {metric:.6g}, and {runner.truth:.6g} unrounded"
            )
    given = {"tolerance": tolerance, "budget_bits": budget, "better": runner.better}
    facts |= {name: value for name, value in given.items() if value is not None}
    if absolute:
        facts["absolute"] = True
    facts["mean_bits"] = _mean_bits(runner, best)
    facts["trials"] = runner.count
    if runner.failures:
        count, why = counted(len(runner.failures), "plan"), [*runner.failures.values()]
        warn(f"{count} could not run, the first because: {why[0]}")
    return runner.plan(best, final=final, found=facts)


def _mean_bits(runner: Runner, best: Levels) -> float:
    """Return the mean bits per weight."""
    weights = sum(item.weights for item in runner.items)
    pairs = zip(runner.items, best, strict=True)
    bits = sum(weight_bits(item, runner.levels, level) for item, level in pairs)
    return bits / weights if weights else 0.0
