"""Casts on a GPU have the CPU's bits: every kind of number, every rounding."""

# ruff: noqa: F811 -- a fixture is imported, and then a parameter

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import all_items
from tests.reference.formats import Format
from tests.support.bits import ALL
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.near_ties import beside_midpoints
from tests.support.sass import ARCHITECTURES, check
from tf32dtype._formats.quantize import OVERFLOWS, ROUNDINGS
from tf32dtype.cuda._arrays import casts, ndarray
from tf32dtype.cuda._runtime import strides
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda._runtime.storage import STORAGE, is_ours

FORMATS = [f.dtype for f in td.formats.values()]
#: One format of each kind: IEEE, its upper bits, fn, fnuz, neither Inf nor NaN, powers.
FEW = [
    np.dtype(x)
    for x in (
        td.tf32, td.bfloat16, td.float8_e5m2, td.float8_e4m3fn, td.float8_e5m2fnuz,
        td.float6_e2m3fn, td.float8_e8m0fnu,
    )
]  # fmt: skip
BUILTINS = [
    np.dtype(x)
    for x in (
        np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
        np.uint32, np.uint64, np.float16, np.float32, np.float64,
    )
]  # fmt: skip
MODES = [
    (rounding, overflow)
    for rounding in ROUNDINGS
    for overflow in OVERFLOWS
    if rounding != "stochastic"
]


def put(backend: Any, x: np.ndarray) -> Any:
    """Put an array of any dtype on the device."""
    if not is_ours(x.dtype):
        return backend.put(x)
    return ndarray.wrap(backend.put(x.view(STORAGE[x.itemsize])), x.dtype)


def get(backend: Any, x: Any) -> np.ndarray:
    """Return a NumPy array with the device array's bits."""
    return backend.get(casts.plain(x)).view(x.dtype)


def bits(x: Any) -> np.ndarray:
    x = np.ascontiguousarray(x)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind != "c" else x.view("u4")


def on_cpu(function: Any, *arguments: Any, **named: Any) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(*arguments, **named))


def same(got: np.ndarray, want: np.ndarray, x: np.ndarray) -> None:
    """Fail unless all bits are equal, and show the first differences."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    wrong = np.flatnonzero(bits(got).ravel() != bits(want).ravel())
    shown = [
        (hex(bits(x).ravel()[i]), hex(bits(got).ravel()[i]), hex(bits(want).ravel()[i]))
        for i in wrong[:5]
    ]
    assert wrong.size == 0, f"{x.dtype} to {got.dtype}: {wrong.size} differ: {shown}"


def canonical(x: np.ndarray) -> np.ndarray:
    """Remove NaN payloads, which NumPy's own casts keep."""
    x = np.array(x)
    if x.dtype.kind == "f" and np.isnan(x).any():
        nan = np.isnan(x)
        x[nan] = np.copysign(np.array(np.nan, x.dtype), x[nan])
    return x


def form(dtype: Any) -> Format:
    return next(f for f in ALL if f.name == dtype.name)


def numbers(source: np.dtype, target: np.dtype, count: int = 20000) -> np.ndarray:
    """Return numbers that are hard to cast: ties of the target and their neighbors, all
    special values, the bounds of the range, and random bits."""
    rng = np.random.default_rng(1)
    if is_ours(source):
        items = all_items(form(source))
        return items.view(source)
    width = source.itemsize
    random = rng.integers(0, 256, (count, width), np.uint8).view(source).ravel()
    if source == np.bool_:
        return np.array([False, True])
    if source.kind in "iu":
        info = np.iinfo(source)
        near = [0, 1, info.min, info.max, info.max - 1]
        for shift in range(8 * width):
            near += [(1 << shift) + d for d in (-1, 0, 1)]
            near += [(3 << shift) + d for d in (-1, 0, 1)]
            near += [(1 << shift) + (1 << max(shift - k, 0)) + d
                     for k in (3, 4, 8, 9, 11, 12) for d in (-1, 0, 1)]  # fmt: skip
        near += [-x for x in near]
        kept = [x for x in near if info.min <= x <= info.max]
        shifts = rng.integers(0, 8 * width, count).astype(source)
        return np.concatenate([np.array(kept, source), random, random >> shifts])
    parts = [random, np.array([0.0, np.inf, np.nan, 1, 0.5], source)]
    if is_ours(target):
        with np.errstate(over="ignore"):
            parts.append(beside_midpoints(form(target), source.type)[0][:60000])
        least = np.array(float(form(target).tiny_value)).astype(source)
        parts.append(np.nextafter(least * np.arange(5, dtype=source), source.type(9)))
    near = np.arange(-300, 300) / 4
    powers = np.ldexp(1.0, np.arange(-160, 70))
    with np.errstate(over="ignore", under="ignore"):
        parts += [near.astype(source), powers.astype(source)]
        parts += [np.nextafter(powers.astype(source), source.type(0))]
    x = np.concatenate(parts).astype(source)
    return np.concatenate([x, -x])


