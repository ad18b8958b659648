"""Plans of models: the file, names of layers, and models that run in a plan."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from tf32dtype.interop import torch as tt  # noqa: E402

LAYERS = {
    "0": "bf16",
    "2.linear*": {"weights": "mxfp4", "activations": "mxfp8", "gradients": "bf16"},
    "2": None,
}
PLAN = tt.Plan(LAYERS, default="fp8_e4m3:row", found={"metric": 0.5, "layers": 3})


def model() -> Any:
    torch.manual_seed(1)
    attention = torch.nn.TransformerEncoderLayer(64, 4, 64, batch_first=True)
    return torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), attention, torch.nn.Linear(64, 8)
    ).eval()


def numbers() -> Any:
    return torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(3))


def wanted(net: Any, x: Any, plan: Any = PLAN) -> Any:
    """Return the result of a model within the scope."""
    with torch.no_grad(), tt.matmul_precision(plan=plan, model=net):
        return net(x)


def test_the_first_name_that_matches_counts() -> None:
    assert str(PLAN.recipe("0")) == "bf16"
    assert str(PLAN.recipe("2.linear1")) == "mxfp4 x mxfp8_e4m3, gradients bf16"
    assert PLAN.recipe("2") is None
    assert PLAN.recipe("2.self_attn") == PLAN.recipe("") != PLAN.recipe("0")
    assert tt.Plan().recipe("any") is None


def test_a_plan_is_shown_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    tt.Plan(LAYERS, device="B200", final=False).print()
    text = capsys.readouterr().out
    assert text == (
        "plan of 3 layers, on B200, not final\n"
        "layer       weights  activations          others  bits per weight\n"
        "----------  -------  -----------  --------------  ---------------\n"
        "0              bf16         bf16                               16\n"
        "2.linear*     mxfp4   mxfp8_e4m3  gradients bf16             4.25\n"
        "2              none         none\n"
        "all others     none         none\n"
    )
    many = tt.Plan({str(i): "bf16" for i in range(100)})
    assert "; ... and 40 more; all others none none>" in repr(many)
    assert "2 none none" in repr(PLAN)


def test_files_keep_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    odd = 'a"b\\c\n\x7fé = #'
    plans = [
        PLAN,
        tt.Plan(),
        tt.Plan({odd: "bf16", "": None}, default={"weights": "bf16"}),
        tt.Plan({"*": "fp8_e4m3"}, device="H100", final=False, found={odd: odd}),
        tt.Plan(found={"a": True, "b": float("inf"), "c": 1, "d": -1e-30}),
    ]
    for plan in plans:
        plan.save(path)
        assert tt.Plan.load(path) == plan
        assert str(tt.Plan.load(str(path)).recipe("x")) == str(plan.recipe("x"))
        assert pickle.loads(pickle.dumps(plan)) == copy.deepcopy(plan) == plan
        assert len({plan, copy.copy(plan)}) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "version must be 1; got None"),
        ("version = 2", "version must be 1; got 2"),
        ("version = true", "version must be 1; got True"),
        ("version = 1\nlayers = []", "a plan of layers cannot have the key 'layers'"),
        ("version = 1\nlayer = 3", r"layer must be written as tables \[\[layer\]\]"),
        ("version = 1\nlayer = [3]", r"layer must be written as tables \[\[layer\]\]"),
        ("version = 1\ndefault = 'bf16'", "default must be a table; got 'bf16'"),
        ("version = 1\n[[layer]]\nname = 'a'", "layer 'a' must have a precision"),
        ("version = 1\n[[layer]]\nprecision = 'bf16'", "name must be given"),
        ("version = 1\n[[layer]]\nname = 'a'\nweights = 3", "weights must be a string"),
        ("version = 1\n[[layer]]\nname = 'a'\nprecision = 'bf17'", "layer 'a': format"),
        (
            "version = 1\n[[layer]]\nname = 'a'\nprecision = 'bf16'\nscale = 'row'",
            "a layer cannot have the key 'scale'",
        ),
        (
            "version = 1\n[[layer]]\nname = 'a'\nprecision = 'none'\nweights = 'bf16'",
            "layer 'a' must have no other formats with precision 'none'; got weights",
        ),
        ("version = 1\ndevice = 'H1'", "device must be"),
        ("version = 1\n[default]\nprecision = 'bf16'\n\n[x]", "cannot have the key"),
        ("version = 1\ndevice = 'V100'\n[default]\nprecision = 'mxfp4'", "default: "),
        ("version = 1\n[found]\na = [1]", "found.a must be a string, number or boole"),
        ("a = " + "[" * 3000, "is not valid TOML"),
        ("version =", "is not valid TOML"),
    ],
)
def test_faults_of_a_file_name_the_key(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"plan.toml.*{why}"):
        tt.Plan.load(path)


_VALUES = st.one_of(
    st.sampled_from(["bf16", "none", "mxfp8", "fp8_e4m3:row", "tcfp12", "x", ""]),
    st.text(max_size=3),
    st.integers(),
    st.booleans(),
    st.floats(),
    st.lists(st.integers(), max_size=2),
)
_KEYS = st.sampled_from(
    ["version", "name", "precision", "weights", "default", "device", "final", "found"]
)
_TABLES = st.dictionaries(_KEYS, _VALUES, max_size=4)


@given(first=_TABLES, default=_TABLES, layers=st.lists(_TABLES, max_size=3))
def test_any_file_gives_a_plan_or_a_fault(
    tmp_path_factory: pytest.TempPathFactory,
    first: dict[str, Any],
    default: dict[str, Any],
    layers: list[dict[str, Any]],
) -> None:
    from tf32dtype._base import toml

    text = toml.table("", {"version": 1, **first})
    if "default" not in first:
        text += toml.table("[default]\n", default)
    for layer in layers:
        text += toml.table("[[layer]]\n", {"name": "a", "precision": "bf16", **layer})
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode())
    try:
        plan = tt.Plan.load(path)
    except ValueError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
        return
    plan.save(path)
    assert repr(tt.Plan.load(path)) == repr(plan)


@given(st.binary(max_size=40))
def test_any_bytes_give_a_plan_or_a_fault(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(b"version = 1\n" + data)
    try:
        tt.Plan.load(path)
    except ValueError as error:
        assert str(error).startswith(str(path))  # noqa: PT017


def test_arguments_of_a_plan_are_checked() -> None:
    with pytest.raises(TypeError, match="layers must be a dictionary; got"):
        tt.Plan(["a"])
    with pytest.raises(TypeError, match="names of layers must be strings; got 3"):
        tt.Plan({3: "bf16"})
    with pytest.raises(TypeError, match="layer 'a' must have a format, a dictionary"):
        tt.Plan({"a": 3})
    with pytest.raises(ValueError, match=r"layer 'a': key must be .*; got 'weight'"):
        tt.Plan({"a": {"weight": "bf16"}})
    with pytest.raises(TypeError, match="default: weights must be a string; got 3"):
        tt.Plan(default={"weights": 3})
    with pytest.raises(TypeError, match="final must be True or False; got 'no'"):
        tt.Plan(final="no")
    with pytest.raises(ValueError, match=r"found.loss must be .*; got \[1\]"):
        tt.Plan(found={"loss": [1]})
    with pytest.raises(ValueError, match="layer 'a': format must be"):
        tt.Plan({"a": "bf17"})
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        tt.Plan.load("missing.toml")
    with pytest.raises(TypeError, match="path must be the path of a file; got 3"):
        tt.Plan.load(3)


def test_a_plan_excludes_other_formats(tmp_path: Path) -> None:
    for options in (
        {"precision": "bf16"},
        {"weights": "bf16"},
        {"scale": "row"},
        {"device": "H100"},
    ):
        (name,) = options
        with pytest.raises(ValueError, match=f"{name} must not be given with a plan"):
            tt.matmul_precision(plan=PLAN, **options)
    with pytest.raises(TypeError, match="plan must be a Plan or the path of one"):
        tt.matmul_precision(plan=3)
    assert "all others" in repr(tt.matmul_precision(plan=PLAN, scale="tensor"))


def test_a_scope_runs_each_layer_in_its_format() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 8)).eval()
    x = numbers()
    plan = tt.Plan({"0": "bf16", "1": {"weights": "mxfp4", "activations": "mxfp8"}})
    with torch.no_grad():
        with tt.matmul_precision("bf16"):
            middle = net[0](x)
        with tt.matmul_precision(weights="mxfp4", activations="mxfp8"):
            end = net[1](middle)
    assert torch.equal(wanted(net, x, plan), end)
    with torch.no_grad(), tt.matmul_precision(plan=plan, skip=["1"]):
        assert torch.equal(net(x), net[1](middle))


def test_names_that_match_no_layer_give_a_warning() -> None:
    net = model()
    plan = tt.Plan({"3": "bf16", "2.linaer1": "bf16", "4*": "bf16"})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tt.apply(plan, net)
    assert [str(x.message) for x in found] == [
        "plan names '2.linaer1', which matches no layer. Did you mean 2.linear1,"
        " 2.linear2 or 2.norm1?",
        "plan names '4*', which matches no layer",
    ]
    with (
        pytest.warns(UserWarning, match=r"plan names '4\*'"),
        tt.matmul_precision(plan=tt.Plan({"4*": "bf16", "0": "bf16"})),
    ):
        net[:2](numbers())
    with (
        pytest.warns(UserWarning, match="skip names '5', which matches no layer"),
        tt.matmul_precision("bf16", skip=["5"]),
    ):
        net(numbers())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tt.matmul_precision(plan=plan):  # no module runs
            torch.ones(2, 2) @ torch.ones(2, 2)


def test_names_with_brackets_match_themselves() -> None:
    nn, x, name = torch.nn, torch.ones(2, 4), "a[0]"
    net = nn.Sequential(OrderedDict({name: nn.Linear(4, 4), "b": nn.Linear(4, 4)}))
    with torch.no_grad(), tt.matmul_precision("bf16", skip=[name]) as scope:
        net(x)
    assert scope.calls == {"b": 1}
    with torch.no_grad(), tt.matmul_precision("bf16", only=[name]) as scope:
        net(x)
    assert scope.calls == {name: 1}
    groups = tt.report(net, (x,), ["bf16"], groups={"one": name}, quiet=True).groups
    assert [group.layers for group in groups] == [(name,)]
    tt.convert(net, skip=[name])
    assert [type(x) for x in net] == [nn.Linear, tt.Linear]


def test_a_model_runs_in_its_plan(tmp_path: Path) -> None:
    net, x = model(), numbers()
    plain, rounded = net(x), wanted(net, x)
    assert not torch.equal(plain, rounded)
    PLAN.save(tmp_path / "plan.toml")
    for plan in (PLAN, tmp_path / "plan.toml", str(tmp_path / "plan.toml")):
        assert tt.apply(plan, net) is net
        for context in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            with context():
                assert torch.equal(net(x), rounded)
    state = net.state_dict()
    assert state.keys() == model().state_dict().keys()
    assert torch.equal(net[0](x), model()[0](x)), "a part of the model is called"
    tt.apply(tt.Plan(), net)
    assert torch.equal(net(x), plain)
    tt.apply(None, net)
    assert "forward" not in vars(net)
    assert torch.equal(tt.apply(None, net)(x), plain)


def test_copies_of_a_model_keep_the_plan() -> None:
    net, x = tt.apply(PLAN, model()), numbers()
    rounded = net(x)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x), rounded)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        assert not other(x).any(), "it has parameters of its own"
        assert torch.equal(net(x), rounded)
    assert list(inspect.signature(net.forward).parameters) == ["input"]


class Twice(torch.nn.Module):
    """Calls itself, fails, or is interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(32, 32)

    def forward(self, x: Any, depth: int = 0, error: Any = None) -> Any:
        if depth:
            x = self(x, depth - 1, error)
        elif error is not None:
            raise error
        return self.inner(x)


