"""GGUF files that the library gguf writes, compared with its own reader."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

gguf = pytest.importorskip("gguf")

import tf32dtype as td  # noqa: E402
from tests.support import documents  # noqa: E402
from tf32dtype._files.gguf import reading as reader  # noqa: E402
from tf32dtype._files.gguf.header import KINDS  # noqa: E402
from tf32dtype._files.readers import open_file  # noqa: E402

pytestmark = pytest.mark.once

KIND = gguf.GGMLQuantizationType
#: Values of the 4-bit codes, from OCP's Microscaling specification.
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a file of arrays, or of bytes of a kind."""

    def write_file(**tensors: Any) -> str:
        path = str(tmp_path / "file.gguf")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_uint32("a.count", 7)
        writer.add_float64("a.number", 2.5)
        writer.add_bool("a.bool", True)
        writer.add_array("a.texts", ["x", "", "é"])
        writer.add_array("a.integers", [1, 2, -3])
        writer.add_array("a.bools", [True, False])
        for name, value in tensors.items():
            array, kind = value if isinstance(value, tuple) else (value, None)
            writer.add_tensor(name, array, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write_file


def test_the_kinds_are_the_librarys() -> None:
    theirs = {
        int(kind): (kind.name, *sizes) for kind, sizes in gguf.GGML_QUANT_SIZES.items()
    }
    ours = {n: (kind.name, kind.block, kind.size) for n, kind in KINDS.items()}
    assert {n: ours.get(n) for n in theirs} == theirs


def test_arrays_are_views_of_the_file(write: Callable[..., str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4, 8))
    arrays: dict[str, Any] = {
        t: (100 * x).astype(t)
        for t in "float64 float32 float16 int64 int32 int16 int8".split()
    }
    arrays["bfloat16"] = (x.astype(td.bfloat16).view(np.uint8), KIND.BF16)
    path = write(**arrays)
    arrays["bfloat16"] = x.astype(td.bfloat16)
    file = reader.open(path)
    assert [*file] == [*arrays]
    assert len(file) == len(arrays)
    assert "int8" in file
    assert "none" not in file
    for name, array in arrays.items():
        found = file[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
        assert np.shares_memory(found, file.raw(name))
        assert not found.flags.writeable
        tensor = file.tensors[name]
        assert (tensor.name, tensor.shape) == (name, array.shape)
        assert tensor.nbytes == array.nbytes
    some = reader.load(path, names=["int1*", "bfloat16"])
    assert [*some] == ["int16", "bfloat16"]
    own = reader.load(path, mmap=False)["bfloat16"]
    assert own.flags.writeable
    np.testing.assert_array_equal(own, arrays["bfloat16"])
    file.close()
    np.testing.assert_array_equal(some["bfloat16"], own)
    with pytest.raises(ValueError, match=r"file.gguf is closed"):
        file["bfloat16"]
    assert [*reader.load(path)] == [*arrays]


def test_metadata(write: Callable[..., str]) -> None:
    metadata = reader.open(write(x=np.ones(3))).metadata
    arrays = {name: metadata.pop(name).tolist() for name in ("a.integers", "a.bools")}
    assert arrays == {"a.integers": [1, 2, -3], "a.bools": [True, False]}
    assert metadata == {
        "general.architecture": "llama",
        "a.count": 7,
        "a.number": 2.5,
        "a.bool": True,
        "a.texts": ["x", "", "é"],
    }


# -- blocks --------------------------------------------------------------------------


def halves(codes: np.ndarray) -> np.ndarray:
    """Pack codes of a block as GGUF does: the first half in the low nibbles."""
    low, high = np.split(codes, 2, axis=-1)
    return (low | high << 4).astype(np.uint8)


def test_mxfp4_of_every_scale(write: Callable[..., str]) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 16, (4, 64, 2, 32))
    codes[0, 0, 0] = [*range(16), *range(16)]
    scales = np.arange(512).reshape(4, 64, 2, 1).astype(np.uint8)
    raw = np.concatenate([scales, halves(codes)], axis=-1).reshape(4, 64, 34)
    path = write(w=(raw, KIND.MXFP4))
    found = reader.load(path)["w"]
    assert isinstance(found, td.blocks.BlockArray)
    assert (found.format, found.shape, found.axis) == ("mxfp4", (4, 64, 64), 2)
    want = np.array(FP4)[codes] * np.exp2(scales.astype(float) - 127)
    want = np.where(scales == 255, np.nan, want).reshape(found.shape)
    np.testing.assert_array_equal(found.dequantize(np.float64), want)
    with np.errstate(all="ignore"):
        theirs = gguf.dequantize(raw, KIND.MXFP4)
    same = np.broadcast_to(scales < 253, codes.shape).reshape(found.shape)
    np.testing.assert_array_equal(found.dequantize()[same], theirs[same])


def test_nvfp4_of_every_scale(write: Callable[..., str]) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 16, (16, 2, 4, 16))
    scales = np.arange(128).reshape(16, 2, 4).astype(np.uint8)
    quants = halves(codes).reshape(16, 2, 32)
    raw = np.concatenate([scales, quants], axis=-1).reshape(16, 72)
    found = reader.load(write(w=(raw, KIND.NVFP4)))["w"]
    assert (found.format, found.shape) == ("nvfp4", (16, 128))
    exponent, mantissa = np.divmod(scales.astype(float), 8)
    worth = np.where(
        exponent == 0,
        mantissa * 2.0**-9,
        (1 + mantissa / 8) * np.exp2(exponent - 7),
    )
    worth[scales == 0x7F] = np.nan
    want = (np.array(FP4)[codes] * worth[..., None]).reshape(found.shape)
    np.testing.assert_array_equal(found.dequantize(), want.astype(np.float32))
    theirs = gguf.dequantize(raw, KIND.NVFP4)
    same = ~np.isnan(want)
    np.testing.assert_array_equal(found.dequantize()[same], theirs[same])


