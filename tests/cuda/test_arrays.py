"""Arrays on a GPU: creation, reading, writing, views, exchange."""

from __future__ import annotations

import copy
import ctypes
import operator
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import formats
from tests.reference.codec_arrays import item_type
from tests.support import tensor_lines
from tests.support.bits import ALL, dtype, name
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tf32dtype.cuda._arrays import interchange
from tf32dtype.interop.dlpack import CODES

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
each = pytest.mark.parametrize("f", ALL, ids=name)
FLOATS = [*(dtype(f) for f in ALL), np.dtype(np.float32)]
any_dtype = pytest.mark.parametrize("d", FLOATS, ids=str)


def codes(d: Any, count: int = 24) -> np.ndarray[Any, Any]:
    """Return random elements of a dtype from all its codes."""
    rng = np.random.default_rng(5)
    if d == np.float32:
        return rng.integers(0, 2**32, count, np.uint32).view(np.float32)
    f = formats.FORMATS[d.name]
    clean = td.bits(
        td.from_bits(np.arange(256).astype(item_type(f)), d, dirty="ignore")
    )
    if f.count > 256:
        raw = rng.integers(0, 2 ** (8 * d.itemsize), 256, np.uint64)
        clean = td.bits(td.from_bits(raw.astype(item_type(f)), d, dirty="ignore"))
    return td.from_bits(rng.choice(clean, count, replace=False), d)


def same(x: Any, want: Any) -> None:
    """Check that a GPU array has the dtype, shape and bits of a NumPy array."""
    want, got = np.asarray(want), moved(x)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == want.tobytes(), f"{got}, not {want}"


def moved(x: Any) -> Any:
    """Return a NumPy array of the same elements."""
    return x.get() if isinstance(x, tfc.ndarray) else _plain(x)


def _plain(x: Any) -> Any:
    from tf32dtype.cuda._runtime import backend as backends

    assert isinstance(x, cupy.ndarray)
    return backends.current().get(x)


def put(x: Any) -> Any:
    from tf32dtype.cuda._runtime import backend as backends

    return backends.current().put(np.asarray(x))


# -- creation --------------------------------------------------------------------------


@any_dtype
def test_from_numpy_and_back(backend: Any, d: Any) -> None:  # noqa: F811
    a = codes(d).reshape(2, 3, 4)
    for given in (a, a[::-1, :, 1:3], a.T, a[0, 0, 0], np.asfortranarray(a), a[:0]):
        x = tfc.asarray(given)
        assert type(x) is tfc.ndarray
        assert isinstance(x, cupy.ndarray)
        assert x.dtype == d
        same(x, given)
    x = tfc.asarray(a)
    assert tfc.asarray(x) is x
    assert tfc.asarray(x, d) is x
    assert x.nbytes == a.nbytes
    assert len(x) == 2
    assert repr(x) == repr(a)
    assert str(x) == str(a)
    assert x.tolist() == a.tolist() or "nan" in str(a)


