"""Scales in tiles: the index of each entry, by the descriptions of the layouts."""

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import normal, same
from tf32dtype import blocks
from tf32dtype.blocks import swizzle_scales, unswizzle_scales

SHAPES = [(1, 1), (128, 4), (129, 5), (200, 16), (31, 3), (300, 9), (0, 4), (5, 0)]


def place_128x4(row: int, column: int, columns: int) -> int:
    """Return an index in cuBLAS' layout: tiles of 32 groups of 16 bytes."""
    tiles = (columns + 3) // 4
    tile = row // 128 * tiles + column // 4
    return 512 * tile + row % 32 * 16 + row % 128 // 32 * 4 + column % 4


def place_8x4(row: int, column: int, columns: int) -> int:
    """Return an index in TensorRT-LLM's layout: row-major tiles of 32 bytes."""
    tiles = (columns + 3) // 4
    return row // 8 * 32 * tiles + column // 4 * 32 + row % 8 * 4 + column % 4


PLACES: dict[str, tuple[int, Callable[[int, int, int], int]]] = {
    "128x4": (128, place_128x4),
    "8x4": (8, place_8x4),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", PLACES)
def test_each_entry(layout, shape):
    rows, columns = shape
    tall, place = PLACES[layout]
    scales = np.random.default_rng(0).integers(1, 256, shape, np.uint8)
    swizzled = swizzle_scales(scales, layout)
    assert swizzled.shape == (-(-rows // tall) * tall, -(-columns // 4) * 4)
    assert swizzled.flags.c_contiguous
    wanted = bytearray(swizzled.size)
    for r, c in itertools.product(range(rows), range(columns)):
        at = place(r, c, columns)
        assert wanted[at] == 0
        wanted[at] = int(scales[r, c])
    assert swizzled.tobytes() == bytes(wanted)
    same(unswizzle_scales(swizzled, shape, layout), scales)


@pytest.mark.parametrize("layout", PLACES)
def test_padding_is_ignored(layout):
    scales = np.random.default_rng(1).integers(1, 256, (130, 6), np.uint8)
    swizzled = swizzle_scales(scales, layout)
    swizzled[swizzled == 0] = 0xFF
    same(unswizzle_scales(swizzled.reshape(-1), (130, 6), layout), scales)


@pytest.mark.parametrize("layout", PLACES)
@pytest.mark.parametrize("dtype", ["uint8", td.float8_e8m0fnu, td.float8_e4m3fn])
def test_dtypes_and_stacks(layout, dtype):
    """Convert each matrix of a stack, of any strides; results share no memory."""
    codes = np.random.default_rng(2).integers(0, 256, (2, 3, 5, 131), np.uint8)
    scales = codes.view(dtype).swapaxes(-1, -2)
    swizzled = swizzle_scales(scales, layout)
    assert swizzled.dtype == scales.dtype
    for k in np.ndindex(2, 3):
        same(swizzled[k], swizzle_scales(scales[k], layout))
    back = unswizzle_scales(swizzled, scales.shape, layout)
    same(back, np.ascontiguousarray(scales))
    assert back.flags.writeable
    assert swizzled.flags.writeable
    assert not np.shares_memory(back, swizzled)
    one = unswizzle_scales(swizzle_scales(codes[0, 0, :4, :4]), (4, 4))
    assert not np.shares_memory(one, codes)


@pytest.mark.parametrize("format", ["nvfp4", "mxfp8_e4m3", "mxfp4"])
def test_round_trip_of_an_array(format):
    b = blocks.quantize(normal((200, 256)), format)
    scales = unswizzle_scales(swizzle_scales(b.scales), b.scales.shape)
    again = blocks.BlockArray.from_codes(
        format, b.codes, scales, shape=b.shape, tensor_scale=b.tensor_scale
    )
    assert again == b


@pytest.mark.parametrize("shape", [(200, 256), (128, 80), (3, 4, 48), (48, 4)])
def test_from_codes_takes_tiles(shape):
    """Take scales in tiles if the shape is that of tiles and the padding is zero."""
    axis = 0 if shape[-1] == 4 else -1
    b = blocks.quantize(normal(shape), "nvfp4", axis)

    def made(scales):
        return blocks.BlockArray.from_codes(
            "nvfp4",
            b.codes,
            scales,
            shape=shape,
            axis=axis,
            tensor_scale=b.tensor_scale,
        )

    tiles = swizzle_scales(b.scales)
    assert tiles.shape != b.scales.shape
    assert made(tiles) == b
    assert made(tiles.view(td.float8_e4m3fn)) == b
    text = re.escape(f"td.blocks.unswizzle_scales(scales, {b.scales.shape}) for tiles")
    rows, columns = b.scales.shape[-2:]
    in_rows = np.zeros_like(tiles)
    in_rows[..., :rows, :columns] = b.scales
    dirty = np.where(tiles == 0, np.uint8(1), tiles)
    for scales in (in_rows, dirty, np.zeros_like(tiles)):
        with pytest.raises(ValueError, match=text):
            made(scales)


def test_from_codes_takes_no_other_tiles():
    b = blocks.quantize(normal((128, 128)), "tcfp16")
    f = b.scale_format
    for scales in (np.ones((128, 4, 4), np.uint8), swizzle_scales(b.scales, "8x4")):
        with pytest.raises(ValueError, match=r"must have shape \(128, 4, 2\)"):
            blocks.BlockArray.from_codes(
                "tcfp16", b.codes, scales, b.residuals, shape=b.shape, scale_format=f
            )


def test_errors():
    x = np.zeros((3, 5), np.uint8)
    wrong = [
        (lambda: swizzle_scales(x.astype(np.float32)), TypeError, "got float32"),
        (lambda: swizzle_scales(x[0]), ValueError, "two axes; got shape (5,)"),
        (lambda: swizzle_scales(x, "4x128"), ValueError, "got '4x128'"),
        (lambda: swizzle_scales(x, 8), ValueError, "got 8"),
        (lambda: unswizzle_scales(x, (3, 5), "16x4"), ValueError, "got '16x4'"),
        (lambda: unswizzle_scales(x.astype("f2"), (3, 5)), TypeError, "float16"),
        (
            lambda: unswizzle_scales(x, (3, 5)),
            ValueError,
            "scales must have 1024 entries for shape (3, 5) in layout '128x4', which"
            " pads to (128, 8); got 15",
        ),
        (lambda: unswizzle_scales(x, (5,)), ValueError, "two axes; got (5,)"),
        (lambda: unswizzle_scales(x, (3, -5)), ValueError, "no negative length"),
    ]
    for call, kind, text in wrong:
        with pytest.raises(kind, match=re.escape(text)):
            call()
