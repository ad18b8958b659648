"""explain: its steps and last line against the C, and its tables against arithmetic."""

from __future__ import annotations

import doctest
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.tensor_core import Unit, nearby
from tests.tensor_core.arrays import (
    Array,
    accumulator,
    assert_results,
    blocks,
    dtype,
    operand,
)
from tests.tensor_core.cases import (
    WITH_CASES,
    Cases,
    by_parameters,
    exact,
    lengths,
    random_cases,
)
from tests.tensor_core.rows import each_row as each_row_of
from tests.tensor_core.test_recordings import each_recording
from tf32dtype.tensor_core import explanation
from tf32dtype.tensor_core.look_up import find_model
from tf32dtype.tensor_core.models import Aligned
from tf32dtype.tensor_core.steps import Exact, Group, Term, TwoStages, steps

pytestmark = pytest.mark.once

explain = td.tensor_core.explain

ROWS = [models[0] for models in by_parameters(WITH_CASES)]


def each(rows: list[Any]) -> Any:
    return each_row_of("model", rows, lambda m: m.name)


each_row = each(ROWS)
each_aligned = each([m for m in ROWS if isinstance(m, Aligned)])


# -- the steps -----------------------------------------------------------------


def numbers(bits: Array) -> Any:
    with np.errstate(invalid="ignore"):  # signaling NaNs
        return bits.view(np.float32).astype(np.float64).tolist()


def last_results(model: Any, cases: Cases, promote: int | None = None) -> Array:
    """Return the float32 bits of the last step's result in each case."""
    results = []
    a, b = numbers(exact(model.a, cases.a)), numbers(exact(model.b, cases.b))
    for x, y, c in zip(a, b, numbers(cases.c), strict=True):
        for step in steps(model, x, y, c, promote):
            c = step.result
        results.append(c)
    found = np.array(results, np.float32).view(np.uint32)
    nan = 0x7FFFFFFF if model.accumulator == "float32" else 0x7FFFE000
    return np.where(np.isnan(results), np.uint32(nan), found)


def check_steps(model: Any, count: int, seed: int, others: Sequence[Any] = ()) -> int:
    """Compare the steps of a model, or of others that its cases suit, with the C."""
    found = 0
    for k in lengths(model):
        cases = random_cases(model, count, k, seed)
        for other in others or [model]:
            results = last_results(other, cases)
            assert_results(repr(other), cases, results, blocks(other, cases))
            found += count
    return found


@pytest.mark.sampled(30)
@each_row
def test_steps(model, compared):
    compared(check_steps(model, 36, 11))


@each_row
@pytest.mark.exhaustive
def test_steps_at_length(model, compared):
    compared(check_steps(model, 400, 12))


@pytest.mark.sampled(30)
@each_aligned
def test_steps_where_sources_differ(model, compared):
    """The rows have other parameters than the table's."""
    others = [
        replace(model, zero_c_exponent=-126, floor=None),
        replace(model, zero_products=True),
        replace(model, negative_zero=True),
        replace(model, fraction=model.fraction - 2, floor=-100),
    ]
    compared(check_steps(model, 12, 13, others))


@each_recording
def test_steps_of_recordings(recording, compared):
    cases, recorded = recording.rows()
    some = np.random.default_rng(5).choice(len(recorded), 40, replace=False)
    model = recording.models[0]
    found = last_results(model, cases.take(some))
    assert_results(model.name, cases.take(some), found, recorded[some])
    compared(len(some))


def value(x: Exact) -> Fraction:
    return (-1 if x.negative else 1) * x.magnitude * Fraction(2) ** x.unit


