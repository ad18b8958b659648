"""Every routine in every interface: the bits of `td.matmul`, and BLAS's rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest

from tests.programs.blas.calls import (
    DTYPES,
    EXACT,
    FORMS,
    PRECISIONS,
    Array,
    Call,
    draw,
    exact_sums,
    half,
    mirrored,
    only,
    spec_of,
    sums,
    triangular,
    updated,
)

REAL_FACTORS: list[tuple[complex, complex]] = [(1, 0), (1, 1), (-0.3, 0.7), (1.5, 0)]
FACTORS: list[tuple[complex, complex]] = [
    (1, 0), (1, 1), (-0.3 + 0.2j, 0.7 - 1j), (1.5, 0), (1 + 2j, 0), (1, 0.5),
]  # fmt: skip


Chosen = list[dict[str, Any]]


@pytest.fixture(params=[PRECISIONS, EXACT], ids=["in float32", "exact"])
def chosen(request: pytest.FixtureRequest) -> Chosen:
    precisions: Chosen = request.param
    return precisions


def factors(kind: str) -> Iterator[tuple[complex, complex]]:
    return cycle(FACTORS if kind in "cz" else REAL_FACTORS)


def flips(**letters: str) -> str:
    return "".join(name for name, letter in letters.items() if letter in "CR")


def stored(rng: Any, kind: str, trans: str, rows: int, columns: int) -> Array:
    across = trans in "TC"
    return draw(rng, kind, *((columns, rows) if across else (rows, columns)))


def transposed(x: Array, letter: str) -> Array:
    return x.T if letter in "TC" else x


def trans_of(form: Any) -> str:
    return "NTCR" if form.cblas else "NTC"


@pytest.mark.parametrize("kind", "sdcz")
@pytest.mark.parametrize("routine", ["gemm", "gemmt", "gemm_batch_strided"])
def test_gemm(routine: str, kind: str, chosen: Chosen) -> None:
    rng = np.random.default_rng(1)
    numbers, precisions = factors(kind), cycle(chosen)
    m, n, k = 5, (5 if routine == "gemmt" else 3), 9
    forms = [form for form in FORMS if form.cblas or routine != "gemm_batch_strided"]
    for form in forms:
        for transa, transb in product(trans_of(form), repeat=2):
            (alpha, beta), precision = next(numbers), next(precisions)
            uplo = rng.choice(["U", "L"])
            count = 3 if routine == "gemm_batch_strided" else 1
            a, b, c = (
                stored(rng, kind, t, *shape)
                for t, shape in ((transa, (m, k)), (transb, (k, n)), ("N", (m, n)))
            )
            call = Call(routine, kind, form)
            if routine == "gemmt":
                call.option("uplo", uplo)
            call.option("trans", transa)
            call.option("trans", transb)
            for size in (n, k) if routine == "gemmt" else (m, n, k):
                call.integer(size)
            call.scalar(alpha)
            call.matrix(a)
            if count > 1:
                call.integer(0)
            call.matrix(b)
            if count > 1:
                call.integer(0)
            call.scalar(beta)
            where = call.matrix(c)
            if count > 1:  # products add to the same C
                call.integer(0)
                call.integer(count)
            assert call.compute(precision) == 0
            x, y = transposed(a, transa), transposed(b, transb)
            result = sums(x, y, precision, flips(a=transa, b=transb))
            for _ in range(count):
                c = updated(alpha, result, beta, c)
            where.expect(c, half(c, uplo) if routine == "gemmt" else True)


@pytest.mark.parametrize("kind", "sdcz")
def test_gemm_batch(kind: str, chosen: Chosen) -> None:
    """Multiply groups of 2, 0 and 1 products."""
    rng = np.random.default_rng(2)
    sizes, groups = [2, 0, 1], [("N", "T", 3, 4, 5), ("N", "N", 1, 1, 1)]
    groups.append(("C", "N", 2, 5, 7))
    for form, precision in zip(FORMS[2:], cycle(chosen), strict=False):
        numbers = np.int64 if form.wide else np.int32
        parts = Call("gemm", kind, form)  # the owner of these matrices
        expected = []
        for size, (transa, transb, m, n, k) in zip(sizes, groups, strict=True):
            for _ in range(size):
                a, b = stored(rng, kind, transa, m, k), stored(rng, kind, transb, k, n)
                c = draw(rng, kind, m, n)
                where = [parts.matrix(x) for x in (a, b, c)]
                x, y = transposed(a, transa), transposed(b, transb)
                result = sums(x, y, precision, flips(a=transa, b=transb))
                expected.append((where, updated(0.5, result, -1, c)))
        call = Call("gemm_batch", kind, form)
        codes = {"N": 111, "T": 112, "C": 113}
        lds = [
            [
                where[i].memory.shape[1]
                for where, _ in (expected[0], expected[0], expected[2])
            ]
            for i in range(3)
        ]
        pointers = [
            np.array([where[i].memory.ctypes.data for where, _ in expected])
            for i in range(3)
        ]
        options = [np.array([codes[g[i]] for g in groups], np.int32) for i in (0, 1)]
        shapes = [np.array([g[i] for g in groups], numbers) for i in (2, 3, 4)]
        leading = [np.array(x, numbers) for x in lds]
        alpha, beta = (np.full(3, x, DTYPES[kind]) for x in (0.5, -1))
        call.words += [*options, *shapes, alpha]
        call.words += [pointers[0], leading[0], pointers[1], leading[1], beta]
        call.words += [pointers[2], leading[2]]
        call.integer(3)
        call.words.append(np.array(sizes, numbers))
        assert call.compute(precision) == 0
        for where, result in expected:
            where[2].expect(result)
        options[1][2] = 7  # BLAS rejects this: no group is computed
        before = [where[2].memory.tobytes() for where, _ in expected]
        assert call.compute(precision) == -2
        assert before == [where[2].memory.tobytes() for where, _ in expected]


@pytest.mark.parametrize(
    ("routine", "kind"),
    [*(("symm", kind) for kind in "sdcz"), ("hemm", "c"), ("hemm", "z")],
)
def test_symm(routine: str, kind: str, chosen: Chosen) -> None:
    rng = np.random.default_rng(3)
    numbers, precisions = factors(kind), cycle(chosen)
    m, n = 4, 6
    for form, side, uplo in product(FORMS, "LR", "UL"):
        (alpha, beta), precision = next(numbers), next(precisions)
        size = m if side == "L" else n
        a, b, c = (draw(rng, kind, *s) for s in ((size, size), (m, n), (m, n)))
        call = Call(routine, kind, form)
        call.option("side", side)
        call.option("uplo", uplo)
        call.integer(m)
        call.integer(n)
        call.scalar(alpha)
        call.matrix(only(a, uplo))
        call.matrix(b)
        call.scalar(beta)
        where = call.matrix(c)
        assert call.compute(precision) == 0
        full = mirrored(a, uplo, routine == "hemm")
        x, y = (full, b) if side == "L" else (b, full)
        where.expect(updated(alpha, sums(x, y, precision), beta, c))


@pytest.mark.parametrize("kind", "sdcz")
def test_trmm(kind: str, chosen: Chosen) -> None:
    """Multiply in place."""
    rng = np.random.default_rng(4)
    numbers, precisions = factors(kind), cycle(chosen)
    m, n = 4, 6
    for form, side, uplo, diag in product(FORMS, "LR", "UL", "NU"):
        for trans in trans_of(form):
            (alpha, _), precision = next(numbers), next(precisions)
            size = m if side == "L" else n
            a, b = draw(rng, kind, size, size), draw(rng, kind, m, n)
            call = Call("trmm", kind, form)
            call.option("side", side)
            call.option("uplo", uplo)
            call.option("trans", trans)
            call.option("diag", diag)
            call.integer(m)
            call.integer(n)
            call.scalar(alpha)
            call.matrix(only(a, uplo, diag == "U"))
            where = call.matrix(b)
            assert call.compute(precision) == 0
            full = transposed(triangular(a, uplo, diag == "U"), trans)
            left = side == "L"
            x, y = (full, b) if left else (b, full)
            flip = flips(**{"a" if left else "b": trans})
            where.expect(updated(alpha, sums(x, y, precision, flip), 0, b))


@pytest.mark.parametrize(
    ("routine", "kind"),
    [
        *product(("syrk", "syr2k"), "sdcz"),
        *product(("herk", "her2k"), "cz"),
    ],
)
def test_syrk(routine: str, kind: str, chosen: Chosen) -> None:
    rng = np.random.default_rng(5)
    hermitian, twice = routine.startswith("he"), routine.endswith("2k")
    numbers, precisions = factors(kind), cycle(chosen)
    n, k = 5, 7
    letters = "NC" if hermitian else "NTC" if kind in "sd" else "NT"
    for form, uplo, trans in product(FORMS, "UL", letters):
        (alpha, beta), precision = next(numbers), next(precisions)
        if hermitian:
            beta = beta.real
            alpha = alpha if twice else alpha.real
        across = trans != "N"
        a, b = (draw(rng, kind, *((k, n) if across else (n, k))) for _ in range(2))
        b = b if twice else a
        c = draw(rng, kind, n, n)
        call = Call(routine, kind, form)
        call.option("uplo", uplo)
        call.option("trans", trans)
        call.integer(n)
        call.integer(k)
        call.scalar(alpha, routine == "herk")
        call.matrix(a)
        if twice:
            call.matrix(b)
        call.scalar(beta, hermitian)
        where = call.matrix(c)
        assert call.compute(precision) == 0
        # A^T B, or A B^T; also with A and B exchanged.
        flip = ("a" if across else "b") if hermitian else ""
        first, second = (
            sums(x.T, y, precision, flip) if across else sums(x, y.T, precision, flip)
            for x, y in ((a, b), (b, a))
        )
        if hermitian:
            np.fill_diagonal(c, np.diag(c).real)
        result = updated(
            alpha, first, beta, c, second if twice else None,
            np.conj(alpha) if hermitian else alpha,
        )  # fmt: skip
        if hermitian:
            np.fill_diagonal(result, np.diag(result).real)
        where.expect(result, half(c, uplo))


@pytest.mark.parametrize("kind", "sdcz")
def test_gemv(kind: str, chosen: Chosen) -> None:
    rng = np.random.default_rng(6)
    numbers, precisions = factors(kind), cycle(chosen)
    m, n = 5, 7
    for form, steps in product(FORMS, [(1, 1), (2, -1), (-3, 2)]):
        for trans in trans_of(form):
            (alpha, beta), precision = next(numbers), next(precisions)
            a = draw(rng, kind, m, n)
            full = transposed(a, trans)
            x, y = draw(rng, kind, full.shape[1]), draw(rng, kind, full.shape[0])
            call = Call("gemv", kind, form)
            call.option("trans", trans)
            call.integer(m)
            call.integer(n)
            call.scalar(alpha)
            call.matrix(a)
            call.vector(x, steps[0])
            call.scalar(beta)
            where = call.vector(y, steps[1])
            assert call.compute(precision) == 0
            result = sums(full, x[:, None], precision, flips(a=trans))[:, 0]
            where.expect(updated(alpha, result, beta, y))


@pytest.mark.parametrize(
    ("routine", "kind"), [("symv", "s"), ("symv", "d"), ("hemv", "c"), ("hemv", "z")]
)
def test_symv(routine: str, kind: str, chosen: Chosen) -> None:
    rng = np.random.default_rng(7)
    numbers, precisions = factors(kind), cycle(chosen)
    for form, uplo, steps in product(FORMS, "UL", [(1, 1), (2, -1), (-3, 2)]):
        (alpha, beta), precision = next(numbers), next(precisions)
        a, x, y = draw(rng, kind, 6, 6), draw(rng, kind, 6), draw(rng, kind, 6)
        call = Call(routine, kind, form)
        call.option("uplo", uplo)
        call.integer(6)
        call.scalar(alpha)
        call.matrix(only(a, uplo))
        call.vector(x, steps[0])
        call.scalar(beta)
        where = call.vector(y, steps[1])
        assert call.compute(precision) == 0
        full = mirrored(a, uplo, routine == "hemv")
        result = sums(full, x[:, None], precision)[:, 0]
        where.expect(updated(alpha, result, beta, y))


@pytest.mark.parametrize("kind", "sdcz")
def test_trmv(kind: str, chosen: Chosen) -> None:
    rng = np.random.default_rng(8)
    precisions = cycle(chosen)
    for form, uplo, diag, step in product(FORMS, "UL", "NU", [1, -2]):
        for trans in trans_of(form):
            precision = next(precisions)
            a, x = draw(rng, kind, 6, 6), draw(rng, kind, 6)
            call = Call("trmv", kind, form)
            call.option("uplo", uplo)
            call.option("trans", trans)
            call.option("diag", diag)
            call.integer(6)
            call.matrix(only(a, uplo, diag == "U"))
            where = call.vector(x, step)
            assert call.compute(precision) == 0
            full = transposed(triangular(a, uplo, diag == "U"), trans)
            where.expect(sums(full, x[:, None], precision, flips(a=trans))[:, 0])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sdot", "s"), ("ddot", "d"), ("cdotu", "c"), ("zdotu", "z"), ("cdotc", "c"),
        ("zdotc", "z"), ("dsdot", "s"), ("sdsdot", "s"),
    ],
)  # fmt: skip
def test_dot(name: str, kind: str, chosen: Chosen) -> None:
    """Call functions that return their value, and functions that write it."""
    rng = np.random.default_rng(9)
    precisions = cycle(chosen)
    steps_of = [(1, 1), (2, -1), (-3, 0)]
    for form, steps, n in product(FORMS, steps_of, [-1, 0, 1, 300]):
        precision = next(precisions)
        x, y = draw(rng, kind, max(n, 0)), draw(rng, kind, max(n, 0))
        y = y if steps[1] else y[:1]
        writes = form.cblas and kind in "cz"
        call = Call(name[1:] + ("_sub" if writes else ""), kind, form, name[0])
        call.integer(n)
        if name == "sdsdot":
            call.scalar(0.1)
        call.vector(x, steps[0])
        call.vector(y, steps[1])
        out = np.full(1, np.nan, DTYPES[kind])
        if writes:
            call.words.append(out)
        status, value = call.made().compute(spec_of(**precision))
        assert status == 0
        y = np.broadcast_to(y, x.shape)
        flip = "a" if name.endswith("c") else ""
        want = sums(x[None], y[:, None], precision, flip)[0, 0]
        if precision in EXACT and name in ("dsdot", "sdsdot"):
            want = exact_sums(x[None], y[:, None], precision, dtype=np.float64)[0, 0]
        if name == "dsdot":
            want = np.float64(want)
        elif name == "sdsdot":
            want = np.float32(np.float64(np.float32(0.1)) + np.float64(want))
        got = out[0].tobytes() if writes else value[: want.nbytes]
        assert got == want.tobytes()
