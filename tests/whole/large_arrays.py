"""Calls on arrays of more than 2^31 elements: indices and counts of 64 bits.

    python -m tests.whole.large_arrays [NAME ...]

The script takes up to 7 GB of memory and some minutes, and is therefore not part of the
tests. Run it before a release. The reference of each call is that of a short array that
the long array repeats, or a count of codes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tf32dtype as td

N = 2**31 + 9
PIECE = 251 << 20  # elements that are compared at a time: a multiple of the pattern
T = td.float8_e4m3fn
# Numbers without NaN whose sum is small. Their count 251 is prime: chunks of loops do
# not align.
PATTERN = np.concatenate([np.arange(0, 126), np.arange(129, 254)]).astype(np.uint8)
PLACES = (0, 2**31 - 1, 2**31, N - 1)

cases: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    cases[function.__name__] = function
    return function


def pattern() -> Any:
    return td.from_bits(PATTERN, T)


def repeated() -> Any:
    """Return the repeated pattern."""
    codes = np.empty(N, np.uint8)
    for start in range(0, N, PIECE):
        here = codes[start : start + PIECE]
        here[:] = np.resize(PATTERN, len(here))
    return codes.view(T)


def sparse(dtype: Any = T) -> Any:
    """Return zeros, which take no memory, with ones at PLACES."""
    x = np.zeros(N, dtype)
    x[list(PLACES)] = 1
    return x


def pieces(x: Any) -> Iterator[Any]:
    for start in range(0, N, PIECE):
        yield x[start : start + PIECE]


def assert_repeats(found: Any, want: Any) -> None:
    assert (found.dtype, found.shape) == (want.dtype, (N,))
    code = np.dtype(f"u{want.dtype.itemsize}")
    whole = np.resize(want.view(code), min(N, PIECE))
    for piece in pieces(found.view(code)):
        assert np.array_equal(piece, whole[: len(piece)])


def assert_sparse(found: Any, elsewhere: Any, there: Any) -> None:
    """Check for one value at PLACES and another elsewhere, compared as bytes."""
    assert found.shape == (N,)
    code = np.dtype(f"u{found.dtype.itemsize}")
    codes, (zero, one) = found.view(code), np.stack([elsewhere, there]).view(code)
    assert all(codes[place] == one for place in PLACES)
    count = sum(int(np.count_nonzero(piece != zero)) for piece in pieces(codes))
    assert count == len(PLACES)


def counts() -> Any:
    """Return the count of each number of the pattern."""
    full, rest = divmod(N, len(PATTERN))
    return full + (np.arange(len(PATTERN)) < rest)


@case
def unary() -> None:
    x, short = repeated(), pattern()
    for function in (np.negative, np.sqrt, np.exp, np.rint):
        with np.errstate(all="ignore"):
            want = function(short)
            function(x, out=x)
        assert_repeats(x, want)
        short = want


@case
def binary() -> None:
    x, short = repeated(), pattern()
    for function in (np.add, np.multiply, np.maximum, np.copysign):
        with np.errstate(all="ignore"):
            want = function(short, short)
            function(x, x, out=x)
        assert_repeats(x, want)
        short = want


@case
def comparisons() -> None:
    x, short = repeated(), pattern()
    bound = short[100]
    for function in (np.less, np.equal):
        assert_repeats(function(x, bound), function(short, bound))
    for function in (np.isfinite, np.signbit):
        assert_repeats(function(x), function(short))


@case
def casts() -> None:
    x, short = repeated(), pattern()
    for dtype in (td.float4_e2m1fn, np.int8, np.bool_, td.float8_e5m2):
        with np.errstate(all="ignore"):
            assert_repeats(x.astype(dtype), short.astype(dtype))
    del x
    one = np.ones(1)
    for dtype in (td.bfloat16, np.float16):
        assert_sparse(
            sparse().astype(dtype), (0 * one).astype(dtype), one.astype(dtype)
        )


@case
def copies() -> None:
    x = repeated()
    y = x[::-1].copy()
    assert_repeats(y[::-1], pattern())


@case
def sums() -> None:
    x = repeated()
    numbers = pattern().astype(np.float64)
    exact = float(counts() @ numbers)  # of multiples of 2**-9 below 2**44
    for y in (x, x[::-1]):
        assert y.sum(dtype=np.float32) == np.float32(exact)
    assert x.mean(dtype=np.float32) == np.float32(np.float32(exact) / N)
    assert sparse().sum() == len(PLACES)
    assert sparse().reshape(N, 1).sum(0) == len(PLACES)
    assert sparse().prod() == 0


@case
def running_sums() -> None:
    x = np.zeros(N, T)
    x[2**31 + 1] = 1
    np.cumsum(x, out=x)
    assert np.count_nonzero(x) == N - (2**31 + 1)
    assert x[2**31 + 1] == x[-1] == 1


@case
def extremes() -> None:
    x = repeated()
    x[2**31 + 3], x[2**31 + 5] = 448, -448
    assert (x.max(), x.min()) == (448, -448)
    assert (np.argmax(x), np.argmin(x)) == (2**31 + 3, 2**31 + 5)


@case
def zeros() -> None:
    numbers = pattern().astype(np.float64)
    assert np.count_nonzero(repeated()) == int(counts()[numbers != 0].sum())
    assert np.nonzero(sparse())[0].tolist() == list(PLACES)


@case
def sorting() -> None:
    x = repeated()
    x.sort()
    order = np.argsort(pattern().astype(np.float64), kind="stable")
    numbers = pattern()[order]
    ends = np.cumsum(counts()[order])
    starts = ends - counts()[order]
    assert np.array_equal(x[starts], numbers)
    assert np.array_equal(x[ends - 1], numbers)
    for bound in (-1.5, 0.25, 100.0):
        at = np.searchsorted(x, T(bound))
        assert at == starts[np.flatnonzero(numbers >= T(bound))[0]]


@case
def rounding() -> None:
    x, short = repeated(), pattern()
    kind = td.float6_e2m3fn
    with np.errstate(all="ignore"):
        for mode in ("toward_zero", "to_odd"):
            want = td.quantize(short, kind, rounding=mode)
            assert_repeats(td.quantize(x, kind, rounding=mode), want)
    del x
    assert_repeats(td.bits(repeated()), PATTERN)
    assert_repeats(td.from_bits(np.resize(PATTERN, N), T), short)


@case
def files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.npy"
        td.save(path, repeated())
        assert_repeats(td.load(path), pattern())


@case
def products() -> None:
    x = sparse()
    assert np.vecdot(x, x) == len(PLACES)
    assert np.dot(x, x) == len(PLACES)
    assert (x[None] @ x[:, None]).tolist() == [[len(PLACES)]]
    halves = sparse(td.bfloat16)
    assert np.vecdot(halves, halves) == len(PLACES)


@case
def emulated_products() -> None:
    x = sparse(np.float32)
    found = td.matmul(x[None], x[:, None], precision="bf16x9")
    assert found.tolist() == [[len(PLACES)]]


@case
def blocks() -> None:
    """Quantize 2**31 + 9 float32 zeros, which take no memory."""
    found = td.blocks.quantize(sparse(np.float32), "mxfp4")
    assert found.shape == (N,)
    # A byte has two codes.
    assert np.flatnonzero(found.codes).tolist() == [place // 2 for place in PLACES]


def main(chosen: list[str]) -> None:
    for name in chosen or cases:
        began = time.monotonic()
        cases[name]()
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
