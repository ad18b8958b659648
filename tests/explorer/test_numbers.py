"""The explorer's facts about a code: bits, kind, exact value, neighbors."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

import tf32dtype as td
from tests.explorer.calls import Call, run, steps_of
from tests.explorer.formats import ALL, LONG, SHORT
from tests.reference.codec import decode_code, to_float, to_fraction
from tests.reference.formats import Format
from tf32dtype._measures.format_facts import facts

pytestmark = pytest.mark.once

Case = tuple[Format, int]


def ends(f: Format) -> list[int]:
    """Return codes at the borders between kinds of numbers."""
    normal = 1 << f.mantissa_bits
    borders = {0, 1, normal - 1, normal, f.max_code - 1, f.max_code}
    borders |= {code for code in (f.infinity, f.nan) if code is not None}
    codes = {code | sign for code in borders for sign in (0, f.sign_bit)}
    return sorted(codes | {f.count - 1})


def codes() -> list[Case]:
    rng = random.Random(1)
    cases = [(f, code) for f in SHORT for code in range(f.count)]
    for f in LONG:
        cases += [(f, code) for code in ends(f)]
        cases += [(f, rng.randrange(f.count)) for _ in range(500)]
    return cases


def kind(f: Format, code: int) -> str:
    x = decode_code(f, code)
    if x.special:
        return x.special
    if not x.integer:
        return "zero"
    return (
        "subnormal"
        if abs(to_fraction(x)) < Fraction(2) ** f.normal_exponent
        else ("normal")
    )


def check_exact(found: dict[str, Any], value: Fraction, negative: bool) -> None:
    """Check all notations of an exact number."""
    assert found["negative"] == negative
    assert Fraction(found["decimal"]) == value
    assert float.fromhex(found["hex"]) == value
    integer, _, exponent = found["power"].partition(" * 2^")
    assert Fraction(2) ** int(exponent or 0) * int(integer) == value
    assert value == 0 or int(integer) % 2
    assert float(found["number"]) == float(value)


def check_value(f: Format, code: int, found: dict[str, Any]) -> None:
    x = decode_code(f, code)
    assert (found["format"], found["code"]) == (f.name, code)
    assert found["hex"] == f"0x{code << f.shift:0{f.item_bits // 4}X}"
    bits = f"{code:0{f.count.bit_length() - 1}b}"
    assert found["binary"] == bits
    parts = [found[name] for name in ("sign", "exponent", "mantissa")]
    assert "".join(parts) == bits
    assert [*map(len, parts)] == [f.signed, f.exponent_bits, f.mantissa_bits]
    assert found["kind"] == kind(f, code)
    assert found["negative"] == bool(code & f.sign_bit)
    assert found["exponentField"] == int(parts[1], 2)
    if x.special:
        assert found["text"] == ("-" if x.special == "inf" and x.negative else "") + (
            x.special
        )
        assert found["exact"] is found["ulp"] is found["power"] is None
        return
    value = to_fraction(x)
    assert math.copysign(1, found["number"]) == (-1 if x.negative else 1)
    assert float(found["number"]) == float(found["text"]) == to_float(x)
    check_exact(found["exact"], value, x.negative)
    least = f.least_exponent
    ulp = (
        max(math.frexp(to_float(x))[1] - 1 - f.mantissa_bits, least) if value else least
    )
    check_exact(found["ulp"], Fraction(2) ** ulp, False)
    if value:
        scaled = Fraction(found["significand"]) * Fraction(2) ** found["power"]
        assert scaled == abs(value)
        assert (1 <= Fraction(found["significand"]) < 2) == (found["kind"] == "normal")


@steps_of(3)
def test_codes(step, compared):
    cases = codes()[::step]
    found = run(Call("describe", (f.name, str(code))) for f, code in cases)
    for (f, code), value in zip(cases, found, strict=True):
        check_value(f, code, value)
    compared(len(cases))


def test_tables(compared):
    (formats,) = run([Call("formats")])
    assert [row["name"] for row in formats] == [f.name for f in ALL]
    for f, found in zip(ALL, formats, strict=True):
        row = facts(f.name)
        assert found["ours"] == (f.name in td.formats)
        assert found["bits"] == row.bits
        assert float(found["codes"]) == f.count
        assert found["storageBits"] == f.item_bits
        assert found["unusedLowBits"] == row.unused_low_bits
        assert found["exponentBits"] == row.exponent_bits
        assert found["mantissaBits"] == row.mantissa_bits
        assert found["bias"] == row.bias
        assert found["signed"] == row.signed
        assert found["infinity"] == row.has_infinity
        assert found["nan"] == row.has_nan
        assert found["negativeZero"] == f.negative_zero
        assert found["max"]["code"] == f.max_code
        assert float(found["max"]["number"]) == row.max
        assert float(found["min"]["number"]) == row.min
        assert float(found["smallestNormal"]["number"]) == row.smallest_normal
        assert Fraction(found["smallest"]["exact"]["decimal"]) == f.tiny_value
        assert float(found["eps"]["number"]) == row.eps
    compared(len(ALL))


def finite(f: Format, code: int) -> bool:
    return not decode_code(f, code).special


@cache
def in_order(f: Format) -> list[Fraction]:
    """Return all values of a format that has few values."""
    found = {to_fraction(decode_code(f, c)) for c in range(f.count) if finite(f, c)}
    return sorted(found)


def test_neighbors(compared):
    cases = [(f, code) for f in SHORT for code in range(f.count)]
    found = run(Call("neighbors", (f.name, code)) for f, code in cases)
    values = {f: in_order(f) for f in SHORT}
    for (f, code), beside in zip(cases, found, strict=True):
        if not finite(f, code):
            assert set(beside.values()) == {None}
            continue
        value = to_fraction(decode_code(f, code))
        at = values[f].index(value)
        below = values[f][at - 1] if at else None
        above = values[f][at + 1] if at + 1 < len(values[f]) else None
        for other, name, gap in (
            (below, "below", "gapBelow"),
            (above, "above", "gapAbove"),
        ):
            if other is None:
                assert beside[name] is beside[gap] is None
            else:
                assert Fraction(beside[name]["exact"]["decimal"]) == other
                assert Fraction(beside[gap]["decimal"]) == abs(other - value)
    compared(len(cases))


INTERVALS = [
    ("-inf", "inf"), ("-1/3", "2"), ("1e9", "inf"), ("2", "-2"), ("0", "0"),
    ("-1e-9", "1e-9"),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_between(low, high, compared):
    found = run(Call("between", (f.name, low, high)) for f in SHORT)
    for f, numbers in zip(SHORT, found, strict=True):
        ends = [Fraction(0) if "inf" in end else Fraction(end) for end in (low, high)]
        want = [
            float(x)
            for x in in_order(f)
            if (low == "-inf" or x >= ends[0]) and (high == "inf" or x <= ends[1])
        ]
        assert [float(x["number"]) for x in numbers["values"]] == want, f.name
        assert numbers["count"] == str(len(want))
    compared(len(SHORT))


def test_all_finite_numbers_are_counted(compared):
    """The count is right for float64 too, where it is above 2^63."""
    found = run(Call("between", (f.name, "-inf", "inf", 0)) for f in ALL)
    for f, numbers in zip(ALL, found, strict=True):
        all_of_them = 2 * f.max_code + 1 if f.signed else f.max_code + 1
        assert numbers == {"count": str(all_of_them), "values": []}
    compared(len(ALL))


def test_binades(compared):
    found = run(Call("binades", (f.name,)) for f in ALL)
    for f, rows in zip(ALL, found, strict=True):
        finite_above_zero = f.max_code + (1 if f.powers else 0)
        assert sum(int(row["numbers"]) for row in rows) == finite_above_zero
        if f in SHORT:
            for row in rows:
                least = Fraction(2) ** (-999 if row["subnormal"] else row["power"])
                most = Fraction(2) ** (row["power"] + 1)
                inside = [x for x in in_order(f) if least <= x < most]
                assert len(inside) == int(row["numbers"])
                steps = {b - a for a, b in pairwise(inside)}
                assert steps <= {Fraction(row["ulp"]["decimal"])}
    compared(len(ALL))


def test_names():
    asked = ("fp4", "BF16", "e4m3fn", "half", "float64", "tf32")
    found = run(Call("format", (name,), ("name",)) for name in asked)
    assert found == [
        ["float4_e2m1fn"], ["bfloat16"], ["float8_e4m3fn"], ["float16"], ["float64"],
        ["tf32"],
    ]  # fmt: skip
    (wrong,) = run([Call("format", ("e9m9",))])
    assert "e9m9" in wrong["thrown"]
    assert "float8_e4m3fn" in wrong["thrown"]
