"""`tf32dtype compare`: its measures against NumPy, its counts, its errors."""

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import SIGNED, complaint, plain, report
from tf32dtype._cli import compare_devices
from tf32dtype._measures import error_measures
from tf32dtype._measures.units import Unit


@pytest.fixture
def pair(tmp_path):
    rng = np.random.default_rng(7)
    paths = []
    for name, shape in (("a", (40, 60)), ("b", (60, 50))):
        paths.append(str(tmp_path / f"{name}.npy"))
        np.save(paths[-1], rng.standard_normal(shape, np.float32))
    return paths


def test_a_precision_of_the_process_is_not_compared_with(pair, capsys):
    before = report(capsys, "compare", *pair)
    with td.matmul_precision("bf16"):
        assert report(capsys, "compare", *pair) == before


def test_compare_against_numpy_by_hand(pair, capsys):
    a, b = (np.load(path) for path in pair)
    truth = a.astype(float) @ b.astype(float)
    record = report(capsys, "compare", *pair)
    assert record["shape"] == {"m": 40, "k": 60, "n": 50}
    names = [row["format"] for row in record["formats"]]
    assert names == [*SIGNED, "float16", "float32"]
    for row in record["formats"][:12]:
        dtype = td.formats[row["format"]].dtype
        with np.errstate(all="ignore"):
            c = (a.astype(dtype) @ b.astype(dtype)).astype(float)
        error = np.where(np.isnan(c), np.inf, np.abs(c - truth))
        norm = np.linalg.norm(error) / np.linalg.norm(truth)
        snr = float(-20 * np.log10(norm))
        assert float(row["snr_db"]) == pytest.approx(snr, rel=1e-9)
        worst = float(np.max(error / np.abs(truth)))
        assert float(row["largest_relative_error"]) == pytest.approx(worst)
        assert row["bytes"] == dtype.itemsize * (2400 + 3000 + 2000)
    condition = (np.abs(a).astype(float) @ np.abs(b)) / np.abs(truth)
    got = record["condition"]
    assert got["median"] == pytest.approx(np.median(condition), rel=1e-6)
    assert got["largest"] == pytest.approx(np.max(condition), rel=1e-6)
    bound = 60 * 2.0**-24
    assert got["float32_bound_median"] == bound * got["median"]
    assert got["float32_bound_largest"] == bound * got["largest"]


def test_blocks_change_nothing(pair, capsys, monkeypatch):
    whole = report(capsys, "compare", *pair)
    monkeypatch.setattr(error_measures, "BLOCK_ELEMENTS", 7 * 50)
    blocks = report(capsys, "compare", *pair)
    for one, other in zip(whole["formats"], blocks["formats"], strict=True):
        assert one["overflows"] == other["overflows"]
        assert one["underflows"] == other["underflows"]
        # The order of NumPy's float32 sums may depend on the shape, ours does not.
        margin = 3 if one["format"] in ("float16", "float32") else 1e-6
        snr = float(other["snr_db"])
        assert float(one["snr_db"]) == pytest.approx(snr, rel=0, abs=margin)


def test_compare_counts(tmp_path, capsys):
    # 464 is the tie above 448 and rounds to it; 465 overflows. 2^-9 is the smallest
    # subnormal number, and 2^-10 is half of it.
    a = np.array([[464.0, 465.0, 1e9, 2.0**-9, 2.0**-10, 0.0]])
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.eye(6)[:, 3:])
    paths = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    (row,) = report(capsys, "compare", *paths, "--formats", "fp8_e4m3")["formats"]
    assert row["overflows"] == {"a": 2, "b": 0, "result": 3}
    assert row["underflows"] == {"a": 1, "b": 0, "result": 0}
    assert row["snr_db"] == row["snr_db_float32_sums"] == "-inf"


