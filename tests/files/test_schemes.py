"""Weights with scales in checkpoints: each scheme, built in NumPy, read and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import NAMES, normal, same
from tests.reference.codec import decode_code
from tests.reference.formats import FORMATS
from tf32dtype._files.safetensors import schemes
from tf32dtype._files.safetensors.scheme_rows import divisor
from tf32dtype._files.safetensors.schemes import Facts
from tf32dtype._files.safetensors.writing import lay_out, write_data
from tf32dtype.blocks import BlockArray, TileArray

pytestmark = pytest.mark.once

Array = np.ndarray[Any, Any]
Tensors = dict[str, Array]
RNG = np.random.default_rng(20)


def table(format: str) -> Array:
    """Return the value of each code. NaN and Inf have 0; `draw` does not draw them."""
    row = FORMATS[format]
    exact = [decode_code(row, code) for code in range(row.count)]
    signs = [-1.0 if x.negative else 1.0 for x in exact]
    return np.array(
        [
            sign * x.integer * 2.0**x.exponent
            for sign, x in zip(signs, exact, strict=True)
        ]
    )


def draw(format: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Draw codes of finite numbers, and return the codes and the numbers."""
    row = FORMATS[format]
    special = [bool(decode_code(row, code).special) for code in range(row.count)]
    codes = RNG.choice(np.flatnonzero(~np.array(special)), shape).astype(np.uint8)
    return codes, table(format)[codes]


def power_scales(shape: tuple[int, ...]) -> tuple[Array, Array]:
    codes = RNG.integers(100, 140, shape).astype(np.uint8)
    return codes, 2.0 ** (codes.astype(float) - 127)


def ue4m3_scales(shape: tuple[int, ...]) -> tuple[Array, Array]:
    codes = RNG.integers(1, 127, shape).astype(np.uint8)
    return codes, table("float8_e4m3fn")[codes]


def spread(scales: Array, rows: int, columns: int, shape: tuple[int, ...]) -> Array:
    wide = np.repeat(np.repeat(scales, rows, -2), columns, -1)
    return wide[..., : shape[-2], : shape[-1]]


def pack4(codes: Array) -> Array:
    """Pack pairs of 4-bit codes, the first code in the low half of a byte."""
    return codes[..., ::2] | codes[..., 1::2] << 4


def pack6(codes: Array) -> Array:
    """Pack four 6-bit codes into 24 bits, the first in the lowest bits."""
    four = codes.reshape(*codes.shape[:-1], -1, 4).astype(np.uint32)
    word = four[..., 0] | four[..., 1] << 6 | four[..., 2] << 12 | four[..., 3] << 18
    three = np.stack([word & 255, word >> 8 & 255, word >> 16], -1)
    return three.astype(np.uint8).reshape(*codes.shape[:-1], -1)


def e4m3(codes: Array) -> Array:
    return codes.view(td.float8_e4m3fn)


class Case(NamedTuple):
    """A checkpoint with one weight, `a.weight`."""

    scheme: str
    tensors: Tensors
    values: Array
    kind: str
    metadata: dict[str, str] | None = None


