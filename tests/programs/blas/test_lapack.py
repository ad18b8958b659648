"""Products inside of LAPACK's routines, intercepted or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tf32dtype import _core

linalg = pytest.importorskip("scipy.linalg")
pytestmark = pytest.mark.skipif(
    not _core.blas_available(), reason="calls of BLAS are not caught here"
)

Array = np.ndarray[Any, Any]
N = 90
A = np.random.default_rng(0).standard_normal((N, N))
S = A + A.T
P = A @ A.T + N * np.eye(N)

#: Calls whose LAPACK routine calls its BLAS by name; results are without signs.
ROUTINES: dict[str, Callable[[], Array]] = {
    "numpy svd": lambda: np.linalg.svd(A, compute_uv=False),
    "numpy eigvalsh": lambda: np.linalg.eigvalsh(S),
    "numpy eigh": lambda: np.linalg.eigh(S)[0],
    "numpy qr": lambda: np.abs(np.linalg.qr(A)[1]),
    "numpy lstsq": lambda: np.linalg.lstsq(A, A[:, 0], rcond=None)[0],
    "scipy svd": lambda: linalg.svdvals(A),
    "scipy eigvalsh": lambda: linalg.eigvalsh(S),
    "scipy qr": lambda: np.abs(linalg.qr(A)[1]),
}
#: Calls whose LAPACK routine calls kernels of its BLAS instead.
KERNELS: dict[str, Callable[[], Array]] = {
    "numpy solve": lambda: np.linalg.solve(A, A[:, 0]),
    "numpy inv": lambda: np.linalg.inv(A),
    "numpy cholesky": lambda: np.linalg.cholesky(P),
    "scipy solve": lambda: linalg.solve(A, A[:, 0]),
    "scipy cholesky": lambda: linalg.cholesky(P),
}


def emulated() -> int:
    return sum(row[3] for row in _core.blas_counts() if row[0] == "emulated")


def error(got: Array, wanted: Array) -> float:
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("name", [*ROUTINES, *KERNELS])
def test_left_alone(name: str) -> None:
    call = (ROUTINES | KERNELS)[name]
    wanted = call()
    before = emulated()
    with td.matmul_precision("bf16", blas=True, float64=True, complex64=True):
        got = call()
    assert np.array_equal(got, wanted)
    assert emulated() == before


@pytest.mark.parametrize("name", ROUTINES)
def test_reached(name: str) -> None:
    call = ROUTINES[name]
    wanted = call()
    errors = {}
    for precision in ("bf16", "tf32", "bf16x9"):
        before = emulated()
        with td.matmul_precision(precision, blas=True, float64=True, lapack=True):
            errors[precision] = error(call(), wanted)
        assert emulated() - before > 100
        assert np.array_equal(call(), wanted)  # entries are as before
    assert 1e-5 < errors["tf32"] < errors["bf16"] < 0.2
    assert 1e-12 < errors["bf16x9"] < 1e-4


def test_a_call_from_outside_is_judged_once() -> None:
    blas = linalg.blas
    with td.matmul_precision("bf16", blas=True, float64=True, lapack=True):
        linalg.svdvals(A)  # entries are intercepted from now on
        before = _core.blas_counts()
        blas.dgemm(1, A, A)  # runs in bf16
        blas.ddot(A[0], A[1])  # a dot, which passes on to the entry and through it
        after = _core.blas_counts()
    rows = {row[:3]: row[3] for row in before}
    more = {row[:3]: row[3] - rows.get(row[:3], 0) for row in after}
    assert {key: count for key, count in more.items() if count} == {
        ("emulated", "float64", "gemm"): 1,
        ("dot", "float64", "dot"): 1,
    }


#: Modules of SciPy are loaded without the rest, whose import takes a second.
LATE = """
import importlib.util, os, sys, numpy as np, tf32dtype as td
from tf32dtype import _core

def loaded(name):
    (folder,) = importlib.util.find_spec("scipy").submodule_search_locations
    folder = os.path.join(folder, "linalg")
    spec = importlib.machinery.PathFinder.find_spec(name, [folder])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