def assert_group(model: Aligned, group: Group, a: list[int], b: list[int]) -> None:
    """Compare a group of finite terms with the reference's exponents and exact sums."""
    unit = Unit(model)
    (c,) = np.array([group.accumulator], np.float32).view(np.uint32).tolist()
    significand, exponent = unit.accumulator(c)
    exponents = [exponent if significand else model.zero_c_exponent]
    exact = [Fraction(group.accumulator)]
    for k in group.ks:
        (x, of_x), (y, of_y) = unit.a[a[k]], unit.b[b[k]]
        exponents.append(of_x + of_y if x * y or model.zero_products else None)
        exact.append(x * y * Fraction(2) ** (of_x + of_y - unit.product_bits))
    assert [term.exponent for term in group.terms] == exponents
    assert [value(term.exact) for term in group.terms] == exact
    counted = [e for e in (*exponents, model.floor) if e is not None]
    assert group.greatest == max(counted, default=None)
    if group.greatest is not None:
        assert group.unit == group.greatest - model.fraction
    of_unit = Fraction(2) ** group.unit
    for term in group.terms:
        assert term.kept == int(value(term.exact) / of_unit)
        assert value(term.cut) == value(term.exact) - term.kept * of_unit
    assert group.total == sum(term.kept for term in group.terms)
    rounded, total = group.rounded, group.total * of_unit
    assert rounded.overflow == math.isinf(rounded.value)
    if not rounded.overflow:
        off = value(rounded.off) * (1 if rounded.up else -1)
        assert Fraction(rounded.value) == total + off
        precision = group.unit, unit.result, model.kept, model.rounding
        _, last = nearby(group.total, *precision)
        nearest = model.rounding == "ties_to_even"
        assert rounded.tie == (nearest and abs(off) == Fraction(2) ** (last - 1))


@pytest.mark.sampled(20)
@each_aligned
def test_groups_are_those_of_the_reference(model, compared):
    cases = random_cases(model, 24, 2 * model.instruction_depth, 17)
    a, b = exact(model.a, cases.a), exact(model.b, cases.b)
    lines = zip(a, b, numbers(a), numbers(b), numbers(cases.c), strict=True)
    for x, y, of_x, of_y, c in lines:
        for other in (model, replace(model, zero_products=True)):
            for step in steps(other, of_x, of_y, c):
                if isinstance(step, Group) and not step.special:
                    assert_group(other, step, x.tolist(), y.tolist())
                    compared(1)


# -- the output ----------------------------------------------------------------

LAST = re.compile(r"= 0x([0-9A-F]+)  (\S+)")


def check_text(text: str, result: Any) -> None:
    """Check that lines fit, and that the last line has the bits and the value."""
    lines = text.splitlines()
    assert max(map(len, lines)) <= 88, text
    assert not any(line != line.rstrip() for line in lines)
    last = LAST.fullmatch(lines[-1])
    assert last, lines[-1]
    size = result.dtype.itemsize
    assert last[1] == f"{int(result.view(f'u{size}')):0{2 * size}X}", text
    assert last[2] == str(result)


@pytest.mark.sampled(30)
@each_row
def test_the_last_line_is_matmul(model, compared):
    """Operands that are tf32 are passed as float32, with the bits that tf32 ignores."""
    compared(check_last_lines(model, 2))


@pytest.mark.exhaustive
@each_row
def test_the_last_line_of_many_cases_is_matmul(model, compared):
    compared(check_last_lines(model, 8))


def check_last_lines(model: Any, count: int) -> int:
    keywords: dict[str, Any] = {
        "device": model.device,
        "instruction": model.instruction,
        "accumulator": np.dtype(model.accumulator),
    }
    every = None if model.accumulator == "float16" else model.instruction_depth
    float32 = isinstance(model, Aligned)  # AMD's units multiply float32
    ks = [*lengths(model), 5 * model.instruction_depth, 9 * model.instruction_depth + 1]
    for number, k in enumerate(ks):
        cases = random_cases(model, 12, k, 14)
        # The rows of one k continue the twelve kinds of cases where the preceding k
        # ended.
        cases = cases.take((number * count + np.arange(count)) % 12)
        a, b = (
            x.view(np.float32) if name == "tf32" and float32 else operand(name, x)
            for name, x in ((model.a, cases.a), (model.b, cases.b))
        )
        c = accumulator(model.accumulator, cases.c)
        for promote in {None, every}:
            more = keywords | ({"promote_every": promote} if promote else {})
            for x, y, z in zip(a, b, c, strict=True):
                result = td.tensor_core.matmul(x, y, z, **more)
                check_text(explain(x, y, z, **more), result)
            check_text(explain(x, y, z, device=model, promote_every=promote), result)
    return len(ks) * count * len({None, every})


