"""`tf32dtype compare`: precisions, block formats, a single array, and its input."""

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import ALL, SIGNED, complaint, plain, report
from tf32dtype import blocks
from tf32dtype._cli import compare_storage
from tf32dtype._matmul.precisions import PRECISIONS
from tf32dtype._measures.format_facts import facts

SHORTS = [mode.short for mode in PRECISIONS]
PRODUCTS = {"tf32x3": 3, "bf16x3": 3, "bf16x6": 6, "bf16x9": 9, "tcfp12": 4}
PRODUCTS["tcfp16"] = 4


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def factors():
    rng = np.random.default_rng(7)
    a = rng.standard_normal((20, 70), np.float32)
    b = rng.standard_normal((70, 30), np.float32)
    np.save("A.npy", a)
    np.save("B.npy", b)
    return a, b


def decibels(found, truth):
    error = np.linalg.norm(found.astype(float) - truth) / np.linalg.norm(truth)
    return float(-20 * np.log10(error))


@pytest.mark.parametrize("name", [*SHORTS, *blocks.formats])
def test_a_precision_against_numpy_by_hand(name, factors, capsys):
    a, b = factors
    truth = a.astype(float) @ b.astype(float)
    if name in SHORTS:
        product = td.matmul(a, b, precision=name)
        mode = next(mode for mode in PRECISIONS if mode.short == name)
        itemsize = 4 if mode.format == "float32" else np.dtype(mode.format).itemsize
        count = mode.components * itemsize * (a.size + b.size)
    else:
        x, y = blocks.quantize(a, name), blocks.quantize(b, name, axis=0)
        product = x @ y
        count = x.nbytes + y.nbytes
    record = report(capsys, "compare", "A.npy", "B.npy", "--precision", name)
    assert "formats" not in record
    (row,) = record["precisions"]
    assert row["precision"] == name
    assert row["snr_db"] == pytest.approx(decibels(product, truth), rel=1e-9)
    worst = float(np.max(np.abs(product - truth) / np.abs(truth)))
    assert row["largest_relative_error"] == pytest.approx(worst)
    assert row["not_finite"] == 0
    assert row["products"] == PRODUCTS.get(name, 1)
    assert row["bytes"] == count + 4 * truth.size


def test_precisions_as_text_in_their_order(factors, capsys):
    names = "bf16x9,bf16x6,bf16x3,tf32x3,BF16_BF16_F32,nvfp4"
    out = plain(capsys, "compare", "A.npy", "B.npy", "--precision", names)
    rows = [line.split() for line in out.splitlines()[7:]]
    assert [row[0] for row in rows] == names.replace("BF16_BF16_F32", "bf16").split(",")
    assert [row[4] for row in rows] == list("963311")
    assert float(rows[0][1]) > float(rows[2][1]) > float(rows[4][1]) > float(rows[5][1])


def test_formats_and_precisions_together(factors, capsys):
    argv = ["compare", "A.npy", "B.npy", "--formats", "bf16,mxfp4", "--precision"]
    record = report(capsys, *argv, "bf16x3,mxfp4", "--target-db", "40")
    assert [row["format"] for row in record["formats"]] == ["bfloat16"]
    assert [row["precision"] for row in record["precisions"]] == ["mxfp4", "bf16x3"]
    assert record["cheapest"] == "bfloat16"
    record = report(capsys, *argv, "bf16x3", "--target-db", "90")
    assert record["cheapest"] == "bf16x3"


def test_overflow_of_a_precision_is_counted(capsys):
    np.save("A.npy", np.array([[1e5, 1.0]]))
    np.save("B.npy", np.array([[1.0, 0.0], [0.0, 1.0]]))
    record = report(capsys, "compare", "A.npy", "B.npy", "--precision", "f16,fp8_e4m3")
    half, scaled = record["precisions"]
    assert (half["not_finite"], half["snr_db"]) == (2, "-inf")
    assert scaled["not_finite"] == 0


# -- a single array --------------------------------------------------------------------


def test_one_array_against_numpy_by_hand(factors, capsys):
    a, _ = factors
    record = report(capsys, "compare", "A.npy")
    names = [row["format"] for row in record["formats"]]
    assert names == [*SIGNED, "float16", "float32", *blocks.formats]
    assert record["shape"] == [20, 70]
    for row in record["formats"]:
        name = row["format"]
        if name in blocks.formats:
            packed = blocks.quantize(a, name)
            stored, count = packed.dequantize(np.float64), packed.nbytes
            assert row["overflows"] is row["underflows"] is None
            assert row["bits_per_value"] == packed.bits_per_value
        else:
            form = facts(name)
            with np.errstate(all="ignore"):
                stored = a.astype(form.dtype)
            count = stored.nbytes
            small = np.abs(a) < form.smallest_normal
            inexact = stored.astype(float) != a
            assert row["overflows"] == 0
            assert row["underflows"] == np.count_nonzero(small & inexact)
        error = np.abs(stored.astype(float) - a)
        assert row["bytes"] == count
        assert row["largest_error"] == error.max()
        assert row["largest_relative_error"] == pytest.approx(np.max(error / np.abs(a)))
        if name == "float32":
            assert row["snr_db"] == "inf"
        else:
            assert row["snr_db"] == pytest.approx(decibels(stored, a.astype(float)))


