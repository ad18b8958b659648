"""`tf32dtype demo`, and the scales that it shows the use of."""

import json
import math

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import SIGNED, on_a_terminal
from tests.support.documents import COMMAND, table
from tests.support.interpreters import python, run_code
from tf32dtype._cli import demo
from tf32dtype._measures import error_measures, format_facts


@pytest.fixture(scope="module")
def demo_report():
    done = python("-m", "tf32dtype", "demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_demo_runs_every_signed_format(demo_report):
    runs = [(row["format"], row["scaled"]) for row in demo_report["rows"]]
    expected = [("float32", False), ("float16", False)]
    for name in SIGNED:
        narrow = td.formats[name].bits < 16
        expected += [(name, False), (name, True)] if narrow else [(name, False)]
    assert runs == expected


def test_demo_shows_why_scales_exist(demo_report):
    rows = {(row["format"], row["scaled"]): row for row in demo_report["rows"]}
    truth = demo_report["float64_accuracy"]
    assert truth > 0.95
    assert abs(rows["tf32", False]["accuracy"] - truth) < 0.005
    for (name, scaled), row in rows.items():
        assert math.isfinite(float(row["snr_db"])) or not scaled
        if scaled and td.formats[name].bits >= 6:
            assert row["accuracy"] > truth - 0.03
    for name in ("float8_e3m4", "float6_e2m3fn", "float4_e2m1fn"):
        gain = float(rows[name, True]["snr_db"]) - float(rows[name, False]["snr_db"])
        assert gain > 5
    snr = [rows[n, False]["snr_db"] for n in ("float32", "tf32", "bfloat16")]
    assert snr == sorted(snr, reverse=True)


@pytest.mark.parametrize(
    "row", table(COMMAND, "run"), ids=lambda row: " ".join(row[:2])
)
def test_the_page_quotes_the_demo(row, demo_report):
    name, scale, right, snr = row
    (found,) = [
        r
        for r in demo_report["rows"]
        if (r["format"], r["scaled"]) == (name, scale == "2^n")
    ]
    # The training's float64 products may differ in the last bits between machines.
    assert found["accuracy"] == pytest.approx(float(right.rstrip("%")) / 100, abs=0.02)
    assert float(found["snr_db"]) == pytest.approx(float(snr), abs=1.0)


def test_demo_counts_bytes(demo_report):
    numbers = 64 * 64 + 64 + 64 * 10 + 10 + 500 * (64 + 64 + 10)
    for row in demo_report["rows"]:
        name = row["format"]
        dtype = td.formats[name].dtype if name in td.formats else np.dtype(name)
        assert row["bytes"] == numbers * dtype.itemsize
        assert row["seconds"] > 0


def test_demo_in_a_pipe_and_on_a_terminal():
    pytest.importorskip("rich")
    piped = python("-m", "tf32dtype", "demo")
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "\x1b" not in piped.stdout
    assert sum(line.startswith("float8_e4m3fn ") for line in piped.stdout.split("\n"))
    drawn = on_a_terminal(80, "demo")
    assert "classifying" in drawn
    assert drawn.count("\nfloat8_e4m3fn ") == 2


def test_the_digits_are_scikit_learns():
    data = pytest.importorskip("sklearn.datasets")
    images, digits = data.load_digits(return_X_y=True)
    ours = demo.load_digits()
    order = np.random.default_rng(1).permutation(len(images))
    assert (
        np.concatenate([ours.train_images, ours.test_images]) == images[order]
    ).all()
    assert (
        np.concatenate([ours.train_digits, ours.test_digits]) == digits[order]
    ).all()


def test_demo_takes_numpy_alone_and_draws_an_image():
    code = """
import sys
sys.modules["sklearn"] = sys.modules["rich"] = None
from tf32dtype._cli.main import main
main(["demo"])
"""
    said = run_code(code).split("\n")
    drawn = said[said.index("The first of these, a 2:") + 2 :][:8]
    pixels = demo.load_digits().test_images[0].reshape(8, 8)
    for line, row in zip(drawn, pixels, strict=True):
        letters = line.ljust(20)[4::2]
        assert [letter == " " for letter in letters] == [x < 2 for x in row]


@pytest.mark.parametrize("name", SIGNED)
def test_scales_fill_the_range(name):
    form = format_facts.facts(name)
    rng = np.random.default_rng(0)
    for amax in [*rng.lognormal(0, 20, 200), form.max, form.max / 2, 1.0]:
        scale = error_measures.power_of_two_scale(float(amax), form)
        assert math.frexp(scale)[0] == 0.5
        assert amax * scale <= form.max < 2 * amax * scale
    assert error_measures.power_of_two_scale(0.0, form) == 1
