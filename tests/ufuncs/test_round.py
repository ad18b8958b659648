"""np.round to decimals: the nearest decimal, rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.reference import codec
from tests.reference.codec_arrays import all_items, item_type, values
from tests.reference.formats import Format
from tests.support.bits import ALL, array, assert_items, dtype, items_of, name


def decimal(x: float, decimals: int) -> Fraction:
    """Return the multiple of 10**-decimals next to x, at a tie the even one."""
    unit = Fraction(10) ** -decimals
    return round(Fraction(x) / unit) * unit


@pytest.mark.parametrize("f", ALL, ids=name)
def test_nearest_decimal(f: Format) -> None:
    items = all_items(f)
    items = items[:: max(1, items.size // 400)]
    numbers = values(f, items)
    for decimals in (-2, -1, 1, 2, 3):
        want = []
        for item, number in zip(items, numbers, strict=True):
            if not np.isfinite(number):
                want.append(item)
                continue
            exact = codec.from_fraction(decimal(float(number), decimals))
            exact = exact._replace(negative=bool(np.signbit(number)))
            want.append(codec.encode(f, exact)[0])
        for function in (np.round, np.around):
            with np.errstate(all="ignore"):
                got = function(array(f, items), decimals)
            finite = np.isfinite(numbers)
            bits = np.array(want, item_type(f))
            assert_items(
                f, items_of(f, got)[finite], bits[finite], f"round {decimals}", items
            )
            special = got[~finite].astype(float)
            assert np.array_equal(special, numbers[~finite], equal_nan=True)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_large_numbers_stay_finite(f: Format) -> None:
    """Keep numbers finite that overflow (to NaN in e4m3fn) if multiplied by 10."""
    x = np.array([np.finfo(dtype(f)).max, 1]).astype(dtype(f))
    assert np.array_equal(np.round(x, 1), x)
    assert round(x[0], 1) == x[0]
    assert type(round(x[0], 1)) is dtype(f).type


@pytest.mark.parametrize("f", ALL, ids=name)
def test_out_and_subclasses(f: Format) -> None:
    x = np.array([1, 2, 4], dtype(f))
    out = np.empty(3, dtype(f))
    assert np.round(x, 1, out) is out
    assert np.array_equal(out, x)
    masked = np.round(np.ma.array(x, mask=[0, 1, 0]), 1)
    assert masked.dtype == x.dtype
    assert masked.mask.tolist() == [False, True, False]
    assert type(np.round(x[0], 2)) is dtype(f).type
    with pytest.raises(TypeError):
        np.round(x, 1.5)
