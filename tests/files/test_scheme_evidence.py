"""Schemes of more tools, and evidence: a weight is decoded correctly or rejected."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.files.test_schemes import (
    Array,
    Case,
    Tensors,
    draw,
    pack4,
    power_scales,
    saved,
    spread,
    stored,
    table,
    tiles,
    ue4m3_scales,
)
from tf32dtype._files.safetensors.dtypes import kind_of
from tf32dtype._files.safetensors.schemes import Evidence, find

pytestmark = pytest.mark.once

RNG = np.random.default_rng(5)
N, K = 128, 256


def swizzled(scales: Array) -> Array:
    """Store scales in cuBLAS' layout: row r of a tile at 16 (r % 32) + 4 (r // 32)."""
    rows, columns = scales.shape
    high, wide = -(-rows // 128) * 128, -(-columns // 4) * 4
    flat = np.zeros(high * wide, scales.dtype)
    for r, c in itertools.product(range(rows), range(columns)):
        tile = (r // 128) * (wide // 4) + c // 4
        at = 512 * tile + 16 * (r % 32) + 4 * (r % 128 // 32) + c % 4
        flat[at] = scales[r, c]
    return flat.reshape(high, wide)


def marker(**said: Any) -> Array:
    return np.frombuffer(json.dumps(said).encode(), np.uint8)


def comfy_nvfp4(shape: tuple[int, int] = (N, K)) -> Case:
    codes, values = draw("float4_e2m1fn", shape)
    scales, factors = ue4m3_scales((shape[0], shape[1] // 16))
    tensors = {
        "a.weight": codes[:, ::2] << 4 | codes[:, 1::2],
        "a.weight_scale": swizzled(scales).view(td.float8_e4m3fn),
        "a.weight_scale_2": np.array(2.0**-10, np.float32),
        "a.comfy_quant": marker(format="nvfp4"),
    }
    values = values * np.repeat(factors, 16, 1) * 2.0**-10
    return Case("comfyui", tensors, values, "nvfp4")


def comfy_mxfp8() -> Case:
    codes, values = draw("float8_e4m3fn", (32, K))
    scales, factors = power_scales((32, K // 32))
    tensors = {
        "a.weight": codes.view(td.float8_e4m3fn),
        "a.weight_scale": swizzled(scales),
        "a.comfy_quant": marker(format="mxfp8"),
    }
    values = values * np.repeat(factors, 32, 1)
    return Case("comfyui", tensors, values, "mxfp8_e4m3")


def comfy_tiles(stored: tuple[int, ...], format: str, said: str) -> Case:
    tile = (1, 200) if stored else (300, 200)
    case = tiles("comfyui", stored, tile, format=format)
    return case._replace(tensors=case.tensors | {"a.comfy_quant": marker(format=said)})


def scaled_fp8(stored: tuple[int, ...], tile: tuple[int, int]) -> Case:
    case = tiles("scaled-fp8", stored, tile, shape=(30, 256))
    tensors = dict(case.tensors)
    tensors["a.scale_weight"] = tensors.pop("a.weight_scale")
    return case._replace(tensors=tensors)


def deepseek_experts() -> Case:
    codes, values = draw("float4_e2m1fn", (64, 128))
    scales, factors = power_scales((64, 4))
    tensors = {
        "a.weight": pack4(codes).view(np.int8),
        "a.scale": scales.view(td.float8_e8m0fnu),
    }
    values = values * np.repeat(factors, 32, 1)
    return Case("deepseek-inference", tensors, values, "mxfp4")


def deepseek_inference(dtype: Any) -> Case:
    case = tiles("deepseek-inference", (3, 2), (128, 128), dtype, suffix="x")
    tensors = dict(case.tensors)
    tensors["a.scale"] = tensors.pop("a.weightx")
    return case._replace(tensors=tensors)


def minimax() -> Case:
    codes, values = draw("float8_e4m3fn", (16, 128))
    scales, factors = power_scales((16, 4))
    tensors = {
        "a.weight": codes.view(td.float8_e4m3fn),
        "a.weight_scale_inv": scales,
    }
    values = values * np.repeat(factors, 32, 1)
    return Case("minimax", tensors, values, "mxfp8_e4m3")


def mlx_blocks(which: str) -> Case:
    element, size, block = {
        "mxfp4": ("float4_e2m1fn", 4, 32),
        "mxfp8_e4m3": ("float8_e4m3fn", 8, 32),
        "nvfp4": ("float4_e2m1fn", 4, 16),
    }[which]
    codes, values = draw(element, (6, 128))
    grid = (6, 128 // block)
    scales, factors = ue4m3_scales(grid) if block == 16 else power_scales(grid)
    words = np.zeros((6, 128 * size // 32), np.uint32)
    for i in range(32 // size):
        words |= codes[:, i :: 32 // size].astype(np.uint32) << np.uint32(size * i)
    tensors = {"a.weight": words, "a.scales": scales}
    return Case("mlx", tensors, values * np.repeat(factors, block, 1), which)


CASES: dict[str, Callable[[], Case]] = {
    "comfyui, nvfp4": comfy_nvfp4,
    "comfyui, nvfp4, padded": lambda: comfy_nvfp4((48, 96)),
    "comfyui, mxfp8": comfy_mxfp8,
    "comfyui, fp8": lambda: comfy_tiles((), "float8_e4m3fn", "float8_e4m3fn"),
    "comfyui, e5m2": lambda: comfy_tiles((), "float8_e5m2", "float8_e5m2"),
    "comfyui, int8": lambda: comfy_tiles((300, 1), "int8", "int8_tensorwise"),
    "scaled fp8": lambda: scaled_fp8((), (30, 256)),
    "scaled fp8, rows": lambda: scaled_fp8((30, 1), (1, 256)),
    "scaled fp8, blocks": lambda: scaled_fp8((30, 4, 1), (1, 64)),
    "deepseek inference": lambda: deepseek_inference(np.float32),
    "deepseek inference, powers": lambda: deepseek_inference(td.float8_e8m0fnu),
    "deepseek experts": deepseek_experts,
    "minimax": minimax,
    "modelopt, four axes": lambda: tiles("modelopt", (3, 1, 2, 1), (128, 128)),
    "mlx, mxfp4": lambda: mlx_blocks("mxfp4"),
    "mlx, mxfp8": lambda: mlx_blocks("mxfp8_e4m3"),
    "mlx, nvfp4": lambda: mlx_blocks("nvfp4"),
}
#: Cases that are read, but that are written with fewer axes.
READ_ONLY = {"scaled fp8, blocks", "modelopt, four axes"}


@pytest.mark.parametrize("which", CASES)
def test_read_and_written(which: str, tmp_path: Path) -> None:
    scheme, tensors, values, kind, _ = CASES[which]()
    before = saved(tmp_path / "a", tensors)
    with td.safetensors.open(tmp_path / "a") as f:
        assert f.weights()["a.weight"].scheme == scheme
    loaded = td.safetensors.load(tmp_path / "a", blocks=True)
    assert loaded.keys() == {"a.weight"}
    weight = loaded["a.weight"]
    is_tiles = isinstance(weight, td.blocks.TileArray)
    assert kind == weight.format + " tiles" * is_tiles
    assert np.array_equal(weight.dequantize(np.float64), values)
    td.safetensors.save(tmp_path / "b", loaded, scheme=scheme)
    if which in READ_ONLY:
        again = td.safetensors.load(tmp_path / "b", blocks=True)
        assert again["a.weight"] == weight
    else:
        assert stored(tmp_path / "b") == before
    with pytest.warns(UserWarning, match="1 tensor, such as"):
        td.safetensors.load(tmp_path / "a")


def test_comfyui_says_it_in_metadata(tmp_path: Path) -> None:
    _, tensors, values, _, _ = comfy_nvfp4()
    del tensors["a.comfy_quant"]
    said = json.dumps({"layers": {"a": {"format": "nvfp4"}}})
    saved(tmp_path / "a", tensors, {"_quantization_metadata": said})
    weight = td.safetensors.load(tmp_path / "a", blocks=True)["a.weight"]
    assert np.array_equal(weight.dequantize(np.float64), values)


@pytest.mark.parametrize(
    "said",
    [
        {"format": "nvfp5"},
        {"format": "int8_tensorwise", "convrot": True},
        {"format": "float8_e4m3fn"},
        {},
    ],
)
def test_other_markers_are_refused(said: dict[str, Any], tmp_path: Path) -> None:
    tensors = comfy_nvfp4().tensors | {"a.comfy_quant": marker(**said)}
    saved(tmp_path / "a", tensors)
    with pytest.raises(ValueError, match=r"tensor 'a\.weight' .*; its marker says"):
        td.safetensors.load(tmp_path / "a", blocks=True)


# -- integers -----------------------------------------------------------------------


def words_of(codes: Array, bits: int) -> Array:
    """Pack codes into words of 32 bits, the first code in the lowest bits."""
    each = 32 // bits
    padded = np.zeros((len(codes), -(-codes.shape[1] // each) * each), np.uint32)
    padded[:, : codes.shape[1]] = codes
    words = np.zeros((len(codes), padded.shape[1] // each), np.uint32)
    for i in range(each):
        words |= padded[:, i::each] << np.uint32(bits * i)
    return words


@pytest.mark.parametrize("zero_points", [False, True])
@pytest.mark.parametrize("dtype", [td.bfloat16, np.float16, np.float32])
@pytest.mark.parametrize(("bits", "length", "group"), [(4, 90, 30), (8, 64, 32)])
def test_pack_quantized(
    bits: int, length: int, group: int, dtype: Any, zero_points: bool, tmp_path: Path
) -> None:
    rows, half = 37, 1 << bits - 1
    codes = RNG.integers(0, 2 * half, (rows, length))
    grid = (rows, length // group)
    scales = RNG.uniform(0.01, 0.1, grid).astype(dtype)
    zeros = RNG.integers(0, 2 * half, grid) if zero_points else np.full(grid, half)
    tensors = {
        "a.weight_packed": words_of(codes, bits).view(np.int32),
        "a.weight_scale": scales,
        "a.weight_shape": np.array([rows, length], np.int64),
    }
    if zero_points:
        packed = words_of(zeros.T, bits).T
        tensors["a.weight_zero_point"] = np.ascontiguousarray(packed).view(np.int32)
    before = saved(tmp_path / "a", tensors)
    loaded = td.safetensors.load(tmp_path / "a", blocks=True)
    weight = loaded["a.weight"]
    assert (weight.format, weight.tile) == (f"int{bits}", (1, group))
    values = (codes - np.repeat(zeros, group, 1)) * np.repeat(
        scales.astype(float), group, 1
    )
    assert np.array_equal(weight.dequantize(np.float64), values)
    assert np.array_equal(weight.dequantize(), values.astype(np.float32))
    td.safetensors.save(tmp_path / "b", loaded, scheme="compressed-tensors")
    assert stored(tmp_path / "b") == before


def mlx_affine(bits: int, group: int, words: int) -> tuple[Tensors, Array]:
    length = words * 32 // bits
    codes = RNG.integers(0, 1 << bits, (5, length))
    scales, biases = (
        RNG.normal(0, 0.1, (5, length // group)).astype(td.bfloat16) for _ in range(2)
    )
    tensors = {
        "a.weight": words_of(codes, bits),
        "a.scales": scales,
        "a.biases": biases,
    }
    wide = [np.repeat(x.astype(float), group, 1) for x in (scales, biases)]
    return tensors, codes * wide[0] + wide[1]


@pytest.mark.parametrize(("bits", "group"), [(4, 64), (8, 32), (4, 128), (8, 64)])
def test_mlx_needs_its_config(bits: int, group: int, tmp_path: Path) -> None:
    tensors, values = mlx_affine(bits, group, 32)
    before = saved(tmp_path / "a.safetensors", tensors)
    load = td.safetensors.load
    with pytest.raises(ValueError, match="need bits and group_size in config"):
        load(tmp_path / "a.safetensors", blocks=True)
    for config in (
        {"group_size": group, "bits": bits},
        {"group_size": 32, "bits": 2, "a": {"group_size": group, "bits": bits}},
    ):
        (tmp_path / "config.json").write_text(json.dumps({"quantization": config}))
        loaded = load(tmp_path / "a.safetensors", blocks=True)
        weight = loaded["a.weight"]
        assert (weight.format, weight.tile) == (f"uint{bits}", (1, group))
        assert np.array_equal(weight.dequantize(np.float64), values)
    td.safetensors.save(tmp_path / "b", loaded, scheme="mlx")
    assert stored(tmp_path / "b") == before
    (tmp_path / "config.json").write_text('{"quantization": {"bits": 3}}')
    with pytest.raises(ValueError, match="no known scheme"):
        load(tmp_path / "a.safetensors", blocks=True)


# -- known but unsupported schemes --------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "tensors"),
    [
        (
            "GPTQ or AWQ",
            {
                "a.qweight": np.zeros((16, 8), np.int32),
                "a.qzeros": np.zeros((1, 1), np.int32),
                "a.scales": np.ones((1, 8), np.float16),
                "a.g_idx": np.zeros(128, np.int32),
            },
        ),
        (
            "bitsandbytes",
            {
                "a.weight": np.zeros((64, 1), np.uint8),
                "a.weight.absmax": np.ones(2, np.float32),
                "a.weight.quant_map": np.ones(16, np.float32),
                "a.weight.quant_state.bitsandbytes__nf4": np.zeros(90, np.uint8),
            },
        ),
        (
            "LLM.int8() of bitsandbytes",
            {"a.weight": np.zeros((8, 8), np.int8), "a.SCB": np.ones(8, np.float32)},
        ),
        (
            "Transformer Engine",
            {
                "a.weight": np.zeros((8, 8), td.float8_e4m3fn),
                "a._extra_state": np.zeros(100, np.uint8),
            },
        ),
    ],
)
def test_known_tools_are_named(tool: str, tensors: Tensors, tmp_path: Path) -> None:
    td.safetensors.save(tmp_path / "a", tensors)
    with pytest.raises(ValueError, match="has such tensors") as caught:
        td.safetensors.load(tmp_path / "a", blocks=True)
    assert f"{tool} has such tensors)" in str(caught.value)
    assert "Use blocks=False to load the codes" in str(caught.value)


def test_the_method_of_config_counts(tmp_path: Path) -> None:
    saved(tmp_path / "a.safetensors", tiles("modelopt", (), (300, 200)).tensors)
    for method, is_read in [("modelopt", True), ("gptq", False), ("own", True)]:
        config = {"quantization_config": {"quant_method": method}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        if is_read:
            td.safetensors.load(tmp_path / "a.safetensors", blocks=True)
            continue
        with pytest.raises(ValueError, match="quant_method 'gptq'"):
            td.safetensors.load(tmp_path / "a.safetensors", blocks=True)


def test_codes_without_scales_are_numbers(tmp_path: Path) -> None:
    """Read as numbers: FP8 casts, an index, images, and scales of other things."""
    tensors = {
        "a.weight": np.ones((8, 8), td.float8_e4m3fn),
        "a.bias": np.ones(8, np.float32),
        "a.input_scale": np.ones((), np.float32),
        "images": np.zeros((2, 3), np.uint8),
        "norm.scale": np.ones(8, np.float32),
        "position.ids": np.zeros((1, 8), np.int32),
    }
    td.safetensors.save(tmp_path / "a", tensors)
    for blocks in (None, True):
        found = td.safetensors.load(tmp_path / "a", blocks=blocks)
        assert found.keys() == tensors.keys()


# -- unknown companions --------------------------------------------------------------

F8 = np.ones((8, 64), td.float8_e4m3fn)
I8 = np.full((8, 64), 7, np.int8)


def f32(*shape: int) -> Array:
    return np.full(shape, 2, np.float32)


FP8: Tensors = {"a.weight": F8, "a.weight_scale": f32()}
INT8: Tensors = {"a.weight": I8, "a.weight_scale": f32(8, 1)}
MORE: list[tuple[Tensors, Tensors]] = [
    (INT8, {"a.weight_zero_point": np.full((8, 1), 5, np.int8)}),
    (INT8, {"a.weight_offset": f32(8, 1)}),
    (FP8, {"a.weight_scale_2": f32()}),
    (FP8, {"a.pre_quant_scale": f32(64)}),
    (FP8, {"a.scale_weight": f32()}),
    (FP8, {"a.weight_scale_inv": f32(1, 1)}),
    (comfy_nvfp4().tensors, {"a.pre_quant_scale": f32(256)}),
    (CASES["mlx, mxfp4"]().tensors, {"a.biases": f32(6, 4)}),
    (CASES["mlx, nvfp4"]().tensors, {"a.global_scale": f32()}),
]


@pytest.mark.parametrize("number", range(len(MORE)))
def test_a_companion_that_the_scheme_does_not_have(number: int, tmp_path: Path) -> None:
    tensors, more = MORE[number]
    td.safetensors.save(tmp_path / "a", tensors)
    td.safetensors.load(tmp_path / "a", blocks=True)
    td.safetensors.save(tmp_path / "a", tensors | more)
    with pytest.raises(
        ValueError, match=r"tensor 'a\.weight' .*which does not have a\."
    ):
        td.safetensors.load(tmp_path / "a", blocks=True)


U8 = np.ones((8, 32), np.uint8)
I32 = np.ones((8, 8), np.int32)
I16 = np.ones((8, 8), np.int16)
#: Codes of existing tools, and of possible ones; the first tensor has the codes.
NOT_READ: list[Tensors] = [
    {"a.weight._data._data": U8, "a.weight._scale": f32(8, 1)},
    {"a.q_weight": I32, "a.q_scale": I32, "a.q_scale_max": f32(4)},
    {"a.codes": I16, "a.codebooks": f32(1, 4, 8), "a.scales": f32(8, 1)},
    {"a.trellis": I16, "a.suh": f32(8), "a.svh": f32(8)},
    {"a.B": I32, "a.s": f32(4, 8)},
    {"a.B": I32, "a.s_channel": f32(1, 8), "a.s_group": f32(4, 8)},
    {"attn.q": F8, "attn.q_scale": f32(4)},
    {"a.weight_quantized": U8, "a.weight_scale": f32(8, 1)},
    {"layer/weight": F8, "layer/scale": f32(8, 2)},
    {"layer_weight": F8, "layer_weight_scale": f32(8, 2)},
    {"a.weight": F8, "a.weight_quantizer._scale": f32()},
    {"a.weight": F8, "a.weight_s": f32(8, 1)},
    {"weight": F8, "scales": f32(8, 2)},
]


@pytest.mark.parametrize("number", range(len(NOT_READ)))
def test_codes_of_no_known_scheme(number: int, tmp_path: Path) -> None:
    tensors = NOT_READ[number]
    td.safetensors.save(tmp_path / "a", tensors)
    first = next(iter(tensors))
    with pytest.raises(ValueError, match=f"tensor '{first}' of .* in no known scheme"):
        td.safetensors.load(tmp_path / "a", blocks=True)
    with pytest.warns(UserWarning, match=f"1 tensor, such as '{first}'"):
        td.safetensors.load(tmp_path / "a")


#: Tensors that are plain numbers.
PLAIN: list[Tensors] = [
    {"emb.text_projection": F8, "emb.logit_scale": f32()},
    {"position_index": I32, "logit_scale": f32(4, 1)},
    {"b.0.weight": F8, "b.0.scale_shift_table": f32(6, 64)},
    {"n.weight": F8[0], "n.scale": f32(64)},
    {"attn.causal_mask": np.ones((1, 1, 8, 8), np.uint8), "attn.scale_attn": f32()},
    {"a.ids": I32, "a._extra_state": U8[0], "a.weight": f32(4)},
    {"norm.weight": f32(8), "norm.scale": f32(8), "norm.bias": f32(8)},
    {"a.weight": F8, "a.bias": f32(8), "a.input_scale": f32()},
    {"half": F8, "scales": np.ones((2, 2), td.float8_e8m0fnu)},
]


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_ordinary_tensors(number: int, tmp_path: Path) -> None:
    tensors = PLAIN[number]
    td.safetensors.save(tmp_path / "a", tensors)
    for blocks in (None, True):
        found = td.safetensors.load(tmp_path / "a", blocks=blocks)
        assert found.keys() == tensors.keys()


@pytest.mark.parametrize("shape", [(128, 128), (1, 64), (129, 128), (8, 8, 3, 3)])
@pytest.mark.parametrize("of_scale", [(), (1,)])
def test_one_scale(
    shape: tuple[int, ...], of_scale: tuple[int, ...], tmp_path: Path
) -> None:
    codes, values = draw("float8_e4m3fn", shape)
    for scale in ("a.weight_scale", "a.scale_weight"):
        tensors = {"a.weight": codes.view(td.float8_e4m3fn), scale: f32(*of_scale)}
        td.safetensors.save(tmp_path / "a", tensors)
        weight = td.safetensors.load(tmp_path / "a", blocks=True)["a.weight"]
        assert np.array_equal(weight.dequantize(np.float64), 2 * values)


def test_markers_of_several_files(tmp_path: Path) -> None:
    """Read one marker per file of a checkpoint, each for its own layers."""
    places, wanted = {}, {}
    for layer in "ab":
        _, tensors, wanted[layer], _, _ = comfy_nvfp4()
        del tensors["a.comfy_quant"]
        renamed = {layer + name[1:]: x for name, x in tensors.items()}
        said = json.dumps({"layers": {layer: {"format": "nvfp4"}}})
        file = f"model-{layer}.safetensors"
        td.safetensors.save(
            tmp_path / file, renamed, metadata={"_quantization_metadata": said}
        )
        places |= dict.fromkeys(renamed, file)
    index = json.dumps({"weight_map": places})
    (tmp_path / "model.safetensors.index.json").write_text(index)
    found = td.safetensors.load(tmp_path, blocks=True)
    for layer, values in wanted.items():
        assert np.array_equal(found[f"{layer}.weight"].dequantize(np.float64), values)


@pytest.mark.parametrize("said", ['{"layers": {"other": {"format": "nvfp4"}}}', "{"])
def test_markers_of_other_layers_are_no_license(said: str, tmp_path: Path) -> None:
    tensors = comfy_nvfp4().tensors
    del tensors["a.comfy_quant"]
    saved(tmp_path / "a", tensors, {"_quantization_metadata": said})
    with pytest.raises(ValueError, match=r"tensor 'a\.weight' .*no known scheme"):
        td.safetensors.load(tmp_path / "a", blocks=True)


@pytest.mark.parametrize("step", [1, -1])
def test_a_weight_beside_one_that_is_refused(step: int) -> None:
    """Do not use the scales of a weight for the codes of a rejected one."""
    entries: dict[str, Any] = {
        "x.w": ("F8_E4M3", (64, 96)),
        "x.w_scale": ("F32", (64, 1)),
        "x.w_up": ("F8_E4M3", (64, 96)),
        "x.w_up_scale": ("F32", (64, 1)),
    }
    found = find(Evidence(dict([*entries.items()][::step])))
    assert [group.name for group in found.groups] == ["x.w_up"]
    assert found.refused.keys() == {"x.w"}
    assert found.companions == {"x.w_scale": "x.w"}


def test_parameters_of_other_modules_are_converted() -> None:
    entries: dict[str, Any] = {
        "encoder.codes": ("I32", (64, 96)),
        "encoder.proj.weight": ("F32", (32, 96)),
        "encoder.proj.bias": ("F32", (32,)),
    }
    assert not find(Evidence(entries)).companions


def test_a_marker_without_a_module(tmp_path: Path) -> None:
    _, tensors, values, _, _ = comfy_nvfp4()
    td.safetensors.save(tmp_path / "a", {x[2:]: y for x, y in tensors.items()})
    weight = td.safetensors.load(tmp_path / "a", blocks=True)["weight"]
    assert np.array_equal(weight.dequantize(np.float64), values)


def test_config_contradicts(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for tensors, config in [
        (
            {"a.weight": np.ones((256, 256), td.float8_e4m3fn)}
            | {"a.weight_scale_inv": f32(2, 2)},
            {"quantization_config": {"weight_block_size": [192, 192]}},
        ),
        (CASES["mlx, mxfp4"]().tensors, {"quantization": {"mode": "mxfp8"}}),
        (FP8, {"text_config": {"quantization_config": {"quant_method": "gptq"}}}),
        ({"a.weight": F8}, {"quantization_config": {"quant_method": "fp8"}}),
    ]:
        td.safetensors.save(path, tensors)
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match=r"tensor 'a\.weight' .*no known scheme"):
            td.safetensors.load(path, blocks=True)


def test_many_tensors_in_one_module() -> None:
    """Look up tensors linearly often in their number, not quadratically."""
    looks = []
    for count in (500, 2000):
        entries = {f"m.w{i}": ("F8_E4M3", (8, 64)) for i in range(count)}
        entries |= {f"m.w{i}_scale": ("F32", ()) for i in range(count)}
        seen = Counted(entries)
        assert len(find(Evidence(seen)).groups) == count
        looks.append(seen.looks)
    assert looks[1] < 5 * looks[0]


class Counted(dict[str, tuple[str, tuple[int, ...]]]):
    """A dict that counts look-ups."""

    looks = 0

    def get(self, *arguments: Any) -> Any:
        self.looks += 1
        return super().get(*arguments)

    def __getitem__(self, name: str) -> Any:
        self.looks += 1
        return super().__getitem__(name)


# -- every combination ---------------------------------------------------------------

CODES: dict[str, tuple[str, Array, Array]] = {}
for _kind, _view in [("F8_E4M3", td.float8_e4m3fn), ("F8_E5M2", td.float8_e5m2)]:
    _codes, _values = draw(np.dtype(_view).name, (N, K))
    CODES[_kind] = (_kind, _codes.view(_view), _values)
_codes, _values = draw("float4_e2m1fn", (N, K))
for _kind, _view in [("U8", np.uint8), ("I8", np.int8), ("U32", np.uint32)]:
    CODES[f"fp4 in {_kind}"] = (_kind, pack4(_codes).view(_view), _values)
SCALES = {
    "F32": lambda s: RNG.uniform(1, 2, s).astype(np.float32),
    "BF16": lambda s: RNG.uniform(1, 2, s).astype(td.bfloat16),
    "F8_E8M0": lambda s: power_scales(s)[0].view(td.float8_e8m0fnu),
    "F8_E4M3": lambda s: ue4m3_scales(s)[0].view(td.float8_e4m3fn),
    "U8": lambda s: RNG.integers(100, 126, s).astype(np.uint8),
}
GRIDS = [(), (1,), (N, 1), (1, 2), (N, 2), (N, K // 32), (N, K // 16), (1, 1, 2, 1)]
NAMES = [
    *("weight_scale", "weight_scale_inv", "scale", "scale_weight", "scales"),
    *("weight_scales", "weight.scale", "weight_amax"),
]
MARKERS = [None, "nvfp4", "mxfp8", "float8_e4m3fn", "other"]


def values_of(scales: Array, is_ue4m3: bool) -> Array:
    """Return the values of scales of any dtype."""
    if scales.dtype == np.uint8:
        codes = scales.astype(float)
        return table("float8_e4m3fn")[scales] if is_ue4m3 else 2.0 ** (codes - 127)
    return scales.astype(float)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("codes", CODES)
def test_every_combination_is_decoded_or_refused(
    codes: str, compared: Callable[..., None]
) -> None:
    """Raise an error for an ambiguous combination; decode the others correctly."""
    _, stored_codes, elements = CODES[codes]
    decoded = 0
    for name, scale, grid, said, has_second in itertools.product(
        NAMES, SCALES, GRIDS, MARKERS, [False, True]
    ):
        if has_second and name != "weight_scale":
            continue  # of these names, only NVFP4's has two
        scales = np.asarray(SCALES[scale](grid))
        tensors: Tensors = {"a.weight": stored_codes, f"a.{name}": scales}
        if has_second:
            tensors["a.weight_scale_2"] = np.array(0.5, np.float32)
        if said is not None:
            tensors["a.comfy_quant"] = marker(format=said)
        entries = {}
        for each, array in tensors.items():
            found_kind = kind_of(array.dtype)
            assert found_kind is not None
            entries[each] = (found_kind.name, array.shape)
        found = find(Evidence(entries, get=tensors.__getitem__))
        assert len(found.groups) + len(found.refused) == 1, (name, scale, grid, said)
        if not found.groups:
            continue
        (group,) = found.groups
        decoded += 1
        weight = group.read(tensors.__getitem__)
        assert (group.scheme == "comfyui") == (said is not None)
        expected = stored_codes.astype(float) if group.format == "int8" else elements
        if said in ("nvfp4", "mxfp8"):
            # Only whole tiles of 128 rows and 4 columns have the shape of the grid.
            scales = td.blocks.unswizzle_scales(scales, scales.shape)
        if said == "nvfp4":
            halves = np.stack([stored_codes >> 4, stored_codes & 15], -1)
            expected = table("float4_e2m1fn")[halves.reshape(N, K)]
        factors = values_of(scales, group.format == "nvfp4")
        if factors.ndim != 2:  # a scale of the matrix, or of its tiles
            factors = factors.reshape(1, -1)
        width = expected.shape[1]
        wide = spread(
            factors, N // len(factors), width // factors.shape[1], expected.shape
        )
        second = 0.5 if "a.weight_scale_2" in group.members else 1.0
        assert np.array_equal(weight.dequantize(np.float64), expected * wide * second)
    compared(decoded)
    assert decoded >= 2


# -- hostile ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "count", [1_000, pytest.param(100_000, marks=pytest.mark.exhaustive)]
)
def test_no_entries_make_it_fail(count: int) -> None:
    """Find a weight, a rejection or nothing in random names, dtypes and shapes."""
    names = [
        *(
            "a.weight",
            "a.weight_scale",
            "a.weight_packed",
            "a.weight_shape",
            "a.scales",
        ),
        *("a.weight_zero_point", "a.biases", "a.scale", "a.comfy_quant", "scales", ""),
        *("a.weight_scale_2", "a.weight_scale_inv", "a.scale_weight", ".scales", "."),
    ]
    kinds = ["F8_E4M3", "U8", "I8", "I32", "U32", "F32", "BF16", "F8_E8M0", "I64"]
    sizes = [0, 1, 2, 3, 16, 32, 128, 2**20]
    rng = np.random.default_rng(8)
    dtypes = {"I64": np.int64, "U8": np.uint8}
    for _ in range(count):
        entries = {
            str(name): (
                str(rng.choice(kinds)),
                tuple(int(x) for x in rng.choice(sizes, rng.integers(0, 4))),
            )
            for name in rng.choice(names, rng.integers(1, 6), replace=False)
        }

        def get(name: str, entries: Any = entries) -> Array:
            kind, shape = entries[name]
            dtype = dtypes.get(kind, np.uint8)
            return rng.integers(0, 100, shape).astype(dtype)

        config = [{}, {"quantization": 3}, {"quantization": {"bits": "x", "a": []}}]
        found = find(Evidence(entries, get=get, config=config[rng.integers(3)]))
        assert len(found.groups) + len(found.refused) <= len(entries)
