"""Products of BLAS in this process: which ones run in a precision, and when."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.blas.calls import sums
from tests.support import forks
from tests.support.interpreters import python
from tests.support.precision_switch import random, same
from tf32dtype import _core

if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)
pytestmark = pytest.mark.usefixtures("own_numpy")

Array = np.ndarray[Any, Any]
Product = Callable[..., Array]

A, B = random(20, 300), random(300, 12)
V, W = random(300), random(300, seed=1)
BF16 = {"precision": "bf16"}


def bf16(a: Array, b: Array) -> Array:
    return np.asarray(td.matmul(a, b, **BF16))


def bits() -> str:
    """Return the current precision, by a method that only BLAS's slots reach."""
    got = A.dot(B)
    (way,) = [name for name, wanted in BY_NAME.items() if same(got, wanted)]
    return way


BY_NAME = {"own": A.dot(B)} | {
    name: td.matmul(A, B, precision=name)
    for name in ("bf16", "tf32", "bf16x9", "fp8_e4m3")
}


def counted() -> dict[tuple[str, str, str], int]:
    return {row[:3]: row[3] for row in _core.blas_counts()}


def more_since(before: dict[tuple[str, str, str], int]) -> dict[Any, int]:
    now = counted()
    return {k: n - before.get(k, 0) for k, n in now.items() if n != before.get(k, 0)}


# -- callers in a precision ------------------------------------------------------------


@pytest.mark.parametrize(
    ("product", "operands"),
    [
        (lambda: A @ B, (A, B)),
        (lambda: A.dot(B), (A, B)),
        (lambda: np.matmul(A, B), (A, B)),
        (lambda: np.inner(A, B.T), (A, B)),
        (lambda: np.tensordot(A, B, 1), (A, B)),
        (lambda: np.einsum("ij,jk", A, B, optimize=True), (A, B)),
        (lambda: np.linalg.multi_dot([A, B]), (A, B)),
        (lambda: A.dot(A.T), (A, A.T)),
        (lambda: A.T.dot(A), (A.T, A)),
        (lambda: A.dot(V), (A, V)),
        (lambda: A[:, ::2].dot(B[::2]), (A[:, ::2], B[::2])),
        (lambda: A.dot(B.astype(">f4")), (A, B)),
        (lambda: np.asfortranarray(A).dot(B), (A, B)),
        (lambda: A.dot(B, out=np.empty((20, 12), np.float32)), (A, B)),
        (lambda: np.ma.asarray(A).dot(B).data, (A, B)),
    ],
)
def test_products_of_numpy(product: Product, operands: tuple[Array, Array]) -> None:
    own = product()
    with td.matmul_precision("bf16", blas=True):
        assert same(product(), bf16(*operands))
    assert same(product(), own)


def test_numbers() -> None:
    """Compute dots and norms, products of one number, in the precision if asked to."""
    wanted = bf16(V, W)
    square = bf16(V, V)
    one = [
        (lambda: V @ W, wanted),
        (lambda: V.dot(W), wanted),
        (lambda: np.dot(V, W), wanted),
        (lambda: np.vdot(V, W), wanted),
        (lambda: np.inner(V, W), wanted),
        (lambda: np.linalg.norm(V) ** 2, np.sqrt(square) ** 2),
        (lambda: np.convolve(V, W, "valid")[0], bf16(V, W[::-1])),
        (lambda: np.correlate(V, W)[0], wanted),
        (lambda: V[None].dot(W[:, None])[0, 0], wanted),
    ]
    for product, rounded in one:
        own = product()
        assert own != rounded
        with td.matmul_precision("bf16", blas=True):
            assert product() == own
        with td.matmul_precision("bf16", blas=True, dots=True):
            assert product() == rounded
        assert product() == own


def test_numbers_obey_without_blas() -> None:
    """Use NumPy's functions without `blas` as before."""
    with td.matmul_precision("bf16"):
        dot = V @ W
        assert dot == bf16(V, W)
    with td.matmul_precision("bf16", dots=False):
        dot = V @ W
        assert dot == DOT


