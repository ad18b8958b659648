"""A precision: its names and keywords, dtypes, td.matmul, rejected arguments."""

from __future__ import annotations

import doctest
import os
from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import python
from tests.support.precision_switch import (
    OWN,
    PLAIN,
    ROUNDED,
    SQUARE,
    A,
    Array,
    B,
    is_own,
    random,
    same,
    typed,
)
from tf32dtype._checks import bounded_matmul
from tf32dtype._matmul import precisions
from tf32dtype._matmul.precisions import PRECISIONS
from tf32dtype._programs import context

pytestmark = pytest.mark.usefixtures("own_numpy")


@pytest.mark.parametrize("mode", PRECISIONS, ids=lambda mode: mode.short)
def test_names(mode: Any) -> None:
    wanted = td.matmul(A, B, precision=mode.short)
    assert same(td.matmul(A, B, precision=mode.preset), wanted)
    with td.matmul_precision(mode.preset):
        assert same(A @ B, wanted)
        assert same(np.dot(A, B), wanted)
    td.set_matmul_precision(mode.short)
    try:
        assert same(A @ B, wanted)
    finally:
        td.set_matmul_precision(None)


@pytest.mark.parametrize("rounding", ["ties_to_even", "ties_to_away", "toward_zero"])
def test_tf32_and_its_roundings(rounding: Any) -> None:
    a, b = (td.quantize(x, "tf32", rounding=rounding) for x in (A, B))
    wanted = np.matmul(a, b, dtype=np.float32)
    with td.matmul_precision("tf32", rounding=rounding):
        assert same(A @ B, wanted)
    assert same(td.matmul(A, B, precision="tf32", rounding=rounding), wanted)


@pytest.mark.parametrize(
    ("short", "largest"), [("fp8_e4m3", 448.0), ("fp8_e5m2", 57344.0)]
)
@pytest.mark.parametrize("scale", ["tensor", "row"])
def test_fp8_where_all_scales_are_one(short: str, largest: float, scale: Any) -> None:
    a, b = A.copy(), B.copy()
    a[:, 3], b[4, :] = largest, largest
    wanted = typed(a, b, td.formats[short].type)
    with td.matmul_precision(short, scale=scale):
        assert same(a @ b, wanted)


def test_scales_are_those_of_matrices_or_of_rows() -> None:
    a, b = random(2, 3, 40), random(40, 4)
    a[0] *= 1000
    a[1, 1] *= 1000
    whole = td.matmul(a, b, precision="fp8_e4m3")
    for i in range(2):
        assert same(whole[i], td.matmul(a[i], b, precision="fp8_e4m3"))
    rows = td.matmul(a, b, precision="fp8_e4m3", scale="row")
    for i, j in product(range(2), range(3)):
        row = td.matmul(a[i, j], b, precision="fp8_e4m3", scale="row")
        assert same(rows[i, j], row)
    assert not same(whole, rows)


def test_float64() -> None:
    a, b = A.astype(np.float64), B.astype(np.float64) + 1e-12
    with td.matmul_precision("bf16"):
        assert same(a @ b, OWN["dot"](a, b))
        assert same(np.dot(a, b), OWN["dot"](a, b))
    with td.matmul_precision("bf16", float64=True):
        wanted = typed(a.astype(np.float32), b.astype(np.float32)).astype(np.float64)
        assert same(a @ b, wanted)
        assert same(A @ b, wanted)
        assert same(np.dot(a, b), wanted)
        assert same(np.dot(a.tolist(), b.tolist()), wanted)
        assert same(np.matvec(a, b[:, 0]), wanted[:, 0].copy())
        assert same(np.vecdot(a[0], b[:, 0]), wanted[0, 0])
        assert same(np.vdot(a[0], b[:, 0]), wanted[0, 0])
        assert same(np.vecmat(a[0], b), wanted[0].copy())
        assert same(A @ B, ROUNDED)
        assert same(np.matmul(A, B, dtype=np.float64), typed(A, B).astype(np.float64))


