"""BLAS calls of any library in the precision "exact"."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.blas.calls import FORMS, Array, Call, half, only, triangular
from tests.support import forks
from tests.support.compiled import library
from tests.support.interpreters import run
from tf32dtype import _core
from tf32dtype._exact import products
from tf32dtype._programs import reached

if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)
pytestmark = pytest.mark.usefixtures("own_numpy")

EXACT: dict[str, Any] = {"precision": "exact", "blas": True}


def draw(dtype: str, *shape: int, seed: int = 0) -> Array:
    x = np.random.default_rng(seed).standard_normal((2, *shape))
    return (x[0] + (1j * x[1] if dtype.startswith("complex") else 0)).astype(dtype)


def exact(a: Array, b: Array) -> Array:
    return np.asarray(td.matmul(a, b, precision="exact"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_methods(dtype: str) -> None:
    a, b = draw(dtype, 40, 70), draw(dtype, 70, 30, seed=1)
    calls: list[tuple[Callable[[], Any], Array]] = [
        (lambda: a.dot(b), exact(a, b)),
        (lambda: np.asfortranarray(a).dot(b), exact(a, b)),
        (lambda: a.dot(a.T), exact(a, a.T)),  # syrk
        (lambda: a.dot(b[:, 0]), exact(a, b[:, 0])),
        (lambda: np.ma.asarray(a).dot(b).data, exact(a, b)),
        (lambda: a @ b, exact(a, b)),
    ]
    for call, wanted in calls:
        with td.matmul_precision(**EXACT):
            assert (call() == wanted).all()
    dot = exact(a[0], b[:, 0])
    own = a[0].dot(b[:, 0])
    with td.matmul_precision(**EXACT):
        assert a[0].dot(b[:, 0]) == own
    with td.matmul_precision(**EXACT, dots=True):
        assert a[0].dot(b[:, 0]) == dot


def test_factors() -> None:
    """The exact sum is rounded once, and then multiplied by alpha."""
    blas = pytest.importorskip("scipy.linalg.blas")
    a, b, c = draw("float64", 20, 30), draw("float64", 30, 10), draw("float64", 20, 10)
    with td.matmul_precision(**EXACT):
        found = blas.dgemm(0.1, a, b)
        added = blas.dgemm(0.1, a, b, 1.0, c)
    assert (found == 0.1 * exact(a, b)).all()
    assert (added == 0.1 * exact(a, b) + c).all()


@pytest.mark.parametrize("uplo", "UL")
def test_triangles_of_blocks(uplo: str) -> None:
    """A large triangle is computed by blocks of rows."""
    n, k = 600, 5
    a, c = draw("float64", n, k), draw("float64", n, n)
    call = Call("syrk", "d", FORMS[-1])
    call.option("uplo", uplo)
    call.option("trans", "N")
    call.integer(n)
    call.integer(k)
    call.scalar(1)
    call.matrix(a)
    call.scalar(0)
    where = call.matrix(c)
    assert call.compute(EXACT) == 0
    where.expect(exact(a, a.T), half(c, uplo))


@pytest.mark.parametrize("kind", "sdz")
@pytest.mark.parametrize("uplo", "UL")
def test_triangles_times_infinity(kind: str, uplo: str) -> None:
    """Zeros outside of the triangle are not multiplied by Inf.

    The magnitudes of the float64 numbers are out of float32's range.
    """
    n = 9
    dtype = {"s": "float32", "d": "float64", "z": "complex128"}[kind]
    a, b = draw(dtype, n, n), draw(dtype, n, 4)
    if kind == "d":
        a *= 1e-200
        b *= 1e200
    b[2, 0] = b[5, 1] = np.inf
    call = Call("trmm", kind, FORMS[-1])
    for group, letter in (("side", "L"), ("uplo", uplo), ("trans", "N"), ("diag", "N")):
        call.option(group, letter)
    call.integer(n)
    call.integer(4)
    call.scalar(1)
    call.matrix(only(a, uplo))
    where = call.matrix(b)
    with np.errstate(all="ignore"):
        full = triangular(a, uplo, False)
        rows = [slice(i + 1) if uplo == "L" else slice(i, n) for i in range(n)]
        wanted = [exact(full[i, part], b[part]) for i, part in enumerate(rows)]
        assert call.compute(EXACT) == 0
    where.expect(np.array(wanted))
    assert np.isinf(np.array(wanted).real).any()


# -- threads ---------------------------------------------------------------------------


def test_threads_of_python() -> None:
    a = draw("float64", 50, 60)
    wanted = exact(a, a.T)
    with td.matmul_precision(**EXACT), ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(copy_context().run, a.dot, a.T) for _ in range(40)]
        assert all((task.result() == wanted).all() for task in tasks)


IN_A_THREAD = """
#include <pthread.h>
typedef void gemm_fn(char *, char *, int *, int *, int *, double *, double *, int *,
                     double *, int *, double *, double *, int *);