def test_what_is_no_product_of_blas() -> None:
    with td.matmul_precision("bf16", blas=True, float64=True, dots=True):
        assert same(np.einsum("ij,jk", A, B), PLAIN_EINSUM)
        assert same(np.outer(V, W), PLAIN_OUTER)
        assert np.array_equal(np.arange(9).reshape(3, 3) @ np.eye(3, dtype=int),
                              np.arange(9).reshape(3, 3))  # fmt: skip


PLAIN_EINSUM, PLAIN_OUTER = np.einsum("ij,jk", A, B), np.outer(V, W)
DOT = V @ W


@pytest.mark.parametrize("kind", ["f4", "f8", "c8", "c16"])
def test_dtypes(kind: str) -> None:
    a, b = random(9, 50, dtype=kind), random(50, 7, dtype=kind)
    own, wanted = a.dot(b), sums(a, b, BF16)
    assert not same(own, wanted)
    for float64 in (False, True):
        for complex64 in (False, True):
            options = {"float64": float64, "complex64": complex64}
            obeys = (float64 or kind in ("f4", "c8")) and (
                complex64 or kind in ("f4", "f8")
            )
            with td.matmul_precision("bf16", blas=True, **options):
                assert same(a.dot(b), wanted if obeys else own)


def test_min_size() -> None:
    with td.matmul_precision("bf16", blas=True, min_size=300):
        assert bits() == "bf16"
        assert same(A[:, :299].dot(B[:299]), SHORT)
    with td.matmul_precision("bf16", blas=True, min_size=301):
        assert bits() == "own"


SHORT = A[:, :299].dot(B[:299])


@pytest.mark.parametrize("precision", ["f32", "tf32", "bf16x3", "bf16x9", "fp8_e5m2"])
def test_precisions(precision: str) -> None:
    with td.matmul_precision(precision, blas=True):
        assert same(A.dot(B), td.matmul(A, B, precision=precision))


def test_a_device() -> None:
    with td.matmul_precision("bf16", blas=True, device="H100"):
        assert same(A.dot(B), td.matmul(A, B, precision="bf16", device="H100"))


# -- LAPACK ----------------------------------------------------------------------------


def test_lapack_is_left_out() -> None:
    """Leave out LAPACK, also if its products use a slot (NumPy 2.5's OpenBLAS)."""
    x = random(72, 72).astype(np.float64) + np.diag(np.arange(72.0))
    spd = x @ x.T + 72 * np.eye(72)
    linear_algebra: list[Callable[[Array, Array], Any]] = [
        lambda x, spd: np.linalg.solve(x, spd[:, :24]),
        lambda x, spd: np.linalg.inv(x),
        lambda x, spd: np.linalg.det(x / 72),
        lambda x, spd: np.linalg.qr(x),
        lambda x, spd: np.linalg.svd(x),
        lambda x, spd: np.linalg.eigh(spd),
        lambda x, spd: np.linalg.eig(x),
        lambda x, spd: np.linalg.cholesky(spd),
        lambda x, spd: np.linalg.lstsq(x, spd[:, :24], rcond=None)[0],
    ]
    for dtype in (np.float32, np.float64):
        operands = x.astype(dtype), spd.astype(dtype)
        for function in linear_algebra:
            own = function(*operands)
            before = counted()
            with td.matmul_precision("bf16", blas=True, float64=True, dots=True):
                got = function(*operands)
            assert not more_since(before)
            many = isinstance(own, tuple)
            pairs = zip(own, got, strict=True) if many else [(own, got)]
            assert all(same(a, b) for a, b in pairs)


# -- scopes ----------------------------------------------------------------------------