def complex_product(a: Array, b: Array, conjugated: bool = False) -> Array:
    rr, ii = typed(a.real, b.real), typed(a.imag, b.imag)
    ri, ir = typed(a.real, b.imag), typed(a.imag, b.real)
    result = np.empty(rr.shape, np.complex64)
    result.real = rr + ii if conjugated else rr - ii
    result.imag = ri - ir if conjugated else ri + ir
    return result


def test_complex64() -> None:
    a, b = random(7, 300, dtype=np.complex64), random(300, 5, dtype=np.complex64)
    wanted, conjugated = complex_product(a, b), complex_product(a, b, True)
    own = a @ b
    with td.matmul_precision("bf16", float64=True):
        assert same(a @ b, own)
    with td.matmul_precision("bf16", complex64=True):
        assert same(a @ b, wanted)
        assert same(np.asfortranarray(a) @ b[:, ::-1], wanted[:, ::-1].copy())
        assert same(np.stack([a, a]) @ b, np.stack([wanted, wanted]))
        assert same(np.dot(a, b), wanted)
        assert same(np.dot(a[0], b[:, 0]), wanted[0, 0])
        assert same(np.inner(a, b.T), wanted)
        assert same(np.matvec(a, b[:, 1]), wanted[:, 1].copy())
        assert same(np.vecmat(a[1], b), conjugated[1].copy())
        assert same(np.vecdot(a[1], b[:, 2]), conjugated[1, 2])
        assert same(np.vdot(a[1], b[:, 2]), conjugated[1, 2])
        out = np.empty((14, 15), np.complex64)[::2, ::3]
        np.matmul(a, b, out=out)
        assert same(out.copy(), wanted)
        real = complex_product(A.astype(np.complex64), b)
        assert same(A @ b, real)
        assert (a[:, :0] @ b[:0]).tobytes() == bytes(7 * 5 * 8)
    nan = np.full((1, 1), np.nan - 1j, np.complex64)
    with td.matmul_precision("bf16", complex64=True):
        bits = (nan @ nan).view(np.uint32)
    assert bits.tolist() == [[0x7FC00000, 0x7FC00000]]


def test_complex64_raises_what_its_sums_raise() -> None:
    large = np.full((1, 1), 3e38 * (1 - 1j), np.complex64)
    half = np.full((1, 1), 0.9, np.complex64)
    with td.matmul_precision("f32", complex64=True):
        with np.errstate(all="raise"):
            assert np.isfinite(large @ half)
        with (
            pytest.raises(FloatingPointError, match="overflow"),
            np.errstate(over="raise"),
        ):
            large @ (half * (1 + 1j))
        infinite = np.full((1, 1), np.inf, np.complex64)
        with (
            pytest.raises(FloatingPointError, match="invalid"),
            np.errstate(invalid="raise"),
        ):
            infinite @ infinite  # Inf * 0


def test_floating_point_errors() -> None:
    large = np.full((1, 2), 3e38, np.float32)
    with td.matmul_precision("f32"), np.errstate(over="ignore"):
        assert np.isinf(large @ large.T)
    with td.matmul_precision("f32"), np.errstate(over="raise"):
        for call in ("large @ large.T", "np.dot(large, large.T)"):
            with pytest.raises(
                FloatingPointError, match="overflow encountered in matmul"
            ):
                eval(call, {"np": np, "large": large})
    with pytest.raises(FloatingPointError), np.errstate(over="raise"):
        td.matmul(large, large.T, precision="bf16x9")
    with td.matmul_precision("bf16"), np.errstate(all="raise"):
        A @ B  # rounding raises no error


# -- td.matmul -----------------------------------------------------------------