@pytest.mark.parametrize(
    "given",
    [
        [1.1, -2.3, 1e-9], [1, -2, 300], 1.5, (True, False), [[1.1], [2**70]],
        np.float64([1.1, 3e38]), np.float32([1.1, 1e-40]), np.float16([0.1, 65504]),
        np.int64([-(2**60) - 1, 7]), np.uint8([255, 3]), np.array([1.1, 2.2], ">f8"),
        np.longdouble([1.1, 0.3]), td.tf32(1.1), np.array([1.1, 2], "O"),
        [td.bfloat16(1.5), td.bfloat16(-0.0)],
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("d", [td.tf32, td.float8_e4m3fn, np.float32])
def test_casts_of_what_it_is_made_from(backend: Any, given: Any, d: Any) -> None:  # noqa: F811
    with np.errstate(all="ignore"):
        want = np.asarray(given).astype(d)
    same(tfc.asarray(given, d), want)


def test_dtype_is_asked_for(backend: Any) -> None:  # noqa: F811
    same(tfc.asarray(np.float32([1, 2])), np.float32([1, 2]))
    same(tfc.asarray([1.1], "bf16"), np.array([1.1], td.bfloat16))
    for given in ([1.5], [1], np.longdouble([1]), np.array([1.5], "O"), put([1.5])):
        with pytest.raises(TypeError, match=r"dtype must be given .*float32 or one of"):
            tfc.asarray(given)
    for wrong in (np.float64, int, "float64", "bf17"):
        with pytest.raises((TypeError, ValueError), match=r"one of td\.formats; got"):
            tfc.asarray([1.5], wrong)
    with pytest.raises(TypeError, match="real numbers"):
        tfc.asarray([1j], td.tf32)


@pytest.mark.parametrize("rounding", ["toward_zero", "toward_positive", "to_odd"])
@pytest.mark.parametrize("overflow", ["ieee", "saturate"])
def test_rounding(backend: Any, rounding: Any, overflow: Any) -> None:  # noqa: F811
    a = np.array([1.1, -1.1, 1e9, -1e9, 3e-9], np.float64)
    with np.errstate(all="ignore"):
        want = td.quantize(a, td.fp8_e5m2, rounding=rounding, overflow=overflow)
    made = tfc.asarray(a, td.fp8_e5m2, rounding=rounding, overflow=overflow)
    same(made, want)
    same(tfc.quantize(a, "fp8_e5m2", rounding=rounding, overflow=overflow), want)
    wide = tfc.quantize(a.astype(np.longdouble), "fp8_e5m2", rounding=rounding,
                        overflow=overflow)  # fmt: skip
    same(wide, want)


def test_quantize_to_numpys_own(backend: Any) -> None:  # noqa: F811
    a = np.array([1 / 3, -1.1, 1e300, -1e9, 3e-9, np.inf])
    for given in (a, a.astype(np.longdouble)):
        for wanted in ("float16", np.float32):
            with np.errstate(all="ignore"):
                want = td.quantize(given, wanted, rounding="to_odd")
            made = tfc.quantize(given, wanted, rounding="to_odd")
            same(made, want)
            assert isinstance(made, tfc.ndarray) == (wanted is np.float32)
    with pytest.raises((TypeError, ValueError), match="float16 or float32; got"):
        tfc.quantize(a, np.float64)


def test_quantize_saturates_what_has_the_dtype(backend: Any) -> None:  # noqa: F811
    a = np.array([1, np.inf, -np.inf])
    for kind in (td.bfloat16, np.float32):
        x = a.astype(kind)
        want = td.quantize(x, kind, overflow="saturate")
        assert np.isfinite(want.astype(float)).all()
        same(tfc.quantize(x, kind, overflow="saturate"), want)


def test_from_cupy(backend: Any) -> None:  # noqa: F811
    a = np.float64([[1.1, 2.2], [3.3, -0.0]])
    same(tfc.asarray(put(a), td.bfloat16), a.astype(td.bfloat16))
    single = put(a.astype(np.float32))
    x = tfc.asarray(single)
    assert type(x) is tfc.ndarray
    assert x.data.ptr == single.data.ptr


def test_from_ml_dtypes(backend: Any) -> None:  # noqa: F811
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for given in ("bfloat16", "float8_e4m3fn", "float4_e2m1fn"):
        a = np.array([1.5, -0.5, 0], getattr(ml_dtypes, given))
        want = np.array([1.5, -0.5, 0], getattr(td, given))
        same(tfc.asarray(a), want)
        same(tfc.asarray(a, td.tf32), want.astype(td.tf32))
        same(tfc.asarray([1.5, -0.5, 0], a.dtype), want)
    # CuPy itself has ml_dtypes' bfloat16.
    a = np.array([1.5, -0.5], ml_dtypes.bfloat16)
    there = cupy.ndarray.view(put(a.view(np.uint16)), a.dtype)
    same(tfc.asarray(there), a.astype(td.bfloat16))


def test_names(backend: Any) -> None:  # noqa: F811
    """Names mean our formats, even if another library registered them with NumPy.
    ml_dtypes' dtypes mean our formats too."""
    x = np.array([[1, 0.5], [2, 0.5]], td.bfloat16)
    g = tfc.asarray(x)
    which: list[Any] = ["bfloat16", "BF16", td.formats["bf16"], td.bfloat16]
    ml_dtypes = sys.modules.get("ml_dtypes")
    if ml_dtypes is not None:
        which += [ml_dtypes.bfloat16]
        theirs = cupy.ndarray.view(put(td.bits(x)), np.dtype(ml_dtypes.bfloat16))
        same(tfc.matmul(theirs, g), x @ x)
        same(tfc.matmul(theirs, theirs), x @ x)
        same(np.einsum("ij,jk", g, theirs), x @ x)
        same(tfc.asarray(theirs), x)
    for one in which:
        same(tfc.asarray(x.astype(float), one), x)
        same(tfc.zeros(2, one), np.zeros(2, x.dtype))
        same(g.astype(td.tf32).astype(one), x)
        same(tfc.from_bits(put(td.bits(x)), one), x)
        same(put(td.bits(x)).view(tfc.ndarray).view(one), x)
        same(g.sum(0, dtype=one), x.sum(0))
        same(tfc.matmul(g, g, dtype=one), x @ x)
        same(np.add(g, g, dtype=one), x + x)
        same(np.concatenate([g, g], dtype=one), np.concatenate([x, x]))


@any_dtype
def test_from_nothing(backend: Any, d: Any) -> None:  # noqa: F811
    same(tfc.zeros((2, 3), d), np.zeros((2, 3), d))
    same(tfc.ones(4, d), np.ones(4, d))
    same(tfc.full((2,), 1.5, d), np.full((2,), 1.5, d))
    same(tfc.full(2, d.type(2)), np.full(2, d.type(2)))
    x = tfc.empty((2, 3), d)
    assert (x.shape, x.dtype) == ((2, 3), d)
    for make in ("zeros_like", "ones_like"):
        same(getattr(tfc, make)(x), getattr(np, make)(np.empty((2, 3), d)))
    same(tfc.full_like(x, 2, shape=(3,)), np.full(3, 2, d))
    same(tfc.full_like(x, 2, td.tf32), np.full((2, 3), 2, td.tf32))
    assert tfc.empty_like(x, shape=5).shape == (5,)
    assert tfc.zeros((), d).shape == ()


def test_full_without_a_dtype(backend: Any) -> None:  # noqa: F811
    with pytest.raises(TypeError, match="dtype must be given"):
        tfc.full(3, 1.5)


@each
def test_codes(backend: Any, f: Any) -> None:  # noqa: F811
    a = codes(dtype(f))
    x = tfc.asarray(a)
    same(tfc.bits(x), td.bits(a))
    same(tfc.from_bits(td.bits(a), f.name), a)
    there = put(td.bits(a))
    again = tfc.from_bits(there, dtype(f))
    same(again, a)
    assert again.data.ptr == there.data.ptr


def test_dirty_codes(backend: Any) -> None:  # noqa: F811
    dirty = np.uint32([0x3F800001, 0x7F800001, 0xBFFFFFFF])
    for given in (dirty, put(dirty)):
        with pytest.raises(ValueError, match=r"1065353217|0x3f800001"):
            tfc.from_bits(given, td.tf32)
    x = tfc.from_bits(put(dirty), td.tf32, dirty="ignore")
    same(tfc.bits(x), dirty & np.uint32(0xFFFFE000))
    clean = tfc.from_bits(tfc.bits(x), td.tf32)
    same(x == clean, [True] * 3)
    same(np.argsort(x), [2, 0, 1])
    same(np.isinf(x), [False, True, False])
    # Copies keep the bits in memory.
    assert x.copy().get().view(np.uint32).tolist() == dirty.tolist()
    with pytest.raises(TypeError, match="codes must be uint32 for tf32; got uint16"):
        tfc.from_bits(put(np.uint16([1])), td.tf32)
    with pytest.raises(TypeError, match="x must be an array on a GPU"):
        tfc.bits(dirty)


# -- copies and casts ------------------------------------------------------------------


@any_dtype
def test_copies(backend: Any, d: Any) -> None:  # noqa: F811
    a = codes(d).reshape(2, 3, 4)
    x = tfc.asarray(a)
    for make in (
        lambda y: y.copy(), copy.copy, copy.deepcopy,
        lambda y: pickle.loads(pickle.dumps(y)), np.copy, lambda y: y.astype(d),
        lambda y: y[...].copy("F"), lambda y: y.copy("A"), lambda y: y.copy("K"),
    ):  # fmt: skip
        for index in (slice(None), (slice(None, None, -1), 1)):
            y = make(x[index])
            assert type(y) is tfc.ndarray
            same(y, a[index])
            y[...] = 1
            same(x, a)
    assert x.copy("F").flags.f_contiguous
    assert x.T.copy("K").flags.f_contiguous
    assert x.T.copy("A").flags.f_contiguous
    assert x.T.copy().flags.c_contiguous
    middle = x.transpose(1, 0, 2)
    assert middle.copy("K").strides == middle.strides
    assert x.astype(d, copy=False) is x


@each
def test_astype(backend: Any, f: Any) -> None:  # noqa: F811
    with np.errstate(all="ignore"):
        a = np.array([1.5, -0.5, 1, 0.25], dtype(f))
    x = tfc.asarray(a)
    for to in (np.float32, np.float64, np.float16, np.int32, bool, td.tf32, "bf16"):
        wanted = td.bfloat16 if to == "bf16" else to
        with np.errstate(all="ignore"):
            want = a.astype(wanted)
        y = x.astype(to)
        same(y, want)
        assert (type(y) is tfc.ndarray) == (wanted in (td.tf32, td.bfloat16))
    b = np.asfortranarray(np.tile(a, (3, 1)))
    y = tfc.asarray(b).T.copy().T
    assert y.astype(np.float32).flags.f_contiguous
    assert y.astype(np.float32, order="C").flags.c_contiguous
    same(y.astype(np.float32), b.astype(np.float32))
    with pytest.raises(TypeError, match="casting='safe'; got uint8"):
        x.astype(np.uint8, casting="safe")
    with pytest.raises(ValueError, match=r"order must be one of .*; got 'X'"):
        x.copy("X")


def test_get(backend: Any) -> None:  # noqa: F811
    a = codes(np.dtype(td.bfloat16)).reshape(4, 6)
    x = tfc.asarray(a)
    assert x.get().flags.c_contiguous
    assert x.get(order="F").flags.f_contiguous
    assert x.T.get(order="A").flags.f_contiguous
    assert x.get(order="F").tobytes() == a.tobytes()
    out = np.empty_like(a)
    assert x.get(out=out) is out
    assert out.tobytes() == a.tobytes()
    out = np.empty((4, 6), td.bfloat16, "F")
    assert x.get(out=out) is out
    assert out.tobytes() == a.tobytes()
    assert cupy.asnumpy(x).tobytes() == a.tobytes()
    assert cupy.asnumpy(x, order="F").flags.f_contiguous
    with pytest.raises(
        TypeError, match="out must be a NumPy array of bfloat16; got float32"
    ):
        x.get(out=np.empty((4, 6), np.float32))
    with pytest.raises(ValueError, match=r"out must have .*; got \(6, 4\)"):
        x.get(out=np.empty((6, 4), td.bfloat16))
    for convert in (np.asarray, memoryview):
        with pytest.raises(TypeError):
            convert(x)


@pytest.mark.gpu
def test_get_and_set_on_a_stream(backend: Any) -> None:  # noqa: F811
    if backend is HOST:
        pytest.skip("streams need a GPU")
    a = codes(np.dtype(td.tf32)).reshape(4, 6)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = tfc.asarray(a) + 0
        y = tfc.zeros((4, 6), td.tf32)
        y.set(x.get(stream=stream), stream)
        out = np.empty_like(a)
        y.get(stream=stream, out=out)
    stream.synchronize()
    same(y, x.get())
    assert out.tobytes() == x.get().tobytes()


def test_set(backend: Any) -> None:  # noqa: F811
    a = codes(np.dtype(td.tf32)).reshape(4, 6)
    x = tfc.zeros((4, 6), td.tf32)
    x.set(a)
    same(x, a)
    x[:] = a[::-1]
    same(x, a[::-1])
    x[:, ::2].set(a[:, ::2])
    same(x[:, ::2], a[:, ::2])
    with pytest.raises(TypeError, match="arr must be a NumPy array of tf32"):
        x.set(a.astype(np.float32))
    with pytest.raises(ValueError, match=r"arr must .*\(4, 6\)"):
        x.set(a[0])


# -- reading and writing ---------------------------------------------------------------

#: Keys for an array of shape (4, 5, 6), which NumPy and CuPy read alike.
KEYS = """
0
-1
1, 2
1, 2, 3
...
None
slice(1, 3)
slice(None, None, -1), 2
..., 0
None, 1, None, ..., slice(2, None, 2)
[0, 2]
[[0, 1], [2, 3]]
[0, 2], [1, 3]
slice(None), [0, 4, 2]
[0, 2], slice(None), [1, 3]
[0, 2], ..., [1, 3]
1, [0, 1], slice(1, 3)
mask
mask, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
mask1
slice(None), mask2
mask1, 0
index
index, slice(1, 2)
None, index, [0]
[]
slice(0, 0)
""".strip().splitlines()


def key_for(text: str, up: Any) -> Any:
    rng = np.random.default_rng(3)
    mask = np.zeros((4, 5), bool)
    mask.reshape(-1)[rng.permutation(20)[:10]] = True
    given = {
        "mask": mask,
        "mask1": np.array([True, False, True, True]),
        "mask2": np.array([True, False, True, True, False]),
        "index": np.array([2, 0, -1]),
    }
    return eval(text, {k: up(v) for k, v in given.items()})


@pytest.mark.parametrize("text", KEYS)
@pytest.mark.parametrize("d", [np.dtype(td.bfloat16), np.dtype(td.fp8_e4m3)], ids=str)
def test_indexing(backend: Any, text: str, d: Any) -> None:  # noqa: F811
    a = td.from_bits(np.arange(120).astype(f"u{d.itemsize}") % 120, d).reshape(4, 5, 6)
    x = tfc.asarray(a)
    want = a[key_for(text, np.asarray)]
    got = x[key_for(text, put)]
    assert type(got) is tfc.ndarray
    same(got, want)
    same(x[key_for(text, np.asarray)], want)  # CuPy moves keys from the host
    for value in (
        1.3, 7, True, np.float64(1.3), np.int8(-3), d.type(2), td.tf32(1.3),
        np.array(1.3), np.array([[1.3]]), tfc.ones((), d),
        tfc.full(want.shape, 1.3, td.tf32),
        tfc.asarray(np.arange(want.size), np.float32).reshape(want.shape),
        put(np.arange(want.size, dtype=np.float64).reshape(want.shape) / 7),
        tfc.full((1,) * want.ndim, 3, d),
    ):  # fmt: skip
        if isinstance(value, cupy.ndarray):
            host = value.get() if isinstance(value, tfc.ndarray) else _plain(value)
        else:
            host = value
        if isinstance(host, np.ndarray) and want.ndim == 0:
            host = host.item()  # on the CPU, one element takes only a scalar
        b, y = a.copy(), x.copy()
        with np.errstate(all="ignore"):
            b[key_for(text, np.asarray)] = host
        y[key_for(text, put)] = value
        same(y, b)


def test_places_named_twice(backend: Any) -> None:  # noqa: F811
    """A repeated index reads its element each time. If several values are assigned to
    one element, CuPy keeps any of them."""
    a = codes(np.dtype(td.bf16))[:20].reshape(4, 5)
    x = tfc.asarray(a)
    same(x[:, put(np.array([0, 4, 0]))], a[:, [0, 4, 0]])
    same(x[put(np.array([3, 0, -1])), 1:2], a[[3, 0, -1], 1:2])
    x[put(np.array([3, 0, -1]))] = 2
    a[[3, 0, -1]] = 2
    same(x, a)


def test_slices_share_memory(backend: Any) -> None:  # noqa: F811
    a = codes(np.dtype(td.fp8_e5m2)).reshape(4, 6)
    x, b = tfc.asarray(a), a.copy()
    for of in (x, b):
        of[1:3].T[2] = 1
        of.reshape(-1)[0] = 2
        of[::-1][0, 0] = 4
        of.ravel()[5] = 8
        of.swapaxes(0, 1)[3][1] = 16
        of.diagonal()
        of.flat[7] = 32
    same(x, b)
    assert (x[1:].base is x) or (x[1:].base is x.base)


def test_assignment_refused(backend: Any) -> None:  # noqa: F811
    x = tfc.zeros((2, 3), td.bfloat16)
    for value, words in (
        (np.ones(3), "asarray"), (np.ones((2, 3), td.bfloat16), "asarray"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=words):
            x[0:2] = value
    with pytest.raises((TypeError, ValueError)):
        x[0] = tfc.zeros(4, td.bfloat16)
    with pytest.raises((TypeError, ValueError)):
        x[0] = "one"
    with pytest.raises(IndexError):
        x[5]
    same(x, np.zeros((2, 3), td.bfloat16))


def test_assignment_rounds_once(backend: Any) -> None:  # noqa: F811
    # Through float32, the value would be a tie, and round down to the even code.
    value = 1 + 2.0**-8 + 2.0**-40
    x = tfc.zeros(2, td.bfloat16)
    x[0] = value
    x[1:] = put(np.array([value]))
    same(x, np.full(2, value).astype(td.bfloat16))
    x.fill(np.longdouble(1) + np.longdouble(2) ** -8 + np.longdouble(2) ** -60)
    assert float(x[0]) == 1 + 2.0**-7
    plain = put(np.zeros(2, np.float32))
    if backend is not HOST:  # CuPy's own assignment, from one of the formats
        plain[...] = x
        same(plain, x.get().astype(np.float32))


@each
def test_order(backend: Any, f: Any) -> None:  # noqa: F811
    """NaNs of both signs are last, zeros are equal, equal numbers keep their order."""
    d = dtype(f)
    clean = codes(d, 200)
    bits = td.bits(clean)
    form = td.formats[f.name]
    sign = 1 << (form.bits - 1 + form.unused_low_bits) if form.signed else 0
    zeros = np.array([sign, 0, 0], bits.dtype)
    a = td.from_bits(np.concatenate([zeros, bits, zeros]), d).copy()
    x = tfc.asarray(a)
    same(np.argsort(x), np.argsort(a, kind="stable"))
    same(np.sort(x), np.sort(a, kind="stable"))
    same(np.sort(x.reshape(2, -1), axis=0), np.sort(a.reshape(2, -1), 0, kind="stable"))
    same(np.searchsorted(np.sort(x), x), np.searchsorted(np.sort(a), a))
    same(np.isin(x, x[::3]), np.isin(a, a[::3]))
    same(np.lexsort((x, x[::-1])), np.lexsort((a, a[::-1])))
    values, counts = np.unique(x, return_counts=True)
    want, want_counts = np.unique(a, return_counts=True)
    same(values == want.astype(d)[0], values.get() == want[0])
    same(counts, want_counts)
    assert len(values) == len(want)


def test_fill_values_where_there_is_no_zero(backend: Any) -> None:  # noqa: F811
    with np.errstate(all="ignore"):
        a = np.array([1, 2, 4], td.float8_e8m0fnu)
        mask = np.array([True, False, True])
        want = np.pad(a, 1), np.select([mask], [a]), np.where(mask, a, 0), np.diag(a)
    x, there = tfc.asarray(a), put(mask)
    got = np.pad(x, 1), np.select([there], [x]), np.where(there, x, 0), np.diag(x)
    for y, z in zip(got, want, strict=True):
        same(y, z)


# -- views and shapes ------------------------------------------------------------------


@any_dtype
def test_shapes(backend: Any, d: Any) -> None:  # noqa: F811
    a = codes(d).reshape(2, 3, 4)
    x = tfc.asarray(a)
    for see in (
        lambda y: y.T, lambda y: y.reshape(6, 4), lambda y: y.T.reshape(-1),
        lambda y: y.reshape(4, -1, order="F"), lambda y: y.ravel(),
        lambda y: y.T.ravel(), lambda y: y.flatten(), lambda y: y.transpose(1, 0, 2),
        lambda y: y[:, None].squeeze(), lambda y: y[:, None].squeeze(1),
        lambda y: y.swapaxes(0, 2), lambda y: y.diagonal(1, 0, 2), lambda y: y.mT,
        lambda y: y.real, lambda y: y.conj(), lambda y: y[::2, 1],
        lambda y: y.flat[3:9],
        lambda y: y.repeat(2, 1), lambda y: y.take([1, 0, 1], 1), lambda y: y.view(),
        lambda y: y.compress([True, False, True], 1),
    ):  # fmt: skip
        y = see(x)
        assert type(y) is tfc.ndarray
        same(y, see(a))
    assert [type(y) for y in x] == [tfc.ndarray] * 2
    same(next(iter(x)), a[0])
    x.shape = (24,)
    same(x, a.reshape(-1))


def test_views(backend: Any) -> None:  # noqa: F811
    a = codes(np.dtype(td.tf32)).reshape(4, 6)
    x = tfc.asarray(a)
    for to in (np.uint32, np.float32, np.uint8, np.uint64, np.int16):
        y = x.view(to)
        assert type(y) is cupy.ndarray
        same(y, a.view(to))
    for to in (td.bfloat16, td.fp8_e4m3, "fp8_e5m2"):
        y = x.view(to)
        assert type(y) is tfc.ndarray
        same(y, a.view(td.formats[to].dtype if isinstance(to, str) else to))
    assert type(x.view(cupy.ndarray)) is cupy.ndarray
    assert x.view(cupy.ndarray).dtype == td.tf32
    same(x.view(np.uint32).view(td.tf32, tfc.ndarray), a)
    with pytest.raises(ValueError, match="size"):
        x[:, :5].copy().view(np.uint64)
    with pytest.raises(ValueError):  # noqa: PT011
        x.T.view(np.uint8)


def test_methods(backend: Any) -> None:  # noqa: F811
    a = np.array(
        [[1, 2, 0.5, 3], [0.25, -1.5, 4, 1], [2, 0.75, -0.0, 0.5]], td.bfloat16
    )
    x = tfc.asarray(a)
    for call in (
        "x.sum()", "x.sum(0)", "x.sum(axis=1, keepdims=True)", "x.sum(dtype='f4')",
        "x.prod(1)", "x.mean(0)", "x.var()", "x.std(1)", "x.max()", "x.min(0)",
        "x.argmax()", "x.argmin(1)", "x.any(0)", "x.all()", "x.cumsum(1)",
        "x.cumprod(0)",
        "x.clip(0, 2)", "x.clip(max=1)", "x.round(1)", "x.trace()", "x.trace(1)",
        "x.argsort(1)", "np.sort(x[0]).searchsorted(x[1])", "x.nonzero()", "x.dot(x.T)",
        "np.ptp(x, 0)", "x.imag", "x.argpartition(1)[:, :0]", "x.max(initial=9)",
        "x.sum(where=x > 1)",
    ):  # fmt: skip
        want = eval(call, {"x": a, "np": np})
        got = eval(call, {"x": x, "np": np})
        for y, z in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)],
                        strict=True):  # fmt: skip
            same(y, z)
    for change in ("x.sort()", "x.sort(0)", "x.put([0, 5], [9, 8])", "x.fill(1.3)"):
        y, b = x.copy(), a.copy()
        eval(change, {"x": y})
        eval(change, {"x": b})
        same(y, b)
    y = x.copy()
    y.partition(1)
    assert sorted(y.get()[0][:2].tolist()) == sorted(a[0].tolist())[:2]
    out = tfc.empty(4, td.bfloat16)
    assert x.sum(0, out=out) is out
    same(out, a.sum(0))
    assert x.take(tfc.asarray([0, 1], td.tf32).astype(int), 1, out=x[:, :2]) is not None


