"""Attention of PyTorch in other precisions, against two products and a softmax."""

import itertools

import numpy as np
import pytest

from tests.support.layer_products import BOTH, composed

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
given, st = hypothesis.given, hypothesis.strategies

from torch import nn  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402

pytestmark = pytest.mark.once

attend = nn.functional.scaled_dot_product_attention
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)


def product(a, b, left, right):
    arrays = (x.detach().float().numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(composed(*arrays, left, right)))


def expected(operands, options, mask, g, roles):
    """Return the result and the gradients of attention, each a float32 tensor."""
    q, k, v = (x.detach().float() for x in operands)
    count = q.shape[1] // k.shape[1]
    shared = k.shape[:2]
    k, v = (x.repeat_interleave(count, 1) for x in (k, v))
    scale = options["scale"] or q.shape[-1] ** -0.5
    acts, cache, probs, grads = roles
    scores = product(q, k.mT, acts, cache) * scale
    if options["is_causal"]:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    if mask is not None:
        as_float = mask.float()
        if mask.dtype == torch.bool:
            as_float = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        scores = scores + as_float
    p = torch.softmax(scores, -1)
    p = p.masked_fill((scores == -torch.inf).all(-1, keepdim=True), 0)
    result = product(p, v, probs, cache)
    rounded = result.to(operands[0].dtype).float()
    z = g.float()
    of_p = product(z, v.mT, grads, cache)
    of_v = product(p.mT, z, probs, grads)
    of_scores = p * (of_p - (z * rounded).sum(-1, keepdim=True))
    of_q = product(of_scores, k, grads, cache) * scale
    of_k = product(of_scores.mT, q, grads, acts) * scale
    if count > 1:
        of_k, of_v = (x.unflatten(1, (shared[1], -1)).sum(2) for x in (of_k, of_v))
    return result, of_q, of_k, of_v


