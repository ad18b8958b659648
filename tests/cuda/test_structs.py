"""Structs that Python fills, or reads, as bytes have the layout of the kernels."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.cuda import tfc  # noqa: F401
from tests.support.paths import SRC
from tf32dtype import _core
from tf32dtype.cuda._functions import reductions, ufuncs
from tf32dtype.cuda._matmul import (
    exact,
    integer_products,
    operand_lines,
    tile_options,
)
from tf32dtype.cuda._runtime import strides
from tf32dtype.cuda.blocks import kernels, products, wgmma

pytestmark = pytest.mark.once

#: file, struct, and the dtype that must have the same layout
STRUCTS: list[tuple[str, str, Any]] = [
    ("cuda/common/map.h", "tf_constants", ufuncs.CONSTANTS),
    ("cuda/common/strides.h", "tf_walk<1>", strides._walk_dtype(1)),
    ("cuda/ufuncs/tree.h", "plan", reductions._PLAN),
    ("cuda/ufuncs/ending.h", "ending", reductions._ENDING),
    ("cuda/matmul/tile_loader.h", "tf_task", tile_options.TASK),
    ("cuda/matmul/transpose.cu", "tf_operand_lines", operand_lines._LINES),
    ("cuda/exact/moduli.h", "scale_limits", integer_products.LIMITS),
    ("cuda/exact/reconstruct.h", "reconstruction", integer_products.RECONSTRUCTION),
    ("cuda/exact/multiply_int8.cu", "products", integer_products.PRODUCTS),
    ("cuda/exact/round_sums.cu", "source", exact.SOURCE),
    ("cuda/blocks/fma_matmul.cu", "tf_side", products._SIDE),
    ("cuda/blocks/fma_matmul.cu", "tf_block_task", products.TASK),
    ("cuda/blocks/wgmma_matmul.cu", "Side", wgmma.SIDE),
    ("cuda/blocks/bounds.cu", "tf_bounds", kernels._BOUNDS),
]


def asserted(file: str, struct: str) -> tuple[int, dict[str, int]]:
    """Return the size and the offsets that a file's static assertions give a struct."""
    text = (SRC / file).read_text()
    name = re.escape(struct)
    (size,) = re.findall(rf"sizeof\({name}\) == (\d+)", text)
    offsets = re.findall(rf"TF_OFFSETOF\({name}, (\w+)\) ==\s+(\d+)", text)
    return int(size), {field: int(at) for field, at in offsets}


@pytest.mark.parametrize(("file", "struct", "dtype"), STRUCTS)
def test_dtypes(file, struct, dtype):
    size, offsets = asserted(file, struct)
    assert dtype.itemsize == size
    assert offsets
    for field, at in offsets.items():
        assert dtype.fields[field][1] == at, field


def test_plan():
    size, _ = asserted("blocks/block_plan.h", "struct tf_block_plan")
    assert len(_core.block_plan((0, -1, 0, 32), 0, 1.0, 0, False)) == size
