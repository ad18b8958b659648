"""Binary functions by tables have the same bits and flags in any layout."""

import numpy as np
import pytest

import tf32dtype as td

FORMATS = [name for name, f in td.formats.items() if f.bits <= 8]
FUNCTIONS = ("power", "hypot", "remainder", "nextafter")
MANY = 1 << 16  # enough elements for a table of all pairs


def codes(dtype: np.dtype, seed: int, count: int = MANY) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.integers(0, 256, count, dtype=np.uint8).view(dtype)


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.uint8)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_layouts_agree(name: str, function: str) -> None:
    dtype, ufunc = np.dtype(td.formats[name].type), getattr(np, function)
    with np.errstate(all="ignore"):
        x, y = codes(dtype, 1), codes(dtype, 2)
        expected = bits(ufunc(x, y))
        assert np.array_equal(bits(ufunc(x[::-1], y[::-1])), expected[::-1])
        assert np.array_equal(bits(ufunc(x[::3], y[::3])), expected[::3])
        spread = np.empty(2 * MANY, dtype)[::2]
        assert np.array_equal(bits(ufunc(x, y, out=spread)), expected)
        in_place = x.copy()
        assert np.array_equal(bits(ufunc(in_place, y, out=in_place)), expected)
        for item in codes(dtype, 3, 4):
            fixed = np.full(MANY, item, dtype)
            first, second = bits(ufunc(fixed, y)), bits(ufunc(x, fixed))
            assert np.array_equal(bits(ufunc(item, y)), first)
            assert np.array_equal(bits(ufunc(x, item)), second)


@pytest.mark.parametrize("name", FORMATS)
def test_steps_follow_each_other(name: str) -> None:
    dtype = np.dtype(td.formats[name].type)
    with np.errstate(all="ignore"):
        x = codes(dtype, 4)
        np.hypot(x, x)
        x = x[:100]
        running = [x[0]]
        for item in x[1:]:
            running.append(np.hypot(running[-1], item))
        expected = np.array(running, dtype)  # the first is a copy with all bits
        assert np.array_equal(bits(np.hypot.accumulate(x))[1:], bits(expected)[1:])


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_flags_are_those_of_the_elements(name: str) -> None:
    dtype = np.dtype(td.formats[name].type)
    ones, fours = np.ones(MANY, dtype), np.full(MANY, 4, dtype)
    four = dtype.type(4)
    with np.errstate(all="raise"):
        np.power(ones, fours)
        np.power(ones, four)
        for y in (fours, four):
            with pytest.raises(FloatingPointError):
                np.power(fours, 4 * y)


@pytest.mark.parametrize("name", FORMATS)
def test_one_exponent(name: str) -> None:
    """Compute ldexp of many items by one exponent with a table of 256 results."""
    x = codes(np.dtype(td.formats[name].type), 4)
    raised: set[str] = set()
    with np.errstate(all="call", call=lambda error, _: raised.add(error)):
        for exponent in (3, -2, 40, -40):
            found, of_one = np.ldexp(x, exponent), set(raised)
            raised.clear()
            expected, of_all = np.ldexp(x, np.full(MANY, exponent)), set(raised)
            raised.clear()
            assert np.array_equal(bits(found), bits(expected))
            assert of_one == of_all
