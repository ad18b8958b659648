"""The table of schemes, with a row for each format of a scheme."""

from __future__ import annotations

from ..._formats.aliases import BlockFormatName
from .scheme_rows import (
    POWER_SCALES,
    UE4M3_SCALES,
    BlockRow,
    GroupRow,
    Row,
    TileRow,
)

_MLX_BLOCKS: dict[str, BlockFormatName] = {
    "mxfp4": "mxfp4",
    "mxfp8": "mxfp8_e4m3",
    "nvfp4": "nvfp4",
}

#: The rows that are found by names, dtypes and shapes. If several rows read the same
#: tensors alike, the first one is taken. Other matching rows make the weight ambiguous.
#: Sources: vllm (layers/quantization), compressed-tensors 0.20 (compressors), NVIDIA's
#: Model Optimizer and AMD's Quark as vllm reads them, the checkpoints of gpt-oss,
#: DeepSeek-V3's kernels (`weight_dequant` multiplies by "weight_scale_inv"; "scale" in
#: its inference code and in V4), SGLang for MiniMax's MXFP8, comfy-kitchen 0.2 (tensor)
#: and ComfyUI ("scaled_fp8"), musubi-tuner (its FP8 optimization), MLX 0.32
#: (mlx.core.quantize) and mlx-lm 0.32 (infer_quant_config).
NAMED: tuple[Row, ...] = (
    BlockRow("compressed-tensors", "{name}", "{name}_scale", "mxfp8_e4m3"),
    BlockRow("compressed-tensors", "{name}_packed", "{name}_scale", "mxfp6_e2m3"),
    BlockRow("compressed-tensors", "{name}_packed", "{name}_scale", "mxfp4"),
    BlockRow(
        "compressed-tensors",
        "{name}_packed",
        "{name}_scale",
        "nvfp4",
        "{name}_global_scale",
        divides=True,
        scale_kinds=UE4M3_SCALES,
    ),
    TileRow(
        "compressed-tensors",
        "{name}",
        "{name}_scale",
        ((1, None), (128, 128), (1, 128), (None, None)),
        one_scale=(1,),
    ),
    BlockRow("modelopt", "{name}", "{name}_scale", "mxfp8_e4m3"),
    BlockRow(
        "modelopt",
        "{name}",
        "{name}_scale",
        "nvfp4",
        "{name}_scale_2",
        (),
        scale_kinds=UE4M3_SCALES,
    ),
    TileRow(
        "modelopt",
        "{name}",
        "{name}_scale",
        ((1, None), (128, 128), (None, None)),
        one_scale=(),
        axes=("rc", "r1c1"),
    ),
    BlockRow("quark", "{name}", "{name}_scale", "mxfp4"),
    BlockRow("gpt-oss", "{name}_blocks", "{name}_scales", "mxfp4", has_block_axis=True),
    TileRow(
        "deepseek",
        "{name}",
        "{name}_scale_inv",
        ((128, 128), (1, 128)),
        ("F32", "BF16", "F8_E8M0"),
    ),
    TileRow(
        "deepseek-inference",
        "{module}.weight",
        "{module}.scale",
        ((128, 128),),
        ("F32", "F8_E8M0", "BF16"),
    ),
    BlockRow(
        "deepseek-inference",
        "{module}.weight",
        "{module}.scale",
        "mxfp4",
        scale_kinds=("F8_E8M0",),
        packed_kind="I8",
    ),
    BlockRow("minimax", "{name}", "{name}_scale_inv", "mxfp8_e4m3"),
    TileRow(
        "comfyui",
        "{name}",
        "{name}_scale",
        ((None, None), (1, None)),
        one_scale=(),
        marked={
            "float8_e4m3fn": "float8_e4m3fn",
            "float8_e5m2": "float8_e5m2",
            "int8": "int8_tensorwise",
        },
    ),
    BlockRow(
        "comfyui",
        "{name}",
        "{name}_scale",
        "nvfp4",
        "{name}_scale_2",
        (),
        scale_kinds=UE4M3_SCALES,
        is_high_first=True,
        scale_layout="128x4",
        marker="nvfp4",
    ),
    BlockRow(
        "comfyui",
        "{name}",
        "{name}_scale",
        "mxfp8_e4m3",
        scale_layout="128x4",
        marker="mxfp8",
    ),
    TileRow(
        "scaled-fp8",
        "{module}.weight",
        "{module}.scale_weight",
        ((None, None), (1, None), (1, 64), (1, 32), (1, 128)),
        one_scale=(),
        axes=("rc", "rc1"),
    ),
    *(
        BlockRow(
            "mlx",
            "{module}.weight",
            "{module}.scales",
            which,
            scale_kinds=("U8",),
            packed_kind="U32",
            mode=mode,
        )
        for mode, which in _MLX_BLOCKS.items()
    ),
    *(
        GroupRow(
            "mlx",
            "{module}.weight",
            "{module}.scales",
            bits,
            "U32",
            groups=(32, 64, 128),
            biases="{module}.biases",
            is_of_mlx=True,
        )
        for bits in (4, 8)
    ),
    *(
        GroupRow(
            "compressed-tensors",
            "{name}_packed",
            "{name}_scale",
            bits,
            "I32",
            has_sign=True,
            shape="{name}_shape",
            zero_points="{name}_zero_point",
        )
        for bits in (4, 8)
    ),
)
#: Schemes that are recognized but cannot be read: patterns of names of their tensors.
REFUSED: tuple[tuple[str, str], ...] = (
    (r"[._]qweight$", "GPTQ or AWQ"),
    (r"\.q_weight$", "EXL2"),
    (r"\.trellis$", "EXL3"),
    (r"\.(absmax|quant_map|nested_absmax|quant_state\..+)$", "bitsandbytes"),
    (r"[._]SCB$", "LLM.int8() of bitsandbytes"),
    (r"\.codebooks$", "AQLM"),
    (r"\._data(\._data)?$", "quanto"),
    (r"\.(s|s_channel|s_group)$", "Marlin or QQQ"),
    (r"_(proj_down|smooth_factor|s_rel|s_channel)$", "comfy-kitchen"),
)
#: The possible schemes for each `quant_method` of config.json.
METHODS: dict[str, tuple[str, ...]] = {
    "compressed-tensors": ("compressed-tensors",),
    "fbgemm_fp8": ("compressed-tensors", "modelopt"),
    "fp8": (
        "deepseek",
        "deepseek-inference",
        "compressed-tensors",
        "modelopt",
        "minimax",
    ),
    "modelopt": ("modelopt", "compressed-tensors"),
    "modelopt_fp4": ("modelopt",),
    "mxfp4": ("gpt-oss", "deepseek-inference", "quark"),
    "mxfp8": ("minimax", "modelopt", "compressed-tensors"),
    "quark": ("quark", "compressed-tensors", "modelopt"),
    "torchao": ("torchao",),
    "gptq": (),
    "awq": (),
    "bitsandbytes": (),
}
_QDATA, _SCALE = "{module}._{parameter}_qdata", "{module}._{parameter}_scale"
#: The rows that are found by torchao's metadata (torchao 0.18,
#: prototype/safetensors).
TORCHAO: tuple[Row, ...] = (
    *(
        BlockRow("torchao", _QDATA, _SCALE, which, scale_kinds=POWER_SCALES[::-1])
        for which in ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp4")
    ),
    BlockRow(
        "torchao",
        _QDATA,
        _SCALE,
        "nvfp4",
        "{module}._{parameter}_per_tensor_scale",
        (),
        is_optional=True,
        scale_kinds=UE4M3_SCALES,
    ),
    TileRow("torchao", _QDATA, _SCALE, ((1, None), (128, 128), (None, None))),
)
