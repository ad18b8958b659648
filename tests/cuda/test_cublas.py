"""Products by cuBLAS and cublasLt: the calls of libraries that may be absent.

Simulated libraries read the operands by pointers and leading dimensions, column by
column as the libraries do. They check the preconditions of the libraries.
"""

# ruff: noqa: F811

from __future__ import annotations

import ctypes
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda.native_cases import lay, ours
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.cuda_products import by_plan
from tf32dtype._base import nvrtc
from tf32dtype.cuda._matmul import cublaslt, native, tensor_cores
from tf32dtype.cuda._runtime import cublas

TYPES = {
    0: np.dtype(np.float32),
    1: np.dtype(np.float64),
    2: np.dtype(np.float16),
    14: np.dtype(td.bfloat16),
    28: np.dtype(td.float8_e4m3fn),
    29: np.dtype(td.float8_e5m2),
}


def matrix(pointer, type_, rows, columns, leading):
    """Return a column-major matrix in memory."""
    assert leading >= max(rows, 1)
    dtype = TYPES[type_]
    size = (leading * (columns - 1) + rows) * dtype.itemsize
    memory = np.frombuffer((ctypes.c_char * size).from_address(pointer), np.uint8)
    return np.lib.stride_tricks.as_strided(
        memory.view(dtype), (rows, columns), (dtype.itemsize, dtype.itemsize * leading)
    )


def scale(pointer, type_):
    of = ctypes.c_double if type_ == 1 else ctypes.c_float
    return of.from_address(pointer).value


class Library:
    """cuBLAS as CuPy binds it."""

    def __init__(self):
        self.pointer_mode, self.math_mode = 1, 3
        self.computed = []

    def getPointerMode(self, handle):
        return self.pointer_mode

    def setPointerMode(self, handle, mode):
        self.pointer_mode = mode

    def getMathMode(self, handle):
        return self.math_mode

    def setMathMode(self, handle, mode):
        self.math_mode = mode

    def gemmEx(
        self, handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb,
        beta, c, c_type, ldc, compute, algo,
    ):  # fmt: skip
        assert (self.pointer_mode, self.math_mode, algo) == (0, 0, -1)
        assert c_type == (a_type == 1)
        self.computed.append((a_type, compute))
        x = matrix(a, a_type, *((k, m) if transa else (m, k)), lda)
        y = matrix(b, b_type, *((n, k) if transb else (k, n)), ldb)
        x, y = (
            z.astype(np.float64) for z in (x.T if transa else x, y.T if transb else y)
        )
        z = matrix(c, c_type, m, n, ldc)
        alpha, beta = scale(alpha, c_type), scale(beta, c_type)
        z[...] = alpha * (x @ y) + (beta * z if beta else 0)

    def gemmStridedBatchedEx(
        self, handle, transa, transb, m, n, k, alpha, a, a_type, lda, step_a, b, b_type,
        ldb, step_b, beta, c, c_type, ldc, step_c, count, compute, algo,
    ):  # fmt: skip
        for i in range(count):
            at = [
                pointer + i * step * TYPES[type_].itemsize
                for pointer, step, type_ in (
                    (a, step_a, a_type), (b, step_b, b_type), (c, step_c, c_type),
                )
            ]  # fmt: skip
            self.gemmEx(
                handle, transa, transb, m, n, k, alpha, at[0], a_type, lda, at[1],
                b_type, ldb, beta, at[2], c_type, ldc, compute, algo,
            )  # fmt: skip


@pytest.fixture
def library(backend, monkeypatch):
    """Yield a simulated cuBLAS on the host, or None on a GPU."""
    if backend is not HOST:
        yield None
        return
    made = Library()
    monkeypatch.setattr(cublas, "_library", lambda: made)
    monkeypatch.setattr(cublas, "_handle", lambda: 7)
    monkeypatch.setattr(HOST, "gemm", cublas.gemm, raising=False)
    yield made
    assert (made.pointer_mode, made.math_mode) == (1, 3)


