"""matmul and its family: the bits of one fixed order of exact products."""

from __future__ import annotations

import functools
import operator
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import oracle
from tests.support.bits import raised
from tests.support.interpreters import run_code

TYPES = [f.type for f in td.formats.values() if f.signed]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=lambda t: t.__name__)
some_types = pytest.mark.parametrize(
    "scalar_type", [td.bfloat16, td.tf32, td.float8_e4m3fn], ids=lambda t: t.__name__
)


def random(scalar_type: Any, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Draw normal values times powers of two, so that the order of sums matters."""
    rng = np.random.default_rng(seed)
    octaves = 6 if scalar_type in (td.bfloat16, td.tf32) else 1
    values = rng.normal(0, 1, shape) * 2.0 ** rng.integers(-octaves, octaves, shape)
    return values.astype(scalar_type)


def expected(a: np.ndarray, b: np.ndarray, scalar_type: Any = None) -> np.ndarray:
    """Return the contract's a @ b of matrices: numbers of the dtype, in float64."""
    accumulated = oracle.product_float32(a.astype(float), b.astype(float))
    if scalar_type is np.float32:
        return accumulated.astype(np.float64)
    return oracle.round_to(np.dtype(scalar_type or a.dtype).name, accumulated)


def check(got: Any, wanted: np.ndarray, dtype: Any, what: object = "") -> None:
    assert np.asarray(got).dtype == dtype, what
    assert np.shape(got) == wanted.shape, what
    assert np.all(oracle.same(got, wanted)), what


LENGTHS = [0, 1, 2, 3, 7, 8, 31, 255, 256, 257, 513]


@each_type
def test_lengths_of_the_chain(scalar_type: Any) -> None:
    for k in LENGTHS:
        a, b = random(scalar_type, (3, k), k), random(scalar_type, (k, 5), k + 1)
        with np.errstate(all="ignore"):
            single = expected(a, b, np.float32)
            wanted = oracle.round_to(np.dtype(scalar_type).name, single)
            check(a @ b, wanted, scalar_type, k)
            check(np.matmul(a, b, dtype=np.float32), single, np.float32, k)
            check(np.vecdot(a, b.T[:3]), np.diagonal(wanted), scalar_type, k)
            check(np.matvec(a, b[:, 0]), wanted[:, 0], scalar_type, k)
            check(np.vecmat(a[0], b), wanted[0], scalar_type, k)


@some_types
def test_shapes(scalar_type: Any) -> None:
    """Compare each element of a small product with that of the largest product."""
    rows, columns = random(scalar_type, (33, 19), 1), random(scalar_type, (19, 65), 2)
    wanted = expected(rows, columns)
    for n, m in product([0, 1, 2, 5, 6, 7, 13, 17, 33], [0, 1, 3, 15, 16, 17, 65]):
        a, b = rows[:n].copy(), columns[:, :m].copy()
        check(a @ b, wanted[:n, :m], scalar_type, (n, m))


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """Return equal matrices with different layouts in memory."""
    spaced = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)[::2, ::3]
    spaced[...] = x
    backwards = x[::-1, ::-1].copy()[::-1, ::-1]
    raw = bytearray(x.nbytes + 1)
    unaligned = np.ndarray(x.shape, x.dtype, raw, 1)
    unaligned[...] = x
    return [x, np.asfortranarray(x), spaced, spaced.copy("F"), backwards, unaligned]


@some_types
def test_layouts_do_not_change_bits(scalar_type: Any) -> None:
    a, b = random(scalar_type, (17, 300), 3), random(scalar_type, (300, 9), 4)
    wanted = expected(a, b)
    for x, y in product(layouts(a), layouts(b)):
        check(x @ y, wanted, scalar_type)
    for x, y in product(layouts(a), layouts(b)):
        check(np.matvec(x, y[:, 2]), wanted[:, 2], scalar_type)
        check(x @ y[:, 2], wanted[:, 2], scalar_type)
        check(x[3] @ y, wanted[3], scalar_type)
        check(x[3] @ y[:, 5], wanted[3, 5], scalar_type)


@some_types
def test_batches_broadcast(scalar_type: Any) -> None:
    a, b = random(scalar_type, (2, 1, 4, 21), 5), random(scalar_type, (3, 21, 5), 6)
    got = a @ b
    assert got.shape == (2, 3, 4, 5)
    for i, j in product(range(2), range(3)):
        check(got[i, j], expected(a[i, 0], b[j]), scalar_type)
    same = np.broadcast_to(a[0, 0], (3, 4, 21)) @ b
    assert np.array_equal(td.bits(same), td.bits(got[0].copy()))
    assert (a[:0] @ b).shape == (0, 3, 4, 5)


