"""The search for the cheapest formats of a model's layers."""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402
from tf32dtype.interop.torch.hook.operand_format import operand_format  # noqa: E402


class Net(nn.Module):
    """A model whose first and last layers matter much more than those between."""

    def __init__(self, between: int = 3, share: float = 1e-3) -> None:
        super().__init__()
        self.share = share
        self.first = nn.Linear(32, 48)
        self.between = nn.ModuleList(nn.Linear(48, 48) for _ in range(between))
        self.last = nn.Linear(48, 8)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for layer in self.between:
            x = x + self.share * layer(x).relu()
        return self.last(x)


def net(**options: Any) -> Any:
    torch.manual_seed(5)
    return Net(**options).eval()


BATCHES = [
    torch.randn(16, 32, generator=torch.Generator().manual_seed(i)) for i in range(2)
]


class Error:
    """A metric: the distance from numbers that are not those of the model."""

    def __init__(self, stop: int = -1) -> None:
        self.calls, self.stop = 0, stop

    def __call__(self, model: Any, batches: Any) -> Any:
        if self.calls == self.stop:
            raise KeyboardInterrupt
        self.calls += 1
        with torch.no_grad():
            parts = [(model(x) - x[:, :8]).square().mean() for x in batches]
        return sum(parts) / len(parts)


class Noise:
    """A metric: the distance from the results of the unrounded model."""

    def __init__(self, model: Any) -> None:
        # As in trials, PyTorch must not fuse operations.
        with torch.no_grad(), tt.matmul_precision(None):
            self.wanted = [model(x) for x in BATCHES]

    def __call__(self, model: Any, batches: Any) -> Any:
        with torch.no_grad():
            pairs = zip(batches, self.wanted, strict=True)
            return sum((model(x) - y).square().mean() for x, y in pairs)


def tune(model: Any, metric: Any = None, **options: Any) -> Any:
    return tt.tune(model, BATCHES, metric=metric or Error(), quiet=True, **options)


def formats(plan: Any) -> dict[str, str | None]:
    return {layer.name: layer.precision for layer in plan.layers}


def change(model: Any, plan: Any) -> float:
    """Return the relative change of the metric in a plan."""
    unrounded = float(Error()(model, BATCHES))
    metric = float(Error()(tt.apply(plan, model), BATCHES))
    tt.apply(None, model)
    return abs(metric - unrounded) / unrounded


def test_the_first_and_the_last_layer_stay_wide() -> None:
    model = net()
    plan = tune(model, tolerance=3e-4, precisions=["bf16", "tf32", "mxfp4"])
    found = formats(plan)
    assert found == {
        "first": "bf16",
        **{f"between.{i}": "mxfp4" for i in range(3)},
        "last": "bf16",
    }
    assert plan.final
    assert change(model, plan) <= 3e-4
    facts = plan.found
    weights = {"first": 32 * 48, "last": 48 * 8, **{f"b{i}": 48 * 48 for i in range(3)}}
    bits = {"first": 16, "last": 16, **{f"b{i}": 4.25 for i in range(3)}}
    total = sum(weights[x] * bits[x] for x in weights)
    assert facts["mean_bits"] == pytest.approx(total / sum(weights.values()))
    assert facts["tolerance"] == 3e-4
    assert abs(facts["metric"] / facts["metric_unrounded"] - 1) <= 3e-4
    assert "forward" not in vars(model)


def all_plans(names: list[str], precisions: list[str]) -> Any:
    for chosen in itertools.product([*precisions, None], repeat=len(names)):
        yield tt.Plan(dict(zip(names, chosen, strict=True)))


def cost(plan: Any, weights: dict[str, int]) -> float:
    """Return the bits of the weights."""
    bits = {
        name: operand_format(f).bits if f else 32 for name, f in formats(plan).items()
    }
    return sum(bits[name] * weights[name] for name in weights)


PRECISIONS = ["mxfp4", "fp8_e4m3:row", "bf16"]
WEIGHTS = {"first": 32 * 48, "between.0": 48 * 48, "last": 48 * 8}