def integers(rng, shape, dtype):
    """Return integers so small that sums are exact in any order."""
    return rng.integers(-4, 5, shape).astype(dtype)


LAYOUTS = ["rows", "columns", "pitched", "pitched columns"]
DTYPES = {
    "bfloat16": td.bfloat16,
    "float16": np.float16,
    "tf32": td.tf32,
    "float32": np.float32,
    "float64": np.float64,
}
SHAPES = ((5, 7, 3), (1, 4, 6), (4, 1, 5), (6, 3, 1), (1, 1, 1))


@pytest.mark.parametrize("of_a", LAYOUTS)
@pytest.mark.parametrize("of_b", LAYOUTS)
def test_gemm(backend, library, of_a, of_b):
    rng = np.random.default_rng(0)
    for kind, dtype in DTYPES.items():
        storage = cublas.DTYPES[kind]
        for m, k, n in SHAPES:
            for stacks in ((), (1,), (3,)):
                x = integers(rng, (*stacks, m, k), dtype)
                y = integers(rng, (*stacks, k, n), dtype)
                z = integers(rng, (*stacks, m, n), np.float32)
                z = z.astype(np.float64 if kind == "float64" else np.float32)
                a, b = (
                    lay(backend, x.view(storage), of_a),
                    lay(backend, y.view(storage), of_b),
                )
                c = lay(backend, z, rng.choice(["rows", "pitched"]))
                x, y = (i.astype(np.float64) for i in (x, y))
                cublas.gemm(a, b, c, kind)
                np.testing.assert_array_equal(backend.get(c), x @ y)
                cublas.gemm(a, b, c, kind, alpha=2, beta=2**-8)
                want = 2 * (x @ y) + x @ y / 256
                np.testing.assert_array_equal(backend.get(c), want)
    if library is not None:
        kinds = {(14, 68), (2, 68), (0, 77), (0, 68), (1, 71)}
        assert set(library.computed) == kinds


def test_gemm_of_nothing(backend, library):
    a, b = backend.put(np.ones((2, 3, 0), np.float32)), np.ones((2, 0, 4), np.float32)
    c = backend.put(np.full((2, 3, 4), 8, np.float32))
    cublas.gemm(a, backend.put(b), c, "float32", beta=0.5)
    assert (backend.get(c) == 4).all()
    cublas.gemm(a, backend.put(b), c, "float32")
    assert (backend.get(c) == 0).all()
    cublas.gemm(a[:0], backend.put(b)[:0], c[:0], "float32")


def test_gemm_refuses(backend, library):
    x = backend.put(np.ones((4, 4), np.float32))
    with pytest.raises(ValueError, match=r"kind must be .*'tf32'.*; got 'fp8'"):
        cublas.gemm(x, x, x, "fp8")
    for bad in (x[::2, ::2], x[::-1], cupy.broadcast_to(x[:1], (4, 4))):
        with pytest.raises(ValueError, match="contiguous along one of their last two"):
            cublas.gemm(bad, x, x[: len(bad)], "float32")
    with pytest.raises(ValueError, match="and c along the last"):
        cublas.gemm(x, x, x.T, "float32")


def test_math_mode_returns_after_an_error(backend, monkeypatch):
    if backend is not HOST:
        pytest.skip("of the stand-in")
    made = Library()

    def fail(*arguments):
        raise RuntimeError("no")

    made.gemmEx = fail
    monkeypatch.setattr(cublas, "_library", lambda: made)
    monkeypatch.setattr(cublas, "_handle", lambda: 7)
    x = backend.put(np.ones((4, 4), np.float32))
    with pytest.raises(RuntimeError):
        cublas.gemm(x, x, x, "float32")
    assert (made.pointer_mode, made.math_mode) == (1, 3)


