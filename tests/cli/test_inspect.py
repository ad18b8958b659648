"""`tf32dtype inspect`: bits, exact values, neighbors and errors."""

import math
from fractions import Fraction

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import ALL, SIGNED, complaint, plain, report


def test_inspect_pi(capsys):
    record = report(capsys, "inspect", "3.14159")
    assert record["format"] == "tf32"
    assert record["exact"] == "314159/100000"
    assert record["code"] == "0x40490000"
    assert [record[k] for k in ("sign", "exponent", "mantissa")] == [
        "0",
        "10000000",
        "1001001000",
    ]
    assert record["value"] == 3.140625
    assert record["decimal"] == "3.140625"
    assert record["integer_times_power"] == "201 * 2^-6"
    assert record["hex"] == "0x1.92p+1"
    assert (record["below"], record["above"]) == (3.138671875, 3.142578125)
    assert record["kind"] == "normal"
    assert [error["format"] for error in record["errors"]] == ALL


NUMBERS = ["3.14159", "1/3", "-1/3", "1e-40", "-7", "0x1.8p-3", "6e4", "0", "1e300"]
NUMBERS += ["0.1", "-0.0009765625", "447.99", "1e-400", "-1e4000", "2.5e-1", "1_000"]


@pytest.mark.parametrize("typed", NUMBERS)
def test_errors_are_exact_and_nearest(typed, capsys):
    """Check against every code of the small formats, in Fractions."""
    exact = (
        Fraction(float.fromhex(typed)) if typed.startswith("0x") else Fraction(typed)
    )
    record = report(capsys, "inspect", typed, "--format", "bf16")
    for error in record["errors"]:
        value = float(error["value"])
        if not math.isfinite(value):
            assert error["relative"] is None
            continue
        loss = Fraction(value) - exact
        assert float(error["absolute"]) == pytest.approx(clip(loss), rel=1e-15)
        if exact:
            relative = clip(loss / abs(exact))
            assert float(error["relative"]) == pytest.approx(relative, rel=1e-15)
        if error["format"] in td.formats and "e8m0" not in error["format"]:
            nearest = min(abs(v - exact) for v in values(error["format"], value))
            assert abs(loss) == nearest


def values(name, near):
    """Return the finite values of a format; of a wide format, those near a number."""
    form = td.formats[name]
    if form.bits == 8 or form.bits < 8:
        codes = np.arange(1 << form.bits, dtype=np.uint8)
    else:
        code = int(td.bits(np.array(near, form.dtype)))
        step = 1 << 13 if name == "tf32" else 1
        sign = 1 << (8 * form.itemsize - 1)
        around = [code + step * i for i in (-1, 0, 1)]
        codes = np.array(
            [c for c in around if c & ~(2 * sign - 1) == 0], f"u{form.itemsize}"
        )
    floats = td.from_bits(codes, form.dtype).astype(np.float64)
    return [Fraction(float(v)) for v in floats if math.isfinite(v)]


def clip(x):
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


@pytest.mark.parametrize("name", ALL)
def test_codes_are_read_back(name, capsys):
    dtype = td.formats[name].dtype if name in td.formats else np.dtype(name)
    code = report(capsys, "inspect", "2", "--format", name)["code"]
    assert len(code) == 2 + 2 * dtype.itemsize
    again = report(capsys, "inspect", code, "--format", name)
    assert again["value"] == 2.0
    assert again["code"] == code
    assert again["exact"] == "2"


def test_codes_drop_unused_bits(capsys):
    record = report(capsys, "inspect", "0x3F801FFF", "--format", "tf32")
    assert record["value"] == 1.0
    assert record["code"] == "0x3F800000"


def test_codes_of_nan_are_kept(capsys):
    record = report(capsys, "inspect", "0xFD", "--format", "float8_e4m3")
    assert (record["code"], record["mantissa"]) == ("0xFD", "101")
    assert record["value"] == "nan"


def test_special_values(capsys):
    for typed, kind in (("inf", "infinity"), ("-inf", "infinity"), ("nan", "NaN")):
        record = report(capsys, "inspect", typed)
        assert record["kind"] == kind
        assert record["value"] == typed
        assert record["below"] is record["above"] is None
    minus_zero = report(capsys, "inspect", "-0.0")
    assert (minus_zero["sign"], minus_zero["kind"]) == ("1", "zero")
    assert minus_zero["hex"] == "-0x0p+0"


@pytest.mark.parametrize("name", SIGNED)
def test_neighbors_end_at_the_range(name, capsys):
    form = td.formats[name]
    record = report(capsys, "inspect", repr(form.max), "--format", name)
    assert record["value"] == form.max
    assert record["above"] is None
    assert record["below"] < form.max
    zero = report(capsys, "inspect", "0", "--format", name)
    assert zero["above"] == form.smallest_subnormal
    assert zero["below"] == -form.smallest_subnormal


def test_subnormal_in_text(capsys):
    out = plain(capsys, "inspect", "1e-40", "--format", "tf32")
    lines = dict(line.split(None, 1) for line in out.splitlines()[:5] if line.strip())
    assert lines["input"].startswith("1e-40 = 1/1" + 40 * "0")
    assert "subnormal" in lines["value"]
    assert lines["tf32"].split(" | ")[1] == "00000000"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["pi"], "got 'pi'"),
        ([""], "must be a file or a number"),
        (["9" * 5000], "1000 characters; got 5000"),
        (["1/0"], "must not divide by zero"),
        (["1e99999999"], "exponent"),
        (["0x1p99999"], "exponent"),
        (["0x3F80"], "--format"),
        (["0x1FF", "--format", "fp8_e4m3"], "8 bits"),
        (["0x40", "--format", "float6_e3m2fn"], "6 bits"),
        (["1", "--format", "float8_e4m3fm"], "Did you mean float8_e4m3fn"),
    ],
)
def test_inspect_complains(typed, words, capsys):
    assert words in complaint(capsys, "inspect", *typed)
