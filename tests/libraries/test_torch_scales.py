"""Weights with scales that we write, dequantized in PyTorch by published formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

torch = pytest.importorskip("torch")
load_file = pytest.importorskip("safetensors.torch").load_file

pytestmark = pytest.mark.once

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def written(array: Any, scheme: str, path: Path) -> dict[str, Any]:
    td.safetensors.save(path, {"m.w": array}, scheme=scheme)
    return {name.removeprefix("m.w"): x for name, x in load_file(path).items()}


def numbers() -> Any:
    x = np.random.default_rng(5).standard_normal((256, 384), np.float32)
    return x * np.exp2(np.arange(256)[:, None] / 16).astype(np.float32)


def unpacked(packed: Any) -> Any:
    """Unpack two codes per byte, the low half first."""
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).long()
    values = torch.tensor([*E2M1, *(-x for x in E2M1)])
    return values[codes]


def equal(array: Any, tensor: Any) -> None:
    assert tensor.dtype == torch.float32
    assert array.dequantize().tobytes() == tensor.numpy().tobytes()


@pytest.mark.parametrize("scheme", ["deepseek", "vllm"])
def test_tiles(scheme, tmp_path):
    array = td.blocks.quantize_tiles(numbers())
    found = written(array, scheme, tmp_path / "a")
    scales = found["_scale_inv" if scheme == "deepseek" else "_scale"]
    wide = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
    equal(array, found[""].float() * wide)


@pytest.mark.parametrize("tile", [(1, None), (None, None)])
@pytest.mark.parametrize("scales", ["float32", "bfloat16"])
def test_rows_and_matrices(tile, scales, tmp_path):
    array = td.blocks.quantize_tiles(numbers(), tile=tile, scale_format=scales)
    found = written(array, "vllm", tmp_path / "a")
    equal(array, found[""].float() * found["_scale"].float())


def test_mxfp8(tmp_path):
    array = td.blocks.quantize(numbers(), "mxfp8_e4m3")
    found = written(array, "vllm", tmp_path / "a")
    scales = torch.exp2(found["_scale"].float() - 127).repeat_interleave(32, 1)
    equal(array, found[""].float() * scales)


def test_mxfp4(tmp_path):
    array = td.blocks.quantize(numbers(), "mxfp4")
    found = written(array, "gpt-oss", tmp_path / "a")
    scales = torch.exp2(found["_scales"].float() - 127)
    values = unpacked(found["_blocks"]) * scales[..., None]
    equal(array, values.reshape(256, 384))


def test_nvfp4(tmp_path):
    """Compare Model Optimizer's scale; vLLM's scale 1 / global may be a neighbor."""
    array = td.blocks.quantize(numbers(), "nvfp4")
    found = written(array, "modelopt", tmp_path / "a")
    scales = found["_scale"].float() * found["_scale_2"]
    equal(array, unpacked(found[""]) * scales.repeat_interleave(16, 1))
    found = written(array, "vllm", tmp_path / "b")
    scales = found["_scale"].float() * (1 / found["_global_scale"])
    values = unpacked(found["_packed"]) * scales.repeat_interleave(16, 1)
    again = td.safetensors.load(tmp_path / "b", blocks=True)["m.w"]
    equal(again, values)
    assert torch.allclose(torch.from_numpy(array.dequantize()), values, rtol=2.0**-22)
