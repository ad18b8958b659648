"""Calls of Matplotlib."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("matplotlib")

LIBRARY = "Matplotlib"
PREPARATION = """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
"""
CALLS = [
    Call(
        "axes.plot(v); figure.savefig('f.png'); axes.lines[0].get_ydata()", "{format}"
    ),
    Call(
        "axes.imshow(a); figure.savefig('f.png'); axes.images[0].get_array().data",
        "{format}",
    ),
    Call("axes.hist(v)[0]", "float64", within=0, steps=True),
    Call("axes.scatter(v, v).get_offsets().data", "float64"),
    Call(
        "axes.contourf(a); figure.savefig('f.png'); axes.dataLim.get_points()",
        "float64",
    ),
    Call("axes.pcolormesh(a).get_array().data", "{format}"),
    Call("axes.bar(np.arange(16), v)[1].get_height()", "float64"),
    Call(
        "axes.errorbar(np.arange(16), v, yerr=abs(v)); axes.dataLim.get_points()",
        "float64",
    ),
    Call("axes.boxplot(v)['medians'][0].get_ydata()", "float64"),
]

test_calls = make_test(CALLS, PREPARATION)