def mxfp8(scheme: str, dtype: Any = np.uint8, shape: Any = (5, 96)) -> Case:
    codes, values = draw("float8_e4m3fn", shape)
    scales, factors = power_scales((*shape[:-1], shape[-1] // 32))
    tensors = {"a.weight": e4m3(codes), "a.weight_scale": scales.view(dtype)}
    return Case(scheme, tensors, values * np.repeat(factors, 32, -1), "mxfp8_e4m3")


def mxfp6() -> Case:
    codes, values = draw("float6_e2m3fn", (5, 96))
    scales, factors = power_scales((5, 3))
    tensors = {"a.weight_packed": pack6(codes), "a.weight_scale": scales}
    values = values * np.repeat(factors, 32, 1)
    return Case("compressed-tensors", tensors, values, "mxfp6_e2m3")


def mxfp4(scheme: str, suffix: str) -> Case:
    codes, values = draw("float4_e2m1fn", (5, 96))
    scales, factors = power_scales((5, 3))
    tensors = {"a.weight" + suffix: pack4(codes), "a.weight_scale": scales}
    return Case(scheme, tensors, values * np.repeat(factors, 32, 1), "mxfp4")


def gpt_oss() -> Case:
    codes, values = draw("float4_e2m1fn", (2, 6, 64))
    scales, factors = power_scales((2, 6, 2))
    blocks = pack4(codes).reshape(2, 6, 2, 16)
    tensors = {"a.weight_blocks": blocks, "a.weight_scales": scales}
    return Case("gpt-oss", tensors, values * np.repeat(factors, 32, -1), "mxfp4")


def nvfp4(scheme: str) -> Case:
    codes, values = draw("float4_e2m1fn", (5, 96))
    scales, factors = ue4m3_scales((5, 6))
    if scheme == "modelopt":
        names, tensor = ("a.weight", "a.weight_scale_2"), np.float32(0.00123)
        multiplier = tensor
    else:
        names = "a.weight_packed", "a.weight_global_scale"
        tensor = np.array([2688 / 3.7], np.float32)
        multiplier = np.float32(1) / tensor[0]
    tensors = {
        names[0]: pack4(codes),
        "a.weight_scale": e4m3(scales),
        names[1]: np.array(tensor),
    }
    # The scale of a block is rounded to float32, as in kernels.
    factors = (factors.astype(np.float32) * multiplier).astype(float)
    return Case(scheme, tensors, values * np.repeat(factors, 16, 1), "nvfp4")


def tiles(
    scheme: str,
    stored: tuple[int, ...],
    tile: tuple[int, int],
    dtype: Any = np.float32,
    format: str = "float8_e4m3fn",
    suffix: str = "_scale",
    shape: tuple[int, ...] = (300, 200),
) -> Case:
    if format == "int8":
        codes = RNG.integers(-128, 128, shape).astype(np.int8)
        values = codes.astype(float)
    else:
        codes, values = draw(format, shape)
        codes = codes.view(getattr(td, format))
    scales = np.exp2(RNG.uniform(-9, 9, stored)).astype(dtype)
    grid = (*shape[:-2], -(-shape[-2] // tile[0]), -(-shape[-1] // tile[1]))
    factors = spread(scales.astype(float).reshape(grid), *tile, shape)
    tensors = {"a.weight": codes, "a.weight" + suffix: scales}
    return Case(scheme, tensors, values * factors, f"{format} tiles")


CASES: dict[str, Callable[[], Case]] = {
    "mxfp8, vllm": lambda: mxfp8("compressed-tensors"),
    "mxfp8, modelopt": lambda: mxfp8("modelopt"),
    "mxfp8 of experts": lambda: mxfp8("compressed-tensors", shape=(2, 3, 64)),
    "mxfp6, vllm": mxfp6,
    "mxfp4, vllm": lambda: mxfp4("compressed-tensors", "_packed"),
    "mxfp4, quark": lambda: mxfp4("quark", ""),
    "mxfp4, gpt-oss": gpt_oss,
    "nvfp4, vllm": lambda: nvfp4("compressed-tensors"),
    "nvfp4, modelopt": lambda: nvfp4("modelopt"),
    "deepseek": lambda: tiles("deepseek", (3, 2), (128, 128), suffix="_scale_inv"),
    "deepseek, bfloat16": lambda: tiles(
        "deepseek", (3, 2), (128, 128), td.bfloat16, suffix="_scale_inv"
    ),
    "deepseek, powers": lambda: tiles(
        "deepseek", (3, 2), (128, 128), td.float8_e8m0fnu, suffix="_scale_inv"
    ),
    "deepseek, activations": lambda: tiles(
        "deepseek", (300, 2), (1, 128), suffix="_scale_inv"
    ),
    "deepseek, small": lambda: tiles(
        "deepseek", (1, 1), (128, 128), suffix="_scale_inv", shape=(64, 64)
    ),
    "128 x 128, vllm": lambda: tiles("compressed-tensors", (3, 2), (128, 128)),
    "rows": lambda: tiles("compressed-tensors", (300, 1), (1, 200)),
    "rows, float16": lambda: tiles(
        "compressed-tensors", (300, 1), (1, 200), np.float16
    ),
    "rows of experts": lambda: tiles(
        "compressed-tensors", (2, 30, 1), (1, 20), shape=(2, 30, 20)
    ),
    "matrix, vllm": lambda: tiles("compressed-tensors", (1,), (300, 200)),
    "matrix, modelopt": lambda: tiles("modelopt", (), (300, 200)),
    "e5m2": lambda: tiles("compressed-tensors", (1,), (300, 200), format="float8_e5m2"),
    "int8": lambda: tiles(
        "compressed-tensors", (300, 1), (1, 200), td.bfloat16, "int8"
    ),
}


def saved(path: Path, tensors: Tensors, metadata: Any = None) -> dict[str, Any]:
    """Save tensors, and return the stored dtypes, shapes and bytes."""
    td.safetensors.save(path, tensors, metadata=metadata)
    return stored(path)


def stored(path: Path) -> dict[str, Any]:
    with td.safetensors.open(path) as f:
        return {
            name: (f.stored_as(name), f.info(name).shape, f[name].tobytes())
            for name in f
        }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_checkpoints(case, tmp_path):
    """Read a checkpoint, and write it again: the same tensors, bit by bit."""
    scheme, tensors, values, kind, _ = case()
    others = {"a.bias": normal(5), "a.input_scale": np.ones((), np.float32)}
    before = saved(tmp_path / "a", tensors | others)
    loaded = td.safetensors.load(tmp_path / "a", blocks=True)
    assert loaded.keys() == {"a.weight", *others}
    weight = loaded["a.weight"]
    is_blocks = isinstance(weight, BlockArray)
    assert kind == weight.format + ("" if is_blocks else " tiles")
    same(weight.dequantize(np.float64), values)
    same(weight.dequantize(td.bfloat16), values.astype(td.bfloat16))
    td.safetensors.save(tmp_path / "b", loaded, scheme=scheme)
    assert stored(tmp_path / "b") == before
    td.safetensors.save(tmp_path / "c", loaded)
    again = td.safetensors.load(tmp_path / "c", blocks=True, mmap=False)
    assert again["a.weight"] == weight
    with pytest.warns(UserWarning, match="1 tensor, such as .* not applied"):
        plain = td.safetensors.load(tmp_path / "a")
    assert plain.keys() == tensors.keys() | others.keys(), "blocks are asked for"


def test_other_forms_are_read(tmp_path):
    """Read other forms of some writers: dtypes of packed tensors, other axes."""
    for case, change in [
        ("mxfp8, vllm", {"a.weight_scale": lambda x: x.view(td.float8_e8m0fnu)}),
        ("mxfp4, vllm", {"a.weight_packed": lambda x: td.unpack(x, "fp4", (5, 96))}),
        ("nvfp4, modelopt", {"a.weight_scale_2": lambda x: x.reshape(1)}),
        ("nvfp4, vllm", {"a.weight_global_scale": lambda x: x.reshape(())}),
        ("rows", {"a.weight_scale": lambda x: x.reshape(300)}),
        ("matrix, vllm", {"a.weight_scale": lambda x: x.reshape(1, 1)}),
        ("matrix, modelopt", {"a.weight_scale": lambda x: x.reshape(1)}),
    ]:
        _, tensors, values, _, _ = CASES[case]()
        for name, function in change.items():
            tensors[name] = np.asarray(function(tensors[name]))
        td.safetensors.save(tmp_path / "a", tensors)
        found = td.safetensors.load(tmp_path / "a", blocks=True)
        assert list(found) == ["a.weight"], case
        same(found["a.weight"].dequantize(np.float64), values)


def test_which_of_two_that_fit():
    """Choose by the order of the table if several schemes with equal numbers fit."""
    for entries, facts in [
        ((1, 32, "F8_E8M0", (1, 1)), ("mxfp8_e4m3", None)),
        ((64, 64, "F32", (64, 1)), ("float8_e4m3fn", (1, 64))),
        ((64, 64, "F32", (1, 1)), ("float8_e4m3fn", (128, 128))),
        ((1, 64, "F32", (1, 1)), ("float8_e4m3fn", (1, 64))),
        ((300, 64, "F32", (1, 1)), ("float8_e4m3fn", (300, 64))),
    ]:
        m, n, kind, shape = entries
        tensors = {"a": ("F8_E4M3", (m, n)), "a_scale": (kind, shape)}
        (group,) = schemes.find(schemes.Evidence(tensors)).groups
        tile = facts[1] and group.facts.sizes
        assert (group.format, tile) == facts


# -- torchao -----------------------------------------------------------------

#: Metadata as torchao 0.18 writes it.
TORCHAO = {
    "mxfp8_e4m3": """{"_type": "MXTensor", "_data": {"elem_dtype": {"_type":
        "torch.dtype", "_data": "float8_e4m3fn"}, "block_size": 32, "orig_dtype":
        {"_type": "torch.dtype", "_data": "bfloat16"}, "kernel_preference": {"_type":
        "KernelPreference", "_data": "EMULATED"}, "act_quant_kwargs": null,
        "is_swizzled_scales": false}, "_tensor_data_names": ["qdata", "scale"]}""",
    "mxfp4": """{"_type": "MXTensor", "_data": {"elem_dtype": {"_type": "torch.dtype",
        "_data": "float4_e2m1fn_x2"}, "block_size": 32, "orig_dtype": {"_type":
        "torch.dtype", "_data": "bfloat16"}, "kernel_preference": {"_type":
        "KernelPreference", "_data": "EMULATED"}, "act_quant_kwargs": null,
        "is_swizzled_scales": false}, "_tensor_data_names": ["qdata", "scale"]}""",
    "nvfp4": """{"_type": "NVFP4Tensor", "_data": {"is_swizzled_scales": false,
        "use_triton_kernel": false, "act_quant_kwargs": null, "block_size": 16,
        "orig_dtype": {"_type": "torch.dtype", "_data": "bfloat16"}},
        "_tensor_data_names": ["per_tensor_scale", "qdata", "scale"]}""",
    "rows": """{"_type": "Float8Tensor", "_data": {"block_size": [1, 200], "mm_config":
        null, "act_quant_kwargs": null, "kernel_preference": {"_type":
        "KernelPreference", "_data": "AUTO"}, "dtype": {"_type": "torch.dtype",
        "_data": "bfloat16"}}, "_tensor_data_names": ["qdata", "scale"]}""",
}


def torchao(which: str) -> Case:
    if which == "mxfp8_e4m3":
        case = mxfp8("torchao", td.float8_e8m0fnu)
    elif which == "mxfp4":
        case = mxfp4("torchao", "")
    else:
        case = (
            nvfp4("modelopt")
            if which == "nvfp4"
            else tiles("torchao", (300, 1), (1, 200))
        )
    codes, scales, *tensor = case.tensors.values()
    tensors = {
        "a._weight_qdata": codes,
        "a._weight_scale": scales.view(td.float8_e8m0fnu)
        if which == "mxfp4"
        else scales,
    }
    if tensor:
        tensors["a._weight_per_tensor_scale"] = tensor[0]
    what = json.dumps(json.loads(TORCHAO[which]))
    plain = json.dumps({"_type": "Tensor"})
    names = json.dumps(["a.weight", "a.bias"])
    metadata = {"a.weight": what, "a.bias": plain, "tensor_names": names}
    return Case("torchao", tensors, case.values, case.kind, metadata)


@pytest.mark.parametrize("which", TORCHAO)
def test_torchao(which, tmp_path):
    scheme, tensors, values, _, metadata = torchao(which)
    before = saved(tmp_path / "a", tensors | {"a.bias": normal(5)}, metadata)
    loaded = td.safetensors.load(tmp_path / "a", blocks=True)
    assert loaded.keys() == {"a.weight", "a.bias"}
    same(loaded["a.weight"].dequantize(np.float64), values)
    td.safetensors.save(tmp_path / "b", loaded, scheme=scheme)
    assert stored(tmp_path / "b") == before
    with td.safetensors.open(tmp_path / "b") as f:
        assert f.weights()["a.weight"].scheme == "torchao"
        said = dict(f.metadata)
    names = [sorted(json.loads(x.pop("tensor_names"))) for x in (said, metadata)]
    assert names[0] == names[1]
    assert said == metadata


def test_torchao_without_a_tensor_scale(tmp_path):
    _, tensors, _, _, metadata = torchao("nvfp4")
    del tensors["a._weight_per_tensor_scale"]
    td.safetensors.save(tmp_path / "a", tensors, metadata=metadata)
    weight = td.safetensors.load(tmp_path / "a", blocks=True)["a.weight"]
    assert weight.tensor_scale == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"is_swizzled_scales": false', '"is_swizzled_scales": true'),
        ('"block_size": 32', '"block_size": 16'),
        ("MXTensor", "NVFP4Tensor"),
        ("float8_e4m3fn", "float8_e5m2"),
        ('"is_swizzled_scales": false', '"swizzle_type": {"_type": "Swizzle_32_4_4"}'),
        ("_data", "data"),
        ("{", "["),
    ],
)
def test_torchao_that_is_not_plain(old, new, tmp_path):
    _, tensors, _, _, metadata = torchao("mxfp8_e4m3")
    metadata["a.weight"] = metadata["a.weight"].replace(old, new)
    td.safetensors.save(tmp_path / "a", tensors, metadata=metadata)
    with pytest.raises(
        ValueError, match=r"tensor 'a\._weight_qdata' .* no known scheme"
    ):
        td.safetensors.load(tmp_path / "a", blocks=True)


# -- this package's own ------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_own_blocks(name, tmp_path):
    """Save short blocks, another axis, other block sizes and scales: every bit."""
    x = normal((3, 40, 7))
    arrays = {
        "plain": x,
        "a": td.blocks.quantize(x, name),
        "a.b": td.blocks.quantize(x, name, 1, block_size=64),
        "powers": td.blocks.quantize(x, name, 0, scale_format="float8_e8m0fnu"),
        "fine": td.blocks.quantize(x * 1e-9, name, scale_format="ue4m3"),
        "none": td.blocks.quantize(x[:0], name),
    }
    td.safetensors.save(tmp_path / "a", arrays, metadata={"format": "np"})
    for mmap in (True, False):
        found = td.safetensors.load(tmp_path / "a", blocks=True, mmap=mmap)
        assert found.keys() == arrays.keys()
        for key, array in found.items():
            assert type(array) is type(arrays[key])
            assert np.all(array == arrays[key]), key
    with td.safetensors.open(tmp_path / "a") as f:
        assert f.metadata["format"] == "np"
        weights = f.weights()
        assert all(weights[key].shape == x.shape for key in ("a", "a.b", "fine"))


@pytest.mark.parametrize("format", ["float8_e4m3fn", "float8_e3m4", "fp4", "int8"])
@pytest.mark.parametrize("scales", ["float32", "bfloat16", "float16", "float8_e8m0fnu"])
def test_own_tiles(format, scales, tmp_path):
    t = td.blocks.quantize_tiles(
        normal((2, 7, 12)), format, (3, 5), scale_format=scales
    )
    td.safetensors.save(tmp_path / "a", {"t": t, "u": t.mT})
    found = td.safetensors.load(tmp_path / "a", blocks=True)
    assert found["t"] == t
    assert found["u"] == t.mT


def test_shards(tmp_path):
    """Store the tensors of a weight in several files."""
    arrays = {f"w{i}": td.blocks.quantize(normal((8, 64)), "tcfp12") for i in range(4)}
    path = tmp_path / "model.safetensors"
    td.safetensors.save(path, arrays, max_shard_size=700)
    assert len(list(tmp_path.glob("*.safetensors"))) > 4
    found = td.safetensors.load(tmp_path, blocks=True)
    assert {
        name: found[name] == array for name, array in arrays.items()
    } == dict.fromkeys(arrays, True)


def test_copied_metadata(tmp_path):
    """Save metadata of a file whose weights are not saved."""
    mx = td.blocks.quantize(normal((4, 64)), "mxfp4")
    td.safetensors.save(tmp_path / "a", {"a": mx})
    with td.safetensors.open(tmp_path / "a") as f:
        td.safetensors.save(tmp_path / "b", {"b": mx}, metadata=f.metadata)
    with td.safetensors.open(tmp_path / "b") as f:
        assert json.loads(f.metadata["tf32dtype.blocks"]).keys() == {"b"}


# -- NVFP4's divisor ---------------------------------------------------------


def test_divisors():
    """Round 1 / g once; get g back if a float32 has this reciprocal."""
    given = np.exp2(RNG.uniform(-20, 20, 500)).astype(np.float32)
    for g in given:
        scale = np.float32(1) / g
        assert np.float32(1) / divisor(scale) == scale
    missing = 0
    for scale in given:
        back = np.float32(1) / divisor(scale)
        missing += back != scale
        near = np.nextafter(scale, np.float32([0, np.inf]))
        assert near[0] <= back <= near[1]
    assert 0 < missing < 200, "some scales are no reciprocals"


def test_a_tensor_scale_that_is_no_reciprocal(tmp_path):
    scale = next(
        s
        for s in np.linspace(1.5, 1.9, 100, dtype=np.float32)
        if np.float32(1) / divisor(s) != s
    )
    array = td.blocks.quantize(normal((4, 32)), "nvfp4")
    array = BlockArray.from_codes(
        "nvfp4", array.codes, array.scales, shape=(4, 32), tensor_scale=scale
    )
    td.safetensors.save(tmp_path / "a", {"a.w": array}, scheme="vllm")
    got = td.safetensors.load(tmp_path / "a", blocks=True)["a.w"]
    assert abs(got.tensor_scale / scale - 1) <= 2.0**-23
    same(got.codes, array.codes)
    for scheme in ("modelopt", "torchao", "tf32dtype"):
        td.safetensors.save(tmp_path / "a", {"a.w": array}, scheme=scheme)
        assert td.safetensors.load(tmp_path / "a", blocks=True)["a.w"] == array


# -- incomplete groups -------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "change", "refused"),
    [
        ("mxfp8, vllm", {"a.weight_scale": None}, None),
        ("mxfp8, vllm", {"a.weight": None}, None),
        ("mxfp8, vllm", {"a.weight_scale": np.ones((5, 2), np.uint8)}, "a.weight"),
        ("mxfp8, vllm", {"a.weight_scale": np.ones((5, 3), np.int8)}, "a.weight"),
        ("mxfp8, vllm", {"a.weight": np.ones((5, 96), np.float32)}, None),
        (
            "mxfp4, vllm",
            {"a.weight_packed": np.ones((5, 47), np.uint8)},
            "a.weight_packed",
        ),
        ("mxfp4, vllm", {"a.weight": np.ones(3)}, "a.weight_packed"),
        (
            "mxfp4, gpt-oss",
            {"a.weight_blocks": np.ones((2, 6, 2, 15), np.uint8)},
            "a.weight_blocks",
        ),
        ("nvfp4, vllm", {"a.weight_global_scale": None}, "a.weight_packed"),
        ("nvfp4, modelopt", {"a.weight_scale_2": np.ones(2, np.float32)}, "a.weight"),
        ("nvfp4, modelopt", {"a.weight_scale_2": np.ones((), np.float64)}, "a.weight"),
        ("deepseek", {"a.weight_scale_inv": np.ones((3, 3), np.float32)}, "a.weight"),
        ("rows", {"a.weight_scale": np.ones((299, 1), np.float32)}, "a.weight"),
        ("matrix, modelopt", {"a.weight": np.ones(3, td.float8_e4m3fn)}, "a.weight"),
    ],
)
def test_incomplete(case, change, refused, tmp_path):
    """Reject codes whose scales do not fit; read tensors without scales as numbers."""
    tensors = CASES[case]().tensors
    for name, array in change.items():
        if array is None:
            del tensors[name]
        else:
            tensors[name] = array
    td.safetensors.save(tmp_path / "a", tensors)
    codes = td.safetensors.load(tmp_path / "a", blocks=False)
    assert codes.keys() == tensors.keys()
    for name, array in tensors.items():
        same(codes[name], array)
    if refused is None:
        for blocks in (None, True):
            found = td.safetensors.load(tmp_path / "a", blocks=blocks)
            assert found.keys() == tensors.keys()
        return
    with pytest.raises(ValueError, match="no known scheme") as caught:
        td.safetensors.load(tmp_path / "a", blocks=True)
    text = str(caught.value)
    assert f"{tmp_path / 'a'}: tensor {refused!r} of " in text
    scales = [name for name in tensors if name.endswith("scale")]
    assert all(name in text for name in scales)
    others = [name for name in tensors if name != refused]
    if others:
        td.safetensors.load(tmp_path / "a", blocks=True, names=others)
    with pytest.warns(UserWarning, match="1 tensor, such as"):
        td.safetensors.load(tmp_path / "a")


def test_names(tmp_path):
    tensors = CASES["mxfp4, vllm"]().tensors | {"b": normal(3)}
    td.safetensors.save(tmp_path / "a", tensors)
    load = td.safetensors.load
    assert list(load(tmp_path / "a", blocks=True, names="a.weight")) == ["a.weight"]
    assert list(load(tmp_path / "a", blocks=True, names=["b", "a.*"])) == [
        "b",
        "a.weight",
    ]
    assert list(load(tmp_path / "a", names="a.*", blocks=False)) == [
        name for name in tensors if name != "b"
    ]
    with pytest.raises(KeyError, match=r"Did you mean a\.weight\?"):
        load(tmp_path / "a", blocks=True, names="a.weight_packed")


@pytest.mark.parametrize(
    ("case", "name", "value", "text"),
    [
        ("nvfp4, vllm", "a.weight_global_scale", [0], "must be positive"),
        ("nvfp4, vllm", "a.weight_global_scale", [np.nan], "must be positive"),
        ("nvfp4, vllm", "a.weight_global_scale", [1e-40], "a finite reciprocal"),
        ("nvfp4, modelopt", "a.weight_scale_2", np.inf, "must be positive"),
        ("nvfp4, modelopt", "a.weight_scale_2", -1, "must be positive"),
        ("nvfp4, modelopt", "a.weight_scale_2", 3e38, "within the range of float32"),
    ],
)
def test_damaged_scales(case, name, value, text, tmp_path):
    tensors = CASES[case]().tensors
    tensors[name] = np.array(value, np.float32)
    td.safetensors.save(tmp_path / "a", tensors)
    with pytest.raises(ValueError, match=text) as caught:
        td.safetensors.load(tmp_path / "a", blocks=True)
    assert f"{tmp_path / 'a'}: weight 'a.weight'" in str(caught.value)
    td.safetensors.load(tmp_path / "a", blocks=False)


def test_negative_scales(tmp_path):
    tensors = CASES["nvfp4, modelopt"]().tensors
    scales = np.full((5, 6), -1, td.float8_e4m3fn)
    td.safetensors.save(tmp_path / "a", tensors | {"a.weight_scale": scales})
    with pytest.raises(ValueError, match=r"'a\.weight': scales must be ue4m3 .* 0xb8"):
        td.safetensors.load(tmp_path / "a", blocks=True)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        "{}",
        '{"a": 1}',
        '{"a": {"format": "mxfp4", "shape": [4, 64]}}',
        '{"a": {"format": "mxfp4", "shape": [4, 65], "axis": 1, "block_size": 32}}',
        '{"a": {"format": "mxfp5", "shape": [4, 64], "axis": 1, "block_size": 32}}',
        '{"a": {"format": "mxfp4", "shape": [4, 64], "axis": 2, "block_size": 32}}',
        '{"a": {"format": "mxfp4", "shape": [4, 64], "axis": "", "block_size": 32}}',
        '{"a": {"format": "mxfp4", "shape": [4, 64], "axis": 1, "block_size": 33}}',
        '{"a": {"format": "mxfp4", "shape": [1e9, 1e9], "axis": 1, "block_size": 32}}',
        '{"a": {"format": [], "shape": [4, 64], "axis": 1, "block_size": 32}}',
        '{"a": {"format": "mxfp4", "shape": [4, 64], "tile": [1]}}',
        '{"a": {"format": "fp4", "shape": [4, 64], "tile": {}}}',
        '{"a": {"format": "fp4", "shape": [4], "tile": [1, 1], "scale_format": "f"}}',
        "[" * 100_000,
    ],
)
def test_hostile_metadata(text, tmp_path):
    mx = td.blocks.quantize(normal((4, 64)), "mxfp4")
    tensors, _ = schemes.tensors_of("a", mx)
    for metadata in (
        {"tf32dtype.blocks": text},
        {"tensor_names": '["a", 1]', "a": text},
        {"tensor_names": text},
    ):
        write(tmp_path / "a", tensors, metadata)
        if "tf32dtype.blocks" in metadata and text.startswith('{"a"'):
            with pytest.raises(ValueError, match="the codes and scales of 'a' do not"):
                td.safetensors.load(tmp_path / "a", blocks=True)
            others = td.safetensors.load(tmp_path / "a", names="a.codes", blocks=False)
            assert np.array_equal(others["a.codes"], tensors["a.codes"])
            continue
        with pytest.raises(ValueError, match="no known scheme"):
            td.safetensors.load(tmp_path / "a", blocks=True)