def test_scalars_of_one_element(backend: Any) -> None:  # noqa: F811
    x = tfc.asarray([1.5], td.bfloat16)
    assert (float(x[0]), int(x[0]), bool(x), complex(x[0])) == (1.5, 1, True, 1.5)
    assert x.item() == 1.5
    assert type(x.item()) is float
    assert f"{x[0]:.3f}" == "1.500"
    assert not tfc.zeros((), td.bfloat16)
    same(tfc.ones((), td.fp8_e4m3) == 1, True)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tfc.ones(2, td.bfloat16))
    with pytest.raises(TypeError):
        hash(x)


@pytest.mark.parametrize("d", [np.dtype(td.bfloat16), np.dtype(td.fp8_e5m2)], ids=str)
def test_operators(backend: Any, d: Any) -> None:  # noqa: F811
    a = np.array([1.5, -2, 0.25, 3], d)
    b = np.array([0.5, 2, 3, -1], d)
    x, y = tfc.asarray(a), tfc.asarray(b)
    twos = (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
        operator.mod, operator.pow, operator.eq, operator.ne, operator.lt, operator.le,
        operator.gt, operator.ge, divmod, operator.matmul,
    )  # fmt: skip
    for op in twos:
        pairs = [(x, y, a, b)]
        if op is not operator.matmul:
            pairs += [(x, s, a, s) for s in (2, 0.5, d.type(2), np.float32(2))]
            pairs += [(s, x, s, a) for s in (2, 0.5, d.type(2), np.float32(2))]
        for left, right, host_left, host_right in pairs:
            with np.errstate(all="ignore"):
                want = op(host_left, host_right)
            got = op(left, right)
            if op is not divmod:
                got, want = (got,), (want,)
            for u, v in zip(got, want, strict=True):
                if v.dtype == np.float32:  # CuPy's, whose remainders have no -0
                    assert np.array_equal(moved(u), v)
                else:
                    same(u, v)
    for op in (operator.neg, operator.pos, abs):
        same(op(x), op(a))
    for op in (
        operator.iadd, operator.isub, operator.imul, operator.itruediv,
        operator.ifloordiv, operator.imod, operator.ipow,
    ):  # fmt: skip
        for u, v in ((y, b), (2, 2)):
            z, c = x.copy(), a.copy()
            with np.errstate(all="ignore"):
                c = op(c, v)
            assert op(z, u) is z
            same(z, c)
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift):
        with pytest.raises(TypeError):
            op(x, y)
    with pytest.raises(TypeError):
        operator.invert(x)
    for op in (operator.add, operator.eq, operator.matmul, operator.iadd):
        for left, right in ((x, b), (b, x)):
            with pytest.raises(TypeError, match="asarray"):
                op(left, right)


