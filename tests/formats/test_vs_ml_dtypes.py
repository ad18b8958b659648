"""The claims of docs/how_to/from_ml_dtypes.md on ml_dtypes 0.6.0, and both together."""

import platform

import numpy as np
import pytest

import tf32dtype as td
from tests.support.documents import ML_DTYPES, outcome, table

ml_dtypes = pytest.importorskip("ml_dtypes")

IS_0_6_0 = pytest.mark.skipif(
    ml_dtypes.__version__ != "0.6.0", reason="the page speaks of 0.6.0"
)
SHARED = [name for name in td.formats if name != "tf32"]


@pytest.mark.parametrize("row", table(ML_DTYPES, "expression"), ids=lambda row: row[0])
def test_ours_differ(row):
    code, theirs, ours = row
    assert ours != theirs
    assert outcome(code, {"np": np, "T": td.bfloat16}) == ours


@IS_0_6_0
@pytest.mark.parametrize("row", table(ML_DTYPES, "expression"), ids=lambda row: row[0])
def test_theirs_are_as_told(row):
    code, theirs, _ = row
    if code == 'int(T("inf"))' and platform.machine() != "x86_64":
        pytest.skip("what x86-64 makes of it")
    assert outcome(code, {"np": np, "T": ml_dtypes.bfloat16}) == theirs


def test_shared_and_missing_formats():
    assert len(SHARED) == 12
    assert all(hasattr(ml_dtypes, name) for name in SHARED)
    assert not hasattr(ml_dtypes, "tf32")


@IS_0_6_0
def test_types_that_only_they_have():
    for name in ("int1", "uint1", "int2", "int4", "complex32", "bcomplex32"):
        assert np.ones(2, getattr(ml_dtypes, name)).size == 2
        assert not hasattr(td, name)


@pytest.mark.parametrize("name", SHARED)
def test_arrays_convert_both_ways_and_views_are_free(name):
    form = td.formats[name]
    theirs = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(1 << form.bits).astype(f"u{form.itemsize}")
    ours = td.from_bits(codes, form.dtype)
    viewed = ours.view(theirs)
    assert np.shares_memory(ours, viewed)
    finite = np.isfinite(ours)
    np.testing.assert_array_equal(
        viewed[finite].astype(np.float32), ours[finite].astype(np.float32)
    )
    assert ours.astype(theirs).dtype == theirs
    assert viewed.astype(form.dtype).dtype == form.dtype
    # Codes of NaN may change in a cast, but no other code.
    there = ours[finite].astype(theirs).view(codes.dtype)
    back = viewed[finite].astype(form.dtype).view(codes.dtype)
    np.testing.assert_array_equal(there, codes[finite])
    np.testing.assert_array_equal(back, codes[finite])


@pytest.mark.parametrize("name", SHARED)
def test_ours_with_theirs_is_ours(name):
    form = td.formats[name]
    theirs = np.dtype(getattr(ml_dtypes, name))
    assert np.promote_types(form.dtype, theirs) == form.dtype
    assert np.promote_types(theirs, form.dtype) == form.dtype


@IS_0_6_0
def test_flags_that_only_ours_raise():
    ours, theirs = (np.full(2, 448, m.float8_e4m3fn) for m in (td, ml_dtypes))
    with np.errstate(all="raise"):
        assert np.isnan(theirs + theirs).all()
        with pytest.raises(FloatingPointError, match="overflow"):
            ours + ours
