"""Figures by line equal those of plain NumPy on the same operands."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import DTYPES, operands, quiet, rounded, umath

NAMES = ("add", "subtract", "multiply", "divide", "exp", "log", "sqrt", "clip", "modf")
FORMATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float16")


def watched(format: str, compute: Callable[[], Any]) -> list[dict[str, Any]]:
    """Return the rows of a computation, float64 included."""
    with quiet(), td.arithmetic(format, float64=True, watch=True):
        compute()
    return td.arithmetic.call_sites()


def grid(format: str) -> tuple[int, int, float]:
    """Return mantissa bits, exponent of the smallest normal number, largest number."""
    if format == "float16":
        return 10, -14, 65504.0
    f = td.formats[format]
    return f.mantissa_bits, 1 - f.bias, f.max


def plain_figures(
    format: str, operands: list[Any], results: list[Any], truths: list[Any], adds: bool
) -> dict[str, Any]:
    """Compute the figures number by number."""
    bits, least, greatest_number = grid(format)
    top_ulp = 2.0 ** (math.frexp(greatest_number)[1] - 1 - bits)
    saturates = format == "float4_e2m1fn"
    names = "results inexact overflows underflows nans measured largest_ulps"
    figures = dict.fromkeys(names.split(), 0) | {"largest_ulps": 0.0}
    figures |= dict.fromkeys(
        ("sums", "zero_sums", "canceled_sums", "most_bits_lost", "absorbed_sums"), 0
    )
    ulps = 0.0
    for result, truth in zip(results, truths, strict=True):
        for i, (r, t) in enumerate(zip(result.tolist(), truth.tolist(), strict=True)):
            inputs = [abs(x.tolist()[i]) for x in operands]
            figures["results"] += 1
            has_nan = any(map(math.isnan, inputs))
            # Without Inf and NaN, the largest number also represents overflow.
            beyond = saturates and abs(t) >= greatest_number + top_ulp / 2
            over = math.isfinite(t) and (not math.isfinite(r) or beyond)
            figures["overflows"] += over
            figures["nans"] += math.isnan(r) and not has_nan and not over
            if math.isfinite(t):
                figures["inexact"] += r != t
                figures["underflows"] += r != t and abs(t) < 2.0**least
                if not over:
                    exponent = max(math.frexp(t)[1] - 1 if t else least, least)
                    error = abs(r - t) / 2.0 ** (exponent - bits)
                    figures["measured"] += 1
                    figures["largest_ulps"] = max(figures["largest_ulps"], error)
                    ulps += error
                most = max(inputs) if not has_nan else math.inf
                if adds and 0 < most < math.inf:
                    figures["sums"] += 1
                    figures["zero_sums"] += t == 0
                    figures["absorbed_sums"] += r != t and abs(r) == most
                    if t:
                        lost = math.frexp(most)[1] - math.frexp(t)[1]
                        figures["canceled_sums"] += lost > (bits + 1) / 2
                        figures["most_bits_lost"] = max(figures["most_bits_lost"], lost)
    return figures | {"sum_of_ulps": pytest.approx(ulps, rel=1e-12)}


def greatest_of(format: str, x: Any) -> Any:
    """Return a bound that a rounded operand reaches only if it overflowed."""
    if format != "float4_e2m1fn":
        return np.inf
    return np.where(abs(x) >= 7, 6, np.inf)  # 6 also represents overflow


@pytest.mark.sampled(4)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_ufuncs(name: str, dtype: str, format: str) -> None:
    ufunc = getattr(umath, name)
    args = operands(ufunc, 1100, dtype)
    args = [np.where(abs(x) < 1e30, x, x.astype("f4")) for x in args]
    low = [rounded(x, format) for x in args]
    with quiet():
        found = ufunc(*low)
        wide = ufunc(*(x.astype("f8") for x in low))
    found, wide = (x if isinstance(x, tuple) else (x,) for x in (found, wide))
    results = [rounded(x, format) for x in found]
    truths = [x.astype("f8") for x in (found if dtype == "f8" else wide)]
    (row,) = watched(format, lambda: ufunc(*args))
    assert row["function"] == name
    assert row["dtype"] == np.dtype(dtype).name
    foreign = sum(
        int(((x != y) & (x == x)).sum()) for x, y in zip(args, low, strict=True)
    )
    assert (row["operands"], row["rounded_operands"]) == (1100 * ufunc.nin, foreign)
    with quiet():
        beyond = sum(
            int(((x != y) & np.isfinite(x) & ~(abs(y) < greatest_of(format, x))).sum())
            for x, y in zip(args, low, strict=True)
        )
        below = sum(
            int(((x != y) & (abs(x) < 2.0 ** grid(format)[1])).sum())
            for x, y in zip(args, low, strict=True)
        )
    assert (row["operand_overflows"], row["operand_underflows"]) == (beyond, below)
    wanted = plain_figures(format, low, results, truths, name in ("add", "subtract"))
    assert {key: row[key] for key in wanted} == wanted


@pytest.mark.parametrize("dtype", DTYPES)
def test_reduction_is_one_result(dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=3000).astype(dtype)
    low = rounded(x, "bfloat16")
    result = rounded(np.add.reduce(low), "bfloat16")
    truth = math.fsum(low.tolist())
    (row,) = watched("bfloat16", lambda: np.add.reduce(x))
    assert row["results"] == row["calls"] == row["sums"] == 1
    assert row["operands"] == 3000 + (row["operands"] > 3000)  # and an initial value
    ulp = 2.0 ** (math.frexp(truth)[1] - 1 - 7)
    assert row["largest_ulps"] == pytest.approx(
        abs(float(result) - truth) / ulp, rel=1e-5
    )
    most = math.frexp(abs(low).max())[1]
    assert row["most_bits_lost"] == max(most - math.frexp(truth)[1], 0)


def test_a_sum_that_cancels() -> None:
    x = np.float32([1, -1 + 2**-8, 100, -100 + 2**-1])
    (row,) = watched("bfloat16", lambda: np.add.reduceat(x, [0, 2]))
    assert (row["results"], row["sums"]) == (2, 2)
    assert (row["zero_sums"], row["most_bits_lost"], row["canceled_sums"]) == (0, 8, 2)


def test_accumulation_has_a_result_each() -> None:
    x = np.random.default_rng(0).normal(size=300).astype("f4")
    (row,) = watched("bfloat16", lambda: np.cumsum(x))
    assert row["results"] == 299
    assert row["rounded_operands"] == 300
    assert 0 < row["largest_ulps"] <= 0.501


def test_lines() -> None:
    """Make one row per function and line, with the frames of user and library."""

    def compute() -> None:
        x = np.ones(5, "f4")
        for _ in range(3):
            x = x * x + x
        np.mean(x)

    rows = watched("bfloat16", compute)
    first = inspect.getsourcelines(compute)[1]
    found = {(row["user"][1] - first, row["function"]): row for row in rows}
    assert {(3, "multiply"), (3, "add"), (4, "add")} <= {*found}
    assert found[3, "multiply"]["results"] == 15
    assert found[3, "multiply"]["user"][::2] == (__file__, compute.__qualname__)
    assert found[4, "add"]["library"][2] == "_mean"


def test_rows_of_before_are_forgotten() -> None:
    x = np.ones(5, "f4")
    assert watched("bfloat16", lambda: x + x)
    assert not watched("bfloat16", lambda: None)
    with td.arithmetic("bfloat16"):
        x + x
    assert not td.arithmetic.call_sites()