def test_of_many_blocks_each_is_a_line():
    a = np.ones(4 * 200, np.float16)
    text = explain(a, a, device="V100")
    lines = [x for x in text.splitlines() if re.match(r" +\d+-\d+ ", x)]
    assert len(lines) == 200
    assert lines[3].split() == ["12-15", "3", "c", "16", "0x41800000", "16.0"]
    assert text.endswith("= 0x44480000  800.0")
    a[400:404] = [np.inf, np.nan, -np.inf, 0]
    lines = explain(a, a, device="V100").splitlines()
    assert "  400-403 k 401: a and b are NaN" + 29 * " " + "0x7FFFFFFF  nan" in lines
    assert "  404-407 c is NaN" + 43 * " " + "0x7FFFFFFF  nan" in lines


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of the tables: terms, and the sums below."""
    return [x.split() for x in text.splitlines() if re.match(r" *(\d+|c|sum) ", x)]


@pytest.mark.sampled(12)
@each_aligned
def test_tables_add_up(model):
    """The kept and truncated parts add up to the term, and kept parts to the sum."""
    k = 2 * model.instruction_depth
    cases = random_cases(model, 12, k, 15)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(cases.a.view("f4")) & np.isfinite(cases.b.view("f4"))
    there = finite.all(1) & np.isfinite(cases.c.view("f4"))
    for i in np.flatnonzero(there):
        a, b = (operand(n, x[i]) for n, x in ((model.a, cases.a), (model.b, cases.b)))
        text = explain(
            a,
            b,
            accumulator(model.accumulator, cases.c[i : i + 1])[0],
            device=model.device,
            instruction=model.instruction,
            accumulator=np.dtype(model.accumulator),
        )
        for part in text.split("\n\n"):
            unit = re.search(r"\* 2\^(\S+)", part)
            if unit is None:
                continue
            total = 0
            *terms, last = rows_of(part)
            for name, *cells in terms:
                if name != "c":
                    product = float(a[int(name)]) * float(b[int(name)])
                    assert float.fromhex(cells[3]) == product
                    cells = cells[2:]
                if len(cells) == 1:  # a zero accumulator
                    assert cells == ["0"]
                    continue
                _, whole, kept, *cut = cells
                cut_off = float.fromhex(cut[0]) if cut else 0.0
                assert abs(cut_off) < 2.0 ** int(unit[1])
                value = int(kept, 16) * 2.0 ** int(unit[1])
                assert value + cut_off == float.fromhex(whole)
                total += int(kept, 16)
            assert last[0] == "sum"
            assert int(last[2], 16) == total


def assert_downward(term: Term, unit: int) -> None:
    kept = term.kept * Fraction(2) ** unit
    assert kept + value(term.cut) == value(term.exact)
    assert 0 <= value(term.cut) < Fraction(2) ** unit


@pytest.mark.parametrize(
    "model", [m for m in ROWS if getattr(m, "lanes", 0) and m.device == "MI300X"],
    ids=lambda m: m.name,
)  # fmt: skip
def test_two_stages_add_up(model, compared):
    """The kept and truncated parts add up to the term, and kept parts to the sum."""
    cases = random_cases(model, 60, 2 * model.instruction_depth, 16)
    a, b = numbers(exact(model.a, cases.a)), numbers(exact(model.b, cases.b))
    for x, y, c in zip(a, b, numbers(cases.c), strict=True):
        for step in steps(model, x, y, c):
            assert isinstance(step, TwoStages)
            if step.special:
                continue
            for part in step.products:
                for term in part.terms:
                    unit = Fraction(2) ** part.unit
                    assert value(term.exact) == Fraction(x[term.k]) * Fraction(
                        y[term.k]
                    )
                    assert term.kept * unit + value(term.cut) == value(term.exact)
                    assert abs(value(term.cut)) < unit
                    assert value(term.cut) * value(term.exact) >= 0
            for term in step.together:
                assert_downward(term, step.greatest_product - 24)
            first, last = step.terms
            assert_downward(first, step.greatest - 32)
            if step.dropped:
                assert last.kept == 0
            else:
                assert last.kept % 256 == 0
                assert_downward(replace(last, kept=last.kept >> 8), step.greatest - 24)
            total = (first.kept + last.kept) * Fraction(2) ** (step.greatest - 32)
            assert total == value(step.total)
            assert value(step.down) >= 0
            compared(1)


# -- the explanations ----------------------------------------------------------


def paragraphs(*arguments: Any, **keywords: Any) -> list[str]:
    """Return the paragraphs: the model, c, the steps, and the result."""
    return explain(*arguments, **keywords).split("\n\n")


def test_a_block():
    a = np.float16([1.5, 0, 3, 2**-24])
    b = np.float16([1.75, 1, -2, 1])
    assert paragraphs(a, b, 2.0**-25, device="V100")[1:] == [
        "c = 0x33000000  2.9802322e-08",
        """\
