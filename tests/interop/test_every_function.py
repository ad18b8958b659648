"""Every public function takes ml_dtypes' arrays as our arrays: the same bits."""

import numpy as np
import pytest

import tf32dtype as td
from tests.support.every_function import CALLS, missing, operands, plain

pytestmark = pytest.mark.once


def test_every_function_has_a_row():
    assert missing() == []


def listed(x):
    """Convert an array to nested lists of scalars."""
    return [listed(row) for row in x] if x.ndim else x[()]


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for row in CALLS[name]:
        for form in row.formats:
            kind = getattr(ml_dtypes, form, None)
            if kind is None:
                assert form == "tf32"
                continue
            own = operands(row, form)
            with np.errstate(all="ignore"):
                want = plain(row.call(*own))
                assert plain(row.call(*(x.view(kind) for x in own))) == want
                # Scalars, lists of scalars, and ml_dtypes' arrays together with ours.
                first, *others = own
                theirs = first.view(kind)
                assert plain(row.call(theirs[()], *others)) == want
                assert plain(row.call(listed(theirs), *others)) == want


@pytest.mark.parametrize("name", [name for name in td.formats if name != "tf32"])
def test_results_into_arrays_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([[1, 0.5], [2, 1]], td.formats[name].dtype)
    weights = td.blocks.quantize(np.ones((2, 2)), "mxfp8_e4m3", axis=0)
    calls = [
        lambda out: td.quantize([[1, 2], [3, 3]], name, out=out),
        lambda out: td.matmul(x, x, out=out),
        lambda out: td.matmul(x, x, dtype=name, out=out),
        lambda out: td.einsum("ij,jk->ik", x, x, out=out),
        lambda out: td.blocks.matmul(x, weights, dtype=name, out=out),
        lambda out: weights.dequantize(name, out=out),
    ]
    for call in calls:
        theirs, ours = np.zeros((2, 2), getattr(ml_dtypes, name)), np.zeros_like(x)
        with np.errstate(all="ignore"):
            assert call(theirs) is theirs
            call(ours)
        assert theirs.tobytes() == ours.tobytes()
        assert any(theirs.tobytes())