@pytest.mark.parametrize("tolerance", [1e-5, 1e-3, 1e-2, 0.3])
def test_three_layers_get_the_cheapest_plan_of_all(tolerance: float) -> None:
    model = net(between=1, share=0.3)
    plan = tune(model, tolerance=tolerance, precisions=PRECISIONS)
    passing = [
        one
        for one in all_plans([*WEIGHTS], PRECISIONS)
        if change(model, one) <= tolerance
    ]
    assert formats(plan) in map(formats, passing)
    cheapest = min(cost(one, WEIGHTS) for one in passing)
    assert cost(plan, WEIGHTS) <= 1.3 * cheapest
    order = [*PRECISIONS, None]
    for name, precision in formats(plan).items():  # no single step lowers
        if (level := order.index(precision)) > 0:
            lower = {**formats(plan), name: order[level - 1]}
            assert lower not in map(formats, passing)


@pytest.mark.parametrize("budget", [4.25, 5, 6, 8, 12, 16, 20, 32])
def test_a_budget_gets_the_best_plan_within(budget: float) -> None:
    model = net(between=1, share=0.3)
    metric = Noise(model)
    plan = tune(model, metric, budget_bits=budget, precisions=PRECISIONS)
    total = sum(WEIGHTS.values())
    within = [
        one
        for one in all_plans([*WEIGHTS], PRECISIONS)
        if cost(one, WEIGHTS) <= budget * total
    ]
    assert formats(plan) in map(formats, within)
    assert plan.found["mean_bits"] == pytest.approx(cost(plan, WEIGHTS) / total)
    assert plan.found["mean_bits"] <= budget
    noise = []
    for one in [plan, *within]:
        noise.append(float(metric(tt.apply(one, model), BATCHES)))
    assert plan.found["metric"] == noise[0]
    assert plan.found["metric_unrounded"] == 0
    assert noise[0] <= 1.05 * min(noise)


def test_budgets_that_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match=r"at least .* 4.25; got 4"):
        tune(net(), budget_bits=4, precisions=PRECISIONS)
    with pytest.warns(UserWarning, match="keeps the budget of 5 bits, but not the tol"):
        plan = tune(net(), budget_bits=5, tolerance=1e-9, precisions=PRECISIONS)
    assert plan.final


def test_tolerance_0_allows_no_change() -> None:
    model = net()
    with torch.no_grad():
        for layer in model.between:  # its weights and its operands are in bf16
            layer.weight.zero_()
            layer.bias.zero_()
    plan = tune(model, tolerance=0, precisions=PRECISIONS)
    assert formats(plan) == {
        "first": None,
        **{f"between.{i}": "mxfp4" for i in range(3)},
        "last": None,
    }
    assert plan.found["metric"] == plan.found["metric_unrounded"]


def test_changes_for_the_better_may_be_allowed() -> None:
    model = net()
    truth = float(Error()(model, BATCHES))

    def metric(net: Any, batches: Any) -> float:
        return -float(Error()(net, batches))

    lower = tune(model, better="lower", tolerance=1e-4, precisions=["mxfp4"])
    higher = tune(model, metric, better="higher", tolerance=1e-4, precisions=["mxfp4"])
    assert formats(lower) == formats(higher)
    assert lower.found["metric"] - truth <= 1e-4 * truth
    with torch.no_grad():
        model.last.weight.zero_()
        model.last.bias.zero_()
    good = tune(
        model,
        lambda net, x: -net(x[0]).detach().square().sum(),
        better="lower",
        tolerance=1,
        absolute=True,
        precisions=["mxfp4"],
    )
    assert set(formats(good).values()) == {"mxfp4"}
    assert good.found["absolute"] is True


def test_layers_of_a_group_have_one_format() -> None:
    model = net()
    options: dict[str, Any] = {"tolerance": 3e-4, "precisions": ["bf16", "mxfp4"]}
    plan = tune(model, groups=[["first", "between.0"], "between.[12]"], **options)
    assert formats(plan) == {
        "first": "bf16",
        "between.0": "bf16",
        "between.1": "mxfp4",
        "between.2": "mxfp4",
        "last": "bf16",
    }
    with pytest.raises(
        ValueError, match="groups must name layers that multiply; got 'm"
    ):
        tune(model, groups=["middle"], **options)
    with pytest.raises(ValueError, match=r"in one of groups; got 'between.0' in two"):
        tune(model, groups=[["between.0"], "between.*"], **options)


