"""All 2**32 inputs: float32 casts, and pairs of bfloat16."""

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import codec
from tests.reference.codec_arrays import encode, item_type, values
from tests.reference.formats import FLOAT32, FORMATS, Format
from tests.support.bits import array, assert_items, items_of, name
from tests.support.near_ties import codes_around

pytestmark = pytest.mark.exhaustive

CHUNK = 1 << 24
#: The smallest normal bfloat16, and the reciprocal of the spacing below it.
NORMAL, PER_SPACING = np.float32(2.0**-126), 2.0**133


def first_patterns(f: Format) -> np.ndarray:
    """Return the smallest float32 pattern that rounds to each code above 0, or to Inf.

    Midpoints of these formats are float32 numbers. The pattern is that of the midpoint,
    or the next one if the tie goes down.
    """
    middle, (below, even, _) = codes_around(f)
    patterns = []
    for number, low, tie in zip(middle.tolist(), below, even, strict=True):
        pattern, _ = codec.encode(FLOAT32, codec.from_float(number))
        assert codec.to_float(codec.decode(FLOAT32, pattern)) == number
        patterns.append(pattern + (low == tie))
    return np.array(patterns)


def expected(f: Format, starts: np.ndarray, begin: int) -> np.ndarray:
    """Return items for the positive patterns begin, begin + 1, ... of a chunk."""
    _, (_, _, above) = codes_around(f)
    codes = np.concatenate([[0], above])
    edges = np.concatenate([[0], starts, [1 << 31]])
    lengths = np.diff(np.clip(edges, begin, begin + CHUNK))
    items = np.repeat(codes, lengths).astype(item_type(f))
    nan = FLOAT32.infinity + 1 - begin
    if nan < CHUNK:
        items[max(nan, 0) :] = f.nan << f.shift
    return items


@pytest.mark.parametrize(
    "f",
    [FORMATS[n] for n in ("tf32", "bfloat16", "float8_e4m3fn", "float8_e5m2")],
    ids=name,
)
def test_every_float32(f, compared):
    starts = first_patterns(f)
    sign = np.array(f.sign_bit << f.shift, item_type(f))
    for begin in range(0, 1 << 31, CHUNK):
        pattern = np.arange(begin, begin + CHUNK, dtype=np.uint32)
        want = expected(f, starts, begin)
        for bits in (0, 1 << 31):
            x = (pattern | np.uint32(bits)).view(np.float32)
            with np.errstate(all="ignore"):
                found = x.astype(getattr(td, f.name)).view(item_type(f))
            if not np.array_equal(found, want | (sign if bits else 0)):
                assert_items(f, found, want | (sign if bits else 0), "float32 ->", x)
            compared(CHUNK)


# -- pairs of bfloat16 ---------------------------------------------------------


class Rounded:
    """Float32 results rounded to bfloat16; buffers are kept for speed.

    float32 arithmetic on bfloat16 numbers (p = 8) and a second rounding give the exact
    result rounded once, if the first keeps 2p + 2 = 18 bits: for every normal float32
    (Figueroa, "When is double rounding innocuous?", 1995). Smaller sums are exact, and
    results that float32 rounds to zero are far below half of 2**-133. `repair` computes
    subnormal products and quotients again in float64. Those are exact, or farther from
    a tie than the error of float64 (see reference/ufuncs.py).
    """

    def __init__(self, count: int) -> None:
        self.odd = np.empty(count, np.uint32)
        self.wide = np.empty(count, np.uint32)

    def __call__(self, result: np.ndarray) -> np.ndarray:
        bits = result.view(np.uint32)
        np.right_shift(bits, 16, out=self.odd)
        np.bitwise_and(self.odd, 1, out=self.odd)
        np.add(bits, 0x7FFF, out=self.wide)
        np.add(self.wide, self.odd, out=self.wide)
        np.right_shift(self.wide, 16, out=self.wide)
        items = self.wide.astype(np.uint16)
        items[np.isnan(result)] = 0x7FC0
        return items


def repair(items, result, ufunc, x, y):
    """Compute subnormal results again, in units of their spacing."""
    magnitude = np.abs(result)
    tiny = np.flatnonzero((magnitude < NORMAL) & (magnitude > 0))
    exact = ufunc(np.float64(x), y[tiny])
    whole = np.rint(np.abs(exact) * PER_SPACING).astype(np.uint16)
    items[tiny] = whole | np.signbit(exact).astype(np.uint16) << 15


@pytest.fixture(scope="module")
def every():
    items = np.arange(1 << 16, dtype=np.uint16)
    f = FORMATS["bfloat16"]
    number = values(f, items)
    with np.errstate(all="ignore"):
        return f, items, array(f, items), number, number.astype(np.float32)


@pytest.mark.parametrize("function", ["add", "subtract", "multiply", "divide"])
def test_every_pair_of_bfloat16(every, function, compared):
    f, items, a, number, single = every
    ufunc = getattr(np, function)
    rounded = Rounded(items.size)
    out = np.empty_like(a)
    result = np.empty_like(single)
    with np.errstate(all="ignore"):
        for i in range(items.size):
            ufunc(a[i], a, out=out)
            ufunc(single[i], single, out=result)
            want = rounded(result)
            if function in ("multiply", "divide"):
                repair(want, result, ufunc, number[i], number)
            found = items_of(f, out)
            if not np.array_equal(found, want):
                assert_items(f, found, want, f"{function} of {items[i]:#x} and", items)
    compared(items.size**2)


def test_the_pairs_truth(every, compared):
    """Compare `Rounded` and `repair` with the reference on some rows."""
    f, items, _, number, single = every
    rounded = Rounded(items.size)
    rows = [0, 1, 0x7F, 0x80, 0x3F80, 0x3FB5, 0x7F7F, 0x7F80, 0x7FC1, 0x8001, 0xBF81]
    rows += np.random.default_rng(21).integers(0, items.size, 40).tolist()
    for function in ("add", "subtract", "multiply", "divide"):
        ufunc = getattr(np, function)
        for i in rows:
            with np.errstate(all="ignore"):
                result = ufunc(single[i], single)
                found = rounded(result)
                if function in ("multiply", "divide"):
                    repair(found, result, ufunc, number[i], number)
                want, _ = encode(f, ufunc(number[i], number))
            assert_items(f, found, want, function, items)
            compared(items.size)


@pytest.mark.parametrize(
    "function",
    ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"],
)
def test_every_comparison_of_bfloat16(every, function, compared):
    _, items, a, _, single = every
    ufunc = getattr(np, function)
    found, want = np.empty(items.size, bool), np.empty(items.size, bool)
    for i in range(items.size):
        ufunc(a[i], a, out=found)
        ufunc(single[i], single, out=want)
        if not np.array_equal(found, want):
            wrong = np.flatnonzero(found != want)[0]
            pytest.fail(f"{function} of {items[i]:#x} and {items[wrong]:#x}")
    compared(items.size**2)
