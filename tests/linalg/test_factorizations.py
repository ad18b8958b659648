"""LU and Cholesky factors: exact ones, those of plain loops, and their errors."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.linalg.systems import PRECISIONS, Array, definite

#: Precisions whose components hold small integers, and are not scaled.
WITHOUT_SCALES = [x for x in PRECISIONS if not (x or "").startswith("fp8")]
#: Bounds of the relative errors of operands.
UNITS = {"tf32": 2.0**-11, "f16": 2.0**-11, "bf16": 2.0**-8, "bf16x3": 2.0**-15}
UNITS |= {"fp8_e4m3": 2.0**-4, "fp8_e5m2": 2.0**-3}


def small_factors(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return factors of a few bits, with only one pivot in each column."""
    lower = np.tril(rng.choice([-0.5, 0.0, 0.5], (n, n)), -1) + np.eye(n)
    upper = np.triu(rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], (n, n)))
    return lower, upper


# -- LU --------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", WITHOUT_SCALES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_factors_are_found(precision: Any, dtype: type) -> None:
    rng = np.random.default_rng(2)
    for n, block in ((1, 1), (2, 1), (7, 3), (16, 4), (17, 64), (24, 5)):
        lower, upper = small_factors(rng, n)
        order = rng.permutation(n)
        a = np.empty((n, n), dtype)
        a[order] = lower @ upper
        found = td.linalg.lu(a, precision=precision, block=block)
        assert found.lower.dtype == found.upper.dtype == dtype
        assert np.array_equal(found.permutation, order)
        assert np.array_equal(found.lower, lower)
        assert np.array_equal(found.upper, upper)


def eliminated(a: Array, form: str) -> tuple[Array, Array, list[int]]:
    """Eliminate by loops in float32, with factors of products in a format."""
    work, n = a.copy(), len(a)
    order = list(range(n))
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: (abs(work[i, k]), -i))
        work[[k, pivot]] = work[[pivot, k]]
        order[k], order[pivot] = order[pivot], order[k]
        work[k + 1 :, k] /= work[k, k]
        narrow = work.astype(form).astype(np.float32)
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                work[i, j] -= narrow[i, k] * narrow[k, j]
    return np.tril(work, -1) + np.eye(n, dtype=a.dtype), np.triu(work), order


@pytest.mark.parametrize(
    ("precision", "form"), [("f32", "float32"), ("bf16", "bfloat16"), ("tf32", "tf32")]
)
def test_updates_are_rounded(precision: Any, form: str) -> None:
    a = np.random.default_rng(3).standard_normal((12, 12)).astype(np.float32)
    found = td.linalg.lu(a, precision=precision, block=1)
    for one, other in zip(found, eliminated(a, form), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "bf16", "device": "H100"},
        {"precision": "f16", "device": "V100"},
        {"precision": "tf32", "rounding": "toward_zero"},
        {"precision": "fp8_e4m3", "scale": "row"},
    ],
)
def test_updates_are_products_with_the_options(options: Any) -> None:
    a = np.random.default_rng(4).standard_normal((24, 24)).astype(np.float32)
    a[:12] += 8 * np.eye(12, 24, dtype=np.float32)
    whole = td.linalg.lu(a, block=12, **options)
    lower, upper = whole.lower[12:, :12], whole.upper[:12, 12:]
    rest = a[whole.permutation[12:], 12:]
    # Undo the exchanges among the last rows: factors of the updated rows are equal.
    rest = rest - td.matmul(lower, upper, **options)
    again = td.linalg.lu(rest, block=12, **options)
    assert np.array_equal(again.permutation, range(12))
    assert np.array_equal(again.upper, whole.upper[12:, 12:])
    assert np.array_equal(again.lower, whole.lower[12:, 12:])


def same(x: Any, y: Any) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(x, y, strict=True))


