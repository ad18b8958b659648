"""Files of other libraries in `tf32dtype inspect`, `compare` and `convert`."""

import os
import sys

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import complaint, report
from tf32dtype._cli.main import main
from tf32dtype._files.gguf import reading

pytestmark = pytest.mark.once

RNG = np.random.default_rng(2)
W = RNG.standard_normal((32, 64)).astype(np.float32) * 0.02
BF16 = W.astype(td.bfloat16)
BLOCKS = td.blocks.quantize(W, "mxfp4")


def gguf_file():
    gguf = pytest.importorskip("gguf")
    kinds = gguf.GGMLQuantizationType
    writer = gguf.GGUFWriter("a.gguf", "test")
    writer.add_tensor("w", BF16.view(np.uint8), raw_dtype=kinds.BF16)
    writer.add_tensor("f", W)
    writer.add_tensor("q", gguf.quants.quantize(W, kinds.MXFP4), raw_dtype=kinds.MXFP4)
    writer.add_tensor("i", gguf.quants.quantize(W, kinds.Q8_0), raw_dtype=kinds.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    integers = gguf.dequantize(gguf.GGUFReader("a.gguf").tensors[3].data, kinds.Q8_0)
    q = gguf.dequantize(gguf.GGUFReader("a.gguf").tensors[2].data, kinds.MXFP4)
    numbers = {"w": BF16, "f": W, "q": q.copy(), "i": integers.copy()}
    return "a.gguf", numbers, ["bfloat16", "float32", "mxfp4", "q8_0"]


def onnx_file():
    onnx = pytest.importorskip("onnx")
    from_array = pytest.importorskip("tf32dtype.interop.onnx").from_array
    fp8 = (W * 100).astype(td.fp8_e5m2)
    tensors = [from_array(BF16, "w"), from_array(fp8, "p")]
    tensors += [onnx.numpy_helper.from_array(W, "f")]
    graph = onnx.helper.make_graph([], "g", [], [], initializer=tensors)
    onnx.save(onnx.helper.make_model(graph), "a.onnx")
    numbers = {"w": BF16, "p": fp8, "f": W}
    return "a.onnx", numbers, ["bfloat16", "float8_e5m2", "float32"]


def onnx_file_beside():
    """Save numbers in a file next to the model."""
    onnx = pytest.importorskip("onnx")
    graph = onnx.helper.make_graph(
        [], "g", [], [], initializer=[onnx.numpy_helper.from_array(W, "f")]
    )
    options = {"save_as_external_data": True, "size_threshold": 0, "location": "data"}
    onnx.save(onnx.helper.make_model(graph), "a.onnx", **options)
    return "a.onnx", {"f": W}, ["float32"]


def hdf5_file():
    pytest.importorskip("h5py")
    td.hdf5.save("a.h5", {"l/w": BF16, "l/q": BLOCKS, "f": W})
    numbers = {"f": W, "l/q": BLOCKS.dequantize(), "l/w": BF16}
    return "a.h5", numbers, ["float32", "mxfp4", "bfloat16"]


def zarr_folder():
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("tf32dtype.interop.zarr")
    group = zarr.open_group("a.zarr", mode="w")
    for name, x in (("f", W), ("l/w", BF16)):
        group.create_array(name, shape=x.shape, dtype=x.dtype, chunks=(8, 8))[...] = x
    return "a.zarr", {"f": W, "l/w": BF16}, ["float32", "bfloat16"]


def zarr_array():
    zarr = pytest.importorskip("zarr")
    zarr.save("f.zarr", W)
    return "f.zarr", {"f": W}, ["float32"]


FILES = [gguf_file, onnx_file, onnx_file_beside, hdf5_file, zarr_folder, zarr_array]


@pytest.mark.parametrize("make", FILES)
def test_files_of_other_libraries(make, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path, numbers, labels = make()
    found = report(capsys, "inspect", path)["tensors"]
    assert [x["name"] for x in found] == [*numbers]
    assert [x["format"] for x in found] == labels
    for row, x in zip(found, numbers.values(), strict=True):
        values = x.astype(np.float64)
        assert row["shape"] == [*x.shape]
        assert (row["min"], row["max"]) == (values.min(), values.max())
        assert row["zeros"] == np.count_nonzero(values == 0)
    # Converting rounds the exact numbers once, and keeps tensors of the format.
    report(capsys, "convert", path, "o.safetensors", "--to", "bf16")
    out = td.safetensors.load("o.safetensors")
    assert out.keys() == numbers.keys()
    for name, x in numbers.items():
        assert out[name].tobytes() == x.astype(td.bfloat16).tobytes()
    name = "" if path == "f.zarr" else f":{next(iter(numbers))}"
    compared = report(capsys, "compare", path + name, "--formats", "float32")
    assert compared["shape"] == [*W.shape]
    assert compared["formats"][0]["snr_db"] == "inf"
    assert "is the input" not in complaint(
        capsys, "convert", path, "o.safetensors", "--to", "bf16"
    )


@pytest.mark.parametrize("make", [gguf_file, onnx_file, hdf5_file])
def test_files_that_are_cut_short(make, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path, _, _ = make()
    os.truncate(path, os.path.getsize(path) - 999)
    for argv in (
        ["inspect"],
        ["compare"],
        ["convert", "o.safetensors", "--to", "bf16"],
    ):
        assert path in complaint(capsys, argv[0], path, *argv[1:])
    assert os.listdir() == [path]


def test_a_changed_file_of_a_zarr_folder_is_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from tf32dtype._files.readers import open_file

    path, _, _ = zarr_folder()
    with open_file(path) as file:
        chunks = [x for x in file.paths if os.sep + "c" + os.sep in x]
    assert len(chunks) == 2 * 4 * 8


def test_checkpoints_of_pytorch_name_the_line(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.ones(3)}, "m.pt")
    said = complaint(capsys, "convert", "m.pt", "o.safetensors", "--to", "bf16")
    assert "m.pt is a PyTorch checkpoint" in said
    assert "safetensors.torch.save_file" in said


def test_tensors_that_cannot_be_read_are_left_out_if_excluded(
    tmp_path, monkeypatch, capsys
):
    gguf = pytest.importorskip("gguf")
    monkeypatch.chdir(tmp_path)
    writer = gguf.GGUFWriter("k.gguf", "test")
    writer.add_tensor("w", W)
    kind = gguf.GGMLQuantizationType.Q4_K
    writer.add_tensor("blk.q", np.zeros((2, 144), np.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    reading._of_package.cache_clear()
    monkeypatch.setitem(sys.modules, "gguf", None)  # gguf reads this kind
    convert = ["convert", "k.gguf", "o.safetensors", "--to", "bf16"]
    said = complaint(capsys, *convert)
    assert "Q4_K" in said
    assert "use --exclude 'blk.q' to omit the tensor" in said
    assert not os.path.exists("o.safetensors")
    assert main([*convert, "--exclude", "blk"]) == 0
    assert "blk.q is left out" in capsys.readouterr().err
    assert [*td.safetensors.load("o.safetensors")] == ["w"]
    nothing = ["--include", "nothing", "--exclude", "blk", "--force"]
    assert "--include nothing" in complaint(capsys, *convert, *nothing)
