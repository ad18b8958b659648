"""Convolutions of PyTorch in other precisions, against loops over their windows."""

import math

import numpy as np
import pytest

from tests.support.layer_products import BOTH, composed

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
given, st = hypothesis.given, hypothesis.strategies

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402
from tf32dtype.interop.torch.hook import convolution  # noqa: E402

pytestmark = pytest.mark.once

F32 = np.float32
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)


def windows(x, weight, outputs, stride, padding, dilation, groups):
    """Return (groups, images x outputs, k), with zeros outside of the images."""
    kernel = weight.shape[2:]
    each = x.shape[1] // groups
    found = np.zeros((groups, len(x), *outputs, each, *kernel), F32)
    for image, at, inside in (
        (n, at, inside)
        for n in range(len(x))
        for at in np.ndindex(*outputs)
        for inside in np.ndindex(*kernel)
    ):
        where = [
            o * stride - padding + i * dilation for o, i in zip(at, inside, strict=True)
        ]
        if all(0 <= w < size for w, size in zip(where, x.shape[2:], strict=True)):
            values = x[(image, slice(None), *where)].reshape(groups, each)
            found[(slice(None), image, *at, slice(None), *inside)] = values
    return found.reshape(groups, len(x) * math.prod(outputs), -1)


def images(sums, count, outputs):
    """Return (images, channels, *outputs) of (groups, images x outputs, channels)."""
    groups, _, channels = sums.shape
    shaped = sums.reshape(groups, count, *outputs, channels)
    return np.moveaxis(shaped, (0, -1), (1, 2)).reshape(
        count, groups * channels, *outputs
    )


