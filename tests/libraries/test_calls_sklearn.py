"""Calls of scikit-learn."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("sklearn")

LIBRARY = "scikit-learn"
PREPARATION = """
from sklearn import cluster, decomposition, ensemble, linear_model, metrics
from sklearn import model_selection, neighbors, preprocessing, svm
y = np.array([0, 1, 0, 1])
"""
CALLS = [
    Call("preprocessing.StandardScaler().fit_transform(a)", "float64"),
    Call("preprocessing.MinMaxScaler().fit_transform(a)", "float64"),
    Call("preprocessing.normalize(a)", "float64"),
    Call("decomposition.PCA(2).fit(a).explained_variance_", "float64"),
    Call("linear_model.LinearRegression().fit(a, v[:4]).predict(a)", "float64"),
    Call("linear_model.Ridge().fit(a, v[:4]).predict(a)", "float64"),
    Call("linear_model.LogisticRegression().fit(a, y).predict(a)", "int64", within=0),
    Call("svm.SVC().fit(a, y).predict(a)", "int64", within=0),
    Call("neighbors.KNeighborsRegressor(2).fit(a, v[:4]).predict(a)", "{format}"),
    Call("neighbors.KNeighborsClassifier(1).fit(a, y).predict(a)", "int64", within=0),
    Call("cluster.KMeans(2, random_state=0, n_init=1).fit(a).inertia_", "float"),
    Call(
        "ensemble.RandomForestRegressor(5, random_state=0).fit(a, v[:4]).predict(a)",
        "float64",
        within=None,
    ),
    Call("metrics.mean_squared_error(v, v[::-1])", "float", steps=True),
    Call("metrics.r2_score(v, v[::-1])", "float", steps=True),
    Call("metrics.pairwise_distances(a)", "float64"),
    Call("model_selection.train_test_split(a, random_state=0)[0]", "{format}"),
]

test_calls = make_test(CALLS, PREPARATION)
