"""SciPy's calls of BLAS, by its modules `blas` and `cython_blas`."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.blas.calls import (
    Array,
    Call,
    Form,
    draw,
    half,
    mirrored,
    sums,
    triangular,
    updated,
)
from tf32dtype import _core

pytest.importorskip("scipy")
if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)

from scipy.linalg import blas, cython_blas

ALL = {"blas": True, "float64": True, "complex64": True, "dots": True}
PRECISION = {"precision": "bf16"}
FORTRAN = Form(False, False, False)
ALPHA, BETA = {"s": -0.3, "d": -0.3, "c": 0.5 - 0.3j, "z": 0.5 - 0.3j}, 0.75


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12)


def call(kind: str, routine: str, *args: Any, **options: Any) -> Array:
    """Return SciPy's result in a precision; without a precision it must differ."""
    function = getattr(blas, kind + routine)
    own = function(*args, **options)
    with td.matmul_precision("bf16", **ALL):
        result = function(*args, **options)
    assert np.asarray(own).tobytes() != np.asarray(result).tobytes()
    assert np.asarray(own).tobytes() == np.asarray(function(*args, **options)).tobytes()
    return np.asarray(result)


def same(got: Array, wanted: Any, where: Any = True) -> None:
    wanted = np.asarray(wanted)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    got, wanted = (np.where(where, x, 0) for x in (got, wanted))
    np.testing.assert_array_equal(got, wanted)
    assert np.ascontiguousarray(got).tobytes() == wanted.tobytes()


def op(x: Array, trans: int) -> tuple[Array, str]:
    """Transpose (1), also conjugate (2) as in SciPy; return the `flips` of sums()."""
    return (x.T if trans else x), ("a" if trans == 2 else "")


@pytest.mark.parametrize("kind", "sdcz")
def test_gemm(kind: str, rng: np.random.Generator) -> None:
    m, n, k = 5, 7, 40
    for trans_a, trans_b in product(range(3), repeat=2):
        a = draw(rng, kind, *((k, m) if trans_a else (m, k)))
        b = draw(rng, kind, *((n, k) if trans_b else (k, n)))
        c = draw(rng, kind, m, n)
        got = call(kind, "gemm", ALPHA[kind], a, b, BETA, c, trans_a, trans_b)
        x, y = (z.T if trans else z for z, trans in ((a, trans_a), (b, trans_b)))
        flips = "a" * (trans_a == 2) + "b" * (trans_b == 2)
        flips = flips if kind in "cz" else ""
        product_ = sums(x, y, PRECISION, flips)
        same(got, updated(ALPHA[kind], product_, BETA, c))


@pytest.mark.parametrize(
    ("routine", "kinds"), [("symm", "sdcz"), ("hemm", "cz")], ids=["symm", "hemm"]
)
def test_symm(routine: str, kinds: str, rng: np.random.Generator) -> None:
    m, n = 5, 7
    for kind, side, lower in product(kinds, (0, 1), (0, 1)):
        size = n if side else m
        a, b, c = (draw(rng, kind, *s) for s in ((size, size), (m, n), (m, n)))
        got = call(kind, routine, ALPHA[kind], a, b, BETA, c, side, lower)
        full = mirrored(a, "UL"[lower], routine == "hemm")
        x, y = (b, full) if side else (full, b)
        same(got, updated(ALPHA[kind], sums(x, y, PRECISION), BETA, c))


