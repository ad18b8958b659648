"""Reductions on a GPU: the CPU's bits, sums as if exact, in a fixed order."""

# ruff: noqa: F811 -- a fixture is imported, and then a parameter

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda.test_casts import FORMATS, bits, get, put, same
from tests.support import oracle
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import LINE, KernelError
from tests.ufuncs.test_reductions import random, within
from tf32dtype.cuda._arrays import casts, ndarray
from tf32dtype.cuda._functions import reductions
from tf32dtype.cuda._matmul import native
from tf32dtype.cuda._runtime.backend import Kernel

FEW = [np.dtype(x) for x in (td.bfloat16, td.tf32, td.float8_e4m3fn)]
each_few = pytest.mark.parametrize("dtype", FEW, ids=lambda d: d.name)
SIGNED = [f.dtype for f in td.formats.values() if f.signed]
#: Reductions with a function of the same name in NumPy.
NAMES = [
    "sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "count_nonzero",
    "mean", "var", "std", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar",
    "nanstd", "nanargmax", "nanargmin",
]  # fmt: skip


def on_cpu(name: str, x: np.ndarray, **named: Any) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(np, name)(x, **named))


def compare(backend: Any, name: str, x: np.ndarray, **named: Any) -> None:
    """Check that the bits are NumPy's."""
    there = {
        key: put(backend, value) if isinstance(value, np.ndarray) else value
        for key, value in named.items()
    }
    got = get(backend, reductions.reduce(name, put(backend, x), **there))
    want = on_cpu(name, x, **named)
    assert got.dtype == want.dtype, (name, named)
    assert got.shape == want.shape, (name, named)
    if name in reductions.QUOTIENTS and np.isnan(want).any():
        # The sign of NumPy's own 0 / 0 depends on the machine; here it is positive.
        want = np.copysign(want, np.where(np.isnan(want), 1, want)).astype(want.dtype)
    assert np.array_equal(bits(got), bits(want)), (name, named, got, want)


