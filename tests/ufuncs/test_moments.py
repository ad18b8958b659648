"""Statistics in one pass equal NumPy's in float64, rounded once: the same bits, types
and warnings. Sums and products with a mask are tested, too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.reference.formats import Format
from tests.support.bits import ALL, dtype, name
from tf32dtype import _core

each = pytest.mark.parametrize("f", ALL, ids=name)
SHAPES = [(1,), (3,), (64,), (1030,), (64, 16), (3, 4, 40), (700, 3), (2, 2500)]
KINDS = ["normal", "octaves", "codes", "ones", "integers", "zeros", "near", "top"]


def numbers(f: Format, kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    if kind == "codes":
        codes = rng.integers(0, 256, n * dtype(f).itemsize, dtype=np.uint8)
        return codes.view(dtype(f))
    x = rng.standard_normal(n)
    found = {
        "normal": x,
        "octaves": x * 2.0 ** rng.integers(-20, 20, n),
        "ones": np.ones(n),
        "integers": rng.integers(-3, 4, n),  # means are often halfway
        "zeros": rng.choice([0.0, -0.0], n),
        "near": 1000 + x,
        "top": x * float(f.max_value),
    }[kind]
    with np.errstate(all="ignore"):
        return found.astype(dtype(f))


def result(function: Callable[..., Any], *args: Any, **kw: Any) -> tuple[Any, ...]:
    """Return type, shape, bits and warnings, or the error."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            found = function(*args, **kw)
        except Exception as error:
            return type(error), str(error)
    texts = sorted({str(warning.message) for warning in caught})
    bits = np.asarray(found).tobytes()
    return type(found), np.shape(found), found.dtype, bits, texts


def axes(ndim: int) -> Iterator[Any]:
    yield None
    yield from range(ndim)
    if ndim > 2:
        yield from ((0, 2), (1, 2), (0, 1))


STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "var": lambda x, **kw: np.var(x, ddof=1, **kw),
    "std": np.std,
    "nanmean": np.nanmean,
    "nanvar": np.nanvar,
    "nanstd": lambda x, **kw: np.nanstd(x, ddof=1, **kw),
    "nansum": np.nansum,
    "nanprod": np.nanprod,
}


def calls(x: np.ndarray, turn: int) -> Iterator[Callable[[], Any]]:
    """Yield a third of all combinations in each of three turns."""
    mask = np.random.default_rng(1).random(x.shape) < 0.7
    options = ({}, {"keepdims": True}, {"where": mask})
    pairs = product(STATISTICS.values(), axes(x.ndim))
    for number, (function, axis) in enumerate(pairs):
        more = options[(number + number // 3 + turn) % 3]
        kw = {"axis": axis, **more}
        yield lambda f=function, kw=kw: f(x, **kw)
    for axis in (None, 0):
        yield lambda axis=axis: np.linalg.norm(x, axis=axis)
    if x.ndim == 1:
        weights = x[::-1]
        yield lambda: np.average(x)
        yield lambda: np.average(x, weights=weights)
        yield lambda: np.average(x, weights=np.abs(weights))


@each
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(9)
def test_statistics(f: Format, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = KINDS.index(kind) + ALL.index(f)
    for shape in SHAPES:
        x = numbers(f, kind, int(np.prod(shape))).reshape(shape)
        for turn, array in enumerate((x, x[..., ::-1], x.T)):
            settled = [result(call) for call in calls(array, first + turn)]
            with monkeypatch.context() as patch:
                for slow in ("statistic", "weighted_mean"):
                    patch.setattr(_core, slow, lambda *args: NotImplemented)
                again = [result(call) for call in calls(array, first + turn)]
            assert settled == again


@each
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(9)
def test_sums_and_products(f: Format, kind: str) -> None:
    """Compare with the ufunc's own method, for which NumPy calls the loop."""
    for shape in SHAPES:
        plain = numbers(f, kind, int(np.prod(shape))).reshape(shape)
        mask = np.random.default_rng(1).random(shape) < 0.7
        options = ({}, {"keepdims": True}, {"where": mask})
        for x, axis, more in product((plain, plain[::-1]), axes(plain.ndim), options):
            kw = {"axis": axis, **more}
            for function, ufunc in ((np.sum, np.add), (np.prod, np.multiply)):
                assert result(function, x, **kw) == result(ufunc.reduce, x, **kw)


@each
def test_masked_extremes(f: Format) -> None:
    for kind in KINDS:
        x = numbers(f, kind, 120).reshape(12, 10)
        mask = np.random.default_rng(1).random(x.shape) < 0.5
        for function, ufunc in (
            (np.max, np.maximum),
            (np.min, np.minimum),
            (np.nanmax, np.fmax),
            (np.nanmin, np.fmin),
        ):
            kw = {"axis": 0, "where": mask, "initial": 1}
            ours = result(function, x, **kw)
            plain = result(ufunc.reduce, x, **kw)
            assert ours[:4] == plain[:4]


@each
@pytest.mark.parametrize("n", [3, 130, 1500])
def test_extremes_with_nans(f: Format, n: int) -> None:
    """Compute step by step, as the loop of two operands does."""
    for kind in ("codes", "normal", "zeros"):
        x = numbers(f, kind, n)
        for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
            found = ufunc.accumulate(x)
            running = ufunc(np.concatenate([x[:1], found[1:-1]]), x[1:])
            assert found[1:].tobytes() == running.tobytes()
            assert ufunc.reduce(x).tobytes() == running[-1].tobytes()
        for of_nans, plain in ((np.nanargmax, np.argmax), (np.nanargmin, np.argmin)):
            wide = x.astype(np.float32)
            assert plain(x) == plain(wide)
            for axis in (None, 0):
                assert result(of_nans, x, axis) == result(of_nans, wide, axis)
        assert np.count_nonzero(x) == np.count_nonzero(x.astype(np.float32))
