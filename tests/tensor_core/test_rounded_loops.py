"""Fast loops of units that round otherwise than aligned sums, against the integers."""

from __future__ import annotations

import ctypes
import json
from platform import machine
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run
from tests.tensor_core.rounded_cases import (
    EDGES,
    UNLIKE,
    Case,
    digests,
    dtype_of,
    far_apart,
    multiply,
    operand,
    product_at_edge,
    products,
)
from tests.tensor_core.test_matmul import one_by_one

each_model = pytest.mark.parametrize("model", UNLIKE, ids=lambda m: m.name)


def assert_product(model: Any, case: Case) -> int:
    got, want = multiply(model, case), one_by_one(model, *case[1:])
    unlike = got.view(np.uint32) != want.view(np.uint32)
    assert not unlike.any(), (case.name, np.argwhere(unlike)[:3],
                              got[unlike][:3], want[unlike][:3])  # fmt: skip
    return got.size


@each_model
def test_fast_form_equals_slow_one(model, compared):
    for case in products(model):
        compared(assert_product(model, case))


@each_model
def test_sums_that_begin_with_zero(model, compared):
    """Sums go over several k-steps, some of which have products below 2^-126."""
    rng = np.random.default_rng(21)
    row, column = np.zeros((6, 540)), np.zeros((540, 16))
    row[:, [0, 2, 300]] = 2.0**-53, 2.0**-64, 2.0**-53
    column[[0, 2, 300]] = [[-(2.0**-53)], [2.0**-64], [2.0**-53]]
    with np.errstate(all="ignore"):
        cases = [(row.astype(dtype_of(model.a)), column.astype(dtype_of(model.b)))]
    for order in (["tiny", "normal"], ["normal", "tiny"], ["sparse", "least"]):
        a = [operand(rng, kind, (8, 270), model.a) for kind in order]
        b = [operand(rng, kind, (20, 270), model.b) for kind in order]
        cases.append((np.concatenate(a, axis=1), np.concatenate(b, axis=1).T))
    for a, b in cases:
        got = td.tensor_core.matmul(
            a, b, device=model.device, instruction=model.instruction,
            accumulator=model.accumulator,
        )  # fmt: skip
        want = one_by_one(model, a, b, np.zeros(got.shape, np.float32))
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
        compared(got.size)


@pytest.mark.parametrize("special", [False, True], ids=["", "beside NaN"])
def test_edges_of_loops(special):
    for name, (*_, want) in EDGES.items():
        got = product_at_edge(name, special=special)
        np.testing.assert_array_equal(
            got[:1] if special else got, np.float32(want), err_msg=name
        )
        assert np.isnan(got[1]).all() or not special, name


@each_model
def test_products_far_apart_that_accumulators_cancel(model, compared):
    for case in far_apart(model):
        compared(assert_product(model, case))


@pytest.mark.skipif(machine() != "x86_64", reason="with the constants of x86's fenv.h")
def test_the_callers_rounding_mode_remains(compared):
    mathematics = ctypes.CDLL(None)
    x = operand(np.random.default_rng(19), "wide", (40, 70), "bfloat16")
    for device in ("Arm BF16", "MI100"):
        want = td.tensor_core.matmul(x, x.T, device=device)
        for mode in (0x400, 0x800, 0xC00):  # downward, upward, toward zero
            mathematics.fesetround(mode)
            try:
                got = td.tensor_core.matmul(x, x.T, device=device)
                found = mathematics.fegetround()
            finally:
                mathematics.fesetround(0)
            assert found == mode
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
            compared(got.size)


PRINT_DIGESTS = """
import json, tf32dtype as td
from tests.tensor_core.rounded_cases import digests
print(json.dumps([td.isa(), dict(digests())]))
"""


@pytest.fixture(scope="module")
def digests_here() -> dict[str, str]:
    """Return digests of results that the tests above compare with the integers."""
    return dict(digests())


@pytest.mark.parametrize(
    "isa", [isa for isa in td._core.available_isas() if isa != td.isa()]
)
def test_fast_form_on_every_instruction_set(isa, digests_here, compared):
    there, found = json.loads(run("-c", PRINT_DIGESTS, TF32DTYPE_ISA=isa))
    assert there == isa
    assert [name for name in found if found[name] != digests_here[name]] == []
    assert found.keys() == digests_here.keys()
    compared(len(found))
