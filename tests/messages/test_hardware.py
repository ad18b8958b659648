"""Messages of tensor cores, arrays of blocks and tiles, and GPU arrays."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tf32dtype import blocks, tensor_core
from tf32dtype.blocks.facts_text import from_text
from tf32dtype.tensor_core.cpu_units import cpu_units

from .shape import faults, provoke

SINGLE = np.ones((3, 4), np.float32)
HALF = SINGLE.astype(np.float16)
WIDE = np.ones((4, 64), np.float32)
PACKED = blocks.quantize(WIDE, "mxfp4")
FINE = blocks.quantize(WIDE, "mxfp4", block_size=16)
RESIDUALS = blocks.quantize(WIDE, "tcfp12", scale_format="float8_e8m0fnu")
TILES = blocks.quantize_tiles(np.ones((2, 8, 8), np.float32), tile=(4, 4))
MODEL = tensor_core.devices["A100"].models[0]
CPU_UNIT = cpu_units("float32", "float32", "float32")[0]
FLOATS = np.ones((3, 3), np.float32)


def multiply(a: Any = HALF, b: Any = HALF.T, **options: Any) -> object:
    """Multiply on a modeled tensor core."""
    call: Any = tensor_core.matmul
    return call(a, b, **{"device": "H100"} | options)


def explain(a: Any = HALF[0], b: Any = HALF[0], **options: Any) -> object:
    call: Any = tensor_core.explain
    return call(a, b, **{"device": "H100"} | options)


def identify(*operands: Any, **options: Any) -> object:
    call: Any = tensor_core.identify
    return call(*(operands or (HALF, HALF.T, None, FLOATS)), **options)


def quantize(x: Any = WIDE, format: Any = "mxfp4", **options: Any) -> object:
    call: Any = blocks.quantize
    return call(x, format, **options)


def tiles(x: Any = SINGLE, **options: Any) -> object:
    call: Any = blocks.quantize_tiles
    return call(x, **options)


def multiply_blocks(a: Any = PACKED, b: Any = PACKED.T, **options: Any) -> object:
    call: Any = blocks.matmul
    return call(a, b, **options)


def dequantize(**options: Any) -> object:
    call: Any = PACKED.dequantize
    return call(**options)


def from_codes(**options: Any) -> object:
    call: Any = blocks.BlockArray.from_codes
    given = {
        "format": "mxfp4",
        "codes": PACKED.codes,
        "scales": PACKED.scales,
        "shape": PACKED.shape,
    }
    return call(**given | options)


def import_cuda_without_cupy() -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in [x for x in sys.modules if x.startswith("tf32dtype.cuda")]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "cupy", None)
        importlib.import_module("tf32dtype.cuda")


def called(function: Any, *arguments: Any, **options: Any) -> object:
    """Call a function with arguments that its types do not allow."""
    return function(*arguments, **options)


CASES: dict[str, Callable[[], object]] = {
    "devices.key": lambda: tensor_core.devices["H1000"],
    "devices.no_near_key": lambda: tensor_core.devices["Riva TNT"],
    "matmul.device": lambda: multiply(device="K80"),
    "matmul.device_of_a_model": lambda: multiply(device=MODEL),
    "matmul.instruction": lambda: multiply(instruction="tcgen05"),
    "matmul.instruction_type": lambda: multiply(instruction=5),
    "matmul.block_scaled_instruction": lambda: multiply(
        device="B200", instruction="tcgen05.mxf4"
    ),
    "matmul.pair": lambda: multiply(SINGLE, SINGLE.T, device="V100"),
    "matmul.accumulator": lambda: multiply(accumulator="float17"),
    "matmul.rounding": lambda: multiply(SINGLE, SINGLE.T, rounding="up"),
    "matmul.rounding_of_halves": lambda: multiply(rounding="ties_to_even"),
    "matmul.promote_every": lambda: multiply(promote_every=5),
    "matmul.promote_every_type": lambda: multiply(promote_every="x"),
    "matmul.promote_every_of_halves": lambda: multiply(
        promote_every=16, accumulator=np.float16
    ),
    "matmul.terms": lambda: multiply(terms=1),
    "matmul.scalar": lambda: multiply(b=np.float16(1)),
    "matmul.k": lambda: multiply(b=HALF),
    "matmul.stacks": lambda: multiply(
        np.ones((2, 1, 1), "f2"), np.ones((3, 1, 1), "f2")
    ),
    "matmul.float64": lambda: multiply(HALF.astype(float)),
    "matmul.integers": lambda: multiply(HALF.astype(np.int8)),
    "matmul.dtype": lambda: multiply(HALF.astype(np.int64)),
    "matmul.complex": lambda: multiply(HALF.astype(complex)),
    "matmul.masked": lambda: multiply(np.ma.masked_array(HALF, HALF == 1)),
    "matmul.c_dtype": lambda: multiply(c=np.ones((3, 3))),
    "matmul.c_shape": lambda: multiply(c=np.ones(5, np.float32)),
    "matmul.c_range": lambda: multiply(c=1e300),
    "matmul.c_integer": lambda: multiply(c=10**400),
    "matmul.out": lambda: multiply(out=[0.0]),
    "matmul.out_dtype": lambda: multiply(out=np.zeros((3, 3))),
    "matmul.out_shape": lambda: multiply(out=np.zeros((3, 2), np.float32)),
    "matmul.out_read_only": lambda: multiply(
        out=np.broadcast_to(np.float32(0), (3, 3))
    ),
    "matmul.blocks_and_numbers": lambda: multiply(PACKED, HALF),
    "matmul.blocks_along_n": lambda: multiply(PACKED, PACKED),
    "matmul.blocks_rounding": lambda: multiply(
        PACKED, PACKED.T, rounding="toward_zero"
    ),
    "matmul.blocks_terms": lambda: multiply(PACKED, PACKED.T, terms=2),
    "matmul.blocks_accumulator": lambda: multiply(
        PACKED, PACKED.T, accumulator=np.float16
    ),
    "matmul.block_sizes": lambda: multiply(PACKED, FINE.T),
    "matmul.blocks_pair": lambda: multiply(PACKED, PACKED.T, device="V100"),
    "matmul.residuals": lambda: multiply(
        RESIDUALS, RESIDUALS.T, device="B200", instruction="tcgen05.mxf8f6f4"
    ),
    "matmul.block_scaled_pair": lambda: multiply(
        PACKED, PACKED.T, device="B200", instruction="tcgen05.mxf8f6f5"
    ),
    "explain.device": lambda: explain(device=["V100"]),
    "explain.shapes": lambda: explain(HALF, HALF),
    "explain.model_instruction": lambda: explain(device=MODEL, instruction="wgmma"),
    "explain.model_accumulator": lambda: explain(device=MODEL, accumulator=np.float64),
    "explain.blocks": lambda: explain(PACKED, PACKED),
    "identify.shape": lambda: identify(HALF, HALF.T, None, np.ones(3, np.float32)),
    "identify.dtype": lambda: identify(HALF, HALF.T, None, np.ones((3, 3), int)),
    "identify.ragged": lambda: identify(HALF, HALF.T, None, [[1], [1, 2]]),
    "identify.inexact": lambda: identify(HALF, HALF.T, None, [[0.1] * 3] * 3),
    "identify.unit": lambda: identify(unit="H1000"),
    "identify.instruction": lambda: identify(instruction="fma"),
    "identify.instruction_type": lambda: identify(instruction=3),
    "identify.unit_instruction": lambda: identify(unit="A100", instruction="wgmma"),
    "identify.unit_dtype": lambda: identify(unit="float64"),
    "identify.alpha": lambda: identify(alpha="one"),
    "identify.beta": lambda: identify(beta=np.inf),
    "identify.bias": lambda: identify(bias=np.ones((2, 2))),
    "identify.bias_type": lambda: identify(bias=1j),
    "identify.scale_a": lambda: identify(scale_a=np.ones((3, 2))),
    "identify.scale_b": lambda: identify(scale_b=np.ones(2)),
    "identify.scale_stack": lambda: identify(scale_a=np.ones((2, 3, 1))),
    "explain.cpu_unit": lambda: explain(device=CPU_UNIT),
    "identify.pair": lambda: identify(HALF, HALF.T, None, np.ones((3, 3))),
    "blocks.format": lambda: quantize(format="mxfp5"),
    "blocks.number_format": lambda: quantize(format="bf16"),
    "blocks.format_type": lambda: quantize(format=8),
    "blocks.axis": lambda: quantize(axis=2),
    "blocks.axis_type": lambda: quantize(axis=0.5),
    "blocks.block_size": lambda: quantize(block_size=8),
    "blocks.block_size_type": lambda: quantize(block_size=16.0),
    "blocks.scale": lambda: quantize(scale="max"),
    "blocks.published": lambda: quantize(scale="published"),
    "blocks.published_scale_format": lambda: quantize(
        format="tcfp8", scale="published", scale_format="ue4m3"
    ),
    "blocks.scale_format": lambda: quantize(scale_format="e8m0"),
    "blocks.infinity": lambda: quantize([1.0, np.inf], "tcfp8"),
    "blocks.nan": lambda: quantize([1.0, np.nan], "nvfp4", overflow="saturate"),
    "blocks.range": lambda: quantize([1e300], "tcfp8"),
    "blocks.scalar": lambda: quantize(1.0),
    "blocks.complex": lambda: quantize(np.ones(3, complex)),
    "blocks.axes": lambda: quantize(np.ones((1,) * 63)),
    "blocks.constructor": lambda: called(blocks.BlockArray),
    "blocks.iteration": lambda: list(PACKED.T),
    "blocks.contains": lambda: 1 in PACKED,
    "blocks.function": lambda: called(np.add, PACKED, 1),
    "blocks.no_copy": lambda: called(np.array, PACKED, copy=False),
    "blocks.matmul_options": lambda: called(np.matmul, PACKED, PACKED.T, casting="no"),
    "blocks.mT": lambda: blocks.quantize(WIDE[0], "mxfp4").mT,
    "blocks.new_axis": lambda: PACKED[None],
    "blocks.too_many_indices": lambda: PACKED[0, :, 0],
    "blocks.block_axis": lambda: PACKED[:, 3],
    "blocks.index": lambda: called(PACKED.__getitem__, "a"),
    "dequantize.dtype": lambda: dequantize(dtype=np.int32),
    "dequantize.out": lambda: dequantize(out=[0.0]),
    "dequantize.out_dtype": lambda: dequantize(out=np.zeros((4, 64))),
    "dequantize.out_shape": lambda: dequantize(out=np.zeros(4, np.float32)),
    "round.out": lambda: called(blocks.round, WIDE, "mxfp4", out=WIDE.astype(float)),
    "round.out_shape": lambda: blocks.round(WIDE, "mxfp4", out=SINGLE),
    "from_codes.residuals": lambda: from_codes(residuals=PACKED.codes),
    "from_codes.codes": lambda: from_codes(codes=PACKED.codes[:2]),
    "from_codes.codes_dtype": lambda: from_codes(codes=WIDE),
    "from_codes.scales": lambda: from_codes(scales=PACKED.scales[:2]),
    "from_codes.scales_dtype": lambda: from_codes(scales=WIDE[:, :2]),
    "from_codes.shape": lambda: from_codes(shape=()),
    "from_codes.shape_type": lambda: from_codes(shape="ab"),
    "from_codes.shape_size": lambda: from_codes(shape=(2**40, 2**40)),
    "from_codes.tensor_scale": lambda: from_codes(tensor_scale=2.0),
    "from_codes.tensor_scale_type": lambda: from_codes(tensor_scale="x"),
    "from_codes.scale_format": lambda: from_codes(format="tcfp8"),
    "facts": lambda: from_text("{}"),
    "blocks.matmul": lambda: multiply_blocks(WIDE, WIDE.T),
    "blocks.matmul_terms": lambda: multiply_blocks(terms=2),
    "blocks.matmul_axis": lambda: multiply_blocks(PACKED, PACKED),
    "blocks.matmul_scalar": lambda: multiply_blocks(b=np.float32(1)),
    "blocks.matmul_dtype_of_b": lambda: multiply_blocks(b=WIDE.T.astype(float)),
    "blocks.matmul_sizes": lambda: multiply_blocks(b=FINE.T),
    "blocks.matmul_k": lambda: multiply_blocks(b=SINGLE.T),
    "blocks.matmul_dtype": lambda: multiply_blocks(dtype=np.int64),
    "blocks.matmul_out": lambda: multiply_blocks(out=[1]),
    "blocks.matmul_out_shape": lambda: multiply_blocks(out=np.zeros(4, np.float32)),
    "blocks.matmul_out_dtype": lambda: multiply_blocks(out=np.zeros((4, 4), int)),
    "feedback.options": lambda: called(blocks.ErrorFeedback, "mxfp4", bits=8),
    "feedback.state": lambda: blocks.ErrorFeedback("mxfp4").load_state_dict({}),
    "tiles.format": lambda: tiles(format="bf16"),
    "tiles.scale_format": lambda: tiles(scale_format="float33"),
    "tiles.tile": lambda: tiles(tile=(0, 4)),
    "tiles.tile_type": lambda: tiles(tile="ab"),
    "tiles.axes": lambda: tiles(SINGLE[0]),
    "tiles.infinity": lambda: tiles([[np.inf]]),
    "tiles.constructor": lambda: called(blocks.TileArray),
    "tiles.iteration": lambda: list(TILES[0]),
    "tiles.index": lambda: called(TILES.__getitem__, [0]),
    "tiles.indices": lambda: TILES[0, :, :, :],
    "tiles.part": lambda: TILES[:, 1:3],
    "tiles.T": lambda: TILES.T,
    "cuda.import": import_cuda_without_cupy,
}

#: Calls whose error is raised by Python.
PYTHON = {"feedback.options"}


@pytest.mark.parametrize("name", sorted({*CASES} - PYTHON))
def test_messages_have_the_shape(name: str) -> None:
    message = provoke(CASES[name])
    assert not faults(message), message


def test_keywords_are_refused_as_python_does() -> None:
    assert "unexpected keyword argument 'bits'" in provoke(CASES["feedback.options"])


def test_near_devices_are_named() -> None:
    assert "Did you mean H100" in provoke(CASES["devices.key"])
    assert "td.tensor_core.devices" in provoke(CASES["devices.no_near_key"])
