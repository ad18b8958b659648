"""Series and DataFrames of every format: hashing, grouping and joining."""

import numpy as np
import pytest

import tf32dtype as td

pd = pytest.importorskip("pandas")

FORMATS = list(td.formats.values())
SIGNED = [form for form in FORMATS if form.has_zero]


@pytest.fixture(params=FORMATS, ids=lambda form: form.name)
def numbers(request):
    """Return numbers of a format, each several times, and their groups."""
    rng = np.random.default_rng(1)
    chosen = rng.choice([1, 2, 4, 0.5], 60)
    return chosen.astype(request.param.dtype), rng.integers(0, 5, 60)


def same(ours, double, dtype):
    """Check that a result is float64's, rounded once to the format."""
    assert ours.dtype == dtype
    with np.errstate(over="ignore"):
        expected = double.to_numpy().astype(dtype)
    np.testing.assert_array_equal(td.bits(ours.to_numpy()), td.bits(expected))


@pytest.mark.parametrize("how", "sum mean min max first last median prod".split())
def test_groups_are_computed_in_double_and_rounded_once(numbers, how):
    v, groups = numbers
    ours = pd.Series(v).groupby(groups)
    double = pd.Series(v.astype(np.float64)).groupby(groups)
    with np.errstate(over="ignore"):
        found = getattr(ours, how)()
    same(found, getattr(double, how)(), v.dtype)


def test_a_sum_of_a_group_is_not_a_chain():
    ones = pd.Series(np.ones(1000, td.bfloat16)).groupby(np.zeros(1000, int)).sum()
    assert ones.dtype == td.bfloat16
    assert ones[0] == 1000


def test_what_counts_in_groups_stays_so(numbers):
    v, groups = numbers
    ours = pd.Series(v).groupby(groups)
    double = pd.Series(v.astype(np.float64)).groupby(groups)
    for how in ("rank", "idxmax", "any", "nunique", "count", "size"):
        pd.testing.assert_series_equal(getattr(ours, how)(), getattr(double, how)())


@pytest.mark.parametrize("form", SIGNED, ids=lambda form: form.name)
def test_unique_numbers_keep_dtype_order_and_sign(form):
    v = np.array([2, -1, 2, 0.5, -1], form.dtype)
    found = pd.Series(v).unique()
    assert found.dtype == form.dtype
    assert found.tolist() == [2, -1, 0.5]
    if form.has_nan:
        v[[1, 4]] = np.nan
        found = pd.Series(v).unique()
        assert np.array_equal(found, np.array([2, np.nan, 0.5]), equal_nan=True)


def test_hashing_joining_and_ranks(numbers):
    v, _ = numbers
    ours, double = pd.Series(v), pd.Series(v.astype(np.float64))
    assert np.array_equal(ours.rank(), double.rank())
    assert np.array_equal(ours.duplicated(), double.duplicated())
    assert np.array_equal(ours.isin([1, 2]), double.isin([1, 2]))
    counts = ours.value_counts()
    assert dict(zip(counts.index.astype(float), counts, strict=True)) == dict(
        double.value_counts()
    )
    left = pd.DataFrame({"key": v[:9], "x": range(9)})
    right = pd.DataFrame({"key": v[9:20], "y": range(11)})
    found = left.merge(right, on="key")
    expected = left.astype({"key": float}).merge(right.astype({"key": float}), on="key")
    assert found.key.dtype == v.dtype
    assert np.array_equal(found[["x", "y"]], expected[["x", "y"]])


def test_groups_without_numbers_of_formats_without_nan():
    with np.errstate(all="raise"):
        v = pd.Series(np.ones(4, td.float4_e2m1fn)).groupby([0, 0, 1, 1]).std()
    assert v.tolist() == [0, 0]
    one = pd.Series(np.ones(1, td.float4_e2m1fn)).groupby([0]).std()
    assert np.isnan(one[0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_other_dtypes_are_as_they_were(dtype):
    s = pd.Series(np.array([1, 2, 2], dtype))
    assert s.groupby([0, 0, 1]).sum().dtype == dtype
    assert s.unique().dtype == dtype
    if dtype != np.float16:  # pandas has no index of float16
        frame = s.to_frame("a")
        assert frame.merge(frame, on="a").a.dtype == dtype
