"""Products of PyTorch in other precisions, against compositions from td.matmul."""

import numpy as np
import pytest

from tests.support.layer_products import BOTH, composed

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
given, st = hypothesis.given, hypothesis.strategies

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402

pytestmark = pytest.mark.once

F32 = np.float32
ROWS = torch.contiguous_format
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
LAYOUTS = ("plain", "transposed", "strided", "expanded", "offset", "negated")
MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)
SIZES = st.sampled_from((0, 1, 2, 3, 7, 16, 33, 130))
FACTORS = st.sampled_from((1, 0, -1, 2, 0.3))


def numbers(shape, seed, dtype=torch.float32, layout="plain"):
    """Return a tensor with a wide range, and a few special values."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7, shape)
    whole = torch.from_numpy(np.asarray(x, F32)).to(dtype)
    if layout == "transposed" and whole.ndim > 1:
        return whole.mT.contiguous().mT
    if layout == "strided":
        wide = torch.zeros(*whole.shape[:-1], 2 * whole.shape[-1], dtype=dtype)
        wide[..., ::2] = whole
        return wide[..., ::2]
    if layout == "expanded" and whole.shape[0]:
        return whole[:1].expand(whole.shape)
    if layout == "offset":
        return torch.cat([whole[:1], whole])[1:] if len(whole) else whole
    return torch._neg_view(whole) if layout == "negated" else whole


def wide(x):
    """Return values as a float32 array."""
    return x.detach().resolve_neg().float().numpy().copy()


def bits(x):
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    return x.detach().contiguous().view(sizes[x.element_size()])


def check(found, expected, what=""):
    assert found.dtype == expected.dtype, what
    assert found.shape == expected.shape, what
    assert torch.equal(bits(found), bits(expected)), what


def finished(sums, dtype, c=None, alpha=1, beta=1):
    """Return alpha sums + beta c, each step rounded to float32, in a dtype."""
    sums = np.asarray(sums, F32)
    with np.errstate(all="ignore"):
        sums = sums * F32(alpha)
        if c is not None and beta != 0:
            sums = sums + wide(c) * F32(beta)
    return torch.from_numpy(np.asarray(sums, F32)).to(dtype)


#: Operations with operands (batch, m, k) and (batch, k, n): the call, and the product
#: of arrays with f(a, b).
PLAIN = {
    "mm": (lambda a, b: torch.mm(a[0], b[0]), lambda f, a, b: f(a[0], b[0])),
    "out": (
        lambda a, b: torch.mm(a[0], b[0], out=a.new_empty(0)),
        lambda f, a, b: f(a[0], b[0]),
    ),
    "bmm": (torch.bmm, lambda f, a, b: f(a, b)),
    "matmul": (lambda a, b: a @ b, lambda f, a, b: f(a, b)),
    "stacks": (
        lambda a, b: a[None] @ b[:, None],
        lambda f, a, b: f(
            np.repeat(a[None], len(b), 0), np.repeat(b[:, None], len(a), 1)
        ),
    ),
    "einsum": (
        lambda a, b: torch.einsum("bij,bjk->bik", a, b),
        lambda f, a, b: f(a, b),
    ),
    "mv": (
        lambda a, b: torch.mv(a[0], b[0, :, 0]),
        lambda f, a, b: f(a[0], b[0, :, :1])[:, 0],
    ),
    "vector": (
        lambda a, b: a[0, 0] @ b[0],
        lambda f, a, b: f(a[0, :1], b[0])[0],
    ),
    "dot": (
        lambda a, b: torch.dot(a[0, 0], b[0, :, 0]),
        lambda f, a, b: f(a[0, :1], b[0, :, :1])[0, 0],
    ),
    "tensordot": (
        lambda a, b: torch.tensordot(a[0], b[0], 1),
        lambda f, a, b: f(a[0], b[0]),
    ),
    "linear": (
        lambda a, b: functional.linear(a[0], b[0].mT),
        lambda f, a, b: f(a[0], b[0]),
    ),
    "foreach": (
        lambda a, b: torch.ops.aten._foreach_mm([a[0]], [b[0]])[0],
        lambda f, a, b: f(a[0], b[0]),
    ),
}
#: Operations that also add (batch, m, n), with alpha and beta.
ADDING = {
    "addmm": (
        lambda c, a, b, s: torch.addmm(c[0], a[0], b[0], **s),
        lambda f, a, b: f(a[0], b[0]),
        lambda c: c[0],
    ),
    "addmm_": (
        lambda c, a, b, s: c[0].clone().addmm_(a[0], b[0], **s),
        lambda f, a, b: f(a[0], b[0]),
        lambda c: c[0],
    ),
    "row": (
        lambda c, a, b, s: torch.addmm(c[0, 0], a[0], b[0], **s),
        lambda f, a, b: f(a[0], b[0]),
        lambda c: c[0, 0],
    ),
    "baddbmm": (
        lambda c, a, b, s: torch.baddbmm(c, a, b, **s),
        lambda f, a, b: f(a, b),
        lambda c: c,
    ),
    "addbmm": (
        lambda c, a, b, s: torch.addbmm(c[0], a, b, **s),
        lambda f, a, b: f(np.concatenate([*a], 1), np.concatenate([*b], 0)),
        lambda c: c[0],
    ),
    "addmv": (
        lambda c, a, b, s: torch.addmv(c[0, :, 0], a[0], b[0, :, 0], **s),
        lambda f, a, b: f(a[0], b[0, :, :1])[:, 0],
        lambda c: c[0, :, 0],
    ),
}


@st.composite
def operands(draw):
    """Draw a dtype and operands (batch, m, k), (batch, k, n) and (batch, m, n)."""
    batch, m, k, n = draw(st.sampled_from((1, 3))), *(draw(SIZES) for _ in range(3))
    dtype, seed = draw(st.sampled_from(DTYPES)), draw(st.integers(0, 1000))
    layouts = [draw(st.sampled_from(LAYOUTS)) for _ in range(3)]
    shapes = (batch, m, k), (batch, k, n), (batch, m, n)
    return [
        numbers(shape, seed + i, dtype, layout)
        for i, (shape, layout) in enumerate(zip(shapes, layouts, strict=True))
    ]


forms = st.sampled_from(BOTH)


@given(operands(), forms, st.sampled_from([*PLAIN]), st.sampled_from(MODES))
@hypothesis.settings(max_examples=400)
def test_products(abc, form, name, mode):
    a, b, _ = abc
    call, expect = PLAIN[name]
    is_vector = name in ("mv", "vector", "dot")
    hypothesis.assume(not is_vector or (a.shape[1] and b.shape[2]))
    # einsum multiplies elements if k = 1, tensordot if the result is a number.
    hypothesis.assume(name != "einsum" or a.shape[2] != 1)
    hypothesis.assume(name != "tensordot" or a.shape[1] != 1 or b.shape[2] != 1)
    with mode(), tt.matmul_precision(form) as scope:
        found = call(a, b)
    assert scope.calls.total() == 1 or not found.numel()
    sums = expect(lambda x, y: composed(x, y, form), wide(a), wide(b))
    check(found, finished(sums, a.dtype))


@given(
    operands(),
    forms,
    st.sampled_from([*ADDING]),
    st.sampled_from(MODES),
    FACTORS,
    FACTORS,
)
@hypothesis.settings(max_examples=400)
def test_products_and_sums(abc, form, name, mode, alpha, beta):
    a, b, c = abc
    call, expect, added = ADDING[name]
    hypothesis.assume(all(a.shape) and all(b.shape))
    if beta == 0:
        c = torch.full_like(c, torch.nan)
    with mode(), tt.matmul_precision(form) as scope:
        found = call(c, a, b, {"alpha": alpha, "beta": beta})
    assert scope.calls.total() == 1 or not found.numel()
    sums = expect(lambda x, y: composed(x, y, form), wide(a), wide(b))
    check(found, finished(sums, a.dtype, added(c), alpha, beta))


@given(operands(), forms, st.booleans(), st.sampled_from(MODES))
def test_linear(abc, form, has_bias, mode):
    """A layer multiplies all rows of its input at once."""
    x, b, _ = abc
    layer = nn.Linear(*b.shape[1:], bias=has_bias, dtype=x.dtype)
    with torch.no_grad():
        layer.weight.copy_(b[0].mT)
    with mode(), tt.matmul_precision(form) as scope:
        found = layer(x.contiguous())
    assert scope.calls == {"": 1}
    sums = composed(wide(x.flatten(0, 1)), wide(b[0]), form)
    expected = finished(sums, x.dtype, layer.bias)
    check(found, expected.reshape(found.shape))


@given(operands(), forms, forms, st.booleans())
def test_backward(abc, form, gradients, is_layer):
    a, b, g = (x[0] for x in abc)
    # PyTorch exchanges the operands for matrices whose columns are contiguous.
    hypothesis.assume(min(*a.shape, *b.shape) > 1)
    split = "bf16x3"
    hypothesis.assume(form == gradients or split not in (form, gradients))
    a, b = (x.resolve_neg().clone(memory_format=ROWS).requires_grad_() for x in (a, b))
    with tt.matmul_precision(form, gradients=gradients) as scope:
        if is_layer:
            layer = nn.Linear(*b.shape, bias=False, dtype=b.dtype)
            layer.weight = nn.Parameter(b.detach().mT.contiguous())
            layer(a).backward(g)
            found = a.grad, layer.weight.grad
        else:
            (a @ b).backward(g)
            found = a.grad, b.grad
    assert scope.calls == {"": 3}
    x, y, z = wide(a), wide(b), wide(g)
    of_a = finished(composed(z, y.T, gradients, form), a.dtype)
    check(found[0], of_a, "first operand")
    if is_layer:
        of_b = composed(z.T, x, gradients, form)
    else:
        of_b = composed(x.T, z, form, gradients)
    check(found[1], finished(of_b, a.dtype), "second operand")


@pytest.mark.parametrize("form", BOTH)
@pytest.mark.parametrize(
    "shape", [(0, 4, 5, 6), (2, 0, 5, 6), (2, 4, 0, 6), (2, 4, 5, 0)]
)
def test_empty(form, shape):
    batch, m, k, n = shape
    a, b = torch.ones(batch, m, k), torch.ones(batch, k, n)
    c = torch.ones(batch, m, n)
    with tt.matmul_precision(form) as scope:
        assert torch.equal(a @ b, c * k)
        assert torch.equal(torch.baddbmm(c, a, b), c * (k + 1))
    assert not scope.unreached


@pytest.mark.parametrize("form", ["f32", "bf16", "fp8_e4m3", "fp8_e5m2:row"])
def test_special_values(form):
    a = numbers((5, 40), 1)
    b = numbers((40, 6), 2)
    a[0, 3], a[1, 5], b[7, 2] = torch.nan, torch.inf, -torch.inf
    with tt.matmul_precision(form):
        check(a @ b, finished(composed(wide(a), wide(b), form), a.dtype))


@pytest.mark.parametrize(
    ("form", "device"),
    [("f16", "V100"), ("bf16", "A100"), ("fp8_e4m3", "H100"), ("nvfp4", "B200")],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_devices(form, device, dtype):
    a, b = numbers((9, 70), 1, dtype), numbers((70, 12), 2, dtype, "transposed")
    with tt.matmul_precision(form, device=device):
        found = a @ b
    check(found, finished(composed(wide(a), wide(b), form, device=device), dtype))


def test_values_that_a_format_does_not_have():
    model = nn.Sequential(nn.Linear(200, 4))
    x = torch.full((3, 200), torch.inf)
    message = "^layer '0', activations x weights: .*finite"
    with (
        tt.matmul_precision("fp8_e4m3", scale="tile"),
        pytest.raises(ValueError, match=message),
    ):
        model(x)


@pytest.mark.parametrize("form", ["bf16", "nvfp4"])
def test_results_that_have_no_room(form):
    class Outer(nn.Module):
        def forward(self, x):
            return x @ x.T

    model = nn.Sequential(Outer())
    message = "^layer '0', activations x activations: Unable to allocate"
    with tt.matmul_precision(form), pytest.raises(MemoryError, match=message):
        model(torch.ones(1, 1).expand(1 << 23, 1))


@pytest.mark.parametrize("shape", [(5, 40, 6), (1, 300, 70), (64, 33, 1), (0, 3, 2)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bfloat16_as_it_is(shape, layout):
    """Tensors of bfloat16 are multiplied without a conversion, with the same bits."""
    m, k, n = shape
    a = numbers((3, m, k), 1, torch.bfloat16, layout)
    b = numbers((3, k, n), 2, torch.bfloat16, "transposed").clone()
    b[0, 0, 0], b[1, 1, 0], b[2, 2, 0] = torch.nan, torch.inf, 2.0**-130
    for x, y in ((a, b), (b.mT, a.mT)):
        with tt.matmul_precision("bf16"):
            found = x @ y
        check(found, finished(composed(wide(x), wide(y), "bf16"), x.dtype))
