"""Items that h5py and zarr store without a type, and the attribute "dtype"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._cli.main import main

#: The codes of 0, 1, -2, 3, 0.5 and Inf or NaN, by hand.
CODES = {
    "bfloat16": [0, 0x3F80, 0xC000, 0x4040, 0x3F00, 0x7F80],
    "float8_e4m3fn": [0, 0x38, 0xC0, 0x44, 0x30, 0x7F],
    "float8_e5m2": [0, 0x3C, 0xC0, 0x42, 0x38, 0x7C],
}


def raw(name: str) -> Any:
    size = td.formats[name].itemsize
    codes = np.array(CODES[name], f"<u{size}").reshape(2, 3)
    return codes.view(f"V{size}")


def check(array: Any, name: str) -> None:
    assert array.dtype == td.formats[name].dtype
    assert array.shape == (2, 3)
    assert array.ravel()[:5].astype(float).tolist() == [0, 1, -2, 3, 0.5]
    assert not np.isfinite(array[1, 2])


def inspected(path: Path, capsys: Any) -> dict[str, str]:
    assert main(["inspect", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tensors"]
    return {x["name"]: x["format"] for x in found}


@pytest.fixture(params=CODES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_hdf5(name: str, tmp_path: Path, capsys: Any) -> None:
    """Read bfloat16 as Keras writes it, with an attribute of the dataset."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "model.weights.h5"
    with h5py.File(path, "w") as file:
        for key, text in (
            ("vars/0", name),
            ("vars/1", np.bytes_(name.encode())),
            ("vars/empty", name),
        ):
            data = raw(name)[:0] if key == "vars/empty" else raw(name)
            dataset = file.create_dataset(key, data=data)
            assert isinstance(dataset.id.get_type(), h5py.h5t.TypeOpaqueID)
            dataset.attrs["dtype"] = text
        file["typed"] = np.arange(3)
        file["typed"].attrs["dtype"] = "bfloat16"
    loaded = td.hdf5.load(path)
    check(loaded["vars/0"], name)
    check(loaded["vars/1"], name)
    assert loaded["vars/empty"].dtype == td.formats[name].dtype
    assert loaded["typed"].dtype == np.arange(3).dtype
    found = inspected(path, capsys)
    assert found == {x: name for x in loaded if x != "typed"} | {"typed": "int64"}


def test_hdf5_parts_and_assignment(name: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("w", data=raw(name), chunks=(1, 3))
        dataset.attrs["dtype"] = name
        column = td.hdf5.read(dataset, np.s_[:, 1])
        assert column.dtype == td.formats[name].dtype
        assert column.astype(float).tolist() == [1, 0.5]
        td.hdf5.assign(dataset, np.s_[0, :2], [3, 1])
        codes = dataset[...].view(f"<u{td.formats[name].itemsize}")
        three, one = CODES[name][3], CODES[name][1]
        assert codes.ravel().tolist() == [three, one, *CODES[name][2:]]


@pytest.mark.parametrize("text", ["float32", "tf32", "bf17", 7, ["bfloat16"]])
def test_hdf5_of_another_meaning(text: Any, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("w", data=raw("bfloat16")).attrs["dtype"] = text
        with pytest.warns(UserWarning, match="raw items of 2 bytes"):
            assert td.hdf5.read(file["w"]).dtype == np.dtype("V2")


def store(path: Path, name: str, dtype: str) -> None:
    """Write a Zarr array of version 2 with one chunk."""
    path.mkdir(parents=True)
    facts = {"zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": dtype}
    facts |= {"compressor": None, "fill_value": None, "order": "C", "filters": None}
    (path / ".zarray").write_text(json.dumps(facts))
    (path / "0.0").write_bytes(raw(name).tobytes())


def test_zarr(name: str, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("zarr")
    size = td.formats[name].itemsize
    group = tmp_path / "a.zarr"
    store(group / "named", name, f"{'|' if size == 1 else '<'}V{size}")
    (group / "named" / ".zattrs").write_text(json.dumps({"dtype": name}))
    store(group / "tensorstore", name, name)
    store(group / "unnamed", name, f"|V{size}")
    (group / ".zgroup").write_text('{"zarr_format": 2}')
    found = inspected(group, capsys)
    assert found.pop("unnamed") == f"void{8 * size}"
    assert found == {"named": name, "tensorstore": name}
    out = tmp_path / "o.safetensors"
    argv = ["convert", str(group / "named"), str(out), "--to", "float32", "--force"]
    main(argv)
    (wide,) = td.safetensors.load(out).values()
    assert wide.ravel()[:5].tolist() == [0, 1, -2, 3, 0.5]


def test_zarr_numbers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    from tf32dtype._files.readers import open_file

    size = td.formats[name].itemsize
    store(tmp_path / "w.zarr", name, f"|V{size}")
    (tmp_path / "w.zarr" / ".zattrs").write_text(json.dumps({"dtype": name}))
    with open_file(str(tmp_path / "w.zarr")) as file:
        check(file["w"].get(), name)