@pytest.mark.parametrize("kind", [KIND.Q8_0, KIND.Q4_0], ids=lambda kind: kind.name)
def test_integers_with_every_float16_scale(
    write: Callable[..., str], kind: Any
) -> None:
    rng = np.random.default_rng(4)
    scales = np.arange(1 << 16, dtype="<u2").reshape(2, 1 << 13, 4, 1)
    shape = (2, 1 << 13, 4, 32)
    if kind == KIND.Q8_0:
        elements = rng.integers(-128, 128, shape)
        packed = elements.astype(np.int8).view(np.uint8)
    else:
        elements = rng.integers(-8, 8, shape)
        packed = halves(elements + 8)
    raw = np.concatenate([scales.view(np.uint8), packed], axis=-1)
    raw = raw.reshape(2, 1 << 13, -1)
    found = reader.load(write(w=(raw, kind)))["w"]
    assert isinstance(found, td.blocks.TileArray)
    assert (found.format, found.tile, found.shape) == (
        "int8",
        (1, 32),
        (2, 1 << 13, 128),
    )
    assert (found.elements == elements.reshape(found.shape)).all()
    with np.errstate(invalid="ignore"):
        want = elements * scales.view("<f2").astype(np.float64)  # exact
        theirs = gguf.dequantize(raw, kind)
    numbers = found.dequantize()
    np.testing.assert_array_equal(numbers, want.reshape(found.shape).astype(np.float32))
    np.testing.assert_array_equal(numbers, theirs)
    same = ~np.isnan(theirs)
    assert (np.signbit(numbers) == np.signbit(theirs))[same].all()


def test_a_row_alone_has_no_tiles(write: Callable[..., str]) -> None:
    path = write(w=(np.zeros(34, np.uint8), KIND.Q8_0))
    with pytest.raises(
        ValueError, match=r"file.gguf: tensor 'w': .* got shape \(32,\)"
    ):
        reader.load(path)


def test_a_negative_scale_is_none(write: Callable[..., str]) -> None:
    raw = np.full((1, 36), 0x80, np.uint8)
    with pytest.raises(
        ValueError, match=r"file.gguf: tensor 'w': scales must be ue4m3"
    ):
        reader.load(write(w=(raw, KIND.NVFP4)))


def test_other_kinds_are_dequantized_by_the_package(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    raw = rng.integers(0, 60, (2, 288), dtype=np.uint8)
    path = write(x=np.ones(3, np.float32), w=(raw, KIND.Q4_K))
    found = reader.load(path)["w"]
    assert (found.dtype, found.shape) == (np.float32, (2, 512))
    np.testing.assert_array_equal(found, gguf.dequantize(raw, KIND.Q4_K))
    (tensor,) = (x for x in open_file(path).values() if x.name == "w")
    assert (tensor.label, tensor.problem) == ("q4_k", "")

    reader._of_package.cache_clear()
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ValueError, match=r"got Q4_K; the package gguf reads others"):
        reader.load(path)
    assert reader.load(path, names="x")["x"].tolist() == [1, 1, 1]
    reader._of_package.cache_clear()


def test_a_name_that_is_not_there(write: Callable[..., str]) -> None:
    path = write(x=np.ones(3, np.float32))
    with pytest.raises(
        KeyError, match=r"'y' is not a tensor of .*file.gguf. The first tensors are 'x'"
    ):
        reader.load(path, names=["x", "y"])
    with pytest.raises(FileNotFoundError):
        reader.open(path + "0")


def test_the_guide(
    write: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = np.zeros((4, 68), np.uint8)
    path = write(**{"blk.0.w": np.ones(3), "output.weight": (raw, KIND.Q8_0)})
    Path(path).rename(tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    documents.check_page(documents.GGUF, {})
