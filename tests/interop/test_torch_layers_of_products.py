"""The layers and roles of products when autograd, threads and casts are in the way."""

import threading

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402

pytestmark = pytest.mark.once
#: Formats whose products differ when roles are exchanged.
FORMATS = {"precision": "fp8_e4m3", "gradients": "fp8_e5m2"}
FORWARD = ("activations", "weights", False)
OF_X = ("gradients", "weights", True)
OF_WEIGHT = ("gradients", "activations", True)
OF_MATRIX = ("activations", "gradients", True)


class Times(nn.Module):
    """A product with a matrix, which its module may compute in a scope of its own."""

    def __init__(self, scope=None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.scope = scope

    def forward(self, x):
        if self.scope is None:
            return x @ self.weight
        with self.scope:
            return x @ self.weight


def model_and_input():
    torch.manual_seed(0)
    model = nn.Sequential(Times(), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), Times())
    return model, torch.randn(4, 8, requires_grad=True)


def gradients(model, x):
    return [x.grad, *(p.grad for p in model.parameters())]


def equal(found, wanted):
    return all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def in_one_scope(make=model_and_input, **formats):
    """Return gradients of a forward and a backward pass in one scope."""
    model, x = make()
    with tt.matmul_precision(**(formats or FORMATS)):
        model(x).square().sum().backward()
    return gradients(model, x)


BACKWARD = [
    ("4", *OF_MATRIX),
    ("4", *OF_X),
    ("2", *OF_X),
    ("2", *OF_WEIGHT),
    ("0", *OF_MATRIX),
    ("0", *OF_X),
]


def shared(model):
    """Let the parameters be parts of one tensor."""
    vector = nn.utils.parameters_to_vector(model.parameters()).detach()
    nn.utils.vector_to_parameters(vector, model.parameters())


def test_parameters_of_one_storage():
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3)))
    shared(model)
    assert len({p.untyped_storage().data_ptr() for p in model.parameters()}) == 1
    x = torch.randn(4, 8, requires_grad=True)
    with tt.matmul_precision("bf16", skip=["1"]) as scope:
        model(x).sum().backward()
    assert scope.calls == {"0": 3, "2": 3}


@pytest.mark.parametrize("axis", [0, 1])
def test_parameters_that_are_chunks(axis, places):
    """Chunks of columns have the memory of each other between their numbers."""
    layers = [nn.Linear(8, 8, bias=False) for _ in range(3)]
    shape = (24, 8) if axis == 0 else (8, 24)
    for layer, part in zip(layers, torch.randn(shape).chunk(3, axis), strict=True):
        layer.weight = nn.Parameter(part)
    model = nn.Sequential(*layers)
    with tt.matmul_precision("bf16"), torch.no_grad():
        model(torch.randn(4, 8))
        for layer in layers:
            torch.randn(4, 8) @ layer.weight[3:5].T
    assert places == 2 * [(name, *FORWARD) for name in "012"]


def test_backward_alone(places):
    """A forward pass outside of all scopes leaves layers and roles as they are."""
    model, x = model_and_input()
    y = model(x).square().sum()
    with tt.matmul_precision(**FORMATS, model=model):
        y.backward()
    assert sorted(places) == sorted(BACKWARD)


@pytest.mark.parametrize("same", [True, False])
def test_backward_in_another_entry(same, places):
    """The gradients are those of one scope around both passes."""
    model, x = model_and_input()
    scopes = [tt.matmul_precision(**FORMATS)] * 2
    if not same:
        scopes[1] = tt.matmul_precision(**FORMATS, model=model)
    with scopes[0]:
        y = model(x).square().sum()
    places.clear()
    with scopes[1]:
        y.backward()
    assert sorted(places) == sorted(BACKWARD)
    assert equal(gradients(model, x), in_one_scope())


def test_backward_that_another_scope_skips():
    model, x = model_and_input()
    with tt.matmul_precision(**FORMATS):
        y = model(x).square().sum()
    with tt.matmul_precision(**FORMATS, skip=["0", "2", "4"], model=model) as scope:
        y.backward()
    assert not scope.calls


def test_scope_in_a_module(places):
    """Products that another scope computed have the names of the scope around it."""
    model, x = model_and_input()
    model[0].scope = tt.matmul_precision(**FORMATS)
    with tt.matmul_precision(**FORMATS):
        model(x).square().sum().backward()
    assert sorted(x for x in places if x[3]) == sorted(BACKWARD)
    assert equal(gradients(model, x), in_one_scope())


def test_scope_in_a_module_without_weights(places):
    class Scores(nn.Module):
        def forward(self, x):
            with tt.matmul_precision("bf16"):
                return x @ x.tanh().mT

    model = nn.Sequential(nn.Linear(8, 8), Scores())
    with tt.matmul_precision("bf16"):
        model(torch.randn(4, 8)).sum().backward()
    assert [x[0] for x in places if x[3]] == ["1", "1", "0"]


