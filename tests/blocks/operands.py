"""Make arrays of blocks with random codes, and their products by the reference."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import tf32dtype as td
from tests.reference import blocks_matmul as reference
from tests.reference.codec import Exact, decode_code, encode_code, from_float
from tests.reference.formats import FLOAT16, FLOAT32, FORMATS
from tf32dtype.blocks import BlockArray, formats

ROWS = FORMATS | {"float16": FLOAT16, "float32": FLOAT32}


@cache
def finite_codes(element: str) -> np.ndarray:
    """Return all codes of finite numbers of an element format."""
    codes = range(1 << reference.width_of(element))
    return np.array([c for c in codes if not reference.element(element, c).special])


def pack(codes: np.ndarray, width: int) -> np.ndarray:
    """Pack codes along the last axis, the first code in the lowest bits."""
    bits = codes[..., None] >> np.arange(width) & 1
    flat = bits.astype(np.uint8).reshape(*codes.shape[:-1], codes.shape[-1] * width)
    return np.packbits(flat, axis=-1, bitorder="little")


def random_blocks(
    name: str,
    shape: tuple[int, ...],
    axis: int,
    seed: int = 0,
    *,
    block_size: int | None = None,
    scale_format: str | None = None,
    scales: tuple[int, int] | None = None,
    tensor_scale: float | None = None,
) -> BlockArray:
    """Return an array of blocks with random codes and with scales in a range."""
    rng = np.random.default_rng(seed)
    row = formats[name]
    axis %= len(shape)
    size = block_size or row.block_size
    scale_format = scale_format or row.scale_format or "ue4m4"
    powers = scale_format == "float8_e8m0fnu"
    low, high = scales or ((115, 135) if powers else (1, 120))
    grid = (*shape[:axis], *shape[axis + 1 :], -(-shape[axis] // size))

    def codes(element: str) -> np.ndarray:
        filled = np.zeros((*grid[:-1], grid[-1] * size), np.int64)
        live = filled[..., : shape[axis]]
        live[...] = rng.choice(finite_codes(element), live.shape)
        width = reference.width_of(element)
        return pack(filled, width).reshape(*grid, size * width // 8)

    pair = () if row.residual is None else (2,)
    return BlockArray.from_codes(
        name,
        codes(row.element),
        rng.integers(low, high, (*grid, *pair)).astype(np.uint8),
        None if row.residual is None else codes(row.residual),
        shape=shape,
        axis=axis,
        block_size=size,
        scale_format=scale_format,
        tensor_scale=1.0 if powers else tensor_scale or 2.0**-12,
    )


def random_numbers(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, shape) * 2.0 ** rng.integers(-4, 4, shape)
    dtype = getattr(td, name) if hasattr(td, name) else np.dtype(name)
    with np.errstate(all="ignore"):
        return values.clip(-6, 6).astype(dtype)


def lines_of(x: Any, axis: int) -> list[list[Exact]]:
    """Return the exact numbers of a matrix, as lines along an axis."""
    items = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    f = ROWS[items.dtype.name]
    raw = items.view(f"u{items.dtype.itemsize}").tolist()
    mask = f.count - 1  # a table of all codes would take longer
    return [[decode_code(f, item >> f.shift & mask) for item in line] for line in raw]


def levels_of(x: Any, axis: int, block: int) -> list[reference.Level]:
    """Convert a matrix of blocks, or of numbers, to the reference's levels."""
    if not isinstance(x, BlockArray):
        return reference.numbers(lines_of(x, axis), block)
    row = formats[x.format]
    tensor = from_float(float(x.tensor_scale))
    codes = x.scales[..., None] if row.residual is None else x.scales
    found = []
    for level, (element, packed) in enumerate(
        [(row.element, x.codes), (row.residual, x.residuals)][: row.levels]
    ):
        width = reference.width_of(element)
        lines = [
            [
                reference.element(element, code)
                for code in reference.unpack(line.tobytes(), width)
            ][: x.shape[axis]]
            for line in packed
        ]
        scales = []
        for line in codes:
            s = [reference.block_scale(x.scale_format, tensor, int(c[0])) for c in line]
            if level:
                r = [
                    reference.residual_scale(x.scale_format, element, int(c[1]))
                    for c in line
                ]
                s = [reference.times(p, q) for p, q in zip(s, r, strict=True)]
            scales.append(s)
        found.append(reference.Level(lines, scales))
    return found


def encoded(sums: list[list[Exact]], dtype: Any) -> np.ndarray:
    """Round sums once to a dtype, and return the items as integers."""
    f = ROWS[np.dtype(dtype).name]
    items = [[encode_code(f, x)[0] << f.shift for x in line] for line in sums]
    shape = (len(sums), len(sums[0]) if sums else 0)
    return np.array(items, f"u{np.dtype(dtype).itemsize}").reshape(shape)


def expected(
    a: Any, b: Any, terms: int = 4, dtype: Any = np.float32
) -> np.ndarray[Any, Any]:
    """Return the items of the product of two matrices by the reference."""
    block = next(x.block_size for x in (a, b) if isinstance(x, BlockArray))
    x, y = levels_of(a, 1, block), levels_of(b, 0, block)
    return encoded(reference.product(x, y, block, terms), dtype)


def items_of(x: Any) -> np.ndarray[Any, Any]:
    x = np.asarray(x)
    return np.array(x, copy=True, order="C").view(f"u{x.dtype.itemsize}")
