"""Calls of pandas."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("pandas")

LIBRARY = "pandas"
PREPARATION = """
import io, pandas as pd
s = pd.Series(v)
d = pd.DataFrame(a, columns=list('wxyz'))
g = ['p', 'q'] * 8
"""
CALLS = [
    Call("s", "{format}"),
    Call("repr(s)", "str", within=None),
    Call("s + 1", "{format}"),
    Call("s * s", "{format}"),
    Call("s.sum()", "{format}"),
    Call("s.mean()", "{format}"),
    Call("s.std()", "{format}"),
    Call("s.max()", "{format}"),
    Call("s.describe()", "float64"),
    Call("s.sort_values()", "{format}"),
    Call("s.rank()", "float64"),
    Call("s[s > 0]", "{format}"),
    Call("s.groupby(g).sum()", "{format}"),
    Call("s.groupby(g).mean()", "{format}"),
    Call("s.rolling(2).mean()", "float64"),
    Call("s.cumsum()", "{format}"),
    Call("s.reindex([0, 1, 20])", "{format}"),
    Call("s.fillna(0)", "{format}"),
    Call("s.shift()", "{format}"),
    Call("s.diff()", "{format}"),
    Call("s.ffill()", "{format}"),
    Call("s.agg(['mean', 'std'])", "{format}"),
    Call("s.groupby(g).quantile(0.5)", "float64"),
    Call("s.nlargest(2)", "{format}"),
    Call("s.round(1)", "{format}"),
    Call("s.equals(s * 1)", "bool", within=0),
    Call("pd.Series([*v])", "{format}"),
    Call("pd.cut(s, 3).cat.codes", "int8", within=0),
    Call("pd.get_dummies(s)", "DataFrame", within=0),
    Call("s.to_frame('x').set_index('x').index", "{format}"),
    Call("d.set_index('x').loc[v[1]].to_numpy()", "{format}"),
    Call("s.isna()", "bool", within=0),
    Call("s.quantile(0.5)", "float64"),
    Call("s.astype('float32')", "float32"),
    Call("s.astype('float32').astype(v.dtype)", "{format}"),
    Call("s.value_counts()", "int64", within=None),
    Call("s.unique()", "{format}"),
    Call("s.to_numpy()", "{format}"),
    Call("pd.concat([s, s])", "{format}"),
    Call("d.sum()", "{format}"),
    Call("d.mean()", "{format}"),
    Call("d.describe()", "DataFrame"),
    Call("d.T.to_numpy()", "{format}"),
    Call("d.corr()", "DataFrame"),
    Call("d.merge(d, on='w')", "DataFrame"),
    Call("d.pivot_table('w', 'x')", "DataFrame"),
    Call("d.to_csv('d.csv'); pd.read_csv('d.csv', index_col=0)", "DataFrame"),
    Call("d.to_json()", "str", within=None),
    Call("pd.read_json(io.StringIO(d.to_json()))", "DataFrame"),
    Call("d.to_pickle('d.pickle'); pd.read_pickle('d.pickle').to_numpy()", "{format}"),
    Call(
        "d.to_parquet('d.parquet'); pd.read_parquet('d.parquet').to_numpy()",
        "ArrowNotImplementedError",
        "d.astype('float32').to_parquet('d.parquet'); pd.read_parquet('d.parquet')",
        "DataFrame",
    ),
]

test_calls = make_test(CALLS, PREPARATION)
