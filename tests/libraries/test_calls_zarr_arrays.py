"""Calls of Zarr."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("zarr")

LIBRARY = "Zarr"
PREPARATION = "import zarr"
CALLS = [
    Call("zarr.array(a)[:]", "{format}", within=0),
    Call("zarr.save('a.zarr', a); zarr.load('a.zarr')", "{format}", within=0),
    Call(
        "z = zarr.create_array('a.zarr', shape=a.shape, dtype=a.dtype, chunks=(2, 2)); "
        "z.set_basic_selection(..., a); zarr.open('a.zarr')[:]",
        "{format}",
        within=0,
    ),
    Call(
        "z = zarr.create_array('a.zarr', shape=a.shape, dtype=a.dtype, chunks=(2, 2), "
        "shards=(4, 4)); z.set_basic_selection(..., a); z[:]",
        "{format}",
        within=0,
    ),
    Call(
        "zarr.create_array('a.zarr', shape=4, dtype=a.dtype)[:]", "{format}", within=0
    ),
]

test_calls = make_test(CALLS, PREPARATION)