k 0-3
  largest exponent 2, of k 2
   k           a           b       a * b          exactly      * 2^-21  truncated
   0         1.5        1.75       2.625         0x2.Ap+0     0x540000
   2           3          -2          -6        -0x1.8p+2    -0xC00000
   3  5.9605e-08           1  5.9605e-08      0x0.004p-14          0x0  0x1p-24
   c                          2.9802e-08          0x1p-25          0x0  0x1p-25
 sum                              -3.375                     -0x6C0000
  zero: k 1
  rounded toward zero: exact
  accumulator 0xC0580000  -3.375""",
        "= 0xC0580000  -3.375",
    ]


def test_a_group_in_two_stages():
    a = np.float16([1, 0, 3, 2**-13])
    b = np.float16([1.75, 1, -2, -(2**-12)])
    assert (
        paragraphs(a, b, -(2.0**-30), device="MI300X")[2]
        == """\
k 0-3
  largest exponent of products 2, of k 2
   k           a           b       a * b          exactly      * 2^-22  truncated
   0           1        1.75        1.75         0x1.Cp+0     0x700000
   2           3          -2          -6        -0x1.8p+2   -0x1800000
   3  0.00012207 -0.00024414 -2.9802e-08         -0x1p-25          0x0  -0x1p-25
 sum                               -4.25                    -0x1100000
  zero: k 1
  with the accumulator: largest exponent 2
                                                  exactly      * 2^-30  truncated
 sum                               -4.25        -0x1.1p+2 -0x110000000
   c                         -9.3132e-10         -0x1p-30       -0x100  0x1.FEp-23
 all                               -4.25                  -0x110000100
  rounded to nearest, a tie to even: -0x1p-22 is truncated
  accumulator 0xC0880000  -4.25"""
    )


def test_steps_that_are_rounded():
    a = np.array([1, 2**-24, 3]).astype(td.bfloat16)
    text = explain(a, a, np.float32(2**-20), device="Arm BF16")
    assert text.split("\n\n", 2)[2].startswith("""\
