"""Make the `quantization_config` by which readers recognize scales.

transformers and vllm read it from config.json. The keys are those that the tool of each
scheme writes:

- compressed-tensors 0.20: `PRESET_SCHEMES` (FP8_DYNAMIC, FP8_BLOCK, MXFP8, and the
  presets of weights, MXFP4A16, MXFP6A16 and NVFP4A16) and `CompressionFormat`;
- Model Optimizer 0.47: `convert_hf_quant_config_format`, and the algorithms that vllm's
  `ModelOptQuantConfigBase` reads;
- Quark: the keys that vllm's `QuarkConfig` and `QuarkOCP_MX` read;
- transformers 5: `FineGrainedFP8Config` (of DeepSeek's files) and `Mxfp4Config` (of
  gpt-oss). vllm reads "fp8" with the same keys.

If no calibration is needed, the configuration tells the reader to quantize the inputs
of layers. Otherwise it describes only weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...blocks.formats import elements
from ...blocks.formats import formats as block_formats
from .targets import Scaled

Config = dict[str, Any]

#: The block formats that a configuration can describe.
_BLOCKS = ("mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4")
#: The keys of compressed-tensors for the tiles of FP8.
_STRATEGIES: dict[Any, Config] = {
    (1, None): {"strategy": "channel"},
    (None, None): {"strategy": "tensor"},
    (128, 128): {"strategy": "block", "block_structure": [128, 128]},
    (1, 128): {"strategy": "group", "group_size": 128},
}
#: The block formats and the scales of FP8 that readers choose for activations. NVFP4 is
#: missing: it needs a scale per tensor from calibration.
_ACTIVATION_BLOCKS = ("mxfp8_e4m3", "mxfp6_e2m3", "mxfp4")
_ACTIVATION_SCALES: dict[str, Config] = {
    "row": {"strategy": "token"},
    "tensor": {"strategy": "tensor"},
    "block": {"strategy": "group", "group_size": 128},
}
#: The names of Model Optimizer for the tiles of FP8.
_ALGORITHMS: dict[Any, str] = {
    (1, None): "FP8_PER_CHANNEL_PER_TOKEN",
    (None, None): "FP8",
    (128, 128): "FP8_PB_WO",
}


def quantization_config(target: Scaled, ignored: Sequence[str]) -> Config | None:
    """Return the configuration for weights that a target has converted.

    Parameters
    ----------
    target : Scaled
        The target of the conversion.
    ignored : sequence of str
        The names of unchanged layers.

    Returns
    -------
    dict or None
        The configuration. None for formats that readers do not support, such as FP8
        E5M2, and for schemes whose files need no configuration: torchao's and this
        package's own.
    """
    make = _SCHEMES.get(target.scheme)
    if target.tile is None:
        is_known = target.format in _BLOCKS
    else:
        is_known = target.format == "float8_e4m3fn" and target.tile in _STRATEGIES
    return make(target, [*ignored]) if make is not None and is_known else None


def _compressed_tensors(target: Scaled, ignored: list[str]) -> Config:
    activations: Config | None = None
    if target.tile is not None:
        columns = target.tile[1]
        inputs: Config = {"strategy": "token"}
        if columns is not None:
            inputs = {"strategy": "group", "group_size": columns}
        activations = _arguments(8, dynamic=True, **inputs)
    elif target.format == "mxfp8_e4m3":
        activations = _blocks(target.format, dynamic=True)
    return _compressed([_group(target, activations, ["Linear"])], ignored)


def _group(target: Scaled, activations: Config | None, layers: list[str]) -> Config:
    """Return the group of layers with the same formats."""
    if target.tile is not None:
        form = "float-quantized"
        weights = _arguments(8, **_STRATEGIES[target.tile])
    else:
        weights = _blocks(target.format)
        name = target.format.partition("_")[0]
        form = f"{name}-{'pack-' * (weights['num_bits'] < 8)}quantized"
    return {
        "targets": layers,
        "format": form,
        "weights": weights,
        "input_activations": activations,
        "output_activations": None,
    }


def _compressed(groups: list[Config], ignored: list[str]) -> Config:
    forms = {group["format"] for group in groups}
    return {
        "quant_method": "compressed-tensors",
        "format": "mixed-precision" if len(forms) > 1 else forms.pop(),
        "quantization_status": "compressed",
        "config_groups": {f"group_{i}": group for i, group in enumerate(groups)},
        "ignore": ignored,
    }


def _blocks(format: str, dynamic: bool = False) -> Config:
    """Return the arguments of a block format."""
    row = block_formats[format]
    strategy, scales = "group", "torch.uint8"
    if format == "nvfp4":
        strategy, scales = "tensor_group", "torch.float8_e4m3fn"
    return _arguments(
        elements[row.element].width,
        dynamic,
        strategy=strategy,
        group_size=row.block_size,
        scale_dtype=scales,
        zp_dtype=scales,
    )


def activations_of(format: str, scale: str) -> Config | None:
    """Return the arguments of activations that a reader rounds; None: it cannot.

    Parameters
    ----------
    format : str
        The block format, or "fp8_e4m3".
    scale : str
        The name of the scales of FP8 in plans of layers, such as "row".
    """
    if format in _ACTIVATION_BLOCKS:
        return _blocks(format, dynamic=True)
    if format == "fp8_e4m3" and scale in _ACTIVATION_SCALES:
        return _arguments(8, dynamic=True, **_ACTIVATION_SCALES[scale])
    return None


def mixed_config(
    groups: Sequence[tuple[Scaled, Config | None, Sequence[str]]],
    ignored: Sequence[str],
) -> Config | None:
    """Return the configuration of compressed-tensors for groups of layers.

    Parameters
    ----------
    groups : sequence of tuple
        The format of weights, the arguments of activations, and the names of layers.
    ignored : sequence of str
        The names of unchanged layers.
    """
    made = [_group(target, inputs, [*names]) for target, inputs, names in groups]
    return _compressed(made, [*ignored]) if made else None


def _arguments(bits: int, dynamic: bool = False, **more: Any) -> Config:
    return {
        "num_bits": bits,
        "type": "float",
        "symmetric": True,
        "dynamic": dynamic,
        **more,
    }


def _modelopt(target: Scaled, ignored: list[str]) -> Config:
    weights: Config = {"dynamic": False, "num_bits": 8, "type": "float"}
    if target.tile is None:
        size = block_formats[target.format].block_size
        weights["group_size"] = size
        algorithm = "MXFP8"
        if target.format == "nvfp4":
            weights["num_bits"] = 4
            algorithm = "W4A16_NVFP4"
    else:
        algorithm = _ALGORITHMS[target.tile]
        weights |= {"strategy": "channel"} if target.tile == (1, None) else {}
    found: Config = {
        "quant_method": "modelopt",
        "quant_algo": algorithm,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ignored,
    }
    return found | (
        {"group_size": weights["group_size"]} if target.tile is None else {}
    )


def _quark(target: Scaled, ignored: list[str]) -> Config:
    weight = {
        "dtype": "fp4",
        "qscheme": "per_group",
        "group_size": 32,
        "ch_axis": -1,
        "scale_format": "e8m0",
        "is_dynamic": False,
    }
    inputs = {**weight, "is_dynamic": True}
    layers = {"weight": weight, "input_tensors": inputs, "output_tensors": None}
    return {
        "quant_method": "quark",
        "global_quant_config": {**layers, "bias": None},
        "layer_quant_config": {},
        "layer_type_quant_config": {},
        "kv_cache_quant_config": {},
        "exclude": ignored,
        "export": {"kv_cache_group": [], "pack_method": "reorder"},
    }


def _deepseek(target: Scaled, ignored: list[str]) -> Config:
    assert target.tile is not None
    return {
        "quant_method": "fp8",
        "fmt": target.format.removeprefix("float8_").removesuffix("fn"),
        "activation_scheme": "dynamic",
        "weight_block_size": [*target.tile],
        "modules_to_not_convert": ignored,
    }


def _gpt_oss(target: Scaled, ignored: list[str]) -> Config:
    return {"quant_method": "mxfp4", "modules_to_not_convert": ignored}


_SCHEMES: dict[str, Callable[[Scaled, list[str]], Config]] = {
    "vllm": _compressed_tensors,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "quark": _quark,
    "deepseek": _deepseek,
    "gpt-oss": _gpt_oss,
}