def test_products_of_operators(backend: Any) -> None:  # noqa: F811
    a = np.array([[1, 2], [3, 4]], td.tf32)
    x = tfc.asarray(a)
    same(x @ x, a @ a)
    same(np.matmul(x, x, dtype=np.float32), np.matmul(a, a, dtype=np.float32))
    z = x.copy()
    z @= x
    same(z, a @ a)
    out = tfc.empty((2, 2), td.tf32)
    assert np.matmul(x, x, out=out) is out
    same(out, a @ a)


# -- exchange --------------------------------------------------------------------------


@any_dtype
def test_cuda_array_interface(backend: Any, d: Any, monkeypatch: Any) -> None:  # noqa: F811
    if backend is HOST:  # version 3 asks the driver for the stream
        monkeypatch.setattr(cupy._util, "CUDA_ARRAY_INTERFACE_EXPORT_VERSION", 2)
    x = tfc.asarray(codes(d).reshape(4, 6))[:, ::2]
    shown = x.__cuda_array_interface__
    floats = d.name in ("tf32", "float32")
    assert np.dtype(shown["typestr"]) == np.dtype("f4" if floats else f"u{d.itemsize}")
    assert shown["shape"] == (4, 3)
    assert shown["strides"] == x.strides
    assert shown["data"] == (x.data.ptr, False)


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h 1.1."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of dlpack.h 1.1."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    )  # fmt: skip


