"""Scopes of precisions in PyTorch: nested, re-entered, in threads, as decorators."""

import copy
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tf32dtype import tensor_core  # noqa: E402
from tf32dtype.interop import torch as tt  # noqa: E402
from tf32dtype.interop.torch.hook.multiply import way_of  # noqa: E402
from tf32dtype.interop.torch.hook.operand_format import operand_format  # noqa: E402
from tf32dtype.interop.torch.hook.unit import Unit  # noqa: E402

pytestmark = pytest.mark.once

MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)
FORMATS = (
    "f32",
    "tf32",
    "tf32x3",
    "bf16",
    "f16",
    "fp8_e4m3",
    "fp8_e4m3:row",
    "fp8_e5m2:block",
    "fp8_e4m3:tile",
    "mxfp8_e4m3",
    "mxfp4",
    "nvfp4",
    "tcfp12",
    "int8",
)


def switches():
    attention = torch.backends.mha.get_fastpath_enabled()
    return attention, torch._C._get_mkldnn_enabled()


@pytest.fixture(autouse=True)
def same_switches():
    before = switches()
    yield
    assert switches() == before


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(70, 50), nn.Linear(50, 3))


X = torch.randn(5, 70, generator=torch.Generator().manual_seed(1))


def results(model, precision):
    with tt.matmul_precision(precision), torch.no_grad():
        return model(X)


@pytest.mark.parametrize("mode", MODES)
def test_nested(model, mode):
    """Only the innermost scope counts; None switches it off."""
    plain, wanted = model(X), results(model, "bf16")
    with mode(), tt.matmul_precision("fp8_e4m3") as outer:
        with tt.matmul_precision("bf16") as inner:
            assert torch.equal(model(X), wanted)
        with tt.matmul_precision(None) as off:
            assert torch.equal(model(X), plain)
            with tt.matmul_precision("bf16"):
                assert torch.equal(model(X), wanted)
            assert torch.equal(model(X), plain)
        with tt.matmul_precision("bf16", skip=["*"]) as skipped:
            assert torch.equal(model(X), plain)
        assert not torch.equal(model(X), wanted)
    assert inner.calls == outer.calls == {"0": 1, "1": 1}
    assert not off.calls
    assert not skipped.calls


def test_none_costs_nothing(model):
    with tt.matmul_precision(None) as scope:
        assert switches() == (True, torch._C._get_mkldnn_enabled())
        assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        model(X)
    assert repr(scope) == "<matmul_precision(f32)>"


def test_reentered(model):
    scope = tt.matmul_precision("bf16")
    wanted = results(model, "bf16")
    with scope:
        with scope:
            assert torch.equal(model(X), wanted)
        assert torch.equal(model(X), wanted)
    with scope:
        model(X)
    assert scope.calls == {"0": 3, "1": 3}


def test_copies(model):
    scope = copy.deepcopy(tt.matmul_precision("bf16"))
    with scope:
        assert torch.equal(model(X), results(model, "bf16"))


def test_decorators(model):
    @tt.matmul_precision("bf16")
    def run(depth):
        return model(X) if depth == 0 else run(depth - 1)

    assert torch.equal(run(3), results(model, "bf16"))


def test_errors_leave_the_scope(model):
    scope = tt.matmul_precision("bf16")

    @scope
    def fails():
        nn.Bilinear(2, 2, 2)(X[:, :2], X[:, :2])
        raise KeyError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError):
            fails()
    assert scope.unreached
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


@pytest.mark.parametrize("shared", [True, False])
def test_threads(model, shared):
    """Each thread has its own scope; one object may be entered in all of them."""
    wanted = {name: results(model, name) for name in (None, "bf16", "fp8_e4m3")}
    scopes = {name: tt.matmul_precision(name) for name in wanted}
    barrier = threading.Barrier(6)

    def run(name):
        barrier.wait(30)
        scope = scopes[name] if shared else tt.matmul_precision(name)
        for _ in range(20):
            with scope, torch.no_grad():
                if not torch.equal(model(X), wanted[name]):
                    return False
        return torch.equal(results(model, "bf16"), wanted["bf16"])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, [*wanted] * 2))
    if shared:
        assert scopes["bf16"].calls == {"0": 40, "1": 40}


def test_other_threads_compute_as_usual(model):
    plain = model(X)
    with tt.matmul_precision("bf16"), ThreadPoolExecutor(1) as pool:
        assert torch.equal(pool.submit(model, X).result(), plain)


