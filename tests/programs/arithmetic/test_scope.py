"""Scopes: the state before a scope returns after it, in all threads."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import (
    UFUNCS,
    inside,
    operands,
    rounded,
    same_bits,
    umath,
)

X = np.random.default_rng(0).normal(size=1000).astype("f4")


def all_results() -> list[Any]:
    found: list[Any] = []
    with np.errstate(all="ignore"):
        for name in UFUNCS:
            ufunc = getattr(umath, name)
            for dtype in ("f4", "f8"):
                args = operands(ufunc, 500, dtype)
                result = ufunc(*args)
                found += result if isinstance(result, tuple) else [result]
    return found


def test_numpys_loops_are_its_own_again() -> None:
    before = all_results()
    with td.arithmetic("float8_e4m3fn", float64=True):
        changed = all_results()
    after = all_results()
    assert all(map(same_bits, before, after))
    assert sum(map(same_bits, before, changed)) < len(before) / 4


def test_nested() -> None:
    with td.arithmetic("bf16"):
        with td.arithmetic("bfloat16"):
            pass
        assert same_bits(X * X, rounded(rounded(X, "bf16") ** 2, "bf16"))
        for other in (td.arithmetic("tf32"), td.arithmetic("bf16", float64=True)):
            with pytest.raises(
                RuntimeError, match=r"inside of arithmetic\('bfloat16'\)"
            ):
                other.__enter__()
        with pytest.raises(RuntimeError, match=r"'tf32'\) must be open"):
            td.arithmetic("tf32").__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="must be open"):
        td.arithmetic("bf16").__exit__(None, None, None)
    assert X[0] * X[:1] != rounded(X[0] * X[:1], "bf16")


def test_an_error_inside_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), td.arithmetic("bf16"):
        1 / 0  # noqa: B018
    assert same_bits(X + X, 2 * X)


def test_decorator() -> None:
    @td.arithmetic("bf16")
    def double(x: Any) -> Any:
        """Twice."""
        return x + x

    assert double.__doc__ == "Twice."
    assert same_bits(double(X), rounded(2 * rounded(X, "bf16"), "bf16"))


def test_decorated_coroutines() -> None:
    @td.arithmetic("bf16")
    async def double(x: Any) -> Any:
        await asyncio.sleep(0)
        return x + x

    assert inspect.iscoroutinefunction(double)
    assert same_bits(asyncio.run(double(X)), rounded(2 * rounded(X, "bf16"), "bf16"))
    assert same_bits(X + X, 2 * X)


def test_generators_are_not_decorated() -> None:
    with pytest.raises(TypeError, match="arithmetic cannot decorate a generator"):

        @td.arithmetic("bf16")
        def generator() -> Iterator[Any]:
            yield X + X

    with pytest.raises(TypeError, match="arithmetic cannot decorate a generator"):

        @td.arithmetic("bf16")
        async def async_generator() -> AsyncIterator[Any]:
            yield X + X


@pytest.mark.parametrize(
    ("format", "error", "says"),
    [
        ("bf17", ValueError, "format must be .*; got 'bf17'"),
        ("float64", ValueError, "format must be .*; got 'float64'"),
        ("float8_e8m0fnu", ValueError, "must have zero and .*; got float8_e8m0fnu"),
        (3, TypeError, "format must be .*; got 3"),
    ],
)
def test_unknown_formats(format: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        td.arithmetic(format)


def test_names_of_the_core() -> None:
    with pytest.raises(
        ValueError, match=r"format_name must be one of tf32, bfloat16.*'bf16'"
    ):
        td._core.begin_arithmetic("bf16", False, False)
    with pytest.raises(RuntimeError, match="must begin before"):
        td._core.end_arithmetic()


@pytest.mark.parametrize("watch", [False, True])
def test_threads(watch: bool) -> None:
    """Round in all threads, and count each result once."""
    big = np.tile(X, 50)
    wanted = rounded(rounded(big, "bf16") * rounded(big, "bf16"), "bf16")

    def work(_: int) -> bool:
        return all(same_bits(np.multiply(big, big), wanted) for _ in range(20))

    with td.arithmetic("bf16", watch=watch), ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
    if watch:
        rows = [
            row for row in td.arithmetic.call_sites() if row["function"] == "multiply"
        ]
        assert sum(row["results"] for row in rows) == 8 * 20 * big.size


def test_scopes_come_and_go_while_threads_compute() -> None:
    a, b = rounded(X, "bf16"), X
    either = {np.multiply(b, b).tobytes(), rounded(np.multiply(a, a), "bf16").tobytes()}
    stop = False

    def work(_: int) -> set[bytes]:
        found = set()
        while not stop:
            found.add(np.multiply(b, b).tobytes())
        return found

    with ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(work, i) for i in range(3)]
        for _ in range(200):
            with td.arithmetic("bf16"):
                pass
        stop = True
    assert all(task.result() <= either for task in tasks)


OTHERS_LOOP = """
import ctypes, numpy as np, tf32dtype as td
api = ctypes.pythonapi.PyCapsule_GetPointer
api.restype, api.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
table = api(np._core.umath._UFUNC_API, None)
replace = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int),
    ctypes.POINTER(ctypes.c_void_p))(ctypes.cast(
        table, ctypes.POINTER(ctypes.c_void_p))[30])  # of NumPy 2.0 and later
LOOP = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
signature, old = (ctypes.c_int * 3)(11, 11, 11), ctypes.c_void_p()
calls = []

@LOOP
def theirs(args, dimensions, steps, data):
    calls.append(1)
    LOOP(old.value)(args, dimensions, steps, data)

x = np.float32([1.1, 2.2])
with td.arithmetic("bf16"):
    replace(np.add, ctypes.cast(theirs, ctypes.c_void_p), signature, ctypes.byref(old))
    print((x + x).tolist(), len(calls))
print((x + x).tolist(), len(calls))
with td.arithmetic("bf16"):
    print((x + x).tolist(), len(calls))
print((x + x).tolist(), len(calls))
"""


def test_loops_that_others_put_in_stay() -> None:
    """Keep others' loops, which call ours: it rounds in scopes, else calls NumPy's."""
    code = OTHERS_LOOP
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    low = "[2.203125, 4.40625]"
    plain = "[2.200000047683716, 4.400000095367432]"
    assert done.stdout.splitlines() == [
        f"{low} 1",
        f"{plain} 2",
        f"{low} 3",
        f"{plain} 4",
    ]


def test_formats_of_ours_are_left_alone() -> None:
    x = X.astype(td.tf32)
    assert same_bits(inside("float8_e5m2", lambda: x + x), x + x)