def mixed(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers, many of them equal, with both zeros and, if possible, Inf and
    NaN."""
    rng = np.random.default_rng(7)
    x = rng.integers(-6, 7, shape).astype(np.float64) / 2
    flat = x.reshape(-1)
    flat[rng.integers(0, flat.size, flat.size // 8)] = -0.0
    flat[rng.integers(0, flat.size, 2)] = np.nan
    flat[rng.integers(0, flat.size, 1)] = np.inf
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def every_name(backend: Any, dtype: np.dtype, names: list[str]) -> None:
    for x in (random(dtype.type, (19, 23)), mixed(dtype, (19, 23))):
        for name in names:
            skips = name.startswith("nanarg")
            for axis in (None, 0, 1):
                part = x
                if skips:  # NumPy has an error for a line of NaN
                    part = np.where(np.isnan(x).all(0), dtype.type(1), x).astype(dtype)
                compare(backend, name, part, axis=axis)
            compare(backend, name, part, axis=-1, keepdims=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_name(backend: Any, name: str) -> None:
    every_name(backend, np.dtype(td.bfloat16), [name])


@pytest.mark.parametrize("name", ["sum", "max", "min", "argmax"])
@each_few
def test_whole_vectors(backend: Any, dtype: Any, name: str) -> None:
    """Vectors are aligned, along and across, with NaN of either sign in some lines."""
    x = mixed(dtype, (18, 160))
    with np.errstate(all="ignore"):
        x[3, 5], x[7, 131] = np.nan, -x.dtype.type(np.nan)
    assert np.signbit(x[7, 131])
    for axis in (None, 0, 1):
        compare(backend, name, x, axis=axis)
    compare(backend, name, x[:, :64], axis=0)


def test_without_signed_zero(backend: Any) -> None:
    every_name(backend, np.dtype(td.float8_e4m3fnuz), ["sum", "max", "argmin"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_every_name_of_every_format(backend: Any, dtype: Any) -> None:
    every_name(backend, dtype, NAMES)


def test_powers_of_two(backend: Any) -> None:
    """Without a zero, an empty sum is NaN, but no other sum begins with NaN."""
    powers = np.array([[2, 4, 2], [1, 1, 0.5]], td.float8_e8m0fnu)
    for axis in (None, 0, 1):
        for name in ("sum", "mean"):
            compare(backend, name, powers, axis=axis)
    compare(backend, "sum", powers[:0], axis=0)
    compare(backend, "sum", powers, initial=2)
    rng = np.random.default_rng(5)
    numbers = np.exp2(rng.integers(-127, 128, (40, 50))).astype(powers.dtype)
    for where in (rng.random(numbers.shape) < 0.3, rng.random(50) < 0.5):
        for axis in (None, 0, 1):
            compare(backend, "sum", numbers, axis=axis, where=where)
    compare(backend, "sum", powers, where=np.zeros(3, bool), axis=0)
    # The product is far below the smallest number, which replaces zero in this format.
    compare(backend, "prod", np.exp2(np.full(40, -127)).astype(powers.dtype))
    with_nan = np.array([1, np.nan, 2, np.nan, 1], powers.dtype)
    got = get(backend, reductions.reduce("nansum", put(backend, with_nan)))
    assert got == np.sum(with_nan, where=~np.isnan(with_nan)) == 4


VIEWS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, :, ::-1],
    "every other": lambda x: x[..., ::2],
    "from the second": lambda x: x[:, :, 1:],
    "swapped": lambda x: x.swapaxes(0, 1),
    "broadcast": lambda x: (cupy if isinstance(x, cupy.ndarray) else np).broadcast_to(
        x[:, :1], x.shape
    ),
}


@pytest.mark.parametrize("view", VIEWS)
@each_few
def test_sums_are_exact(backend: Any, dtype: Any, view: str) -> None:
    """A sum is rounded once, although the documentation allows 0.52 units of error."""
    for shape in ((9, 7, 40), (1, 300, 3), (3, 1, 700)):
        x = random(dtype.type, shape)
        there, here = VIEWS[view](put(backend, x)), VIEWS[view](x)
        for axis in (None, 0, 1, 2, (0, 2), (-1, 1)):
            got = get(backend, reductions.reduce("sum", there, axis))
            exact = oracle.exact_sum(here, axis)
            want = oracle.round_to(dtype.name, exact).astype(dtype)
            same(got, want, want)


@each_few
def test_sums_of_a_wide_range(backend: Any, dtype: Any) -> None:
    """Numbers span 40 binades and both signs, in several chunks, along any axis."""
    rng = np.random.default_rng(3)
    octaves = rng.integers(-20, 20, (3000, 40)) if dtype.itemsize > 1 else 0
    with np.errstate(all="ignore"):
        x = np.ldexp(rng.normal(0, 1, (3000, 40)), octaves).astype(dtype)
    for axis in (0, 1, None):
        got = get(backend, reductions.reduce("sum", put(backend, x), axis))
        assert within(got, oracle.exact_sum(x, axis), dtype.type)


def test_long_sums(backend: Any) -> None:
    ones = put(backend, np.ones(1 << 20, td.bfloat16))
    assert get(backend, reductions.reduce("sum", ones)) == 1 << 20
    assert get(backend, reductions.reduce("mean", ones)) == 1
    columns = ones.reshape(-1, 64)
    assert (get(backend, reductions.reduce("sum", columns, 0)) == 1 << 14).all()
    x = np.zeros(300_007, td.bfloat16)
    x[299_999] = x[300_005] = 3
    for name in ("argmax", "count_nonzero", "any", "max", "sum"):
        compare(backend, name, x)


def test_products_beyond_the_range_of_float64(backend: Any) -> None:
    huge = np.array([2.0**126] * 20 + [2.0**-126] * 20 + [1.5, 3.0], td.tf32)
    for order in (huge, huge[::-1], np.random.default_rng(1).permutation(huge)):
        assert get(backend, reductions.reduce("prod", put(backend, order))) == 4.5
    for values in ([2.0**127] * 3, [2.0**-126] * 3, [2.0**127, np.inf, 0.0]):
        compare(backend, "prod", np.array(values, td.tf32))
    wide = put(backend, np.array([2.0**120] * 8, td.tf32))
    got = reductions.reduce("prod", wide, dtype=np.float64)
    assert get(backend, got) == 2.0**960


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean"])
def test_where(backend: Any, name: str) -> None:
    rng = np.random.default_rng(6)
    x = mixed(np.dtype(td.bfloat16), (50, 12))
    mask = rng.random(x.shape) < 0.6
    named: dict[str, Any] = {"initial": -1} if name in ("max", "min") else {}
    for axis in (0, 1, None):
        compare(backend, name, x, axis=axis, where=mask, **named)
        compare(backend, name, x.T, axis=axis, where=mask.T, **named)
        compare(backend, name, x, axis=axis, where=mask[0], **named)
    compare(backend, name, x, axis=0, where=np.zeros((1, 12), bool), **named)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial(backend: Any, name: str) -> None:
    x = random(td.bfloat16, (30, 4), 8)
    for initial in (10, -3.14159, np.inf, np.float32(1.001)):
        compare(backend, name, x, axis=0, initial=initial)
    minus = np.full((3, 2), -0.0, td.bfloat16)
    compare(backend, name, minus, axis=0)
    got = reductions.reduce("sum", put(backend, minus), 0, initial=None)
    assert np.signbit(get(backend, got)).all()


@pytest.mark.parametrize("name", [x for x in NAMES if "arg" not in x])
def test_of_nothing(backend: Any, name: str) -> None:
    nothing = np.empty((0, 3), td.bfloat16)
    if name in ("max", "min", "nanmax", "nanmin"):
        with pytest.raises(ValueError, match="zero-size array to reduction operation"):
            reductions.reduce(name, put(backend, nothing), 0)
    else:
        compare(backend, name, nothing, axis=0)
        compare(backend, name, nothing)
    compare(backend, name, nothing, axis=1)


def test_unrounded(backend: Any) -> None:
    """dtype=float32 and float64 return the sum before the last rounding."""
    x = random(td.bfloat16, (300, 5), 10)
    exact = oracle.exact_sum(x, 0)
    for wide in (np.float32, np.float64):
        got = get(backend, reductions.reduce("sum", put(backend, x), 0, wide))
        same(got, exact.astype(wide), exact)
        for name in ("mean", "var", "std"):
            got = get(backend, reductions.reduce(name, put(backend, x), 0, wide))
            eps = np.finfo(wide).eps
            want = getattr(np, name)(x.astype(float), 0)
            assert got.dtype == wide
            assert np.allclose(got, want, 8 * eps, 0)


def test_dtypes(backend: Any) -> None:
    x = random(td.bfloat16, (40, 3), 11)
    compare(backend, "sum", x, axis=0, dtype=np.dtype(td.float8_e4m3fn))
    compare(backend, "sum", x, axis=0, dtype=np.dtype(np.int32))
    single = x.astype(np.float32)
    got = reductions.reduce("sum", ndarray.wrap(put(backend, single), np.float32), 0)
    assert type(got) is ndarray.ndarray
    same(get(backend, got), oracle.exact_sum(x, 0).astype(np.float32), single)
    with pytest.raises(TypeError, match="got float64"):
        reductions.reduce("sum", put(backend, x.astype(float)))
    with pytest.raises(TypeError, match=r"dtype of mean must .*; got int32"):
        reductions.reduce("mean", put(backend, x), dtype=np.int32)


def test_out(backend: Any) -> None:
    x = random(td.bfloat16, (40, 3), 12)
    there = put(backend, x)
    out = put(backend, np.zeros(6, td.bfloat16))
    assert reductions.reduce("sum", there, 0, out=out[::-2]).data.ptr == (
        out.data.ptr + 5 * 2
    )
    same(get(backend, out)[::-2].copy(), x.sum(0), x)
    assert not get(backend, out)[::2].any()
    wide = put(backend, np.zeros((1, 3), np.float32))
    assert reductions.reduce("sum", there, 0, out=wide, keepdims=True) is wide
    same(get(backend, wide), x.sum(0, dtype=np.float32, keepdims=True), x)
    index = put(backend, np.zeros(3, np.int64))
    reductions.reduce("argmax", there, 0, out=index)
    assert np.array_equal(get(backend, index), x.argmax(0))
    with pytest.raises(ValueError, match=r"shape \(3,\) for sum; got \(1, 3\)"):
        reductions.reduce("sum", there, 0, out=wide)


def test_errors(backend: Any) -> None:
    x = put(backend, random(td.bfloat16, (4, 3)))
    with pytest.raises(
        ValueError, match=r"name must be one of 'sum', 'prod'.*; got 'total'"
    ):
        reductions.reduce("total", x)
    with pytest.raises(np.exceptions.AxisError):
        reductions.reduce("sum", x, 2)
    with pytest.raises(ValueError, match="repeated axis"):
        reductions.reduce("sum", x, (0, 0))
    with pytest.raises(ValueError, match="attempt to get argmax of an empty"):
        reductions.reduce("argmax", x[:0])
    with pytest.raises(TypeError, match="axis must be an integer or None"):
        reductions.reduce("argmax", x.reshape(2, 2, 3), (0, 1))
    with pytest.raises(ValueError, match="to use a where mask"):
        reductions.reduce("max", x, where=put(backend, np.ones((4, 3), bool)))
    with pytest.raises(TypeError, match="of bool; got ndarray of bfloat16"):
        reductions.reduce("sum", x, where=x)
    with pytest.raises(TypeError, match="initial must be a number on the CPU"):
        reductions.reduce("sum", x, initial=x)
    with pytest.raises(
        ValueError, match=r"name must be one of 'cumsum'.*; got 'cummax'"
    ):
        reductions.accumulate("cummax", x)


def test_lines_of_nan_have_no_index(backend: Any) -> None:
    x = np.array([[np.nan, np.nan], [1, np.nan]], td.bfloat16)
    for name, want in (("nanargmax", [-1, 0]), ("nanargmin", [-1, 0])):
        got = get(backend, reductions.reduce(name, put(backend, x), 1))
        assert got.tolist() == want


def test_order_is_of_shapes_alone(
    backend: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order of float64 sums shows in their bits. It does not depend on the size of
    the GPU, the alignment, or the order of threads."""
    rng = np.random.default_rng(13)
    x = rng.normal(0, 1, (300, 301)) * 2.0 ** rng.integers(-60, 60, (300, 301))
    x = x.astype(td.bfloat16)
    padded = np.zeros((300, 305), td.bfloat16)
    padded[:, 3:304] = x
    first = {}
    for axis in (None, 0, 1):
        for there in (put(backend, x), put(backend, padded)[:, 3:304]):
            # The order depends on the layout. Both arrays are summed row by row.
            if axis is None:
                there = there.T
            total = reductions.reduce("sum", there, axis, np.float64)
            first[axis, there.strides] = get(backend, total)
    same_axis = [first[key] for key in first if key[0] == 1]
    assert np.array_equal(bits(same_axis[0]), bits(same_axis[1]))
    if backend is not HOST:
        return
    for processors, descends in ((1, False), (9, True)):
        monkeypatch.setattr(backend, "processors", lambda n=processors: n)
        backend.descends = descends
        for axis in (None, 0, 1):
            there = put(backend, x).T if axis is None else put(backend, x)
            again = get(backend, reductions.reduce("sum", there, axis, np.float64))
            assert np.array_equal(bits(again), bits(first[axis, there.strides]))


def test_many_axes(backend: Any) -> None:
    x = random(td.bfloat16, (2, 3) * 5, 14)
    odd = (slice(None, None, 2), slice(None, None, -1)) * 5
    there = put(backend, x)[odd]
    for axis in (None, (0, 3, 4), (1, 2, 5, 6, 7, 8, 9), -1):
        got = get(backend, reductions.reduce("sum", there, axis))
        want = oracle.round_to("bfloat16", oracle.exact_sum(x[odd], axis))
        same(got, want.astype(td.bfloat16), want)
    got = get(backend, reductions.reduce("argmax", there))
    assert got == x[odd].argmax()


def test_nothing_is_read_back(backend: Any) -> None:
    if backend is not HOST:
        pytest.skip("counts are the host's")
    x = put(backend, random(td.bfloat16, (40, 30)))
    many = put(backend, np.zeros(1 << 15, td.bfloat16))
    backend.counts.clear()
    reductions.reduce("sum", x, 0)
    assert backend.counts == {"launch": 1}  # one chunk
    reductions.reduce("sum", many)
    assert backend.counts == {"launch": 3}
    reductions.reduce("std", x)
    reductions.accumulate("cumsum", x, 1)
    assert backend.counts == {"launch": 6}


# -- running sums ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("cumsum", x) for x in FEW[:2]] + [("cumprod", FEW[0])],
    ids=str,
)
def test_running(backend: Any, dtype: Any, name: str) -> None:
    for shape in ((2100,), (5, 6, 7), (0, 3)):
        x = random(dtype.type, shape, 15) if 0 not in shape else np.empty(shape, dtype)
        if name == "cumprod":
            x = (1 + x.astype(float) / 64).astype(dtype)
        for axis in (None, *range(len(shape))):
            there = put(backend, x)
            got = get(backend, reductions.accumulate(name, there, axis))
            wide = getattr(np, name)(x.astype(float), axis)
            want = oracle.round_to(dtype.name, wide).astype(dtype)
            same(got, want, want)


