"""`tf32dtype demo`, and the scales whose use it shows."""

import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import SIGNED, on_a_terminal
from tests.support.documents import COMMAND, blocks_of, section, table
from tests.support.interpreters import python, run_code
from tf32dtype._base.text import decibels, number, size
from tf32dtype._cli import demo, main
from tf32dtype._measures import error_measures, format_facts

CLAIMS = ("Blocks ", "GPUs: ", "Losses: ")


@pytest.fixture(scope="module")
def demo_report():
    done = python("-m", "tf32dtype", "demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def piped():
    done = python("-m", "tf32dtype", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def network():
    return demo.train(demo.load_digits())


def claim(text, start):
    """Return the line that starts with `start`, split before the call at its end."""
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line.split("; more: ")


def test_demo_runs_every_format(demo_report):
    runs = [(row["format"], row["scaled"]) for row in demo_report["rows"]]
    expected = [("float32", False), ("float16", False)]
    for name in SIGNED:
        narrow = td.formats[name].bits < 16
        expected += [(name, False), (name, True)] if narrow else [(name, False)]
    expected += [(name, True) for name in td.blocks.formats]
    assert runs == expected
    bits = {"float32": 32, "float16": 16}
    bits |= {name: form.bits for name, form in td.formats.items()}
    bits |= {name: form.bits_per_value for name, form in td.blocks.formats.items()}
    for row in demo_report["rows"]:
        assert row["bits"] == bits[row["format"]]


def test_demo_shows_why_scales_exist(demo_report):
    rows = {(row["format"], row["scaled"]): row for row in demo_report["rows"]}
    truth = demo_report["float64_accuracy"]
    assert truth > 0.95
    assert abs(rows["tf32", False]["accuracy"] - truth) < 0.005
    for (_, scaled), row in rows.items():
        assert math.isfinite(float(row["snr_db"])) or not scaled
        if scaled and row["bits"] >= 6:
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
        if (r["format"], r["scaled"]) == (name, scale != "1")
    ]
    # The float64 products of the training may differ in the last bits between machines.
    assert found["accuracy"] == pytest.approx(float(right.rstrip("%")) / 100, abs=0.02)
    assert float(found["snr_db"]) == pytest.approx(float(snr), abs=1.0)


def test_demo_counts_bytes(demo_report):
    weights = [(64, 64), (64,), (64, 10), (10,)]
    shapes = [(500, 64), (500, 64), (500, 10), *weights]
    for row in demo_report["rows"]:
        name = row["format"]
        if name in td.blocks.formats:
            arrays = [
                td.blocks.quantize(np.ones(shape), name, axis=0 if i > 2 else -1)
                for i, shape in enumerate(shapes)
            ]
            assert row["bytes"] == sum(array.nbytes for array in arrays)
        else:
            dtype = td.formats[name].dtype if name in td.formats else np.dtype(name)
            assert row["bytes"] == sum(map(math.prod, shapes)) * dtype.itemsize
        assert row["seconds"] > 0


def test_formats_are_timed_in_turn(monkeypatch, network):
    calls = []

    def infer(tensors, form):
        calls.append((form, len(tensors[0].array)))
        return np.zeros((len(tensors[0].array), 10)), 0

    monkeypatch.setattr(demo, "infer", infer)
    forms = demo.forms()[:3]
    laps = []
    demo.measure(network, demo.load_digits(), forms, lambda: laps.append(len(calls)))
    warm_up, timed = calls[:3], calls[3:]
    assert warm_up == [(form, 500) for form in forms]
    assert timed == [(form, timed[0][1]) for form in forms] * len(laps)
    assert laps == [*range(6, len(calls) + 1, 3)]
    assert len(laps) >= 15


def test_the_table_is_short(piped, demo_report):
    lines = piped.splitlines()
    (rule,) = [i for i, line in enumerate(lines) if line.startswith("----")]
    rows = [line.split() for line in lines[rule + 1 : lines.index("", rule)]]
    assert 8 <= len(rows) <= 12
    assert {"float16", "tf32", "bfloat16", "float8_e4m3fn", "nvfp4"} < {
        row[0] for row in rows
    }
    assert (rows[0][0], rows[0][-1]) == ("float32", "1.00")  # the unit of the times
    found = {(row["format"], row["scaled"]): row for row in demo_report["rows"]}
    for name, bits, scale, right, snr, error, *count, _ in rows:
        row = found[name, scale != "1"]
        assert (scale == "block") == (name in td.blocks.formats)
        assert float(bits) == row["bits"]
        assert right == f"{row['accuracy']:.1%}"
        assert snr == decibels(float(row["snr_db"]))
        assert error == number(float(row["largest_error"]))
        assert " ".join(count) == size(row["bytes"])


def test_the_claim_of_blocks(piped, network):
    said, more = claim(piped, "Blocks ")
    name, bits, same, images = re.fullmatch(
        r"Blocks \((\w+), (\S+) bits per value\): (\d+) of (\d+) images"
        " classified as in float32",
        said,
    ).groups()
    x = demo.load_digits().test_images

    def blocks(x, axis=-1):
        return td.blocks.quantize(x, name, axis=axis)

    def dense(x):
        return blocks(x).dequantize()

    w1, b1, w2, b2 = network
    hidden = np.maximum(blocks(x) @ blocks(w1, 0) + dense(b1), 0)
    in_blocks = dense(blocks(hidden) @ blocks(w2, 0) + dense(b2)).argmax(axis=1)
    x, w1, b1, w2, b2 = (x.astype(np.float32) for x in (x, *network))
    in_float32 = (np.maximum(x @ w1 + b1, 0) @ w2 + b2).argmax(axis=1)
    assert int(same) == np.count_nonzero(in_blocks == in_float32)
    assert int(images) == len(x)
    packed = eval(more, {"td": td, "x": x})
    assert float(bits) == packed.bits_per_value
    # The tensor also has a scale in float32.
    assert float(bits) == 8 * (packed.nbytes - 4) / x.size


def test_the_claim_of_gpus(piped):
    said, more = claim(piped, "GPUs: ")
    p, q, *results = re.fullmatch(
        r"GPUs: float16 \[(.*)\] @ \[(.*)\] is (\S+) on H100, (\S+) on A100", said
    ).groups()
    p, q = (np.float16(eval(f"[{x.replace('^', '**')}]")) for x in (p, q))
    terms = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(p, q, strict=True)]
    assert max(map(abs, terms)) == 1
    # docs/reference/devices.md: bits kept below the largest term's exponent.
    for result, kept in zip(results, (25, 24), strict=True):
        total = sum(int(term * 2**kept) for term in terms)
        assert result == number(total / 2**kept)
    assert results[0] != results[1]
    explained = eval(more, {"td": td, "p": p, "q": q})
    assert all(device in explained for device in ("H100", "A100"))


