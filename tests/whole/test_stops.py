"""Long calls stop at Ctrl-C; workspaces of ended threads are freed."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run
from tf32dtype import _core

needs_signals = pytest.mark.skipif(
    sys.platform == "win32" or not hasattr(signal, "setitimer"), reason="no signals"
)

each_count_of_threads = pytest.mark.parametrize(
    "threads", [pytest.param(1, marks=pytest.mark.exhaustive), 2]
)


def run_code(code: str, **environment: str) -> str:
    return run("-c", textwrap.dedent(code), **environment)


# Calls of minutes, most of which use a single number again and again.
CALLS = """
import signal
import numpy as np, tf32dtype as td
from tf32dtype import _core, blocks, tensor_core

def long(dtype, m=512, k=10**9):
    return np.broadcast_to(np.ones((m, 1), dtype), (m, k))

def result(dtype=np.float32, m=512):
    return np.full((m, m), np.nan, dtype)

def in_precision(name, call, **more):
    with td.matmul_precision(name, **more):
        call()

bf16, f32, e4m3 = long(td.bfloat16), long(np.float32), long(td.float8_e4m3fn)
f64 = long(np.float64)
row = long(td.bfloat16, 1)
stack = np.broadcast_to(np.ones((1, 1, 32, 32), td.bfloat16), (1000, 10000, 32, 32))
# Those of blocks hold their numbers, since they do not broadcast.
zeros = np.zeros((4096, 8192), np.float32)
coded = blocks.quantize(zeros, "tcfp16", axis=1)
scaled = blocks.quantize(zeros[:2048], "mxfp8_e4m3", axis=1)

