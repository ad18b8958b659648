"""Results of products are followed to sums in which their bits cancel."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tf32dtype import _core

if not (_core.blas_available() and _core.frames_are_known()):
    pytest.skip("needs Linux and known frames", allow_module_level=True)
pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
X = 30 + RNG.normal(0, 1, (60, 16))
Y = X[:40] + RNG.normal(0, 0.1, (40, 16))
DTYPES = ("f4", "f8")


def rms(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(x.astype("f8")))))


def sums_of(compute: Callable[[], Any], **options: Any) -> dict[str, float]:
    """Return the canceled bits by ufunc, the most of several ones."""
    with td.report(precision="bf16", **options) as r:
        compute()
    found: dict[str, float] = {}
    for one in r.call_sites:
        for later in one.call_site.later_sums:
            assert later.frame is not None
            assert later.frame.file == __file__
            found[later.function] = max(later.bits, found.get(later.function, 0.0))
    return found


def outer(x: Any, y: Any) -> Any:
    return x @ y.T


def squares(x: Any) -> Any:
    return (x * x).sum(1)


def in_one_expression(x: Any, y: Any) -> Any:
    return squares(x)[:, None] - 2 * outer(x, y) + squares(y)


def in_place(x: Any, y: Any) -> Any:
    found = outer(x, y)
    found *= -2
    found += squares(x)[:, None]
    np.add(found, squares(y), out=found)
    return found


def in_place_twice(x: Any, y: Any) -> Any:
    """Call one loop twice, on whole arrays."""
    first = np.repeat(squares(x)[:, None], len(y), axis=1)
    second = np.repeat(squares(y)[None], len(x), axis=0)
    found = outer(x, y)
    found *= -2
    found += first
    found += second
    return found


def of_a_view(x: Any, y: Any) -> Any:
    product = outer(y, x).T
    return (-product - product) + squares(x)[:, None] + squares(y)


def by_name(x: Any, y: Any) -> Any:
    product = outer(x, y)
    half = np.divide(squares(x), 2)[:, None] + np.divide(squares(y), 2)
    return half - product


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "compute", [in_one_expression, in_place, in_place_twice, of_a_view, by_name]
)
def test_squared_distances(compute: Callable[..., Any], dtype: str) -> None:
    x, y = X.astype(dtype), Y.astype(dtype)
    distances = compute(x, y)
    share = 1 if compute is by_name else 2
    bits = math.log2(share * rms(outer(x, y)) / rms(distances))
    found = sums_of(lambda: compute(x, y))
    last = "subtract" if compute is by_name else "add"
    assert bits > 6
    assert found[last] == pytest.approx(bits, abs=0.05)


@pytest.mark.parametrize("compute", [in_one_expression, in_place])
def test_rows_that_are_passed_over(compute: Callable[..., Any]) -> None:
    """Skip some rows: NumPy calls a loop for each of many short rows."""
    x = 30 + RNG.normal(size=(5000, 6)) + np.sin(np.arange(5000) / 400)[:, None]
    x = x.astype("f4")
    y = x[::700]
    bits = math.log2(2 * rms(outer(x, y)) / rms(compute(x, y)))
    assert sums_of(lambda: compute(x, y))["add"] == pytest.approx(bits, abs=0.1)


def test_the_verdict_asks_for_these_bits() -> None:
    x, y = X.astype("f4"), Y.astype("f4")
    with td.report(precision="bf16,bf16x3") as r:
        in_one_expression(x, y)
    (one,) = r.call_sites
    assert one.verdict.text == "needs bf16x3"
    assert "bits cancel later" in one.verdict.warning
    (line,) = (x for x in r.advice if x.text.startswith("Canceled later"))
    assert "(bf16 has " in line.text
    assert "bits of it cancel in " in line.text
    assert "in_one_expression (add))" in line.text


def test_a_triangle_that_numpy_mirrors() -> None:
    """Follow `x @ x.T`, of which one triangle is computed and the other is copied."""
    x = X.astype("f4")

    def compute() -> Any:
        return squares(x)[:, None] - 2 * (x @ x.T) + squares(x)

    bits = math.log2(2 * rms(x @ x.T) / rms(compute()))
    assert sums_of(compute)["add"] == pytest.approx(bits, abs=0.05)


def test_sums_that_do_not_cancel() -> None:
    x, y = X.astype("f4"), Y.astype("f4")
    found = sums_of(lambda: outer(x, y) + outer(x, y))
    assert found == {"add": 0.0}
    with td.report(precision="bf16") as r:
        outer(x, y) + np.float32(1)
    assert r.call_sites[0].verdict.text == "bf16 is enough"


def test_other_numbers_in_the_same_memory() -> None:
    """Detect by contents memory that other code than ufuncs and products wrote."""
    x, y = X.astype("f4"), Y.astype("f4")
    other = RNG.normal(size=(60, 40)).astype("f4")

    def compute() -> None:
        product = outer(x, y)
        product[...] = other
        product - other

    assert sums_of(compute) == {}

    def freed() -> None:
        for _ in range(4):
            outer(x, y)
            other.copy() - other

    assert sums_of(freed) == {}


def test_other_functions_end_it() -> None:
    x, y = X.astype("f4"), Y.astype("f4")
    assert sums_of(lambda: np.exp(outer(x, y) / 1e6) - 1) == {}
    assert sums_of(lambda: outer(x, y).copy() - 1) == {}


def test_results_and_flags_stay_numpys() -> None:
    x, y = X * 1e100, Y * 1e100
    plain = in_one_expression(x, y), in_place(x, y), of_a_view(x, y)
    with np.errstate(all="raise"), td.report(precision="bf16"):
        found = in_one_expression(x, y), in_place(x, y), of_a_view(x, y)
    for a, b in zip(plain, found, strict=True):
        assert a.tobytes() == b.tobytes()
    with td.report(precision="bf16"), pytest.warns(RuntimeWarning, match="overflow"):
        outer(x, y) * 1e200
    zeros = np.zeros((8, 8), "f4")
    with np.errstate(all="raise"), td.report(precision="bf16"):
        for _ in range(40):  # products forget arrays, too
            found = zeros @ zeros - zeros
            found.sum(0), found.sum(1), found[:, None] + zeros


def test_complex_results_are_not_followed() -> None:
    x, y = X.astype("c8"), Y.astype("c8")
    assert sums_of(lambda: outer(x, y) - outer(x, y)) == {}


def test_loops_are_numpys_own_again() -> None:
    x, y = X.astype("f4"), Y.astype("f4")
    first = sums_of(lambda: in_one_expression(x, y))
    with td.arithmetic("bf16"):
        low = np.float32([1]) + np.float32([1 / 256])
    assert low[0] == 1
    assert np.float32([1]) + np.float32([1 / 256]) != 1
    assert sums_of(lambda: in_one_expression(x, y)) == first


def test_inside_of_arithmetic() -> None:
    """Skip loops that round, and forget sums of an earlier report."""
    x, y = X.astype("f4"), Y.astype("f4")
    assert sums_of(lambda: in_one_expression(x, y))
    with td.arithmetic("bf16"):
        assert sums_of(lambda: in_one_expression(x, y)) == {}


def test_threads() -> None:
    x, y = X.astype("f4"), Y.astype("f4")
    plain = in_one_expression(x, y).tobytes()
    with td.report(precision="bf16") as r, ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda _: in_one_expression(x, y).tobytes(), range(400))
        assert set(results) == {plain}
    assert r.call_sites[0].call_site.calls == 400


def test_a_forked_child() -> None:
    code = """
import os, sys
import numpy as np, tf32dtype as td
x = np.ones((50, 50), "f4")
with td.report(precision="bf16") as r:
    y = x @ x - 1
    child = os.fork()
    if not child:
        z = x @ x - 1
        os._exit(0 if (z == y).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    z = x @ x - 1
print(len(r.call_sites))
"""
    done = forks.python("-c", code)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
