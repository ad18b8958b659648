"""Missing values that pandas puts in columns of every format.

A column of a format without NaN becomes float64, as a column of integers does. Other
columns keep their format. None becomes a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import ALL, name

pd = pytest.importorskip("pandas", "3")  # other dtypes in pandas 2
pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore")]

nan = np.nan
PLACES = pd.MultiIndex.from_tuples([(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2, 2)])
HOURS = pd.date_range("2020", periods=6, freq="2h")
KINDS = pd.Categorical([0, 0, 0, 1, 1, 2], [0, 1, 2, 3])
ODD = [True, False] * 3

#: Functions that put missing values in a Series or in a DataFrame of 6 rows.
OF_SERIES: dict[str, Callable[[Any], Any]] = {
    "shift": lambda s: s.shift(),
    "shift back": lambda s: s.shift(-2),
    "diff": lambda s: s.diff(),
    "pct_change": lambda s: s.pct_change(),
    "group shift": lambda s: s.groupby([0, 1] * 3).shift(),
    "group diff": lambda s: s.groupby([0, 1] * 3).diff(),
    "group max": lambda s: s.groupby(KINDS, observed=False).max(),
    "group first": lambda s: s.groupby(KINDS, observed=False).first(),
    "group var": lambda s: s.groupby(KINDS, observed=False).var(),
    "group filter": lambda s: s.groupby(list(KINDS)).filter(
        lambda x: len(x) > 1, dropna=False
    ),
    "reindex": lambda s: s.reindex(range(8)),
    "align": lambda s: s.align(s.iloc[:3])[1],
    "add": lambda s: s + s.iloc[:3],
    "unstack": lambda s: s.set_axis(PLACES).unstack(),
    "where": lambda s: s.where(ODD),
    "where array": lambda s: s.where(ODD, np.full(6, nan)),
    "mask": lambda s: s.mask(ODD),
    "replace": lambda s: s.replace(1, nan),
    "replace list": lambda s: s.replace([1, 2], [nan, 4]),
    "concat columns": lambda s: pd.concat([s, s.iloc[:2]], axis=1),
    "enlarge": lambda s: enlarged(s, nan),
    "longer": lambda s: pd.Series(s, index=range(9)),
    "frame": lambda s: pd.DataFrame({"a": s, "b": s.iloc[:3]}),
    "rows": lambda s: pd.DataFrame([s, s.iloc[:3]]),
    "masked array": lambda s: pd.Series(np.ma.masked_array(s.to_numpy(), ODD)),
    "asfreq": lambda s: s.set_axis(HOURS).asfreq("h"),
    "resample max": lambda s: s.set_axis(HOURS).resample("h").max(),
    "resample sum": lambda s: s.set_axis(HOURS).resample("h").sum(min_count=1),
    "interpolate": lambda s: s.set_axis(HOURS).resample("2h").asfreq().shift(),
    "take": lambda s: pd.api.extensions.take(s.to_numpy(), [0, -1], allow_fill=True),
    "compare": lambda s: s.compare(s.iloc[::-1].set_axis(range(6))),
    "sum of few": lambda s: s.sum(min_count=9),
    "fill forward": lambda s: s.reindex(range(8)).ffill(),
}
OF_FRAMES: dict[str, Callable[[Any], Any]] = {
    "shift": lambda d: d.shift(),
    "shift columns": lambda d: d.shift(axis=1),
    "shifts": lambda d: d.shift([1, 2]),
    "diff": lambda d: d.diff(),
    "diff columns": lambda d: d.diff(axis=1),
    "group shift": lambda d: d.groupby([0, 1] * 3).shift(),
    "reindex": lambda d: d.reindex(range(8)),
    "reindex columns": lambda d: d.reindex(columns=list("abz")),
    "reindex both": lambda d: d.reindex(index=range(8), columns=list("abz")),
    "align": lambda d: d.align(d.iloc[:3, :2])[1],
    "add": lambda d: d + d.iloc[:3, :2],
    "unstack": lambda d: d.set_axis(PLACES).unstack(),
    "pivot": lambda d: d.assign(k=[0, 0, 1, 1, 2, 2], l=[0, 1, 0, 2, 1, 2]).pivot(
        index="k", columns="l", values="a"
    ),
    "where": lambda d: d.where(d.isin([1, 2])),
    "mask": lambda d: d.mask(d.isin([1, 2])),
    "choose": lambda d: d[d > 1],
    "concat": lambda d: pd.concat([d, d[["a", "b"]]]),
    "concat names": lambda d: pd.concat([d, d[["a"]].rename(columns={"a": "z"})]),
    "concat columns": lambda d: pd.concat([d, d.iloc[:2]], axis=1),
    "join": lambda d: d.join(d.iloc[:2].add_suffix("r")),
    "merge": lambda d: d.assign(k=range(6)).merge(
        d.assign(k=range(3, 9)), on="k", how="outer"
    ),
    "enlarge": lambda d: enlarged(d, nan),
    "longer": lambda d: pd.DataFrame(d, index=range(9)),
    "masked array": lambda d: pd.DataFrame(np.ma.masked_array(d, d.to_numpy() > 1)),
    "combine": lambda d: d.reindex(range(8)).combine_first(d),
    "round trip": lambda d: d.reindex(range(8)).T,
}


def enlarged(x: Any, value: Any) -> Any:
    x = x.copy()
    x.loc[9] = value
    return x


def columns(x: Any) -> list[np.ndarray]:
    if isinstance(x, pd.DataFrame):
        return [x.iloc[:, i].to_numpy() for i in range(x.shape[1])]
    return [np.asarray(x)]


@pytest.mark.parametrize("f", ALL, ids=name)
@pytest.mark.parametrize("shape", [(6,), (6, 3)], ids=["series", "frame"])
@np.errstate(all="ignore")
def test_none_becomes_a_number(f, shape):
    form = td.formats[f.name]
    x = np.random.default_rng(0).choice([0.5, 1, 2, 4], shape)
    single = len(shape) == 1
    make = pd.Series if single else lambda x: pd.DataFrame(x, columns=list("abc"))
    wrong = []
    for call, function in (OF_SERIES if single else OF_FRAMES).items():
        ours = columns(function(make(x.astype(form.dtype))))
        double = columns(function(make(x)))
        for a, b in zip(ours, double, strict=True):
            if b.dtype == np.float64:
                holds = form.has_nan or not np.isnan(b).any()
                rounded = b.astype(form.dtype).astype(float)
                places = np.isnan(a.astype(float)), np.isnan(rounded if holds else b)
                if not np.array_equal(*places):
                    wrong.append(f"{call}: {a}, not {b}")
                elif form.has_nan and a.dtype != form.dtype:
                    wrong.append(f"{call}: {a.dtype}")
                if "diff" in call or "change" in call or "var" in call:
                    continue  # float64 rounds these differently
                b = rounded if a.dtype == form.dtype else b
            if not np.array_equal(a.astype(float), b.astype(float), equal_nan=True):
                wrong.append(f"{call}: {a}, not {b}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("f", ALL, ids=name)
@pytest.mark.parametrize("value", [nan, None, [nan, 1]])
def test_no_column_takes_a_missing_value_for_a_number(f, value):
    form = td.formats[f.name]
    s = pd.Series(np.ones(3, form.dtype))
    if form.has_nan:
        s.iloc[:2] = value
        assert s.dtype == form.dtype
        assert np.isnan(s[0])
        return
    with pytest.raises(TypeError, match="Invalid value"), np.errstate(all="raise"):
        s.iloc[:2] = value
    assert s.dtype == form.dtype
    assert s.tolist() == [1, 1, 1]


@pytest.mark.parametrize("f", ALL, ids=name)
def test_rows_that_are_moved_keep_their_codes(f):
    form = td.formats[f.name]
    codes = np.arange(f.count, dtype=f"u{form.itemsize}")[:: max(1, f.count // 64)][:16]
    v = td.from_bits(codes << f.shift, form.dtype)
    s = pd.Series(v, pd.MultiIndex.from_product([range(4), range(4)]))
    with np.errstate(all="ignore"):  # for an unused fill value
        assert np.array_equal(td.bits(s.unstack().to_numpy().ravel()), td.bits(v))
        filled = s.unstack().iloc[:, ::-1].stack().sort_index()
    assert np.array_equal(td.bits(filled.to_numpy()), td.bits(v))
