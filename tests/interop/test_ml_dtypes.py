"""td.as_ml_dtypes and td.from_ml_dtypes: views, never copies."""

import doctest
import sys

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run_code
from tf32dtype.interop import ml_dtypes as interop

pytestmark = pytest.mark.once

SHARED = [name for name in td.formats if name != "tf32"]


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("name", SHARED)
def test_views(name, theirs):
    form = td.formats[name]
    codes = np.arange(1 << form.bits, dtype=f"u{form.itemsize}").reshape(2, -1)
    whole = td.from_bits(codes, name)
    for a in (whole, whole.T, whole[:, ::-3], whole[:0], whole[0, 0, ...]):
        view = td.as_ml_dtypes(a)
        assert view.dtype == np.dtype(getattr(theirs, name))
        assert view.shape == a.shape
        assert view.strides == a.strides
        assert view.__array_interface__["data"] == a.__array_interface__["data"]
        assert view.tobytes() == a.tobytes()
        back = td.from_ml_dtypes(view)
        assert back.dtype == form.dtype
        assert back.strides == a.strides
        assert back.__array_interface__["data"] == a.__array_interface__["data"]
        for function in (td.as_ml_dtypes, td.from_ml_dtypes):  # second call: no change
            assert function(function(a)).dtype == function(a).dtype
    td.as_ml_dtypes(whole)[0, 1] = 1
    assert whole[0, 1] == 1
    td.from_ml_dtypes(td.as_ml_dtypes(whole))[0, 1] = 2
    assert whole[0, 1] == 2


@pytest.mark.parametrize("name", SHARED)
def test_scalars(name, theirs):
    scalar = td.formats[name].type(2)
    view = td.as_ml_dtypes(scalar)
    assert type(view) is getattr(theirs, name)
    assert view == getattr(theirs, name)(2)
    assert type(td.from_ml_dtypes(view)) is type(scalar)
    assert td.from_ml_dtypes(view) == scalar


def test_kinds_of_arrays_stay(theirs, tmp_path):
    a = np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype=td.bfloat16)
    for view in (td.as_ml_dtypes(a), td.from_ml_dtypes(td.as_ml_dtypes(a))):
        assert isinstance(view, np.ma.MaskedArray)
        assert view.mask.tolist() == [False, True, False]
    mapped = np.memmap(tmp_path / "a", td.fp4, "w+", shape=5)
    assert isinstance(td.as_ml_dtypes(mapped), np.memmap)
    fixed = np.ones(3, td.fp8_e4m3)
    fixed.flags.writeable = False
    assert not td.as_ml_dtypes(fixed).flags.writeable


def test_fields(theirs):
    def dtype(module):
        x, z = module.bfloat16, module.float8_e5m2
        return np.dtype([("x", x, 2), ("y", [("z", z)]), ("n", "i4")], align=True)

    a = np.zeros(3, dtype(td))
    assert td.as_ml_dtypes(a).dtype == dtype(theirs)
    assert td.from_ml_dtypes(td.as_ml_dtypes(a)).dtype == dtype(td)
    assert np.shares_memory(td.as_ml_dtypes(a), a)
    assert type(td.as_ml_dtypes(a)[0]) is np.void
    with pytest.raises(TypeError, match="tf32"):
        td.as_ml_dtypes(np.zeros(3, [("n", "i4"), ("x", td.tf32)]))


@pytest.mark.parametrize(
    "dtype", ["f4", ">f8", "?", "U3", "M8[s]", "O", "c8", "V2", "f4,u1", [], "T"]
)
def test_numpys_dtypes_stay(dtype):
    a = np.zeros(3, np.dtypes.StringDType() if dtype == "T" else np.dtype(dtype))
    for function in (td.as_ml_dtypes, td.from_ml_dtypes):
        assert function(a) is a
        assert function(a[0, ...]).dtype == a.dtype
    assert td.as_ml_dtypes(np.float32(1.5)).dtype == np.float32
    assert type(td.from_ml_dtypes(np.float32(1.5))) is np.float32


def test_lists_are_arrays(theirs):
    assert td.as_ml_dtypes([td.bfloat16(1.5)]).dtype == np.dtype(theirs.bfloat16)
    assert td.from_ml_dtypes([theirs.bfloat16(1.5)]).dtype == td.bfloat16
    assert td.as_ml_dtypes([1.5, 2]).dtype == np.float64


def test_what_has_no_like(theirs):
    for a in (np.ones(2, td.tf32), td.tf32(1), [td.tf32(1)]):
        with pytest.raises(
            TypeError, match=r"ml_dtypes has; got tf32.*a\.view\(np\.float32\)"
        ):
            td.as_ml_dtypes(a)
    for name in ("int4", "uint2", "bcomplex32"):
        if not hasattr(theirs, name):
            continue
        a = np.ones(2, getattr(theirs, name))
        assert td.as_ml_dtypes(a) is a
        with pytest.raises(TypeError, match=rf"format must be .*{name}"):
            td.from_ml_dtypes(a)


def test_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    lines = r"td\.as_ml_dtypes needs ml_dtypes.*pip install 'ml_dtypes>=0\.5', or in a"
    with pytest.raises(ImportError, match=lines + r".*'\.\[ml-dtypes\]'"):
        td.as_ml_dtypes(np.ones(2, td.bfloat16))
    assert td.as_ml_dtypes(np.ones(2)).dtype == np.float64
    assert td.from_ml_dtypes(np.ones(2, td.fp4)).dtype == td.fp4


def test_it_is_imported_when_it_is_needed(theirs):
    program = """
import sys, numpy as np, tf32dtype as td
td.as_ml_dtypes(np.ones(2)), td.from_ml_dtypes(np.ones(2, td.tf32))
print("ml_dtypes" in sys.modules, td.names())
print(td.as_ml_dtypes(td.bf16(1.5)), td.names())
"""
    assert run_code(program).split() == ["False", "tf32dtype", "1.5", "ml_dtypes"]


def test_examples(theirs):
    results = doctest.testmod(interop)
    assert results.attempted == 4
    assert results.failed == 0