def test_skipped_layers_stay_unrounded() -> None:
    plan = tune(net(), tolerance=0.5, precisions=["bf16"], skip=["first", "betw*"])
    assert formats(plan) == {"last": "bf16"}
    assert plan.recipe("first") is None
    with pytest.warns(UserWarning, match="skip names 'frist', which matches no layer"):
        tune(net(), tolerance=0.5, precisions=["bf16"], skip=["frist", "between"])
    with pytest.raises(ValueError, match="metric must call the model, and its layers"):
        tune(net(), tolerance=0.5, skip=["*"])
    with pytest.raises(ValueError, match="metric must call the model, and its layers"):
        tune(net(), lambda model, x: 1.0, tolerance=0.5)


def test_an_interrupted_search_resumes(tmp_path: Path) -> None:
    model, path = net(), tmp_path / "tune.journal"
    options: dict[str, Any] = {"tolerance": 3e-4, "precisions": PRECISIONS}
    whole = Error()
    wanted = tune(model, whole, **options)
    used = 0
    for stop in (5, 8, 3):
        metric = Error(stop)
        with pytest.warns(UserWarning, match="not final, but the best so far"):
            plan = tune(model, metric, journal=path, resume=used > 0, **options)
        assert not plan.final
        assert change(model, plan) <= 3e-4
        used = metric.calls
        assert used == stop
        assert "forward" not in vars(model)
    metric = Error()
    assert tune(model, metric, journal=path, resume=True, **options) == wanted
    assert metric.calls < whole.calls
    again = Error()
    assert tune(model, again, journal=path, resume=True, **options) == wanted
    assert again.calls == 2, "the layers and the reference"
    model.last.bias.data += 1
    with pytest.raises(KeyboardInterrupt):
        tune(model, Error(1), journal=path, resume=True, **options)


def test_another_metric_cannot_resume(tmp_path: Path) -> None:
    model, path = net(), tmp_path / "tune.journal"
    options: dict[str, Any] = {"tolerance": 1e-3, "precisions": ["bf16"]}
    with pytest.raises(ValueError, match=r"^resume must find a journal; got none at"):
        tune(model, journal=path, resume=True, **options)
    with pytest.raises(ValueError, match="resume must be given with a journal"):
        tune(model, resume=True, **options)
    tune(model, journal=path, **options)
    with pytest.raises(ValueError, match="must have the same metric as before; got"):
        tune(model, lambda *x: Error()(*x) + 1, journal=path, resume=True, **options)
    path.write_text("mine")
    with pytest.raises(ValueError, match="is not a tf32dtype journal"):
        tune(model, journal=path, **options)


def test_a_time_limit_ends_the_search() -> None:
    with pytest.warns(UserWarning, match="not final, but the best so far"):
        plan = tune(net(), tolerance=1, precisions=["bf16"], time_limit=1e-9)
    assert not plan.final
    assert set(formats(plan).values()) == {None}


def test_a_metric_must_be_deterministic_and_finite() -> None:
    count = itertools.count()

    def changing(model: Any, batches: Any) -> float:
        return float(Error()(model, batches)) + next(count)

    with pytest.raises(ValueError, match=r"metric must be deterministic.*model.eval"):
        tune(net(), changing, tolerance=1)
    with pytest.raises(ValueError, match="metric must be finite for the unrounded"):
        tune(net(), lambda model, x: Error()(model, x) * float("nan"), tolerance=1)
    with pytest.raises(ValueError, match=r"model must not be 0.*absolute=True"):
        tune(net(), lambda model, x: 0 * Error()(model, x), tolerance=1)
    with pytest.raises(TypeError, match="metric must return a number; got 'a'"):
        tune(net(), lambda model, x: "a", tolerance=1)


def test_formats_that_cannot_round_fail_alone() -> None:
    model = net()

    def metric(net: Any, batches: Any) -> float:
        x = batches[0].clone()
        x[0, 0] = float("inf")  # tiles have no scale for it
        return float(net(x)[1:].detach().square().mean())

    with pytest.warns(UserWarning, match="plans could not run, the first because: lay"):
        plan = tune(model, metric, tolerance=0.1, precisions=["fp8_e4m3:tile", "bf16"])
    assert formats(plan)["first"] in ("bf16", None)