def test_the_scope_chooses_the_precision() -> None:
    a = definite(np.random.default_rng(13), 40, 10.0).astype(np.float32)
    for call in (td.linalg.lu, td.linalg.cholesky):
        wanted, others = (call(a, precision=x, block=8) for x in ("bf16", None))
        with td.matmul_precision("bf16"):
            found = call(a, block=8)
        assert same(found, wanted)
        assert not same(found, others)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_errors_of_factors(precision: Any) -> None:
    a = np.random.default_rng(5).standard_normal((96, 96)).astype(np.float32)
    lower, upper, order = td.linalg.lu(a, precision=precision, block=16)
    wide = lower.astype(np.float64), upper.astype(np.float64)
    error = np.abs(a[order] - wide[0] @ wide[1])
    unit = 2.1 * UNITS.get(precision, 2.0**-20)
    if (precision or "").startswith("fp8"):  # small numbers are subnormal
        assert error.max() < unit * np.abs(upper).max() * np.sqrt(96)
    else:
        assert (error <= unit * (np.abs(wide[0]) @ np.abs(wide[1]))).all()
    assert np.abs(lower).max() == 1


def test_stacks_are_matrices_one_by_one() -> None:
    rng = np.random.default_rng(6)
    a = rng.standard_normal((2, 3, 20, 20))
    positive = np.stack([definite(rng, 20, 10) for _ in range(6)]).reshape(a.shape)
    for precision in PRECISIONS:
        whole = td.linalg.lu(a, precision=precision, block=8)
        roots = td.linalg.cholesky(positive, precision=precision, block=8)
        assert whole.permutation.shape == (2, 3, 20)
        for place in np.ndindex(2, 3):
            one = td.linalg.lu(a[place], precision=precision, block=8)
            for x, y in zip(whole, one, strict=True):
                assert np.array_equal(x[place], y)
            root = td.linalg.cholesky(positive[place], precision=precision, block=8)
            assert np.array_equal(roots[place], root)


@pytest.mark.parametrize("precision", ["bf16", "f16", "fp8_e4m3", "exact"])
def test_powers_of_two_in_columns_change_no_bit(precision: Any) -> None:
    rng = np.random.default_rng(7)
    a = rng.standard_normal((30, 30))
    powers = rng.integers(-300, 300, 30)
    plain = td.linalg.lu(a, precision=precision, block=8)
    found = td.linalg.lu(np.ldexp(a, powers), precision=precision, block=8)
    assert np.array_equal(found.lower, plain.lower)
    assert np.array_equal(found.upper, np.ldexp(plain.upper, powers))
    assert np.array_equal(found.permutation, plain.permutation)


def test_singular_matrices_have_factors() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 1.0]])
    lower, upper, order = td.linalg.lu(a, precision="bf16", block=1)
    assert np.array_equal(lower @ upper, a[order])
    assert upper[1, 1] == 0
    zero = td.linalg.lu(np.zeros((3, 3)))
    assert np.array_equal(zero.lower, np.eye(3))
    assert not zero.upper.any()


# -- Cholesky --------------------------------------------------------------------------


@pytest.mark.parametrize("precision", WITHOUT_SCALES)
def test_exact_roots_are_found(precision: Any) -> None:
    rng = np.random.default_rng(8)
    for n, block in ((1, 1), (6, 1), (13, 4), (9, 64)):
        lower = np.tril(rng.integers(-2, 3, (n, n)), -1) + np.diag(
            rng.choice([1.0, 2.0, 4.0], n)
        )
        a = lower @ lower.T
        read = np.tril(a) + np.triu(np.full_like(a, np.nan), 1)
        for given in (a, read, a.astype(np.float32)):
            found = td.linalg.cholesky(given, precision=precision, block=block)
            assert found.dtype == given.dtype
            assert np.array_equal(found, lower)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_errors_of_roots(precision: Any) -> None:
    a = definite(np.random.default_rng(9), 96, 10.0)
    lower = td.linalg.cholesky(a, precision=precision, block=16)
    assert np.abs(a - lower @ lower.T).max() < 2 * UNITS.get(precision, 2.0**-20)
    assert not np.triu(lower, 1).any()


@pytest.mark.parametrize("precision", ["bf16", "f16", "fp8_e5m2", None])
def test_scaled_rows_and_columns(precision: Any) -> None:
    rng = np.random.default_rng(10)
    a = definite(rng, 20, 10.0)
    powers = rng.integers(-200, 200, 20)
    plain = td.linalg.cholesky(a, precision=precision, block=8)
    found = td.linalg.cholesky(
        np.ldexp(np.ldexp(a, powers), powers[:, None]), precision=precision, block=8
    )
    assert np.array_equal(found, np.ldexp(plain, powers[:, None]))


