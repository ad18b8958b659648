"""`tf32dtype convert` to blocks and tiles with scales, by their schemes, and back."""

import json
import os

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import report
from tf32dtype._cli.main import main
from tf32dtype._files.readers import open_file

pytestmark = pytest.mark.once

RNG = np.random.default_rng(12)
W = RNG.standard_normal((64, 96)).astype(np.float32) * 0.02


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tensors = {"l.weight": W.astype(td.bfloat16), "l.bias": W[0]}
    td.safetensors.save("in.safetensors", tensors, metadata={"a": "b"})
    return "in.safetensors"


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


#: Options, and the tensors of the output: names and dtypes that readers expect.
SCHEMES = [
    ("mxfp8", [], {"l.weight": "F8_E4M3", "l.weight_scale": "U8"}),
    ("mxfp4", [], {"l.weight_packed": "U8", "l.weight_scale": "U8"}),
    (
        "nvfp4",
        [],
        {
            "l.weight_packed": "U8",
            "l.weight_scale": "F8_E4M3",
            "l.weight_global_scale": "F32",
        },
    ),
    (
        "nvfp4",
        ["--scheme", "modelopt"],
        {"l.weight": "U8", "l.weight_scale": "F8_E4M3", "l.weight_scale_2": "F32"},
    ),
    (
        "mxfp8",
        ["--scheme", "torchao"],
        {"l._weight_qdata": "F8_E4M3", "l._weight_scale": "F8_E8M0"},
    ),
    (
        "tcfp12",
        [],
        {
            "l.weight.codes": "U8",
            "l.weight.scales": "U8",
            "l.weight.residuals": "U8",
            "l.weight.scale_format": "U8",
            "l.weight.tensor_scale": "F32",
        },
    ),
    (
        "fp8_e4m3",
        ["--scheme", "deepseek"],
        {"l.weight": "F8_E4M3", "l.weight_scale_inv": "F32"},
    ),
    (
        "fp8_e4m3",
        ["--scheme", "vllm"],
        {"l.weight": "F8_E4M3", "l.weight_scale": "F32"},
    ),
]


@pytest.mark.parametrize(("to", "more", "names"), SCHEMES)
def test_what_a_weight_becomes(to, more, names, checkpoint, capsys):
    argv = ["convert", checkpoint, "out.safetensors", "--to", to, *more]
    found = report(capsys, *argv)
    with td.safetensors.open("out.safetensors") as file:
        stored = {name: file.stored_as(name) for name in file}
        assert stored == {"l.bias": "F32", **names}
        assert file.metadata["a"] == "b"
        assert ("tensor_names" in file.metadata) == ("torchao" in more)
    if to == "fp8_e4m3":
        tile = (128, 128) if "deepseek" in more else (1, None)
        wanted = td.blocks.quantize_tiles(W.astype(td.bfloat16), to, tile)
    else:
        name = "mxfp8_e4m3" if to == "mxfp8" else to
        wanted = td.blocks.quantize(W.astype(td.bfloat16), name)
    with open_file("out.safetensors") as file:
        assert {*file} == {"l.weight", "l.bias"}
        assert file["l.weight"].shape == W.shape
        got = file["l.weight"].read()
        if "l.weight_global_scale" in names:  # a divisor cannot have every value
            assert got.codes.tobytes() == wanted.codes.tobytes()
            assert got.scales.tobytes() == wanted.scales.tobytes()
            assert got.tensor_scale == pytest.approx(wanted.tensor_scale, rel=2e-7)
        else:
            assert got == wanted
        assert same(file["l.bias"].read(), W[0])
    (row,) = found["tensors"]
    values = wanted.dequantize(np.float64)
    truth = W.astype(td.bfloat16).astype(np.float64)
    snr = -20 * np.log10(np.linalg.norm(values - truth) / np.linalg.norm(truth))
    assert row["snr_db"] == pytest.approx(snr, rel=1e-6)
    assert row["to_zero"] == np.count_nonzero((values == 0) & (truth != 0))
    assert row["bytes_out"] == sum(
        x.nbytes
        for name, x in td.safetensors.load("out.safetensors").items()
        if name != "l.bias"
    )
    # Converting back rounds the exact values once.
    report(capsys, "convert", "out.safetensors", "back.safetensors", "--to", "bf16")
    with td.safetensors.open("back.safetensors") as file:
        assert {*file} == {"l.weight", "l.bias"}
        values = got.dequantize(np.float64)
        assert same(file["l.weight"], values.astype(td.bfloat16))
        assert file.metadata == {"a": "b"}


