"""Reductions of pandas for every format: float64's result, rounded once.

The dtype is the format's if float32's result has float32, but float64 for NaN in a
format without NaN. For means of sorted groups of float32, pandas 3.1 has float64, but
for ours the format, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import ALL, dtype, name
from tests.ufuncs.test_averages import check, deviation, mean, numbers, variance

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.once

ROWS = 40
each = pytest.mark.parametrize("f", ALL, ids=name)

REDUCTIONS = """
    sum prod mean median var std sem skew kurt min max idxmin idxmax any all count
    nunique
""".split()
SKIPPING = [x for x in REDUCTIONS if x not in ("any", "all", "count", "nunique")]
TRANSFORMS = "cumsum cumprod cummin cummax rank ffill bfill dropna".split()
PARTS: dict[str, Callable[[Any], Any]] = {
    "scattered": lambda x: x.groupby(np.arange(ROWS) % 5),
    "sorted": lambda x: x.groupby(np.arange(ROWS) // 5),
    "resample": lambda x: x.resample("3h"),
    "rolling": lambda x: x.rolling(3, min_periods=1),
    "expanding": lambda x: x.expanding(),
    "triangles": lambda x: x.rolling(3, win_type="triang", min_periods=1),
    "ewm": lambda x: x.ewm(2),
}


def method(how: str, **options: Any) -> Callable[[Any], Any]:
    return lambda x: getattr(x, how)(**options)


def partly(part: Callable[[Any], Any], how: str) -> Callable[[Any], Any]:
    return lambda x: getattr(part(x), how)()


def calls() -> dict[str, Callable[[Any], Any]]:
    """Return calls for a Series and for a DataFrame."""
    made = {how: method(how) for how in REDUCTIONS + TRANSFORMS}
    made |= {f"{x} of all": method(x, skipna=False) for x in SKIPPING[:-2]}
    made |= {f"{x} ddof=0": method(x, ddof=0) for x in ("var", "std", "sem")}
    made |= {f"{x} of few": method(x, min_count=99) for x in ("sum", "prod")}
    for where, how in itertools.product(PARTS, [*REDUCTIONS, "first", "last"]):
        made[f"{where} {how}"] = partly(PARTS[where], how)
    made["quantile"] = method("quantile", q=[0.1, 0.5])
    made["scattered quantile"] = lambda x: PARTS["scattered"](x).quantile(0.3)
    made["round"] = method("round", decimals=1)
    return made


OF_FRAMES = {
    f"{how} axis={axis} skipna={skipna}": method(how, axis=axis, skipna=skipna)
    for how in SKIPPING[:-2]
    for axis in (1, None)
    for skipna in (True, False)
}
OF_SERIES: dict[str, Callable[[Any], Any]] = {
    "nlargest": lambda s: s.nlargest(5),
    "nsmallest": lambda s: s.nsmallest(5),
    "argmax": lambda s: s.argmax(),
    "autocorr": lambda s: s.autocorr(),
    "corr": lambda s: s.corr(s.shift(3)),
    "cov": lambda s: s.cov(s.shift(3)),
    "mode": lambda s: s.mode(),
    "cut": lambda s: pd.cut(s, 3).cat.codes,
    "qcut": lambda s: pd.qcut(s, 3, duplicates="drop").cat.codes,
    "extension": lambda s: pd.Series(pd.arrays.NumpyExtensionArray(s.array)).mean(),
}


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    """Return the result of a call, or the type of its exception, as not all exist."""
    try:
        return function(x)
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        return type(error)


def parts(x: Any) -> list[np.ndarray]:
    """Return the columns of a result."""
    if isinstance(x, pd.DataFrame):
        return [x.iloc[:, i].to_numpy() for i in range(x.shape[1])]
    return [np.asarray(x)]


def differs(ours: Any, double: Any, single: Any, form: Any) -> str:
    """Return the fault of a result, by those of float64 and float32."""
    if isinstance(double, type):
        return "" if ours is double else f"{ours}, not {double}"
    for a, b, c in zip(parts(ours), parts(double), parts(single), strict=True):
        has_no_place = not form.has_nan and b.dtype == float and np.isnan(b).any()
        dtypes = [np.dtype(str(c.dtype).replace("float32", form.name))]
        if c.dtype == np.float32 and has_no_place:
            dtypes = [b.dtype]
        if c.dtype == np.float64:  # sorted groups
            dtypes.append(form.dtype)
        if a.dtype not in dtypes:
            return f"{a.dtype}, not {dtypes}"
        want = b.astype(a.dtype) if a.dtype == form.dtype else b
        if a.dtype.kind == "f":
            a, want = a.astype(float), want.astype(float)
            if not np.array_equal(a, want, equal_nan=True):
                return f"{a}, not {want} ({b})"
        elif not np.array_equal(a, want):
            return f"{a}, not {want}"
    return ""


@each
@pytest.mark.parametrize("has_nan", [False, True])
@pytest.mark.filterwarnings("ignore")
@np.errstate(all="ignore")
def test_reductions_are_those_of_float64_rounded_once(f, has_nan):
    form = td.formats[f.name]
    if has_nan and not form.has_nan:
        pytest.skip("it has no NaN")
    rng = np.random.default_rng(2)
    chosen = [0, 1, 2, -1, -2, 1.5, 0.5, 3] if form.has_zero else [1, 2, 4, 0.5]
    x = rng.choice(chosen, (ROWS, 3))
    if has_nan:
        x[rng.random(x.shape) < 0.15] = np.nan
    index = pd.date_range("2020", periods=ROWS, freq="h")

    def frame(dtype: Any) -> Any:
        return pd.DataFrame(x.astype(form.dtype).astype(dtype), index, list("abc"))

    frames = [frame(dtype) for dtype in (form.dtype, np.float64, np.float32)]
    series = [frame["a"] for frame in frames]
    wrong = []
    for operands, table in (
        (frames, calls() | OF_FRAMES),
        (series, calls() | OF_SERIES),
    ):
        for call, function in table.items():
            what = differs(*(outcome(function, x) for x in operands), form)
            if what:
                wrong.append(f"{type(operands[0]).__name__} {call}: {what}")
    assert not wrong, "\n".join(wrong)


@each
@np.errstate(all="ignore")
def test_means_and_deviations_are_exact(f):
    x = numbers(f, (60, 3))
    frame = pd.DataFrame(x)
    for how, exactly, options in (
        ("mean", mean, {}),
        ("var", variance, {"ddof": 0}),
        ("std", deviation, {"ddof": 0}),
    ):
        of_all = getattr(pd.Series(x.ravel()), how)(**options)
        check(f, of_all, x, None, exactly)
        for axis in (0, 1):
            found = getattr(frame, how)(axis=axis, **options)
            check(f, found.to_numpy(), x, axis, exactly)


@each
@np.errstate(all="ignore")  # the deviation is 0, which E8M0 lacks
def test_a_mean_where_the_sum_leaves_the_range(f):
    ones = pd.Series(np.ones(1000, dtype(f)))
    assert ones.mean() == 1
    assert ones.describe()["mean"] == 1
    assert ones.to_frame("a").mean()["a"] == 1
    if f.name != "float8_e8m0fnu":  # no zero
        assert ones.var() == ones.std() == ones.sem() == 0


@each
def test_largest_and_least_pass_over_nan_without_infinities(f):
    form = td.formats[f.name]
    if not form.has_nan:
        pytest.skip("it has no NaN")
    s = pd.Series(np.array([np.nan, 2, 1, np.nan, 4], form.dtype))
    assert s.max() == 4
    assert s.min() == 1
    assert (s.idxmin(), s.idxmax()) == (2, 4)
    assert np.array_equal(s.cummax(), [np.nan, 2, 2, np.nan, 4], equal_nan=True)


@each
def test_a_list_of_numbers_keeps_their_format(f):
    one = dtype(f).type(1)
    assert pd.Series([one, one]).dtype == dtype(f)
    assert pd.Series([one, 1.5]).dtype == np.float64
    assert pd.Series([one, np.float32(1.1)]).dtype == np.float32
    with np.errstate(all="ignore"):
        large = pd.Series([td.bfloat16(1e30), np.float16(1)])
        assert large[0] == td.bfloat16(1e30)
        assert pd.Series(np.ones(4, dtype(f))).agg(["mean", "sum"]).dtype == dtype(f)


@each
def test_an_index_finds_numbers(f):
    v = np.array([1, 2, 4], dtype(f))
    index = pd.Index(v)
    assert index.dtype == v.dtype
    assert index.is_unique
    assert index.get_loc(2.0) == index.get_loc(v[1]) == 1
    assert index.get_indexer([4.0, 3.0]).tolist() == [2, -1]
    assert 2.0 in index
    assert 3.0 not in index
    frame = pd.DataFrame({"x": v, "y": range(3)}).set_index("x")
    assert frame.loc[4.0, "y"] == 2
    assert np.array_equal(pd.get_dummies(pd.Series(v)), np.eye(3))
    assert pd.Series(v).equals(pd.Series(v.copy()))
    assert not pd.Series(v).equals(pd.Series(v[::-1]))
    double = pd.util.hash_pandas_object(pd.Series(v.astype(float)))
    assert np.array_equal(pd.util.hash_pandas_object(pd.Series(v)), double)
