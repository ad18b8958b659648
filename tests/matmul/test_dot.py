"""Products along lines in memory: lengths of pieces, numbers of lines, remainders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td

FORMATS = [f.type for f in td.formats.values()]
LENGTHS = (1, 7, 8, 31, 32, 33, 64, 255, 256, 257, 300, 768)
LINES = (1, 2, 15, 16, 17, 32, 33)


def numbers(scalar_type: Any, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Draw numbers of both signs and many magnitudes, with finite sums."""
    r = np.random.default_rng(seed)
    x = r.standard_normal(shape) * 2.0 ** r.integers(-8, 3, shape)
    if scalar_type is td.float8_e8m0fnu:
        x = abs(x)
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(scalar_type)


def laid_out(x: np.ndarray, layout: str) -> np.ndarray:
    """Return the same numbers in a layout with dirty items in between."""
    if layout == "contiguous":
        return x
    if layout == "reversed":
        return x[..., ::-1].copy()[..., ::-1]
    if layout == "unaligned":
        buffer = np.full(x.nbytes + 1, 0x55, np.uint8)[1:]
        buffer[:] = x.reshape(-1).view(np.uint8)
        return buffer.view(x.dtype).reshape(x.shape)
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), x.flat[0])
    wide[..., ::2] = x
    return wide[..., ::2]


