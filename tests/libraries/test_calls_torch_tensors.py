"""Calls of PyTorch."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("torch")

LIBRARY = "PyTorch"
PREPARATION = """
import torch
from tf32dtype.interop import torch as tt
def shown(x):
    return tt.to_numpy(x)
"""
CALLS = [
    Call(
        "shown(torch.from_numpy(a))",
        "TypeError",
        instead="shown(tt.from_numpy(a))",
        within=0,
    ),
    Call(
        "shown(torch.tensor(a))",
        "TypeError",
        instead="shown(tt.from_numpy(a, copy=True))",
        within=0,
    ),
    Call("shown(torch.from_dlpack(td.to_dlpack(a)))", "{format}", within=0),
    Call("td.from_dlpack(tt.from_numpy(a))", "{format}", within=0),
    Call("td.quantize(tt.from_numpy(a), 'float32')", "float32", within=0),
    Call("td.matmul(tt.from_numpy(a), a)", "{format}"),
]

test_calls = make_test(CALLS, PREPARATION)