def write(path: Path, tensors: Tensors, metadata: dict[str, str]) -> None:
    """Write a file with metadata that `save` would replace."""
    plan = lay_out({n: (a.dtype, a.shape) for n, a in tensors.items()}, metadata)
    with open(path, "wb") as stream:
        stream.write(plan.header)
        for name, kind in plan.kinds.items():
            write_data(stream, tensors[name], kind)


def test_a_number_that_is_no_scale_format(tmp_path):
    mx = td.blocks.quantize(normal((4, 64)), "mxfp4")
    tensors, metadata = schemes.tensors_of("a", mx)
    write(tmp_path / "a", tensors, metadata)
    assert td.safetensors.load(tmp_path / "a", blocks=True)["a"] == mx
    tensors["a.scale_format"] = np.array([99], np.uint8)
    write(tmp_path / "a", tensors, metadata)
    with pytest.raises(ValueError, match="scale_format must be less than 5; got 99"):
        td.safetensors.load(tmp_path / "a", blocks=True)


# -- weights that a scheme cannot store --------------------------------------


def test_refusals(tmp_path):
    x = normal((4, 80))
    q, t = td.blocks.quantize, td.blocks.quantize_tiles
    for array, scheme, text in [
        (
            q(x, "tcfp8"),
            "vllm",
            "scheme 'vllm' cannot store 'w' (tcfp8 blocks of shape (4, 80)): ",
        ),
        (q(x, "mxfp4"), "vllm", "axis must be a multiple of 32; got 80"),
        (q(x, "mxfp4", 0), "vllm", "along the last axis; got axis 0"),
        (q(x, "nvfp4", block_size=32), "vllm", "block_size must be 16; got 32"),
        (q(x, "nvfp4", scale_format="float8_e8m0fnu"), "vllm", "must be ue4m3"),
        (
            q(x[:, :64], "mxfp4", scale_format="ue5m3"),
            "gpt-oss",
            "scale_format must be float8_e8m0fnu; got ue5m3",
        ),
        (q(x, "nvfp4"), "deepseek", "not have this format"),
        (t(x), "torchao", "contain a module's name and a dot"),
        (t(x, "fp4"), "vllm", "not have this format"),
        (t(x, tile=(2, 2)), "deepseek", "not have tiles of 2 x 2"),
        (t(x, scale_format="float16"), "deepseek", "not have float16 scales"),
        (
            t(x),
            "deepsea",
            "scheme must be one of vllm, compressed-tensors, mod",
        ),
    ]:
        with pytest.raises(ValueError, match=re.escape(text)):
            td.safetensors.save(tmp_path / "a", {"w": array}, scheme=scheme)
        assert not (tmp_path / "a").exists()
    mx = q(x[:, :64], "mxfp4")
    with pytest.raises(ValueError, match=r"different names; got 'a\.codes'"):
        td.safetensors.save(tmp_path / "a", {"a": mx, "a.codes": x})
    with pytest.raises(TypeError, match="strings; got 1"):
        td.safetensors.save(tmp_path / "a", {1: mx})
    with pytest.raises(TypeError, match="a mask"):
        td.safetensors.save(tmp_path / "a", {"a": mx, "b": np.ma.ones(3)})