@each_type
def test_products_of_two_formats(scalar_type: Any) -> None:
    """Multiply exact values of two formats, and round once to the promoted type."""
    for other in TYPES:
        a, b = random(scalar_type, (4, 60), 7), random(other, (60, 3), 8)
        common = np.promote_types(scalar_type, other)
        with np.errstate(all="ignore"):
            single = expected(a, b, np.float32)
            wanted = oracle.round_to(np.dtype(common).name, single)
            check(a @ b, wanted, common, other)
            check(np.vecdot(a[0], b[:, 1]), wanted[0, 1], common, other)
            check(np.matmul(a, b, dtype=np.float32), single, np.float32)


NO_COPIES = """
import tracemalloc
import numpy as np, tf32dtype as td
a, b = np.ones((600, 600), td.float8_e4m3fn), np.ones((600, 600), td.float8_e5m2)
out = np.empty((600, 600), td.bfloat16)
half, wide = a.astype(np.float16), a.astype(td.tf32)
wide_out = np.empty((600, 600), td.tf32)
for x, y, into in [(a, b, out), (a[::-1], b.T, out), (half, wide, wide_out)]:
    np.matmul(x, y, out=into)  # the loop is made
    tracemalloc.start()
    np.matmul(x, y, out=into)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000, (x.dtype, y.dtype, peak)
    assert np.all(into == 600)
multiply = td.matmul  # whose module is loaded now
tracemalloc.start()
single = multiply(wide, b, dtype=np.float32)  # and a result, but no copy
assert tracemalloc.get_traced_memory()[1] < single.nbytes + 10_000
print("done")
"""


def test_mixed_products_copy_no_operand() -> None:
    """Copy no operand in a new process (after a call with dtype=, NumPy casts)."""
    assert run_code(NO_COPIES) == "done"


def test_any_result_dtype() -> None:
    """Round the float32 sums once to any dtype."""
    a, b = random(td.bfloat16, (6, 90), 40), random(td.float8_e5m2, (90, 4), 41)
    sums = expected(a, b, np.float32).astype(np.float32)
    for f in td.formats.values():
        with np.errstate(all="ignore"):
            got = td.matmul(a, b, dtype=f.type)
            wanted = sums.astype(f.type)
        assert got.dtype == f.dtype
        assert np.array_equal(td.bits(got), td.bits(wanted))
    assert np.array_equal(td.matmul(a, b, dtype=np.float64), sums)
    assert td.matmul(a, b).dtype == td.bfloat16


def test_products_with_numpy_types() -> None:
    a = random(td.bfloat16, (3, 4), 9)
    assert (a @ np.ones((4, 2), np.float32)).dtype == np.float32
    assert (np.ones((2, 3)) @ a).dtype == np.float64
    assert (a @ np.ones((4, 2), bool)).dtype == td.bfloat16
    assert (a @ np.ones((4, 2), np.int8)).dtype == td.bfloat16


@some_types
def test_out(scalar_type: Any) -> None:
    a, b = random(scalar_type, (6, 40), 10), random(scalar_type, (40, 6), 11)
    wanted = expected(a, b)
    out = np.empty((6, 6), scalar_type)
    assert np.matmul(a, b, out=out) is out
    check(out, wanted, scalar_type)
    spaced = np.zeros((12, 12), scalar_type)
    np.matmul(a, b, out=spaced[::-2, ::2].T)
    check(spaced[::-2, ::2].T, wanted, scalar_type)
    assert not np.any(spaced[::2])
    single = np.empty((6, 6), np.float32)
    np.matmul(a, b, out=single, dtype=np.float32)
    check(single, expected(a, b, np.float32), np.float32)
    square = random(scalar_type, (6, 6), 12)
    wanted = expected(square, square)
    np.matmul(square, square, out=square)  # overlaps both operands
    check(square, wanted, scalar_type)