@pytest.mark.parametrize(
    ("routine", "kinds"),
    [("syrk", "sdcz"), ("herk", "cz"), ("syr2k", "sdcz"), ("her2k", "cz")],
)
def test_syrk(routine: str, kinds: str, rng: np.random.Generator) -> None:
    n, k = 5, 40
    hermitian, twice = routine.startswith("he"), routine.endswith("2k")
    for kind, across, lower in product(kinds, (0, 1), (0, 1)):
        a, b = (draw(rng, kind, *((k, n) if across else (n, k))) for _ in range(2))
        b = b if twice else a
        c = draw(rng, kind, n, n)
        if hermitian:
            np.fill_diagonal(c, np.diag(c).real)
        alpha = ALPHA[kind] if twice or not hermitian else ALPHA[kind].real
        operands = (a, b) if twice else (a,)
        trans = (2 if hermitian else 1) * across
        got = call(kind, routine, alpha, *operands, BETA, c, trans, lower)
        flip = ("a" if across else "b") if hermitian else ""
        first, second = (
            sums(x.T, y, PRECISION, flip) if across else sums(x, y.T, PRECISION, flip)
            for x, y in ((a, b), (b, a))
        )
        wanted = updated(
            alpha, first, BETA, c, second if twice else None,
            np.conj(alpha) if hermitian else alpha,
        )  # fmt: skip
        if hermitian:
            np.fill_diagonal(wanted, np.diag(wanted).real)
        same(got, wanted, half(c, "UL"[lower]))


@pytest.mark.parametrize("kind", "sdcz")
def test_trmm(kind: str, rng: np.random.Generator) -> None:
    m, n = 5, 7
    for side, lower, trans, diag in product((0, 1), (0, 1), range(3), (0, 1)):
        size = n if side else m
        a, b = draw(rng, kind, size, size), draw(rng, kind, m, n)
        got = call(kind, "trmm", ALPHA[kind], a, b, side, lower, trans, diag)
        full, flip = op(triangular(a, "UL"[lower], bool(diag)), trans)
        flip = flip if kind in "cz" else ""
        x, y, flip = (b, full, flip.replace("a", "b")) if side else (full, b, flip)
        same(got, updated(ALPHA[kind], sums(x, y, PRECISION, flip), 0, b))


@pytest.mark.parametrize("kind", "sdcz")
def test_gemv(kind: str, rng: np.random.Generator) -> None:
    for trans, (step_x, step_y) in product(range(3), [(1, 1), (2, -1), (-1, 3)]):
        a = draw(rng, kind, 5, 40)
        full, flip = op(a, trans)
        x, y = (
            draw(rng, kind, (n - 1) * abs(step) + 1)
            for n, step in zip(full.shape[::-1], (step_x, step_y), strict=True)
        )
        arguments = (ALPHA[kind], a, x, BETA, y, 0, step_x, 0, step_y, trans)
        got = call(kind, "gemv", *arguments)
        flip = flip if kind in "cz" else ""
        product_ = sums(full, x[::step_x][:, None], PRECISION, flip)[:, 0]
        wanted = y.copy()
        wanted[::step_y] = updated(ALPHA[kind], product_, BETA, y[::step_y])
        same(got, wanted)


@pytest.mark.parametrize(
    ("routine", "kind"), [("symv", "s"), ("symv", "d"), ("hemv", "c"), ("hemv", "z")]
)
def test_symv(routine: str, kind: str, rng: np.random.Generator) -> None:
    for lower in (0, 1):
        a, x, y = (draw(rng, kind, *s) for s in ((9, 9), (9,), (9,)))
        arguments = (ALPHA[kind], a, x, BETA, y, 0, 1, 0, 1, lower)
        got = call(kind, routine, *arguments)
        full = mirrored(a, "UL"[lower], routine == "hemv")
        product_ = sums(full, x[:, None], PRECISION)[:, 0]
        same(got, updated(ALPHA[kind], product_, BETA, y))


@pytest.mark.parametrize("kind", "sdcz")
def test_trmv(kind: str, rng: np.random.Generator) -> None:
    for lower, trans, diag in product((0, 1), range(3), (0, 1)):
        a, x = draw(rng, kind, 9, 9), draw(rng, kind, 9)
        got = call(kind, "trmv", a, x, 0, 1, lower, trans, diag)
        full, flip = op(triangular(a, "UL"[lower], bool(diag)), trans)
        flip = flip if kind in "cz" else ""
        same(got, sums(full, x[:, None], PRECISION, flip)[:, 0])