def test_library_that_is_missing(monkeypatch):
    def fail(name):
        raise ImportError("no libcublas.so.13")

    monkeypatch.setattr(cublas.importlib, "import_module", fail)
    with pytest.raises(nvrtc.CudaError, match=r"libcublas.so.13.*nvidia-cublas"):
        cublas._library()


EVERY = [*LAYOUTS, "thinned", "reversed", "repeated"]


@pytest.mark.parametrize("dtype", [td.tf32, td.bfloat16, np.float16])
@pytest.mark.parametrize("layout", EVERY)
def test_product(backend, library, dtype, layout):
    """`tensor_cores.plan` copies only arrays that cuBLAS cannot read."""
    rng = np.random.default_rng(1)
    for m, k, n in SHAPES:
        x, y = integers(rng, (3, m, k), dtype), integers(rng, (3, k, n), dtype)
        if layout == "repeated":
            x[:], y[:] = x[:1].copy(), y[:1].copy()
        a, b = (ours(backend, i, layout) for i in (x, y))
        out = backend.put(np.full((3, m, n), np.nan, np.float32))
        by_plan(tensor_cores.plan, a, b, out, None)
        want = x.astype(np.float64) @ y.astype(np.float64)
        np.testing.assert_array_equal(backend.get(out), want)
    if backend is HOST and layout not in ("thinned", "reversed"):
        assert "call" not in HOST.counts


# -- cublasLt --------------------------------------------------------------------------


class Lt:
    """A simulated cublasLt, whose functions gemm must call as cublasLt requires."""

    def __init__(self, fail=None):
        self.objects, self.next, self.fail = {}, 100, fail or {}
        self.counts, self.heuristics = {}, 1

    def __getattr__(self, name):
        if not name.startswith("cublasLt"):
            raise AttributeError(name)

        def function(*arguments):
            self.counts[name] = self.counts.get(name, 0) + 1
            given = [
                x.value if isinstance(x, ctypes.c_void_p) else x for x in arguments
            ]
            assert len(given) == len(cublaslt._FUNCTIONS[name])
            if name in self.fail:
                return self.fail[name]
            return self.do(name.removeprefix("cublasLt"), given) or 0

        return function

    def do(self, name, given):
        if name.endswith("Create"):
            self.next += 1
            self.objects[self.next] = {"made": tuple(given[1:])}
            ctypes.c_void_p.from_address(given[0]).value = self.next
        elif name.endswith("Destroy"):
            del self.objects[given[0]]
        elif name.endswith("SetAttribute"):
            made, attribute, pointer, size = given
            raw = bytes((ctypes.c_char * size).from_address(pointer))
            self.objects[made][attribute] = int.from_bytes(raw, "little", signed=True)
        elif name == "MatmulAlgoGetHeuristic":
            assert self.objects[given[6]][1] == 32 << 20
            self.alignments = [self.objects[given[6]][i] for i in (5, 6, 7, 8)]
            self.check(given[1], given[2:6])
            best = cublaslt.Heuristic.from_address(given[8])
            best.workspace, best.algo[0] = 1000, 77
            ctypes.c_int.from_address(given[9]).value = self.heuristics
        else:
            assert name == "Matmul"
            self.multiply(*given)

    def check(self, operation, layouts):
        assert self.objects[operation] == {"made": (68, 0), 3: 1, 4: 0}
        a, b, c, d = (self.objects[i]["made"] for i in layouts)
        assert {a[0], b[0]} in ({28}, {28, 29})
        assert c == d
        assert a[1] == b[1]
        assert a[1] % 16 == a[2] % 16 == a[3] % 16 == b[3] % 16 == c[3] % 4 == 0
        assert (c[0], c[1], c[2]) == (0, a[2], b[2])

    def multiply(
        self, handle, operation, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algo,
        workspace, size, stream,
    ):  # fmt: skip
        assert handle in self.objects
        assert (c, stream, size) == (d, 5, 1000)
        assert (scale(alpha, 0), scale(beta, 0)) == (1, 0)
        assert cublaslt.Heuristic.from_address(algo).algo[0] == 77
        for pointer, alignment in zip((a, b, c, d), self.alignments, strict=True):
            assert 256 >= alignment >= 16
            assert pointer % alignment == 0
        assert workspace % 256 == 0
        self.check(operation, (of_a, of_b, of_c, of_d))
        layouts = [self.objects[i] for i in (of_a, of_b, of_d)]
        (count,) = {layout.get(5, 1) for layout in layouts}
        for i in range(count):
            x, y, z = (
                matrix(at + i * layout.get(6, 0) * TYPES[layout["made"][0]].itemsize,
                       *layout["made"])
                for at, layout in zip((a, b, d), layouts, strict=True)
            )  # fmt: skip
            z[...] = x.T.astype(np.float64) @ y.astype(np.float64)