@st.composite
def calls(draw):
    """Draw queries, keys, values, a mask and options."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    dtype, shared = draw(st.sampled_from(DTYPES)), draw(st.sampled_from((1, 2, 4)))
    size, rows, keys = (draw(st.sampled_from((1, 3, 8, 33))) for _ in range(3))
    layout = draw(st.sampled_from(("plain", "heads last", "strided")))

    def tensor(heads, length):
        if layout == "heads last":
            x = torch.randn(2, length, heads, size, generator=generator).transpose(1, 2)
        else:
            x = torch.randn(2, heads, length, 2 * size, generator=generator)
            x = x[..., :size] if layout == "strided" else x[..., :size].contiguous()
        return x.to(dtype).requires_grad_()

    operands = tensor(4, rows), tensor(shared, keys), tensor(shared, keys)
    options = {
        "scale": draw(st.sampled_from((None, 0.3))),
        "is_causal": draw(st.booleans()),
        "enable_gqa": shared != 4,
    }
    mask = None
    if not options["is_causal"]:
        shape = draw(st.sampled_from(((rows, keys), (2, 1, rows, keys), (1, keys))))
        mask = torch.randn(shape, generator=generator)
        mask = draw(st.sampled_from((None, mask.to(dtype), mask > -1, mask > 9)))
    return operands, options, mask


def check(found, wanted, dtype):
    torch.testing.assert_close(found.detach(), wanted.to(dtype), rtol=0, atol=0)


forms = st.sampled_from([x for x in BOTH if x != "bf16x3"])


@given(calls(), forms, forms, forms, forms)
@hypothesis.settings(max_examples=200)
def test_attention(call, acts, cache, probs, grads):
    operands, options, mask = call
    found = []
    with tt.matmul_precision(
        activations=acts, kv_cache=cache, probabilities=probs, gradients=grads
    ) as scope:
        for mode in MODES:
            with mode():
                found.append(attend(*operands, attn_mask=mask, **options))
        g = torch.randn(found[0].shape).to(found[0].dtype)
        gradients = torch.autograd.grad(found[0], operands, g)
    assert scope.calls == {"": 11}
    assert not scope.unreached
    result, *others = expected(operands, options, mask, g, (acts, cache, probs, grads))
    for one in found:
        check(one, result, g.dtype)
    for one, wanted in zip(gradients, others, strict=True):
        check(one, wanted, g.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_near_pytorch(dtype):
    """Results, gradients and the order in memory are those of PyTorch."""
    torch.manual_seed(0)
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    masks = None, torch.rand(5, 7) > 0.3, torch.randn(2, 4, 5, 7, dtype=dtype)
    masks[1][2] = False
    for mask, last in itertools.product(masks, (False, True)):
        shapes = ((2, 5, 4, 8), (2, 7, 4, 8)) if last else ((2, 4, 5, 8), (2, 4, 7, 8))
        q, k, v = (torch.randn(shapes[i > 0], dtype=dtype) for i in range(3))
        if last:
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        operands = [x.requires_grad_() for x in (q, k, v)]
        plain = attend(*operands, attn_mask=mask)
        wanted = torch.autograd.grad(plain.sum(), operands)
        with tt.matmul_precision("f32"):
            found = attend(*operands, attn_mask=mask)
            gradients = torch.autograd.grad(found.sum(), operands)
        for one, other in zip((found, *gradients), (plain, *wanted), strict=True):
            assert one.stride() == other.stride()
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_logsumexp():
    operation = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    q, k, v = torch.randn(3, 2, 4, 5, 8)
    mask = torch.zeros(5, 5)
    mask[2] = -torch.inf
    plain = operation(q, k, v, attn_mask=mask)[1]
    with tt.matmul_precision("f32"):
        found = operation(q, k, v, attn_mask=mask)[1]
    assert found.stride() == plain.stride()
    torch.testing.assert_close(found, plain)


APART = {
    "dropout": (((2, 4, 5, 8),) * 3, {"dropout_p": 0.5}),
    "no batch": (((4, 5, 8),) * 3, {}),
    "sizes of heads": (((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)), {}),
    "mask with a gradient": (((2, 4, 5, 8),) * 3, {"attn_mask": 1}),
}


@pytest.mark.parametrize("case", APART)
def test_apart(case):
    """Operands that PyTorch's kernel is not for have the same roles."""
    shapes, options = APART[case]
    q, k, v = (torch.randn(shape, requires_grad=True) for shape in shapes)
    if "attn_mask" in options:
        options = {"attn_mask": torch.randn(5, 5, requires_grad=True)}
    found = []
    for mode in MODES:
        torch.manual_seed(1)
        with mode(), tt.matmul_precision(kv_cache="mxfp4") as scope:
            found.append(attend(q, k, v, **options))
        assert scope.calls == {"": 2}
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    torch.manual_seed(1)
    root = q.shape[-1] ** -0.25
    scores = product(q * root, (k * root).mT, "f32", "mxfp4")
    if "attn_mask" in options:
        scores = scores + options["attn_mask"]
    p = torch.dropout(torch.softmax(scores, -1), options.get("dropout_p", 0.0), True)
    check(found[0], product(p, v, "f32", "mxfp4"), torch.float32)


def test_layers_of_attention():
    layer = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    x = torch.randn(3, 5, 16)
    for mode in MODES:
        with mode(), tt.matmul_precision("bf16") as scope:
            layer(x, x, x, need_weights=False)
        assert scope.calls == {"": 3, "out_proj": 1}
        assert not scope.unreached


def test_operations_of_attention_have_its_roles():
    x, mask = torch.randn(1, 2, 4, 8), torch.zeros(4, 4, requires_grad=True)
    function = torch.nn.functional.scaled_dot_product_attention
    operation = torch.ops.aten.scaled_dot_product_attention
    results = []
    for one in (function, operation, operation.default):
        with tt.matmul_precision("bf16", kv_cache="fp8_e4m3"):
            results.append(one(x, x, x, mask))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
