"""Fast paths of casts, by tables and integers, compared with slow ones."""

import struct

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import ALL, dtype, name

BYTES = [f for f in ALL if dtype(f).itemsize == 1]
KINDS = [*(dtype(f) for f in BYTES), *map(np.dtype, ("?", "i1", "u1"))]
ENOUGH = 4096  # casts of so many bytes use a table


def raised(function, *args):
    """Return the result of a call, and the exceptions that it raised."""
    flags = [0]

    def note(_, found):
        flags[0] |= found

    with np.errstate(all="call", call=note):
        return function(*args), flags[0]


@pytest.mark.parametrize("source", KINDS, ids=str)
def test_casts_between_bytes(source, compared):
    """Cast each of 256 items as a single item: equal bits and flags."""
    items = np.arange(256, dtype=np.uint8).view(source)
    if source.kind == "b":
        items = items[:2]
    for target in KINDS:
        if target == source or (source.kind in "biu" and target.kind in "biu"):
            continue
        few = [raised(items[i : i + 1].astype, target) for i in range(items.size)]
        raised(np.resize(items, ENOUGH).astype, target)
        for item, (want, want_flags) in zip(items, few, strict=True):
            many = np.full(37, item, source)
            found, flags = raised(many.astype, target)
            assert found.tobytes() == want.tobytes() * many.size, (item, target)
            assert flags == want_flags, (item, target)
            every_second, flags = raised(np.repeat(many, 2)[::2].astype, target)
            assert every_second.tobytes() == found.tobytes()
            assert flags == want_flags
        compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_one_number_among_many(f, compared):
    """Cast a number at any index of a chunk, by the bounds of the chunk."""
    least, greatest = 2.0**f.normal_exponent, float(f.max_value)
    positive = [0.0, 5e-324, np.inf, np.nan, 3e38, least, 1.5 * least, greatest]
    positive += [least * (1 - 2.0**-k) for k in range(1, 12)]
    positive += [least * 2.0**-k for k in range(1, 9)]
    positive += [greatest * (1 + 2.0**-k) for k in range(1, 9)]
    with np.errstate(all="ignore"):
        found = np.float32([*positive, *np.negative(positive)])
    signaling = np.uint32([0x7F800001, 0xFF800001]).view(np.float32)
    target = dtype(f)
    for x in np.concatenate([found, signaling]):
        want = raised(np.full(1, x).astype, target)
        slow = raised(td.quantize, np.full(1, x), target)
        assert (slow[0].tobytes(), slow[1]) == (want[0].tobytes(), want[1]), x
        for size, place in ((2, 1), (64, 63), (65, 64), (130, 7), (1500, 1400)):
            many = np.ones(size, np.float32)
            items = np.ones(size, target)
            many[place : place + 1] = x
            items[place] = want[0][0]
            if np.isnan(x):
                items[place : place + 1] = want[0]
            seen, flags = raised(many.astype, target)
            assert seen.tobytes() == items.tobytes(), (x, size, place)
            assert flags == want[1], (x, size, place)
            compared(size)


@pytest.mark.parametrize("integer", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_blocks_of_small_integers(f, integer, compared):
    """Cast chunks of integers below 2^24, also with larger ones: float64 has both."""
    ends = [2**k - d for k in (8, 11, 12, 20, 23, 24) for d in (1, 2, 3)]
    small = np.array([*range(600), *ends])
    if integer[0] == "i":
        small = np.concatenate([small, ~small])
    for more in ([], [2**24], [2**24 + 1], [2**31 - 129]):
        x = np.concatenate([small, more]).astype(integer)
        want = raised(x.astype(np.float64).astype, dtype(f))
        found = raised(x.astype, dtype(f))
        assert found[0].tobytes() == want[0].tobytes(), more
        assert found[1] == want[1], more
        compared(x.size)


def numbers():
    """Return floats near all special cases of rounding."""
    rng = np.random.default_rng(8)
    powers = np.exp2(np.arange(-180, 140.0))
    near = powers[:, None] * (1 + np.arange(17) / 16)
    near = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, np.inf)])
    wide = np.ldexp(rng.standard_normal(2000), rng.integers(-1074, 1000, 2000))
    special = [0.0, np.inf, np.nan, 5e-324, 2.0**-1022, 1.7e308]
    positive = np.concatenate([near.ravel(), np.abs(wide), special])
    return np.concatenate([positive, np.negative(positive)])


