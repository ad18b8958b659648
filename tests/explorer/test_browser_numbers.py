"""The page's numbers equal the package's: codes, casts, products of tensor cores."""

from __future__ import annotations

import json
from decimal import Decimal
from math import ldexp
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec import OVERFLOWS, ROUNDINGS
from tf32dtype.tensor_core.models import ALIGNED

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numbers of all kinds
]

#: NumPy's formats that the page has, with their unsigned integers.
BUILTIN = {"float16": np.uint16, "float32": np.uint32, "float64": np.uint64}
FORMATS = [*td.formats, *BUILTIN]
CASTS = 1000
DOTS = 1000


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(name) if name in BUILTIN else td.formats[name].dtype


def unused(name: str) -> int:
    return 0 if name in BUILTIN else td.formats[name].unused_low_bits


def width(name: str) -> int:
    return dtype(name).itemsize * 8 if name in BUILTIN else td.formats[name].bits


def numbers(name: str, codes: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of right-aligned codes."""
    if name in BUILTIN:
        return np.asarray(codes, BUILTIN[name]).view(name)
    items = np.asarray(codes, np.uint64) << np.uint64(unused(name))
    return td.from_bits(items, name)


def code(name: str, x: Any) -> int:
    """Return the right-aligned code of a number of a format."""
    if name in BUILTIN:
        return int(np.asarray(x, name).view(BUILTIN[name])[()])
    return int(td.bits(x)) >> unused(name)


def random_codes(rng: np.random.Generator, name: str, count: int) -> list[int]:
    """Return all kinds of numbers: half are random codes, half are numbers near 1."""
    some = rng.integers(0, 2 ** width(name), size=count, dtype=np.uint64)
    with np.errstate(all="ignore"):
        near = (rng.normal(size=count) * 2.0 ** rng.integers(-6, 6, count)).astype(
            dtype(name)
        )
    return [
        int(a) if rng.integers(2) else code(name, b)
        for a, b in zip(some, near, strict=True)
    ]


def differences(
    cases: list[list[Any]], shown: list[int], expected: list[int]
) -> list[list[Any]]:
    """Return the cases whose codes differ from the expected codes, with both codes."""
    rows = zip(cases, shown, expected, strict=True)
    return [[*case, x, y] for case, x, y in rows if x != y]


def test_formats(explorer):
    """The page has the package's table, and then NumPy's formats."""
    page = explorer().open()
    shown = page.run(
        """() => arithmetic.formats.map((f) => [f.name, f.bits, f.exponentBits,
            f.mantissaBits, f.bias, f.signed, f.max.number, f.smallest.number])"""
    )
    assert [row[0] for row in shown] == FORMATS
    for row, form in zip(shown, td.formats.values(), strict=False):
        smallest = form.smallest_subnormal or form.smallest_normal
        assert row == [
            *(form.name, form.bits, form.exponent_bits, form.mantissa_bits, form.bias),
            *(form.signed, form.max, smallest),
        ]


def codes_of(name: str) -> list[int]:
    """Return all codes; for long formats some, and both ends of every power of two."""
    if width(name) <= 16:
        return list(range(2 ** width(name)))
    form = td.formats[name]
    ends = [
        max(0, (field << form.mantissa_bits) + step)
        for field in range(2 ** (form.bits - form.mantissa_bits))
        for step in (-1, 0, 1)
    ]
    some = np.random.default_rng(1).integers(0, 2**form.bits, 3000)
    return sorted({*ends, *map(int, some)})


@pytest.mark.parametrize("name", [n for n in FORMATS if width(n) <= 19])
def test_codes(explorer, compared, name):
    codes = codes_of(name)
    page = explorer().open()
    text = page.run(
        """([name, codes]) => JSON.stringify(codes.map((code) => {
            const x = arithmetic.describe(name, code);
            return [x.hex, x.kind, x.negative, x.exact?.decimal, x.exact?.power];
        }))""",
        [name, codes],
    )
    shown = json.loads(text)  # a long list takes Playwright many seconds
    items = numbers(name, codes)
    for at, x, row in zip(codes, items.astype(float), shown, strict=True):
        assert row[0] == f"0x{at << unused(name):0{2 * items.itemsize}X}"
        if np.isnan(x):
            assert row[1] == "nan"
        elif np.isinf(x):
            assert row[1:3] == ["inf", x < 0]
        else:
            assert row[2] == np.signbit(x), row
            odd, _, power = row[4].partition(" * 2^")
            assert Decimal(row[3]) == Decimal(float(x)), row  # both are exact
            assert ldexp(int(odd), int(power or 0)) == x, row
            assert int(odd) % 2 or x == 0, row
    compared(len(codes))


def test_casts(explorer, compared):
    """Casts from any format to any target of td.quantize, with each rounding and
    overflow."""
    rng = np.random.default_rng(2)
    cases, expected = [], []
    for _ in range(CASTS):
        source = str(rng.choice(FORMATS))
        target = str(rng.choice([name for name in FORMATS if name != "float64"]))
        rounding = str(rng.choice(ROUNDINGS))
        overflow = str(rng.choice(OVERFLOWS))
        [given] = random_codes(rng, source, 1)
        seed = int(rng.integers(2**32))
        draw = np.random.default_rng(seed).integers(0, 2**64, dtype=np.uint64)
        cases.append([source, str(given), target, rounding, overflow, str(draw)])
        result = td.quantize(
            numbers(source, [given]).reshape(()),
            dtype(target),
            rounding=rounding,
            overflow=overflow,
            rng=np.random.default_rng(seed) if rounding == "stochastic" else None,
        )
        expected.append(code(target, result))
    page = explorer().open()
    shown = page.run(
        """(cases) => cases.map(([from, code, to, rounding, overflow, draw]) =>
            Number(arithmetic.cast(from, BigInt(code), to, rounding, overflow,
                BigInt(draw)).value.code))""",
        cases,
    )
    assert differences(cases, shown, expected) == []
    compared(CASTS)


def test_dot_products(explorer, compared):
    """Products of any model, with Inf, NaN and subnormal numbers among the operands."""
    rng = np.random.default_rng(3)
    cases, expected = [], []
    for _ in range(DOTS):
        model = ALIGNED[rng.integers(len(ALIGNED))]
        k = int(rng.integers(1, 33))
        a, b = (random_codes(rng, name, k) for name in (model.a, model.b))
        [c] = random_codes(rng, model.accumulator, 1)
        row = (model.device, model.instruction, model.a, model.b, model.accumulator)
        cases.append([*row, a, b, c])
        result = td.tensor_core.matmul(
            numbers(model.a, a),
            numbers(model.b, b),
            numbers(model.accumulator, [c])[0],
            device=model.device,
            instruction=model.instruction,
            accumulator=model.accumulator,
        )
        expected.append(code(model.accumulator, result))
    page = explorer().open()
    shown = page.run(
        """(cases) => cases.map(([device, instruction, a, b, accumulator, x, y, c]) =>
            arithmetic.dot(arithmetic.model(device, instruction, a, b, accumulator),
                x, y, c).result.code)""",
        cases,
    )
    assert differences(cases, shown, expected) == []
    compared(DOTS)
