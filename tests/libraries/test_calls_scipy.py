"""Calls of SciPy."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("scipy", "1.18")  # results had other dtypes before

LIBRARY = "SciPy"
PREPARATION = """
import scipy.cluster, scipy.fft, scipy.integrate, scipy.interpolate, scipy.linalg
import scipy.ndimage, scipy.optimize, scipy.signal, scipy.sparse, scipy.spatial
import scipy.special, scipy.stats
"""
CALLS = [
    Call("scipy.special.erf(v)", "float32"),
    Call("scipy.special.expit(v)", "float32"),
    Call("scipy.special.logsumexp(v)", "{format}", steps=True, formats=("bfloat16",)),
    Call(
        "scipy.special.logsumexp(v)",
        "{format}",
        "scipy.special.logsumexp(v.astype(np.float32))",
        "float32",
        steps=True,
        formats=("float8_e4m3fn",),
    ),
    Call("scipy.special.softmax(v)", "{format}", steps=True),
    Call("scipy.stats.zscore(v)", "{format}", steps=True),
    Call("scipy.stats.skew(v)", "{format}", steps=True),
    Call("scipy.stats.kurtosis(v)", "{format}", steps=True, formats=("bfloat16",)),
    Call(
        "scipy.stats.kurtosis(v)",
        "{format}",
        "scipy.stats.kurtosis(v.astype(np.float32))",
        "float32",
        steps=True,
        formats=("float8_e4m3fn",),
    ),
    Call("scipy.stats.ttest_1samp(v, 0).statistic", "{format}", steps=True),
    Call("scipy.stats.describe(v).variance", "{format}", steps=True),
    Call("scipy.stats.pearsonr(v, v[::-1]).statistic", "{format}", steps=True),
    Call("scipy.stats.rankdata(v)", "{format}"),
    Call("scipy.linalg.svdvals(a)", "float64"),
    Call("scipy.linalg.inv(a)", "float64", within=64.0),
    Call("scipy.linalg.solve(a, a[0])", "float32", within=64.0),
    Call("scipy.linalg.norm(a)", "{format}"),
    Call("scipy.fft.fft(v).real", "float32"),
    Call("scipy.fft.rfft2(a).imag", "float32"),
    Call("scipy.fft.dct(v)", "float32"),
    Call("scipy.signal.convolve(v, v[:3])", "{format}", within=16.0),
    Call("scipy.signal.fftconvolve(v, v[:3])", "float32"),
    Call(
        "scipy.signal.medfilt(v)",
        "ValueError",
        "scipy.signal.medfilt(v.astype(np.float32)).astype(v.dtype)",
    ),
    Call(
        "scipy.ndimage.gaussian_filter(a, 1)",
        "RuntimeError",
        "scipy.ndimage.gaussian_filter(a.astype(np.float32), 1).astype(a.dtype)",
    ),
    Call(
        "scipy.sparse.csr_array(a).toarray()",
        "ValueError",
        "scipy.sparse.csr_array(a.astype(np.float32)).toarray()",
        "float32",
    ),
    Call(
        "scipy.spatial.distance.cdist(a, a)",
        "ValueError",
        "scipy.spatial.distance.cdist(a.astype(float), a.astype(float))",
        "float64",
    ),
    Call("scipy.spatial.KDTree(a).query(a[0])[0]", "float"),
    Call("scipy.interpolate.make_interp_spline(np.arange(16), v)(2.5)", "float64"),
    Call("scipy.interpolate.interp1d(np.arange(16), v)(2.5)", "float64"),
    Call("scipy.integrate.trapezoid(v)", "{format}"),
    Call("scipy.integrate.simpson(v)", "{format}", steps=True),
    Call("scipy.optimize.nnls(a, a[0])[0]", "float64", within=64.0),
    Call("scipy.cluster.vq.whiten(a)", "{format}", steps=True),
]

test_calls = make_test(CALLS, PREPARATION)
