"""Products of tile arrays on tensor cores, and functions that take scaled arrays."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import tensor_core_scaled as reference
from tests.reference.codec import decode_code
from tests.reference.formats import FLOAT32
from tests.tensor_core.scaled_cases import assert_bits, words
from tf32dtype.blocks.tiles import SCALE_FORMATS
from tf32dtype.tensor_core.look_up import find_model

E4M3 = "float8_e4m3fn"
TILES = ((1, 128), (1, 32), (128, 128), (3, 64), (1, None), (None, None))
matmul = td.tensor_core.matmul


def tiles(shape, tile, seed, element=E4M3, scale="float32"):
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return td.blocks.quantize_tiles(x, element, tile, scale_format=scale)


def exact_lines(x):
    """Return the bits of lines along k, and the exact scales of their blocks."""
    bits = words(x.elements.astype(np.float32))
    rows = np.repeat(x.scales.astype(np.float32), x.tile[0], 0)[: x.shape[0]]
    scales = [[decode_code(FLOAT32, int(w)) for w in words(line)] for line in rows]
    return list(zip(bits.tolist(), scales, strict=True))


@pytest.mark.parametrize("device", ["H100", "L40S", "B200"])
@pytest.mark.parametrize(("left", "right"), list(product(TILES, repeat=2)), ids=str)
def test_tiles_are_blocks_of_k(device, left, right, compared):
    k = 200
    a, b = tiles((5, k), left, 1), tiles((4, k), right, 2)
    c = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
    if a.tile[1] != b.tile[1]:
        with pytest.raises(ValueError, match="must have the same block size"):
            matmul(a, b.T, c, device=device)
        return
    model = find_model(device, None, E4M3, E4M3, "float32")
    want = [
        reference.promoted_dot(model, [x], [y], int(words(z)[0]), a.tile[1], 4)
        for (x, line) in zip(exact_lines(a), c, strict=True)
        for y, z in zip(exact_lines(b), line, strict=True)
    ]
    got = matmul(a, b.T, c, device=device)
    assert_bits(words(got).reshape(-1), np.array(want, np.uint32))
    compared(got.size)


@pytest.mark.parametrize("scale", SCALE_FORMATS)
def test_tiles_with_blocks(scale):
    """Tiles of one row are blocks, with the same bits on every unit."""
    a, b = tiles((3, 70), (1, 32), 1, scale=scale), tiles((5, 70), (1, 32), 2)
    for device in ("H100", "B200"):
        whole = matmul(a, b.T, device=device)
        if scale != "float8_e8m0fnu":
            continue
        blocks = td.blocks.BlockArray.from_codes(
            "mxfp8_e4m3", a.elements, td.bits(a.scales), shape=a.shape
        )
        np.testing.assert_array_equal(matmul(blocks, b.T, device=device), whole)
        powers = tiles((5, 70), (1, 32), 2, scale=scale)
        np.testing.assert_array_equal(
            matmul(a, powers.T, device=device), matmul(blocks, powers.T, device=device)
        )
    assert whole.shape == (3, 5)


def test_scales_inside_an_instruction():
    a, b = (tiles((3, 96), (1, 32), i, scale="float8_e8m0fnu") for i in (1, 2))
    inside = matmul(a, b.T, device="B200")
    named = matmul(a, b.T, device="B200", instruction="tcgen05.mxf8f6f4")
    np.testing.assert_array_equal(inside, named)
    single = tiles((3, 96), (1, 32), 1)
    with pytest.raises(
        ValueError, match="float32 scales and block size 32; its models are"
    ):
        matmul(single, single.T, device="B200", instruction="tcgen05.mxf8f6f4")


def test_stacks_of_tiles():
    a, b = tiles((2, 1, 3, 130), (1, 64), 1), tiles((4, 5, 130), (2, 64), 2)
    whole = matmul(a, b.mT, device="H100")
    assert whole.shape == (2, 4, 3, 5)
    np.testing.assert_array_equal(whole[1, 2], matmul(a[1, 0], b[2].T, device="H100"))
    assert matmul(tiles((0, 64), (1, 64), 1), b[0, :, :64].T, device="H100").shape == (
        0,
        5,
    )


# -- functions that take scaled arrays -----------------------------------------


def scaled_arrays():
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    return {
        "blocks": td.blocks.quantize(x, "mxfp8_e4m3"),
        "int8 blocks": td.blocks.quantize(x, "mxint8"),
        "tiles": tiles((64, 64), (1, 32), 0),
        "int8 tiles": tiles((64, 64), (1, 32), 0, "int8"),
        "numbers": x,
        "elements": x.astype(td.float8_e4m3fn),
    }


ARRAYS = scaled_arrays()
PAIRS = {
    "tensor_core.matmul": lambda a, b: matmul(a, b, device="H100"),
    "block-scaled": lambda a, b: matmul(
        a, b, device="B200", instruction="tcgen05.mxf8f6f4"
    ),
    "tensor_core.explain": lambda a, b: td.tensor_core.explain(a, b, device="H100"),
    "tensor_core.identify": lambda a, b: td.tensor_core.identify(a, b, None, 1),
    "blocks.matmul": td.blocks.matmul,
    "numpy.matmul": np.matmul,
    "numpy.dot": np.dot,
    "matmul": td.matmul,
    "matmul in tf32": lambda a, b: td.matmul(a, b, precision="tf32"),
    "einsum": lambda a, b: td.einsum("ij,jk", a, b),
}
TAKES = {
    "tensor_core.matmul": [
        *product(["blocks", "tiles"], repeat=2),
    ],
    "block-scaled": [("blocks", "blocks")],
    "blocks.matmul": list(product(ARRAYS, repeat=2)),
    "numpy.matmul": list(product(ARRAYS, repeat=2)),
}


@pytest.mark.parametrize("pair", list(product(ARRAYS, repeat=2)), ids=" ".join)
@pytest.mark.parametrize("name", PAIRS)
def test_every_pair_is_multiplied_or_refused(name, pair):
    """No call raises AttributeError or a NumPy message about objects."""
    left, right = pair
    if not {left, right} - {"numbers", "elements"}:
        return
    b = ARRAYS[right]
    if isinstance(b, td.blocks.BlockArray):
        x = b.dequantize()
        b = td.blocks.quantize(x, b.format, axis=0)
    elif isinstance(b, td.blocks.TileArray):
        b = b.T
    said = ""
    try:
        PAIRS[name](ARRAYS[left], b)
    except (TypeError, ValueError) as error:
        said = str(error)
    assert not said or pair not in TAKES.get(name, ()), said
    assert "object" not in said, said