def test_a_model_may_call_itself_and_fail() -> None:
    net, x, plan = Twice(), numbers(), tt.Plan({"inner": "fp8_e4m3"})
    plain = net(x)
    rounded = wanted(net, wanted(net, x, plan), plan)
    tt.apply(plan, net)
    assert torch.equal(net(x, 1), rounded)
    for error in (RuntimeError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            net(x, 1, error)
        assert torch.equal(net.inner(x), plain), "the precision is left"
    assert torch.equal(net(x, 1), rounded)


def test_threads_run_a_model_in_its_plan() -> None:
    net, x = tt.apply(PLAN, model()), numbers()
    expected, found = net(x).detach(), []

    def run() -> None:
        with torch.no_grad():
            found.append(net(x))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(torch.equal(one, expected) for one in found)


def test_a_backward_pass_after_the_call_is_torchs_own() -> None:
    net, x = torch.nn.Sequential(torch.nn.Linear(32, 1, bias=False)), numbers()
    net(x).sum().backward()
    plain = net[0].weight.grad.clone()
    net[0].weight.grad = None
    tt.apply(tt.Plan({"0": "fp8_e4m3"}), net)(x).sum().backward()
    assert torch.equal(net[0].weight.grad, plain)
    tt.apply(None, net)[0].weight.grad = None
    with tt.matmul_precision(plan=tt.Plan({"0": "fp8_e4m3"}), model=net):
        net(x).sum().backward()
    assert not torch.equal(net[0].weight.grad, plain)


def test_apply_refuses_other_models() -> None:
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module; got 3"):
        tt.apply(PLAN, 3)
    with pytest.raises(TypeError, match="plan must be a Plan or the path of one"):
        tt.apply(3, model())
    net = model()
    net.forward = lambda x: x
    with pytest.raises(TypeError, match="must have the forward function of its class"):
        tt.apply(PLAN, net)
