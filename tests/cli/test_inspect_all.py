"""`tf32dtype inspect --all`, of several numbers, and the number line around one."""

import os
import re
import struct
from fractions import Fraction

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import ALL, complaint, on_a_terminal, plain, report

pytestmark = pytest.mark.once


@pytest.mark.parametrize("typed", ["0.3", "-1/3", "1e-40", "0x1.8p-3", "1e9", "0", "6"])
def test_bits_in_every_format(typed, capsys):
    found = report(capsys, "inspect", typed, "--all")
    assert [each["format"] for each in found["formats"]] == ALL
    exact = (
        Fraction(float.fromhex(typed)) if typed.startswith("0x") else Fraction(typed)
    )
    for each in found["formats"]:
        name = each["format"]
        ours = name in td.formats
        dtype = td.formats[name].dtype if ours else np.dtype(name)
        # The expected value is the format's own rounding of the exact value.
        with np.errstate(all="ignore"):
            value = dtype.type(exact) if ours else dtype.type(float(exact))
        np.testing.assert_equal(float(each["value"]), float(value))
        code = int(td.bits(value)) if ours else int(value.view(f"u{dtype.itemsize}"))
        assert int(each["code"], 16) == code
        unused = td.formats[name].unused_low_bits if ours else 0
        bits = td.formats[name].bits if ours else 8 * dtype.itemsize
        fields = each["sign"] + each["exponent"] + each["mantissa"]
        assert fields == f"{code >> unused:0{bits}b}"


OUTCOMES = {
    ("0.3", "bfloat16"): "rounded",
    ("0.5", "bfloat16"): "exact",
    ("1e-40", "bfloat16"): "rounded, subnormal",
    ("0.125", "float6_e2m3fn"): "exact, subnormal",
    ("1e-9", "float16"): "underflow to zero",
    ("1e9", "float16"): "overflow to infinity",
    ("1e9", "float8_e4m3fn"): "overflow to NaN",
    ("-1e9", "float8_e5m2fnuz"): "overflow to NaN",
    ("6.9", "float4_e2m1fn"): "rounded",
    ("7", "float4_e2m1fn"): "saturated",
    ("464", "float8_e4m3fn"): "rounded",  # a tie, rounded to the largest number
    ("inf", "float4_e2m1fn"): "saturated",
    ("nan", "float4_e2m1fn"): "NaN became zero",
    ("inf", "float8_e4m3fn"): "infinity became NaN",
    ("-inf", "float16"): "infinity",
    ("nan", "tf32"): "NaN",
    ("0", "float8_e8m0fnu"): "NaN: no zero",
    ("-2", "float8_e8m0fnu"): "NaN: no sign",
    ("1e39", "float8_e8m0fnu"): "overflow to NaN",
    ("1e-40", "float8_e8m0fnu"): "below the range",
    ("-0", "float16"): "exact",
}


@pytest.mark.parametrize(("typed", "name"), OUTCOMES)
def test_outcomes(typed, name, capsys):
    found = report(capsys, "inspect", typed, "--all")["formats"]
    (outcome,) = [each["outcome"] for each in found if each["format"] == name]
    assert outcome == OUTCOMES[typed, name]


def line_around(capsys, *argv):
    """Return the header, marker, line and labels of the number line."""
    lines = plain(capsys, "inspect", *argv, "--all").splitlines()
    (at,) = [i for i, x in enumerate(lines) if " around " in x]
    return lines[at : at + 4]


def test_a_number_between_two(capsys):
    title, marker, line, labels = line_around(capsys, "0.3", "--format", "fp8_e4m3")
    assert title == "float8_e4m3fn around 0.3, spacing 2^-5"
    assert line.strip() == (
        "|---------------|---------------#--------------|---------------|"
    )
    assert labels.split() == ["0.25", "0.28125", "0.3125", "0.34375", "0.375"]
    # 0.3 is at 40 % of the line, 26 columns after its start.
    assert marker.index("v") - line.index("|") == round(63 * 0.4)


def test_a_line_where_the_spacing_changes(capsys):
    _, marker, line, labels = line_around(capsys, "4", "--format", "fp4")
    places = [line.index(x) - 8 for x in "#"]
    assert marker.index("v") - 8 == places[0]
    ticks = [found.start() - 8 for found in re.finditer(r"[|#]", line)]
    values = [2.0, 3.0, 4.0, 6.0]
    assert [float(x) for x in labels.split()] == values
    assert ticks == [round(63 * (x - 2) / 4) for x in values]


def test_subnormals_on_the_line(capsys):
    _, _, line, _ = line_around(capsys, "0.6", "--format", "fp4")
    middle = line.index("#")
    assert set(line[8:middle]) <= {"~", "|"}
    one = [x.start() for x in re.finditer(r"[|#]", line)][3]
    assert set(line[middle + 1 : one]) == {"~"}
    assert "~" not in line[one:]