def test_plans_that_could_not_run_are_counted_once() -> None:
    failed = 0

    def metric(net: Any, batches: Any) -> float:
        nonlocal failed
        x = batches[0].clone()
        x[0, 0] = float("inf")
        failed += 1
        found = float(net(x)[1:].detach().square().mean())
        failed -= 1
        return found

    with pytest.warns(UserWarning, match="could not run") as found:
        tune(net(), metric, budget_bits=12, precisions=["fp8_e4m3:tile", "bf16"])
    assert re.match(f"{failed} plans? could not run", str(found[0].message))


def test_attention_without_weights_is_a_layer() -> None:
    torch.manual_seed(2)
    model = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True).eval()
    x = [torch.randn(2, 5, 32)]

    def metric(net: Any, batches: Any) -> float:
        with torch.no_grad():
            return float(net(batches[0]).square().mean())

    plan = tt.tune(
        model, x, metric=metric, tolerance=1, precisions=["bf16"], quiet=True
    )
    names = [layer.name for layer in plan.layers]
    assert set(names) == {"self_attn", "self_attn.out_proj", "linear1", "linear2"}
    assert plan.found["mean_bits"] == 16


def test_the_state_of_the_model_is_as_before() -> None:
    model = net()
    before = tt.Plan({"first": "bf16"})
    tt.apply(before, model)
    state = {name: x.clone() for name, x in model.state_dict().items()}
    tune(model, tolerance=1e-2, precisions=["mxfp4"])
    assert model.forward.plan == before
    assert all(torch.equal(x, state[name]) for name, x in model.state_dict().items())


def test_devices_choose_the_default_precisions() -> None:
    plan = tune(net(between=1), tolerance=10, device="A100")
    assert set(formats(plan).values()) == {"bf16"}
    assert plan.device == "A100"
    with pytest.raises(ValueError, match=r"precisions: A100 mma.sync cannot mul"):
        tune(net(), tolerance=10, device="A100", precisions=["fp8_e4m3"])
    with pytest.raises(ValueError, match=r"precisions: V100 mma.sync cannot mul"):
        tune(net(), tolerance=10, device="V100")


def test_precisions_may_have_two_formats() -> None:
    pair = {"weights": "mxfp4", "activations": "mxfp8"}
    plan = tune(net(between=1), tolerance=10, precisions=["bf16", pair])
    assert {(x.weights, x.activations) for x in plan.layers} == {("mxfp4", "mxfp8")}


def test_arguments_are_checked() -> None:
    faults: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TypeError, "tolerance or budget_bits must be given", {}),
        (ValueError, "tolerance must be 0 or more; got -1", {"tolerance": -1}),
        (TypeError, "tolerance must be a number", {"tolerance": "a"}),
        (ValueError, "time_limit must be more than 0", {"time_limit": 0}),
        (ValueError, "better must be one of", {"better": "more"}),
        (ValueError, "precisions: format must be", {"precisions": ["bf17"]}),
        (ValueError, "precisions must name at least one", {"precisions": []}),
        (TypeError, "precisions must be a list", {"precisions": "bf16"}),
        (ValueError, "device must be", {"device": "H1"}),
    ]
    for kind, why, options in faults:
        if options:
            options = {"tolerance": 1, **options}
        with pytest.raises(kind, match=why):
            tune(net(), **options)
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module; got 3"):
        tune(3, tolerance=1)


def test_a_quiet_search_gives_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = tune(net(between=1), tolerance=1e-3)
    assert plan.final


def test_a_metric_may_pass_tensors_with_a_history() -> None:
    torch.manual_seed(0)
    first = nn.Linear(32, 32)

    def metric(model: Any, batches: Any) -> float:
        return float(sum(model(first(x)).square().mean().detach() for x in batches))

    plan = tune(net(), metric, tolerance=0.1, precisions=["bf16"])
    assert set(formats(plan).values()) == {"bf16"}
