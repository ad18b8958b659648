"""The models against recorded results of CPUs: tests/data/xeon_6, on every machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tensor_core.arrays import assert_results, blocks, diagonals, truth
from tests.tensor_core.cpu_cases import canonical
from tests.tensor_core.cpu_recordings import MODELS, ROWS, TDPBF16PS, read


def recorded(model, k):
    cases, found = read(model, k)
    return cases, canonical(found)


each = pytest.mark.parametrize("k", ROWS)
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.instruction)


@pytest.mark.sampled(3)
@each_model
@each
def test_reference(model, k, compared):
    cases, found = recorded(model, k)
    assert_results(model.name, cases, canonical(truth(model, cases)), found)
    compared(len(found), model.name)


@each_model
@each
def test_blocks_and_matmul(model, k, compared):
    cases, found = recorded(model, k)
    assert_results(model.name, cases, canonical(blocks(model, cases)), found)
    for size in (1, 50):
        got = canonical(diagonals(model, cases, size))
        assert_results(model.name, cases, got, found)
    compared(len(found), model.name)


def test_what_is_recorded_is_called_so():
    assert {model.verified for model in MODELS} == {"recorded"}


@pytest.mark.parametrize(
    "other",
    [{"flushed": "kept"}, {"flushes_results": False}, {"lanes": 0}],
    ids=lambda x: next(iter(x)),
)
def test_another_model_would_show(other):
    cases, found = recorded(TDPBF16PS, 8)
    assert (canonical(blocks(replace(TDPBF16PS, **other), cases)) != found).any()