def reference(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if x.dtype == np.float32 and dtype.kind in "iu":
        # NumPy's result out of range depends on the machine. Here it is the result of a
        # cast from a format, whose numbers a wider format holds.
        low, high = np.iinfo(dtype).min, float(np.iinfo(dtype).max) + 1
        with np.errstate(invalid="ignore"):
            whole = np.trunc(x.astype(np.float64))
            fits = (whole >= low) & (whole < high)
        return np.where(fits, np.where(fits, whole, 0).astype(dtype), low).astype(dtype)
    return canonical(on_cpu(canonical(x).astype, dtype))


def exact_pair(backend: Any, source: Any, target: Any) -> None:
    x = numbers(np.dtype(source), np.dtype(target))
    got = get(backend, casts.cast(put(backend, x), target))
    same(got, reference(x, np.dtype(target)), x)


PLAIN = (
    [(np.dtype(np.float32), f) for f in FEW]
    + [(f, np.dtype(np.float32)) for f in FEW]
    + [(np.dtype(np.float64), np.dtype(f)) for f in (td.bfloat16, td.float8_e4m3fn)]
    + [(np.dtype(np.int64), np.dtype(td.tf32)), (np.dtype(td.tf32), np.dtype("i4"))]
    + [(np.dtype(td.bfloat16), np.dtype(x)) for x in "e?Bd"]
    + [(np.dtype(td.bfloat16), np.dtype(td.float8_e4m3fn))]
)
#: Each source dtype and each target dtype occurs in a pair. All pairs share the source
#: code of the cast between reading and writing.
KINDS = [*FORMATS, *BUILTINS]
REST = [
    pair
    for one in (np.dtype(np.float32), np.dtype(td.tf32), np.dtype(td.float8_e4m3fn))
    for kind in KINDS
    for pair in ((one, kind), (kind, one))
    if pair not in PLAIN and one != kind
]


def names(pair: Any) -> str:
    return "-".join(x.name for x in pair)


@pytest.mark.parametrize("pair", PLAIN, ids=names)
def test_pairs(backend: Any, pair: Any) -> None:
    exact_pair(backend, *pair)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", REST, ids=names)
def test_all_other_pairs(backend: Any, pair: Any) -> None:
    exact_pair(backend, *pair)


def rounded_in_all_modes(backend: Any, source: Any, target: Any) -> None:
    x = canonical(numbers(np.dtype(source), np.dtype(target)))
    there = put(backend, x)
    for rounding, overflow in MODES:
        got = casts.cast(there, target, rounding=rounding, overflow=overflow)
        want = on_cpu(
            td.quantize, x, target, rounding=rounding, overflow=overflow
        )  # fmt: skip
        same(get(backend, got), want, x)


MODE_PAIRS = [(np.dtype(np.float32), f) for f in FEW]
MODE_PAIRS.append((np.dtype(np.float64), np.dtype(td.float8_e4m3fn)))
#: Casts to NumPy's own dtypes, which must not go through float32 for float64 and int64.
OWN_PAIRS = [
    (np.dtype(source), np.dtype(target))
    for source in ("f8", "i8", "f4", "f2", "u8", "i4", td.tf32, td.float8_e8m0fnu)
    for target in ("f4", "f2")
]
MODE_PAIRS += OWN_PAIRS[:3]


@pytest.mark.parametrize("pair", MODE_PAIRS, ids=names)
def test_modes(backend: Any, pair: Any) -> None:
    rounded_in_all_modes(backend, *pair)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", OWN_PAIRS[3:], ids=names)
def test_modes_to_numpys_own(backend: Any, pair: Any) -> None:
    rounded_in_all_modes(backend, *pair)


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize(
    "source", [np.dtype(x) for x in ("f", "d", "l", "L", td.tf32)], ids=lambda f: f.name
)
def test_modes_of_all_formats(
    backend: Any,
    source: Any,
    target: Any,
) -> None:
    rounded_in_all_modes(backend, source, target)


@pytest.mark.exhaustive
def test_every_float32_to_bfloat16(backend: Any) -> None:
    step = 1 << 25
    for first in range(0, 1 << 32, step):
        x = np.arange(first, first + step, dtype=np.uint32).view(np.float32)
        got = get(backend, casts.cast(put(backend, x), td.bfloat16))
        same(got, on_cpu(x.astype, td.bfloat16), x)


LAYOUTS = {
    "as it is": lambda x: x,
    "reversed": lambda x: x[::-1],
    "transposed": lambda x: x.T,
    "every other": lambda x: x[:, ::2],
    "columns from the first": lambda x: x[:, 1:],
    "one": lambda x: x[2:3, 4:5],
    "a column": lambda x: x[:, 3],
    "nothing": lambda x: x[:0],
    "no axes": lambda x: x[3, 3],
    "broadcast": lambda x: (cupy if isinstance(x, cupy.ndarray) else np).broadcast_to(
        x[:, :1], x.shape
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("direction", ["to", "from"])
def test_layouts(
    backend: Any,
    layout: str,
    direction: str,
) -> None:
    x = np.random.default_rng(2).normal(0, 100, (37, 53)).astype(np.float32)
    dtype = np.dtype(td.bfloat16)
    if direction == "from":
        x, dtype = x.astype(dtype), np.dtype(np.float32)
    view = LAYOUTS[layout]
    got = casts.cast(view(put(backend, x)), dtype)
    assert got.flags.c_contiguous
    same(get(backend, got), np.asarray(view(x)).astype(dtype), np.array(view(x)))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 15, 16, 17, 255, 1027, 20011])
def test_lengths_and_alignments(backend: Any, length: int) -> None:
    """Vectors may have heads and tails. Nothing outside of the output is written."""
    rng = np.random.default_rng(length)
    x = rng.normal(0, 9, length + 8).astype(np.float32)
    for read, written in ((0, 0), (1, 0), (0, 1), (3, 3), (2, 5)):
        given, marked = put(backend, x), np.full(length + 16, 7, td.bfloat16)
        out = put(backend, marked)
        casts.cast_into(given[read : read + length], out[written : written + length])
        marked[written : written + length] = x[read : read + length].astype(td.bfloat16)
        same(get(backend, out), marked, marked)
        narrow = put(backend, marked)
        wide = put(backend, np.full(length + 16, 3, np.float32))
        casts.cast_into(narrow[read : read + length], wide[written : written + length])
        want = np.full(length + 16, 3, np.float32)
        want[written : written + length] = marked[read : read + length]
        same(get(backend, wide), want, want)


def test_into_strided_and_broadcast(backend: Any) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(0, 9, (7, 1, 5)).astype(np.float32)
    want = np.zeros((5, 6, 14), td.bfloat16)
    out = put(backend, want)
    casts.cast_into(put(backend, x), out.T[::-2, 1:4])
    want.T[::-2, 1:4] = x
    same(get(backend, out), want, want)


def test_into_itself(backend: Any) -> None:
    """The cast reads an input before the output that overlaps it is written."""
    x = np.random.default_rng(5).normal(0, 9, 1000).astype(np.float32)
    there = put(backend, x)
    tf32 = ndarray.wrap(there.view(np.uint32), td.tf32)
    casts.cast_into(there[:-1], tf32[1:])
    same(get(backend, tf32)[1:], x[:-1].astype(td.tf32), x[:-1])
    there = put(backend, x)
    halves = ndarray.wrap(there.view(np.uint16), td.bfloat16)
    casts.cast_into(there, halves[1000:])
    same(get(backend, halves)[1000:], x.astype(td.bfloat16), x)


@pytest.mark.parametrize("width", [32, 64])
def test_quotients_by_multiplication(width: int) -> None:
    """Division by multiplication is exact for all indices up to the largest."""
    rng = np.random.default_rng(8)
    greatest = 2 ** (width - 1) - 1
    lengths = [2, 3, 5, 7, 2**20, 2**20 + 1, 10**6 + 3]
    lengths += [greatest, greatest // 2, greatest // 3, greatest // 2 + 1]
    lengths += [int(2 ** rng.uniform(1, width - 2)) for _ in range(300)]
    for length in lengths:
        multiplier, shift = strides.divider(length, width)
        assert multiplier < 2**width
        most = greatest // length
        for quotient in (1, most, *map(int, rng.integers(0, most + 1, 20))):
            for index in (max(quotient * length - 1, 0), quotient * length, greatest):
                assert (index * multiplier >> width) >> shift == index // length


def test_many_axes(backend: Any) -> None:
    """An array with more axes than a kernel supports is copied first."""
    x = np.random.default_rng(6).normal(0, 9, (3,) * 9).astype(np.float32)
    odd = (slice(None, None, 2),) * 9
    got = casts.cast(put(backend, x)[odd].transpose(*range(8, -1, -1)), td.bfloat16)
    same(get(backend, got), x[odd].T.astype(td.bfloat16), x[odd].T.copy())
    want = np.zeros((3,) * 9, td.bfloat16)
    out = put(backend, want)
    casts.cast_into(put(backend, x)[odd], out[odd].T)
    want[odd].T[...] = x[odd]
    same(get(backend, out), want, want)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex(backend: Any, dtype: Any) -> None:
    rng = np.random.default_rng(7)
    z = (rng.normal(0, 9, (5, 6)) + 1j * rng.normal(0, 9, (5, 6))).astype(dtype)
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        got = casts.cast(put(backend, z), td.bfloat16)
    want = on_cpu(z.astype, td.bfloat16)
    same(get(backend, got), want, want)
    back = casts.cast(got, dtype)
    assert np.array_equal(backend.get(back), want.astype(dtype))
    assert back.dtype == dtype


def test_classes_and_copies(backend: Any) -> None:
    x = put(backend, np.arange(4, dtype=np.float32))
    ours = casts.cast(x, td.bfloat16)
    assert type(ours) is ndarray.ndarray
    assert type(casts.cast(ours, np.float64)) is cupy.ndarray
    single = casts.cast(ours, np.float32)
    assert type(single) is ndarray.ndarray
    assert type(casts.cast(x, np.float32)) is cupy.ndarray
    assert casts.cast(ours, td.bfloat16, copy=False) is ours
    again = casts.cast(ours, td.bfloat16)
    assert again.data.ptr != ours.data.ptr
    same(get(backend, again), get(backend, ours), get(backend, ours))


def test_errors(backend: Any) -> None:
    x = put(backend, np.arange(4, dtype=np.float32))
    with pytest.raises(ValueError, match="on the CPU"):
        casts.cast(x, td.tf32, rounding="stochastic")
    with pytest.raises(
        ValueError, match=r"rounding must be one of 'ties_to_even'.*; got 'up'"
    ):
        casts.cast(x, td.tf32, rounding="up")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"overflow must be .*'ieee'.*'saturate'.*; got 'wrap'"
    ):
        casts.cast(x, td.tf32, overflow="wrap")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="; got int32"):
        casts.cast(x, np.int32, rounding="toward_zero")
    with pytest.raises(TypeError, match="datetime64"):
        casts.cast(x, "M8[s]")
    with pytest.raises(ValueError, match="broadcast"):
        casts.cast_into(x, put(backend, np.zeros(3, td.tf32)))