def forward(multiply, x, weight, outputs, steps):
    """Return a convolution, with a product of (groups, rows, k) and columns."""
    groups = steps[-1]
    columns = weight.reshape(groups, len(weight) // groups, -1)
    left = windows(x, weight, outputs, *steps)
    return images(multiply(left, np.swapaxes(columns, 1, 2)), len(x), outputs)


def back(multiply, x, weight, size, steps):
    """Return a transposed convolution, by a mirrored kernel and zeros between."""
    stride, padding, dilation, groups = steps
    spread = np.zeros((*x.shape[:2], *((n - 1) * stride + 1 for n in x.shape[2:])), F32)
    spread[(..., *[slice(None, None, stride)] * (x.ndim - 2))] = x
    mirrored = np.flip(weight, tuple(range(2, weight.ndim)))
    outer, inner, *kernel = mirrored.shape
    exchanged = mirrored.reshape(groups, outer // groups, inner, *kernel).swapaxes(1, 2)
    own = exchanged.reshape(groups * inner, outer // groups, *kernel)
    before = dilation * (kernel[0] - 1) - padding
    return forward(multiply, spread, own, size, (1, before, dilation, groups))


def of_weight(multiply, left, x, weight, steps):
    """Return the product of (groups, channels, images x outputs) and windows."""
    groups, outputs = steps[-1], left.shape[2:]
    rows = left.reshape(len(left), groups, -1, math.prod(outputs))
    rows = rows.transpose(1, 2, 0, 3).reshape(groups, rows.shape[2], -1)
    right = windows(x, weight, outputs, *steps)
    return multiply(rows, right).reshape(weight.shape)


def wide(x):
    return x.detach().float().numpy().copy()


def finished(sums, dtype, bias=None):
    if bias is not None:
        sums = sums + wide(bias).reshape(-1, *[1] * (sums.ndim - 2))
    return torch.from_numpy(np.ascontiguousarray(sums, F32)).to(dtype)


def check(found, expected):
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@st.composite
def calls(draw):
    """Draw the operands of a convolution, and how its kernel moves."""
    axes, groups = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from((1, 2, 3)))
    transposed = draw(st.booleans())
    kernel, stride, dilation = (draw(st.integers(1, 3)) for _ in range(3))
    padding = draw(st.integers(0, dilation * (kernel - 1) if transposed else 2))
    size = [dilation * (kernel - 1) + draw(st.integers(1, 4)) for _ in range(axes)]
    dtype, generator = draw(st.sampled_from(DTYPES)), torch.Generator()
    generator.manual_seed(draw(st.integers(0, 1000)))
    channels = [groups * draw(st.integers(1, 3)) for _ in range(2)]
    shape = channels[0], channels[1] // groups
    shape = shape if transposed else (channels[1], channels[0] // groups)
    x = torch.randn(draw(st.integers(1, 2)), channels[0], *size, generator=generator)
    weight = torch.randn(*shape, *[kernel] * axes, generator=generator)
    if draw(st.booleans()) and axes > 1:
        last = torch.channels_last if axes == 2 else torch.channels_last_3d
        x = x.contiguous(memory_format=last)
    bias = torch.randn(channels[1]).to(dtype) if draw(st.booleans()) else None
    more = draw(st.integers(0, max(stride, dilation) - 1)) if transposed else 0
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    if transposed:
        options["output_padding"] = more
    return x.to(dtype), weight.to(dtype), bias, options


forms = st.sampled_from(BOTH)


@given(calls(), forms, forms, st.sampled_from((1 << 26, 1 << 12)))
@hypothesis.settings(max_examples=100)
def test_convolutions(call, form, gradients, limit):
    x, weight, bias, options = call
    hypothesis.assume(form == gradients or "bf16x3" not in (form, gradients))
    steps = tuple(options[key] for key in ("stride", "padding", "dilation", "groups"))
    transposed = "output_padding" in options
    name = f"conv{'_transpose' * transposed}{x.ndim - 2}d"
    x.requires_grad_()
    weight.requires_grad_()
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "LIMIT", limit)
        with tt.matmul_precision(form, gradients=gradients) as scope:
            for mode in MODES:
                with mode():
                    found.append(getattr(functional, name)(x, weight, bias, **options))
            g = torch.randn(found[0].shape).to(x.dtype)
            found[0].backward(g)
    assert scope.calls == {"": 5}
    assert not scope.unreached
    a, w, z = wide(x), wide(weight), wide(g)

    def product(left, right):
        return lambda p, q: composed(p, q, left, right)

    if transposed:
        expected = back(product(form, form), a, w, g.shape[2:], steps)
        of_x = forward(product(gradients, form), z, w, x.shape[2:], steps)
        of_w = of_weight(product(form, gradients), a, z, w, steps)
    else:
        expected = forward(product(form, form), a, w, g.shape[2:], steps)
        of_x = back(product(gradients, form), z, w, x.shape[2:], steps)
        of_w = of_weight(product(gradients, form), z, a, w, steps)
    for result in found:
        check(result, finished(expected, x.dtype, bias))
    check(x.grad, finished(of_x, x.dtype))
    check(weight.grad, finished(of_w, x.dtype))


@pytest.mark.parametrize("form", BOTH)
@pytest.mark.parametrize(("groups", "size"), [(1, 3), (4, 3), (1, 1), (64, 3)])
def test_parts(form, groups, size, monkeypatch):
    """Results do not depend on how many windows are multiplied at once."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3, 64, 13, 11, generator=generator)
    x[1] *= 30
    x *= torch.logspace(-3, 1, 11)
    weight = torch.randn(64, 64 // groups, size, size, generator=generator)
    found = []
    for limit in (1 << 40, 1 << 18, 1):
        monkeypatch.setattr(convolution, "LIMIT", limit)
        x, weight = (t.detach().requires_grad_() for t in (x, weight))
        with tt.matmul_precision(form):
            y = functional.conv2d(x, weight, stride=1, groups=groups)
            y.backward(y.detach())
        found.append((y.detach(), x.grad, weight.grad))
    for some in found[1:]:
        for one, whole in zip(some, found[0], strict=True):
            assert torch.equal(one, whole)


def test_near_pytorch():
    """Strides, "same" padding, and images without a batch are as in PyTorch."""
    torch.manual_seed(0)
    layers = [
        (nn.Conv1d(4, 6, 3, padding="same"), (4, 9)),
        (nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2), (2, 4, 9, 8)),
        (nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), (2, 4, 9, 8)),
        (nn.Conv3d(2, 3, 2), (2, 5, 6, 7)),
        (nn.ConvTranspose2d(4, 6, 4, 2, 1, output_padding=1), (2, 4, 5, 6)),
        (nn.Conv2d(4, 4, (1, 3), padding=(0, 2), dilation=(1, 2)), (1, 4, 5, 6)),
    ]
    for layer, shape in layers:
        x = torch.randn(shape)
        plain = layer(x)
        for mode in MODES:
            with mode(), tt.matmul_precision("f32") as scope:
                found = layer(x)
            assert scope.calls == {"": 1}
            assert found.stride() == plain.stride()
            torch.testing.assert_close(found, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("which", ["input", "weight", "both"])
def test_channels_last(which):
    x, layer = torch.randn(2, 4, 6, 5), nn.Conv2d(4, 3, 3)
    if which != "weight":
        x = x.contiguous(memory_format=torch.channels_last)
    if which != "input":
        layer = layer.to(memory_format=torch.channels_last)
    plain = layer(x)
    with tt.matmul_precision("f32"):
        found = layer(x)
    assert found.stride() == plain.stride()


def test_empty():
    layer = nn.Conv2d(4, 6, 3)
    for form in BOTH:
        with tt.matmul_precision(form):
            assert layer(torch.ones(0, 4, 5, 5)).shape == (0, 6, 3, 3)


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_no_images(kind):
    layer = kind(4, 4, 3, groups=2)
    x = torch.ones(0, 4, 8, 8, requires_grad=True)
    with tt.matmul_precision("bf16"):
        layer(x).sum().backward()
    assert not layer.weight.grad.any()
    assert x.grad.shape == x.shape