def new_plans(most):
    return lru_cache(maxsize=most)(cublaslt._plan.__wrapped__)


def install(monkeypatch, made):
    monkeypatch.setattr(cublaslt, "_library", lambda: made)
    monkeypatch.setattr(cublaslt, "_device", lambda: 0)
    monkeypatch.setattr(cublaslt, "_stream", lambda: 5)
    # The last change is undone first, and with it the objects that it made.
    monkeypatch.setattr(cublaslt, "_plan", new_plans(cublaslt.KEPT))
    cublaslt._handle.cache_clear()
    return made


E4M3, E5M2 = td.float8_e4m3fn, td.float8_e5m2


@pytest.mark.parametrize("pair", [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3)])
@pytest.mark.parametrize("layout", EVERY)
def test_fp8(backend, monkeypatch, pair, layout):
    if backend is HOST:
        made = install(monkeypatch, Lt())
    elif native.number(backend.architecture()) < 89:
        pytest.skip("not on this GPU")
    rng = np.random.default_rng(2)
    whole = (16, 32, 48), (20, 32, 16), (4, 32, 3), (16, 11, 16)
    for m, k, n in (*SHAPES, *whole, (3, 0, 2), (3, 2, 0)):
        x, y = integers(rng, (3, m, k), pair[0]), integers(rng, (3, k, n), pair[1])
        if layout == "repeated":
            x[:], y[:] = x[:1].copy(), y[:1].copy()
        for stacks in (3, 1):
            a, b = (ours(backend, i[:stacks], layout) for i in (x, y))
            out = backend.put(np.full((stacks, m, n), np.nan, np.float32))
            by_plan(tensor_cores.plan, a, b, out, None)
            want = x[:stacks].astype(np.float64) @ y[:stacks].astype(np.float64)
            np.testing.assert_array_equal(backend.get(out), want)
    if backend is HOST:
        cublaslt._plan.cache_clear()
        assert len(made.objects) == 1  # the handle


def test_fp8_without_copies(backend, monkeypatch):
    """Operands in the layout of cublasLt are not copied, and the heuristic runs once
    for each shape."""
    if backend is not HOST:
        pytest.skip("of the stand-in")
    made = install(monkeypatch, Lt())
    a = lay(HOST, np.zeros((2, 20, 32), np.uint8), "rows")
    b = lay(HOST, np.zeros((2, 32, 16), np.uint8), "columns")
    out = HOST.put(np.ones((2, 20, 16), np.float32))
    HOST.counts.clear()
    for _ in range(3):
        cublaslt.gemm(a, b, out, ("float8_e4m3fn", "float8_e4m3fn"))
    assert not HOST.counts
    assert made.counts["cublasLtMatmul"] == 3
    assert made.counts["cublasLtMatmulAlgoGetHeuristic"] == 1
    assert made.counts["cublasLtMatrixLayoutCreate"] == 3
    assert made.counts["cublasLtCreate"] == 1


