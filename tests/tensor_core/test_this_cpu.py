"""The dot products of CPUs against models, with the instruction or in pseudocode.

The instruction runs if this CPU has it. The vendor's pseudocode runs in fused
multiply-adds of this CPU. NaN payloads are not compared.

Intel's Software Developer's Manual is the source for AVX512_BF16. VDPBF16PS is "FP32
FMA with daz in, ftz out and RNE rounding", the odd element first, MXCSR not consulted.
Bochs has the same order and flushes the same. No document was found that says more, and
none of AMD's that differs.

tools/bochs runs these tests on a processor that Bochs emulates, which has AVX512-BF16,
AMX-BF16 and AMX-FP16.
"""

from __future__ import annotations

import platform
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest

from tests.tensor_core.cases import Array, Cases
from tests.tensor_core.cpu_cases import (
    INF,
    LEAST,
    NAN,
    SIGN,
    adversarial,
    all_rows,
    canonical,
    many_rows,
)
from tests.tensor_core.cpu_instructions import (
    TDPBF16PS,
    TDPFP16PS,
    VDPBF16PS,
    Compute,
    instruction,
    pseudocode,
)
from tf32dtype import _core

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]

SOME, MANY = 10_000, 10_000_000
EDGES = 2_000  # of each length, besides `SOME` rows

TININESS = "2^-126 against zero: tininess before or after the rounding"
#: Differences that are not a fault of a CPU's instruction, with the reason.
TOLERATED = {
    TININESS: "manuals say that denormal results are flushed; not whether what is below"
    " 2^-126 and rounds to it is one",
}

#: Other behaviors that an instruction could have.
OTHERWISE = {
    "the even element comes first": {"odd_first": False},
    "subnormal operands are kept": {"flushed": "kept"},
    "subnormal operands become +0": {"flushed": "+0"},
    "subnormal results are kept": {"flushes_results": False},
    "both products and c are rounded once": {"depth": 2, "odd_first": False},
    "each product and sum is rounded": {
        "depth": 2, "odd_first": False, "arithmetic": "stepwise",
    },
}  # fmt: skip


def modeled(model: Any, cases: Cases) -> Array:
    return canonical(_core.mma_accumulate(model, *cases))


def classes(model: Any, cases: Cases, got: Array, want: Array) -> dict[str, int]:
    """Count the rows that differ, by class; a row may be in several classes."""
    magnitudes = np.sort([got & ~SIGN, want & ~SIGN], axis=0)
    found = {
        "the sign of a zero": magnitudes[1] == 0,
        TININESS: (magnitudes[0] == 0) & (magnitudes[1] == LEAST),
        "a subnormal number against zero": (magnitudes[0] == 0)
        & (magnitudes[1] > 0) & (magnitudes[1] < LEAST),
        "NaN against a number": (got == NAN) != (want == NAN),
        "Inf against a finite number": (magnitudes[1] == INF) & (magnitudes[0] < INF),
        "one unit in the last place": np.diff(magnitudes, axis=0)[0] == 1,
    }  # fmt: skip
    if model.odd_first:
        for name, changes in OTHERWISE.items():
            found[name] = modeled(replace(model, **changes), cases) == got
    known = np.any([*found.values()], axis=0)
    counts = {name: int(there.sum()) for name, there in found.items()}
    return {name: n for name, n in counts.items() if n} | (
        {"none of these": int((~known).sum())} if not known.all() else {}
    )


def assert_model(
    model: Any, compute: Compute, groups: Iterable[Cases], tolerated: dict[str, str]
) -> int:
    """Compare the model with `compute`, and return the number of rows."""
    count, tolerable, differ = 0, 0, 0
    found: Counter[str] = Counter()
    shown: list[str] = []
    for cases in groups:
        got, want = canonical(compute(cases)), modeled(model, cases)
        wrong = got != want
        count += len(got)
        if not wrong.any():
            continue
        rows, got, want = cases.take(wrong), got[wrong], want[wrong]
        here = classes(model, rows, got, want)
        if any(here.get(name) == len(got) for name in tolerated):
            tolerable += len(got)
            continue
        differ += len(got)
        found.update(here)
        shown += [
            f"  c = {rows.c[i]:#010x}, a = {[hex(x) for x in rows.a[i].tolist()]},"
            f" b = {[hex(x) for x in rows.b[i].tolist()]}:"
            f" computed {got[i]:#010x}, the model has {want[i]:#010x}"
            for i in range(min(2, len(got), 8 - len(shown)))
        ]
    lines = [f"{model.name}: {differ} of {count} rows differ. Of these classes are:"]
    lines += [f"  {name}: {n}" for name, n in found.most_common()]
    assert not differ, "\n".join([*lines, *shown])
    if tolerable:
        pytest.xfail(f"{tolerable} of {count} rows: {', '.join(tolerated)}")
    return count


def of_models(*models: Any) -> Any:
    return pytest.mark.parametrize("model", models, ids=lambda m: m.instruction)


@of_models(VDPBF16PS, TDPBF16PS, TDPFP16PS)
def test_the_model_is_the_instruction(model, compared):
    compute = instruction(model)
    compared(assert_model(model, compute, all_rows(model, SOME, EDGES), TOLERATED))


@pytest.mark.exhaustive
@of_models(VDPBF16PS, TDPBF16PS, TDPFP16PS)
def test_the_model_is_the_instruction_in_many_rows(model, compared):
    compute = instruction(model)
    rows = chain(all_rows(model, MANY // 100), many_rows(model, MANY, 5))
    compared(assert_model(model, compute, rows, TOLERATED))


@pytest.mark.sampled(2)
@of_models(VDPBF16PS, TDPBF16PS)
def test_the_model_is_the_pseudocode(model, compared):
    compared(assert_model(model, pseudocode(model), all_rows(model, SOME, EDGES), {}))


@pytest.mark.exhaustive
@of_models(VDPBF16PS, TDPBF16PS)
def test_the_model_is_the_pseudocode_in_many_rows(model, compared):
    rows = chain(all_rows(model, MANY // 100), adversarial(MANY // 10, 5))
    compared(assert_model(model, pseudocode(model), rows, {}))


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_differs_is_named(name):
    """The rows distinguish the behaviors that a CPU could have, and the message names
    one."""
    other = replace(VDPBF16PS, **OTHERWISE[name])
    groups = list(adversarial(SOME // 4, 6))
    with pytest.raises(AssertionError) as error:
        assert_model(VDPBF16PS, lambda cases: modeled(other, cases), groups, {})
    differ = str(error.value).split(" of ")[0].split()[-1]
    assert f"  {name}: {differ}\n" in str(error.value)


def test_what_is_tolerated_is_no_pass():
    """A result that is flushed by its value before the rounding gives an xfail, not a
    pass."""
    cases = adversarial(SOME // 4, 6)

    def compute(cases: Cases) -> Array:
        bits = modeled(VDPBF16PS, cases)
        exact = modeled(replace(VDPBF16PS, flushes_results=False), cases)
        rounds_up = (bits & ~SIGN == LEAST) & (cases.c & ~SIGN != LEAST)
        return np.where(rounds_up & (exact == bits), bits & SIGN, bits)

    with pytest.raises(pytest.xfail.Exception, match="tininess"):
        assert_model(VDPBF16PS, compute, cases, TOLERATED)