@pytest.mark.parametrize(
    ("typed", "end"),
    [("100", ">"), ("1e400", ">"), ("inf", ">"), ("-100", "<"), ("-inf", "<")],
)
def test_beyond_the_last_number(typed, end, capsys):
    _, marker, line, labels = line_around(capsys, typed, "--format", "fp4")
    assert marker.index("v") == line.index(end)
    assert ("-6.0" if end == "<" else "6.0") in labels.split()
    assert line.strip()[-1 if end == ">" else 0] == end


def test_nan_has_no_line(capsys):
    assert " around " not in plain(capsys, "inspect", "nan", "--all")


def test_several_lines(capsys):
    out = plain(capsys, "inspect", "0.3", "--all", "--format", "fp6,bf16,fp16")
    names = [x.split()[0] for x in out.splitlines() if " around " in x]
    assert names == ["float6_e2m3fn", "float6_e3m2fn", "bfloat16", "float16"]


def test_a_code_of_every_format(capsys):
    found = report(capsys, "inspect", "0x3FC0", "--all")["codes"]
    values = {each["format"]: float(each["value"]) for each in found}
    assert [*values] == ["tf32", "bfloat16", "float16", "float32", "float64"]
    assert values["bfloat16"] == 1.5
    assert values["float16"] == struct.unpack("<e", b"\xc0\x3f")[0]
    assert values["float32"] == struct.unpack("<f", b"\xc0\x3f\0\0")[0]
    assert "1.9375" in plain(capsys, "inspect", "0x3FC0", "--all")
    short = report(capsys, "inspect", "0x7", "--all")["codes"]
    assert [each["format"] for each in short] == ALL


def test_a_code_and_its_format(capsys):
    found = report(capsys, "inspect", "0x3FC0", "--all", "--format", "bf16")
    assert found["exact"] == "3/2"


def test_several_numbers(capsys):
    typed = ["1", "2.2", "-3.4", "0x1p-3", "0x3C00"]
    found = report(capsys, "inspect", *typed, "--format", "fp16")
    assert found["format"] == "float16"
    assert [x["input"] for x in found["numbers"]] == typed
    expected = [float(np.float16(x)) for x in (1, 2.2, -3.4, 0.125, 1)]
    assert [x["value"] for x in found["numbers"]] == expected
    rows = plain(capsys, "inspect", *typed, "--format", "fp16").splitlines()[3:]
    assert [row.split()[0] for row in rows] == typed


def test_numbers_of_standard_input(capsys, monkeypatch, tmp_path):
    path = tmp_path / "numbers"
    path.write_text("1, 2.5\n-3\n")
    with open(path) as numbers:
        monkeypatch.setattr("sys.stdin", numbers)
        found = report(capsys, "inspect", "-")
    assert [x["value"] for x in found["numbers"]] == [1.0, 2.5, -3.0]


def test_both_kinds_of_a_name(capsys):
    found = report(capsys, "inspect", "0.3", "--format", "fp6")
    assert [x["format"] for x in found] == ["float6_e2m3fn", "float6_e3m2fn"]
    out = plain(capsys, "inspect", "0.3", "--format", "fp6")
    assert out.count("Nearest value in every format") == 1


def test_colors_are_of_terminals(capsys, monkeypatch):
    pytest.importorskip("rich")
    sign, exponent = "\x1b[1;31m0", "\x1b[1;32m01111101\x1b[0m"
    drawn = on_a_terminal(100, "inspect", "0.3")
    assert sign in drawn
    assert exponent in drawn
    assert "\x1b" not in plain(capsys, "inspect", "0.3")
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    drawn = on_a_terminal(100, "inspect", "0.3", "--all")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", drawn)
    assert "0 01111101 0011001101" in re.sub(r"\x1b\[[0-9;]*m", "", drawn)


def test_lines_fit_the_terminal():
    pytest.importorskip("rich")
    columns = 60
    drawn = on_a_terminal(columns, "inspect", "0.3", "--all", "--format", "fp4,f64")
    plain_lines = re.sub(r"\x1b\[[0-9;]*m", "", drawn).splitlines()
    legend = [x for x in plain_lines if x.startswith("(v:")]
    rest = [x for x in plain_lines if x not in legend]
    assert max(map(len, rest)) <= columns


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["1", "2", "--all"], "--all must be given with one number; got 2"),
        (["0x3FC0", "1"], "use --format to name its format"),
        (["0x1", "--all", "--format", "fp6"], "float6_e2m3fn, float6_e3m2fn"),
        (["0x" + 17 * "F", "--all"], "more bits than any format"),
        (["1", "--format", "bf17"], "Did you mean bf16"),
        (["1", "--scale", "mse"], "--scale must only be given with a block format"),
        (["1", "--block-size", "16"], "--block-size must only be given with a block"),
    ],
)
def test_inspect_all_complains(typed, words, capsys):
    assert words in complaint(capsys, "inspect", *typed)


def test_options_of_numbers_are_not_of_files(tmp_path, capsys):
    path = str(tmp_path / "a.npy")
    np.save(path, np.ones(3))
    assert "--all must only be given with numbers" in complaint(
        capsys, "inspect", path, "--all"
    )