def test_running_extremes_views_and_out(backend: Any) -> None:
    x = mixed(np.dtype(td.bfloat16), (20, 30))
    x[:, 0] = 0.5
    for name in ("maximum", "minimum"):
        for axis in (0, 1):
            got = reductions.accumulate(name, put(backend, x)[::-1].T, axis)
            with np.errstate(invalid="ignore"):
                want = getattr(np, name).accumulate(x[::-1].T, axis)
            same(get(backend, got), want, want)
    x = random(td.bfloat16, (20, 30), 16)
    out = put(backend, np.zeros((40, 30), td.bfloat16))
    reductions.accumulate("cumsum", put(backend, x), 0, out=out[::2])
    same(get(backend, out)[::2].copy(), np.cumsum(x, 0), x)
    got = reductions.accumulate("cumsum", put(backend, x), 1, np.float32)
    exact = np.cumsum(x.astype(float), 1)
    same(get(backend, got), exact.astype(np.float32), exact)
    with pytest.raises(ValueError, match="shape"):
        reductions.accumulate("cumsum", put(backend, x), 0, out=out)


@pytest.mark.parametrize("which", ["first", "second", "third"])
def test_missing_barriers_are_seen(backend: Any, which: str) -> None:
    if backend is not HOST:
        pytest.skip("a fault is put in")
    x = random(td.bfloat16, (3000,), 17)
    want = np.cumsum(x)
    seen = False
    backend.put_fault(f"the {which} barrier of a scan", LINE, "")
    for backend.descends in (False, True):
        try:
            got = get(backend, reductions.accumulate("cumsum", put(backend, x)))
            seen |= not np.array_equal(bits(got), bits(want))
        except KernelError:
            seen = True
    assert seen


