"""Unread operands, overlap, Inf and NaN next to a triangle, flags, failures."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from tests.programs.blas.calls import (
    DTYPES,
    FORMS,
    PRECISIONS,
    Array,
    Call,
    draw,
    half,
    only,
    spec_of,
    sums,
    triangular,
    updated,
)

BF16 = {"precision": "bf16"}
F32 = {"precision": "f32"}


def gemm(
    kind: str,
    a: Array,
    b: Array,
    c: Array,
    alpha: complex = 1,
    beta: complex = 0,
    form: Any = FORMS[0],
) -> tuple[Call, Any]:
    call = Call("gemm", kind, form)
    call.option("trans", "N")
    call.option("trans", "N")
    for size in (*c.shape, a.shape[1]):
        call.integer(size)
    call.scalar(alpha)
    call.matrix(a)
    call.matrix(b)
    call.scalar(beta)
    return call, call.matrix(c)


@pytest.mark.parametrize("kind", "sdcz")
def test_what_is_not_read(kind: str) -> None:
    """Ignore NaN in C if beta is 0, and in A and B if alpha is 0."""
    rng = np.random.default_rng(1)
    a, b, c = draw(rng, kind, 4, 6), draw(rng, kind, 6, 5), draw(rng, kind, 4, 5)
    nothing = np.full_like(c, np.nan)
    for precision in PRECISIONS:
        for alpha in (1, -2):
            call, where = gemm(kind, a, b, nothing, alpha)
            assert call.compute(precision) == 0
            where.expect(updated(alpha, sums(a, b, precision), 0, c))
        call, where = gemm(kind, a * np.nan, b * np.nan, c, 0, 2)
        assert call.compute(precision) == 0
        where.expect(2 * c)
        for x, y, alpha in ((a * np.nan, b, 0), (a[:, :0], b[:0], 1)):
            call, where = gemm(kind, x, y, nothing, alpha, 0)
            assert call.compute(precision) == 0
            where.expect(np.zeros_like(c))
        call, where = gemm(kind, a[:, :0], b[:0], c, 3, 0.5)
        assert call.compute(precision) == 0
        where.expect(c / 2)
        call, where = gemm(kind, a * np.nan, b, c, 0, 1)
        assert call.compute(precision) == 0
        where.expect(c)


@pytest.mark.parametrize("kind", "sdcz")
@pytest.mark.parametrize("routine", ["syrk", "gemmt"])
def test_other_triangle(routine: str, kind: str) -> None:
    """Read only one triangle of C, also in blocks, and none if beta is 0."""
    rng = np.random.default_rng(2)
    n, k = 600, 5
    a = draw(rng, kind, n, k)
    for form, precision, uplo in zip(
        cycle(FORMS), PRECISIONS, cycle("UL"), strict=False
    ):
        call = Call(routine, kind, form)
        call.option("uplo", uplo)
        call.option("trans", "N")
        if routine == "gemmt":
            call.option("trans", "T")
        call.integer(n)
        call.integer(k)
        call.scalar(1)
        call.matrix(a)
        if routine == "gemmt":
            call.matrix(a)
        call.scalar(0)
        where = call.matrix(np.full((n, n), np.nan, DTYPES[kind]))
        assert call.compute(precision) == 0
        result = sums(a, a.T, precision)
        where.expect(result, half(result, uplo))


@pytest.mark.parametrize("kind", "sdcz")
def test_overlap(kind: str) -> None:
    """Compute as if all operands were read before anything is written."""
    rng = np.random.default_rng(3)
    n = 6
    for precision in PRECISIONS:
        for alpha, beta in ((1, 0), (0.5, 0), (1, 1), (2, -1)):
            for shift in (0, 3, 7):
                memory = draw(rng, kind, n * n + 10)
                b = draw(rng, kind, n, n)
                x = memory[: n * n].reshape(n, n).T.copy()
                y = memory[shift : shift + n * n].reshape(n, n).T.copy()
                for swap in (False, True):
                    pieces = memory.copy()
                    pair = [pieces, np.asfortranarray(b)]
                    call = Call("gemm", kind, FORMS[0])
                    call.option("trans", "N")
                    call.option("trans", "N")
                    for _ in range(3):
                        call.integer(n)
                    call.scalar(alpha)
                    for operand in pair[::-1] if swap else pair:
                        call.words.append(operand)
                        call.integer(n)
                    call.scalar(beta)
                    call.words.append(pieces[shift:])
                    call.integer(n)
                    assert call.compute(precision) == 0
                    result = sums(b, x, precision) if swap else sums(x, b, precision)
                    want = memory.copy()
                    want[shift : shift + n * n] = updated(
                        alpha, result, beta, y
                    ).T.ravel()
                    assert pieces.tobytes() == want.tobytes()


@pytest.mark.parametrize("kind", "sdcz")
def test_vector_is_result_too(kind: str) -> None:
    rng = np.random.default_rng(4)
    a, x = draw(rng, kind, 5, 5), draw(rng, kind, 5)
    call = Call("gemv", kind, FORMS[3])
    call.option("trans", "N")
    call.integer(5)
    call.integer(5)
    call.scalar(1)
    call.matrix(a)
    where = call.vector(x, -2)
    call.scalar(0)
    call.words.append(where.memory)
    call.integer(-2)
    assert call.compute(BF16) == 0
    where.expect(sums(a, x[:, None], BF16)[:, 0])


@pytest.mark.parametrize("kind", "sdcz")
def test_bits_of_nan(kind: str) -> None:
    """Return the same NaN with scratch memory, which alpha = 2 needs."""
    a, b = one(np.nan, kind), one(1, kind)
    for precision in PRECISIONS:
        for alpha in (1, 2):
            call, where = gemm(kind, a, b, one(0, kind), alpha)
            assert call.compute(precision) == 0
            where.expect(sums(a, b, precision))


# -- a triangle's zeros ----------------------------------------------------------------

LARGE = [np.inf, -np.inf, np.nan]


def without(x: Array, zeros: Array, scaled: bool) -> Array:
    """Zero a line of the other operand where it meets the triangle's zeros."""
    x = x.copy()
    parts = x.view(x.real.dtype).reshape(len(x), -1)
    with np.errstate(over="ignore"):
        finite = np.isfinite(parts.astype(np.float32))
    parts[zeros[:, None] & (~finite | (not scaled))] = 0
    return x