def test_matmul() -> None:
    assert same(td.matmul(A, B), PLAIN)
    assert same(td.matmul(A, B, precision="bf16"), ROUNDED)
    assert np.dot is OWN["dot"]
    assert same(td.matmul(A[0], B[:, 0], precision="bf16"), ROUNDED[0, 0])
    assert same(td.matmul(A[0].tolist(), B, dtype=None), np.matmul(A[0].tolist(), B))
    with td.matmul_precision("bf16"):
        assert same(td.matmul(A, B), ROUNDED)
        tf32 = typed(A, B, td.tf32)
        assert same(td.matmul(A, B, precision="tf32"), tf32)
        assert same(A @ B, ROUNDED)
    assert same(td.matmul(A.astype(">f4"), B, precision="bf16"), ROUNDED)
    half = A.astype(np.float16)
    assert same(
        td.matmul(half, B, precision="f32"),
        td.matmul(half.astype("f"), B, precision="f32"),
    )
    assert type(td.matmul(A.view(np.matrix), B, precision="bf16")) is np.matrix


@pytest.mark.parametrize(
    "dtype", [td.bfloat16, td.float8_e4m3fn, np.float16, "f8", "D"]
)
def test_matmul_rounds_to_a_dtype(dtype: Any) -> None:
    wanted = ROUNDED.astype(dtype)
    assert same(td.matmul(A, B, precision="bf16", dtype=dtype), wanted)
    with td.matmul_precision("bf16"):
        assert same(td.matmul(A, B, dtype=dtype), wanted)
        scalar = td.matmul(A[0], B[:, 0], dtype=dtype)
    assert scalar.dtype == dtype
    assert np.asarray(scalar).tobytes() == wanted[0, 0].tobytes()
    out = np.empty((7, 5), dtype)
    assert td.matmul(A, B, precision="bf16", dtype=dtype, out=out) is out
    assert same(out, wanted)


def test_matmul_without_a_precision_is_numpys() -> None:
    a, b = A.astype(td.bfloat16), B.astype(td.bfloat16)
    assert same(td.matmul(a, b), a @ b)
    assert same(td.matmul(a, b, dtype=np.float32), ROUNDED)
    double = np.matmul(A, B, dtype=np.float64)
    assert same(td.matmul(A, B, dtype=np.float64), double)
    with td.matmul_precision("bf16"):
        assert same(td.matmul(a, b, dtype=np.float32), ROUNDED)
        doubles = A.astype(float), B.astype(float)
        assert same(td.matmul(*doubles, dtype=np.float64), doubles[0] @ doubles[1])
    with pytest.raises(ValueError, match="rounding"):
        td.matmul(A, B, rounding="toward_zero")


def test_matmul_into_an_out() -> None:
    out = np.empty((7, 5), np.float32)
    assert td.matmul(A, B, precision="bf16", out=out) is out
    assert same(out, ROUNDED)
    wide = np.empty((14, 10), np.float64)
    td.matmul(A, B, precision="bf16", out=wide[::-2, ::2])
    assert same(wide[::-2, ::2].copy(), ROUNDED.astype(np.float64))
    overlap = SQUARE.copy()
    td.matmul(overlap, overlap.T, precision="bf16", out=overlap)
    assert same(overlap, typed(SQUARE, SQUARE.T))
    overlap = SQUARE.copy()
    with td.matmul_precision("bf16"):
        np.matmul(overlap[::-1], overlap, out=overlap)
    assert same(overlap, typed(SQUARE[::-1], SQUARE))
    with pytest.raises(ValueError, match=r"out|dimension"):
        td.matmul(A, B, precision="bf16", out=np.empty((7, 4), np.float32))
    for shape in ((7, 4), (2, 7, 5), (7, 1)):
        with pytest.raises(ValueError, match="out must have the shape of the"):
            td.matmul(A, B, precision="bf16", dtype="f8", out=np.empty(shape))
    with pytest.raises(TypeError):
        td.matmul(A, B, precision="bf16", out=np.empty((7, 5), np.int32))
    with pytest.raises(TypeError):
        td.matmul(A, B, precision="bf16", dtype="f8", out=np.empty((7, 5), np.int32))


