"""Libraries that ask np.isdtype before they take an array: SciPy, sklearn, xarray.

The tests check the call and the dtype of its result, which is the library's choice.
Wide formats must also come near to float64's result.
"""

import warnings

import numpy as np
import pytest

import tf32dtype as td

pytestmark = pytest.mark.once

X = np.linspace(0.5, 2, 24).reshape(6, 4) ** 2
OWN = "own"

STATISTICS = {
    "zscore": (OWN, lambda s, x: s.stats.zscore(x)),
    "skew": (OWN, lambda s, x: s.stats.skew(x)),
    "kurtosis": (OWN, lambda s, x: s.stats.kurtosis(x)),
    "ttest_ind": (None, lambda s, x: s.stats.ttest_ind(x[:, 0], x[:, 3]).pvalue),
    "ttest_1samp": (None, lambda s, x: s.stats.ttest_1samp(x, 1).statistic),
    "logsumexp": (OWN, lambda s, x: s.special.logsumexp(x, axis=0)),
}
MODELS = {
    "Ridge": (
        np.float64,
        lambda s, x: s.linear_model.Ridge().fit(x, x[:, 0]).predict(x),
    ),
    "KNeighborsRegressor": (
        OWN,
        lambda s, x: s.neighbors.KNeighborsRegressor(2).fit(x, x[:, 0]).predict(x),
    ),
    "KNeighborsClassifier": (
        np.int64,
        lambda s, x: s.neighbors.KNeighborsClassifier(1).fit(x, range(6)).predict(x),
    ),
    "KMeans": (
        np.float64,
        lambda s, x: s.cluster.KMeans(2, n_init=1, random_state=0).fit_predict(x) * 1.0,
    ),
}
LABELED = {
    "sum": lambda a: a.sum(),
    "mean": lambda a: a.mean("p"),
    "std": lambda a: a.std("q"),
    "where": lambda a: a.where(a > 1).mean(),
    "shift": lambda a: a.shift(p=1),
    "groupby": lambda a: a.groupby("p").mean(),
    "rolling": lambda a: a.rolling(p=2).mean(),
}


def result(call, *arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # lost precision, FP4 without NaN
        return np.asarray(call(*arguments))


def check(call, kind, *first, wrap=lambda x: x):
    for name in td.formats:
        check_format(call, name, kind, *first, wrap=wrap)


def check_format(call, name, kind, *first, wrap):
    form = td.formats[name]
    x = X.astype(form.dtype)
    got = result(call, *first, wrap(x))
    if kind is not None:
        assert got.dtype == (form.dtype if kind is OWN else kind), name
    want = result(call, *first, wrap(x.astype(np.float64)))
    assert got.shape == want.shape, name
    if name in ("tf32", "bfloat16"):
        # The library sums cubes of deviations, and rounds each step.
        error = np.abs(got.astype(np.float64) - want)
        np.testing.assert_array_less(
            np.nan_to_num(error), 8 * form.eps * np.fmax(1, np.abs(want)), name
        )
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), name)


@pytest.mark.parametrize("what", STATISTICS)
def test_scipy(what):
    scipy = pytest.importorskip("scipy")
    pytest.importorskip("scipy.stats")
    kind, call = STATISTICS[what]
    check(call, kind, scipy)


@pytest.mark.parametrize("what", MODELS)
def test_scikit_learn(what):
    sklearn = pytest.importorskip("sklearn")
    for part in ("linear_model", "neighbors", "cluster"):
        pytest.importorskip(f"sklearn.{part}")
    kind, call = MODELS[what]
    check(call, kind, sklearn)


@pytest.mark.parametrize("what", LABELED)
def test_xarray(what):
    xarray = pytest.importorskip("xarray")

    def labeled(x):
        return xarray.DataArray(x, dims=("p", "q"), coords={"p": [0, 0, 1, 1, 2, 2]})

    check(LABELED[what], OWN, wrap=labeled)