def kernel(source: Any, target: Any, *more: str) -> Kernel:
    options = (f"-DFROM={casts.kind(source)}", f"-DTO={casts.kind(target)}", *more)
    return Kernel("cuda/formats/cast.cu", "cast", options)


NARROW = [
    (np.float32, td.float8_e4m3fn),
    (td.float8_e4m3fn, np.float32),
    (np.float32, td.bfloat16),
    (td.tf32, td.bfloat16),
]


def lean(source: Any, target: Any, arch: str) -> None:
    """Each access has 16 bytes, and there is no float64 arithmetic."""
    wide = np.dtype(source).itemsize >= np.dtype(target).itemsize
    access = "LDG.E.128" if wide else "STG.E.128"
    found = check(kernel(source, target), arch, needs=(access,))
    assert not [x for x in found if x.startswith(("D", "F2F"))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_machine_code(arch: str) -> None:
    for source, target in NARROW[:2]:
        lean(source, target, arch)


def test_machine_code_of_more() -> None:
    for source, target in NARROW[2:]:
        lean(source, target, "sm_90a")
    check(kernel(np.float64, td.tf32), "sm_90a")
    check(kernel(np.float32, td.float8_e5m2, "-DMODES=1"), "sm_90a")


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", PLAIN + REST, ids=names)
def test_machine_code_of_all(pair: Any) -> None:
    check(kernel(*pair), "sm_90a")
    if is_ours(pair[1]):
        check(kernel(*pair, "-DMODES=1"), "sm_90a")
