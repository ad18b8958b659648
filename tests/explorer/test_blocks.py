"""Blocks of the explorer against td.blocks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.explorer.calls import Call, run, steps_of
from tests.support.command_line import report
from tf32dtype.blocks.formats import RULES, elements, formats

pytestmark = pytest.mark.once

Array = np.ndarray[Any, Any]

KEPT = ("ties_to_even", "ties_to_away", "toward_zero", "toward_positive",
        "toward_negative", "to_odd")  # fmt: skip


def blocks() -> list[Array]:
    """Return random blocks, and blocks at the ends of the range."""
    rng = np.random.default_rng(6)
    tiny, huge = 2.0**-149, float(np.finfo(np.float32).max)
    normal = rng.standard_normal(32)
    found = [
        normal,
        np.ldexp(normal, rng.integers(-40, 40, 32)),
        np.zeros(32),
        np.full(32, -0.0),
        np.full(5, tiny),
        np.array([huge, -huge, tiny, 1]),
        np.array([1.0]),
        np.array([448, 464, 465, -6, 6.1, 7.5, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]),
        np.array([6, -1, 0.5, *[0.0] * 29]),
        np.ldexp(1.0, np.arange(-160, -128)),
        rng.integers(-127, 128, 32).astype(float),
        1 + np.ldexp(rng.integers(-3, 4, 32).astype(float), -24),
        rng.standard_normal(100),
        np.ldexp(rng.standard_normal(64), -130),
    ]
    return [np.asarray(x, np.float64) for x in found]


def text(x: float) -> str:
    return x.hex() if np.isfinite(x) else str(x)


def call(x: Array, name: str, options: dict[str, Any]) -> Call:
    names = {"scale": "rule", "scale_format": "scaleFormat", "block_size": "blockSize"}
    given = {names.get(key, key): value for key, value in options.items()}
    return Call("quantize", ([text(v) for v in x.tolist()], name, given))


def check(x: Array, name: str, options: dict[str, Any], found: dict[str, Any]) -> None:
    try:
        want = td.blocks.quantize(x, name, **options)
    except ValueError:
        assert found["error"], (name, options, x)
        return
    what = (name, options, x.tolist())
    assert found["error"] == "", what
    row = formats[name]
    assert found["scaleFormat"] == want.scale_format
    assert Fraction(found["tensorScale"]["decimal"]) == Fraction(
        float(want.tensor_scale)
    )
    numbers = [e for block in found["blocks"] for e in block["elements"]]
    assert len(numbers) == len(x)
    scales = want.scales.reshape(len(found["blocks"]), -1)
    for codes, block in zip(scales.tolist(), found["blocks"], strict=True):
        levels = [block["scale"], block["residualScale"]][: row.levels]
        assert [level["code"] for level in levels] == codes, what
    check_codes(row.element, want.elements, [e["code"] for e in numbers], what)
    if row.residual is not None:
        lower = [e["residualCode"] for e in numbers]
        check_codes(row.residual, want.residual_elements, lower, what)
    values = np.array([e["value"] for e in numbers]).astype(np.float32)
    np.testing.assert_array_equal(values, want.dequantize(), str(what))
    same_sign = np.signbit(values) == np.signbit(want.dequantize())
    assert (same_sign | np.isnan(values)).all(), what
    check_errors(x, want.dequantize(), numbers)


def check_codes(element: str, want: Array, codes: list[int], what: object) -> None:
    of = elements[element]
    if of.is_integer:
        sign = 1 << of.width - 1
        whole = [(code ^ sign) - sign for code in codes]
        assert want.tolist() == whole, what
    else:
        assert td.bits(want).tolist() == codes, what


def check_errors(x: Array, values: Array, numbers: list[dict[str, Any]]) -> None:
    for given, value, e in zip(x.tolist(), values.tolist(), numbers, strict=True):
        if np.isfinite(given) and np.isfinite(value):
            error = Fraction(value) - Fraction(given)
            assert Fraction(e["error"]["decimal"]) == error
        else:
            assert e["error"] is None


def compare(cases: list[tuple[Array, str, dict[str, Any]]]) -> int:
    for case, found in zip(cases, run(call(*case) for case in cases), strict=True):
        check(*case, found)
    return len(cases)


@pytest.mark.exhaustive
@steps_of(5)
def test_rules(step, compared):
    """Each format by each rule."""
    cases = [
        (x, name, {"scale": rule})
        for name in formats
        for rule in RULES
        if rule != "published" or name.startswith("tcfp")
        for x in blocks()
    ]
    compared(compare(cases[::step]))


@steps_of(4)
def test_options(step, compared):
    """Roundings, sizes and formats of scales, some of them combined."""
    some = blocks()
    rows = [
        {"rounding": rounding, "block_size": size, "scale_format": scale_format}
        for rounding, size in zip(KEPT, (16, 32, 64, 128, 16, 32), strict=True)
        for scale_format in ("float8_e8m0fnu", "ue4m3", "ue5m3", "ue4m4", "ue3m5")
    ]
    cases = [
        (some[(i + j) % len(some)], name, options)
        for i, options in enumerate(rows)
        for j, name in enumerate(formats)
    ]
    compared(compare(cases[::step]))


@steps_of(7)
@pytest.mark.parametrize("name", formats)
def test_outcomes_are_those_of_the_terminal(name, step, capsys, compared):
    """The outcomes by each rule are the same strings."""
    rules = [rule for rule in RULES if rule != "published" or name.startswith("tcfp")]
    groups = [
        ["0", "1", "-1", "0.3", "0.25", "0.5", "6", "6.5", "7", "7.5", "-7.9", "1e-9"],
        ["127", "127.4", "-127.5", "127.6", "-128", "1", "63.5", "0.5", "0.4", "1/3"],
        ["448", "464", "465", "-479", "511.9", "1e-3", "0.001953125", "0.0009765625"],
    ]
    if name.startswith("mxfp"):  # others reject them
        groups += [["1", "nan"], ["inf", "2", "0"]]
    cases = [(rule, typed) for rule in rules for typed in groups]
    cases = cases[list(formats).index(name) % step :: step]
    wanted = "blocks.*.elements.*.outcome"
    found = run(
        Call("quantize", (typed, name, {"rule": rule}), (wanted,))
        for rule, typed in cases
    )
    count = 0
    for (rule, typed), (outcomes,) in zip(cases, found, strict=True):
        argv = ("--format", name, "--scale", rule)
        told = report(capsys, "inspect", *typed, *argv)["values"]
        shown = [x for block in outcomes for x in block]
        for found_here, each in zip(shown, told, strict=True):
            value = float(each["value"])
            if np.isfinite(value) and value != float(np.float32(value)):
                continue  # the page shows it as float32
            assert found_here == each["outcome"], (rule, typed, each)
            count += 1
    compared(count)


@pytest.mark.parametrize("overflow", ["raise", "saturate"])
def test_special_values(overflow, compared):
    wrong = [
        np.array([1, np.inf, -2]), np.array([np.nan, 1]), np.array([1e300, 1]),
        np.array([-np.inf, np.inf]), np.array([3.4028235677973366e38, 1]),
    ]  # fmt: skip
    cases = [(x, name, {"overflow": overflow}) for name in formats for x in wrong]
    compared(compare(cases))


def test_float64_is_rounded_to_odd(compared):
    """A number slightly above or below a tie rounds to its own side."""
    ties = np.array([6, 0.25 + 2**-40, 0.75 - 2**-40, 2.5 + 2**-50, 5 - 2**-45, 1e-320])
    compared(compare([(ties, name, {}) for name in formats]))


def test_table():
    (rows,) = run([Call("blockFormats")])
    assert [row["name"] for row in rows] == list(formats)
    for found, row in zip(rows, formats.values(), strict=True):
        assert found["bitsPerValue"] == row.bits_per_value
        assert Fraction(found["max"]["decimal"]) == Fraction(row.max)
        assert ("published" in found["rules"]) == row.name.startswith("tcfp")


def test_what_is_refused():
    values = ["1", "x\n1", "3"]
    found = run([Call("quantize", (values, "mxfp4")),
                 Call("quantize", (["1"], "mxfp4", {"blockSize": 17})),
                 Call("quantize", (["1"], "mxfp4", {"rounding": "stochastic"})),
                 Call("quantize", (["1"], "mxfp4", {"rule": "published"})),
                 Call("quantize", (["1"], "mxfp5"))])  # fmt: skip
    assert "value 1" in found[0]["error"]
    assert "16, 32" in found[1]["error"]
    assert "stochastic" in found[2]["error"]
    assert "published" in found[3]["thrown"]
    assert "mxfp4" in found[4]["thrown"]
