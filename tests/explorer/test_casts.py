"""Rounding as the explorer shows it, against tests/reference and the package."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.explorer.calls import Call, big, run, steps_of
from tests.explorer.formats import ALL, SHORT
from tests.reference import arithmetic
from tests.reference.codec import (
    INVALID,
    OVER,
    OVERFLOWS,
    ROUNDINGS,
    UNDER,
    Exact,
    decode_code,
    encode_code,
    from_fraction,
    to_fraction,
)
from tests.reference.formats import FORMATS, Format
from tests.support.bits import array, items_of
from tf32dtype._cli.codes import outcome, round_to
from tf32dtype._cli.exact import parse
from tf32dtype._measures.format_facts import facts

pytestmark = pytest.mark.once

FLAGS = {"overflow": OVER, "underflow": UNDER, "invalid": INVALID}
E4M3 = FORMATS["float8_e4m3fn"]


def check_flags(found: list[str], flags: int, x: Exact, f: Format, code: int) -> None:
    assert sum(FLAGS.get(name, 0) for name in found) == flags
    result = decode_code(f, code)
    exact = (
        not result.special and to_fraction(result) == to_fraction(x)
        if (not x.special)
        else True
    )
    assert ("inexact" in found) == (not exact)


@steps_of(5)
def test_short_formats(step, compared):
    """Every code of each short format is cast to each, as NumPy casts arrays."""
    pairs = [*product(SHORT, SHORT)]
    chosen = [
        range(number % step, f.count, step) for number, (f, _) in enumerate(pairs)
    ]
    cases = [
        (f, to, code)
        for (f, to), codes in zip(pairs, chosen, strict=True)
        for code in codes
    ]
    found = iter(
        run(
            Call("cast", (f.name, code, to.name), ("value.code", "flags"))
            for f, to, code in cases
        )
    )
    for (f, to), codes in zip(pairs, chosen, strict=True):
        numbers = array(f, np.arange(f.count, dtype=np.uint8))
        with np.errstate(all="ignore"):
            ours = items_of(to, numbers.astype(getattr(td, to.name))).tolist()
        for code in codes:
            x = decode_code(f, code)
            want, flags = encode_code(to, x)
            got, raised = next(found)
            assert got == want, (f.name, to.name, code)
            assert f is to or want == ours[code]  # NumPy copies for the same dtype
            check_flags(raised, flags, x, to, want)
    compared(len(cases))


def random_casts(count: int) -> list[tuple[Format, int, Format]]:
    """Return casts between all formats; half of the numbers are near the target's
    codes."""
    rng = random.Random(2)
    cases = []
    for _ in range(count):
        f, to = rng.choice(ALL), rng.choice(ALL)
        code = rng.randrange(f.count)
        if rng.random() < 0.5:
            near = decode_code(to, rng.randrange(to.count))
            code, _ = encode_code(f, near, "to_odd", "saturate")
            code = min(max(code + rng.randrange(-2, 3), 0), f.count - 1)
        cases.append((f, code, to))
    return cases


@steps_of(4)
def test_every_rounding(step, compared):
    rng = random.Random(3)
    cases = [
        (f, code, to, rounding, overflow, rng.randrange(1 << 64))
        for f, code, to in random_casts(1000 // step)
        for rounding in ROUNDINGS
        for overflow in [rng.choice(OVERFLOWS)]
    ]
    found = run(
        Call(
            "cast",
            (f.name, str(code), to.name, rounding, overflow, big(draw)),
            ("value.code", "flags", "back.code", "same"),
        )
        for f, code, to, rounding, overflow, draw in cases
    )
    for case, answer in zip(cases, found, strict=True):
        f, code, to, rounding, overflow, draw = case
        x = decode_code(f, code)
        want, flags = encode_code(to, x, rounding, overflow, draw)
        there = decode_code(to, want)
        back, _ = encode_code(f, there, rounding, overflow, draw)
        again = decode_code(f, back)
        assert answer[0] == want, case
        assert answer[2] == back, case
        check_flags(answer[1], flags, x, to, want)
        if x.special or again.special:
            same = (x.special, x.negative) == (again.special, again.negative)
        else:
            same = to_fraction(x) == to_fraction(again) and x.negative == again.negative
        assert answer[3] == (same or x.special == again.special == "nan"), case
    compared(len(cases))


def values(count: int) -> list[Fraction]:
    """Return numbers of all sizes, some of them exact in a format."""
    rng = random.Random(4)
    found = []
    for i in range(count):
        x = Fraction(rng.randrange(1, 1 << 30), rng.randrange(1, 1 << 30))
        x *= Fraction(2) ** rng.randrange(-20, 20) if i % 3 else 1
        if i % 5 == 0:
            x = to_fraction(decode_code(E4M3, rng.randrange(1, E4M3.max_code)))
        found.append(rng.choice((-1, 1)) * x)
    return found


def test_all_roundings(compared):
    cases = [(x, f) for i, x in enumerate(values(60)) for f in (ALL[i % len(ALL)],)]
    found = run(
        Call("allRoundings", (f"{x.numerator}/{x.denominator}", f.name))
        for x, f in cases
    )
    for (x, f), answer in zip(cases, found, strict=True):
        exact = from_fraction(x)
        for row, rounding in zip(answer["rows"], ROUNDINGS[:-1], strict=True):
            assert row["rounding"] == rounding
            want, flags = encode_code(f, exact, rounding)
            assert row["value"]["code"] == want
            check_flags(row["flags"], flags, exact_of(x), f, want)
            check_errors(row, x, f)
        check_chance(answer["stochastic"], x, f)
    compared(len(cases))


def exact_of(x: Fraction) -> Exact:
    """Return the number for `to_fraction`, which requires an exact number."""
    exact = from_fraction(x)
    return exact if not exact.sticky else exact._replace(sticky=False, integer=1 << 200)


def check_errors(row: dict[str, Any], x: Fraction, f: Format) -> None:
    result = decode_code(f, row["value"]["code"])
    if result.special:
        assert row["error"] is None
        return
    error = to_fraction(result) - x
    shown = row["error"]["decimal"]
    if shown.endswith("..."):
        assert abs(Fraction(shown[:-3]) - error) <= abs(error) * Fraction(1, 10**39)
    else:
        assert Fraction(shown) == error
    assert Fraction(row["relative"]) == pytest.approx(abs(error / x), rel=1e-5)


def check_chance(found: dict[str, Any], x: Fraction, f: Format) -> None:
    """Check the probability of rounding up, which is the fraction above the lower
    value."""
    down, up = (found[name]["value"]["code"] for name in ("down", "up"))
    if down == up:
        assert found["probability"] == 0
        return
    low, high = (decode_code(f, code) for code in (down, up))
    if low.special or high.special:
        return
    below, above = to_fraction(low), to_fraction(high)
    chance = (x - below) / (above - below)
    assert 0 < chance < 1
    assert abs(Fraction(found["chance"]) - chance) <= Fraction(1, 10**39)
    assert found["probability"] == pytest.approx(float(chance), abs=1e-15)


def test_double_rounding(compared):
    """1.0625 is halfway between two numbers of E4M3. A slightly larger number is nearer
    to the upper one, but becomes the tie in float16."""
    chains = [
        ("1.0625000001", ("float16", "float8_e4m3fn"), 0x38, 0x39),
        ("1.0625", ("float16", "float8_e4m3fn"), 0x38, 0x38),
        ("0x1.001000001p+0", ("float32", "float16"), 0x3C00, 0x3C00),
        ("0x1.00200000001p+0", ("float32", "float16"), 0x3C00, 0x3C01),
        ("248.1", ("bfloat16", "float8_e4m3"), 0x78, 0x78),
        ("464.0001", ("float32", "float8_e4m3fn"), 0x7F, 0x7F),
        ("464.00001", ("float32", "float8_e4m3fn"), 0x7E, 0x7F),
        ("1/3", ("float64", "float32", "bfloat16", "float8_e3m4"), 0x15, 0x15),
    ]  # fmt: skip
    found = run(Call("chain", (text, list(formats))) for text, formats, *_ in chains)
    for (text, names, want, direct), answer in zip(chains, found, strict=True):
        x = from_fraction(Fraction(text) if "x" not in text else hexadecimal(text))
        once = encode_code(named(names[-1]), x)[0]
        for name, step in zip(names, answer["steps"], strict=True):
            code = encode_code(named(name), x)[0]
            assert step["value"]["code"] == code
            before, x = x, decode_code(named(name), code)
            if not (x.special or before.special or before.sticky):
                error = Fraction(step["error"]["decimal"])
                assert error == to_fraction(x) - to_fraction(before)
        assert answer["direct"]["value"]["code"] == once == direct, text
        assert code == want, text
        assert answer["differs"] == (want != direct)
    compared(len(chains))


def test_outcomes_are_those_of_the_terminal(compared):
    """The outcomes of every format are the same strings."""
    rng = random.Random(7)
    texts = [
        *("0", "-0", "1", "-2", "0.3", "-1/3", "6.9", "7", "464", "465", "1e-9"),
        "-1e-40",
        *("1e39", "-1e39", "0x1p-127", "0x1p-128", "1e400", "inf", "-inf", "nan"),
        *(repr(math.ldexp(rng.random(), rng.randrange(-150, 150))) for _ in range(60)),
    ]
    cases = [(f.name, text) for f in ALL for text in texts]
    found = run(Call("round", (text, name), ("outcome",)) for name, text in cases)
    for (name, text), (told,) in zip(cases, found, strict=True):
        form, exact = facts(name), parse(text)
        want = outcome(form, exact, round_to(form, exact))
        assert told == want, (name, text)
    compared(len(cases))


def named(name: str) -> Format:
    return next(f for f in ALL if f.name == name)


def hexadecimal(text: str) -> Fraction:
    return Fraction(float.fromhex(text))


def test_sums_and_products(compared):
    rng = random.Random(5)
    cases = []
    for f in ALL:
        for _ in range(60):
            a, b = rng.randrange(f.count), rng.randrange(f.count)
            if rng.random() < 0.5:  # near exponents
                b = a ^ rng.randrange(1 << f.mantissa_bits + 1)
            what = rng.choice(("add", "multiply"))
            cases.append((f, what, a, b, rng.choice(ROUNDINGS[:-1])))
    found = run(
        Call("operate", (what, f.name, str(a), str(b), rounding))
        for f, what, a, b, rounding in cases
    )
    for case, answer in zip(cases, found, strict=True):
        check_operation(case, answer)
    compared(len(cases))


def check_operation(case: Any, answer: dict[str, Any]) -> None:
    f, what, a, b, rounding = case
    x, y = decode_code(f, a), decode_code(f, b)
    operation = arithmetic.add if what == "add" else arithmetic.multiply
    exact, invalid = operation(x, y)
    canceled = what == "add" and not exact.special and not exact.integer
    if canceled and x.negative != y.negative:
        exact = Exact(rounding == "toward_negative")
    code, flags = encode_code(f, exact, rounding)
    rounded = answer["rounded"]
    assert rounded["value"]["code"] == code, case
    assert sum(FLAGS.get(name, 0) for name in rounded["flags"]) == flags | invalid
    assert bool(answer["special"]) == bool(x.special or y.special)
    if answer["special"]:
        return
    unit = Fraction(2) ** answer["unit"]
    bits = answer["result"]["bits"]
    value = int(bits, 2) * unit
    assert value == abs(to_fraction(exact))
    for name, operand in (("a", x), ("b", y)):
        row = answer["rows"][name]
        of = Fraction(2) ** answer["units"][name]
        assert int(row["bits"], 2) * of == abs(to_fraction(operand))
        assert row["negative"] == operand.negative
    assert len(answer["rows"]["a"]["bits"]) == len(answer["rows"]["b"]["bits"])
    parts = answer["rounding"]
    kept, rest = parts["kept"], parts["rest"]
    last = Fraction(2) ** max(answer["last"], answer["unit"])
    assert int(kept, 2) * last + int(rest or "0", 2) * unit == value
    padded = rest + "00"
    assert parts["guard"] == padded[0]
    assert parts["round"] == padded[1]
    assert parts["sticky"] == ("1" if "1" in padded[2:] else "0")
    result = decode_code(f, code)
    if not result.special:
        assert parts["up"] == (abs(to_fraction(result)) > int(kept, 2) * last)
        assert parts["tie"] == (Fraction(int(rest or "0", 2)) * unit * 2 == last
                                and bool(rest))  # fmt: skip


def test_numbers_of_javascript():
    texts = run([Call("textOf", (0.1,)), Call("textOf", (-2,)), Call("textOf", (0,))])
    assert [float.fromhex(text) for text in texts] == [0.1, -2.0, 0.0]


def test_wrong_codes():
    asked = [
        Call("describe", ("float4_e2m1fn", 16)),
        Call("cast", ("float6_e2m3fn", 64, "tf32")),
        Call("round", ("0x7E", "tf32")),
        Call("values", ("float16",)),
    ]
    words = ("more bits", "more bits", "code", "65536")
    for answer, word in zip(run(asked), words, strict=True):
        assert word in answer["thrown"]
