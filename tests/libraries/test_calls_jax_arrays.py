"""Calls of JAX, whose arrays are of ml_dtypes' dtypes."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("jax")

LIBRARY = "JAX"
PREPARATION = """
import jax, jax.numpy as jnp
def into(x):
    return x if x.dtype == np.float64 else jnp.from_dlpack(td.to_dlpack(x))
"""
CALLS = [
    Call(
        "jnp.asarray(a)",
        "TypeError",
        instead="jnp.from_dlpack(td.to_dlpack(a))",
        within=0,
    ),
    Call("td.from_dlpack(into(a))", "{format}", within=0),
    Call("np.asarray(into(a)).view(a.dtype)", "{format}", within=0),
    Call("td.quantize(into(a), 'float32')", "float32", within=0),
    Call("td.matmul(into(a), a)", "{format}"),
]

test_calls = make_test(CALLS, PREPARATION)
