"""`tf32dtype diff`: its numbers, every kind of file, its exit codes."""

import json
import math
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.command_line import complaint, plain, report
from tf32dtype._cli import diff_tensors
from tf32dtype._cli.main import main
from tf32dtype._measures import differences
from tf32dtype._measures.differences import Differences
from tf32dtype._measures.format_facts import facts

pytestmark = pytest.mark.once

RNG = np.random.default_rng(4)
X = RNG.standard_normal((32, 64)).astype(np.float32)
Y = np.nextafter(np.nextafter(X, 9), 9)  # 2 ulps, except next to a power of two
Y[0, :8] = X[0, :8]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def save(path, **tensors):
    td.safetensors.save(path, tensors)
    return path


def rows(found):
    return {row["name"]: row for row in found["tensors"]}


def results(found):
    return {name: row["result"] for name, row in rows(found).items()}


# -- numbers ---------------------------------------------------------------------------


def test_numbers_by_hand(capsys):
    a = np.array([1, 2, 0.0, np.nan, -4, 8, 16, 3], np.float32)
    b = np.array([1, 2, -0.0, np.nan, -4, 8, 16, 3], np.float32)
    b[1] += 5 * 2.0**-22
    b[4] -= 3 * 2.0**-21
    b[5] += 2.0**-20
    save("a.safetensors", w=a)
    save("b.safetensors", w=b)
    found = report(capsys, "diff", "a.safetensors", "b.safetensors", code=1)
    noise = (5 * 2.0**-22) ** 2 + (3 * 2.0**-21) ** 2 + 2.0**-40
    signal_ = 1 + 4 + 16 + 64 + 256 + 9
    (row,) = found["tensors"]
    assert row.pop("snr_db") == pytest.approx(10 * math.log10(signal_ / noise))
    side = {"format": "float32", "shape": [8], "bytes": 32}
    assert row == {
        "name": "w",
        "result": "differs",
        "a": side,
        "b": side,
        "elements": 8,
        "differing": 3,
        "median_ulps": 0,
        "largest_ulps": 5,
        "ulps_of": "float32",
    }
    assert found["files"] == ["a.safetensors", "b.safetensors"]
    assert found["limits"] == {"ulps": None, "db": None}
    assert found["counts"] == {"differs": 1}
    assert found["differs"] is True


@pytest.mark.parametrize("name", [*td.formats, "float16", "float32", "float64"])
def test_formats_against_their_rounding(name, capsys):
    """Find 0 ulps to the rounded array, and a difference if it is inexact."""
    form = facts(name)
    x = np.abs(X).astype(np.float64) + 2.0**-40
    with np.errstate(all="ignore"):
        y = x.astype(form.dtype)
    td.savez("a.npz", w=x)
    td.savez("b.npz", w=y)
    if form.has_nan and not np.isfinite(y).all():
        pytest.fail("the numbers are in every range")
    argv = ["diff", "a.npz", "b.npz"]
    inexact = int(np.count_nonzero(y.astype(np.float64) != x))
    found = report(capsys, *argv, code=int(inexact > 0))
    (row,) = found["tensors"]
    assert (row["differing"], row["largest_ulps"]) == (inexact, 0)
    assert row["ulps_of"] == name
    report(capsys, *argv, "--ulps", "0")
    back = report(capsys, "diff", "b.npz", "a.npz", code=int(inexact > 0))
    assert back["tensors"][0]["differing"] == inexact


def counted(a, b, form="float32"):
    found = Differences(facts(form))
    found.take(np.asarray(a), np.asarray(b))
    return found