def test_switches_of_overlapping_scopes():
    """The last scope that ends restores what PyTorch may choose."""
    before, inside, done = switches(), threading.Event(), threading.Event()

    def run():
        with tt.matmul_precision("bf16"):
            inside.set()
            done.wait(30)

    thread = threading.Thread(target=run)
    with tt.matmul_precision("bf16"):
        thread.start()
        inside.wait(30)
    assert switches() == (False, False)
    done.set()
    thread.join()
    assert switches() == before


@pytest.mark.parametrize("left", FORMATS)
def test_pairs_of_formats(left):
    """Any two formats can be multiplied, but for one split precision."""
    x = torch.randn(3, 40, generator=torch.Generator().manual_seed(1)).numpy()
    for right in FORMATS:
        if ("tf32x3" in (left, right)) and left != right:
            with pytest.raises(ValueError, match="tf32x3 must be the format of both"):
                way_of(operand_format(left), operand_format(right), Unit())
            continue
        way = way_of(operand_format(left), operand_format(right), Unit())
        found, exact = way.multiply(x, x.T.copy()), x @ x.T
        assert found.dtype == "float32"
        assert abs(found - exact).max() < 0.3 * abs(exact).max()


def test_only_some_layers(model):
    both, plain = results(model, "bf16"), model(X)
    with tt.matmul_precision("bf16", only=["0"]) as scope:
        first = model(X)
    assert scope.calls == {"0": 1}
    with tt.matmul_precision("bf16", skip=["[1-9]"]) as scope:
        assert torch.equal(model(X), first)
    assert not torch.equal(first, both)
    assert not torch.equal(first, plain)


def test_codes():
    """Codes of FP8 are multiplied as they are, times their scales."""
    a, b = X[:, :64].to(torch.float8_e4m3fn), X[:, 6:].T.to(torch.float8_e4m3fn)
    rows, columns = torch.rand(5, 1), torch.rand(1, 5)
    bias, one = torch.randn(5), torch.tensor(0.5)
    with tt.matmul_precision("f32"):
        sums = a.float() @ b.float()
    with tt.matmul_precision("mxfp4", device=None) as scope:
        found = torch._scaled_mm(a, b, rows, columns, bias, out_dtype=torch.float32)
        assert torch.equal(found, sums * rows * columns + bias)
        found = torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)
        assert torch.equal(found, (sums * 0.25).bfloat16())
        found = torch._scaled_mm(a, b, one, one, scale_result=one)
        codes = (sums * 0.25 / 0.5).to(torch.float8_e4m3fn)
        assert torch.equal(found.view(torch.uint8), codes.view(torch.uint8))
        kinds = nn.functional.ScalingType
        found = nn.functional.scaled_mm(
            a,
            b,
            rows,
            kinds.RowWise,
            columns,
            kinds.RowWise,
            output_dtype=torch.float32,
        )
        assert torch.equal(found, sums * rows * columns)
        plain = torch.mm(a, b)
        codes = sums.to(torch.float8_e4m3fn)
        assert torch.equal(plain.view(torch.uint8), codes.view(torch.uint8))
    assert scope.calls == {"": 5}


@pytest.mark.parametrize("kinds", [("e4m3fn", "e4m3fn"), ("e4m3fn", "e5m2")])
def test_codes_on_a_device(kinds):
    types = [getattr(torch, f"float8_{kind}") for kind in kinds]
    a, b = X[:, :64].to(types[0]), X[:, 6:].T.to(types[1])
    arrays = tt.to_numpy(a), tt.to_numpy(b)
    one = torch.tensor(1.0)
    sums = tensor_core.matmul(*arrays, device="H100")
    with tt.matmul_precision("bf16", device="H100"):
        found = torch._scaled_mm(a, b, one, one, out_dtype=torch.float32)
    assert torch.equal(found, torch.from_numpy(sums))


def test_codes_that_a_device_does_not_have(model):
    codes = X.to(torch.float8_e4m3fn)
    message = "^a product outside of layers, activations x activations: .*A100"
    with tt.matmul_precision("bf16", device="A100"):
        model(X)
        with pytest.raises(ValueError, match=message):
            codes @ codes.T


def test_names_must_be_names():
    for given in ({"precision": ""}, {"weights": ""}, {"precision": "bf16:"}):
        with pytest.raises(ValueError, match="must be one of"):
            tt.matmul_precision(**given)
    with pytest.raises(TypeError, match="only must be strings; got 1"):
        tt.matmul_precision("bf16", only=[1])
    with pytest.raises(ValueError, match="gradients: format must be one of"):
        tt.matmul_precision("bf16", gradients="fp9")
