"""Calls of TensorStore, which knows ml_dtypes' types."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("tensorstore")

LIBRARY = "TensorStore"
PREPARATION = "import tensorstore as ts"
CALLS = [
    Call(
        "ts.array(a).read().result()",
        "ValueError",
        instead="td.from_ml_dtypes(ts.array(td.as_ml_dtypes(a)).read().result())",
        within=0,
    ),
]

test_calls = make_test(CALLS, PREPARATION)