@some_types
def test_special_values(scalar_type: Any) -> None:
    """Return the canonical NaN, +0 for a chain of -0, and +0 for k = 0."""
    one, nan = np.ones((1, 3), scalar_type), np.array([[1], [np.nan], [1]], scalar_type)
    canonical = td.bits(np.array([np.nan], scalar_type).copy())
    with np.errstate(invalid="ignore"):
        assert np.array_equal(td.bits((one @ nan).ravel()), canonical)
        assert np.array_equal(td.bits((one @ -nan).ravel()), canonical)
    minus = np.full((3, 1), -0.0, scalar_type)
    assert not np.signbit(one @ minus)
    assert not np.any(np.signbit(one[:, :0] @ minus[:0]))
    if td.formats[scalar_type.__name__].has_infinity:
        inf = np.array([[np.inf], [1], [-np.inf]], scalar_type)
        with np.errstate(invalid="ignore"):
            assert np.array_equal(td.bits((one @ inf).ravel()), canonical)
        assert np.isposinf(one[:, :2] @ inf[:2])


def test_subnormal_products() -> None:
    """Flush neither operands nor sums to zero."""
    tiny = np.full((1, 2), 2.0**-74, td.bfloat16)
    assert np.array_equal((tiny @ tiny.T).astype(float), [[0.0]])
    assert np.matmul(tiny, tiny.T, dtype=np.float32) == np.float32(2.0**-147)
    least = np.full((1, 4), 2.0**-133, td.bfloat16)
    ones = np.ones((4, 1), td.bfloat16)
    assert (least @ ones).astype(float) == 2.0**-131


@some_types
def test_dot_family(scalar_type: Any) -> None:
    """Compute two-dimensional products of every function in the order of matmul."""
    a, b = random(scalar_type, (4, 300), 13), random(scalar_type, (300, 5), 14)
    wanted = expected(a, b)
    check(np.dot(a, b), wanted, scalar_type)
    check(a.dot(b), wanted, scalar_type)
    check(np.dot(a[1], b[:, 2]), wanted[1, 2], scalar_type)
    check(np.inner(a, b.T), wanted, scalar_type)
    check(np.vdot(a[1], b[:, 2]), wanted[1, 2], scalar_type)
    check(np.tensordot(a, b, 1), wanted, scalar_type)
    check(np.linalg.matmul(a, b), wanted, scalar_type)
    check(np.linalg.tensordot(a, b, axes=1), wanted, scalar_type)
    check(np.linalg.vecdot(a, a), np.diagonal(expected(a, a.T)), scalar_type)
    check(np.dot(a[:, ::-1], b[::-1]), expected(a[:, ::-1], b[::-1]), scalar_type)
    deep = a.reshape(4, 3, 100)
    check(np.tensordot(deep, b.reshape(3, 100, 5), 2), wanted, scalar_type)
    check(np.dot(a, scalar_type(2)), (a * scalar_type(2)).astype(float), scalar_type)


@some_types
def test_convolve_and_correlate(scalar_type: Any) -> None:
    a, b = random(scalar_type, (40,), 15), random(scalar_type, (7,), 16)
    windows = np.lib.stride_tricks.sliding_window_view(a, 7)
    wanted = expected(windows, b[:, None])[:, 0]
    check(np.correlate(a, b), wanted, scalar_type)
    check(np.convolve(a, b[::-1], "valid"), wanted, scalar_type)
    assert np.convolve(a, b).shape == (46,)
    assert np.correlate(a, b, "same").dtype == scalar_type
    # Check each sum separately where one vector extends past the other.
    for x, y in (a, b), (a[::-2], b[::2]), (a[:7], b), (a[:1], b[:1]):
        n, m = x.size, y.size
        sums = []
        for i in range(1 - m, n):
            first, last = max(i, 0), min(i + m, n)
            sums.append(np.dot(x[first:last], y[first - i : last - i]))
        start = m - 1 - m // 2
        modes = {"full": sums, "same": sums[start:][:n], "valid": sums[m - 1 : n]}
        for mode, want in modes.items():
            found = np.correlate(x, y, mode)
            assert found.dtype == scalar_type
            np.testing.assert_array_equal(found, np.array(want))
            np.testing.assert_array_equal(np.convolve(y[::-1], x, mode), found)
            if m < n:
                np.testing.assert_array_equal(np.correlate(y, x, mode), found[::-1])
        with pytest.raises(ValueError, match="mode"):
            np.convolve(x, y, "some")