k 0-1
  p0                 1            0x1p+0
  p1        3.5527e-15           0x1p-48
  p0 + p1            1                ~1  0x1.FFFFFFp-24 is added""")


@pytest.mark.parametrize("k", [1, 2, 5, 6])
def test_zeros_after_the_last_k_show_where_they_change_something(k):
    x, y = np.ones(k, td.bfloat16), np.zeros(k, td.bfloat16)
    unit = {"device": "Arm BF16", "instruction": "bfmmla"}
    for c, b, shows in ((1.0, x, False), (-0.0, -y, k % 4 == 2)):
        text = explain(x, b, c, **unit)
        assert ("zeros after the last k" in text) == shows
        check_text(text, td.tensor_core.matmul(x, b, c, **unit))


def test_a_row_of_the_table_is_explained_as_it_is():
    x = np.random.default_rng(5).standard_normal((4, 32)).astype(np.float16)
    d = td.tensor_core.matmul(x, x.T, device="A100", accumulator=np.float16)
    found = td.tensor_core.identify(x, x.T, None, d)[0].model
    assert found.accumulator == "float16"
    check_text(explain(x[0], x[1], device=found), d[0, 1])
    with pytest.raises(ValueError, match="bfloat16 x bfloat16"):
        explain(*x[:2].astype(td.bfloat16), device=found)
    with pytest.raises(ValueError, match="accumulator must be float16"):
        explain(x[0], x[1], device=found, accumulator=np.float32)
    with pytest.raises(ValueError, match=r"instruction must be 'mma\.sync'"):
        explain(x[0], x[1], device=found, instruction="wgmma")
    with pytest.raises(ValueError, match=r"device=found\.model"):
        explain(x[0], x[1], device=td.tensor_core.identify(x, x.T, None, d)[0])


def test_chains_of_fused_multiply_adds():
    a = np.array([2**-12, 1, 2**-12]).astype(td.bfloat16)
    lines = explain(a, a, device="AMX").split("\n\n")[2].splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["0", "5.96046448e-08", "0x33800000", "5.9604645e-08"],
        ["2", "1.1920929e-07", "0x34000000", "1.1920929e-07"],
        ["1", "1", "0x3F800000", "1.0"],
        ["t0", "+", "t1", "1.00000012", "0x3F800001", "1.0000001"],
        ["c", "+", "t", "1.00000012", "0x3F800001", "1.0000001"],
    ]


@pytest.mark.parametrize(
    ("a", "words"),
    [
        ([2, 2**-10], "to nearest, a tie to even: 0x1p-10 is truncated"),
        ([2, 3 * 2**-10], "to nearest, a tie to even: 0x1p-10 is added"),
        ([-2, -0.75 * 2**-9], "to nearest: -0x1p-11 is added"),
        ([2, 2**-11], "to nearest: 0x1p-11 is truncated"),
        ([2, 1], "to nearest: exact"),
        ([60000, 60000], "to nearest: out of range"),
    ],
)
def test_roundings(a, words):
    a = np.float16(a)
    text = explain(a, np.float16([1, 1]), device="V100", accumulator="f2")
    assert f"  rounded {words}\n" in text
    other = explain(a[:1], np.float16([2**-24]), 2.0, device="V100")
    assert "  rounded toward zero: " in other


@pytest.mark.parametrize(
    ("a", "b", "c", "words"),
    [
        ([1, np.nan, 1], [1, 1, np.nan], 0, ["k 1: a is NaN", "k 2: b is NaN"]),
        ([0, np.inf], [-np.inf, 0], 0, ["k 0: 0 * -inf", "k 1: inf * 0"]),
        ([np.inf, 1], [1, -np.inf], 0, ["+inf of k 0 and -inf of k 1"]),
        ([1, 1], [1, -np.inf], np.inf, ["+inf of c and -inf of k 1"]),
        ([1, 1], [1, -np.inf], 0, ["k 1: -inf"]),
        ([1, 1], [1, 1], np.nan, ["c is NaN"]),
    ],
)
def test_specials(a, b, c, words):
    paragraph = paragraphs(np.float16(a), np.float16(b), c, device="A100")[2]
    shown = "0xFF800000  -inf" if words == ["k 1: -inf"] else "0x7FFFFFFF  nan"
    (first, *reasons, last) = paragraph.splitlines()
    assert first == f"k 0-{len(a) - 1}: Inf or NaN"
    assert reasons == [f"  {reason}" for reason in words]
    assert last == f"  accumulator {shown}"


def test_an_emulated_instruction():
    x = np.ones(35, td.float8_e4m3fn)
    hopper = {"device": "H100", "instruction": "mma.sync"}
    model, _, first, second, added, *rest = paragraphs(x, x, 0.5, **hopper)
    assert "two groups of float16" in model
    assert "32 k; the last one is filled up with 29 zeros" in model
    assert first.startswith("k 0-1, 4-5, 8-9, 12-13, 16-17, 20-21, 24-25, 28-29\n")
    assert second.startswith("k 2-3, 6-7, 10-11, 14-15, 18-19, 22-23, 26-27, 30-31\n")
    assert added == (
        "k 0-31: t is added to the accumulator\n"
        "  0.5 + 32.0\n"
        "  rounded to nearest: exact\n"
        "  accumulator 0x42020000  32.5"
    )
    assert rest[-1] == "= 0x420E0000  35.5"


def test_promotion():
    x = np.ones(64, td.float8_e4m3fn)
    text = explain(x, x, 2.0**14, device="H100", promote_every=32)
    assert "sums of 32 k, each from 0, added in float32" in text
    assert text.count("sum is added to the accumulator") == 2
    assert "  16384.0 + 32.0\n" in text
    # Without it, c is so large that no bit of the products is kept.
    assert text.endswith("= 0x46808000  16448.0")
    assert explain(x, x, 2.0**14, device="H100").endswith("  16384.0")


def test_float32_operands():
    x = np.array([1, 1 + 2**-10, 1 + 2**-11, 1 + 2**-11 + 2**-23, np.nan], np.float32)
    y = np.zeros(5, td.tf32)
    text = explain(x, y, device="A100")
    assert "  a_row        float32 without the low 13 bits: 2 numbers changed" in text
    assert "b_col" not in text
    text = explain(y, x, device="A100", rounding="ties_to_even")
    assert "  b_col        float32 rounded ties_to_even: 2 numbers changed" in text


def test_zeros():
    zeros = np.zeros(5, np.float16)
    text = explain(zeros, zeros, -0.0, device="V100")
    assert text.count(": all terms are zero\n") == 2
    assert explain(zeros, zeros, None, device="V100") == explain(
        zeros, zeros, device="V100"
    )
    assert "k is 0: no instruction runs" in explain(
        zeros[:0], zeros[:0], -0.0, device="V100"
    )
    tiny = np.array([2.0**-100], td.bfloat16)
    assert "exponent -132, of the floor" in explain(tiny, tiny, device="A100")


def test_nan_of_c_without_k():
    c = np.uint32(0xFFC00123).view(np.float32)
    none = np.zeros(0, np.float16)
    assert explain(none, none, c, device="V100").endswith("= 0xFFC00123  nan")


# -- several devices -----------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "devices"),
    [
        ("float16", ["H100", "A100"]),
        ("float16", ["V100", "T4", "A100", "H100", "B200"]),
        ("float8_e4m3fn", ["H100", "L40S", "B200"]),
    ],
)
@pytest.mark.parametrize("k", [0, 37, 500])
def test_side_by_side(form, devices, k):
    """Each row has the results of matmul up to its k. The first k at which results
    differ is at the top."""
    rng = np.random.default_rng([k, len(devices)])
    a, b = rng.standard_normal((2, k)).astype(dtype(form))
    lines = explain(a, b, 0.5, device=devices).splitlines()
    assert max(map(len, lines)) <= 88
    assert not any(line != line.rstrip() for line in lines)

    def after(k: int) -> list[str]:
        results = (
            td.tensor_core.matmul(a[:k], b[:k], 0.5, device=name) for name in devices
        )
        return [f"0x{int(x.view(np.uint32)):08X}" for x in results]

    found = [re.findall(r"^= (\S+)  (\S+)", x) for x in lines if x.startswith("= ")]
    assert [x[0][0] for x in found] == after(k)
    words = "The accumulators differ at k "
    first = next((x for x in lines if x.startswith(words)), None)
    rows = [re.fullmatch(r" *(\d+)-(\d+) (0x.*)", x) for x in lines]
    ends = [0]
    for row in filter(None, rows):
        begin, last, rest = row.groups()
        assert int(begin) == ends[-1]
        ends.append(int(last) + 1)
        bits = re.findall(r"0x[0-9A-F]{8}", rest)
        want = after(ends[-1])
        if "equal" in rest:
            assert {*want} == {*bits}
        else:
            assert want == bits
        if first and first.endswith(f"-{last}"):
            assert len({*want}) > 1
            assert len({*after(int(begin))}) == 1
    assert ends[-1] == k
    assert (first is None) == all("equal" in row[0] for row in rows if row)


def test_side_by_side_operands_as_each_device_reads_them():
    """The A100 reads float32 as tf32, and the MI300X as float32."""
    x, y = np.float32([1.00012, 2]), np.float32([1, 0.1])
    text = explain(x, y, device=["A100", "MI300X"])
    tf32, float32 = text.split("(2) MI300X")
    assert tf32.count("without the low 13 bits: 1 number changed") == 2
    assert "low 13 bits" not in float32
    assert "0.099976" in float32  # in the steps of the A100
    for device in ("A100", "MI300X"):
        result = td.tensor_core.matmul(x, y, device=device)
        assert f"= 0x{int(result.view(np.uint32)):08X}" in text


def test_side_by_side_rows_and_lengths():
    x = np.float16(np.random.default_rng(0).standard_normal(5_000))
    text = explain(x, x[::-1], device=["H100", "V100", "A100"])
    lines = text.splitlines()
    assert len(lines) < 200
    assert sum(bool(re.match(r" +\d+-\d+ 0x", line)) for line in lines) < 55
    rows = [m for m in td.tensor_core.devices["H100"].models if m.a == m.b]
    rows = [m for m in rows if (m.a, m.accumulator) == ("float8_e4m3fn", "float32")]
    y = x[:100].astype(td.float8_e4m3fn)
    text = explain(y, y, device=rows)
    assert "= 0x" in text
    assert text.splitlines()[-1].endswith("H100 mma.sync")
    text = explain(x, np.zeros_like(x), device=["H100", "A100"])
    assert "equal after all k" in text
    assert sum(line.endswith(" equal") for line in text.splitlines()) == 1
    nan = np.full(40, np.nan, np.float16)
    assert "equal after all k" in explain(nan, nan, device=["V100", "A100"])
    promoted = explain(y, y, device=["H100", "L40S"], promote_every=32)
    assert promoted.count("sum is added to the accumulator") in (0, 2)


def test_side_by_side_errors():
    x = np.ones(4, np.float16)
    with pytest.raises(ValueError, match=r"at least two; got \['V100'\]"):
        explain(x, x, device=["V100"])
    with pytest.raises(ValueError, match=r"at least two; got \[\]"):
        explain(x, x, device=[])
    rows = [
        find_model("V100", None, "float16", "float16", accumulator)
        for accumulator in ("float16", "float32")
    ]
    with pytest.raises(ValueError, match="the same accumulator"):
        explain(x, x, device=rows)
    with pytest.raises(ValueError, match=r"device must be one of .*; got 'V99'"):
        explain(x, x, device=["V100", "V99"])
    with pytest.raises(ValueError, match=r"device must be one of .*; got 7"):
        explain(x, x, device=7)
    with pytest.raises(ValueError, match=r"promote_every must .*; got 24"):
        explain(x, x, device=["T4", "A100"], promote_every=24)


def test_errors():
    x = np.ones(4, np.float16)
    with pytest.raises(ValueError, match=r"got shapes \(1, 4\)"):
        explain(x[None], x, device="V100")
    with pytest.raises(ValueError, match="device must be one of"):
        explain(x, x, device="V99")
    with pytest.raises(ValueError, match="cannot multiply"):
        explain(x, x.astype(td.bfloat16), device="V100")
    with pytest.raises(ValueError, match="vectors of the same length"):
        explain(x, x[1:], device="V100")
    with pytest.raises(TypeError, match="float64"):
        explain(x.astype(float), x, device="V100")
    with pytest.raises(TypeError, match=r"c must .* float32; got float16"):
        explain(x, x, np.float16(1), device="V100")
    with pytest.raises(ValueError, match="c must broadcast"):
        explain(x, x, np.ones(2, np.float32), device="V100")
    with pytest.raises(ValueError, match=r"promote_every must .*; got 3"):
        explain(x, x, device="V100", promote_every=3)
    with pytest.raises(TypeError):
        explain(x, x)


def test_example():
    results = doctest.testmod(explanation)
    assert results.attempted > 0
    assert results.failed == 0