def test_wrong_operands() -> None:
    for x, y in (
        (A.astype(float), B),
        (A, B.astype(np.complex64)),
        (A.astype(np.int32), B),
        (A.astype(np.float16), B.astype(np.float16)),
        (A > 0, B > 0),
    ):
        names = f"{x.dtype} and {y.dtype}"
        with pytest.raises(TypeError, match=f"got {names}"):
            td.matmul(x, y, precision="bf16")
    for x, y in ((A.astype(td.bfloat16), B), (A, B.astype(td.tf32))):
        with pytest.raises(TypeError, match=r"must be float32 .*; got (bfloat16|tf32)"):
            td.matmul(x, y, precision="bf16")
    with pytest.raises(TypeError):
        td.matmul(A, np.array(["x"]), precision="bf16")
    with pytest.raises(TypeError, match="int32"):
        td.matmul(A, B, precision="bf16", dtype=np.int32)
    for x, y in ((A, A), (A, np.float32(1)), (1.0, B)):
        with pytest.raises((ValueError, TypeError)):
            td.matmul(x, y, precision="bf16")


MAKERS: list[Callable[..., Any]] = [
    lambda *a, **k: td.matmul(A, B, **({"precision": a[0]} | k)),
    td.matmul_precision,
    td.set_matmul_precision,
]


@pytest.mark.parametrize("make", MAKERS, ids=["matmul", "block", "process"])
def test_wrong_arguments(make: Callable[..., Any]) -> None:
    for name in ("bogus", "BF17", "", "f32 ", 16, ["bf16"], np.float32):
        with pytest.raises(
            ValueError, match=r"must be one of td\.typing\.PrecisionName; got "
        ) as e:
            make(name)
        assert repr(name) in str(e.value)
    with pytest.raises(ValueError, match="Did you mean bf16"):
        make("bf16x2")
    for keywords in (
        {"rounding": "toward_zero"},
        {"scale": "row"},
        {"special_values": "saturate"},
    ):
        ((keyword, value),) = keywords.items()
        for mode in [None, *(mode.short for mode in PRECISIONS)]:
            fits = {
                "rounding": mode == "tf32",
                "scale": mode in ("fp8_e4m3", "fp8_e5m2"),
                "special_values": mode is not None and "x" in mode,
            }
            if not fits[keyword]:
                with pytest.raises(
                    ValueError, match=f"{keyword}='{value}' must be given"
                ):
                    make(mode, **keywords)
    for keywords in ({"rounding": "up"}, {"scale": 1}, {"special_values": None}):
        with pytest.raises(ValueError, match=f"{next(iter(keywords))} must be"):
            make("bf16", **keywords)
    with pytest.raises(TypeError):
        make("bf16", bogus=1)
    assert is_own()