@some_types
def test_linalg(scalar_type: Any) -> None:
    a = random(scalar_type, (5, 5), 17)
    wide, eps = a.astype(float), oracle.eps(np.dtype(scalar_type).name)
    for axis in (None, 0, 1):
        got = np.linalg.norm(a, axis=axis)
        assert got.dtype == scalar_type
        assert np.allclose(got.astype(float), np.linalg.norm(wide, axis=axis), 2 * eps)
    assert np.linalg.norm(a, 1).dtype == scalar_type
    assert np.linalg.vector_norm(a).dtype == scalar_type
    b = random(scalar_type, (5, 4), 18)
    check(np.linalg.multi_dot([a, b]), expected(a, b), scalar_type)
    three = np.linalg.multi_dot([a, b, b.T])
    assert three.dtype == scalar_type
    check(np.linalg.matrix_power(a, 2), expected(a, a), scalar_type)
    assert np.linalg.matrix_power(a, 3).dtype == scalar_type
    assert np.array_equal(np.linalg.matrix_power(a, 0), np.eye(5))


@some_types
def test_outer_and_kron(scalar_type: Any) -> None:
    a, b = random(scalar_type, (4,), 19), random(scalar_type, (5,), 20)
    name = np.dtype(scalar_type).name
    wanted = oracle.round_to(name, np.outer(a.astype(float), b.astype(float)))
    check(np.outer(a, b), wanted, scalar_type)
    check(np.kron(a, b), wanted.ravel(), scalar_type)


def test_shapes_that_do_not_match() -> None:
    a = np.ones((2, 3), td.bfloat16)
    for function in (np.matmul, np.dot, np.vecdot, np.matvec):
        with pytest.raises(ValueError, match=r"mismatch|not aligned"):
            function(a, a[:, :2] if function is np.vecdot else np.ones(4, td.bfloat16))


EINSUM = """
import numpy as np, tf32dtype as td
rng = np.random.default_rng(1)
for f in td.formats.values():
    a = rng.integers(1, 3, (3, 3)).astype(f.type)
    for text, n in [("ij,jk", 2), ("ij,ij", 2), ("ii", 1), ("ij->j", 1), ("ij->ji", 1),
                    ("ij,jk,kl", 3), ("i...", 1), ("ij,kl", 2), ("ij->", 1)]:
        for optimize in (False, True):
            try:
                got = np.einsum(text, *[a] * n, optimize=optimize)
            except TypeError:
                continue
            with np.errstate(all="ignore"):
                exact = np.einsum(text, *[a.astype(float)] * n)
                right = exact.astype(f.type).astype(float)
                got_wide = np.asarray(got).astype(float)
            assert got.dtype == f.dtype, (f.name, text, got.dtype)
            if text != "ij,jk,kl":  # rounds in between
                assert np.array_equal(got_wide, right, equal_nan=True), (f.name, text)
print("done")
"""


def test_einsum_is_right_or_a_type_error() -> None:
    """NumPy indexes a table of loops with the type number: run it in a subprocess."""
    assert run_code(EINSUM) == "done"


# -- tiles, pairs, threads ---------------------------------------------------------


