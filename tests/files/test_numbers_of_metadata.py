"""Integers of any size and kind as shapes, axes, tiles and block sizes."""

import ast
import json
import math
from functools import partial

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._files.safetensors.scheme_metadata import OWN_KEY
from tf32dtype.blocks import facts_text

pytestmark = pytest.mark.once

X = np.arange(1, 65, dtype=np.float32).reshape(2, 32)
ARRAYS = {
    "blocks": td.blocks.quantize(X, "nvfp4"),
    "tiles": td.blocks.quantize_tiles(X, tile=(2, 16)),
}
WRONG = [
    *(sign * 2**bits for bits in (31, 32, 62, 63, 64, 70, 1100) for sign in (1, -1)),
    *(2**bits - 1 for bits in (31, 63, 64)),
    *(0, -1, True, False, 1.0, -0.5, 1e308, math.inf, math.nan),
    *(None, "1", [], [1], {}),
]


def variants(facts):
    """Yield facts with each number, and each number of a list, replaced."""
    for key, value in facts.items():
        if isinstance(value, str):
            continue
        for wrong in WRONG:
            yield key, {**facts, key: wrong}
            for i in range(len(value) if isinstance(value, list | tuple) else 0):
                yield key, {**facts, key: [*value[:i], wrong, *value[i + 1 :]]}


def is_right(read, *errors):
    """Check that a call returns a readable array or raises a ValueError."""
    try:
        array = read()
    except (ValueError, *errors):
        return
    if isinstance(array, td.blocks.TileArray | td.blocks.BlockArray):
        assert array.dequantize().size == array.size


@pytest.mark.parametrize("kind", ARRAYS)
def test_safetensors(kind, tmp_path):
    path = tmp_path / "a.safetensors"
    td.safetensors.save(path, {"w": ARRAYS[kind]})
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    facts = json.loads(header["__metadata__"][OWN_KEY])["w"]
    for _, changed in variants(facts):
        header["__metadata__"][OWN_KEY] = json.dumps({"w": changed})
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
        is_right(lambda: td.safetensors.load(path, blocks=True)["w"])


@pytest.mark.parametrize("kind", ARRAYS)
def test_facts_of_other_files(kind):
    """Read facts as Python literals, as in npy, npz and HDF5 files."""
    array = ARRAYS[kind]
    facts = ast.literal_eval(facts_text.to_text(array))
    buffer = facts_text.to_bytes(array)
    assert facts_text.restore(tuple(facts.values()), buffer) == array
    for _, changed in variants(facts):
        read = partial(facts_text.restore, tuple(changed.values()), buffer)
        is_right(read, TypeError)  # readers turn this into a ValueError


@pytest.mark.parametrize("kind", ARRAYS)
def test_arguments(kind):
    """Name the argument in the error of a call."""
    array = ARRAYS[kind]
    if kind == "tiles":
        parts = array.elements, array.scales
        make, facts = td.blocks.TileArray.from_codes, {"tile": array.tile}
    else:
        parts = array.codes, array.scales
        make = td.blocks.BlockArray.from_codes
        names = "shape", "axis", "block_size", "tensor_scale"
        facts = {name: getattr(array, name) for name in names}
    assert make(array.format, *parts, **facts) == array
    for key, changed in variants(facts):
        try:
            made = make(array.format, *parts, **changed)
        except (ValueError, TypeError) as error:
            said = str(error)
            assert any(word in said for word in (key, "scales", "codes", "axes"))
        else:
            assert made.dequantize().shape == made.shape


@pytest.mark.parametrize("size", [2**63, 2**64, 10**400, -(2**63), True, 1.0, "1"])
def test_tiles_that_are_none(size):
    with pytest.raises((ValueError, TypeError), match="tile"):
        td.blocks.quantize_tiles(X, tile=(size, 1))
    with pytest.raises((ValueError, TypeError), match="tile"):
        td.blocks.quantize_tiles(X, tile=(1, size))
