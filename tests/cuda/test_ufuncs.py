"""NumPy's ufuncs on GPU arrays: the CPU's results in all bits, by any route."""

# ruff: noqa: F811 - the fixture

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import all_items, item_type, random_items
from tests.support.bits import ALL, BYTES, dtype, name
from tests.support.cuda import HOST, backend, backends, cupy  # noqa: F401
from tests.support.sass import ARCHITECTURES, check
from tf32dtype.cuda._arrays.ndarray import wrap
from tf32dtype.cuda._functions import lookup_tables, ufuncs
from tf32dtype.cuda._functions.ufuncs import call
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda._runtime.storage import STORAGE, is_ours, raw

NAMES = [
    x for x in dir(np) if isinstance(u := getattr(np, x), np.ufunc) and u.__name__ == x
]


def put(x: Any) -> Any:
    """Put a NumPy array on the device."""
    if not is_ours(x.dtype):
        return backends.current().put(x)
    storage = np.ascontiguousarray(x).view(STORAGE[x.dtype.itemsize]).reshape(x.shape)
    return wrap(backends.current().put(storage), x.dtype)


def get(x: Any) -> Any:
    """Return an array on the device as a NumPy array."""
    assert isinstance(x, cupy.ndarray)
    if not is_ours(x.dtype):
        return backends.current().get(x.view(cupy.ndarray))
    return backends.current().get(raw(x)).view(x.dtype)


def loops(ufunc: Any, kind: Any) -> Any:
    """Return the dtypes of the loop that serves a format, or None if there is none."""
    given = (kind, np.dtype(np.int64)) if ufunc is np.ldexp else (kind,) * ufunc.nin
    try:
        loop = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout))
    except TypeError:
        return None
    return loop if ufunc.signature is None and is_ours(loop[0]) else None


OURS = [getattr(np, x) for x in NAMES if loops(getattr(np, x), dtype(BYTES[0]))]
UNARY = [x.__name__ for x in OURS if x.nin == 1]
PAIRS = [x.__name__ for x in OURS if x.nin == 2 and x is not np.ldexp]


def on_cpu(function: Any, *arguments: Any, **keywords: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*arguments, **keywords)


