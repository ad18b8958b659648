"""Products of BLAS without memory: those that fit into the reserve have the same bits,
and the end of the scope reports the others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.interpreters import python, run

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="calls are caught on Linux"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer is preloaded"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def refuser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refuser") / "refuser.so"
    source = HERE / "failing_allocations.c"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", source, "-o", path], check=True, timeout=60
    )
    return path


def trials(refuser: Path, of: str) -> int:
    script = HERE / "memory_trials.py"
    return int(run(script, refuser, of, LD_PRELOAD=str(refuser), OMP_NUM_THREADS="2"))


def test_every_allocation_of_every_routine(refuser: Path) -> None:
    assert trials(refuser, "small") > 1000


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", ["bf16", "fp8_e4m3"])
def test_results_that_do_not_fit(refuser: Path, precision: str) -> None:
    assert trials(refuser, precision) == 9


#: The conjugated operand needs a copy of 52 MB, which is more than the reserve.
HUGE = """
import sys, numpy as np, scipy.linalg.blas as blas, tf32dtype as td
from tests.programs.blas.memory_trials import Trials
trials = Trials(sys.argv[1])
x = np.asfortranarray(np.ones((13_000_000, 1), np.complex64))

def product():
    return blas.cgemm(1, x, x, trans_a=2, trans_b=0)

"""


@pytest.mark.exhaustive
def test_the_scope_tells(refuser: Path) -> None:
    code = HUGE + (
        'with td.matmul_precision("bf16", blas=True, complex64=True, dots=True):\n'
        "    product()\n"
        "try:\n"
        '    with td.matmul_precision("bf16", blas=True, complex64=True, dots=True):\n'
        "        trials.compute(product, 0, False)\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    told = run("-c", code, refuser, LD_PRELOAD=str(refuser))
    assert told == (
        "cannot allocate memory for 1 matrix multiplication, which the BLAS library"
        " computed in full precision instead"
    )


@pytest.mark.exhaustive
def test_the_process_tells(refuser: Path) -> None:
    code = HUGE + (
        'td.set_matmul_precision("bf16", blas=True, complex64=True, dots=True)\n'
        "trials.compute(product, 0, False)\n"
    )
    done = python("-c", code, refuser, LD_PRELOAD=str(refuser))
    assert done.returncode == 0
    assert done.stderr.startswith("tf32dtype: cannot allocate memory for 1 matrix")


def test_the_command_tells(refuser: Path, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(HUGE + "trials.compute(product, 0, False)\n")
    words = ["-m", "tf32dtype", "run", "--precision", "bf16", "--complex64", "--dots"]
    done = python(*words, tmp_path / "p.py", refuser, LD_PRELOAD=str(refuser))
    assert done.returncode == 3, done.stderr
    assert "without enough memory" in done.stderr


#: A product of a thread is in the reserve for seconds, while the main thread runs.
WAITING = """
import os, signal, sys, threading, time
import numpy as np, tf32dtype as td
from tests.programs.blas.memory_trials import Trials
signal.signal(signal.SIGINT, signal.default_int_handler)
trials = Trials(sys.argv[1])
precision = td.matmul_precision("bf16x9", blas=True)
a, few = (np.full((n, n), 0.5, np.float32) for n in (4000, 20))

ready, go = threading.Event(), threading.Event()

def product():
    with precision:
        ready.set()
        go.wait()
        a.dot(a)

def waiting():
    began = time.monotonic()
    with precision:
        print("entered", time.monotonic() - began < 1)
        main = threading.get_ident()
        threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
        try:
            few.dot(few)
        except KeyboardInterrupt:
            print("interrupted", worker.is_alive(), flush=True)
            os._exit(0)

worker = threading.Thread(target=product)
worker.start()
ready.wait()
trials.compute(lambda: (go.set(), time.sleep(0.5), waiting()), 0, False)
"""


def test_others_do_not_wait(refuser: Path) -> None:
    """Enter a scope while another thread is in the reserve, and interrupt a product
    that waits for it by Ctrl-C."""
    told = run("-c", WAITING, refuser, LD_PRELOAD=str(refuser), OMP_NUM_THREADS="1")
    assert told.split() == ["entered", "True", "interrupted", "True"]


#: Each attempt to begin a scope fails at one allocation later than the attempt before.
BEGINS = """
import sys
import numpy as np, scipy.linalg.blas as blas, tf32dtype as td
from tests.programs.blas.memory_trials import Trials
trials, precision = Trials(sys.argv[1]), td.matmul_precision("bf16", blas=True)
a = np.asfortranarray(np.random.default_rng(1).normal(size=(9, 9)), np.float32)
want = td.matmul(a, a, precision="bf16")
for calls in range(1000):
    try:
        trials.compute(precision.__enter__, calls, False)
    except MemoryError:
        continue
    print(calls > 2, all((x == want).all() for x in (a.dot(a), blas.sgemm(1, a, a))))
    break
"""


def test_a_scope_begins_whole_or_not_at_all(refuser: Path) -> None:
    told = run("-c", BEGINS, refuser, LD_PRELOAD=str(refuser))
    assert told.split() == ["True", "True"]
