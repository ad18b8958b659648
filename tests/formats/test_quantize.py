"""Seven rounding modes, two overflow rules, every format and input type."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import codec
from tests.reference.codec_arrays import Items, all_items, item_type, midpoints, values
from tests.reference.formats import FLOAT16, FLOAT32, FORMATS, Format
from tests.support.bits import ALL, array, assert_items, dtype, items_of, name, raised
from tests.support.near_ties import beside_midpoints, both_signs
from tf32dtype._formats.quantize import target_dtype

INPUTS = (np.float64, np.float32, np.float16, np.longdouble, np.int64, np.uint8)
SEED = 2026


def exactly(x: np.generic) -> codec.Exact:
    """Return the exact value of a NumPy number, including the sign of zero."""
    if isinstance(x, np.integer):
        return codec.from_int(int(x))
    if np.isnan(x) or np.isinf(x) or x == 0:
        return codec.from_float(float(x))
    return codec.from_fraction(Fraction(*x.as_integer_ratio()))


def numbers(f: Format) -> np.ndarray:
    """Return values, points in their gaps, and numbers out of the range, in float64."""
    rng = np.random.default_rng(22)
    codes, middle = midpoints(f)
    pick = rng.choice(codes, min(20, codes.size), replace=False)
    pick = np.unique(np.concatenate([pick, codes[:2], codes[-2:]]))
    low = values(f, (pick << f.shift).astype(item_type(f)))
    gap = middle[pick] - low
    inside = [low + gap * part for part in (0, 0.5, 0.875, 1, 1.25, 1.9)]
    beside = [np.nextafter(middle[pick], to) for to in (0, np.inf)]
    top = float(f.max_value)
    beyond = [top * 1.5, top * 1.99, top * 2, top * 4, 1e300, np.inf]
    tiny = [0.0, 5e-324, 1e-200, float(f.tiny_value) / 1024]
    x = np.concatenate([*inside, *beside, beyond, tiny])
    return np.concatenate([x, -x, [np.nan]])


def inputs(f: Format, kind: type[np.generic]) -> np.ndarray:
    x = numbers(f)
    with np.errstate(all="ignore"):
        if issubclass(kind, np.floating):
            return x.astype(kind)
        limits = np.iinfo(kind)
        whole = np.rint(x[np.abs(x) < 2.0**62])
        whole = np.clip(whole, float(limits.min), min(float(limits.max), 2.0**62))
        return np.concatenate(
            [whole.astype(kind), [kind(limits.max), kind(limits.min)]]
        )


def draws_of(size: int, rounding: str) -> list[int]:
    if rounding != "stochastic":
        return [0] * size
    return np.random.default_rng(SEED).integers(0, 1 << 64, size, np.uint64).tolist()


def truth(f: Format, x: np.ndarray, rounding: str, overflow: str) -> Items:
    items = [
        codec.encode(f, exactly(v), rounding, overflow, draw)[0]
        for v, draw in zip(x.ravel(), draws_of(x.size, rounding), strict=True)
    ]
    return np.array(items, item_type(f)).reshape(x.shape)


@cache
def exact_inputs(f: Format) -> list[tuple[np.ndarray, list[codec.Exact]]]:
    return [(x, [exactly(v) for v in x]) for x in (inputs(f, kind) for kind in INPUTS)]


def quantize(f: Format, x: np.ndarray, rounding: str, overflow: str) -> Items:
    rng = np.random.default_rng(SEED) if rounding == "stochastic" else None
    with np.errstate(all="ignore"):
        result = td.quantize(x, dtype(f), rounding=rounding, overflow=overflow, rng=rng)
    assert result.shape == x.shape
    return items_of(f, result)


@pytest.mark.parametrize("rounding", codec.ROUNDINGS)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_every_rule(f, rounding, compared):
    for overflow in codec.OVERFLOWS:
        known: dict[tuple[codec.Exact, int], int] = {}
        for x, exact in exact_inputs(f):
            want = np.empty(x.size, item_type(f))
            drawn = zip(exact, draws_of(x.size, rounding), strict=True)
            for i, (number, draw) in enumerate(drawn):
                if (number, draw) not in known:
                    item, _ = codec.encode(f, number, rounding, overflow, draw)
                    known[number, draw] = item
                want[i] = known[number, draw]
            found = quantize(f, x, rounding, overflow)
            assert_items(f, found, want, f"{x.dtype}, {rounding}, {overflow}", x)
            compared(x.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_default_is_the_cast(f, compared):
    x, want = both_signs(f, *beside_midpoints(f, np.float64))
    with np.errstate(all="ignore"):
        found = items_of(f, td.quantize(x, dtype(f)))
        cast = items_of(f, x.astype(dtype(f)))
    assert_items(f, found, want, "quantize", x)
    assert_items(f, found, cast, "quantize and astype", x)
    compared(x.size)


def told(flags: int, overflow: str) -> int:
    """Remove overflow from the flags if the caller asked to saturate."""
    return flags & ~codec.OVER if overflow == "saturate" else flags


@pytest.mark.parametrize("step", [9, pytest.param(3, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_flags(f, step, compared):
    """Raise flags for some numbers, and for the overflows and tiny ones at the ends."""
    x = numbers(f)
    positive, others = x[: x.size // 2], x[x.size // 2 :]
    chosen = [positive[::step], positive[-10:], others[::step], others[-11:]]
    chosen = np.concatenate(chosen)
    exact = [exactly(number) for number in chosen]
    for rounding in codec.ROUNDINGS:
        (draw,) = draws_of(1, rounding)
        for overflow in codec.OVERFLOWS:
            for number, value in zip(chosen, exact, strict=True):
                one = np.array([number])
                stochastic = rounding == "stochastic"
                rng = np.random.default_rng(SEED) if stochastic else None
                rules = {"rounding": rounding, "overflow": overflow, "rng": rng}
                _, flags = raised(
                    lambda one=one, rules=rules: td.quantize(one, dtype(f), **rules)
                )
                _, want = codec.encode(f, value, rounding, overflow, draw)
                assert flags == told(want, overflow), (number, rounding, overflow)
                compared(1)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_layouts(f, compared):
    """Quantize any shape, stride, byte order, zero size and out= to the same bits."""
    x = numbers(f)[:120].reshape(4, 30)
    for rounding in codec.ROUNDINGS:
        want = truth(f, x, rounding, "ieee")
        for layout in (
            x,
            np.asfortranarray(x),
            np.repeat(x, 2, axis=1)[:, ::2],
            x[::-1, ::-1].copy()[::-1, ::-1],
            x.astype(">f8"),
        ):
            found = quantize(f, layout, rounding, "ieee")
            assert_items(f, found.ravel(), want.ravel(), rounding, layout.ravel())
            compared(x.size)
        out = np.zeros((4, 60), dtype(f))[:, ::2]
        rng = np.random.default_rng(SEED) if rounding == "stochastic" else None
        with np.errstate(all="ignore"):
            given = td.quantize(x, dtype(f), rounding=rounding, rng=rng, out=out)
        assert given is out
        assert_items(f, items_of(f, out).ravel(), want.ravel(), "out", x.ravel())
        assert quantize(f, x[:0], rounding, "ieee").shape == (0, 30)
        scalar = td.quantize(1.0, dtype(f), rounding=rounding, rng=rng)
        assert scalar == 1
        assert np.asarray(scalar).shape == ()


@pytest.mark.parametrize("g", ALL, ids=name)
def test_from_our_own_formats(g, compared):
    for f in (FORMATS["tf32"], FORMATS["float8_e5m2"], FORMATS["float8_e8m0fnu"]):
        items = all_items(f)[:: max(1, f.count // 500)]
        x = values(f, items)
        for rounding in ("toward_zero", "to_odd", "stochastic"):
            want = truth(g, x, rounding, "saturate")
            nan = np.isnan(x) & np.signbit(x)
            if g.nan is None or g.negative_zero:
                want[nan] |= g.sign_bit << g.shift
            found = quantize(g, array(f, items), rounding, "saturate")
            assert_items(g, found, want, f"{f.name} ->", x)
            compared(x.size)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "part", [Fraction(1, 2), Fraction(5, 16), Fraction(1, 1000), Fraction(999, 1000)]
)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_stochastic_has_the_exact_probability(f, part, compared):
    """Round 1 + part * gap up if and only if the draw is below part * 2**64."""
    gap = Fraction(1) if f.powers else Fraction(1, 1 << f.mantissa_bits)
    number = float(1 + gap * part)
    fraction = (Fraction(number) - 1) / gap
    x = np.full(50_000, number)
    draws = np.random.default_rng(SEED).integers(0, 1 << 64, x.size, dtype=np.uint64)
    up = draws < np.uint64(math.ceil(fraction * 2**64))
    found = td.quantize(
        x, dtype(f), rounding="stochastic", rng=np.random.default_rng(SEED)
    ).astype(np.float64)
    np.testing.assert_array_equal(found, np.where(up, float(1 + gap), 1.0))
    # The limit is seven standard deviations. The mean is unbiased.
    assert abs(up.mean() - float(fraction)) < 7 * 0.5 / np.sqrt(x.size)
    compared(x.size)


def test_draws_follow_c_order():
    f = FORMATS["float8_e4m3fn"]
    x = 1 + np.random.default_rng(23).random((40, 50)) / 8
    want = quantize(f, x, "stochastic", "ieee")
    turned = quantize(f, np.asfortranarray(x), "stochastic", "ieee")
    np.testing.assert_array_equal(turned, want)
    # In a second call, a generator continues where the first call stopped.
    rng = np.random.default_rng(SEED)
    halves = [
        td.quantize(part, dtype(f), rounding="stochastic", rng=rng)
        for part in (x[:20], x[20:])
    ]
    np.testing.assert_array_equal(items_of(f, np.concatenate(halves)), want)


def test_bad_arguments_change_nothing():
    out = np.ones(3, td.bfloat16)
    x = np.zeros(3)
    with pytest.raises(ValueError, match="ties_to_even"):
        td.quantize(x, td.bfloat16, rounding="up", out=out)
    with pytest.raises(ValueError, match="saturate"):
        td.quantize(x, td.bfloat16, overflow="wrap", out=out)
    with pytest.raises((TypeError, ValueError), match="rng"):
        td.quantize(x, td.bfloat16, rounding="stochastic", out=out)
    with pytest.raises(TypeError, match=r"rng|Generator"):
        td.quantize(x, td.bfloat16, rounding="stochastic", rng=7, out=out)
    with pytest.raises((TypeError, ValueError)):
        td.quantize(x, np.float64)
    with pytest.raises((TypeError, ValueError)):
        td.quantize(x, td.tf32, out=out)
    with pytest.raises(ValueError, match="4"):
        td.quantize(np.zeros(4), td.bfloat16, out=out)
    with pytest.raises(TypeError):
        td.quantize(np.array(["a"]), td.bfloat16)
    assert (out == 1).all()


# -- float16 and float32 ---------------------------------------------------------

BUILTIN = pytest.mark.parametrize("f", [FLOAT16, FLOAT32], ids=name)
SOURCES = (np.float64, np.float32, np.float16, np.longdouble)
SOURCES += (np.int64, np.uint64, np.int32, np.int8)


def within_gaps(f: Format) -> np.ndarray:
    """Return points in gaps between neighbors, in longdouble, which is exact."""
    rng = np.random.default_rng(31)
    normal = 1 << f.mantissa_bits
    codes = [0, 1, 2, 3, normal - 1, normal, normal + 1, f.max_code - 1, f.max_code]
    codes += rng.integers(0, f.max_code, 12).tolist()
    x: list[Fraction] = []
    for code in codes:
        low = codec.to_fraction(codec.decode_code(f, code))
        gap = Fraction(2) ** (max(code // normal, 1) - 1 + f.least_exponent)
        assert code == f.max_code or low + gap == codec.to_fraction(
            codec.decode_code(f, code + 1)
        )
        tiny = Fraction(1, 1 << 30)
        parts = (0, tiny, Fraction(1, 3 << 5), Fraction(1, 2) - tiny, Fraction(1, 2))
        x += [low + gap * part for part in parts]
        x += [low + gap * (1 - part) for part in parts]
    exact = [
        np.longdouble(v.numerator) / np.longdouble(v.denominator)
        for v in x
        if v.denominator & (v.denominator - 1) == 0
    ]
    beyond = np.array([f.max_value * 2, 2**62 - 1, 2**40 + 1, 1.5], np.longdouble)
    beyond = np.concatenate([beyond, [1e300, np.inf, 5e-324, 0.0]])
    numbers = np.concatenate([np.array(exact), beyond])
    return np.concatenate([numbers, -numbers, [np.nan]])


def as_source(x: np.ndarray, kind: type) -> np.ndarray:
    with np.errstate(all="ignore"):
        if issubclass(kind, np.floating):
            return x.astype(kind)
        limits = np.iinfo(kind)
        fits = (x >= float(limits.min)) & (x < float(limits.max))
        odd = np.random.default_rng(32).integers(limits.min, limits.max, 60, kind)
        return np.concatenate(
            [x[fits].astype(kind), odd, odd >> kind(limits.bits // 3)]
        )


def items_in(f: Format, result: np.ndarray) -> Items:
    assert result.dtype == np.dtype(f.name)
    return result.view(item_type(f))


@cache
def sources(f: Format) -> list[tuple[np.ndarray, np.ndarray, list[codec.Exact]]]:
    """Return arrays, their numbers in a NumPy type, and exact values (NaN as 0)."""
    numbers = within_gaps(f)
    arrays = [as_source(numbers, kind) for kind in SOURCES]
    for own in ("tf32", "bfloat16", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"):
        items = all_items(FORMATS[own])
        arrays.append(array(FORMATS[own], items[:: max(1, items.size // 300)]))
    found = []
    for x in arrays:
        wide = x if x.dtype.isbuiltin == 1 else x.astype("f8")
        exact = [exactly(v) for v in np.where(wide == wide, wide, 0)]
        found.append((x, wide, exact))
    return found


@pytest.mark.parametrize("overflow", codec.OVERFLOWS)
@pytest.mark.parametrize("rounding", codec.ROUNDINGS)
@BUILTIN
def test_to_numpys_own(f, rounding, overflow, compared):
    for x, wide, exact in sources(f):
        nan = wide != wide
        rng = np.random.default_rng(SEED) if rounding == "stochastic" else None
        with np.errstate(all="ignore"):
            out = np.ones(x.shape, f.name)
            given = td.quantize(
                x, f.name, rounding=rounding, overflow=overflow, rng=rng, out=out
            )
        assert given is out
        drawn = zip(exact, draws_of(x.size, rounding), strict=True)
        items = [codec.encode(f, v, rounding, overflow, draw)[0] for v, draw in drawn]
        want = np.array(items, item_type(f))
        found = items_in(f, out)
        assert_same_items(found[~nan], want[~nan], x[~nan])
        assert (found[nan] & ~np.asarray(f.sign_bit, found.dtype) == f.nan).all()
        assert (np.signbit(out[nan]) == np.signbit(wide[nan])).all()
        compared(x.size)


def assert_same_items(found: Items, want: Items, x: np.ndarray) -> None:
    wrong = np.flatnonzero(found != want)
    shown = [(x[i], hex(found[i]), hex(want[i])) for i in wrong[:5]]
    assert not shown, f"{x.dtype}: of {want.size} differ {wrong.size}: {shown}"


@BUILTIN
def test_flags_of_numpys_own(f, compared):
    for number in within_gaps(f).astype(np.float64)[::2]:
        for rounding in (*codec.ROUNDINGS[:3], "to_odd"):
            for overflow in codec.OVERFLOWS:
                x, manner = np.array([number]), (rounding, overflow)
                _, flags = raised(
                    lambda x=x, manner=manner: td.quantize(
                        x, f.name, rounding=manner[0], overflow=manner[1]
                    )
                )
                _, want = codec.encode(f, exactly(number), *manner)
                assert flags == told(want, overflow), manner
                compared(1)


@BUILTIN
def test_the_default_is_numpys_cast(f):
    x = within_gaps(f).astype(np.float64)  # NumPy rounds longdouble twice
    with np.errstate(all="ignore"):
        want, found = x.astype(f.name), td.quantize(x, f.name)
    nan = np.isnan(want)
    assert found[~nan].tobytes() == want[~nan].tobytes()
    assert np.isnan(found[nan]).all()


def test_how_numpys_own_are_named():
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    for which in ("float16", np.float16, half, np.dtype("<e")):
        assert td.quantize(1 / 3, which, rounding="toward_zero").dtype == half
    for which in ("float32", np.float32, single):
        assert type(td.quantize([1 / 3], which)[0]) is np.float32
    for which in ("float64", np.float64, float, None, np.dtype(">f4"), np.ones(2)):
        with pytest.raises((TypeError, ValueError), match="float16 or float32; got"):
            target_dtype(which)
    with pytest.raises(TypeError, match="out must be an array of float16"):
        td.quantize([1.0], "float16", out=np.ones(1))
    x = np.array([1 + 2.0**-30, -5.0]).astype(np.float32)
    assert td.quantize(x, "float16", rounding="to_odd").tolist() == [1.0, -5.0]
    x = np.ones((4, 6))[::2, ::-3].astype(">f8") / 3
    want = np.full((2, 2), np.nextafter(np.float32(1 / 3), np.float32(0)))
    assert (td.quantize(x, "float32", rounding="toward_zero") == want).all()
    assert td.quantize(x[:0], "float32").shape == (0, 2)
