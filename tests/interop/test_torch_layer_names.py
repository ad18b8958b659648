"""The layers and roles of products, in models of all kinds."""

import gc
import threading

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402

pytestmark = pytest.mark.once


class Language(nn.Module):
    """An embedding whose weight is that of the head, and a nested part."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.body = nn.ModuleList(nn.Sequential(nn.Linear(8, 8)) for _ in range(2))
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        x = self.table(tokens)
        for part in self.body:
            x = part(x)
        return self.head(x)


TOKENS = torch.tensor([[1, 2, 3]])
FORWARD = ("activations", "weights", False)
OF_X = ("gradients", "weights", True)
OF_WEIGHT = ("gradients", "activations", True)


def test_nested_and_tied(places):
    model = Language()
    with tt.matmul_precision("bf16") as scope:
        model(TOKENS).sum().backward()
    names = "body.0.0", "body.1.0", "head"
    assert scope.calls == dict(zip(names, (3, 3, 3), strict=True))
    assert places[:3] == [(name, *FORWARD) for name in names]
    backward = [(n, *roles) for n in names for roles in (OF_X, OF_WEIGHT)]
    assert sorted(places[3:]) == sorted(backward)


def test_parts_that_are_called_directly():
    model = Language()
    x = torch.ones(1, 8)
    with tt.matmul_precision("bf16", model=model) as scope, torch.no_grad():
        model.body[1](x)
        model.head(x)
        model(TOKENS)
        model.head.weight @ x.T
    assert scope.calls == {"body.1.0": 2, "head": 2, "body.0.0": 1, "table": 1}


def test_two_models():
    one, two = nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 4))
    with tt.matmul_precision("bf16") as scope:
        two(one(torch.ones(1, 4)))
    assert scope.calls == {"0": 1, "Sequential.0": 1}


def test_shared_module():
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.ReLU(), layer)
    with tt.matmul_precision("bf16") as scope:
        model(torch.ones(1, 4)).sum().backward()
    assert scope.calls == {"0": 5}


@pytest.mark.parametrize(
    "change",
    [
        parametrizations.weight_norm,
        pytest.param(
            parametrizations.orthogonal,
            marks=pytest.mark.filterwarnings("ignore:.*linalg_matrix_exp"),
        ),
        pytest.param(
            nn.utils.weight_norm,
            marks=pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning"),
        ),
    ],
)
def test_computed_weights(change, places):
    model = nn.Sequential(change(nn.Linear(4, 4)))
    with tt.matmul_precision("bf16"):
        model(torch.ones(3, 4, requires_grad=True)).sum().backward()
    own = [place for place in places if place[0] == "0"]
    assert own[0] == ("0", *FORWARD)
    assert own[1:3] == [("0", *OF_X), ("0", *OF_WEIGHT)]


def test_functional_calls(places):
    model = Language()
    changed = {key: 2 * value for key, value in model.named_parameters()}

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (TOKENS,)).sum()

    with tt.matmul_precision("bf16") as scope:
        loss(changed)
        plain = [*places]
        torch.func.grad(loss)(changed)
    assert plain == [(n, *FORWARD) for n in ("body.0.0", "body.1.0", "head")]
    assert scope.calls == {"body.0.0": 4, "body.1.0": 4, "head": 4}


def test_errors_in_forward():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError

    model = nn.Sequential(nn.Linear(4, 4), Fails())
    other = nn.Sequential(nn.Linear(4, 4))
    with tt.matmul_precision("bf16", model=model) as scope:
        for _ in range(2):
            with pytest.raises(KeyError):
                model(torch.ones(1, 4))
        torch.ones(2, 2) @ torch.ones(2, 2)
        other(torch.ones(1, 4))
    assert scope.calls == {"0": 2, "": 1, "Sequential.0": 1}


def test_weights_that_move(places):
    """A layer owns its weight also after its numbers moved, or the layer is gone."""
    model = nn.Sequential(nn.Linear(64, 64, bias=False))
    with tt.matmul_precision("bf16"), torch.no_grad():
        model(torch.ones(1, 64))
        model.to(torch.bfloat16)
        places.clear()
        model[0].weight @ torch.ones(64, 1, dtype=torch.bfloat16)
        model(torch.ones(1, 64, dtype=torch.bfloat16))
        assert places[1] == ("0", *FORWARD)
        address = model[0].weight.data_ptr()
        del model
        gc.collect()
        others = [torch.ones(64, 64, dtype=torch.bfloat16) for _ in range(50)]
        places.clear()
        for x in others:
            x @ x
        assert {place[:3] for place in places} == {("", "activations", "activations")}
    assert address in [x.data_ptr() for x in others] or len(others) == 50


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(reentrant, places):
    """Products that are computed again are forward, and gradients are equal."""
    model = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 4))
    x = torch.randn(3, 4, requires_grad=True)
    found = []
    formats = {"weights": "fp8_e4m3", "activations": "bf16", "gradients": "fp8_e5m2"}
    for run in (model, lambda x: checkpoint(model, x, use_reentrant=reentrant)):
        model.zero_grad()
        places.clear()
        with tt.matmul_precision(**formats):
            run(x).square().sum().backward()
        found.append([p.grad.clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert {place for place in places if not place[3]} == {
        ("0", *FORWARD),
        ("2", *FORWARD),
    }
    backward = [place for place in places if place[3]]
    assert backward == [(n, *roles) for n in "20" for roles in (OF_X, OF_WEIGHT)]


def test_own_backward_pass(places):
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(context, x, w):
            context.save_for_backward(x, w)
            return x @ w.mT

        @staticmethod
        def backward(context, g):
            x, w = context.saved_tensors
            return g @ w, g.mT @ x

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 5))

        def forward(self, x):
            return Times.apply(x, self.weight)

    model = nn.Sequential(Layer(), Layer())
    model[1].weight = nn.Parameter(torch.randn(3, 4))
    with tt.matmul_precision("bf16"):
        model(torch.randn(2, 5, requires_grad=True)).sum().backward()
    assert places == [
        *[(name, *FORWARD) for name in "01"],
        *[(name, *roles) for name in "10" for roles in (OF_X, OF_WEIGHT)],
    ]


def test_backward_of_a_forward_pass_outside(places):
    model = nn.Sequential(nn.Linear(4, 4))
    y = model(torch.ones(1, 4, requires_grad=True)).sum()
    with tt.matmul_precision("bf16", model=model):
        y.backward()
    assert places == [("0", *OF_X), ("0", *OF_WEIGHT)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("before", [True, False])
def test_compiled_models(backend, before):
    """A compiled module runs as if it were not compiled, under the same names."""
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    compiled = torch.compile(model, backend=backend)
    x = torch.randn(3, 64)
    if before:
        compiled(x)
    with tt.matmul_precision("bf16"):
        plain = model(x)
    with tt.matmul_precision("bf16") as scope:
        found = compiled(x)
    assert torch.equal(found, plain)
    assert scope.calls == {"0": 1, "2": 1}
    torch._dynamo.reset()


def test_layers_of_other_threads():
    """A scope follows only the modules of its own thread."""
    model = nn.Sequential(nn.Linear(4, 4))
    x = torch.ones(1, 4)
    inside, done = threading.Event(), threading.Event()

    class Waits(nn.Module):
        def forward(self, x):
            inside.set()
            done.wait(10)
            return x

    other = threading.Thread(target=nn.Sequential(Waits()), args=(x,))
    with tt.matmul_precision("bf16") as scope:
        other.start()
        inside.wait(10)
        model(x)
        done.set()
        other.join()
        x @ x.T
    assert scope.calls == {"0": 1, "": 1}
