"""`tf32dtype values`: all codes against `td.from_bits`, counts of binades."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import ALL, complaint, on_a_terminal, plain, report

pytestmark = pytest.mark.once

SMALL = [name for name, form in td.formats.items() if form.bits <= 8]
#: Formats of which every code is counted.
COUNTED = [*(name for name in td.formats if name != "tf32"), "float16"]


def values_of(name):
    """Return the value of every code of a format, in float64."""
    if name == "float16":
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    form = td.formats[name]
    codes = np.arange(1 << form.bits).astype(f"u{form.itemsize}")
    return td.from_bits(codes, form.dtype).astype(np.float64)


@pytest.mark.parametrize("name", SMALL)
def test_every_code(name, capsys):
    (found,) = report(capsys, "values", name)
    expected = values_of(name)
    assert [float(x["value"]) for x in found["values"]] == pytest.approx(
        expected.tolist(), rel=0, nan_ok=True
    )
    form = td.formats[name]
    for code, (shown, value) in enumerate(zip(found["values"], expected, strict=True)):
        assert shown["code"] == f"0x{code:02X}"
        fields = [shown[field] for field in ("sign", "exponent", "mantissa")]
        assert "".join(fields) == f"{code:0{form.bits}b}"
        assert [*map(len, fields)] == [
            int(form.signed),
            form.exponent_bits,
            form.mantissa_bits,
        ]
        if math.isfinite(value):
            integer, power = shown["integer_times_power"].split(" * 2^")
            assert int(integer) * Fraction(2) ** int(power) == Fraction(value)
            assert math.copysign(1, float(shown["value"])) == math.copysign(1, value)
    assert (shown["kind"] == "NaN") == bool(np.isnan(expected[-1]))


@pytest.mark.parametrize("name", COUNTED)
def test_binades_are_counted(name, capsys):
    (found,) = report(capsys, "values", name)
    values = values_of(name)
    finite = values[np.isfinite(values)]
    positive = np.sort(finite[finite > 0])
    assert found["numbers"] == np.count_nonzero(finite)
    assert found["zeros"] == np.count_nonzero(finite == 0)
    assert found["infinities"] == np.count_nonzero(np.isinf(values))
    assert found["nans"] == np.count_nonzero(np.isnan(values))
    # Not by name: if another test imports ml_dtypes, the names are ml_dtypes'.
    dtype = np.float16 if name == "float16" else td.formats[name].dtype
    normal = float(np.finfo(dtype).smallest_normal)
    small = positive[positive < normal]
    assert found["subnormals"]["numbers"] == small.size
    counts = Counter((np.frexp(positive[positive >= normal])[1] - 1).tolist())
    assert {x["exponent"]: x["numbers"] for x in found["binades"]} == counts
    spacings = {x["exponent"]: x["spacing"] for x in found["binades"]}
    for value, above in pairwise(positive):
        if value >= normal:
            exponent = int(np.frexp(value)[1]) - 1
            assert spacings[exponent] == above - value
        else:
            assert found["subnormals"]["spacing"] == above - value


@pytest.mark.parametrize("name", ["tf32", "float32", "float64"])
def test_large_formats_add_up(name, capsys):
    (found,) = report(capsys, "values", name)
    bits, exponent, mantissa = {
        "tf32": (19, 8, 10),
        "float32": (32, 8, 23),
        "float64": (64, 11, 52),
    }[name]
    assert found["format"] == name
    assert found["values"] is None
    assert found["numbers"] == 2 * (2**mantissa * (2**exponent - 1) - 1)
    assert found["nans"] == 2 * (2**mantissa - 1)
    assert found["numbers"] + found["nans"] + 2 + 2 == 2**bits
    assert len(found["binades"]) == 2**exponent - 2
    assert len(plain(capsys, "values", name).splitlines()) < 25


@pytest.mark.parametrize("name", SMALL)
def test_sorted_by_value(name, capsys):
    (found,) = report(capsys, "values", name, "--sort", "value")
    values = [float(x["value"]) for x in found["values"]]
    numbers = [x for x in values if not math.isnan(x)]
    assert numbers == sorted(numbers)
    assert all(math.isnan(x) for x in values[len(numbers) :])
    zeros = [math.copysign(1, x) for x in numbers if x == 0]
    assert zeros == sorted(zeros)


def test_fp4_as_text(capsys):
    lines = plain(capsys, "values", "fp4").splitlines()
    assert lines[:4] == [
        "float4_e2m1fn: all 16 codes (bits: sign-exponent-mantissa)",
        "code    bits  value  exact value       kind",
        "----  ------  -----  -----------  ---------",
        "0x00  0 00 0    0.0      0 * 2^0       zero",
    ]
    assert lines[10] == "0x07  0 11 1    6.0      3 * 2^1     normal"
    at = lines.index("Finite values of float4_e2m1fn")
    line, labels = lines[at + 1 : at + 3]
    # Both zeros are at one column, in the middle; below 1 is between subnormal numbers.
    assert line.strip() == (
        "|---------|----|-----|-|--|~|~~|~~|~|--|-|-----|----|---------|"
    )
    assert labels.split() == ["-6", "-3", "0", "3", "6"]
    for text, place in (("-6", 0), ("0", 31), ("6", 62)):
        assert abs(labels.index(f" {text}") + 1 - 8 - place) <= 1
    assert lines[-1] == "16 codes: 14 nonzero numbers, 2 zeros"


@pytest.mark.parametrize("name", SMALL)
def test_the_line_has_every_number(name, capsys):
    lines = plain(capsys, "values", name).splitlines()
    line = lines[lines.index(f"Finite values of {name}") + 1].strip()
    assert line == line[::-1]  # symmetric about zero or 1
    assert "+" in line or sum(
        1 if x == "|" else int(x) for x in line if x == "|" or x.isdigit()
    ) == len({x for x in values_of(name) if np.isfinite(x)})


def test_a_grid(capsys):
    lines = plain(capsys, "values", "fp8_e4m3", "--grid").splitlines()
    assert lines[1].split() == ["code", *(f"+{i:X}" for i in range(16))]
    rows = [line.split() for line in lines[3:19]]
    assert [row[0] for row in rows] == [f"0x{i:X}0" for i in range(16)]
    shown = [float(x) for row in rows for x in row[1:]]
    assert shown == pytest.approx(values_of("float8_e4m3fn"), rel=1e-3, nan_ok=True)


def test_names(capsys):
    def named(*names):
        return [found["format"] for found in report(capsys, "values", *names)]

    assert named("fp4") == ["float4_e2m1fn"]
    assert named("FP6") == ["float6_e2m3fn", "float6_e3m2fn"]
    assert named("fp8") == ["float8_e4m3fn", "float8_e5m2"]
    assert named("fp16", "half", "f32") == ["float16", "float32"]
    assert named("mxfp8") == ["float8_e4m3fn"]
    assert named("mxfp4,nvfp4") == ["float4_e2m1fn"]
    # Other tests check that float32 and float64 are named.
    assert [name for name in ALL[:-2] if named(name) != [name]] == []


def test_on_a_narrow_terminal():
    pytest.importorskip("rich")
    drawn = on_a_terminal(50, "values", "fp4")
    assert "\x1b[1;31m1\x1b[0m \x1b[1;32m11\x1b[0m \x1b[1;36m1\x1b[0m" in drawn


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["bf17"], "Did you mean bf16"),
        (["float8_e4m3fm"], "float8_e4m3fn"),
        (["mxint8"], "the integers from -127 to 127, each times 2^-6"),
        (["int12"], "the integers from -2047 to 2047"),
        (["bf16", "--grid"], "at most 8 bits; got bfloat16, which has 16"),
        ([","], "at least one format"),
        (["fp4", "--sort", "x"], "--sort"),
    ],
)
def test_values_complains(typed, words, capsys):
    assert words in complaint(capsys, "values", *typed)
