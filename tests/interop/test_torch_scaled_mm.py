"""Operands of torch._scaled_mm: each value by the index of its scale."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tf32dtype as td  # noqa: E402
from tests.reference.codec import decode_code  # noqa: E402
from tests.reference.formats import FORMATS  # noqa: E402

pytestmark = pytest.mark.once

M, N, K = 200, 48, 96
KINDS = {
    "mxfp8_e4m3": ("float8_e4m3fn", 32, "float8_e8m0fnu"),
    "mxfp8_e5m2": ("float8_e5m2", 32, "float8_e8m0fnu"),
    "mxfp4": ("float4_e2m1fn", 32, "float8_e8m0fnu"),
    "nvfp4": ("float4_e2m1fn", 16, "float8_e4m3fn"),
}
each = pytest.mark.parametrize("format", KINDS)


def numbers(shape, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape)
    return (x * np.exp2(np.arange(shape[0])[:, None] % 9)).astype(np.float32)


def value(name, code):
    exact = decode_code(FORMATS[name], code)
    magnitude = exact.integer * 2.0**exact.exponent
    return -magnitude if exact.negative else magnitude


def values(data, scale, tensor_scale, format):
    """Decode rows whose scales are at 16 (r % 32) + 4 (r // 32) + c of tiles."""
    element, block, of_scales = KINDS[format]
    raw = data.contiguous().view(torch.uint8).tolist()
    if element == "float4_e2m1fn":
        raw = [[code for byte in row for code in (byte & 15, byte >> 4)] for row in raw]
    flat = scale.reshape(-1).view(torch.uint8).tolist()
    tiles = -(-(len(raw[0]) // block) // 4)
    whole = 1.0 if tensor_scale is None else float(tensor_scale)
    found = np.empty((len(raw), len(raw[0])))
    for r, k in np.ndindex(*found.shape):
        c = k // block
        tile = r // 128 * tiles + c // 4
        at = 512 * tile + 16 * (r % 32) + 4 * (r % 128 // 32) + c % 4
        scale_of_block = float(np.float32(whole * value(of_scales, flat[at])))
        found[r, k] = value(element, raw[r][k]) * scale_of_block
    return found


@each
def test_values(format):
    b = td.blocks.quantize(numbers((M, K)), format)
    t = b.to_torch_scaled_mm()
    assert t.data.is_contiguous()
    assert t.scale.is_contiguous()
    assert (t.tensor_scale is None) == (format != "nvfp4")
    np.testing.assert_array_equal(values(*t, format), b.dequantize(np.float64))
    second = b.T.to_torch_scaled_mm()
    assert second.data.shape == t.data.T.shape
    assert second.data.T.is_contiguous()
    assert second.data.T.view(torch.uint8).equal(t.data.view(torch.uint8))
    assert second.scale.view(torch.uint8).equal(t.scale.view(torch.uint8))


@each
def test_torch_takes_them(format):
    """Pass PyTorch's checks of dtypes and sizes, which the device "meta" has, too."""
    a = td.blocks.quantize(numbers((M, K)), format).to_torch_scaled_mm()
    b = td.blocks.quantize(numbers((K, N), 1), format, 0).to_torch_scaled_mm()
    tensors = [x.to("meta") for x in (a.data, b.data, a.scale, b.scale)]
    assert torch._scaled_mm(*tensors, out_dtype=torch.bfloat16).shape == (M, N)
    tensors[2] = tensors[2].reshape(-1)[:-1]
    with pytest.raises(RuntimeError, match="scale_a should have"):
        torch._scaled_mm(*tensors, out_dtype=torch.bfloat16)


@each
def test_torch_takes_tensor_scales(format):
    f = torch.nn.functional
    a = td.blocks.quantize(numbers((M, K)), format).to_torch_scaled_mm()
    b = td.blocks.quantize(numbers((K, N), 1), format, 0).to_torch_scaled_mm()
    recipes = [getattr(f.ScalingType, f"BlockWise1x{KINDS[format][1]}")]
    layouts = [f.SwizzleType.SWIZZLE_32_4_4]
    scales = [[x.scale.to("meta")] for x in (a, b)]
    if a.tensor_scale is not None:
        recipes.append(f.ScalingType.TensorWise)
        layouts.append(f.SwizzleType.NO_SWIZZLE)
        scales[0].append(a.tensor_scale.to("meta"))
        scales[1].append(b.tensor_scale.to("meta"))
    y = f.scaled_mm(
        a.data.to("meta"),
        b.data.to("meta"),
        scales[0],
        recipes,
        scales[1],
        recipes,
        layouts,
        layouts,
    )
    assert y.shape == (M, N)


def test_no_rows():
    t = td.blocks.quantize(numbers((0, K)), "mxfp4").to_torch_scaled_mm()
    assert t.data.shape == (0, K // 2)
    assert t.scale.shape == (0, 4)


def test_errors():
    q = td.blocks.quantize
    x = numbers((4, 64))
    wrong = [
        (q(x, "mxfp6_e2m3"), "got mxfp6_e2m3 in blocks of 32"),
        (q(x, "tcfp12", scale_format="float8_e8m0fnu"), "got tcfp12"),
        (q(x, "mxfp8", block_size=16), "got mxfp8_e4m3 in blocks of 16"),
        (q(x, "nvfp4", scale_format="ue5m3"), "with scales of ue5m3"),
        (q(x[:, :48], "nvfp4"), "a multiple of 32; got (4, 48), axis 1"),
        (q(x[None], "mxfp4"), "shape must be that of a matrix"),
        (q(x[0], "mxfp4"), "got (64,), axis 0"),
    ]
    for array, text in wrong:
        with pytest.raises(ValueError, match=re.escape(text)):
            array.to_torch_scaled_mm()