@pytest.mark.parametrize(
    ("a", "b", "ulps", "snr"),
    [
        (np.nan, 1.0, math.inf, -math.inf),
        (1.0, np.nan, math.inf, -math.inf),
        (np.nan, np.nan, 0, math.inf),
        (np.inf, np.inf, 0, math.inf),
        (np.inf, 1.0, 0x7F800000 - 0x3F800000, -math.inf),
        (3.0, np.inf, 0x7F800000 - 0x40400000, -math.inf),
        (0.0, -0.0, 0, math.inf),
        (0.0, 1.0, 0x3F800000, -math.inf),
        (1.0, 0.0, 0x3F800000, 0),
        (2.0**-149, -(2.0**-149), 2, -20 * math.log10(2)),
        (2.0**127, 1.5 * 2.0**127, 1 << 22, 20 * math.log10(2)),
    ],
)
def test_special_values(a, b, ulps, snr):
    found = counted(np.float32([a]), np.float32([b]))
    assert found.largest_ulps == found.median_ulps == ulps
    assert found.differing == int(ulps > 0)
    assert found.snr == pytest.approx(snr)


@pytest.mark.parametrize("scale", [2.0**-1070, 2.0**-600, 2.0**600, 2.0**1020])
def test_snr_of_all_magnitudes(scale):
    found = counted(np.array([8, 4]) * scale, np.array([8, 5]) * scale, "float64")
    assert found.snr == pytest.approx(10 * math.log10(80))
    found.take(np.array([1.0, 0.0]), np.array([1.0, 0.0]))  # of another magnitude
    signal_ = 10 * math.log10(80) if scale > 1 else -20 * math.log10(scale)
    assert found.snr == pytest.approx(signal_)


def test_median_of_ulps():
    """Compute the median over all pieces; of two middle counts, take the lower one."""
    one = np.ones(4, np.float32)
    two = (one.view(np.int32) + np.int32([0, 3, 9, 1 << 20])).view(np.float32)
    found = counted(one, two)
    for i in range(1, 4):
        found.take(one[i:], two[i:])
    assert found.elements == 10
    assert found.median_ulps == 9
    found.take(np.float32([np.nan]), one[:1])
    assert found.median_ulps == 9
    far = counted(np.ones(3), np.ones(3) * 4, "float64")
    assert far.median_ulps == 2 << 52
    for steps in (1, 2, 65535, 65537, 12345678):
        apart = (one.view(np.int32) + np.int32(steps)).view(np.float32)
        assert counted(one, apart).median_ulps == pytest.approx(steps, rel=2**-14)


@pytest.mark.exhaustive
def test_pieces_and_layouts_change_nothing(capsys, monkeypatch):
    a, b = RNG.standard_normal((2, 37, 41))
    td.savez("c.npz", w=a, q=td.blocks.quantize(a, "mxfp8"))
    td.savez("d.npz", w=b, q=a)
    whole = report(capsys, "diff", "c.npz", "d.npz", code=1)
    assert rows(whole)["w"]["differing"] == 37 * 41
    assert rows(whole)["q"]["snr_db"] > 25
    monkeypatch.setattr(diff_tensors, "PIECE", 100)
    monkeypatch.setattr(differences, "_AT_A_TIME", 7)
    for order in ("C", "F"):
        np.savez("d.npz", w=np.asarray(b, order=order), q=a)
        parts = report(capsys, "diff", "c.npz", "d.npz", code=1)
        for name, row in rows(parts).items():
            want = rows(whole)[name]
            assert row.pop("snr_db") == pytest.approx(want["snr_db"])
            assert row.items() <= want.items()


