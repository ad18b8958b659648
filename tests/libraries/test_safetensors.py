"""The safetensors library and td.safetensors write equal files, and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._files.safetensors.dtypes import KINDS

safetensors = pytest.importorskip("safetensors")

#: The library's dtype names, by those of files. F4's name counts pairs.
NAMES = dict(
    pair.split("=")
    for pair in """
    BOOL=bool F4=float4_e2m1fn_x2 U8=uint8 I8=int8 F8_E5M2=float8_e5m2
    F8_E4M3=float8_e4m3fn F8_E8M0=float8_e8m0fnu F8_E4M3FNUZ=float8_e4m3fnuz
    F8_E5M2FNUZ=float8_e5m2fnuz I16=int16 U16=uint16 F16=float16 BF16=bfloat16
    I32=int32 U32=uint32 F32=float32 C64=complex64 F64=float64 I64=int64 U64=uint64
    """.split()
)


def arrays() -> dict[str, np.ndarray]:
    """Return arrays of every dtype that the library writes, with unordered names."""
    rng = np.random.default_rng(1)
    found = {}
    for number, name in enumerate(NAMES):
        kind = KINDS[name]
        codes = rng.integers(
            0, 2 if name == "BOOL" else 1 << min(kind.bits, 8), (3, 64)
        )
        items = codes.astype(np.uint8).view(kind.dtype)
        found[f"{(number * 7) % 11} {name}"] = items
    found['é"\\\n\x01\x7f/😀'] = np.zeros((0, 3), np.float32)
    found["scalar"] = np.array(1.5, td.bfloat16)
    return found


def theirs(tensors: dict[str, np.ndarray], metadata: dict[str, str] | None) -> bytes:
    """Return the file that the library makes of these tensors."""
    specs: dict[str, Any] = {}
    kept = []
    for name, array in tensors.items():
        kind = next(key for key, kind in KINDS.items() if kind.dtype == array.dtype)
        shape, data = array.shape, np.ascontiguousarray(array).view(np.uint8)
        if kind == "F4":
            shape = (*shape[:-1], shape[-1] // 2)
            data = data[..., ::2] | data[..., 1::2] << 4
        data = np.ascontiguousarray(data)
        kept.append(data)
        specs[name] = safetensors.TensorSpec(
            dtype=NAMES[kind],
            shape=shape,
            data_ptr=data.ctypes.data,
            data_len=data.nbytes,
        )
    return bytes(safetensors.serialize(specs, metadata=metadata))


@pytest.mark.parametrize(
    "metadata", [None, {}, {"format": "pt"}, {"é\n": '"\b\\\u2028'}]
)
def test_files_are_equal(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    td.safetensors.save(tmp_path / "a", arrays(), metadata=metadata)
    assert (tmp_path / "a").read_bytes() == theirs(arrays(), metadata)


@pytest.mark.parametrize("mmap", [True, False])
def test_their_files_are_read(mmap: bool, tmp_path: Path) -> None:
    want = arrays()
    (tmp_path / "a").write_bytes(theirs(want, {"k": "v", "l": "w"}))
    found = td.safetensors.load(tmp_path / "a", mmap=mmap)
    assert found.keys() == want.keys()
    for name, array in found.items():
        assert array.dtype == want[name].dtype, name
        assert array.shape == want[name].shape
        assert array.tobytes() == want[name].tobytes()
    with td.safetensors.open(tmp_path / "a") as tensors:
        assert tensors.metadata == {"k": "v", "l": "w"}


def test_ours_are_read(tmp_path: Path) -> None:
    """Read also arrays of formats that have no dtype in safetensors."""
    want = {**arrays(), "tf32": np.array([[1.5, -2]], td.tf32)}
    want["e3m4"] = np.array([1.5, 3], td.float8_e3m4)
    want["f6"] = np.arange(8).astype(td.float6_e3m2fn)
    td.safetensors.save(tmp_path / "a", want)
    read = dict(safetensors.deserialize((tmp_path / "a").read_bytes()))
    assert read.keys() == want.keys()
    with td.safetensors.open(tmp_path / "a") as tensors:
        for name, facts in read.items():
            assert tuple(facts["shape"]) == want[name].shape
            assert facts["dtype"] == tensors.stored_as(name)
    assert np.frombuffer(read["tf32"]["data"], np.float32).tolist() == [1.5, -2]
    assert bytes(read["e3m4"]["data"]) == want["e3m4"].tobytes()


def test_numpys_interface(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    want = {"b": np.arange(6.0).reshape(2, 3), "a": np.arange(4, dtype=np.int16)}
    save_file(want, tmp_path / "theirs", metadata={"format": "np"})
    td.safetensors.save(tmp_path / "ours", want, metadata={"format": "np"})
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()
    for name, array in load_file(tmp_path / "ours").items():
        np.testing.assert_array_equal(array, want[name])


def test_bfloat16_by_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file

    values = [1.5, -2.25, 3e38]
    save_file({"x": torch.tensor(values, dtype=torch.bfloat16)}, tmp_path / "a")
    read = td.safetensors.load(tmp_path / "a")["x"]
    assert read.dtype == td.bfloat16
    assert read.tolist() == np.array(values, td.bfloat16).tolist()
    td.safetensors.save(tmp_path / "b", {"x": read})
    assert load_file(tmp_path / "b")["x"].dtype == torch.bfloat16


#: Faults that the reference accepts: it takes the last of two tensors with a name, and
#: has other limits than NumPy's arrays.
PASSED = ["twice", "overflow without items", "65 axes"]


def test_what_the_reference_refuses_is_refused() -> None:
    from tests.files.test_safetensors_header import BAD

    passed = []
    for fault, (data, _) in BAD.items():
        try:
            safetensors.deserialize(data)
        except safetensors.SafetensorError:
            continue
        passed.append(fault)
    assert passed == PASSED