def sample(a: np.ndarray, b: np.ndarray, got: np.ndarray, seed: int) -> None:
    """Compare some rows and columns of a large product with the slow reference."""
    rng = np.random.default_rng(seed)
    m, n = got.shape
    rows = np.unique(np.r_[0, m - 1, rng.integers(0, m, 10)])
    columns = np.unique(np.r_[0, n - 1, rng.integers(0, n, 10)])
    wanted = expected(a[rows], b[:, columns], got.dtype)
    assert np.all(oracle.same(got[np.ix_(rows, columns)], wanted))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "shape", [(1100, 300, 1100), (97, 1000, 2050), (2000, 257, 65)]
)
@some_types
def test_many_tiles(scalar_type: Any, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = random(scalar_type, (m, k), 21), random(scalar_type, (k, n), 22)
    with np.errstate(all="ignore"):
        got = a @ b
        sample(a, b, got, 23)
        turned = np.matmul(np.asfortranarray(a), np.asfortranarray(b))
    assert np.array_equal(td.bits(got), td.bits(turned))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("k", [1, 31, 32, 33, 255, 256, 257, 544, 1000])
@each_type
def test_vectors(scalar_type: Any, k: int) -> None:
    """Multiply by one row or one column: the matrix is read once, in place."""
    x, all_of_y = random(scalar_type, (1, k), k), random(scalar_type, (k, 1100), 1)
    with np.errstate(all="ignore"):
        whole = expected(x, all_of_y)
    for n in (63, 64, 255, 257, 700, 1100):
        y, wanted = all_of_y[:, -n:].copy(), whole[:, -n:]
        with np.errstate(all="ignore"):
            for matrix in (y, np.asfortranarray(y), np.repeat(y, 2, axis=1)[:, ::2]):
                check(x @ matrix, wanted, scalar_type)
                check(np.vecmat(x[0], matrix), wanted[0], scalar_type)
                check(np.matvec(matrix.T, x[0]), wanted[0], scalar_type)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("offset", [0, 1, 4])
def test_vectors_and_unused_bits(offset: int) -> None:
    """Ignore unused bits, at any offset of the matrix."""
    rng = np.random.default_rng(offset)
    memory = rng.integers(0, 256, offset + 4 * 300 * 288, dtype=np.uint8)
    matrix = memory[offset:].view("u4").reshape(300, 288).view(td.tf32)
    clean = td.from_bits(td.bits(matrix), td.tf32)
    for x, y in (
        (matrix, clean),
        (matrix.T, clean.T),
        (matrix[:, ::-1], clean[:, ::-1]),
    ):
        vector = random(td.tf32, (y.shape[1],), 3)
        assert (x @ vector).tobytes() == (y.copy() @ vector).tobytes()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("k", [2000, 4095, 4096, 4097, 4353, 9000])
@some_types
def test_long_vectors(scalar_type: Any, k: int) -> None:
    """Use longer vectors than a group of lanes, and more columns than a tile."""
    x, all_of_y = random(scalar_type, (1, k), k), random(scalar_type, (k, 70), 1)
    with np.errstate(all="ignore"):
        whole = expected(x, all_of_y)
    for n in (3, 70):
        y, wanted = all_of_y[:, -n:].copy(), whole[:, -n:]
        with np.errstate(all="ignore"):
            for matrix in (y, np.asfortranarray(y)):
                check(x @ matrix, wanted, scalar_type)
            backwards = np.asfortranarray(y[:, ::-1])
            check(x @ backwards, wanted[:, ::-1], scalar_type)
            turned = np.repeat(y.T, 2, axis=1)[:, ::2]  # numbers are not adjacent
            check(np.matvec(turned, x[0]), wanted[0], scalar_type)


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_many_short_vectors(form: Any) -> None:
    """Compare bits and flags of many dot products with each one, with random items."""
    rng = np.random.default_rng(8)
    for count, k in ((16, 1), (40, 3), (33, 64), (20, 256), (17, 288), (35, 800)):
        items = rng.integers(0, 256, (2, count, 2 * k, form.itemsize), dtype=np.uint8)
        a, b = items.view(form.dtype)[..., 0]
        with np.errstate(all="ignore"):
            usual = rng.normal(0, 1, (2, count, 2 * k)).astype(form.dtype)
        for x, y in ((a, b), usual, (usual[0], usual[1, :1])):
            for step in (1, 2):
                p, q = np.broadcast_arrays(
                    x[:, : step * k : step], y[:, : step * k : step]
                )
                for dtype in (form.dtype, np.float32):
                    dot = functools.partial(np.vecdot, dtype=dtype)
                    got, flags = raised(dot, p, q)
                    alone = [raised(dot, p[i], q[i]) for i in range(count)]
                    want = np.array([item for item, _ in alone], dtype)
                    assert got.tobytes() == want.tobytes()
                    each = functools.reduce(operator.or_, (f for _, f in alone))
                    assert flags == each


SMALL = [(2, 2, 1), (3, 5, 7), (16, 16, 16), (14, 33, 20), (31, 2, 90), (64, 64, 64)]


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_small_matrices_and_more_of_their_rows(form: Any) -> None:
    """Repeat the rows, until the kernel for small matrices is not used: the bits and
    flags must be equal."""
    rng = np.random.default_rng(12)
    few = 1 << 12  # numbers of a small matrix
    for (m, n, k), other in product(SMALL, (form, td.formats["bfloat16"])):
        a, b = (
            rng.integers(0, 256, (*shape, f.itemsize), np.uint8).view(f.dtype)[..., 0]
            for shape, f in (((m, k), form), ((k, n), other))
        )
        with np.errstate(all="ignore"):
            near = [rng.normal(size=x.shape).astype(x.dtype) for x in (a, b)]
        for x, y in ((a, b), near, map(np.asfortranarray, near)):
            rows = np.resize(x, (few // k + 1 + m, k))
            for dtype in (None, np.float32):
                multiply = functools.partial(np.matmul, dtype=dtype)
                got, flags = raised(multiply, x, y)
                want, others = raised(multiply, rows, y)
                assert got.tobytes() == want[:m].tobytes()
                assert flags == others
                stacked, others = raised(multiply, np.stack([x, x]), y)
                assert stacked.tobytes() == 2 * got.tobytes()
                assert flags == others


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_long_vectors_side_by_side_and_apart(form: Any) -> None:
    """Multiply adjacent items without a copy: random ones, also with NaN, Inf and
    unused bits."""
    rng = np.random.default_rng(6)
    items = rng.integers(0, 256, (2, 9000, form.itemsize), dtype=np.uint8)
    a, b = items.view(form.dtype)[..., 0]
    for n in (4096, 8192, 9000):
        for first in (0, 1):
            for x, y in ((a, b), (np.abs(a), np.ones_like(b)), (a * 0, b)):
                near = (x[first:n], y[first:n])
                apart = [np.repeat(z, 2)[::2] for z in near]
                for dtype in (form.dtype, np.float32):
                    got = np.vecdot(*near, dtype=dtype)
                    want = np.vecdot(*apart, dtype=dtype)
                    assert got.tobytes() == want.tobytes()


@some_types
def test_wide_rows_of_no_length(scalar_type: Any) -> None:
    x, y = random(scalar_type, (1, 300), 1), random(scalar_type, (300, 4500), 2)
    assert np.any(td.bits(x @ y))
    assert not np.any(td.bits(x[:, :0] @ y[:0]))
    assert not np.any(td.bits(y.T[:, :0] @ x.T[:0]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [4000, 4096, 4200, 9000])
@some_types
def test_wide_rows(scalar_type: Any, n: int) -> None:
    x, y = random(scalar_type, (1, 300), n), random(scalar_type, (300, n), 1)
    if scalar_type is td.bfloat16:
        y[270, 100:4100:77] = scalar_type(2.0**-133)  # these need the slow kernel
    with np.errstate(all="ignore"):
        wanted = expected(x, y)
        for matrix in (y, np.asfortranarray(y)):
            check(x @ matrix, wanted, scalar_type)


@pytest.mark.parametrize("exponent", [-140, -120, -100, -60, 0, 60])
def test_vectors_that_pairs_would_flush(exponent: int) -> None:
    rng = np.random.default_rng(exponent + 200)
    x = (rng.normal(0, 1, (1, 600)) * 2.0**exponent).astype(td.bfloat16)
    y = rng.normal(0, 1, (600, 600)).astype(td.bfloat16)
    y[300:, 256:] *= td.bfloat16(2.0**-66)
    x[:, 100:200] = 0
    y[5, 3] = y[5, 300] = td.bfloat16(2.0**-133)
    wanted = expected(x, y, np.float32)
    for matrix in (y, np.asfortranarray(y)):
        check(np.matmul(x, matrix, dtype=np.float32), wanted, np.float32)


@pytest.mark.parametrize("exponent", [-70, -63, -60, -57, -56, -55, -54, -50, -40])
def test_where_pairs_would_flush(exponent: int) -> None:
    """Cancel sums down to subnormal numbers and small products."""
    rng = np.random.default_rng(-exponent)
    for spread in (0, 3, 20, 40):
        scale = np.exp2(exponent + rng.integers(-spread, spread + 1, (30, 70)))
        a = (rng.normal(0, 1, (30, 70)) * scale).astype(td.bfloat16)
        scale = np.exp2(exponent + rng.integers(-spread, spread + 1, (70, 40)))
        b = (rng.normal(0, 1, (70, 40)) * scale).astype(td.bfloat16)
        a[:, 35:] = -a[:, :35]  # cancels except for the changes of b
        b[35:] = b[:35]
        b[36] = np.nextafter(b[36], td.bfloat16(np.inf))
        a[3, 5] = 0
        single = expected(a, b, np.float32)
        check(np.matmul(a, b, dtype=np.float32), single, np.float32)


def test_pairs_beside_blocks_that_need_singles() -> None:
    """Choose kernels for each block of MC rows and each block of k separately."""
    rng = np.random.default_rng(27)
    a = rng.normal(0, 1, (300, 600)).astype(td.bfloat16)
    b = rng.normal(0, 1, (600, 100)).astype(td.bfloat16)
    a[100:200, 300:400] *= td.bfloat16(2.0**-120)
    a[250, 10] = td.bfloat16(2.0**-133)
    b[400:, :50] *= td.bfloat16(2.0**-20)
    got = np.matmul(a, b, dtype=np.float32)
    chosen = np.r_[0, 95:105, 190:210, 249:252, 299]
    check(got[chosen], expected(a[chosen], b, np.float32), np.float32)


@some_types
def test_special_values_in_large_products(scalar_type: Any) -> None:
    rng = np.random.default_rng(28)
    a = rng.normal(0, 1, (200, 300)).astype(scalar_type)
    b = rng.normal(0, 1, (300, 150)).astype(scalar_type)
    a[7, 11] = b[13, 70] = np.nan
    a[20, 5] = np.inf  # NaN if the format has no Inf
    b[299, 149] = -np.inf
    a[30, 1], b[1, 5] = td.formats[np.dtype(scalar_type).name].max, 2
    a[30, 2], b[2, 5] = a[30, 1], 2
    rows, columns = [0, 7, 20, 30, 191, 192, 199], [0, 5, 63, 64, 70, 149]
    with np.errstate(all="ignore"):
        got = a @ b
        check(got[rows], expected(a[rows], b), scalar_type)
        check(got[:, columns], expected(a, b[:, columns]), scalar_type)


FPE_OVERFLOW, FPE_INVALID = 2, 8


def flags_of(got: np.ndarray, *operands: np.ndarray) -> int:
    """Return the flags of float32 sums, for operands whose last axis is k."""
    nan, infinite = (
        functools.reduce(operator.or_, (f(x).any(-1) for x in operands))
        for f in (np.isnan, np.isinf)
    )
    invalid = np.any(np.isnan(got) & ~nan)
    overflow = np.any(np.isinf(got) & ~nan & ~infinite)
    return FPE_INVALID * invalid | FPE_OVERFLOW * overflow


@pytest.mark.parametrize("name", ["bfloat16", "tf32", "float8_e5m2"])
@pytest.mark.parametrize(
    "shape", [(9, 70, 30), (90, 300, 80), (1, 700, 40), (70, 90, 1)]
)
def test_flags_tell_what_no_operand_had(name: str, shape: tuple[int, int, int]) -> None:
    """Put few items that are not finite, or whose products overflow, into some lines,
    up to one per line."""
    rng = np.random.default_rng(9)
    m, k, n = shape
    dtype = td.formats[name].dtype
    greatest = td.formats[name].max
    for count in (0, 1, 2, 5, 40, 200) * 3:
        a, b = random(dtype, (m, k), count), random(dtype, (n, k), count + 1)
        for x in (a, b):
            few = rng.integers(0, len(x), count), rng.integers(0, k, count)
            x[few] = rng.choice([np.nan, -np.nan, np.inf, -np.inf, greatest, 0], count)
        for x, y in product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
            multiply = functools.partial(np.matmul, dtype=np.float32)
            got, flags = raised(multiply, x, y.T)
            assert flags == flags_of(got, a[:, None], b)
            rows = min(m, n)
            multiply = functools.partial(np.vecdot, dtype=np.float32)
            got, flags = raised(multiply, x[:rows], y[:rows])
            assert flags == flags_of(got, a[:rows], b[:rows])


# Each product is large enough for at least two threads.
THREADS = """
import hashlib, os, sys
import numpy as np, tf32dtype as td
rng = np.random.default_rng(5)
digest = hashlib.sha256()
for dtype in (td.bfloat16, td.tf32, td.float8_e4m3fn):
    vectors = (1, 3000, 3000) if dtype is td.tf32 else (3000, 3000, 1)
    for m, k, n in [(300, 300, 150), vectors, (64, 2000, 100)]:
        some = rng.standard_normal(10007).astype(dtype)
        a, b = np.resize(some, (m, k)), np.resize(some[::-1], (k, n))
        with np.errstate(all="ignore"):
            digest.update(np.matmul(a, b, dtype=np.float32).tobytes())
    a = rng.standard_normal((50, 64, 64)).astype(dtype)
    with np.errstate(all="ignore"):
        digest.update((a @ a.transpose(0, 2, 1)).tobytes())
if hasattr(os, "fork"):  # threads do not live on in the child
    child = os.fork()
    if child == 0:
        a @ a
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(digest.hexdigest())
"""


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.add(run_code(THREADS))
    assert len(found) == 1