# E4M3, residuals of E4M3, scales of E8M0 and blocks of 32 by the rule "mse".
numbers = np.resize(np.sin(np.arange(999, dtype=np.float32)), (4096, 16384))
scales = np.empty(numbers.size // 16, np.uint8)
lower = np.empty(numbers.size, np.uint8)

def quantize(out):
    codes = out(m=4096).reshape(-1).view(np.uint8)
    _core.block_quantize(numbers, (0, 0, 0, 32), 4, 1.0, 0, False, None,
                         (codes, scales, lower))

calls = {
    "matmul": lambda out: np.matmul(bf16, bf16.T, out=out(td.bfloat16)),
    "fp8": lambda out: np.matmul(e4m3, e4m3.T, out=out(td.float8_e4m3fn)),
    "tf32": lambda out: np.matmul(long(td.tf32), long(td.tf32).T, out=out(td.tf32)),
    "row": lambda out: row @ bf16.T,
    "vector": lambda out: np.vecdot(long(td.bfloat16, 1, 10**11),
                                    long(td.bfloat16, 1, 10**11)),
    "stack": lambda out: stack @ stack[:1, :1],
    "dot": lambda out: np.dot(bf16[:, :10**6], bf16[:, :10**6].T),
    "einsum": lambda out: td.einsum("ij,kj->ik", bf16, bf16),
    "bf16x9": lambda out: td.matmul(f32, f32.T, precision="bf16x9", out=out()),
    "tf32x3": lambda out: in_precision(
        "tf32x3", lambda: np.matmul(f32, f32.T, out=out())),
    "scales": lambda out: in_precision(
        "fp8_e4m3", lambda: np.matmul(f32, f32.T, out=out())),
    "complex": lambda out: in_precision(
        "tf32", lambda: long(np.complex64) @ long(np.complex64).T, complex64=True),
    "device": lambda out: tensor_core.matmul(
        bf16[:, :10**5], bf16[:, :10**5].T, device="H100"),
    "promoted": lambda out: tensor_core.matmul(
        e4m3[:, :10**5], e4m3[:, :10**5].T, device="H100", promote_every=128),
    "device float64": lambda out: tensor_core.matmul(
        f64[:, :10**7], f64[:, :10**7].T, device="H100"),
    "scaled": lambda out: tensor_core.matmul(scaled, scaled.T, device="B200"),
    "blocks": lambda out: blocks.matmul(coded, coded.T, out=out(m=4096)),
    "quantize": quantize,
}
small = np.arange(4096.0).reshape(64, 64).astype(td.bfloat16)
want = (small @ small).tobytes()
signal.signal(signal.SIGALRM, signal.default_int_handler)  # what Ctrl-C does
for name, call in calls.items():
    written = []
    def out(*args, **more):
        written.append(result(*args, **more))
        return written[-1]
    # Not from a thread: NumPy holds the lock where a result is small.
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        call(out)
        ended = "to its end"
    except KeyboardInterrupt:
        ended = "stopped"
    left = all(np.isnan(x.astype(np.float32)).any() for x in written)
    assert (small @ small).tobytes() == want
    print(name, ended, left)
"""


@needs_signals
@each_count_of_threads
def test_long_calls_stop(threads: int) -> None:
    """Stop after a part of each result."""
    lines = run_code(CALLS, OMP_NUM_THREADS=str(threads)).splitlines()
    assert len(lines) == 18
    assert [line for line in lines if not line.endswith(" stopped True")] == []


BLAS = """
import os, signal, subprocess, time
import numpy as np, tf32dtype as td
import scipy.linalg.blas as blas

n = 2500
a = np.full((n, n), 0.5, np.float32, order="F")
special = np.where(np.random.default_rng(1).random((n, n)) < 0.001, np.inf, a)
special = np.asfortranarray(special)
c = np.full((n, n), np.nan, np.float32)
calls = [lambda: a.dot(a, out=c), lambda: blas.strmm(1, a, special, overwrite_b=0)]

def interrupted(call):
    # Not a thread: SciPy does not give the lock away.
    subprocess.Popen(["sh", "-c", f"sleep 0.15; kill -INT {os.getpid()}"])
    try:
        call()
        time.sleep(1)
    except KeyboardInterrupt:
        return True
    return False

for call in calls:
    for _ in range(2):
        with td.matmul_precision("bf16x9", blas=True):
            print(interrupted(call))
print((c == 0).any())  # as NumPy makes it before it calls BLAS

# The handler that was there is there again, and one of the program's own is obeyed.
print(interrupted(lambda: None))
came = []
signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
with td.matmul_precision("bf16x9", blas=True):
    print(interrupted(lambda: a[:500].dot(a, out=c[:500])))
print(len(came), (c[:500] == 0).any())
"""


@pytest.mark.exhaustive
@needs_signals
@pytest.mark.skipif(sys.platform != "linux", reason="calls are caught on Linux")
def test_products_of_blas_stop() -> None:
    pytest.importorskip("scipy")
    found = run_code(BLAS).split()
    assert found == ["True"] * 6 + ["False", "1", "False"]


@needs_signals
@each_count_of_threads
def test_handlers_run_within_a_product(threads: int) -> None:
    """Run handlers that multiply but do not raise, without a change of the result."""
    out = run_code(
        """
        import signal, numpy as np, tf32dtype as td
        x = np.random.default_rng(1).normal(size=(256, 40000)).astype(td.bfloat16)
        def product():
            return td.tensor_core.matmul(x, x.T, device="H100").tobytes()
        small = x[:, :300] @ x[:, :300].T
        want = product()
        ran = []
        def handler(number, frame):
            assert (x[:, :300] @ x[:, :300].T).tobytes() == small.tobytes()
            ran.append(done)
        signal.signal(signal.SIGALRM, handler)
        for _ in range(20):
            done = False
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            found = product()
            done = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert found == want
            if False in ran:
                break
        print(False in ran)
        """,
        OMP_NUM_THREADS=str(threads),
    )
    assert out == "True"


@pytest.mark.exhaustive
@needs_signals
def test_other_threads_are_left_alone() -> None:
    """Continue the products of other threads while the main thread is interrupted."""
    out = run_code(
        """
        import os, signal, threading, numpy as np, tf32dtype as td
        x = np.random.default_rng(1).normal(size=(256, 40000)).astype(td.bfloat16)
        def product():
            return td.tensor_core.matmul(x, x.T, device="H100").tobytes()
        want, found = product(), []
        thread = threading.Thread(target=lambda: found.append(product()))
        thread.start()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may ignore it
        try:
            os.kill(os.getpid(), signal.SIGINT)
            thread.join()
        except KeyboardInterrupt:
            print("interrupted")
        thread.join()
        print(found == [want])
        """
    )
    assert out == "interrupted\nTrue"


@needs_signals
def test_a_forked_child_stops_too() -> None:
    """Stop in a forked child, whose main thread is the one that forked."""
    out = run_code(
        """
        import os, signal, threading, numpy as np, tf32dtype as td
        x = np.broadcast_to(np.ones((64, 1), td.bfloat16), (64, 10**10))
        x[:, :256] @ x[:, :256].T
        def fork():
            if os.fork() == 0:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                try:
                    x @ x.T
                except InterruptedError:
                    os._exit(7)
                os._exit(0)
            global status
            status = os.wait()[1]
        def handler(number, frame):
            raise InterruptedError
        signal.signal(signal.SIGALRM, handler)
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
        print(os.waitstatus_to_exitcode(status))
        """
    )
    assert out == "7"


# -- workspaces --------------------------------------------------------------------


def test_ended_threads_leave_no_workspaces() -> None:
    x = np.ones((1024, 1024), td.bfloat16)
    x @ x  # this thread's needs are known
    alone = _core.workspaces()
    x = x[:96, :96]
    start = threading.Barrier(64)

    def multiply() -> None:
        start.wait()
        for _ in range(5):
            x @ x

    for _ in range(3):
        threads = [threading.Thread(target=multiply) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # A joined thread may not have ended yet.
    until = time.monotonic() + 60
    while _core.workspaces() > alone and time.monotonic() < until:
        time.sleep(0.01)
    assert _core.workspaces() <= alone


def test_free_buffers_leaves_no_workspaces() -> None:
    x = np.ones((96, 96), td.bfloat16)
    x @ x
    assert _core.workspaces() > 0
    td.free_buffers()
    assert _core.workspaces() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_workspaces_after_a_fork() -> None:
    """Keep the workspaces that the only thread of a child needs."""
    out = run_code(
        """
        import os, threading, numpy as np, tf32dtype as td
        from tf32dtype import _core
        x = np.ones((96, 96), td.bfloat16)
        hold, start = threading.Event(), threading.Barrier(9)
        def multiply():
            x @ x
            start.wait()
            hold.wait()
        threads = [threading.Thread(target=multiply) for _ in range(8)]
        for thread in threads:
            thread.start()
        start.wait()
        x @ x
        if os.fork() == 0:
            x @ x
            td.free_buffers()
            os._exit(_core.workspaces())
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        hold.set()
        """
    )
    assert out == "0"