@pytest.mark.parametrize(
    ("routine", "kind"),
    [("dot", "s"), ("dot", "d"), *product(("dotu", "dotc"), "cz")],
)
def test_dot(routine: str, kind: str, rng: np.random.Generator) -> None:
    x, y = draw(rng, kind, 99), draw(rng, kind, 50)
    got = call(kind, routine, x, y, 50, 0, -2, 0, 1)
    flip = "a" if routine == "dotc" else ""
    wanted = sums(x[None, ::-2], y[:, None], PRECISION, flip)[0, 0]
    assert got == wanted


def test_the_rest_is_as_it_was(rng: np.random.Generator) -> None:
    """Leave other functions unchanged to the bit."""
    caught = set(
        "gemm symm hemm syrk herk syr2k her2k trmm gemv symv hemv trmv dot dotu"
        " dotc".split()
    )
    names = {
        "axpy": lambda kind: (v(kind), v(kind)),
        "ger": lambda kind: (1, v(kind), v(kind)),
        "geru": lambda kind: (1, v(kind), v(kind)),
        "gerc": lambda kind: (1, v(kind), v(kind)),
        "scal": lambda kind: (2, v(kind)),
        "nrm2": lambda kind: (v(kind),),
        "asum": lambda kind: (v(kind),),
        "trsm": lambda kind: (1, t(kind), m(kind)),
        "trsv": lambda kind: (t(kind), v(kind)),
        "syr": lambda kind: (1, v(kind)),
    }

    def v(kind: str) -> Array:
        return draw(np.random.default_rng(1), kind, 9)

    def m(kind: str) -> Array:
        return draw(np.random.default_rng(2), kind, 9, 9)

    def t(kind: str) -> Array:
        return np.asarray(m(kind) + 9 * np.eye(9, dtype=m(kind).dtype))

    seen = 0
    for kind, (name, arguments) in product("sdcz", names.items()):
        function = getattr(blas, kind + name, None)
        if function is None:
            continue
        assert name not in caught
        own = function(*arguments(kind))
        with td.matmul_precision("bf16", **ALL):
            assert np.asarray(function(*arguments(kind))).tobytes() == (
                np.asarray(own).tobytes()
            )
        seen += 1
    assert seen >= 25


def test_wrong_arguments_are_the_librarys_to_refuse(rng: np.random.Generator) -> None:
    a = draw(rng, "s", 3, 4)
    for function, arguments in (
        (blas.sgemm, (1, a, a)),
        (blas.sgemv, (1, a, a[:, 0])),
        (blas.sdot, (a[0], a[1], 9)),
        (blas.sgemm, (1, a, a.T, 0, a)),
    ):
        with pytest.raises(Exception) as own:  # noqa: PT011
            function(*arguments)
        with (
            td.matmul_precision("bf16", **ALL),
            pytest.raises(type(own.value)) as same_error,
        ):
            function(*arguments)
        assert str(same_error.value) == str(own.value)


# -- cython_blas -----------------------------------------------------------------------


def c_function(name: str, returns: Any = None) -> Any:
    """Return a function as scikit-learn, numba and others get it."""
    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(returns)(address)


def make(call: Call, returns: Any = None) -> Any:
    """Call Fortran's interface without the GIL."""
    pointers = [
        ctypes.c_char_p(word) if isinstance(word, bytes)
        else ctypes.c_void_p(word.ctypes.data)
        for word in call.words
    ]  # fmt: skip
    return c_function(call.symbol.rstrip("_"), returns)(*pointers)