@pytest.mark.exhaustive
def test_the_claim_of_losses(piped, network):
    said, more = claim(piped, "Losses: ")
    bf16, bf16_db, fp8, fp8_db = re.fullmatch(
        r"Losses: layer 1 is off by (\S+)% \((\S+) dB\) in bfloat16, by (\S+)%"
        r" \((\S+) dB\) in FP8",
        said,
    ).groups()
    a, b = demo.load_digits().test_images.astype(np.float32), network.w1
    true = a @ b
    b = b.astype(np.float32)
    with td.report(precision=["bf16", "fp8_e4m3"], exact=True) as report:
        a @ b
    ((_, figures, _),) = report.call_sites
    assert figures.elements == true.size
    # The products of the training may differ in the last bits between two runs.
    assert float(bf16_db) == pytest.approx(figures.errors["bf16"].snr, abs=0.1)
    assert float(fp8_db) == pytest.approx(figures.errors["fp8_e4m3"].snr, abs=0.1)

    def rounded(x, dtype, scale):
        return (x / scale).astype(dtype).astype(float) * scale

    in_bf16 = [rounded(x, td.bfloat16, np.float32(1)) for x in (a, b)]
    # FP8 is scaled so that the largest magnitude becomes its largest number.
    in_fp8 = [rounded(x, td.float8_e4m3fn, np.abs(x).max() / 448) for x in (a, b)]
    for percent, (x, y) in ((bf16, in_bf16), (fp8, in_fp8)):
        error = np.linalg.norm(x @ y - true) / np.linalg.norm(true)
        assert float(percent) == pytest.approx(100 * error, rel=0.05)
    assert more.split()[:2] == ["tf32dtype", "report"]
    assert "report" in main._COMMANDS


def test_the_page_quotes_the_claims(piped):
    (block,) = blocks_of(section(COMMAND, "The demo"), "text")
    lines = block.replace("\n    more: ", "; more: ").splitlines()
    shown = [line for line in piped.splitlines() if line.startswith(CLAIMS)]
    value = re.compile(r"\d[\d.]*(?:e-\d+)?")
    for line, found in zip(lines, shown, strict=True):
        assert value.sub("#", line) == value.sub("#", found)
        # The training's float64 products may differ in the last bits between machines.
        quoted, values = ([*map(float, value.findall(x))] for x in (line, found))
        assert quoted == pytest.approx(values, rel=0.05)


def test_the_help_quotes_the_demo(piped):
    """Ignore numbers, which may differ in the last bits between machines."""
    value = re.compile(r"-?\d[\d.]*(?:e-\d+)?")
    lines = [value.sub("#", " ".join(x.split())) for x in piped.splitlines()]
    example = re.findall(r"^  (?!\$|\.\.\.)(\S.*?) *\.\.\.$", demo.__doc__, re.M)
    assert len(example) >= 7
    for line in example:
        start = value.sub("#", " ".join(line.split()))
        assert any(found.startswith(start) for found in lines), line


def test_demo_in_a_pipe_and_on_a_terminal(piped):
    pytest.importorskip("rich")
    assert "\x1b" not in piped
    assert sum(line.startswith("float8_e4m3fn ") for line in piped.split("\n")) == 1
    drawn = on_a_terminal(80, "demo")
    assert "classifying" in drawn
    assert drawn.count("\nfloat8_e4m3fn ") == 1
    lines = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn).splitlines()
    assert max(map(len, lines)) <= 80
    for start in CLAIMS:
        (place,) = [i for i, line in enumerate(lines) if line.startswith(start)]
        assert lines[place : place + 2] == [
            f"{'    more: ' * i}{part}" for i, part in enumerate(claim(piped, start))
        ]


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
    assert [start for start in CLAIMS for line in said if line.startswith(start)] == [
        *CLAIMS
    ]


@pytest.mark.parametrize("name", SIGNED)
def test_scales_fill_the_range(name):
    form = format_facts.facts(name)
    rng = np.random.default_rng(0)
    for amax in [*rng.lognormal(0, 20, 200), form.max, form.max / 2, 1.0]:
        scale = error_measures.power_of_two_scale(float(amax), form)
        assert math.frexp(scale)[0] == 0.5
        assert amax * scale <= form.max < 2 * amax * scale
    assert error_measures.power_of_two_scale(0.0, form) == 1
