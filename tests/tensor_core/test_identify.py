"""identify: the right model stays, and those of other parameters go."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.tensor_core.arrays import Array, accumulator, blocks, operand
from tests.tensor_core.cases import Cases, parameters, random_cases
from tests.tensor_core.test_recordings import each_recording
from tf32dtype.tensor_core import identification
from tf32dtype.tensor_core.device import MODELS
from tf32dtype.tensor_core.models import ALIGNED

pytestmark = pytest.mark.once

identify = td.tensor_core.identify

LENGTH = 67  # two instructions of the deepest, and a rest


def found(model: Any, cases: Cases, results: Array) -> list[Any]:
    """What `identify` finds for rows of the model's formats."""
    return identify(
        operand(model.a, cases.a)[:, None, :],
        operand(model.b, cases.b)[:, :, None],
        accumulator(model.accumulator, cases.c)[:, None, None],
        accumulator(model.accumulator, results)[:, None, None],
    )


def candidates(model: Any) -> list[Any]:
    """All models of its formats and accumulators."""
    formats = model.a, model.b, model.accumulator
    return [m for m in ALIGNED if (m.a, m.b, m.accumulator) == formats]


def alike(model: Any) -> list[Any]:
    """Those that compute the same: an instruction's depth changes nothing."""

    def others(m: Any) -> tuple[Any, ...]:
        return m.depth, m.fraction, m.kept, m.emulated, m.floor

    return [m for m in candidates(model) if others(m) == others(model)]


# -- recordings ----------------------------------------------------------------


@each_recording
def test_recordings(recording, compared):
    """Of a sample, those that give its rows; the right ones are among them always.

    Who is wrong in a tenth of all rows is found out by each sample.
    """
    cases, recorded = recording.rows()
    model = recording.models[0]
    wrong = {m: blocks(m, cases) != recorded for m in candidates(model)}
    right = [m for m in wrong if not wrong[m].any()]
    assert all(m in right for m in recording.models)
    assert found(model, cases, recorded) == right
    rng = np.random.default_rng([7, len(str(recording))])
    for _ in range(5):
        some = rng.choice(len(recorded), 64, replace=False)
        named = found(model, cases.take(some), recorded[some])
        assert named == [m for m in wrong if not wrong[m][some].any()]
        assert all(m in named for m in right)
        assert not any(wrong[m].mean() > 0.1 for m in named)
        compared(len(some))


@each_recording
def test_a_bit_of_a_recording(recording):
    """One bit in one row, and nothing computes that."""
    cases, recorded = recording.rows()
    other = recorded.copy()
    other[500] ^= 1 << (13 if recording.accumulator == "float16" else 0)
    assert found(recording.models[0], cases, other) == []


# -- what models compute -------------------------------------------------------


@pytest.mark.parametrize("model", ALIGNED, ids=lambda m: m.name)
def test_those_of_other_parameters_are_excluded(model, compared):
    cases = random_cases(model, 300, LENGTH, 21)
    results = blocks(model, cases)
    assert found(model, cases, results) == alike(model)
    compared(len(results))


def test_alike_is_little():
    """What the test above takes for the same differs in no parameter of a block."""
    for model in ALIGNED:
        for other in alike(model):
            same = parameters(model), parameters(other)
            differ = [x for x in zip(*same, strict=True) if x[0] != x[1]]
            assert differ in ([], [(model.instruction_depth, other.instruction_depth)])


def test_matrices():
    rng = np.random.default_rng(22)
    a = rng.standard_normal((3, 20, 70)).astype(td.bfloat16)
    b = rng.standard_normal((70, 30)).astype(td.bfloat16)
    c = rng.standard_normal(30).astype(np.float32)
    d = td.tensor_core.matmul(a, b, c, device="A100")
    assert [m.device for m in identify(a, b, c, d)] == ["A100", "L40S"]
    assert identify(a, b, None, d) == []
    assert identify(a, b, c, d.astype(">f4")) == identify(a, b, c, d)
    assert identify(a[0, 0], b[:, 0], c[0], d[0, 0, 0])
    # Read raw, float32 is tf32.
    wide = rng.standard_normal((20, 70)).astype(np.float32)
    d = td.tensor_core.matmul(wide, b.astype(np.float32), device="H100")
    names = [m.name for m in identify(wide, b.astype(np.float32), None, d)]
    assert names[0] == "H100 wgmma tf32 -> float32"
    assert names == [
        m.name for m in identify(wide.view(td.tf32), b.astype(td.tf32), 0, d)
    ]


def test_nan_and_zero():
    """A NaN is any NaN; a zero has its sign."""
    x = np.array([np.inf, 1], np.float16)
    y = np.array([0, 1], np.float16)
    everything = [m for m in MODELS if m.name.endswith(" float16 -> float32")]
    assert identify(x, y, None, np.float32(np.nan)) == everything
    assert identify(x, y, None, np.float32(np.inf)) == []
    other = np.uint32(0xFFA00000).view(np.float32)
    assert identify(x, y, None, other) == everything
    assert identify(y, y, -1, np.float32(0)) == everything
    assert identify(y, y, -1, np.float32(-0.0)) == []
    assert identify(x, y, None, np.float16(np.nan))[0].accumulator == "float16"


def test_errors():
    x = np.ones((2, 2), np.float16)
    with pytest.raises(TypeError, match="d is float64"):
        identify(x, x, None, np.ones((2, 2)))
    with pytest.raises(TypeError, match="d is int64"):
        identify(x, x, None, 1)
    with pytest.raises(TypeError, match="b is int64"):
        identify(x, x.astype(np.int64), None, x)
    with pytest.raises(TypeError, match="c is float32, the accumulators are float16"):
        identify(x, x, np.float32(1), x)
    with pytest.raises(ValueError, match=r"d has shape \(2,\), the product \(2, 2\)"):
        identify(x, x, None, x[0])
    with pytest.raises(ValueError, match="do not fit"):
        identify(x, x[:1], None, x)
    with pytest.raises(ValueError, match="no model multiplies bfloat16 x float16"):
        identify(x.astype(td.bfloat16), x, None, x)
    with pytest.raises(ValueError, match="bfloat16 x bfloat16 -> float16"):
        identify(x.astype(td.bfloat16), x.astype(td.bfloat16), None, x)


def test_example():
    results = doctest.testmod(identification)
    assert results.attempted > 0
    assert results.failed == 0