def check(found: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Compare dot products of rows of a and of b with the diagonal of a matrix product,
    which other kernels compute. Either operand may have a single row."""
    a, b = np.broadcast_arrays(a, b)
    rows, columns = (np.concatenate([x, x[:1]]) for x in (a, b))
    wanted = np.diagonal(rows @ columns.T)[: len(a)]
    np.testing.assert_array_equal(td.bits(found), td.bits(wanted))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", ["contiguous", "strided", "reversed", "unaligned"])
@pytest.mark.parametrize("scalar_type", FORMATS, ids=lambda x: x.__name__)
def test_lines(scalar_type: Any, layout: str) -> None:
    rng = np.random.default_rng(len(layout))
    for k in LENGTHS:
        count = int(rng.choice(LINES))
        a = laid_out(numbers(scalar_type, (count, k), k), layout)
        b = laid_out(numbers(scalar_type, (count, k), k + 1), layout)
        with np.errstate(all="ignore"):
            check(np.vecdot(a, b), a, b)
            check(np.vecdot(a, a), a, a)
            check(np.matvec(a, b[0]), a, b[:1])
            check(np.vecmat(b[0], a.T), a, b[:1])
            check(np.vecmat(b[0], np.ascontiguousarray(a.T)), a, b[:1])


@pytest.mark.parametrize("scalar_type", FORMATS, ids=lambda x: x.__name__)
def test_lines_with_inf_and_nan(scalar_type: Any) -> None:
    """Some kernels first take Inf and NaN for numbers. Mix lines with and without."""
    rng = np.random.default_rng(6)
    f = td.formats[scalar_type.__name__]
    for k in (3, 64, 96, 256, 600):
        a, b = (numbers(scalar_type, (40, k), k + i) for i in (0, 1))
        with np.errstate(all="ignore"):
            for x in (a, b):
                for special in [np.inf, -np.inf, np.nan][2 - 2 * f.has_infinity :]:
                    x[rng.integers(0, 40, 4), rng.integers(0, k, 4)] = special
            check(np.vecdot(a, b), a, b)
            check(np.vecdot(a, a), a, a)
            for row in (b[:1], np.ones_like(b[:1])):
                check(np.matvec(a, row[0]), a, row)
                check(np.vecmat(row[0], np.ascontiguousarray(a.T)), a, row)


@pytest.mark.parametrize("power", [-130, -90, -63, 63, 90, 127])
@pytest.mark.parametrize("scalar_type", [td.bfloat16, td.tf32])
def test_products_out_of_range(scalar_type: Any, power: int) -> None:
    """Products that float32 does not hold are exact in a chain of multiply-adds."""
    for place in (0, 5, 100, 255):  # in a first piece, or a later one
        a, b = (numbers(scalar_type, (33, 256), place + i) for i in (0, 1))
        with np.errstate(all="ignore"):
            for x, scale in ((a, 1), (b, 1), (a, -1)):
                x[3::4, place] = scalar_type(np.float32(2.0) ** (scale * power))
                x[4::8, place] = -scalar_type(
                    np.float32(1.5) * np.float32(2.0) ** power
                )
                check(np.vecdot(a, b), a, b)
                check(np.vecdot(x, x), x, x)
                check(
                    np.dot(a.ravel(), b.ravel())[None],
                    a.reshape(1, -1),
                    b.reshape(1, -1),
                )


@pytest.mark.parametrize("k", [1, 2, 3, 7, 33, 255, 257])
@pytest.mark.parametrize("scalar_type", [td.bfloat16, td.tf32])
def test_sums_that_underflow_to_minus_zero(scalar_type: Any, k: int) -> None:
    a, b = np.full((9, k), -(2.0**-100)), np.full((9, k), 2.0**-100)
    a[1::2, :-1] = 0
    x, y = a.astype(scalar_type), b.astype(scalar_type)
    products = np.vecdot(x, y), np.matvec(x, y[0]), np.vecmat(y[0], x.T.copy())
    # A product of +0 leaves +0, which the last product of the chain makes -0. The sum
    # of two chains, +0 and -0, is +0.
    wanted = np.where(np.arange(9) % 2 == 1, k <= 256, True)
    for found in products:
        assert (np.signbit(found) == wanted).all()
        assert not found.any()
    assert not np.signbit(np.vecdot(y, y)).any()


@pytest.mark.parametrize("scalar_type", FORMATS, ids=lambda x: x.__name__)
def test_long_vectors(scalar_type: Any) -> None:
    """Multiply single vectors, whose last piece may be short."""
    for k in (512, 4097, 8192, 9000):
        a, b = numbers(scalar_type, (1, k), k), numbers(scalar_type, (1, k), k + 1)
        with np.errstate(all="ignore"):
            check(np.vecdot(a, b), a, b)
            check(np.dot(a[0, ::-1], b[0, ::-1])[None], a[:, ::-1], b[:, ::-1])


@pytest.mark.parametrize("scalar_type", FORMATS, ids=lambda x: x.__name__)
def test_every_item(scalar_type: Any) -> None:
    """Multiply codes of all kinds by one: canonical NaN, no unused bits."""
    size = np.dtype(scalar_type).itemsize
    raw = np.random.default_rng(3).bytes(1024 * size)
    if size == 1:
        raw = bytes(range(256)) * 4
    items = np.frombuffer(raw, scalar_type)[:, None]
    one = np.ones(1, scalar_type)
    for x in (items, items[np.isfinite(items[:, 0])]):
        with np.errstate(all="ignore"):
            products = np.vecdot(x, one), np.matvec(x, one), np.vecmat(one, x.T.copy())
        for found in products:
            nan = np.isnan(x[:, 0])
            assert np.array_equal(found[~nan], x[~nan, 0])
            assert not nan.any() or len(np.unique(td.bits(found)[nan])) == 1
            assert np.isnan(found)[nan].all()
            assert not np.signbit(found)[nan].any()


@pytest.mark.parametrize(
    "scalar_type",
    [f for f in FORMATS if np.dtype(f).itemsize == 1],
    ids=lambda x: x.__name__,
)
def test_products_of_every_pair(scalar_type: Any) -> None:
    """Multiply all pairs of bytes, at each place of a word."""
    items = np.arange(256, dtype=np.uint8)
    for k in range(4):
        a = np.zeros((65536, k + 1), np.uint8)
        b = np.zeros((65536, k + 1), np.uint8)
        a[:, k], b[:, k] = np.repeat(items, 256), np.tile(items, 256)
        x, y = a.view(scalar_type), b.view(scalar_type)
        want = np.zeros(65536, np.float32)
        with np.errstate(all="ignore"):
            found = np.vecdot(x, y, dtype=np.float32)
            for term in (x.astype(np.float64) * y.astype(np.float64)).T:
                want = (want + term).astype(np.float32)
        assert np.array_equal(found, want, equal_nan=True)
        assert not np.signbit(found[found == 0]).any()
