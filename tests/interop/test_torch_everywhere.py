"""Every public function takes tensors as arrays: the same bits."""

import numpy as np
import pytest

from tests.support.every_function import CALLS, operands, plain
from tests.support.interpreters import python

torch = pytest.importorskip("torch")

import tf32dtype as td  # noqa: E402
from tf32dtype.interop import torch as tt  # noqa: E402

pytestmark = pytest.mark.once

BOTH = [name for name in td.formats if hasattr(torch, name)]


def tensors(arrays):
    return [tt.from_numpy(x) for x in arrays]


def test_formats_that_are_compared():
    assert len(BOTH) == 6


@pytest.mark.parametrize("name", CALLS)
def test_tensors(name):
    for row in CALLS[name]:
        for form in [x for x in row.formats if x in BOTH]:
            own = operands(row, form)
            with np.errstate(all="ignore"):
                want = plain(row.call(*own))
                assert plain(row.call(*tensors(own))) == want
                first, *others = own
                assert plain(row.call(*tensors([first]), *others)) == want
                # Tensors of any strides.
                wide = [np.repeat(x, 2, -1) if x.ndim else x for x in own]
                thin = [x[..., ::2] if x.ndim else x for x in tensors(wide)]
                assert plain(row.call(*thin)) == want


@pytest.mark.parametrize("name", ["td.quantize", "td.matmul", "td.blocks.quantize"])
def test_tensors_of_float32(name):
    for row in CALLS[name]:
        own = [x.astype(np.float32) for x in operands(row, "bfloat16")]
        with np.errstate(all="ignore"):
            want = plain(row.call(*own))
            assert plain(row.call(*map(torch.from_numpy, own))) == want


def test_results_are_arrays():
    t = torch.ones(2, 2, dtype=torch.bfloat16)
    for result in (td.matmul(t, t), td.quantize(t, "fp4"), td.bits(t)):
        assert type(result) is np.ndarray
    assert tt.from_numpy(td.matmul(t, t)).tolist() == [[2, 2], [2, 2]]


def test_before_and_without_torch():
    code = """
import sys, tf32dtype as td
assert td.quantize([1.5], "fp4").tolist() == [1.5]
assert "torch" not in sys.modules
import types
sys.modules["torch"] = types.ModuleType("torch")  # as while it is being imported
assert td.quantize([1.5], "fp4").tolist() == [1.5]
sys.modules["torch"] = None
assert td.quantize([1.5], "fp4").tolist() == [1.5]
del sys.modules["torch"]
import torch
assert td.bits(torch.ones(1, dtype=torch.bfloat16)).tolist() == [0x3F80]
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