def test_nesting() -> None:
    with td.matmul_precision("bf16", blas=True):
        assert bits() == "bf16"
        with td.matmul_precision("bf16x9", blas=True):
            assert bits() == "bf16x9"
            with td.matmul_precision(None):
                assert bits() == "own"
            with td.matmul_precision("tf32"):  # only NumPy's functions
                assert bits() == "own"
                assert same(A @ B, BY_NAME["tf32"])
            assert bits() == "bf16x9"
        assert bits() == "bf16"
    assert bits() == "own"


def test_of_the_process() -> None:
    td.set_matmul_precision("tf32", blas=True)
    try:
        assert bits() == "tf32"
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(bits).result() == "tf32"
        with td.matmul_precision("bf16", blas=True):
            assert bits() == "bf16"
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(bits).result() == "tf32"
        with td.matmul_precision(None):
            assert bits() == "own"
    finally:
        td.set_matmul_precision(None)
    assert bits() == "own"


def test_exceptions() -> None:
    def fail() -> None:
        with td.matmul_precision("bf16", blas=True):
            assert bits() == "bf16"
            with td.matmul_precision("tf32", blas=True):
                raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail()
        assert bits() == "own"
    with td.matmul_precision("tf32", blas=True):
        with pytest.raises(ValueError, match="shapes"):
            A.dot(A)
        assert bits() == "tf32"
    assert bits() == "own"


def test_an_error_on_its_way() -> None:
    """Multiply in a destructor, or while an exception is being handled."""
    seen = []

    class Late:
        def __del__(self) -> None:
            seen.append(bits())

    def fail() -> None:
        late = Late()
        raise KeyError(id(late))

    with td.matmul_precision("bf16", blas=True):
        try:
            fail()
        except KeyError:
            seen.append(bits())
    assert seen == ["bf16", "bf16"]


def test_generators() -> None:
    def generate() -> Iterator[str]:
        with td.matmul_precision("bf16", blas=True):
            yield bits()
            yield bits()

    one = generate()
    assert next(one) == "bf16"
    one.close()
    assert bits() == "own"


def test_threads() -> None:
    """Have a precision per thread; a thread without a scope has none."""
    started = threading.Barrier(4)
    done = threading.Barrier(4)

    def work(precision: str | None) -> set[str]:
        if precision is None:
            started.wait()
            found = {bits() for _ in range(50)}
            done.wait()
            return found
        with td.matmul_precision(precision, blas=True):
            started.wait()
            found = {bits() for _ in range(50)}
            done.wait()
        return found | {bits()} - {"own"}

    names = ["bf16", "tf32", "bf16x9", None]
    with ThreadPoolExecutor(4) as pool, td.matmul_precision("fp8_e4m3", blas=True):
        found = list(pool.map(work, names))
        assert bits() == "fp8_e4m3"
    assert found == [{"bf16"}, {"tf32"}, {"bf16x9"}, {"own"}]
    assert bits() == "own"


def test_tasks() -> None:
    async def work(precision: str | None) -> list[str]:
        found = []
        with td.matmul_precision(precision, blas=precision is not None):
            for _ in range(5):
                await asyncio.sleep(0)
                found.append(bits())
        return found

    async def all_of_them() -> list[list[str]]:
        with td.matmul_precision("fp8_e4m3", blas=True):
            kept = asyncio.create_task(plain())
        own = asyncio.create_task(plain())
        names = ("bf16", "tf32", None)
        return [*await asyncio.gather(*map(work, names)), await kept, await own]

    async def plain() -> list[str]:
        await asyncio.sleep(0)
        return [bits(), await asyncio.to_thread(bits)]

    found = asyncio.run(all_of_them())
    assert found[:3] == [["bf16"] * 5, ["tf32"] * 5, ["own"] * 5]
    assert found[3:] == [["fp8_e4m3"] * 2, ["own"] * 2]