# -- without numbers ---------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_outlines(case, tmp_path):
    """Outline the tensors of a weight before its numbers are known."""
    scheme, tensors, *_ = case()
    td.safetensors.save(tmp_path / "a", tensors)
    weight = td.safetensors.load(tmp_path / "a", blocks=True)["a.weight"]
    facts = Facts.of(weight)
    for which in ("tf32dtype", scheme):
        outline, metadata = schemes.outline("a.weight", facts, which)
        parts, same_metadata = schemes.tensors_of("a.weight", weight, which)
        assert metadata == same_metadata
        assert {n: (a.dtype, a.shape) for n, a in parts.items()} == outline
    assert schemes.default_scheme(facts) in schemes.SCHEMES


@pytest.mark.parametrize("name", NAMES)
def test_outlines_of_formats(name):
    facts = Facts(name, (4, 64))
    outline, _ = schemes.outline("a", facts)
    array = td.blocks.quantize(normal((4, 64)), name)
    parts, _ = schemes.tensors_of("a", array)
    assert {n: (a.dtype, a.shape) for n, a in parts.items()} == outline
    known = {"mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4"}
    wanted = "compressed-tensors" if name in known else "tf32dtype"
    if name == "mxfp8_e5m2":
        wanted = "torchao"
    assert schemes.default_scheme(facts) == wanted


def test_joined_metadata():
    mx = td.blocks.quantize(normal((4, 64)), "mxfp4")
    said = [schemes.tensors_of(f"m.{i}", mx)[1] for i in range(3)]
    said += [schemes.tensors_of(f"n.{i}", mx, "torchao")[1] for i in range(2)]
    said.append(schemes.tensors_of("n.2", normal(3), "torchao")[1])
    joined = schemes.join([{"format": "pt"}, *said])
    assert json.loads(joined["tf32dtype.blocks"]).keys() == {"m.0", "m.1", "m.2"}
    assert json.loads(joined["tensor_names"]) == ["n.0", "n.1", "n.2"]
    assert joined["format"] == "pt"
    assert json.loads(joined["n.2"]) == {"_type": "Tensor"}


def test_a_mapped_file_stays_mapped(tmp_path):
    _, tensors, *_ = CASES["deepseek"]()
    td.safetensors.save(tmp_path / "a", tensors)
    weight = td.safetensors.load(tmp_path / "a", blocks=True)["a.weight"]
    assert isinstance(weight, TileArray)
    assert not weight.elements.flags.owndata
    plain = td.safetensors.load(tmp_path / "a", mmap=False, blocks=True)["a.weight"]
    assert plain == weight