def test_weights_with_scales_that_are_kept(checkpoint, capsys):
    """Copy the tensors and the metadata of a weight that is kept."""
    for more in (["--scheme", "torchao"], ["--scheme", "tf32dtype"]):
        argv = "convert", checkpoint, "q.safetensors", "--force", "--to", "mxfp8", *more
        report(capsys, *argv)
        argv = "convert", "q.safetensors", "k.safetensors", "--force", "--to", "float16"
        found = report(capsys, *argv, "--include", "bias")
        assert found["kept"] == ["l.weight"]
        before, after = (td.safetensors.load(f"{x}.safetensors") for x in "qk")
        assert all(same(after[k], x) for k, x in before.items() if k != "l.bias")
        with open_file("q.safetensors") as one, open_file("k.safetensors") as other:
            assert other["l.weight"].read() == one["l.weight"].read()


def test_shapes_and_numbers_that_have_no_scale(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bad = W.copy()
    bad[3, 4], bad[5, 6] = np.nan, np.inf
    td.safetensors.save("in.safetensors", {"odd": W[:, :7], "bad": bad, "w": W})
    for to, kept in (("nvfp4", {"odd", "bad"}), ("mxfp8", {"odd"}), ("tcfp8", {"bad"})):
        argv = ["convert", "in.safetensors", f"{to}.safetensors", "--to", to, "--json"]
        assert main(argv) == 1
        out, told = capsys.readouterr()
        assert json.loads(out)["not_converted"].keys() == kept
        assert told.count("is copied unchanged") == len(kept)
        assert ("bad is copied unchanged: 1 NaN and 1 Inf" in told) == ("bad" in kept)
        assert ("must be a multiple of" in told) == ("odd" in kept)
        out = td.safetensors.load(f"{to}.safetensors")
        assert all(same(out[k], {"odd": W[:, :7], "bad": bad}[k]) for k in kept)
    argv = "in.safetensors", "s.safetensors", "--to", "mxfp4", "--overflow", "saturate"
    assert main(["convert", *argv, "--json"]) == 1
    failed = json.loads(capsys.readouterr().out)["not_converted"]
    assert failed.keys() == {"odd", "bad"}
    assert failed["bad"] == "1 NaN"


def test_scales_of_no_known_scheme_are_not_lost(tmp_path, monkeypatch, capsys):
    """Reject the conversion of a weight without scales that may belong to it."""
    monkeypatch.chdir(tmp_path)
    tensors = {
        "w": W.astype(td.fp8_e4m3),
        "w_scale_inv": np.ones((3, 7), np.float32),
        "v": W,
    }
    td.safetensors.save("in.safetensors", tensors)
    argv = "convert", "in.safetensors", "o.safetensors", "--to", "bf16", "--json"
    assert main([*argv, "--include", "^[wv]$"]) == 1
    out, told = capsys.readouterr()
    assert [x["name"] for x in json.loads(out)["tensors"]] == ["v"]
    assert "tensor 'w' of F8_E4M3 and shape (64, 96) is in no known scheme" in told
    copied = td.safetensors.load("o.safetensors", blocks=False)
    assert same(copied["w"], tensors["w"])
    # Scales of a weight that is not converted are not converted either.
    assert main([*argv, "--force"]) == 1
    told = capsys.readouterr().err
    assert "w_scale_inv is copied unchanged: it may belong to tensor 'w'," in told
    copied = td.safetensors.load("o.safetensors", blocks=False)
    assert same(copied["w_scale_inv"], tensors["w_scale_inv"])
    assert main([*argv, "--force", "--exclude", "^w"]) == 0  # as the message suggests


def test_inspect_and_compare_take_the_weight(checkpoint, capsys):
    argv = "--to", "nvfp4", "--scheme", "modelopt"
    report(capsys, "convert", checkpoint, "q.safetensors", *argv)
    found = report(capsys, "inspect", "q.safetensors", "--tensor", "l.weight")
    (weight,) = found["tensors"]
    values = td.blocks.quantize(W.astype(td.bfloat16), "nvfp4").dequantize()
    assert (weight["format"], weight["max"]) == ("nvfp4", float(values.max()))
    assert weight["scales"]["values"] == W.size // 16
    found = report(capsys, "compare", "q.safetensors:l.weight", "--formats", "nvfp4")
    assert found["shape"] == [64, 96]
    assert found["formats"][0]["bytes"] == W.size // 2 + W.size // 16 + 4


def test_a_run_of_blocks_that_ends_early_is_gone_on_with(checkpoint, capsys):
    """Draw per tensor for stochastic rounding, independently of earlier work."""
    tensors = {f"l{i}.w": W + np.float32(i / 99) for i in range(4)}
    td.safetensors.save("four.safetensors", tensors)
    more = "--to", "mxfp4", "--rounding", "stochastic", "--seed", "3"
    report(capsys, "convert", "four.safetensors", "a.safetensors", *more)
    td.safetensors.save("two.safetensors", dict([*tensors.items()][2:]))
    report(capsys, "convert", "two.safetensors", "b.safetensors", *more)
    whole, part = (td.safetensors.load(f"{x}.safetensors") for x in "ab")
    assert all(same(whole[name], x) for name, x in part.items())
    assert not same(whole["l0.w_packed"], whole["l1.w_packed"])
    assert sorted(os.listdir()) == sorted(
        [
            checkpoint,
            "four.safetensors",
            "two.safetensors",
            "a.safetensors",
            "b.safetensors",
        ]
    )


# -- exact conversions of codes ----------------------------------------------


def recoded(capsys, array, *argv, scheme="tf32dtype"):
    """Convert an array, and return the result and its record."""
    td.safetensors.save("q.safetensors", {"l.weight": array}, scheme=scheme)
    more = ["q.safetensors", "r.safetensors", "--force", *argv]
    (row,) = report(capsys, "convert", *more)["tensors"]
    with open_file("r.safetensors") as file:
        return file["l.weight"].read(), row


TILES = [
    ((128, 128), "deepseek", []),
    ((128, 128), "vllm", ["--tile", "128x128"]),
    ((None, None), "vllm", []),
    ((None, None), "vllm", ["--tile", "allxall"]),
    ((1, None), "vllm", []),
    ((6, 40), "tf32dtype", ["--tile", "3x20"]),
]


@pytest.mark.parametrize("scales", ["float32", "bfloat16"])
@pytest.mark.parametrize(("tile", "scheme", "more"), TILES)
def test_tiles_change_code_exactly(
    tile, scheme, more, scales, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    if scheme == "deepseek" and scales != "float32":
        pytest.skip("has float32 scales")
    x = np.tile(W, (3, 2))
    a = td.blocks.quantize_tiles(x, "fp8_e4m3", tile, scale_format=scales)
    argv = ["--to", "float8_e4m3fnuz", "--scheme", scheme, *more]
    b, row = recoded(capsys, a, *argv, scheme=scheme)
    assert b.format == "float8_e4m3fnuz"
    assert row["recoded"] is True
    assert row["snr_db"] == "inf"
    codes = np.where(a.elements.view(np.uint8) == 0x80, 0, a.elements.view(np.uint8))
    assert (b.elements.view(np.uint8) == codes).all()
    own, new = (a.tile, b.tile)
    for i, k in np.ndindex(*b.scales.shape):
        scale = a.scales[i * new[0] // own[0], k * new[1] // own[1]]
        assert b.scales[i, k] == 2 * np.float32(scale)


def test_other_tiles_are_quantized_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    a = td.blocks.quantize_tiles(W, "fp8_e4m3", (4, 4))
    argv = ["--to", "float8_e4m3fnuz", "--scheme", "tf32dtype"]
    for more in ([], ["--tile", "3x4"], ["--tile", "4x8"]):
        b, row = recoded(capsys, a, *argv, *more)
        assert row["recoded"] is False
        assert row["snr_db"] < 60
    argv[1] = "fp8_e5m2"  # has no codes for 3 fraction bits
    assert not recoded(capsys, a, *argv, "--tile", "4x4")[1]["recoded"]
    b = td.blocks.quantize(W, "mxfp8")
    argv = ["--to", "float8_e4m3fnuz", "--scheme", "tf32dtype"]
    found, row = recoded(capsys, b, *argv, "--tile", "1x16")
    assert row["recoded"] is True
    assert (found.dequantize(np.float64) == b.dequantize(np.float64)).all()
    for other in (td.blocks.quantize(W, "mxfp8", 0), td.blocks.quantize(W, "tcfp16")):
        assert not recoded(capsys, other, *argv, "--tile", "1x32")[1]["recoded"]


def test_the_table_tells_of_exact_changes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    a = td.blocks.quantize_tiles(W, "fp8_e4m3")
    td.safetensors.save("q.safetensors", {"a.weight": a, "b.weight": W})
    argv = ["--to", "float8_e4m3fnuz", "--tile", "128x128"]
    assert main(["convert", "q.safetensors", "r.safetensors", *argv]) == 0
    out = capsys.readouterr().out
    assert out.endswith(
        "1 tensor changed code exactly: elements were multiplied by a power of two, and"
        " scales divided by it\n"
    )
