"""Calls of xarray."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("xarray")

LIBRARY = "xarray"
PREPARATION = """
import xarray as xr
x = xr.DataArray(a, dims=("row", "column"), coords={"row": [0, 0, 1, 1]})
"""
CALLS = [
    Call("x", "{format}"),
    Call("x + 1", "{format}"),
    Call("np.exp(x * 0.25)", "{format}"),
    Call("x.sum()", "{format}"),
    Call("x.mean('row')", "{format}"),
    Call("x.std()", "{format}"),
    Call("x.max('column')", "{format}"),
    Call("x.argmax('column')", "int64", within=0),
    Call("x.where(x > 0).mean()", "{format}"),
    Call("x.groupby('row').mean()", "{format}"),
    Call("x.rolling(column=2).mean()", "{format}", steps=True),
    Call("x.rolling(column=2).sum()", "{format}"),
    Call("x.shift(column=1)", "{format}"),
    Call("x.fillna(0)", "{format}"),
    Call("x.cumsum('row')", "{format}"),
    Call("x.median('row')", "{format}"),
    Call("x.quantile(0.5)", "float64"),
    Call("x.sortby('row')", "{format}"),
    Call("x.dot(x.T)", "{format}", within=16.0),
    Call("xr.concat([x, x], 'row')", "{format}"),
    Call("x.interp(column=[0.5, 1.5])", "float64", steps=True),
    Call("x.to_dataset(name='x').x", "{format}"),
    Call("x.to_dataframe('x')['x']", "{format}"),
    Call("x.astype(np.float32)", "float32"),
    Call(
        "x.to_dataset(name='x').to_zarr('x.zarr'); xr.open_zarr('x.zarr').x.load()",
        "{format}",
    ),
]

test_calls = make_test(CALLS, PREPARATION)