def tensor_of(capsule: Any) -> Tensor:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if "dltensor_versioned" in repr(capsule):
        return Versioned.from_address(get(capsule, b"dltensor_versioned")).tensor
    return Tensor.from_address(get(capsule, b"dltensor"))


@pytest.mark.parametrize("keywords", [{}, {"max_version": (1, 1)}], ids=repr)
@any_dtype
def test_dlpack_export(backend: Any, d: Any, keywords: Any) -> None:  # noqa: F811
    x = tfc.asarray(codes(d).reshape(4, 6))[:, ::2]
    if d.name not in (*CODES, "tf32", "float32"):
        with pytest.raises(BufferError, match="bits"):
            x.__dlpack__(**keywords)
        return
    capsule = x.__dlpack__(**keywords)
    tensor = tensor_of(capsule)
    assert tensor.data + tensor.byte_offset == x.data.ptr
    assert (tensor.ndim, tensor.shape[:2]) == (2, [4, 3])
    assert [n * d.itemsize for n in tensor.strides[:2]] == list(x.strides)
    assert (tensor.bits, tensor.lanes) == (8 * d.itemsize, 1)
    known = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12, "tf32": 2}
    assert tensor.code == known.get(d.name, CODES.get(d.name, 2))


class Foreign:
    """Another library's array: a NumPy array with its own DLPack code."""

    def __init__(self, x: Any, code: int) -> None:
        self.x, self.code = x, code

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        capsule = self.x.__dlpack__(**keywords)
        tensor_of(capsule).code = self.code
        return capsule


