"""The explorer's input: exact, rounded once, or rejected."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tests.explorer.calls import Call, run
from tests.explorer.formats import ALL
from tests.reference.codec import (
    ROUNDINGS,
    decode_code,
    encode_code,
    from_fraction,
    to_fraction,
)
from tests.reference.formats import Format

pytestmark = pytest.mark.once

DRAWN = ROUNDINGS[:-1]


def decimal(x: Fraction) -> str:
    """Return all digits of a fraction whose divisor is a power of two."""
    places = x.denominator.bit_length() - 1
    digits = str(abs(x.numerator) * 5**places).rjust(places + 1, "0")
    at = len(digits) - places
    return ("-" if x < 0 else "") + digits[:at] + "." + digits[at:]


def midpoints(f: Format, count: int) -> list[Fraction]:
    """Return midpoints of neighbors, half the smallest number, the overflow bound."""
    rng = random.Random(f.name)
    ties = []
    for _ in range(count):
        code = rng.randrange(f.max_code)
        x, y = (to_fraction(decode_code(f, c)) for c in (code, code + 1))
        ties.append((x + y) / 2)
    last, before = (to_fraction(decode_code(f, f.max_code - i)) for i in (0, 1))
    return [*ties, last + (last - before) / 2, f.tiny_value / 2]


def hostile() -> list[tuple[Format, str, Fraction]]:
    """Return ties, and numbers next to them by one in the 800th digit or later."""
    cases = []
    for f in ALL:
        for tie in midpoints(f, 4):
            for text in (decimal(tie), "-" + decimal(tie)):
                more = text + "0" * max(0, 800 - len(text)) + "1"
                cases += [(f, text, Fraction(text)), (f, more, Fraction(more))]
                # A slightly smaller number, with more than 800 digits.
                less = Fraction(text) * (1 - Fraction(10) ** -800)
                shown = f"{less.numerator}/{less.denominator}"
                cases.append((f, shown, less))
    return cases


def test_ties(compared):
    cases = hostile()
    asked = [
        (f, text, value, DRAWN[i % len(DRAWN)])
        for i, (f, text, value) in enumerate(cases)
    ]
    found = run(
        Call("parse", (text, f.name, rounding), ("rounded.value.code", "error"))
        for f, text, _, rounding in asked
    )
    for (f, text, value, rounding), answer in zip(asked, found, strict=True):
        want, _ = encode_code(f, from_fraction(value), rounding)
        assert answer == [want, ""], (f.name, text, rounding)
    compared(len(asked))


TEXTS = {
    "0": Fraction(0), "-1.50": Fraction(-3, 2), "+.5": Fraction(1, 2),
    "3.": Fraction(3), "1e-40": Fraction(1, 10**40), "1E+5": Fraction(10**5),
    "1_000.5": Fraction(2001, 2),
    "1/3": Fraction(1, 3), "-22/8": Fraction(-11, 4), "0x1.8p-3": Fraction(3, 16),
    "-0X.8P4": Fraction(-8), "0x10p0": Fraction(16), "  2 ": Fraction(2),
    "\N{MINUS SIGN}2": Fraction(-2), "1e-10000": Fraction(1, 10**10000),
    "0x1p-10000": Fraction(1, 2**10000), "9" * 3999: Fraction(10**3999 - 1),
    "0x" + "F" * 3900 + "p-40000": Fraction(16**3900 - 1, 2**40000),
    "9" * 3000 + "e7001": Fraction((10**3000 - 1) * 10**7001),
    "0.0e99999": Fraction(0), "0x0p-99999999999": Fraction(0),
}  # fmt: skip


def test_spellings(compared):
    found = run(Call("parse", (text, "float64")) for text in TEXTS)
    for (text, value), answer in zip(TEXTS.items(), found, strict=True):
        assert answer["error"] == "", text
        assert not answer["isCode"]
        shown = answer["exact"]["decimal"]
        if len(shown) < 4300 and not shown.endswith("..."):  # short enough for Python
            assert Fraction(shown) == value
        code, _ = encode_code(ALL[-1], from_fraction(value))
        assert answer["rounded"]["value"]["code"] == code
    # Each number that the page shows parses to the same result.
    again = run(Call("parse", (x["text"], "float64")) for x in found)
    for x, y in zip(found, again, strict=True):
        assert {**x, "text": ""} == {**y, "text": ""}
    compared(len(found))


SPECIAL = {"inf": "inf", "-Infinity": "-inf", "+INF": "inf", "nan": "nan", "-0": "-0"}


def test_special(compared):
    found = run(Call("parse", (text, "float32")) for text in SPECIAL)
    for answer, want in zip(found, SPECIAL.values(), strict=True):
        assert (answer["error"], answer["text"]) == ("", want)
        assert answer["rounded"]["value"]["text"] == want
    compared(len(found))


CODES = {
    ("0x7E", "float8_e4m3fn"): 0x7E, ("0x3FC00000", "tf32"): 0x3FC00000 >> 13,
    ("0x3FC01FFF", "tf32"): 0x3FC00000 >> 13, ("0b0111", "float4_e2m1fn"): 7,
    ("0b1", "float32"): 1, ("0xFF_FF", "bfloat16"): 0xFFFF, ("0xffffffffffffffff",
    "float64"): (1 << 64) - 1, ("0b1000000000000000000", "tf32"): 1 << 18,
}  # fmt: skip


def test_codes(compared):
    found = run(Call("parse", given) for given in CODES)
    for answer, want in zip(found, CODES.values(), strict=True):
        assert answer["isCode"]
        assert answer["rounded"]["value"]["code"] == want
        assert answer["rounded"]["flags"] == []
    compared(len(found))


WRONG = {
    "": "write", "abc": "write", "1.2.3": "write", "1,5": "point", "1e": "exponent",
    "1/0": "zero", "1/": "two integers", "0x1.8": "exponent", "0xG": "hexadecimal",
    "0b12": "0 and 1", "0x1FF": "more bits", "0b111111111": "more bits",
    "-0x7E": "no sign", "1e10001": "beyond", "1" * 4001: "characters",
    "0x1p40001": "40000", "--1": "write",
    "9" * 3000 + "e7002": "beyond", "0x" + "F" * 3901 + "p0": "3900",
    "1e-10001": "beyond", "infinite": "write", "nan1": "write",
    "1e-99999999999999999999": "beyond",
    "0x" + "F" * 17: "64 bits", '"\\\n': "write",
}  # fmt: skip


def test_what_is_no_number(compared):
    found = run(Call("parse", (text, "float8_e4m3fn")) for text in WRONG)
    for (text, word), answer in zip(WRONG.items(), found, strict=True):
        assert word in answer["error"], text
        assert answer["text"] == ""
        assert answer["rounded"] is None
    compared(len(found))