def test_layer_before_the_scope(places):
    """The node before the first one of a scope is not that of its first product."""
    model, x = model_and_input()
    y = model[0](x)
    with tt.matmul_precision("bf16", model=model, only=["4"]):
        model[4](y).sum().backward()
    assert sorted(places) == sorted([("4", *FORWARD), ("4", *OF_MATRIX), ("4", *OF_X)])


@pytest.mark.parametrize("layer", [nn.Linear(8, 8), nn.Conv1d(8, 8, 1), Times()])
def test_product_without_gradients(layer, places):
    """It has no node, and the newest one is of another layer."""
    kinds = {nn.Linear: (8, 8), nn.Conv1d: (8, 8, 1), Times: ()}
    model = nn.ModuleList([layer, type(layer)(*kinds[type(layer)])])
    x = torch.randn(1, 8, 8, requires_grad=True)
    y = model[0](x)
    with tt.matmul_precision("bf16", model=model, skip=["0"]):
        with torch.no_grad():
            model[1](x)
        y.sum().backward()
    assert places == [("1", *FORWARD)]


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_checkpoint_of_a_function(reentrant, nested, places):
    """Products that are computed again are those of the forward pass."""

    class Attends(nn.Module):
        def __init__(self, again):
            super().__init__()
            self.again, self.weight = again, nn.Parameter(torch.randn(8, 8))
            self.inner = nn.Linear(8, 8) if nested else nn.Identity()

        def compute(self, x):
            return ((self.inner(x) @ x.mT).softmax(-1) @ x).tanh() @ self.weight

        def forward(self, x):
            if not self.again:
                return self.compute(x)
            return checkpoint(self.compute, x, use_reentrant=reentrant)

    def make(again):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), Attends(again), nn.Linear(8, 8))
        return model, torch.randn(4, 8, requires_grad=True)

    wanted = in_one_scope(lambda: make(False))
    forward, backward = ([x for x in places if x[3] is y] for y in (False, True))
    places.clear()
    assert equal(in_one_scope(lambda: make(True)), wanted)
    again = forward[1:-1]
    if not reentrant:
        again.pop()  # its operands are known before it is computed
    assert [x for x in places if not x[3]] == [*forward, *again]
    assert sorted(x for x in places if x[3]) == sorted(backward)


def test_gradient_inside_of_a_checkpoint(places):
    """A backward pass within a function that runs again stays backward."""

    def compute(x, w):
        (slope,) = torch.autograd.grad((x @ w).tanh().sum(), x, create_graph=True)
        return slope.tanh()

    x, w = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    found = []
    for again in (False, True):
        x.grad = w.grad = None
        places.clear()
        with tt.matmul_precision(**FORMATS):
            given = (compute, x, w)
            y = checkpoint(*given, use_reentrant=False) if again else compute(x, w)
            y.sum().backward()
        found.append(x.grad)
    assert equal(found[:1], found[1:])
    assert [x[3] for x in places[:3]] == [False, False, True]


