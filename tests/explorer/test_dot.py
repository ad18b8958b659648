"""Dot products of the explorer: the package's bits, and the steps of `explain`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.explorer.calls import Call, row, run, steps_of
from tests.reference.codec import decode_code, to_float, to_fraction
from tests.reference.formats import FLOAT16, FLOAT32, Format
from tests.reference.tensor_core import format_named
from tests.tensor_core import arrays, cases, scaled_cases
from tf32dtype.tensor_core.block_scaled import BLOCK_SCALED
from tf32dtype.tensor_core.models import ALIGNED, Aligned
from tf32dtype.tensor_core.steps import Addition, Exact, Group, steps

pytestmark = pytest.mark.once

Array = np.ndarray[Any, Any]

ACCUMULATORS = {"float32": FLOAT32, "float16": FLOAT16}


def codes(name: str, bits: Array) -> Array:
    """Return codes of a format's numbers from float32's bits."""
    if name == "float32":
        return bits
    if name == "tf32":
        return bits >> 13
    numbers = arrays.operand(name, bits)
    return numbers.view(f"u{numbers.itemsize}")


def accumulator_code(name: str, bits: int) -> int:
    """Return the code of a result's float32 bits. The unit's NaN has all bits set but
    the sign."""
    if name == "float16" and bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FFF
    return int(codes(name, np.array([bits], np.uint32))[0])


def drawn(count: int) -> list[tuple[int, Aligned, cases.Cases]]:
    """Return some cases of every model, of several lengths."""
    found = []
    for index, model in enumerate(ALIGNED):
        lengths = cases.lengths(model)
        k = lengths[index % len(lengths)]
        found.append((index, model, cases.random_cases(model, count, k, index)))
    return found


def dot_call(index: int, model: Aligned, case: cases.Cases, i: int, *pick: str) -> Call:
    a, b = codes(model.a, case.a[i]), codes(model.b, case.b[i])
    c = int(codes(model.accumulator, case.c[i : i + 1])[0])
    given = (row("models", index), a.tolist(), b.tolist(), c)
    return Call("dot", given, pick or None)


@steps_of(3)
def test_bits(step, compared):
    """Bits are those of matmul, for every device and instruction."""
    groups = drawn(10)
    asked = [
        (index, model, case, i)
        for index, model, case in groups
        for i in range(index % step, len(case.c), step)
    ]
    found = iter(run(dot_call(*one, "result.code") for one in asked))
    total = 0
    for index, model, case in groups:
        some = cases.Cases(*(x[index % step :: step] for x in case))
        for bits in arrays.diagonals(model, some, 8).tolist():
            (code,) = next(found)
            assert code == accumulator_code(model.accumulator, bits), model.name
            total += 1
    compared(total)


def test_promotion(compared):
    index, model = next(
        (i, m) for i, m in enumerate(ALIGNED)
        if m.name == "H100 wgmma float8_e4m3fn -> float32"
    )  # fmt: skip
    case = cases.random_cases(model, 20, 300, 7)
    a, b = codes(model.a, case.a), codes(model.b, case.b)
    found = run(
        Call(
            "dot",
            (row("models", index), a[i].tolist(), b[i].tolist(), int(case.c[i]), 128),
            ("result.code", "steps.*.kind"),
        )
        for i in range(20)
    )
    want = arrays.matmul(
        model, case.a, case.b.T, np.repeat(case.c[:, np.newaxis], 20, 1),
        promote_every=128,
    )  # fmt: skip
    for i, (code, kinds) in enumerate(found):
        assert code == want[i, i]
        assert kinds.count("addition") == 3
    compared(20)


# -- steps -----------------------------------------------------------------------------


def fraction(x: Exact) -> Fraction:
    value = Fraction(x.magnitude) * Fraction(2) ** x.unit
    return -value if x.negative else value


def shown(found: dict[str, Any] | None) -> Fraction:
    return Fraction(0) if found is None else Fraction(found["decimal"])


def same_number(f: Format, code: int, value: float) -> bool:
    got = to_float(decode_code(f, code))
    return (math.isnan(got) and math.isnan(value)) or (
        got == value and math.copysign(1, got) == math.copysign(1, value)
    )


def check_rounding(want: Any, found: dict[str, Any]) -> None:
    assert found["overflow"] == want.overflow
    if not want.overflow:
        assert found["up"] == want.up
        assert found["tie"] == want.tie
        assert shown(found["off"]) == fraction(want.off)


def check_group(model: Aligned, want: Group, found: dict[str, Any]) -> None:
    assert found["kind"] == "group"
    assert tuple(found["ks"]) == want.ks
    assert bool(found["special"]) == bool(want.special)
    if want.special:
        if len(want.special) > 1 or "*" not in want.special[0]:
            assert sorted(found["special"]) == sorted(want.special)
        return
    assert found["greatest"] == want.greatest
    assert found["sources"] == list(want.sources)
    assert found["unit"] == (None if want.greatest is None else want.unit)
    assert int(found["totalUnits"], 16) == want.total
    for term, got in zip(want.terms, found["terms"], strict=True):
        assert got["ks"] == ([] if term.k is None else [term.k])
        assert shown(got["exact"]) == fraction(term.exact)
        assert shown(got["cut"]) == fraction(term.cut)
        assert int(got["keptUnits"], 16) == term.kept
        assert shown(got["kept"]) == shown(got["exact"]) - shown(got["cut"])
        if term.exact.magnitude:
            assert got["exponent"] == term.exponent
    check_rounding(want.rounded, found["rounding"])


def check_steps(
    model: Aligned, case: cases.Cases, i: int, found: dict[str, Any]
) -> None:
    f = ACCUMULATORS[model.accumulator]
    a, b = (
        [
            to_float(decode_code(format_named(name), int(c)))
            for c in codes(name, bits[i])
        ]
        for name, bits in ((model.a, case.a), (model.b, case.b))
    )
    start = float(case.c[i : i + 1].view(np.float32)[0])
    want = list(steps(model, a, b, start))
    for step, got in zip(want, found["steps"], strict=True):
        assert same_number(f, got["result"]["code"], step.result)
        assert same_number(f, got["accumulator"]["code"], step.accumulator)
        if isinstance(step, Addition):
            assert got["kind"] == "addition"
            assert tuple(got["ks"]) == tuple(step.ks)
            assert same_number(f, got["sum"]["code"], step.sum)
            if got["rounding"] is not None:
                check_rounding(step.rounded, got["rounding"])
        else:
            check_group(model, step, got)
    numbers = [*a, *b, start]
    if all(map(math.isfinite, numbers)):
        exact = Fraction(start) + sum(
            Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)
        )
        assert shown(found["exact"]) == exact
        result = decode_code(f, found["result"]["code"])
        if not result.special:
            assert shown(found["error"]) == to_fraction(result) - exact
    else:
        assert found["exact"] is None


@pytest.mark.exhaustive
@steps_of(5)
def test_steps(step, compared):
    """Steps are those that `explain` prints."""
    groups = drawn(9)
    asked = [
        (index, model, case, (index * 4 + n) % len(case.c))
        for index, model, case in groups
        for n in range(2)
    ][::step]
    found = run(dot_call(*one) for one in asked)
    for (_, model, case, i), answer in zip(asked, found, strict=True):
        check_steps(model, case, i, answer)
    compared(len(asked))


def test_reasons():
    index = next(i for i, m in enumerate(ALIGNED) if m.a == m.b == "float16")
    inf, nan, one, zero = 0x7C00, 0x7E00, 0x3C00, 0x8000
    asked = [
        ([one, nan], [one, nan], 0), ([inf, one], [zero, one], 0),
        ([inf, one], [one, one], 0xFF800000), ([inf, inf], [one, one], 0x7F800000),
        ([one], [one], 0x7FC00000),
    ]  # fmt: skip
    found = run(
        Call("dot", (row("models", index), *given), ("steps.0.special",))
        for given in asked
    )
    assert [x for (x,) in found] == [
        ["k 1: a and b are NaN"], ["k 0: inf * -0"], ["+inf of k 0 and -inf of c"],
        ["c: +inf", "k 0: +inf", "k 1: +inf"], ["c is NaN"],
    ]  # fmt: skip


def test_wrong_codes():
    half = next(i for i, m in enumerate(ALIGNED) if m.accumulator == "float16")
    asked = [
        Call("dot", (row("models", half), [1 << 16], [1])),
        Call("dot", (row("models", half), [1], [1], 1 << 16)),
        Call("dot", (row("models", half), [1, 2], [1])),
        Call("scaledDot", (row("scaledModels", 0), [16], [1], [127], [127])),
        Call("scaledDot", (row("scaledModels", 0), [1], [1], [256], [127])),
        Call("scaledDot", (row("scaledModels", 0), [1], [1], [127], [])),
    ]
    words = ("more bits", "accumulator", "a has 2", "more bits", "8 bits", "1 scales")
    for answer, word in zip(run(asked), words, strict=True):
        assert word in answer["thrown"]


# -- block-scaled ----------------------------------------------------------------------


@pytest.mark.exhaustive
@steps_of(5)
def test_scaled_bits(step, compared):
    asked, want = [], []
    for index, model in enumerate(BLOCK_SCALED):
        for seed, kind in enumerate(scaled_cases.KINDS):
            if (index * len(scaled_cases.KINDS) + seed) % step:
                continue
            k = (model.depth, model.depth + 5, 2 * model.depth)[seed % 3]
            case = scaled_cases.cases(model, kind, 3, k, index)
            want += scaled_cases.truth(model, case).tolist()
            for a, s, b, t, c in zip(*case, strict=True):
                given = (codes(model.a, a), codes(model.b, b), s, t)
                lists = [x.tolist() for x in given]
                asked.append(
                    Call(
                        "scaledDot",
                        (row("scaledModels", index), *lists, int(c)),
                        ("result.code", "exact", "error", "steps"),
                    )
                )
    found = run(asked)
    for bits, (code, exact, error, parts) in zip(want, found, strict=True):
        assert code == bits
        check_scaled(code, exact, error, parts)
    compared(len(asked))


def check_scaled(
    code: int, exact: Any, error: Any, parts: list[dict[str, Any]]
) -> None:
    """Check that the numbers on the page add up."""
    for group in parts:
        if group["special"]:
            continue
        kept = [shown(term["kept"]) for term in group["terms"]]
        assert sum(kept) == shown(group["total"])
        for term, part in zip(group["terms"], kept, strict=True):
            assert part + shown(term["cut"]) == shown(term["exact"])
        result = decode_code(FLOAT32, group["result"]["code"])
        if not result.special:
            off = shown(group["rounding"]["off"])
            assert to_fraction(result) + off == shown(group["total"])
    result = decode_code(FLOAT32, code)
    if exact is not None and not result.special:
        assert to_fraction(result) - shown(exact) == shown(error)
    if exact is not None and len(parts) == 1:
        whole = [shown(term["exact"]) for term in parts[0]["terms"]]
        assert sum(whole) == shown(exact)
