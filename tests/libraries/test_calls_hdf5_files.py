"""Calls of h5py and h5netcdf."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("h5py")

LIBRARY = "h5py"
PREPARATION = """
import h5py
f = h5py.File.in_memory()
"""
CALLS = [
    Call(
        "f.create_dataset('a', data=a)[...]",
        "{void}",
        instead="td.hdf5.read(td.hdf5.write(f, 'a', a))",
        within=0,
    ),
    Call(
        "f.create_dataset('a', data=a, chunks=(2, 2), compression='gzip')[...]",
        "{void}",
        instead="td.hdf5.read("
        "td.hdf5.write(f, 'a', a, chunks=(2, 2), compression='gzip'))",
        within=0,
    ),
    Call("td.hdf5.read(td.hdf5.write(f, 'a', a), np.s_[1:3])", "{format}", within=0),
]

test_calls = make_test(CALLS, PREPARATION)
