"""The schemes, a row for each format that they have."""

from __future__ import annotations

from .scheme_rows import POWER_SCALES, UE4M3_SCALES, BlockRow, Row, TileRow

#: Rows that are found by names, dtypes and shapes; the first that fits is taken.
#: Sources: vllm (layers/quantization), compressed-tensors 0.20 (compressors), NVIDIA's
#: Model Optimizer and AMD's Quark as vllm reads them, the checkpoints of gpt-oss, and
#: DeepSeek-V3's kernels (`weight_dequant` multiplies by "weight_scale_inv").
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
)
_QDATA, _SCALE = "{module}._{parameter}_qdata", "{module}._{parameter}_scale"
#: Rows that are found by what torchao says in the metadata (torchao 0.18,
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
