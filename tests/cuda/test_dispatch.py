"""Calls of NumPy's and CuPy's functions reach the right code, or report errors."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda.functions_table import CUPY, NUMPY, REFUSED, rows
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.ufuncs import numpy_surface
from tf32dtype.cuda import dispatch
from tf32dtype.cuda._runtime.storage import is_ours

TYPES = [td.bfloat16, td.tf32, td.float8_e4m3fn]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=lambda t: t.__name__)
#: Errors that end CuPy's own code on a machine without a driver.
MISSING = (cupy.cuda.runtime.CUDARuntimeError, ImportError)


# -- calls ---------------------------------------------------------------------------


def up(x: Any) -> Any:
    """Copy a host array to the device, and return other arguments unchanged."""
    if isinstance(x, np.ndarray) and type(x) is np.ndarray and x.dtype.names is None:
        if is_ours(x.dtype) or x.dtype == np.float32:
            return tfc.asarray(x)
        return dispatch.backend.current().put(x)
    return x


def down(x: Any) -> Any:
    if isinstance(x, tfc.ndarray):
        return x.get()
    return dispatch.backend.current().get(x) if isinstance(x, cupy.ndarray) else x


def letters(scalar_type: Any) -> dict[str, Any]:
    found = numpy_surface.letters(scalar_type)
    vector = found["V"]
    return {name: up(x) for name, x in found.items()} | {
        "V": lambda values: tfc.asarray(vector(values))
    }


def leaves(x: Any) -> Any:
    if isinstance(x, tuple | list):
        for y in x:
            yield from leaves(y)
    else:
        yield np.asarray(down(x))


def difference(got: Any, want: Any, bits: bool = True) -> str:
    """Return "" if dtypes, shapes and bits are equal, else the difference. Without
    `bits`, floating-point numbers of NumPy's dtypes need only be close."""
    mine, true = list(leaves(got)), list(leaves(want))
    if len(mine) != len(true):
        return f"{len(mine)} results, not {len(true)}"
    for x, y in zip(mine, true, strict=True):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"{x.dtype} {x.shape}, not {y.dtype} {y.shape}"
        if x.dtype.kind in "OU":
            same = str(x) == str(y)
        elif not bits and x.dtype.isbuiltin == 1 and x.dtype.kind in "fc":
            eps = 16 * np.finfo(x.dtype).eps
            same = np.allclose(x, y, eps, eps, equal_nan=True)
        else:
            same = x.tobytes() == y.tobytes()
        if not same:
            return f"{x}, not {y}"
    return ""