def test_matrices_that_are_not_positive_definite() -> None:
    a = np.eye(6)
    a[4, 2] = a[2, 4] = 2.0
    for block in (1, 3, 64):
        with pytest.raises(np.linalg.LinAlgError, match=r"precision 'bf16'.*in row 4$"):
            td.linalg.cholesky(a, precision="bf16", block=block)
    stack = np.stack([np.eye(6), a, np.eye(6)])[None]
    with pytest.raises(np.linalg.LinAlgError, match=r"row 4 of matrix \(0, 1\)$"):
        td.linalg.cholesky(stack)
    for value in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(np.linalg.LinAlgError, match=r"row 1$"):
            td.linalg.cholesky(np.diag([1.0, value]))


def test_rounding_makes_a_matrix_indefinite() -> None:
    a = definite(np.random.default_rng(11), 64, 1e4)
    td.linalg.cholesky(a, precision="f32", block=8)
    with pytest.raises(np.linalg.LinAlgError, match="in precision 'fp8_e5m2'"):
        td.linalg.cholesky(a, precision="fp8_e5m2", block=8)


# -- arguments -------------------------------------------------------------------------


def test_empty() -> None:
    for shape in ((0, 0), (3, 0, 0), (0, 4, 4), (2, 0, 3, 3)):
        a = np.empty(shape, np.float32)
        lower, upper, order = td.linalg.lu(a, precision="bf16", block=2)
        assert lower.shape == upper.shape == shape
        assert order.shape == shape[:-1]
        assert td.linalg.cholesky(a, precision="bf16", block=2).shape == shape


def test_dtypes() -> None:
    a = [[4, 2], [2, 5]]
    for dtype, wanted in (
        (np.int64, np.float64), (np.float16, np.float32), (td.bfloat16, np.float32),
        (td.fp8_e4m3, np.float32), (np.float32, np.float32), (">f8", np.float64),
    ):  # fmt: skip
        given = np.array(a, np.float32).astype(dtype)
        found = td.linalg.lu(given, precision="bf16")
        assert found.lower.dtype == found.upper.dtype == wanted
        assert td.linalg.cholesky(given).dtype == wanted
        assert np.array_equal(given, np.array(a, np.float32).astype(dtype))


@pytest.mark.parametrize("call", [td.linalg.lu, td.linalg.cholesky])
def test_wrong_arguments(call: Any) -> None:
    a = np.eye(3)
    for wrong in (np.ones(3), np.ones((2, 3)), 1.0):
        with pytest.raises(ValueError, match="a must be a square matrix"):
            call(wrong)
    for dtype in (np.complex128, object, np.longdouble):
        with pytest.raises(TypeError, match="a must hold real numbers"):
            call(a.astype(dtype))
    with pytest.raises(ValueError, match="precision must be one of"):
        call(a, precision="bf17")
    with pytest.raises(ValueError, match="device"):
        call(a, precision="bf16", device="X100")
    with pytest.raises(TypeError, match="unexpected keyword argument 'blok'"):
        call(a, blok=3)
    with pytest.raises(ValueError, match="block must be 1 or more; got 0"):
        call(a, block=0)
    with pytest.raises(TypeError, match=r"block must be an integer; got 1\.5"):
        call(a, block=1.5)


# -- bits ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:solve did not converge")
def test_bits_are_those_of_every_machine() -> None:
    """Only products of a precision and operations of IEEE 754 make them."""
    rng = np.random.default_rng(12)
    a = rng.standard_normal((70, 70)) + 4 * np.eye(70)
    b = rng.standard_normal((70, 2))
    symmetric = a + a.T + 80 * np.eye(70)
    digest = hashlib.sha256()
    precisions: Any = ("f32", "bf16", "f16", "fp8_e4m3", "exact")
    for precision in precisions:
        factors = td.linalg.lu(a, precision=precision, block=16)
        digest.update(b"".join(x.tobytes() for x in factors))
        digest.update(
            td.linalg.cholesky(symmetric, precision=precision, block=16).tobytes()
        )
        for refinement in ("classical", "gmres"):
            found = td.linalg.solve(a, b, precision=precision, refinement=refinement)
            digest.update(b"".join(np.asarray(x).tobytes() for x in found[:4]))
    assert digest.hexdigest()[:16] == "48cfd63573fe2871"