def test_integers_strings_and_others(capsys):
    big = 2**62
    td.savez(
        "a.npz",
        i=np.array([big, 3]),
        u=np.uint8([0, 255]),
        t=np.array(["a", "b"]),
        c=np.array([3 + 4j, 1]),
        b=np.array([True, False]),
        m=np.ones(2),
        o=np.ones(2),
        z=np.ones((0, 3)),
        s=np.float32(3),
    )
    td.savez(
        "b.npz",
        i=np.array([big + 1, 3]),
        u=np.uint8([255, 0]),
        t=np.array(["a", "c"]),
        c=np.array([3 + 5j, 1]),
        b=np.array([True, True]),
        m=np.ones(2, int),
        o=np.array(["a", "b"]),
        z=np.ones((0, 3)),
        s=np.float32(3),
    )
    found = rows(report(capsys, "diff", "a.npz", "b.npz", code=1))
    assert {name: row.get("differing") for name, row in found.items()} == {
        **{"o": None, "t": 1, "u": 2, "b": 1, "c": 1, "i": 1, "m": 0, "z": 0, "s": 0},
    }
    assert found["i"]["snr_db"] == pytest.approx(20 * math.log10(big), abs=0.01)
    assert found["c"]["snr_db"] == pytest.approx(10 * math.log10(26))
    assert found["u"]["snr_db"] == pytest.approx(-10 * math.log10(2))
    assert found["t"]["snr_db"] is None
    assert found["i"]["largest_ulps"] is found["i"]["ulps_of"] is None
    assert found["m"]["result"] == "format differs"
    assert "both hold numbers, or have one dtype" in found["o"]["note"]
    assert found["o"]["result"] == "unreadable"
    within = results(report(capsys, "diff", "a.npz", "b.npz", "--ulps", "9999", code=1))
    assert within["i"] == within["t"] == "differs"
    assert within["m"] == "within limits"
    within = results(report(capsys, "diff", "a.npz", "b.npz", "--db", "100", code=1))
    assert (within["i"], within["t"], within["c"]) == (
        "within limits",
        "differs",
        "differs",
    )


# -- kinds of files --------------------------------------------------------------------


def npy_file(stem, x):
    np.save(f"{stem}.npy", x)
    return f"{stem}.npy"


def npz_file(stem, x):
    td.savez(f"{stem}.npz", w=x)
    return f"{stem}.npz"


def safetensors_file(stem, x):
    return save(f"{stem}.safetensors", w=x)


def checkpoint(stem, x):
    os.makedirs(stem, exist_ok=True)
    td.safetensors.save(f"{stem}/model.safetensors", {"w": x}, max_shard_size=1)
    return stem


def folder_of_arrays(stem, x):
    os.mkdir(f"{stem}-arrays")
    np.save(f"{stem}-arrays/w.npy", x)
    return f"{stem}-arrays"