@pytest.mark.parametrize("f", ALL, ids=name)
def test_floats_become_items(f, compared):
    """Convert floats as casts of float64 arrays do, with the same exceptions."""
    x = numbers()
    with np.errstate(all="ignore"):
        assert np.array(x.tolist(), dtype(f)).tobytes() == x.astype(dtype(f)).tobytes()
    for number in x[::13]:
        want = raised(np.array([number]).astype, dtype(f))
        found = raised(np.array, [float(number)], dtype(f))
        assert found[0].tobytes() == want[0].tobytes(), number
        assert found[1] == want[1], number
    compared(x.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_integers_become_items(f):
    near = [2**k + d for k in (7, 9, 16, 24, 53, 62, 63, 64) for d in (-1, 0, 1)]
    for number in (*range(-20, 600), *near, *(-x for x in near)):
        with np.errstate(all="ignore"):
            found = np.array([number], dtype(f))
            want = np.array([str(number)]).astype(dtype(f))
        assert found.tobytes() == want.tobytes(), number


@pytest.mark.parametrize("f", ALL, ids=name)
def test_items_become_floats_and_scalars(f):
    rng = np.random.default_rng(9)
    raw = rng.integers(0, 256, 4 * 4096, np.uint8)
    x = np.concatenate([np.arange(256, dtype=np.uint8).repeat(4), raw]).view(dtype(f))
    floats = [struct.pack("d", number) for number in x.tolist()]
    assert b"".join(floats) == x.astype(np.float64).tobytes()
    for other in ALL:
        with np.errstate(all="ignore"):
            found = np.array(list(x[::5]), dtype(other))
            # Casts within a dtype also make canonical NaN and zero unused bits.
            want = x[::5].astype(np.float64).astype(dtype(other))
        assert found.tobytes() == want.tobytes()


def test_subnormal_numbers_become_floats():
    x = td.from_bits(np.arange(1, 128, 7, dtype=np.uint16), td.bfloat16)
    assert [number * 2.0**133 for number in x.tolist()] == list(range(1, 128, 7))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_byteswap(f):
    rng = np.random.default_rng(4)
    size = dtype(f).itemsize
    raw = rng.integers(0, 256, (6, 35 * size), np.uint8)
    x = raw.view(dtype(f))
    swapped = raw.reshape(6, 35, size)[..., ::-1]
    assert x.byteswap().tobytes() == swapped.tobytes()
    assert x[:, ::2].byteswap().tobytes() == swapped[:, ::2].tobytes()
    assert x.T.byteswap().T.tobytes() == swapped.tobytes()


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("f", ALL, ids=name)
def test_long_doubles(f, compared):
    """Cast long doubles, of which unusual ones do not change others in a chunk."""
    x = numbers().astype(np.longdouble)
    usual = x[np.isfinite(x) & (np.abs(x) > 1e-30) & (np.abs(x) < 1e30)]
    for source in (x, usual, x[::-3], np.nextafter(usual, np.longdouble(0))):
        with np.errstate(all="ignore"):
            found = source.astype(dtype(f))
            alone = [source[i : i + 1].astype(dtype(f)) for i in range(0, 4000, 7)]
        assert found[:4000:7].tobytes() == b"".join(y.tobytes() for y in alone)
    with np.errstate(all="ignore"):
        want = x.astype(np.float64).astype(dtype(f))
        flags = raised(x.astype(np.float64).astype, dtype(f))[1]
        assert raised(x.astype, dtype(f))[1] == flags
        assert x.astype(dtype(f)).tobytes() == want.tobytes()
        pairs = x.astype(np.clongdouble)
        assert pairs.astype(dtype(f)).tobytes() == want.tobytes()
        for wide in (np.complex64, np.complex128):
            complex_items = want[:777].astype(wide)
            assert not complex_items.imag.any()
            real = want[:777].astype(complex_items.real.dtype)
            assert complex_items.real.tobytes() == real.tobytes()
    compared(x.size)