@pytest.mark.parametrize("kind", "sdcz")
def test_c_gemm(kind: str, rng: np.random.Generator) -> None:
    a, b, c = draw(rng, kind, 5, 40), draw(rng, kind, 7, 40), draw(rng, kind, 5, 7)
    call = Call("gemm", kind, FORTRAN)
    call.option("trans", "N")
    call.option("trans", "C")
    for size in (5, 7, 40):
        call.integer(size)
    call.scalar(ALPHA[kind])
    call.matrix(a)
    call.matrix(b)
    call.scalar(BETA)
    where = call.matrix(c)
    with td.matmul_precision("tf32", **ALL):
        make(call)
    flip = "b" if kind in "cz" else ""
    product_ = sums(a, b.T, {"precision": "tf32"}, flip)
    where.expect(updated(ALPHA[kind], product_, BETA, c))


@pytest.mark.parametrize("kind", "sd")
def test_c_syrk_symm_trmm(kind: str, rng: np.random.Generator) -> None:
    a, b, c = draw(rng, kind, 5, 5), draw(rng, kind, 5, 7), draw(rng, kind, 5, 5)
    calls = []
    for routine in ("syrk", "symm", "trmm"):
        call = Call(routine, kind, FORTRAN)
        if routine != "syrk":
            call.option("side", "L")
        call.option("uplo", "L")
        if routine != "symm":
            call.option("trans", "N")
        if routine == "trmm":
            call.option("diag", "N")
        call.integer(5)
        call.integer(7)
        call.scalar(ALPHA[kind])
        where = call.matrix(b if routine == "syrk" else a)
        if routine != "syrk":
            where = call.matrix(b)
        if routine != "trmm":
            call.scalar(BETA)
            where = call.matrix(c if routine == "syrk" else b)
        calls.append((call, where))
    with td.matmul_precision("bf16", **ALL):
        for call, _ in calls:
            make(call)
    products = (
        (sums(b, b.T, PRECISION), BETA, c, half(c, "L")),
        (sums(mirrored(a, "L", False), b, PRECISION), BETA, b, True),
        (sums(triangular(a, "L", False), b, PRECISION), 0, b, True),
    )
    for (_, where), (sum_, beta, old, mask) in zip(calls, products, strict=True):
        where.expect(updated(ALPHA[kind], sum_, beta, old), mask)


@pytest.mark.parametrize("kind", "sd")
def test_c_gemv_dot(kind: str, rng: np.random.Generator) -> None:
    a, x, y = draw(rng, kind, 5, 40), draw(rng, kind, 40), draw(rng, kind, 5)
    gemv, dot = Call("gemv", kind, FORTRAN), Call("dot", kind, FORTRAN)
    gemv.option("trans", "N")
    gemv.integer(5)
    gemv.integer(40)
    gemv.scalar(ALPHA[kind])
    gemv.matrix(a)
    gemv.vector(x, 2)
    gemv.scalar(BETA)
    where = gemv.vector(y, -1)
    dot.integer(40)
    dot.vector(x, 1)
    dot.vector(a[0], 1)
    with td.matmul_precision("bf16", **ALL):
        make(gemv)
        value = make(dot, {"s": ctypes.c_float, "d": ctypes.c_double}[kind])
    product_ = sums(a, x[:, None], PRECISION)[:, 0]
    where.expect(updated(ALPHA[kind], product_, BETA, y))
    assert value == sums(x[None], a[0][:, None], PRECISION)[0, 0]


def test_a_pointer_that_was_taken_before(rng: np.random.Generator) -> None:
    """Intercept SciPy's functions, which end in a slot, also if looked up before."""
    x, y = draw(rng, "s", 40), draw(rng, "s", 40)
    dot = c_function("sdot", ctypes.c_float)
    n, one = ctypes.byref(ctypes.c_int(40)), ctypes.byref(ctypes.c_int(1))
    pointers = [ctypes.c_void_p(z.ctypes.data) for z in (x, y)]
    own = dot(n, pointers[0], one, pointers[1], one)
    with td.matmul_precision("bf16", **ALL):
        value = dot(n, pointers[0], one, pointers[1], one)
    assert value == sums(x[None], y[:, None], PRECISION)[0, 0]
    assert own == dot(n, pointers[0], one, pointers[1], one) != value
