"""Calls of joblib, and of Python's modules for exchange between processes."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("joblib")

LIBRARY = "joblib, pickle, shared memory"
PREPARATION = """
import copy, ctypes, io, joblib, mmap, pickle
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
resource_tracker.ensure_running()  # before it could start in the call's folder
def shared(x):
    memory = SharedMemory(create=True, size=x.nbytes)
    try:
        there = np.ndarray(x.shape, x.dtype, buffer=memory.buf)
        there[...] = x
        back = there.copy()
        del there
        return back
    finally:
        memory.close()
        memory.unlink()
"""
CALLS = [
    Call("pickle.loads(pickle.dumps(a))", "{format}", within=0),
    Call(
        "pickle.loads(pickle.dumps(a, 5, buffer_callback=(b := []).append), buffers=b)",
        "{format}",
        within=0,
    ),
    Call("copy.deepcopy(a)", "{format}", within=0),
    Call("joblib.dump(a, 'a.joblib'); joblib.load('a.joblib')", "{format}", within=0),
    Call("joblib.dump(a, 'a.z', compress=3); joblib.load('a.z')", "{format}", within=0),
    Call(
        "joblib.dump(a, 'a.joblib'); joblib.load('a.joblib', mmap_mode='r')",
        "{format}",
        within=0,
    ),
    Call("joblib.hash(a)", "str", within=None),
    Call("joblib.Parallel(1)(joblib.delayed(np.max)(r) for r in a)", "list", within=0),
    Call(
        "joblib.Memory('cache', verbose=0).cache(np.negative)(a)", "{format}", within=0
    ),
    Call("shared(a)", "{format}", within=0),
]

test_calls = make_test(CALLS, PREPARATION)