def evaluate(f: Any, call: str, scalar_type: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return eval(call, letters(scalar_type) | {"f": f})
        except Exception as error:
            return error


def on_cpu(name: str, call: str, scalar_type: Any) -> Any:
    if name == "einsum":  # np.einsum has none of our dtypes
        return numpy_surface.evaluate(td.einsum, call, scalar_type)
    return numpy_surface.evaluate(found(np, name), call, scalar_type)


def is_own(name: str, call: str, scalar_type: Any) -> bool:
    """Return whether NumPy's result on the CPU is exempt from being the model, too."""
    exempt = numpy_surface.exemption(f"np.{name}", call, scalar_type)
    return exempt is not None and exempt.outcome == "own"


def found(module: Any, name: str) -> Any:
    return functools.reduce(
        lambda x, part: getattr(x, part, None), name.split("."), module
    )


# -- NumPy -----------------------------------------------------------------------------


NUMPY_ROWS = list(rows(NUMPY))
CUPY_ROWS = list(rows(CUPY))


def public(module: Any) -> set[str]:
    """Return the names of a module's functions, with those of linalg and fft."""
    names = set()
    for prefix, where in (
        ("", module),
        ("linalg.", module.linalg),
        ("fft.", module.fft),
    ):
        for name in dir(where):
            if not name.startswith("_"):
                names.add(prefix + name)
    return names


def test_every_function_of_numpy_has_a_row() -> None:
    names = {x for x in public(np) if hasattr(found(np, x), "_implementation")}
    listed = [name for name, _, _ in NUMPY_ROWS]
    assert len(set(listed)) == len(listed)
    # Functions that only a newer NumPy has may have a row.
    assert not names - set(listed)


def test_every_function_of_cupy_has_a_row() -> None:
    names = set()
    for name in public(cupy):
        x = found(cupy, name)
        if callable(x) and not isinstance(x, type | cupy.ufunc):
            names.add(name)
    listed = [name for name, _, _ in CUPY_ROWS]
    assert len(set(listed)) == len(listed)
    assert not names - set(listed)


@pytest.mark.parametrize("row", NUMPY_ROWS, ids=[x[0] for x in NUMPY_ROWS])
@each_type
def test_numpy(backend: Any, row: Any, scalar_type: Any) -> None:  # noqa: F811
    name, calls, outcome = row
    if found(np, name) is None:
        pytest.skip("this NumPy has it not")
    for call in calls:
        got = evaluate(found(np, name), call, scalar_type)
        if outcome == "routed":
            if isinstance(got, Exception):
                raise got
            want = on_cpu(name, call, scalar_type)
            assert not difference(got, want) or is_own(name, call, scalar_type), call
        else:
            _assert_error(got, outcome)


def _assert_error(got: Any, outcome: str) -> None:
    assert isinstance(got, Exception), f"{got!r}"
    words = outcome.removeprefix("error: ")
    assert words in str(got), f"{type(got).__name__}: {got}"


@pytest.mark.parametrize("name", REFUSED["np."])
def test_refused(backend: Any, name: str) -> None:  # noqa: F811
    call, words = REFUSED["np."][name]
    _assert_error(evaluate(found(np, name), call, td.bfloat16), words)


def test_nothing_is_written_by_a_refused_call(backend: Any) -> None:  # noqa: F811
    x = tfc.asarray([1, 2], td.bfloat16)
    wide = tfc.asarray([3, 4], np.float32)
    for call in (
        lambda: np.copyto(x, wide, casting="safe"),
        lambda: np.concatenate([wide, wide], out=tfc.zeros(4, td.bf16), casting="safe"),
        lambda: np.take(x, 0, out=tfc.zeros(2, td.bf16)),
        lambda: np.copyto(x, np.ones(2)),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert x.get().tolist() == [1, 2]


# -- CuPy ------------------------------------------------------------------------------


@pytest.fixture
def deep(backend: Any, monkeypatch: Any) -> Any:  # noqa: F811
    """Make `cupy.asarray` return an array without asking a driver for the device. Tests
    without a GPU then reach the code after this call."""
    if backend is HOST:

        def asarray(x: Any, *args: Any, **keywords: Any) -> Any:
            if isinstance(x, cupy.ndarray) and not args and not keywords:
                return x
            return HOST.put(np.asarray(x, *args, **keywords))

        monkeypatch.setattr(cupy, "asarray", asarray)
        monkeypatch.setattr(cupy, "asanyarray", asarray)
    return backend


@pytest.mark.parametrize("row", CUPY_ROWS, ids=[x[0] for x in CUPY_ROWS])
@each_type
def test_cupy(deep: Any, row: Any, scalar_type: Any) -> None:
    name, calls, outcome = row
    if found(cupy, name) is None:
        pytest.skip("this CuPy has it not")
    for i, call in enumerate(calls):
        got = evaluate(found(cupy, name), call, scalar_type)
        if isinstance(got, MISSING) and deep is HOST and (outcome != "routed" or i):
            continue
        if outcome.startswith("error") and i == 0:
            _assert_error(got, outcome)
        if isinstance(got, Exception):
            if outcome == "routed" and i == 0:
                raise got
            continue  # CuPy has fewer parameters
        want = on_cpu(name, call, scalar_type)
        if isinstance(want, Exception):
            assert outcome == "wider", f"{call}: {got!r}, but NumPy: {want}"
            continue
        if outcome == "wider":
            assert not any(is_ours(x.dtype) for x in leaves(got))
        else:
            # On a GPU, CuPy's kernels compute the functions that are not routed.
            bits = deep is HOST or outcome == "routed"
            wrong = difference(got, want, bits)
            assert not wrong or is_own(name, call, scalar_type), call


UFUNCS = [
    name
    for name in sorted(dir(cupy))
    if isinstance(getattr(cupy, name), cupy.ufunc)
    and isinstance(getattr(np, name, None), np.ufunc)
]


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_of_cupy(backend: Any, name: str) -> None:  # noqa: F811
    """CuPy's ufuncs reach the same kernels as NumPy's, with the CPU's bits."""
    arguments = numpy_surface.UFUNC_ARGUMENTS.get(name)
    ufunc = getattr(np, name)
    call = f"f({arguments or ('a, b' if ufunc.nin == 2 else 'a')})"
    want = numpy_surface.evaluate(ufunc, call, td.bfloat16)
    for f in (getattr(cupy, name), ufunc):
        got = evaluate(f, call, td.bfloat16)
        if isinstance(want, Exception):
            assert isinstance(got, Exception)
        else:
            if isinstance(got, Exception):
                raise got
            bits = backend is HOST or name != "float_power"  # float64, by CuPy's kernel
            assert not difference(got, want, bits)


def test_ufunc_arguments(backend: Any) -> None:  # noqa: F811
    a = np.array([1, 2.5, -3], td.bfloat16)
    x, y = tfc.asarray(a), tfc.asarray(a[::-1].copy())
    out = tfc.zeros(3, td.bfloat16)
    assert np.add(x, y, out=out) is out
    assert difference(out, a + a[::-1]) == ""
    assert cupy.multiply(x, y, out) is out
    assert difference(out, a * a[::-1]) == ""
    cupy.subtract(x, y, out=out)
    assert difference(out, a - a[::-1]) == ""
    mask = np.array([True, False, True])
    np.add(x, y, out=out, where=up(mask))
    want = a - a[::-1]
    np.add(a, a[::-1], out=want, where=mask)
    assert difference(out, want) == ""
    assert (
        difference(np.add(x, y, dtype=np.float32), np.add(a, a[::-1], dtype="f4")) == ""
    )


@pytest.mark.parametrize(
    "call",
    [
        "np.add.reduce(m)", "np.add.reduce(m, axis=None)",
        "np.maximum.reduce(m, axis=1)",
        "np.multiply.reduce(m, axis=0, keepdims=True)", "np.add.accumulate(a)",
        "np.add.outer(a, b)", "np.subtract.outer(m, a)", "np.logical_and.reduce(m)",
        "np.minimum.reduce(m, initial=T(0.25), axis=1)",
    ],
)  # fmt: skip
def test_ufunc_methods(backend: Any, call: str) -> None:  # noqa: F811
    got = evaluate(None, call, td.bfloat16)
    if isinstance(got, Exception):
        raise got
    assert not difference(got, numpy_surface.evaluate(None, call, td.bfloat16))


@pytest.mark.parametrize(
    "call",
    [
        "np.add.at(a, i, b)", "np.add.reduceat(a, [0, 3])", "np.hypot.reduce(a)",
        "np.maximum.accumulate(a)", "np.frompyfunc(len, 1, 1)(a)",
        "cupy.add.at(a, i, b)", "cupy.add.reduceat(a, i)",
    ],
)  # fmt: skip
def test_ufunc_methods_without_a_kernel(deep: Any, call: str) -> None:
    got = evaluate(cupy, call.replace("cupy", "f"), td.bfloat16)
    assert isinstance(got, (TypeError, *MISSING)), got


# -- float32 of the class --------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "a + b", "np.exp(a)", "a.sum()", "np.sum(m, axis=0)", "np.where(mask, a, 0.5)",
        "np.concatenate([a, b])", "np.sort(a)", "a < b", "np.round(a, 1)", "np.max(m)",
        "np.linalg.norm(a)", "np.median(a)", "np.cumsum(a)", "a[i]", "-a", "a ** 2",
        "np.var(m, axis=0)", "np.tile(a, 2)", "np.diff(a)", "np.clip(a, 0, 1)",
    ],
)  # fmt: skip
def test_float32(backend: Any, call: str) -> None:  # noqa: F811
    """Results in float32 keep the class, for which matrix multiplications use the
    modes."""
    got = evaluate(None, call, np.float32)
    if isinstance(got, Exception):
        raise got
    want = np.asarray(numpy_surface.evaluate(None, call, np.float32))
    assert isinstance(got, tfc.ndarray) == (want.dtype == np.float32)
    if backend is HOST:
        assert not difference(got, want)
    else:  # CuPy's own functions
        np.testing.assert_allclose(down(got), want, rtol=1e-6)


@pytest.mark.parametrize("name", td.formats)
def test_round(backend: Any, name: str) -> None:  # noqa: F811
    """Bits are the CPU's, also for NaN of either sign and where times 10 overflows."""
    f = td.formats[name]
    codes = np.arange(0, 1 << f.bits, 1 if f.bits <= 8 else 97, dtype=np.uint32)
    codes <<= 13 if f.itemsize == 4 else 0
    x = td.from_bits(codes.astype(f"u{f.itemsize}"), f.dtype)
    with np.errstate(all="ignore"):
        for decimals in (-1, 0, 2):
            want = np.round(x, decimals)
            for got in (np.round(up(x), decimals), up(x).round(decimals)):
                assert got.dtype == f.dtype
                assert np.array_equal(td.bits(got.get()), td.bits(want))
