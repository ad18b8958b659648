"""Products of float32 arrays whose operands have formats, from public functions."""

import numpy as np

import tf32dtype as td
from tf32dtype import blocks, tensor_core

F32 = np.float32
#: Formats of both operands: each in a few lines of NumPy.
BOTH = (
    "f32",
    "tf32",
    "bf16",
    "bf16x3",
    "f16",
    "fp8_e4m3",
    "fp8_e5m2:row",
    "fp8_e4m3:block",
    "fp8_e5m2:tile",
    "mxfp8_e4m3",
    "mxfp4",
    "nvfp4",
    "tcfp12",
)
DTYPES = {
    "bf16": td.bfloat16,
    "f16": np.float16,
    "fp8_e4m3": td.float8_e4m3fn,
    "fp8_e5m2": td.float8_e5m2,
}
TILES = {"block": (1, 128), "tile": (128, 128)}


def in_blocks(x, form, which):
    """Return the first (0) or second (1) operand in blocks along k, or in tiles."""
    name, _, scale = form.partition(":")
    if scale:
        size = TILES[scale]
        tile = size if which == 0 else size[::-1]
        return blocks.quantize_tiles(x, DTYPES[name], tile)
    return blocks.quantize(x, form, axis=-1 if which == 0 else -2)


def kind_of_blocks(form):
    """Return what blocks of two formats must share; "" without blocks."""
    name, _, scale = form.partition(":")
    if scale in TILES:
        return "tiles"
    return str(blocks.formats[name].block_size) if name in blocks.formats else ""


def elements(x, form, which):
    """Return numbers of a format and their scales."""
    name, _, scale = form.partition(":")
    if name == "tf32":
        return td.quantize(x, "tf32"), F32(1)
    if name not in ("fp8_e4m3", "fp8_e5m2"):
        return x.astype(DTYPES[name]) if name in DTYPES else x, F32(1)
    axes = (-2, -1) if scale != "row" else (-1 if which == 0 else -2,)
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    largest = finite.max(axis=axes, keepdims=True, initial=0).astype(F32)
    scales = np.maximum(largest / F32(np.finfo(DTYPES[name]).max), F32(2.0**-126))
    scales[largest == 0] = 1
    return (x / scales).astype(DTYPES[name]), scales


def composed(a, b, left, right=None, device=None):
    """Return the product of float32 arrays in formats of both operands."""
    right = left if right is None else right
    a, b = np.asarray(a, F32), np.asarray(b, F32)
    with np.errstate(all="ignore"):
        kinds = kind_of_blocks(left), kind_of_blocks(right)
        if any(kinds):
            x = in_blocks(a, left, 0) if kinds[0] else a
            y = in_blocks(b, right, 1) if kinds[1] else b
            if kinds[0] == kinds[1] and device is None:
                return blocks.matmul(x, y)
            if kinds[0] == kinds[1]:
                return tensor_core.matmul(x, y, device=device)
            other = "f32" if all(kinds) else right if kinds[0] else left
            return same(np.asarray(x), np.asarray(y), other, device)
        if left == right:
            return same(a, b, left, device)
        (x, rows), (y, columns) = elements(a, left, 0), elements(b, right, 1)
        sums = td.matmul(x.astype(F32), y.astype(F32), precision="f32")
        return sums * rows * columns


def same(a, b, form, device=None):
    name, _, scale = form.partition(":")
    options = {"scale": scale} if scale else {}
    return td.matmul(a, b, precision=name, device=device, **options)