def test_tasks_in_threads() -> None:
    """Release the GIL in products while other threads wait for it."""

    async def work(precision: str) -> None:
        name = None if precision == "own" else precision
        with td.matmul_precision(name, blas=name is not None):
            for _ in range(20):
                await asyncio.sleep(0)
                assert bits() == precision

    async def all_of_them() -> None:
        await asyncio.gather(*map(work, 2 * [*BY_NAME]))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(asyncio.run, all_of_them()) for _ in range(4)]:
            done.result()


def _in_a_child(_: int) -> str:
    return bits()


def test_fork() -> None:
    """Multiply in a forked child in the precision; the parent counts its products."""
    fork = multiprocessing.get_context("fork")
    with td.matmul_precision("bf16", blas=True):
        before = counted()
        with fork.Pool(2) as pool:
            assert pool.map(_in_a_child, range(6)) == ["bf16"] * 6
        assert more_since(before)["emulated", "float32", "gemm"] == 6
        assert bits() == "bf16"
    with fork.Pool(1) as pool:
        assert pool.map(_in_a_child, range(1)) == ["own"]


# -- new processes ---------------------------------------------------------------------

LATE = """
import importlib.util, os, sys, threading
import numpy as np
import tf32dtype as td
x = np.linspace(-1, 1, 900, dtype=np.float32).reshape(30, 30)
wanted = td.matmul(x, x, precision="bf16")
assert not any(name.startswith("scipy") for name in sys.modules)

def fblas():
    # What scipy.linalg.blas has its routines from, without the rest of SciPy.
    (folder,) = importlib.util.find_spec("scipy").submodule_search_locations
    folder = os.path.join(folder, "linalg")
    spec = importlib.machinery.PathFinder.find_spec("_fblas", [folder])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

with td.matmul_precision("bf16", blas=True):
    {imports}
    same = np.array_equal(blas.sgemm(1, x, x), wanted)
print(same, np.array_equal(blas.sgemm(1, x, x), wanted))
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "imports",
    [
        "from scipy.linalg import blas",
        pytest.param(
            "sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND); blas = fblas()",
            marks=pytest.mark.skipif(
                "ASAN_OPTIONS" in os.environ, reason="it refuses deep binding"
            ),
        ),
        "sys.setdlopenflags(os.RTLD_LAZY); blas = fblas()",
        "sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL); blas = fblas()",
        "t = threading.Thread(target=lambda: globals().update(blas=fblas()));"
        " t.start(); t.join()",
    ],
)
def test_libraries_that_come_later(imports: str) -> None:
    pytest.importorskip("scipy")
    assert forks.run("-c", LATE.format(imports=imports)) == "True False"


def test_libraries_that_came_between_scopes() -> None:
    pytest.importorskip("scipy")
    code = LATE.replace("with td", "with td.matmul_precision('tf32', blas=True): pass\n"
                        "blas = fblas()\nwith td", 1)  # fmt: skip
    assert forks.run("-c", code.format(imports="pass")) == "True False"


def test_numpy_in_a_precision_from_its_start() -> None:
    """Use variables of the environment, as `tf32dtype run` sets them for children."""
    code = (
        "import numpy as np, tf32dtype as td; x = np.linspace(-1, 1, 900,"
        " dtype=np.float32).reshape(30, 30); y = x.dot(x);"
        " print(np.array_equal(y, td.matmul(x, x, precision='tf32')))"
    )
    variables = {"TF32DTYPE_MATMUL_PRECISION": "tf32", "TF32DTYPE_BLAS": "float64"}
    done = python("-c", code, **variables)
    assert (done.stdout, done.stderr) == ("True\n", "")
    for words in (
        "bogus", "min_size=x", "min_size", "min_size=1.5", "min_size=-1",
        "min_size=\u00b2", "rounding=bogus", "rounding", "float64=no", "dots=1",
        "lapack=",
    ):  # fmt: skip
        wrong = variables | {"TF32DTYPE_BLAS": words}
        done = python("-c", code, **wrong)
        assert done.returncode == 1
        assert "TF32DTYPE_BLAS" in done.stderr.splitlines()[-1], done.stderr
