"""Quantized weights of other tools, compared with their own dequantization."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

W = np.random.default_rng(0).normal(0, 0.1, (256, 256)).astype(np.float32)


def loaded(path: Path) -> Any:
    return td.safetensors.load(path, blocks=True)["l.weight"]


@pytest.mark.parametrize("mode", ["affine", "mxfp4", "mxfp8", "nvfp4"])
@pytest.mark.parametrize(("bits", "group"), [(4, 64), (8, 32)])
def test_mlx(mode: str, bits: int, group: int, tmp_path: Path) -> None:
    mx = pytest.importorskip("mlx.core")
    given: dict[str, Any] = {"mode": mode}
    if mode == "affine":
        given |= {"bits": bits, "group_size": group}
    parts = mx.quantize(mx.array(W), **given)
    names = ("l.weight", "l.scales", "l.biases")
    mx.save_safetensors(
        str(tmp_path / "model.safetensors"), dict(zip(names, parts, strict=False))
    )
    (tmp_path / "config.json").write_text(json.dumps({"quantization": given}))
    # bfloat16 has all products of these elements and scales.
    theirs = np.array(mx.dequantize(*parts, **given).astype(mx.float32))
    ours = loaded(tmp_path).dequantize()
    if mode == "affine":  # MLX rounds the product and the sum
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=4e-8)
    else:
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_compressed_tensors(bits: int, symmetric: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("compressed_tensors")
    from compressed_tensors.compressors.pack_quantized import base
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from safetensors.torch import save_file

    weights = QuantizationArgs(
        num_bits=bits, symmetric=symmetric, strategy="group", group_size=64
    )
    scheme = QuantizationScheme(targets=["Linear"], weights=weights)
    groups, half = torch.tensor(W).reshape(256, 4, 64), 1 << bits - 1
    state = {"weight": torch.tensor(W).bfloat16()}
    if symmetric:
        state["weight_scale"] = (groups.abs().amax(-1) / (half - 1)).bfloat16()
    else:
        low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
        scale = ((high - low) / (2 * half - 1)).bfloat16()
        zero = (torch.round(-low / scale.float()) - half).clamp(-half, half - 1)
        state |= {"weight_scale": scale, "weight_zero_point": zero.to(torch.int8)}
    packed = base.PackedQuantizationCompressor.compress(state, scheme)
    path = tmp_path / "a.safetensors"
    save_file({f"l.{name}": x.contiguous() for name, x in packed.items()}, path)
    packed["weight_scale"] = packed["weight_scale"].float()
    theirs = base.PackedQuantizationCompressor.decompress(packed, scheme)["weight"]
    assert np.array_equal(loaded(path).dequantize(), theirs.float().numpy())


@pytest.mark.parametrize("format", ["nvfp4", "mxfp8"])
def test_comfy_kitchen(format: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    tensor = pytest.importorskip(f"comfy_kitchen.tensor.{format}")
    import dataclasses

    from safetensors.torch import save_file

    layout = getattr(tensor, f"TensorCore{format.upper()}Layout")
    codes, facts = layout.quantize(torch.tensor(W).bfloat16())
    tensors = {
        f"l.weight{end}": x
        for end, x in layout.state_dict_tensors(codes, facts).items()
    }
    marker = json.dumps({"format": format}).encode()
    tensors["l.comfy_quant"] = torch.tensor(list(marker), dtype=torch.uint8)
    save_file(tensors, tmp_path / "a.safetensors")
    facts = dataclasses.replace(facts, orig_dtype=torch.float32)
    theirs = layout.dequantize(codes, facts).numpy()
    assert np.array_equal(loaded(tmp_path / "a.safetensors").dequantize(), theirs)
