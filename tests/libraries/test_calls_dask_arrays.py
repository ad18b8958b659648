"""Calls of dask."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("dask.array")

LIBRARY = "dask"
PREPARATION = """
import dask, dask.array as da, dask.base
x = da.from_array(a, chunks=2)
"""
CALLS = [
    Call("x.compute()", "{format}", within=0),
    Call("(x + 1).compute()", "{format}"),
    Call("np.exp(x * 0.25).compute()", "{format}"),
    Call("x.sum().compute()", "{format}"),
    Call("x.mean(0).compute()", "{format}"),
    Call("x.std().compute()", "{format}"),
    Call("x.max(0).compute()", "{format}", within=0),
    Call("x.argmax(0).compute()", "int64", within=0),
    Call("x.cumsum(0).compute()", "{format}"),
    Call("(x @ x).compute()", "{format}", within=16.0),
    Call("da.tensordot(x, x, 1).compute()", "{format}", within=16.0),
    Call("x[x > 0].compute()", "{format}", within=0),
    Call("x.reshape(-1).topk(2).compute()", "{format}", within=0),
    Call("da.percentile(x.reshape(-1), 50).compute()", "float64"),
    Call("x.map_blocks(np.sort).compute()", "{format}", within=0),
    Call("x.rechunk(4).compute()", "{format}", within=0),
    Call("da.histogram(x, bins=4, range=(-4, 8))[0].compute()", "int64", within=0),
    Call("dask.base.tokenize(a) == dask.base.tokenize(a.copy())", "bool", within=None),
    Call("x.to_zarr('x.zarr'); da.from_zarr('x.zarr').compute()", "{format}", within=0),
]

test_calls = make_test(CALLS, PREPARATION)
