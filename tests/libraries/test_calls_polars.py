"""Calls of polars, which has only its own types of numbers."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("polars")

LIBRARY = "polars"
PREPARATION = "import polars as pl"
FLOAT = "pl.Series(v.astype(np.float32))"
CALLS = [
    Call(
        "pl.Series(v).sum()",
        "InvalidOperationError",
        instead=FLOAT + ".sum()",
        instead_gives="float",
    ),
    Call("pl.Series(v.astype(np.float32)).to_numpy().astype(v.dtype)", "{format}"),
]

test_calls = make_test(CALLS, PREPARATION)
