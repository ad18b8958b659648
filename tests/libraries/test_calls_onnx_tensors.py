"""ONNX's tensors of arrays, and back."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("onnx")

LIBRARY = "ONNX"
PREPARATION = "import onnx; from onnx import numpy_helper"
CALLS = [
    Call(
        "numpy_helper.to_array(numpy_helper.from_array(a))",
        "ValueError",
        instead="td.interop.onnx.to_array(td.interop.onnx.from_array(a))",
        within=0,
    ),
]

test_calls = make_test(CALLS, PREPARATION)