@pytest.mark.parametrize("form", CODES)
def test_dlpack_import_from_the_host(backend: Any, form: str) -> None:  # noqa: F811
    a = codes(td.formats[form].dtype).reshape(4, 6)
    foreign = Foreign(a.view(f"u{a.itemsize}")[:, ::2], CODES[form])
    same(tfc.asarray(foreign), a[:, ::2])
    with np.errstate(all="ignore"):
        same(tfc.asarray(foreign, td.tf32), a[:, ::2].astype(td.tf32))


def test_dlpack_import_of_other_types(backend: Any) -> None:  # noqa: F811
    a = np.arange(6, dtype=np.float64).reshape(2, 3)
    same(tfc.asarray(Foreign(a, 2), td.bfloat16), a.astype(td.bfloat16))
    with pytest.raises(TypeError, match="dtype must be given"):
        tfc.asarray(Foreign(a, 2))
    with pytest.raises(BufferError):
        tfc.asarray(Foreign(a, 77), td.tf32)
    with pytest.raises(BufferError, match="DLPack capsule"):
        interchange.type_code(a)


@pytest.mark.parametrize("row", tensor_lines.lines("CuPy"), ids=lambda row: row[0])
def test_the_page_on_tensors(backend: Any, row: list[str]) -> None:  # noqa: F811
    tensor_lines.check(row, {"tfc": tfc})