@pytest.mark.parametrize("kind", "sdcz")
@pytest.mark.parametrize(
    "precision",
    [
        *PRECISIONS,
        {"precision": "f16"},
        {"precision": "f32"},
        {"precision": "bf16x9", "special_values": "saturate"},
    ],
    ids=str,
)
def test_infinities_beside_a_triangle(precision: dict[str, Any], kind: str) -> None:
    """Ignore the other triangle, as BLAS does not read it: no NaN from 0 * Inf."""
    rng = np.random.default_rng(5)
    m, n = 5, 4
    scaled = precision["precision"].startswith("fp8")
    large = [*LARGE, 1e5, *([1e300] if kind in "dz" else [])]  # Inf in f16, in float32
    for side in "LR":
        for uplo in "UL":
            a = draw(rng, kind, *((m, m) if side == "L" else (n, n)))
            b = draw(rng, kind, m, n)
            for number, value in enumerate(large):
                b[rng.integers(m), number % n] = value
            call = Call("trmm", kind, FORMS[4])
            for group, letter in (
                ("side", side), ("uplo", uplo), ("trans", "N"), ("diag", "N")
            ):  # fmt: skip
                call.option(group, letter)
            call.integer(m)
            call.integer(n)
            call.scalar(1)
            call.matrix(only(a, uplo))
            where = call.matrix(b)
            assert call.compute(precision) == 0
            full = triangular(a, uplo, False)
            want = np.empty_like(b)
            if side == "L":
                for i in range(m):
                    zeros = ~half(a, uplo)[i]
                    columns = [without(x, zeros, scaled) for x in b.T]
                    want[i] = sums(full, np.array(columns).T, precision)[i]
            else:
                for j in range(n):
                    zeros = ~half(a, uplo)[:, j]
                    rows = [without(x, zeros, scaled) for x in b]
                    want[:, j] = sums(np.array(rows), full, precision)[:, j]
            where.expect(updated(1, want, 0, b))