def assert_same(found: Any, want: Any, what: Any = "") -> None:
    """Check that device arrays have the dtype, shape and bits of NumPy's."""
    if isinstance(want, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(want)
        for part, wanted in zip(found, want, strict=True):
            assert_same(part, wanted, what)
        return
    want = np.asarray(want)
    assert found.dtype == want.dtype, f"{what}: {found.dtype}, not {want.dtype}"
    assert found.shape == want.shape, f"{what}: {found.shape}, not {want.shape}"
    word = f"u{want.dtype.itemsize}"
    got = np.ascontiguousarray(get(found)).view(word).ravel()
    bits = np.ascontiguousarray(want).view(word).ravel()
    wrong = np.flatnonzero(got != bits)
    lines = [f"  [{i}] {got[i]:#x}, not {bits[i]:#x}" for i in wrong[:5]]
    assert not wrong.size, f"{what}: {wrong.size} of {bits.size}\n" + "\n".join(lines)


def sample(f: Any, shape: Any, seed: int = 0) -> Any:
    """Return random items, with unused bits set if the format has unused bits."""
    rng = np.random.default_rng(seed)
    items = random_items(f, rng, shape)
    if f.shift or f.count < 256:
        low = (1 << f.shift) - 1
        dirt = rng.integers(0, 256 if not low else low + 1, shape)
        items = items | (dirt if low else dirt & ~(f.count - 1)).astype(items.dtype)
    return items.astype(item_type(f)).view(dtype(f))


F8 = next(f for f in ALL if f.name == "float8_e4m3fn")
BF = next(f for f in ALL if f.name == "bfloat16")
TF = next(f for f in ALL if f.name == "tf32")


# -- every function --------------------------------------------------------------------


@pytest.mark.parametrize("f", ALL, ids=name)
def test_functions_of_one_array(backend, f):
    """All codes, and items with bits outside the code."""
    items = all_items(f)
    x = np.concatenate([items.view(dtype(f)), sample(f, 1000)])
    given = put(x)
    for function in UNARY:
        ufunc = getattr(np, function)
        assert_same(call(ufunc, (given,)), on_cpu(ufunc, x), f"{function} {f.name}")


#: Each format compiles its own kernels. The other formats are exhaustive, as they take
#: long.
PLAIN = ["float8_e4m3fn", "float8_e8m0fnu", "float6_e3m2fn", "bfloat16", "tf32"]
SOME = [
    pytest.param(f, marks=[] if f.name in PLAIN else pytest.mark.exhaustive, id=f.name)
    for f in ALL
]


@pytest.mark.parametrize("f", [x for x in SOME if x.values[0] in BYTES])
def test_functions_of_two_arrays_of_bytes(backend, f):
    """All pairs of bytes, with bytes that are not codes."""
    x = np.arange(256, dtype=np.uint8).view(dtype(f))
    first, second = np.repeat(x, 256), np.tile(x, 256)
    a, b = put(first), put(second)
    for function in PAIRS:
        ufunc = getattr(np, function)
        want = on_cpu(ufunc, first, second)
        assert_same(call(ufunc, (a, b)), want, f"{function} {f.name}")


@pytest.mark.parametrize("f", ALL, ids=name)
def test_ldexp(backend, f):
    rng = np.random.default_rng(9)
    x = np.tile(sample(f, 1000), 3)
    n = np.concatenate([rng.integers(-40, 40, 1000), rng.integers(-300, 300, 1000),
                        rng.integers(-(2**62), 2**62, 1000)])  # fmt: skip
    for kind in (np.int64, np.int32, np.int8):
        exponents = n.astype(kind)
        want = on_cpu(np.ldexp, x, exponents)
        assert_same(call(np.ldexp, (put(x), put(exponents))), want, kind)
    assert_same(call(np.ldexp, (put(x), 3)), on_cpu(np.ldexp, x, 3))
    assert_same(call(np.ldexp, (x[5], put(n))), on_cpu(np.ldexp, x[5], n))


def test_tables_are_made_once(backend):
    x = put(sample(BF, 100))
    call(np.sinh, (x,))
    if backend is HOST:
        before = HOST.counts["put"]
        call(np.sinh, (x,))
        assert HOST.counts["put"] == before
        assert HOST.counts["get"] == 0


# -- operands --------------------------------------------------------------------------


VIEWS = {
    "whole": lambda x: x,
    "step": lambda x: x[::3],
    "backward": lambda x: x[::-1],
    "offset": lambda x: x[1:, 1:],
    "transposed": lambda x: x.T,
    "columns": lambda x: x[:, ::2],
    "scalar": lambda x: x[2, 3],
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("f", [F8, BF, TF], ids=name)
def test_strides(backend, f, view):
    x, y = sample(f, (45, 38)), sample(f, (45, 38), 1)
    a, b = view(put(x)), view(put(y))
    assert_same(call(np.exp, (a,)), on_cpu(np.exp, view(x)))
    for ufunc in (np.add, np.less, np.power, np.divmod):
        want = on_cpu(ufunc, view(x), view(y))
        assert_same(call(ufunc, (a, b)), want, ufunc)
        assert_same(call(ufunc, (a, view(put(y.T.copy().T)))), want, ufunc)


@pytest.mark.parametrize("f", [F8, BF, TF], ids=name)
def test_broadcasting(backend, f):
    x, y, z = sample(f, (5, 1, 37)), sample(f, (6, 1), 1), sample(f, (), 2)
    a, b, c = put(x), put(y), put(z)
    for ufunc in (np.multiply, np.greater, np.hypot):
        assert_same(call(ufunc, (a, b)), on_cpu(ufunc, x, y))
        assert_same(call(ufunc, (b, a)), on_cpu(ufunc, y, x))
        assert_same(call(ufunc, (a, c)), on_cpu(ufunc, x, z))
        assert_same(call(ufunc, (c, c)), on_cpu(ufunc, z, z))
    with pytest.raises(ValueError, match="broadcast"):
        call(np.add, (a, put(sample(f, 5))))


@pytest.mark.parametrize("size", [1, 3, 15, 16, 17, 257, 5000])
@pytest.mark.parametrize("f", [F8, BF, TF], ids=name)
def test_sizes_and_alignment(backend, f, size):
    """Sizes have whole vectors of 16 bytes and a rest, and may begin inside of one."""
    x, y = sample(f, size + 1), sample(f, size + 1, 1)
    a, b = put(x), put(y)
    for i, j in ((0, 0), (1, 1), (0, 1)):
        p, q = slice(i, i + size), slice(j, j + size)
        want = on_cpu(np.add, x[p], y[q])
        out = put(np.zeros(size + 1, x.dtype))
        assert_same(call(np.add, (a[p], b[q])), want)
        assert_same(call(np.less, (a[p], b[q])), on_cpu(np.less, x[p], y[q]))
        assert call(np.add, (a[p], b[q]), out=out[q]) is not None
        assert_same(out[q], want)
        rest = get(out).view(item_type(f))
        assert not rest[:j].any()
        assert not rest[j + size :].any()
        for part, wanted in zip(call(np.frexp, (a[p],)), np.frexp(x[p]), strict=True):
            assert_same(part, wanted)


@pytest.mark.parametrize("f", SOME)
def test_scalars_are_weak(backend, f):
    x = sample(f, 200)
    a = put(x)
    # 3.3 is not a number of any format, and is rounded to one first.
    for scalar in (3.3, 2, True, 1e30, x[7], np.float16(1.5), np.float32(3.3)):
        for ufunc in (np.add, np.divide, np.less_equal):
            for given, host in (((a, scalar), (x, scalar)), ((scalar, a), (scalar, x))):
                want = on_cpu(ufunc, *host)
                found = call(ufunc, given)
                if is_ours(want.dtype) or want.dtype == np.bool:
                    assert_same(found, want, (ufunc, scalar))
                assert found.dtype == want.dtype


def test_mixed_dtypes(backend):
    """Operands are cast to the dtype that NumPy promotes them to."""
    x, y, z = sample(F8, 500), sample(BF, 500, 1), sample(TF, 500, 2)
    integers = np.arange(-250, 250).astype(np.int8)
    half = np.linspace(-3, 3, 500).astype(np.float16)
    for first, second in ((x, y), (y, x), (x, z), (z, half), (y, integers)):
        for ufunc in (np.add, np.equal, np.arctan2):
            want = on_cpu(ufunc, first, second)
            assert is_ours(want.dtype) or want.dtype == np.bool
            assert_same(call(ufunc, (put(first), put(second))), want, ufunc)
    single = np.linspace(0.5, 3, 500).astype(np.float32)
    found = call(np.add, (put(y), put(single)))
    assert type(found) is cupy.ndarray
    assert found.dtype == np.float32
    wanted = y.astype(np.float32) + single
    known = np.isfinite(wanted)
    np.testing.assert_allclose(get(found)[known], wanted[known], rtol=1e-6)


def test_float32_of_our_class(backend):
    """CuPy's functions compute, and the result is of our class again."""
    x = np.linspace(0.5, 3, 50, dtype=np.float32)
    a = wrap(put(x), np.float32)
    found = call(np.add, (a, a))
    assert type(found) is type(a)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(get(found), x + x)
    assert type(call(np.add, (a, put(x)))) is type(a)
    assert call(np.less, (a, 1.0)).dtype == np.bool
    out = put(np.zeros(50, dtype=td.bfloat16))
    assert call(np.multiply, (a, a), out=out) is out
    assert_same(out, (x * x).astype(td.bfloat16))


def test_logical(backend):
    for f in (F8, BF, TF):
        x, y = sample(f, 300), sample(f, 300, 1)
        x[::5] = y[::7][: x[::5].size] = 0
        for ufunc in (np.logical_and, np.logical_or, np.logical_xor):
            assert_same(call(ufunc, (put(x), put(y))), ufunc(x, y), ufunc)
        assert_same(call(np.logical_not, (put(x),)), np.logical_not(x))


@pytest.mark.parametrize("f", SOME)
def test_clip(backend, f):
    x, low, high = (sample(f, 2000, seed) for seed in (1, 2, 3))
    clip = ufuncs._clip
    assert_same(call(clip, (put(x), put(low), put(high))), on_cpu(clip, x, low, high))
    assert_same(call(clip, (put(x), 0.5, 2)), on_cpu(clip, x, 0.5, 2))
    assert_same(call(clip, (1.0, put(low), 2)), on_cpu(clip, 1.0, low, 2))
    assert_same(call(clip, (1.5, 0.5, put(high))), on_cpu(clip, 1.5, 0.5, high))


# -- out=, where=, dtype=, casting= ----------------------------------------------------


@pytest.mark.parametrize("f", [F8, BF, TF], ids=name)
def test_out(backend, f):
    x, y = sample(f, (20, 30)), sample(f, (20, 30), 1)
    for make in (
        lambda: put(np.zeros((20, 30), x.dtype)),
        lambda: put(np.zeros((30, 20), x.dtype)).T,
        lambda: put(np.zeros((40, 30), x.dtype))[::-2],
    ):
        out = make()
        assert call(np.divide, (put(x), put(y)), out=out) is out
        assert_same(out, on_cpu(np.divide, x, y))
        out = make()
        assert call(np.add, (put(x[0]), 1.5), out=(out,)) is out
        assert_same(out, on_cpu(np.add, x[0], 1.5, out=np.zeros((20, 30), x.dtype)))
        out = make()
        assert call(np.add, (1, 2.5), out=out) is out
        assert_same(out, on_cpu(np.add, 1, 2.5, out=np.zeros((20, 30), x.dtype)))
    # out= of other dtypes
    for kind in (np.float32, np.float64, td.tf32, td.bfloat16, td.float8_e5m2):
        out = put(np.zeros((20, 30), kind))
        assert call(np.add, (put(x), put(y)), out=out) is out
        assert_same(out, on_cpu(np.add, x, y, out=np.zeros((20, 30), kind)), kind)
    out = put(np.zeros((20, 30), np.float32))
    call(np.isnan, (put(x),), out=out)
    assert_same(out, np.isnan(x, out=np.zeros((20, 30), np.float32)))


@pytest.mark.parametrize("f", [F8, BF, TF], ids=name)
def test_overlap(backend, f):
    x, y = sample(f, 600), sample(f, 600, 1)
    for inputs, output in (
        (slice(0, 500), slice(0, 500)),
        (slice(0, 500), slice(1, 501)),
        (slice(1, 501), slice(0, 500)),
        (slice(0, 500), slice(499, None, -1)),
        (slice(0, 1), slice(0, 500)),
    ):
        for ufunc in (np.add, np.power):
            a, host = put(x), x.copy()
            call(ufunc, (a[inputs], put(y[:500])), out=a[output])
            on_cpu(ufunc, host[inputs], y[:500], out=host[output])
            assert_same(a, host, (ufunc, inputs, output))
        a, host = put(x), x.copy()
        call(np.exp, (a[inputs],), out=a[output])
        on_cpu(np.exp, host[inputs], out=host[output])
        assert_same(a, host, (inputs, output))
    a, b = put(x), put(y)
    want = on_cpu(np.divmod, x, y)
    call(np.divmod, (a, b), out=(a, b))
    assert_same((a, b), want)
    a, b = put(x), put(y)
    call(np.divmod, (a, b), out=(b, None))
    assert_same(b, want[0])


@pytest.mark.parametrize("f", [F8, BF, TF], ids=name)
def test_where(backend, f):
    x, y, z = (sample(f, (30, 40), seed) for seed in range(3))
    mask = np.random.default_rng(0).random((30, 40)) < 0.5
    for chosen in (mask, mask[0], mask[:, :1]):
        out, host = put(z), z.copy()
        assert call(np.add, (put(x), put(y)), out=out, where=put(chosen)) is out
        on_cpu(np.add, x, y, out=host, where=chosen)
        assert_same(out, host)
    found = get(call(np.exp, (put(x),), where=put(mask)))
    word = item_type(f)
    wanted = on_cpu(np.exp, x)
    assert np.array_equal(found[mask].view(word), wanted[mask].view(word))
    out = put(z)
    call(np.add, (put(x), 1), out=out, where=False)
    assert_same(out, z)
    # The mask broadcasts with the operands.
    assert call(np.add, (put(x[0, 0]), 1), where=put(mask)).shape == (30, 40)


def test_dtype(backend):
    x = sample(BF, 100)
    z = np.linspace(0.5, 2, 100).astype(np.float32)
    found = call(np.add, (put(z), put(z)), dtype=td.bfloat16)
    assert_same(found, on_cpu(np.add, z, z, dtype=td.bfloat16))
    found = call(np.sqrt, (put(z),), dtype=td.float8_e4m3fn)
    assert_same(found, on_cpu(np.sqrt, z, dtype=td.float8_e4m3fn))
    found = call(np.add, (put(x), put(x)), dtype=td.tf32)
    assert_same(found, on_cpu(np.add, x, x, dtype=td.tf32))
    assert call(np.add, (put(x), put(x)), dtype=np.float32).dtype == np.float32


def test_layout_is_kept(backend):
    x = put(sample(BF, (7, 11)))
    assert call(np.add, (x.T, x.T)).strides == x.T.strides
    assert call(np.exp, (x.T,)).strides == x.T.strides
    assert call(np.isnan, (x.T,)).strides == (1, 11)


def same_error(function: Any, on_device: Any) -> None:
    """Check that the device raises NumPy's own error, with its message."""
    with pytest.raises(TypeError) as want:
        function()
    with pytest.raises(type(want.value)) as found:
        on_device()
    assert str(found.value) == str(want.value)


def test_errors_come_before_anything_is_written(backend):
    x = sample(BF, 10)
    a, out = put(x), put(np.zeros(10, np.int32))
    same_error(
        lambda: np.add(x, x, out=np.zeros(10, np.int32)),
        lambda: call(np.add, (a, a), out=out),
    )
    same_error(
        lambda: np.add(x, x, out=np.zeros(10, td.float8_e4m3fn), casting="safe"),
        lambda: call(
            np.add, (a, a), out=put(np.zeros(10, td.float8_e4m3fn)), casting="safe"
        ),
    )
    same_error(lambda: np.bitwise_and(x, x), lambda: call(np.bitwise_and, (a, a)))
    same_error(lambda: np.gcd(x, 3), lambda: call(np.gcd, (a, 3)))
    same_error(lambda: np.ldexp(x, x), lambda: call(np.ldexp, (a, a)))
    assert not get(out).any()
    small = put(np.zeros(9, td.bfloat16))
    for given, keywords, message in (
        ((a, a), {"out": small}, "shape"),
        ((a, a), {"out": (small, small)}, "got 2"),
        ((a, put(x[:3])), {}, "broadcast"),
    ):
        with pytest.raises(ValueError, match=message):
            call(np.add, given, **keywords)
    for given, keywords, message in (
        ((a, x), {}, "asarray"),
        ((a, [1.0]), {}, "list"),
        ((a, "1"), {}, "str"),
        ((a,), {}, "2 inputs"),
        ((a, a), {"out": x}, "out must be"),
        ((a, a), {"where": x == x}, "where must be"),
        ((a, a), {"where": a}, "where must be"),
        ((a, np.timedelta64(3, "s")), {}, "a GPU does not support"),
        ((a, np.longdouble(3)), {}, "longdouble|float128"),
    ):
        with pytest.raises(TypeError, match=message):
            call(np.multiply, given, **keywords)
    with pytest.raises(TypeError, match="matmul"):
        call(np.matmul, (a, a))
    assert not get(small).astype(float).any()


# -- kernels ---------------------------------------------------------------------------


@pytest.mark.parametrize("descends", [False, True])
def test_threads_in_any_order(backend, descends):
    if backend is not HOST:
        pytest.skip("a GPU has its own order")
    HOST.descends = descends
    x = sample(BF, 30000)
    assert_same(call(np.add, (put(x), put(x))), on_cpu(np.add, x, x))
    assert_same(call(np.cos, (put(x),)), on_cpu(np.cos, x))


FAULTS = {
    "one bit more ignored": (">> shift)", ">> (shift + 1))", TF, np.exp),
    "pairs swapped": ("x << 8 | y", "y << 8 | x", F8, np.power),
    "a table that is not there yet": ("__syncthreads();", "", F8, np.add),
    "facts as numbers": (
        "1: return look_up<uint8",
        "9: return look_up<uint8",
        BF,
        np.isinf,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(backend, fault):
    if backend is not HOST:
        pytest.skip("kernels are changed on the host")
    *change, f, ufunc = FAULTS[fault]
    HOST.put_fault(fault, *change)
    x = [sample(f, 1000, seed) for seed in range(ufunc.nin)]
    with pytest.raises(AssertionError):
        assert_same(call(ufunc, tuple(put(y) for y in x)), on_cpu(ufunc, *x))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_machine_code_of_tables(arch):
    for kernel, needs in ((lookup_tables.ONE, ()), (lookup_tables.PAIR, ("LDS.U8",))):
        check(kernel, arch, needs=("LDG.E.128", "STG.E.128", *needs))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("f", [F8, BF, TF], ids=name)
def test_machine_code_of_ldexp(f, arch):
    if arch != "sm_90a" and f is not F8:
        pytest.skip("one architecture for the rest")
    options = f"-DFORMAT=tf_{f.name}", f"-DITEM=uint{8 * dtype(f).itemsize}_t"
    check(Kernel("cuda/ufuncs/ldexp.cu", "by_power", options), arch)