assert not any(name.startswith("scipy") for name in sys.modules)
with td.matmul_precision("bf16", blas=True, float64=True, lapack=sys.argv[1] == "in"):
    loaded("_flapack").dgesdd(np.eye(3))
    # The entries lead to us: then another caller comes.
    blas = loaded("_fblas")
    before = {row[:3]: row[3] for row in _core.blas_counts()}
    blas.ddot([1.0, 2.0], [3.0, 4.0])
    print([(*row[:3], row[3] - before.get(row[:3], 0)) for row in _core.blas_counts()])
"""


def test_a_caller_that_comes_late_is_judged_once() -> None:
    told = [forks.python("-c", LATE, word) for word in ("out", "in")]
    assert told[0].stdout == told[1].stdout != "", told
    assert "'dot'" in told[0].stdout


def with_room(x: Array) -> Array:
    """Return a copy with memory after its end. OpenBLAS' product of an upper hermitian
    triangle reads past y, as that of a lower one did before pull request 3567."""
    room = np.zeros((3, *x.shape), x.dtype)
    room[1] = x
    return room[1]


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_what_passes_an_entry_is_what_it_was(dtype: str) -> None:
    """Compare every routine with replaced first instructions with its twin."""
    blas = linalg.blas
    rng = np.random.default_rng(1)
    numbers = rng.standard_normal((9, 9)) + 1j * rng.standard_normal((9, 9))
    a = (numbers if dtype[0] == "c" else numbers.real).astype(dtype)
    letter = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[dtype]

    def routine(name: str) -> Any:
        return getattr(blas, letter + name)

    x = with_room(a[0])
    calls: list[Callable[[], Array]] = [
        lambda: routine("gemm")(0.5, a, a, 2, a, trans_a=2),
        lambda: routine("gemv")(0.5, a, x, 2, x, trans=1),
        lambda: routine("symm")(0.5, a, a, 2, a, side=1, lower=1),
        lambda: routine("syrk")(0.5, a, 2, a, trans=1),
        lambda: routine("syr2k")(0.5, a, a, 2, a, lower=1),
        lambda: routine("trmm")(0.5, a, a, side=1, lower=1, trans_a=1, diag=1),
        lambda: routine("trmv")(a, x, lower=1, trans=1),
    ]
    if dtype[0] == "c":
        calls += [
            lambda: routine("hemm")(0.5, a, a, 2, a),
            lambda: routine("herk")(0.5, a, 2, a, trans=2),
            lambda: routine("her2k")(0.5, a, a, 2, a),
            lambda: routine("hemv")(0.5, a, x, 2, with_room(x), overwrite_y=True),
        ]
    else:
        calls += [
            lambda: routine("symv")(0.5, a, x, 2, x),
            lambda: np.array(routine("dot")(x, a[1])),
        ]
    with td.matmul_precision("f32", blas=True, lapack=True):
        linalg.svdvals(A)
    entered = [call() for call in calls]  # through the twins of the entries
    wanted = [_plain(letter, a, number) for number in range(len(calls))]
    for got, want in zip(entered, wanted, strict=True):
        assert np.allclose(got, want, rtol=1e-5 if letter in "sc" else 1e-12)


def _plain(letter: str, a: Array, number: int) -> Array:
    """Compute the products by NumPy, with the unwritten elements of a triangle."""
    x, h = a[0], np.conj(a).T
    lower = np.tri(9, dtype=bool)
    upper, diagonal = lower.T, np.eye(9, dtype=bool)
    symmetric = np.where(upper, a, a.T)
    hermitian = np.triu(a, 1) + np.conj(np.triu(a, 1)).T + np.diag(np.diag(a).real)
    unit = np.tril(a, -1) + np.eye(9)
    real_diagonal = [
        np.where(diagonal, product.real, product)
        for product in (0.5 * h @ a + 2 * a, a @ h + 2 * a)
    ]
    found = [
        0.5 * h @ a + 2 * a,
        0.5 * a.T @ x + 2 * x,
        0.5 * a @ np.where(lower, a, a.T) + 2 * a,
        np.where(upper, 0.5 * a.T @ a + 2 * a, a),
        np.where(lower, a @ a.T + 2 * a, a),
        0.5 * a @ unit.T,
        np.tril(a).T @ x,
    ]
    if letter in "cz":
        found.append(0.5 * hermitian @ a + 2 * a)
        found += [np.where(upper, product, a) for product in real_diagonal]
        found.append(0.5 * hermitian @ x + 2 * x)
    else:
        found += [0.5 * symmetric @ x + 2 * x, np.array(x @ a[1])]
    return found[number]