def special(rng: np.random.Generator, kind: str, shape: Any, share: float) -> Array:
    """Draw numbers with a share of Inf and NaN; one column has only Inf."""
    x = draw(rng, kind, *shape)
    x[rng.random(shape) < share] = np.inf
    x[rng.random(shape) < share / 4] = -np.inf
    x[rng.random(shape) < share / 4] = np.nan
    x[:, 3] = np.inf
    x[:, 5:7] = draw(rng, kind, len(x), 2)
    x[len(x) // 3, 6] = -np.inf
    return x


@pytest.mark.sampled(8)
@pytest.mark.parametrize("share", [0.002, 0.02, 0.3])
@pytest.mark.parametrize("side", "LR")
@pytest.mark.parametrize("uplo", "UL")
@pytest.mark.parametrize("kind", "sdcz")
@pytest.mark.parametrize("precision", PRECISIONS, ids=str)
def test_many_infinities_beside_a_triangle(
    precision: dict[str, Any], kind: str, uplo: str, side: str, share: float
) -> None:
    """Compute lines in blocks of 64 and 8, and one by one, with the right flags."""
    rng = np.random.default_rng(7)
    n, others = 75, 9
    a, b = draw(rng, kind, n, n), special(rng, kind, (n, others), share)
    a[5, 4], a[60, 60] = 0, np.nan
    b = b if side == "L" else b.T
    call = Call("trmm", kind, FORMS[4])
    for group, letter in (
        ("side", side),
        ("uplo", uplo),
        ("trans", "N"),
        ("diag", "N"),
    ):
        call.option(group, letter)
    call.integer(b.shape[0])
    call.integer(b.shape[1])
    call.scalar(1)
    call.matrix(only(a, uplo))
    where = call.matrix(b)
    flags = raised(call, precision)
    full = triangular(a, uplo, False)
    scaled = precision["precision"].startswith("fp8")
    want = np.empty_like(b)
    invalid = False
    for i in range(n):
        zeros = ~half(a, uplo)[i] if side == "L" else ~half(a, uplo)[:, i]
        lines = np.array(
            [without(x, zeros, scaled) for x in (b.T if side == "L" else b)]
        )
        if side == "L":
            want[i] = sums(full, lines.T, precision)[i]
            found, line = want[i], full[i]
        else:
            want[:, i] = sums(lines, full, precision)[:, i]
            found, line = want[:, i], full[:, i]
        from_nan = np.isnan(lines).any(1) | np.isnan(line).any()
        invalid |= (np.isnan(found) & ~from_nan).any()
    where.expect(updated(1, want, 0, b))
    assert ("invalid" in flags) == invalid


# -- flags and failures ----------------------------------------------------------------

FLAGS = {"x86_64": {1: "invalid", 8: "over"}, "aarch64": {1: "invalid", 4: "over"}}


def raised(call: Call, precision: dict[str, Any]) -> set[str]:
    """Return the flags that a call raises."""
    names = FLAGS.get(platform.machine())
    libm = ctypes.CDLL(None)
    if names is None or not hasattr(libm, "fetestexcept"):
        pytest.skip("flags of this machine are not known here")
    made, spec = call.made(), spec_of(**precision)
    libm.feclearexcept(sum(names))
    status = made.compute(spec)[0]
    found = libm.fetestexcept(sum(names))
    libm.feclearexcept(sum(names))
    assert status == 0
    return {name for bit, name in names.items() if found & bit}


def one(number: complex, kind: str) -> Array:
    return np.full((1, 1), number, DTYPES[kind])


@pytest.mark.parametrize("kind", "sdcz")
def test_flags(kind: str) -> None:
    big, inf = one(3e38, kind), one(np.inf, kind)
    cases = [
        (one(2, kind), one(3, kind), one(1, kind), 1, 1, set()),
        (big, one(2, kind), one(0, kind), 1, 0, {"over"}),
        (inf, one(2, kind), one(0, kind), 1, 0, set()),
        (inf, one(0, kind), one(0, kind), 1, 0, {"invalid"}),
        (one(np.nan, kind), one(0, kind), one(0, kind), 1, 0, set()),
        (one(1, kind), one(1, kind), one(np.nan, kind), 1, 1, set()),
        (one(1, kind), one(1, kind), one(1, kind), np.inf, 1, set()),
        (one(1, kind), one(1, kind), one(1, kind), 1, np.inf, set()),
        (one(0, kind), one(1, kind), one(1, kind), np.inf, 1, {"invalid"}),
    ]
    most = np.finfo(DTYPES[kind]).max
    cases.append((one(1, kind), one(1, kind), one(most, kind), 1, 2, {"over"}))
    for a, b, c, alpha, beta, want in cases:
        if kind in "cz" and np.isinf([a.item(), alpha, beta]).any():
            continue  # (Inf + 0j) times anything is NaN, and raises invalid
        call, _ = gemm(kind, a, b, c, alpha, beta)
        assert raised(call, F32) == want, (a, b, c)


def test_zeros_of_a_triangle_raise_nothing() -> None:
    call = Call("trmv", "s", FORMS[0])
    for group, letter in (("uplo", "U"), ("trans", "N"), ("diag", "N")):
        call.option(group, letter)
    call.integer(2)
    call.matrix(np.array([[1, 2], [0, 3]], np.float32))
    where = call.vector(np.array([np.inf, 1], np.float32), 1)
    assert raised(call, F32) == set()
    where.expect(np.array([np.inf, 3], np.float32))


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="it reports short memory")
def test_memory_is_short() -> None:
    """Return -1, and write nothing."""
    c = np.ones(8)
    for rows, columns in ((1 << 40, 1 << 16), (1 << 40, 1 << 40)):
        for alpha in (1.0, 2.0):
            call = Call("gemm", "z", FORMS[3])
            call.words += [111, 111, rows, columns, 1, np.array([alpha, 0.0])]
            call.words += [c, rows, c, 1, np.zeros(2), c, rows]
            assert call.compute(BF16) == -1
    assert np.array_equal(c, np.ones(8))


def test_other_signals_wait() -> None:
    """Finish a product despite a signal, as the caller of BLAS could not be told."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers")
    rng = np.random.default_rng(6)
    a = draw(rng, "s", 8, 200_000)
    b = draw(rng, "s", 200_000, 8)
    precision = {"precision": "bf16x9"}
    want = sums(a, b, precision)
    call, where = gemm("s", a, b, np.zeros((8, 8), np.float32))
    made, spec = call.made(), spec_of(**precision)

    def compute_on_and_on() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        for _ in range(100):
            made.compute(spec)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compute_on_and_on()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    where.expect(want)