def gguf_file(stem, x):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(f"{stem}.gguf", "test")
    writer.add_tensor("w", x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return f"{stem}.gguf"


def hdf5_file(stem, x):
    pytest.importorskip("h5py")
    td.hdf5.save(f"{stem}.h5", {"w": x})
    return f"{stem}.h5"


def zarr_group(stem, x):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(f"{stem}.zarr", mode="w")
    group.create_array("w", shape=x.shape, dtype=x.dtype, chunks=(8, 8))[...] = x
    return f"{stem}.zarr"


def onnx_file(stem, x):
    onnx = pytest.importorskip("onnx")
    tensor = onnx.numpy_helper.from_array(x, "w")
    graph = onnx.helper.make_graph([], "g", [], [], initializer=[tensor])
    onnx.save(onnx.helper.make_model(graph), f"{stem}.onnx")
    return f"{stem}.onnx"


KINDS = [npy_file, npz_file, safetensors_file, checkpoint, folder_of_arrays, gguf_file]
KINDS += [hdf5_file, zarr_group, onnx_file]


@pytest.mark.parametrize(("one", "other"), [*product(KINDS, repeat=2)])
def test_every_pair_of_kinds(one, other, capsys):
    first, second, same = one("a", X), other("b", Y), other("a-", X)
    want = np.abs(X.view(np.int32).astype(int) - Y.view(np.int32))
    found = report(capsys, "diff", first, second, code=1)
    (row,) = found["tensors"]
    assert row["differing"] == X.size - 8
    assert (row["median_ulps"], row["largest_ulps"]) == (2, want.max())
    assert rows(report(capsys, "diff", first, same)).popitem()[1]["result"] == "equal"
    name = "" if second.endswith(".npy") else ":w"
    assert report(capsys, "diff", first, second + name, code=1)["tensors"] == [row]


def test_quantized_beside_the_original(capsys):
    x = X * 3
    save("a.safetensors", w=x, v=x[:, :16])
    for to in ("mxfp4", "mxfp8", "nvfp4", "fp8_e4m3 --scheme deepseek"):
        argv = ["a.safetensors", "q.safetensors", "--to", *to.split(), "--force"]
        assert main(["convert", *argv, "--include", "w"]) == 0
        capsys.readouterr()
        converted = report(capsys, "inspect", "q.safetensors")
        label = {row["name"]: row["format"] for row in converted["tensors"]}["w"]
        found = rows(report(capsys, "diff", "a.safetensors", "q.safetensors", code=1))
        back = td.safetensors.load("q.safetensors", blocks=True)["w"].dequantize()
        error = np.linalg.norm(back.astype(float) - x) / np.linalg.norm(x.astype(float))
        assert found["w"]["b"]["format"] == label != "float32"
        assert found["w"]["snr_db"] == pytest.approx(-20 * math.log10(error))
        assert found["w"]["differing"] == np.count_nonzero(back != x)
        assert found["w"]["ulps_of"] == "float32"
        assert found["v"]["result"] == "equal"
    # Compare blocks with different axes, and blocks in both files.
    td.savez("c.npz", w=td.blocks.quantize(x, "mxfp4", axis=0))
    td.savez("d.npz", w=td.blocks.quantize(x, "mxfp4"))
    two = rows(report(capsys, "diff", "c.npz", "d.npz", code=1))["w"]
    assert 10 < two["snr_db"] < 30
    assert results(report(capsys, "diff", "d.npz", "d.npz")) == {"w": "equal"}


def test_raw_codes_are_noted(capsys):
    tensors = {"bad": X.astype(td.fp8_e4m3), "bad_scale_inv": np.ones((9, 9), "f4")}
    td.safetensors.save("a.safetensors", tensors)
    td.safetensors.save("b.safetensors", {**tensors, "bad": X})
    found = rows(report(capsys, "diff", "a.safetensors", "b.safetensors", code=1))
    with td.safetensors.open("a.safetensors"):
        noted = found["bad"].get("note", "")
    assert "bad" in noted
    assert noted in plain(capsys, "diff", "a.safetensors", "b.safetensors", code=1)
    same = rows(report(capsys, "diff", "a.safetensors", "a.safetensors"))
    assert "note" not in same["bad"]


# -- names, results and exit codes -----------------------------------------------------


@pytest.fixture
def two():
    """Save two files whose comparison has every result, with names in no order."""
    a = {"z": X, "equal": X, "far": X, "near": X, "shape": X, "half": X}
    b = {"new": X, "equal": X, "far": -X, "near": Y, "shape": X.T}
    b["half"] = X.astype(np.float64)
    return save("a.safetensors", **a), save("b.safetensors", **b)


def test_the_worst_come_first(two, capsys):
    found = report(capsys, "diff", *two, code=1)
    assert [*results(found).items()] == [
        ("z", "only in A"),
        ("new", "only in B"),
        ("shape", "shape differs"),
        ("far", "differs"),
        ("near", "differs"),
        ("half", "format differs"),
        ("equal", "equal"),
    ]
    assert found["counts"]["differs"] == 2
    assert rows(found)["z"]["b"] is rows(found)["new"]["a"] is None
    assert "differing" not in rows(found)["shape"]
    lines = plain(capsys, "diff", *two, code=1).splitlines()
    assert lines[0] == (
        "A: a.safetensors (safetensors), B: b.safetensors (safetensors)"
    )
    assert lines[-1] == (
        "7 tensors: 1 only in A, 1 only in B, 1 shape differs, 2 differ,"
        " 1 format differs, 1 equal"
    )
    assert len(lines) == 1 + 2 + 7 + 1


@pytest.mark.parametrize(
    ("options", "code", "near", "half"),
    [
        ("", 1, "differs", "format differs"),
        ("--ulps 1", 1, "differs", "within limits"),
        ("--ulps 9", 0, "within limits", "within limits"),
        ("--db 100", 0, "within limits", "within limits"),
        ("--db 200", 1, "differs", "within limits"),
        ("--ulps 9 --db 200", 1, "differs", "within limits"),
        ("--ulps 9 --db 100", 0, "within limits", "within limits"),
    ],
)
def test_limits(options, code, near, half, two, capsys):
    argv = ["diff", *two, *options.split(), "--include", "near|half|equal"]
    found = report(capsys, *argv, code=code)
    assert results(found) == {"near": near, "half": half, "equal": "equal"}
    assert found["differs"] == bool(code)
    for name in ("z", "new", "shape"):
        report(capsys, "diff", *two, *options.split(), "--include", name, code=1)


def test_names_are_chosen(two, capsys):
    argv = ["--include", "a", "--exclude", "^s", "--exclude", "half"]
    found = report(capsys, "diff", *two, *argv, code=1)
    assert [*results(found)] == ["far", "near", "equal"]
    words = "--include and --exclude must leave a tensor to compare; got none of 7"
    assert words in complaint(capsys, "diff", *two, "--include", "gone")
    found = report(capsys, "diff", "a.safetensors:z", "b.safetensors:new")
    assert results(found) == {"z, new": "equal"}
    found = report(capsys, "diff", "a.safetensors:equal", "b.safetensors")
    assert results(found) == {"equal": "equal"}
    found = report(capsys, "diff", "a.safetensors", "b.safetensors:equal")
    assert results(found) == {"equal": "equal"}
    assert "has 6 tensors; use one of" in complaint(
        capsys, "diff", "a.safetensors:z", "b.safetensors"
    )
    assert "is not a tensor of" in complaint(
        capsys, "diff", "a.safetensors:gone", "b.safetensors"
    )


def test_arrays_need_no_names(capsys):
    np.save("a.npy", X)
    np.save("b.npy", Y)
    save("w.safetensors", w=X)
    found = report(capsys, "diff", "a.npy", "b.npy", code=1)
    assert results(found) == {"a, b": "differs"}
    assert results(report(capsys, "diff", "a.npy", "w.safetensors")) == {
        "a, w": "equal"
    }


def test_folders_of_arrays(capsys):
    for folder, x in (("a", X), ("b", Y)):
        os.mkdir(folder)
        np.save(f"{folder}/one.npy", X)
        np.save(f"{folder}/two.npy", x)
        td.savez(f"{folder}/more.npz", w=x, v=X)
        np.savez(f"{folder}/two.npz", w=X)
        with open(f"{folder}/notes.txt", "w") as file:
            file.write("not a tensor")
    found = report(capsys, "diff", "a", "b", code=1)
    assert results(found) == {
        "more:w": "differs",
        "two.npy": "differs",
        "more:v": "equal",
        "one": "equal",
        "two.npz:w": "equal",
    }
    listed = report(capsys, "inspect", "a")["tensors"]
    assert {row["name"] for row in listed} == {*results(found)}
    os.mkdir("c")
    assert "must be a folder of" in complaint(capsys, "diff", "a", "c")


def test_errors_are_two_and_differences_one(capsys):
    save("a.safetensors", w=X)
    for name, raw in (("empty", b""), ("text", b"1, 2"), ("cut.npy", b"\x93NUMPY\1")):
        with open(name, "wb") as file:
            file.write(raw)
        assert name in complaint(capsys, "diff", "a.safetensors", name)
        assert name in complaint(capsys, "diff", name, "a.safetensors")
    assert "gone" in complaint(capsys, "diff", "a.safetensors", "gone")
    assert "--ulps must be 0 or more" in complaint(
        capsys, "diff", "a.safetensors", "a.safetensors", "--ulps", "-1"
    )
    assert "--ulps" in complaint(
        capsys, "diff", "a.safetensors", "a.safetensors", "--ulps", "0.5"
    )


def test_what_cannot_be_read_is_a_difference(capsys):
    tensors = {
        "bad_packed": np.zeros((2, 16), np.uint8),
        "bad_scale": np.ones((2, 2), td.fp8_e4m3),
        "bad_global_scale": np.zeros(1, np.float32),
    }
    td.safetensors.save("a.safetensors", tensors)
    found = rows(report(capsys, "diff", "a.safetensors", "a.safetensors", code=1))
    assert found["bad"]["result"] == "unreadable"
    assert "tensor scale must be positive and finite" in found["bad"]["note"]


# -- output ----------------------------------------------------------------------------


def test_the_page(two, capsys):
    argv = ["diff", *two, "--html", "x.html", "--ulps", "0"]
    text = plain(capsys, *argv, code=1)
    page = Path("x.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<tr>") == 1 + 7
    assert "limits: --ulps 0" in page
    for line in text.splitlines():
        for cell in line.split("  "):
            assert cell.strip("- ") in page
    save("<b>.safetensors", **{"<i>": X})
    plain(capsys, "diff", "<b>.safetensors", "<b>.safetensors", "--html", "x.html")
    assert "<i>" not in Path("x.html").read_text().replace("</i>", "")
    os.mkdir("d")
    assert "must be a file" in complaint(capsys, *argv[:3], "--html", "d")


def test_json_is_strict(capsys):
    save("a.safetensors", w=np.array([1, np.nan], np.float32))
    save("b.safetensors", w=np.array([1, 2], np.float32))
    main(["diff", "a.safetensors", "b.safetensors", "--json"])

    def refuse(name):
        raise AssertionError(name)

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    (row,) = found["tensors"]
    assert (row["largest_ulps"], row["snr_db"]) == ("inf", "-inf")
    lines = plain(capsys, "diff", "a.safetensors", "b.safetensors", code=1).splitlines()
    assert lines[3].split()[-2:] == ["inf", "-inf"]


@pytest.mark.skipif(not forks.AVAILABLE, reason="needs forks")
def test_ctrl_c_ends_it():
    save("a.safetensors", w=X)
    code = (
        "import os, signal\n"
        "from tf32dtype._cli import diff_tensors, main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def stop(array):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "diff_tensors.release = stop\n"
        "raise SystemExit(main.main(['diff', 'a.safetensors', 'a.safetensors']))\n"
    )
    done = forks.python("-c", code)
    assert done.returncode == 130
    assert done.stdout == done.stderr == ""


# -- compare ---------------------------------------------------------------------------


def test_compare_says_that_it_multiplies(capsys):
    square = X[:, :32]
    save("a.safetensors", w=square, v=X)
    save("b.safetensors", w=square + 1, v=X, u=square)
    argv = ["compare", "a.safetensors:w", "b.safetensors:w", "--formats", "bf16"]
    hint = "`tf32dtype diff a.safetensors:w b.safetensors:w` compares them"
    text = plain(capsys, *argv)
    (line,) = [line for line in text.splitlines() if "diff" in line]
    assert "the table has the error of A @ B" in line
    assert hint in line
    assert "diff" not in json.dumps(report(capsys, *argv))
    for others in (
        ["a.safetensors:w", "b.safetensors:u"],  # other names
        ["a.safetensors:w", "b.safetensors:v"],  # other shapes
        ["a.safetensors:w", "a.safetensors:w"],  # the square of a matrix
    ):
        assert "diff" not in plain(capsys, "compare", *others, "--formats", "bf16")


def test_compare_of_two_checkpoints_shows_their_differences(two, capsys):
    text = plain(capsys, "compare", *two)
    first, rest = text.split("\n", 1)
    assert "`tf32dtype diff`" in first
    assert rest == plain(capsys, "diff", *two, code=1)
    found = report(capsys, "compare", *two)
    assert found == report(capsys, "diff", *two, code=1)
    for option in ("--formats=bf16", "--precision=tf32", "--scale", "--target-db=3"):
        assert "use one of" in complaint(capsys, "compare", *two, option)
    assert "use one of" in complaint(capsys, "compare", two[0] + ":z", two[1])
    assert "use one of" in complaint(capsys, "compare", two[0])