struct call {
    gemm_fn *gemm;
    int n;
    double *a, *b, *c;
};
static void *compute(void *data)
{
    struct call *call = data;
    double one = 1, zero = 0;
    int n = call->n;
    double *a = call->a, *b = call->b, *c = call->c;
    call->gemm("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    return 0;
}
void here(struct call *call) { compute(call); }
void in_a_thread(struct call *call)
{
    pthread_t thread;
    pthread_create(&thread, 0, compute, call);
    pthread_join(thread, 0);
}
"""


class _Call(ctypes.Structure):
    _fields_ = (
        ("gemm", ctypes.c_void_p),
        ("n", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in "abc"),
    )


def test_threads_without_python() -> None:
    """The library computes their products: they cannot wait for the GIL."""
    cython_blas: Any = pytest.importorskip("scipy.linalg.cython_blas")
    capsule = cython_blas.__pyx_capi__["dgemm"]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    gemm = pointer(capsule, name(capsule))
    functions = ctypes.PyDLL(library(IN_A_THREAD, "-pthread")._name)  # with the GIL
    n = 64
    a, b = draw("float64", n, n), draw("float64", n, n, seed=1)
    own, wanted = b @ a, exact(b, a)  # Fortran's matrices are transposed

    def computed(function: Any) -> Array:
        c = np.empty((n, n))
        addresses = (x.ctypes.data for x in (a, b, c))
        function(ctypes.byref(_Call(gemm, n, *addresses)))
        return c

    def foreign() -> int:
        counts = _core.blas_counts()
        return sum(row[3] for row in counts if row[0] == "foreign thread")

    before = foreign()
    with td.matmul_precision(**EXACT):
        assert (computed(functions.here) == wanted).all()
        assert np.allclose(computed(functions.in_a_thread), own)
        assert foreign() == before + 1


def test_the_summary_names_them() -> None:
    found = reached._unchanged("foreign thread", "float64", 1, 8, True, True)
    assert found.line() == (
        "unchanged: float64 matrix multiplications in threads without Python code,"
        " 1 call, 8 multiply-adds. Set OMP_NUM_THREADS=1 to include those of OpenMP"
    )


# -- failures --------------------------------------------------------------------------


def test_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    a = draw("float64", 20, 20)
    own = a.dot(a)
    seen: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lambda found: seen.append(found.exc_type))

    @td.matmul_precision(**EXACT)
    def fails() -> None:
        with monkeypatch.context() as planted:
            planted.setattr(products, "_stacks", lambda *_: 1 / 0)
            assert (a.dot(a) == own).all()

    with pytest.raises(RuntimeError, match="1 exact matrix multiplication failed"):
        fails()
    assert seen == [ZeroDivisionError]


INTERRUPTED = """
import signal, threading
import numpy as np, tf32dtype as td
signal.signal(signal.SIGINT, signal.default_int_handler)
a = np.random.default_rng(0).standard_normal((1500, 1500))
here = threading.get_ident()
timer = threading.Timer(0.3, signal.pthread_kill, (here, signal.SIGINT))
with td.matmul_precision("exact", blas=True):
    timer.start()
    try:
        while True:
            a.dot(a)
    except KeyboardInterrupt:
        print("interrupted")
    b = a[:9, :9]
    print((b.dot(b) == td.matmul(b, b, precision="exact")).all())
"""


def test_interrupt() -> None:
    assert run("-c", INTERRUPTED).split() == ["interrupted", "True"]


def test_scopes_in_scopes() -> None:
    a = draw("float64", 20, 30)
    own, wanted = a.dot(a.T), exact(a, a.T)
    with td.matmul_precision(**EXACT):
        with td.matmul_precision(None):
            assert (a.dot(a.T) == own).all()
        with td.matmul_precision("exact", blas=True, min_size=31):
            assert (a.dot(a.T) == own).all()
        assert (a.dot(a.T) == wanted).all()
    results: list[Array] = []
    td.set_matmul_precision(**EXACT)
    try:
        thread = threading.Thread(target=lambda: results.append(a.dot(a.T)))
        thread.start()
        thread.join()
    finally:
        td.set_matmul_precision(None)
    assert (results[0] == wanted).all()


def test_run(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, os, subprocess, sys\n"
        "x = np.array([[1e8, 1, -1e8]] * 2, np.float32)\n"
        "y = np.ones((3, 2), np.float32)\n"
        "print(x.dot(y)[0, 0])\n"
        "if len(sys.argv) == 1:\n"
        "    subprocess.run([sys.executable, __file__, 'child'])\n"
    )
    command = "-m", "tf32dtype", "run", "--precision", "exact"
    done = forks.python(*command, str(program))
    assert done.stdout.split() == ["1.0", "0.0"]
    assert "1 matrix multiplication ran in exact (50.0 %" in done.stderr
    assert "in child processes or inside matmul_precision(None), 1 call" in done.stderr
    done = forks.python(*command, "--no-blas", str(program))
    assert done.stdout.split() == ["0.0", "0.0"]
    assert "Omit --no-blas to include them" in done.stderr


def test_other_programs_cannot_use_it() -> None:
    command = "-m", "tf32dtype", "blas", "--precision", "exact", "true"
    done = forks.python(*command)
    assert done.returncode == 2
    assert "precision 'exact' must be given to td.matmul" in done.stderr