@pytest.mark.gpu
@pytest.mark.parametrize("form", CODES)
def test_dlpack_on_the_device(backend: Any, form: str) -> None:  # noqa: F811
    if backend is HOST:
        pytest.skip("CuPy's import needs a GPU")
    x = tfc.asarray(codes(td.formats[form].dtype).reshape(4, 6))
    y = tfc.asarray(_NoCupy(x))
    assert y.data.ptr == x.data.ptr
    same(y, x.get())


class _NoCupy:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


# -- no detours through the host -------------------------------------------------------


def test_what_moves_to_the_host(backend: Any) -> None:  # noqa: F811
    """No values move to the host unless the caller asks for values on the host."""
    if backend is not HOST:
        pytest.skip("the host backend counts")
    x = tfc.asarray(codes(np.dtype(td.bfloat16)).reshape(4, 6))
    mask = put([True, False, True, False])
    HOST.counts.clear()
    x[mask], x[1:], x.T.copy(), x.reshape(6, 4), np.concatenate([x, x]), np.tile(x, 2)
    x[0] = 1
    x[mask] = x[0]
    np.where(put(np.ones((4, 6), bool)), x, 2)
    tfc.zeros(3, td.tf32), tfc.bits(x), x.view(np.uint16), np.roll(x, 1)
    assert HOST.counts["get"] == 0