def test_derivatives_of_derivatives(places):
    model, x = model_and_input()
    with tt.matmul_precision("bf16", skip=["0", "2", "4"]):
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        slope.square().sum().backward()
    assert not places
    with tt.matmul_precision("bf16"):
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        assert not any(place[3] is False for place in places[3:])
        slope.square().sum().backward()
    assert {place[0] for place in places} == {"0", "2", "4"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("many", [False, True])
def test_functional_transforms(many, places):
    """The layers and the roles are those of the plain call."""
    model, x = model_and_input()
    parameters = {key: value.detach() for key, value in model.named_parameters()}

    def loss(parameters, x):
        return torch.func.functional_call(model, parameters, (x,)).sum()

    slope = torch.func.grad(loss)
    if many:
        slope = torch.func.vmap(slope, (None, 0))
    for given in (parameters, dict(model.named_parameters())):
        places.clear()
        with tt.matmul_precision("bf16"):
            slope(given, x.detach())
        assert [p for p in places if not p[3]] == [(n, *FORWARD) for n in "024"]
        backward = [p for p in BACKWARD if p != ("0", *OF_X)]
        found = [p for p in places if p[3]]
        assert sorted((p[0], sorted(p[1:3])) for p in found) == sorted(
            (p[0], sorted(p[1:3])) for p in backward
        )


@pytest.mark.filterwarnings("ignore")
def test_skipped_layers_of_functional_transforms(places):
    model, x = model_and_input()
    one = x.detach()[0]
    with tt.matmul_precision("bf16", skip=["0", "2", "4"], model=model):
        torch.func.jacrev(model)(one)
        torch.func.hessian(model)(one)
        torch.autograd.functional.jacobian(model, one)
        torch.autograd.functional.hessian(lambda x: model(x).sum(), one)
    assert not places


def test_autocast(places):
    """A cast of a parameter is the parameter."""
    model, x = model_and_input()
    with tt.matmul_precision("bf16"), torch.autocast("cpu", torch.bfloat16):
        y = model(x).float().square().sum()
        with torch.no_grad():
            model(x)
    with tt.matmul_precision("bf16", model=model):
        y.backward()
    forward = [(n, *FORWARD) for n in "024"]
    assert places[:6] == 2 * forward
    assert sorted(places[6:]) == sorted(BACKWARD)


def test_cast_that_is_gone(places):
    weight = nn.Linear(64, 64, bias=False)
    with tt.matmul_precision("bf16", model=weight), torch.no_grad():
        weight.weight.to(torch.bfloat16) @ torch.ones(64, 1, dtype=torch.bfloat16)
        for _ in range(20):
            x = torch.ones(64, 64, dtype=torch.bfloat16)
            x @ x
    assert places[0][1] == "weights"
    assert {p[1:3] for p in places[1:]} == {("activations", "activations")}


def test_parameter_of_one_axis(places):
    class Projects(nn.Module):
        def __init__(self):
            super().__init__()
            self.direction = nn.Parameter(torch.randn(8))

        def forward(self, x):
            return x @ self.direction

    with tt.matmul_precision("bf16"):
        nn.Sequential(Projects())(torch.randn(4, 8))
    assert places == [("0", *FORWARD)]


def test_modules_that_another_thread_runs():
    """They are counted, but for a thread that has a scope itself."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Embedding(2, 4))
    x = torch.ones(1, 4)

    def run():
        model[1](model[0](x))
        model[2](torch.tensor([0]))

    def run_in_scope():
        with tt.matmul_precision(None):
            run()

    found = []
    for target in (run, run_in_scope):
        other = threading.Thread(target=target)
        scope = tt.matmul_precision("bf16", model=model)
        scope.warns = False
        with scope:
            other.start()
            other.join()
        found.append(dict(scope.unreached))
    assert found == [{("0", "in another thread"): 1}, {}]


def test_applied_layer_with_a_computed_weight():
    """The model itself is the layer whose weight is computed."""
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(64, 8))
    x = torch.randn(4, 64)
    plan = tt.Plan({"": {"weights": "fp8_e4m3", "activations": "f32"}})
    with torch.no_grad():
        with tt.matmul_precision(plan=plan, model=layer):
            wanted = layer(x)
        found = tt.apply(plan, layer)(x)
        assert torch.equal(found, wanted)
        assert not torch.equal(found, tt.apply(None, layer)(x))


def test_interrupted_modules():
    """Modules that KeyboardInterrupt ended do not run any more."""

    class Stops(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            self.inner(x)
            raise KeyboardInterrupt

    class Catches(nn.Module):
        def __init__(self):
            super().__init__()
            self.stops = Stops()

        def forward(self, x):
            with pytest.raises(KeyboardInterrupt):
                self.stops(x)
            return x @ x.T

    x = torch.ones(2, 4)
    model, other = nn.Sequential(nn.Sequential(Catches())), Stops()
    with tt.matmul_precision("bf16") as scope:
        model(x)
        with pytest.raises(KeyboardInterrupt):
            other(x)
        x @ x.T
        F.linear(x, x)
    assert scope.calls == {"0.0.stops.inner": 1, "0.0": 1, "Stops.inner": 1, "": 2}


def test_attention_before_the_scope():
    """Saved tensors are not gradients, also if no layer owns them."""
    found = []
    for is_inside in (True, False):
        torch.manual_seed(0)
        q, k, v = (torch.randn(3, 5, 8).requires_grad_() for _ in range(3))
        scope = tt.matmul_precision("f32", gradients="fp8_e5m2")
        if is_inside:
            with scope:
                F.scaled_dot_product_attention(q, k, v).square().sum().backward()
        else:
            y = F.scaled_dot_product_attention(q, k, v).square().sum()
            with scope:
                y.backward()
        found.append([q.grad, k.grad, v.grad])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_forward_pass_of_another_thread(places):
    """Its nodes have numbers that this thread gave, too."""
    model, x = model_and_input()
    found = []
    other = threading.Thread(target=lambda: found.append(model[0](x)))
    other.start()
    other.join()
    with tt.matmul_precision("bf16", model=model, skip=["0"]):
        for _ in range(20):
            model[4](torch.randn(4, 8))
        places.clear()
        found[0].sum().backward()
    assert not places