@pytest.mark.parametrize("shape", [(), (5,), (3, 4, 5)])
def test_one_array_of_any_shape(shape, capsys, monkeypatch):
    monkeypatch.setattr(compare_storage, "BLOCK_ELEMENTS", 7)
    x = np.asfortranarray(np.random.default_rng(1).standard_normal(shape))
    np.save("x.npy", x)
    argv = ["compare", "x.npy", "--formats", "fp8_e4m3,mxfp8_e4m3"]
    plainly, packed = report(capsys, *argv)["formats"]
    want = decibels(x.astype(td.float8_e4m3fn), x)
    assert plainly["snr_db"] == pytest.approx(want)
    packed_x = blocks.quantize(np.atleast_1d(x), "mxfp8_e4m3").dequantize()
    assert packed["snr_db"] == pytest.approx(decibels(packed_x.reshape(shape), x))
    assert " from x.npy" in plain(capsys, *argv)


def test_one_array_with_a_scale_and_a_target(capsys):
    np.save("x.npy", np.random.default_rng(1).standard_normal(200) * 2.0**-70)
    argv = ["compare", "x.npy", "--formats", "fp8_e4m3,bf16", "--target-db", "30"]
    assert report(capsys, *argv)["cheapest"] == "bfloat16"
    record = report(capsys, *argv, "--scale")
    assert record["cheapest"] == "float8_e4m3fn"
    assert record["formats"][0]["scale"] >= 2.0**70
    assert report(capsys, *argv[:-1], "500", code=1)["cheapest"] is None


# -- input -----------------------------------------------------------------------------


def test_saved_blocks_are_their_values(factors, capsys):
    a, _ = factors
    packed = blocks.quantize(a, "mxfp4")
    td.save("blk.npy", packed)
    np.save("values.npy", packed.dequantize())
    td.savez("w.npz", packed=packed, a=a)
    rows = [
        report(capsys, "compare", name, "B.npy", "--formats", "tf32")["formats"]
        for name in ("blk.npy", "values.npy", "w.npz:packed")
    ]
    assert rows[0] == rows[1] == rows[2]


def test_members_of_archives(factors, capsys):
    a, b = factors
    np.savez("x.npz", w1=a, w2=b)
    td.savez("one.npz", b.astype(td.bfloat16))
    whole = report(capsys, "compare", "A.npy", "B.npy")["formats"]
    assert report(capsys, "compare", "x.npz:w1", "x.npz:w2")["formats"] == whole
    assert report(capsys, "compare", "one.npz")["shape"] == [70, 30]
    np.save("odd:name.npy", a)
    assert report(capsys, "compare", "odd:name.npy", "B.npy")["formats"] == whole


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["x.npz"], "x.npz has 2 tensors; use one of x.npz:w1, x.npz:w2"),
        (
            ["x.npz:w3"],
            "is not a tensor of x.npz. The first tensors are 'w1', 'w2'",
        ),
        (["A"], "A cannot be read: No such file or directory; use A.npy"),
        (["y.npz:w3"], "y.npz cannot be read: No such file or directory"),
        (["A.npy:w1"], "A.npy holds one array and not tensors with names; omit :w1"),
        (["none.npz"], "none.npz must hold a tensor"),
        (["void.npy"], "|V2, elements of 2 bytes without a format, which np.save"),
        (["void.npy"], "Write the array with td.save"),
        (["complex.npy"], "must hold real numbers; got complex64. Save x.real"),
        (["nan.npy"], "got 1 Inf or NaN, the first at [1, 0]"),
        (["pickle.npy"], "got a pickle"),
        (["stack.npy", "A.npy"], "must be a matrix or a vector; got shape (2, 2, 2)"),
        (
            ["A.npy", "--precision", "bf16"],
            "--precision must only be given with two files",
        ),
        (["A.npy", "--device", "H100"], "--device must only be given with two files"),
        (
            ["A.npy", "--formats", "bf17"],
            "format must be one of those in `tf32dtype formats`",
        ),
        (
            ["A.npy", "--formats", "bf16x9"],
            "must not name precisions; use --precision bf16x9",
        ),
        (["A.npy", "--target-db", "nan"], "must be a number of dB"),
        (["A.npy", "B.npy", "--precision", "bf17"], "precision must be one of"),
        (["A.npy", "B.npy", "--precision", "bf17"], "or `tf32dtype sizes 1`; got"),
        (
            ["A.npy", "B.npy", "--precision", "float8_e3m4"],
            "Use --formats for the format",
        ),
        (["A.npy", "B.npy", "--precision", ","], "--precision must name at least one"),
        (
            ["A.npy", "B.npy", "--target-db", "40", "--device", "H100"],
            "--device to compare tensor cores",
        ),
    ],
)
def test_complaints(argv, words, factors, capsys):
    a, b = factors
    np.savez("x.npz", w1=a, w2=b)
    np.savez("none.npz")
    np.save("void.npy", a.astype(td.bfloat16))
    np.save("complex.npy", a + 0j)
    np.save("nan.npy", np.array([[1, 2], [np.nan, 3]]))
    np.save("stack.npy", np.ones((2, 2, 2)))
    with open("pickle.npy", "wb") as stream:
        stream.write(b"\x80\x04K\x01.")
    assert words in complaint(capsys, "compare", *argv)


def test_the_advice_for_bytes_without_a_name_works(factors, capsys):
    a, _ = factors
    np.save("void.npy", a.astype(td.bfloat16))
    td.save("void.npy", np.load("void.npy").view(td.bfloat16))
    assert report(capsys, "compare", "void.npy", "B.npy")["shape"]["m"] == 20


def test_every_format_is_known_to_one_array(factors, capsys):
    names = [name for name in ALL if name != "float8_e8m0fnu"]
    argv = ["compare", "A.npy", "--formats", ",".join(names)]
    assert [row["format"] for row in report(capsys, *argv)["formats"]] == names