@pytest.mark.parametrize("module", [context, bounded_matmul])
def test_examples(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


# -- memory --------------------------------------------------------------------

SHORT_OF_MEMORY = """
import resource
import numpy as np, tf32dtype as td

def short(function, *arguments, **keywords):
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 20), resource.RLIM_INFINITY))
    try:
        function(*arguments, **keywords)
    except MemoryError:
        print("MemoryError", end=" ")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)

shape = 300, 300
for dtype in "fdF":
    a = np.ones(shape, dtype)
    precision = td.matmul_precision("bf16x9", float64=True, complex64=True)
    outs = np.full(shape, 7, dtype), np.full(shape, 7, "D"), a
    for mode in ("ignore", "warn", "raise"):
        for out in outs:
            before = out.copy()
            with precision, np.errstate(all=mode):
                short(np.matmul, a, a, out=out)
            assert np.array_equal(out, before), dtype
single = np.ones(shape, "f")
out = np.full(shape, 7, "f")
with td.matmul_precision("bf16"):
    short(np.dot, single, single, out=out)
    short(np.tensordot, single, single, 1)
short(td.matmul, single, single, precision="tf32", out=out)
short(td.matmul, single, single, precision="tf32", dtype="d", out=out)
assert (out == 7).all()
with precision:
    assert (a[:9] @ a[:, :9] == 300).all()
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux has it")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="it reports short memory")
def test_when_memory_is_short() -> None:
    # More threads would need more memory.
    done = python("-c", SHORT_OF_MEMORY, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["MemoryError"] * 31


@pytest.mark.parametrize("precision", ["bf16", "f32", "tf32", "bf16x9", "fp8_e4m3"])
def test_out_may_be_an_operand(precision: str) -> None:
    rng = np.random.default_rng(7)
    for shape in ((300, 300), (64, 64), (2, 2)):
        a, b = (rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
        wanted = td.matmul(a, b, precision=precision)
        for x, y in ((a.copy(), b), (a, b.copy())):
            out = x if x is not a else y
            assert td.matmul(x, y, precision=precision, out=out) is out
            assert same(out, wanted)
    large = np.full((2, 2), 3e38, np.float32)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        td.matmul(large, np.full((2, 2), 2, np.float32), precision="f32", out=large)


def test_results_that_are_no_floats() -> None:
    for dtype in ("S3", "U4", "V4", object, np.int32, "M8[s]", bool):
        with pytest.raises(TypeError, match="must be a floating-point dtype"):
            td.matmul(A, B, precision="bf16", dtype=dtype)
    with pytest.raises(TypeError, match="out must be an array"):
        td.matmul(A, B, precision="bf16", dtype=np.float16, out=[1])
    out = np.empty((7, 5), np.float16)
    assert td.matmul(A, B, precision="bf16", dtype=np.float16, out=(out,)) is out


def test_complex128() -> None:
    """Compute complex128 with both keywords: float64 products, added in float64."""
    a, b = random(7, 300, dtype=np.complex128), random(300, 5, dtype=np.complex128)

    def wide(x: Array, y: Array) -> Array:
        return typed(x.astype(np.float32), y.astype(np.float32)).astype(np.float64)

    def product(x: Array, y: Array, sign: int = 1) -> Array:
        result = np.empty((len(x), y.shape[1]), np.complex128)
        result.real = wide(x.real, y.real) - sign * wide(x.imag, y.imag)
        result.imag = wide(x.real, y.imag) + sign * wide(x.imag, y.real)
        return result

    own, wanted, conjugated = a @ b, product(a, b), product(a, b, -1)
    for keyword in ("float64", "complex64"):
        with td.matmul_precision("bf16", **{keyword: True}):
            assert same(a @ b, own)
    with td.matmul_precision("bf16", float64=True, complex64=True):
        assert same(a @ b, wanted)
        assert same(np.dot(a, b), wanted)
        assert same(np.inner(a, b.T), wanted)
        assert same(np.matvec(a, b[:, 1]), wanted[:, 1].copy())
        assert same(np.vecmat(a[1], b), conjugated[1].copy())
        assert same(np.vecdot(a[1], b[:, 2]), conjugated[1, 2])
        assert same(np.vdot(a[1], b[:, 2]), conjugated[1, 2])
        assert same(A.astype(np.complex64) @ b, product(A.astype(np.complex64), b))


def test_settings_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check equal settings only once; True is not 1."""
    looked: list[Any] = []
    resolve = precisions.resolve
    monkeypatch.setattr(precisions, "resolve", lambda x: looked.append(x) or resolve(x))
    usual = precisions.Settings("bf16x9", min_size=12345)
    for _ in range(3):
        precisions.check(*usual)
    assert looked == [usual]
    for _ in range(2):
        with pytest.raises(TypeError, match="float64 must be True or False"):
            precisions.check(*usual._replace(float64=1))