def test_compare_counts_where_numbers_saturate(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.array([[6.0, 6.99], [7.0, -1e9]]))
    np.save(tmp_path / "b.npy", np.array([[1.0, 4.0], [0.0, 0.0]]))
    paths = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    (row,) = report(capsys, "compare", *paths, "--formats", "float4_e2m1fn")["formats"]
    assert row["overflows"] == {"a": 2, "b": 0, "result": 2}


def test_scales(tmp_path, capsys):
    """Lose nothing by a power of two in scaled operands; wide formats need no scale."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 16, 16))
    paths = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    rows = []
    for factor in (1.0, 2.0**-70):
        np.save(paths[0], a * factor)
        np.save(paths[1], b)
        rows.append(report(capsys, "compare", *paths, "--scale")["formats"])
    for one, other in zip(*rows, strict=True):
        if td.formats.get(one["format"], td.formats["bf16"]).bits >= 16:
            assert one["scales"] == other["scales"] == {"a": 1, "b": 1, "result": 1}
            continue
        assert one["snr_db"] == other["snr_db"] > 10
        assert other["scales"]["a"] == one["scales"]["a"] * 2.0**70
        assert other["scales"]["result"] == one["scales"]["result"] * 2.0**70
        assert not any(one["overflows"].values())
        form = td.formats[one["format"]]
        for name, x in (("a", a), ("b", b), ("result", a @ b)):
            amax = np.abs(x).max() * one["scales"][name]
            assert amax <= form.max < 2 * amax


def test_exact_products(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.arange(4))
    td.save(tmp_path / "b.npy", np.arange(4).astype(td.bfloat16))
    paths = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    record = report(capsys, "compare", *paths, "--formats", "bf16, tf32")
    assert record["shape"] == {"m": 1, "k": 4, "n": 1}
    assert [row["snr_db"] for row in record["formats"]] == ["inf", "inf"]
    assert record["condition"]["largest"] == 1
    assert "exact" in plain(capsys, "compare", *paths)


def test_a_product_of_zeros(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    path = str(tmp_path / "a.npy")
    record = report(capsys, "compare", path, path, "--formats", "tf32")
    assert record["formats"][0]["snr_db"] == "inf"
    assert record["formats"][0]["largest_relative_error"] == 0


@pytest.mark.parametrize(
    ("target", "found"),
    [(10, "float4_e2m1fn"), (40, "float16"), (100, "float32"), (500, None)],
)
def test_cheapest(target, found, tmp_path, capsys):
    rng = np.random.default_rng(3)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", rng.uniform(0.5, 1.0, (8, 8)))
    paths = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    argv = ["compare", *paths, "--target-db", str(target)]
    code = 0 if found else 1
    record = report(capsys, *argv, code=code)
    assert record["cheapest"] == found
    last = plain(capsys, *argv, code=code).splitlines()[-1]
    reached = f"Cheapest format that reaches {target} dB: {found}"
    assert last == (reached if found else f"No format reaches {target} dB")
    if found:
        good = [r for r in record["formats"] if float(r["snr_db"]) >= target]
        (row,) = [r for r in good if r["format"] == found]
        assert row["bytes"] == min(r["bytes"] for r in good)


def test_every_real_dtype_is_compared(tmp_path, capsys):
    path = str(tmp_path / "a.npy")
    for dtype in ["f2", ">f4", "f8", "g", "i1", "u8", "?", *SIGNED]:
        td.save(path, np.eye(3).astype(dtype))
        (row,) = report(capsys, "compare", path, path, "--formats", "tf32")["formats"]
        assert row["snr_db"] == "inf"


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array(["1"]), "<U1"),
        (np.ones(2, complex), "complex128"),
        (np.ones((2, 2, 2)), "(2, 2, 2)"),
        (np.ones((0, 2)), "(0, 2)"),
        (np.float64(1), "()"),
        (np.array([1, np.nan, np.inf]), "got 2 Inf or NaN"),
        (np.ones((3, 3)), "as many columns as"),
        (np.array([1, None], object), "objects"),
    ],
)
def test_compare_complains_of_arrays(array, words, tmp_path, capsys):
    np.save(tmp_path / "a.npy", array)
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    paths = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    assert words in complaint(capsys, "compare", *paths)


def test_compare_complains_of_files(tmp_path, capsys, pair):
    a, b = pair
    assert "No such file" in complaint(capsys, "compare", a, str(tmp_path / "no.npy"))
    (tmp_path / "text.npy").write_text("1 2 3")
    assert "text.npy" in complaint(capsys, "compare", a, str(tmp_path / "text.npy"))
    (tmp_path / "empty.npy").write_text("")
    assert "empty.npy" in complaint(capsys, "compare", a, str(tmp_path / "empty.npy"))
    td.savez(tmp_path / "x.npz", np.ones(2), y=np.ones(3))
    assert "x.npz:y" in complaint(capsys, "compare", a, str(tmp_path / "x.npz"))
    assert complaint(capsys, "compare", a, str(tmp_path))
    unknown = complaint(capsys, "compare", a, b, "--formats", "tf32,fp8")
    assert "'fp8'" in unknown
    assert "float8_e4m3fn" in unknown
    assert "must name at least one format" in complaint(
        capsys, "compare", a, b, "--formats", ","
    )
    assert "target-db" in complaint(capsys, "compare", a, b, "--target-db", "many")


# -- tensor cores --------------------------------------------------------------


def decibels(error, signal):
    return float(-20 * np.log10(np.linalg.norm(error) / np.linalg.norm(signal)))


def test_devices_against_numpy_by_hand(pair, capsys):
    a, b = (np.load(path) for path in pair)
    truth = a.astype(float) @ b.astype(float)
    names = ["--device", "h100", "--device", "L40S", "--device", "H200:mma.sync"]
    record = report(capsys, "compare", *pair, *names)
    assert record["condition"] == report(capsys, "compare", *pair)["condition"]
    formats = ["tf32", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float16"]
    units = [("H100", "wgmma"), ("L40S", "mma.sync"), ("H100", "mma.sync")]
    rows, pairs = iter(record["devices"]), iter(record["pairs"])
    for name in formats:
        dtype = np.float16 if name == "float16" else getattr(td, name)
        x, y = a.astype(dtype), b.astype(dtype)
        products = {}
        for unit in units:
            row = next(rows)
            assert (row["device"], row["instruction"]) == unit
            assert (row["format"], row["accumulator"]) == (name, "float32")
            assert row["scales"] == {"a": 1, "b": 1}
            c = td.tensor_core.matmul(x, y, device=unit[0], instruction=unit[1])
            products[unit] = c.astype(float)
            error = products[unit] - truth
            assert float(row["snr_db"]) == pytest.approx(decibels(error, truth))
            exact = x.astype(float) @ y.astype(float) - truth
            got = float(row["snr_db_exact_sums"])
            assert got == pytest.approx(decibels(exact, truth))
            worst = float(np.max(np.abs(error / truth)))
            assert row["largest_relative_error"] == pytest.approx(worst)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            row = next(pairs)
            one, other = products[units[i]], products[units[j]]
            assert row["format"] == name
            assert tuple(row["first"].values()) == units[i]
            assert tuple(row["second"].values()) == units[j]
            assert row["elements"] == 40 * 50
            assert row["differing"] == np.count_nonzero(one != other)
            if not row["differing"]:
                assert row["snr_db"] == "inf"
                assert row["largest_ulps"] == row["median_ulps"] == 0
                continue
            assert float(row["snr_db"]) == pytest.approx(decibels(one - other, one))
            same_sign = one * other > 0
            apart = np.abs(one - other) / np.spacing(np.abs(one).astype(np.float32))
            assert row["largest_ulps"] >= apart[same_sign].max() / 2
    assert not [*rows, *pairs]


def test_devices_count_ulps_of_float32():
    unit = Unit("A100", "mma.sync")
    found = compare_devices.Pair(unit, unit, "tf32").found
    found.take(np.float32([1, 1]), np.nextafter(np.float32([1, 1]), 2))
    assert (found.form.name, found.largest_ulps) == ("float32", 1)


def test_devices_in_blocks_and_with_scales(pair, capsys, monkeypatch):
    argv = ["compare", *pair, "--device", "H100", "--device", "L40S"]
    whole = report(capsys, *argv, "--scale")
    monkeypatch.setattr(error_measures, "BLOCK_ELEMENTS", 7 * 50)
    blocks = report(capsys, *argv, "--scale")
    plain = report(capsys, *argv)
    for one, other, unscaled in zip(
        whole["devices"], blocks["devices"], plain["devices"], strict=True
    ):
        assert float(other["snr_db"]) == pytest.approx(float(one["snr_db"]))
        wide = not one["format"].startswith("float8")
        assert (one["scales"] == {"a": 1, "b": 1}) == wide
        # A power of two changes only small numbers.
        assert float(one["snr_db"]) == pytest.approx(float(unscaled["snr_db"]), abs=1)
    for one, other in zip(whole["pairs"], blocks["pairs"], strict=True):
        assert one["differing"] == other["differing"]
        assert one["largest_ulps"] == other["largest_ulps"]


def test_scales_save_small_operands(tmp_path, capsys):
    rng = np.random.default_rng(5)
    paths = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    for path in paths:
        np.save(path, rng.standard_normal((16, 16)) * 2.0**-70)
    argv = ["compare", *paths, "--device", "B200", "--formats", "fp8_e4m3"]
    (lost,) = report(capsys, *argv)["devices"]
    (kept,) = report(capsys, *argv, "--scale")["devices"]
    assert lost["snr_db"] == 0
    assert kept["snr_db"] > 20
    assert kept["scales"]["a"] > 2.0**70


def test_one_device_has_no_pairs(pair, capsys):
    record = report(capsys, "compare", *pair, "--device", "V100")
    assert [row["format"] for row in record["devices"]] == ["float16"]
    assert record["pairs"] == []
    text = plain(capsys, "compare", *pair, "--device", "V100")
    assert "relative to float64" in text
    assert "Pairwise comparison" not in text
    record = report(capsys, "compare", *pair, "--device", "V100", "--device", "A100")
    assert len(record["devices"]) == 4
    assert [row["format"] for row in record["pairs"]] == ["float16"]


def test_devices_as_text(pair, capsys):
    argv = ["compare", *pair, "--device", "H100", "--device", "A100", "--formats"]
    lines = plain(capsys, *argv, "float16", "--scale").splitlines()
    (title,) = [x for x in lines if x.startswith("Error of A @ B")]
    assert "A @ B (float32)" in title
    assert title.endswith("relative to float64, scaled below 16 bits")
    (row,) = [x.split() for x in lines if x.split()[:2] == ["A100", "mma.sync"]]
    assert row[2] == "float16"
    (row,) = [x.split() for x in lines if x.split()[:1] == ["float16"]]
    assert row[1:5] == ["H100", "wgmma", "A100", "mma.sync"]


def test_compare_complains_of_devices(pair, capsys):
    def complains(*options):
        return complaint(capsys, "compare", *pair, *options)

    unknown = complains("--device", "V99")
    assert all(name in unknown for name in ("'V99'", "`tf32dtype compare --help`"))
    assert "'wgmma' or 'mma.sync'" in complains("--device", "H100:tcgen05")
    assert "must be given only once" in complains(
        "--device", "H100", "--device", "H200:wgmma"
    )
    assert "not support tf32; use one of float16" in complains(
        "--device", "V100", "--formats", "tf32"
    )
    assert "--device" in complains("--device", "V100", "--target-db", "20")


def test_devices_in_precisions_and_blocks(pair, capsys):
    a, b = (np.load(path) for path in pair)
    truth = a.astype(float) @ b.astype(float)
    devices = ["H100", "B200", "A100"]
    argv = [x for name in devices for x in ("--device", name)]
    argv += ["--formats", "tf32, mxfp8_e4m3", "--precision", "bf16x9,tf32x3,nvfp4"]
    record = report(capsys, "compare", *pair, *argv)
    found = {(row["format"], row["device"]): row for row in record["devices"]}
    splits, in_blocks = ("tf32", "bf16x9", "tf32x3"), ("mxfp8_e4m3", "nvfp4")
    assert {name for name, _ in found} == {*splits, *in_blocks}
    for (name, device), row in found.items():
        if name in in_blocks:
            x = td.blocks.quantize(a, name)
            y = td.blocks.quantize(b, name, axis=0)
            c = td.tensor_core.matmul(x, y, device=device)
            exact = x.dequantize(float) @ y.dequantize(float)
        else:
            c = td.matmul(a, b, precision=name, device=device)
            exact = a.astype(td.tf32).astype(float) @ b.astype(td.tf32).astype(float)
        assert float(row["snr_db"]) == pytest.approx(decibels(c - truth, truth))
        if name in ("bf16x9", "tf32x3"):
            assert row["snr_db_exact_sums"] is None
        else:
            got = float(row["snr_db_exact_sums"])
            assert got == pytest.approx(decibels(exact - truth, truth))
    assert {device for name, device in found if name == "bf16x9"} == {*devices}
    assert {device for name, device in found if name == "mxfp8_e4m3"} == {
        "H100",
        "B200",
    }
    assert {device for name, device in found if name == "nvfp4"} == {"B200"}
    assert len(record["pairs"]) == 3 * 3 + 1
    lines = plain(capsys, "compare", *pair, *argv).splitlines()
    (row,) = [
        x.split() for x in lines if x.split()[:3] == ["A100", "mma.sync", "bf16x9"]
    ]
    assert (len(row), row[4]) == (6, "-")
    no = complaint(capsys, "compare", *pair, "--device", "V100", "--formats", "mxfp4")
    assert "not support mxfp4; use one of float16" in no


def test_devices_whose_instruction_goes_by_the_format(pair, capsys):
    """Choose the instruction of a device by the format, as matmul does."""
    devices = ["MI250X", "AMX", "MI300X"]
    argv = [x for name in devices for x in ("--device", name)]
    record = report(capsys, "compare", *pair, *argv, "--formats", "bfloat16,float16")
    used = {(x["device"], x["format"]): x["instruction"] for x in record["devices"]}
    assert used == {
        ("MI250X", "bfloat16"): "mfma_1k",
        ("MI250X", "float16"): "mfma",
        ("AMX", "bfloat16"): "tdpbf16ps",
        ("AMX", "float16"): "tdpfp16ps",
        ("MI300X", "bfloat16"): "mfma",
        ("MI300X", "float16"): "mfma",
    }
    x, y = (np.load(path).astype(td.bfloat16) for path in pair)
    one, other = (td.tensor_core.matmul(x, y, device=d) for d in ("MI250X", "MI300X"))
    (found,) = [
        p["differing"]
        for p in record["pairs"]
        if p["format"] == "bfloat16"
        and (p["first"]["device"], p["second"]["device"]) == ("MI250X", "MI300X")
    ]
    assert found == np.count_nonzero(one != other)
    old = report(capsys, "compare", *pair, "--device", "MI250X:mfma")
    assert {x["instruction"] for x in old["devices"]} == {"mfma"}


def test_parts_on_devices_that_do_not_add_them(pair, capsys):
    argv = ["compare", *pair, "--precision", "bf16x9", "--device", "MI300X"]
    assert "MI300X mfma does not support bf16x9" in complaint(capsys, *argv)
    record = report(capsys, *argv, "--device", "H100")
    assert [x["device"] for x in record["devices"]] == ["H100"]