def test_what_plans_made_goes_with_them(backend, monkeypatch):
    """Objects are freed with the plan that made them, so that few exist."""
    if backend is not HOST:
        pytest.skip("of the stand-in")
    made = install(monkeypatch, Lt())
    monkeypatch.setattr(cublaslt, "_plan", new_plans(2))
    b = lay(HOST, np.zeros((1, 32, 16), np.uint8), "columns")
    for m in (16, 32, 48, 16, 48, 48):
        a = HOST.put(np.zeros((1, m, 32), np.uint8))
        out = HOST.put(np.ones((1, m, 16), np.float32))
        cublaslt.gemm(a, b, out, ("float8_e4m3fn", "float8_e4m3fn"))
        assert len(made.objects) <= 1 + 2 * 4
    assert made.counts["cublasLtMatmulAlgoGetHeuristic"] == 4


def test_fp8_that_is_aligned_less(backend, monkeypatch):
    """cublasLt assumes an alignment of 256 bytes unless a call states another."""
    if backend is not HOST:
        pytest.skip("of the stand-in")
    made = install(monkeypatch, Lt())
    memory = HOST.put(np.zeros(4096, np.uint8))
    b = lay(HOST, np.zeros((1, 32, 16), np.uint8), "columns")
    out = HOST.put(np.ones((1, 16, 16), np.float32))
    for start, alignment in ((0, 256), (16, 16), (96, 32), (0, 256)):
        a = memory[start : start + 16 * 32].reshape(1, 16, 32)
        cublaslt.gemm(a, b, out, ("float8_e4m3fn", "float8_e4m3fn"))
        if start == 16:
            assert made.alignments == [256, alignment, 256, 256]
    assert made.counts["cublasLtMatmulAlgoGetHeuristic"] == 3


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Lt({"cublasLtMatmul": 15}), "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED"),
        (Lt({"cublasLtCreate": 1}), "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED"),
        (Lt({"cublasLtMatrixLayoutCreate": 99}), "LayoutCreate: status 99"),
        (SimpleNamespace(), "cublasLt cannot multiply float8_e4m3fn"),
    ],
)
def test_fp8_errors(backend, monkeypatch, made, message):
    if backend is not HOST:
        pytest.skip("of the stand-in")
    if not isinstance(made, Lt):
        made = Lt()
        made.heuristics = 0
    install(monkeypatch, made)
    a, out = (
        HOST.put(np.zeros((1, 16, 16), np.uint8)),
        HOST.put(np.ones((1, 16, 16), "f4")),
    )
    with pytest.raises(nvrtc.CudaError, match=message):
        cublaslt.gemm(a, a, out, ("float8_e4m3fn", "float8_e4m3fn"))
    cublaslt._plan.cache_clear()
    assert len(made.objects) <= 1  # the handle
    assert (HOST.get(out) == 1).all()


def test_cublaslt_that_is_missing(monkeypatch):
    def fail(name):
        raise OSError(f"no {name}")

    monkeypatch.setattr(cublaslt.importlib, "import_module", fail)
    monkeypatch.setattr(cublaslt.ctypes, "CDLL", fail)
    with pytest.raises(nvrtc.CudaError, match=r"no libcublasLt.so.12\).*nvidia-cublas"):
        cublaslt._library.__wrapped__()


def test_functions_know_their_arguments(monkeypatch):
    """Exactly the functions in use have argument types. Otherwise ctypes would truncate
    a pointer to 32 bits."""
    made = SimpleNamespace(**{x: SimpleNamespace() for x in cublaslt._FUNCTIONS})
    monkeypatch.setattr(cublaslt, "_loaded", lambda: made)
    assert cublaslt._library.__wrapped__() is made
    for name, arguments in cublaslt._FUNCTIONS.items():
        function = getattr(made, name)
        assert function.argtypes == arguments
        assert function.restype is ctypes.c_int


def test_sizes():
    """The size of cublasLtMatmulHeuristicResult_t is that of cublasLt.h."""
    assert ctypes.sizeof(cublaslt.Heuristic) == 96
