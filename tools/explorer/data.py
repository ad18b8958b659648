"""Collect the package's Python tables for the explorer: names, devices, blocks."""

from __future__ import annotations

from typing import Any

from tf32dtype import _core
from tf32dtype._formats.aliases import ALIASES, BLOCK_ALIASES, NUMPY_ALIASES
from tf32dtype._formats.quantize import OVERFLOWS, ROUNDINGS
from tf32dtype.blocks.formats import RULES, BlockFormat, elements, scale_formats
from tf32dtype.blocks.formats import formats as block_formats
from tf32dtype.tensor_core.block_scaled import BLOCK_SCALED, ZERO_TERMS, BlockScaled
from tf32dtype.tensor_core.device import DEVICES, Device
from tf32dtype.tensor_core.models import ALIGNED, VERIFIED, Aligned

#: Lists are in the order of the C code, which takes indices into them.
Data = dict[str, Any]


def data() -> Data:
    """Return all tables, in types that JSON has."""
    names = [*_core.names, *NUMPY_ALIASES]
    return {
        "names": [_names(name) for name in names],
        "roundings": ROUNDINGS,
        "overflows": OVERFLOWS,
        "rules": RULES,
        "scaleFormats": list(scale_formats),
        "devices": [_device(device) for device in DEVICES if _aligned(device)],
        "models": [_model(i, model) for i, model in enumerate(ALIGNED)],
        "modelWords": [_model_words(model) for model in ALIGNED],
        "scaledModels": [_scaled(i, model) for i, model in enumerate(BLOCK_SCALED)],
        "scaledWords": [_scaled_words(model) for model in BLOCK_SCALED],
        "blockFormats": [_block_format(row) for row in block_formats.values()],
        "blockWords": [_block_words(row) for row in block_formats.values()],
    }


def _names(name: str) -> Data:
    aliases = (ALIASES | NUMPY_ALIASES).get(name, ())
    layout = name.partition("_")[2]
    short = layout or (aliases[0] if aliases else name)
    return {"name": name, "short": short, "aliases": aliases}


# -- tensor cores ----------------------------------------------------------------------


def _aligned(device: Device) -> list[Aligned]:
    """Return the device's models that the explorer supports."""
    return [model for model in device.models if isinstance(model, Aligned)]


def _device(device: Device) -> Data:
    return {
        "name": device.name,
        "architecture": device.architecture,
        "aliases": device.aliases,
        "board": device.board,
        "peak": dict(device.peak),
        "instructions": [*dict.fromkeys(m.instruction for m in _aligned(device))],
    }


def _common(index: int, model: Aligned | BlockScaled) -> Data:
    return {
        "index": index,
        "device": model.device,
        "instruction": model.instruction,
        "a": model.a,
        "b": model.b,
        "accumulator": model.accumulator,
        "name": model.name,
        "depth": model.depth,
        "fraction": model.fraction,
        "kept": model.kept,
        "rounding": model.rounding,
        "floor": model.floor,
        "verified": model.verified,
        "verifiedText": VERIFIED[model.verified],
    }


def _model(index: int, model: Aligned) -> Data:
    return {
        **_common(index, model),
        "instructionDepth": model.instruction_depth,
        "emulated": model.emulated,
        "cutFirst": model.cut_first,
    }


def _scaled(index: int, model: BlockScaled) -> Data:
    return {
        **_common(index, model),
        "scale": model.scale,
        "blockSize": model.block_size,
        "group": model.group,
    }


def _model_words(model: Aligned) -> list[int | None]:
    """Return the members of struct tf_mma_model in order; None: TF_NO_EXPONENT."""
    return [
        model.depth,
        model.instruction_depth,
        model.fraction,
        model.kept,
        int(model.accumulator == "float16"),
        *model.least_exponents,
        int(model.emulated),
        model.cut_first or 0,
        model.floor,
        model.zero_c_exponent,
        int(model.zero_products),
        int(model.negative_zero),
    ]


def _scaled_words(model: BlockScaled) -> list[int | None]:
    """Return the members of struct tf_scaled_model in order; None: TF_NO_EXPONENT."""
    return [
        model.depth,
        model.block_size,
        model.group,
        model.fraction,
        int(model.scale == "float8_e8m0fnu"),
        *model.least_exponents,
        model.floor,
        model.zero_c_exponent,
        ZERO_TERMS.index(model.zero_terms),
        int(model.negative_zero),
    ]


# -- blocks ----------------------------------------------------------------------------


def _block_format(row: BlockFormat) -> Data:
    # Only TCFP was published with its own rule.
    published = row.name.startswith("tcfp")
    return {
        "name": row.name,
        "aliases": BLOCK_ALIASES.get(row.name, ()),
        "element": row.element,
        "elementBits": elements[row.element].width,
        "residual": row.residual,
        "scaleFormat": row.scale_format,
        "blockSize": row.block_size,
        "rule": row.scale,
        "rules": [rule for rule in RULES if published or rule != "published"],
        "bitsPerValue": row.bits_per_value,
        "max": row.max,
        "poisons": row.poisons,
    }


def _block_words(row: BlockFormat) -> list[int]:
    """Return element, residual and scale format (-1: none), and whether it poisons."""
    return [
        elements[row.element].index,
        -1 if row.residual is None else elements[row.residual].index,
        -1 if row.scale_format is None else list(scale_formats).index(row.scale_format),
        int(row.poisons),
    ]