# -- machine code ----------------------------------------------------------------------


def gatherings(op: str, dtype: Any, squares: bool = False) -> list[Kernel]:
    """Return kernels of first passes: along and across, with and without vectors."""
    vector = reductions.longest_vector(op, dtype.itemsize, squares)
    return [
        Kernel(
            "cuda/ufuncs/reduce.cu",
            "reduce",
            (
                f"-DOP={op}", f"-DFROM={casts.kind(dtype)}", "-DELEMENTS=0",
                f"-DVECTOR={length}", f"-DACROSS={across}",
                *("-DSQUARES",) * squares,
            ),
        )
        for length in (vector, 1)
        for across in (0, 1)
    ]  # fmt: skip


def kernels(dtype: Any) -> list[Kernel]:
    kind = casts.kind(dtype)
    found = []
    for op in reductions._SIZES:
        found += gatherings(op, dtype)
        for to in ("TF_BOOL", "TF_INT64") if op == "counts" else (kind,):
            found.append(
                Kernel(
                    "cuda/ufuncs/reduce_finish.cu",
                    "finish",
                    (f"-DOP={op}", f"-DTO={to}"),
                )
            )
        if op not in ("counts", "highest", "lowest"):
            options = (f"-DOP={op}", f"-DFROM={kind}", f"-DTO={kind}")
            found.append(Kernel("cuda/ufuncs/scan.cu", "scan", options))
    found += gatherings("sums", dtype, squares=True)
    found += [
        x._replace(options=(*x.options, f"-DTO={kind}"))
        for op in ("sums", "highest")
        for x in gatherings(op, dtype)
    ]
    options = ("-DOP=least", "-DTO=TF_INT64")
    found.append(Kernel("cuda/ufuncs/reduce_finish.cu", "finish", options))
    return found


@pytest.mark.parametrize("special", [False, True])
def test_vectors_of_bytes_down_columns(special: bool, backend: Any) -> None:
    """A thread reads every 32nd row. Their number fills its reads exactly, or is
    smaller or larger."""
    rng = np.random.default_rng(11)
    for rows in (100, 128, 200, 224, 256, 288, 384, 1000):
        x = rng.standard_normal((rows, 256)).astype(td.float8_e4m3fn)
        if special:
            x[rng.integers(0, rows, 20), rng.integers(0, 256, 20)] = np.nan
        for name in ("sum", "max"):
            with np.errstate(all="ignore"):
                want = getattr(x, name)(axis=0)
            same(get(backend, getattr(put(backend, x), name)(axis=0)), want, x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_machine_code(arch: str) -> None:
    along, across, *others = kernels(np.dtype(td.bfloat16))
    for sums in (along, across):
        check(sums, arch, needs=("LDG.E.128", "DADD"))
    for kernel in others[:4]:  # without vectors, the second pass, a scan
        check(kernel, arch)
    for op in ("sums", "highest"):  # eight vectors at a time, on Hopper
        _, across, *_ = gatherings(op, np.dtype(td.float8_e4m3fn))
        found = check(across, arch, needs=("LDG.E.128",))
        ahead = 2 if native.number(arch) >= 90 else 1
        assert found["LDG.E.128"] >= 4 * ahead


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [*FEW, np.dtype(np.float32)], ids=lambda d: d.name)
def test_machine_code_of_all(dtype: Any, arch: str) -> None:
    for kernel in kernels(dtype):
        check(kernel, arch)


@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
@pytest.mark.parametrize("axis", [1, (), None])
def test_one_element_stays_what_it_is(name: str, axis: Any, backend: Any) -> None:
    x = np.copysign(np.array([[np.nan], [1.0]], td.bfloat16), td.bfloat16(-1))
    x = x[:1] if axis is None else x
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        want = np.asarray(getattr(np, name)(x, axis=axis))
    got = get(backend, getattr(np, name)(put(backend, x), axis=axis))
    same(got, want, x)
