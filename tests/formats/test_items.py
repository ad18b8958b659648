"""Items that become Python floats, as float16's do, and items that remain scalars."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import codec
from tests.reference.codec_arrays import all_items, item_type
from tests.reference.formats import Format
from tests.support.bits import ALL, array, dtype, name

each = pytest.mark.parametrize("f", ALL, ids=name)


def assert_floats(found: list[Any], want: list[str]) -> None:
    for x, text in zip(found, want, strict=True):
        assert type(x) is float
        assert repr(x) == text


@each
def test_items_are_exact_floats(f: Format) -> None:
    items = all_items(f)[:: max(1, f.count // 2048)].astype(item_type(f))
    x = array(f, items)
    exact = [codec.decode_code(f, item >> f.shift) for item in items.tolist()]
    want = [repr(codec.to_float(v)) for v in exact]
    assert_floats(x.tolist(), want)
    assert_floats([x.item(i) for i in range(x.size)], want)
    assert_floats([v.item() for v in x], want)
    assert_floats([v.tolist() for v in x], want)
    assert_floats(x.astype(object).tolist(), want)
    assert_floats(np.asarray(x[::-2]).tolist(), want[::-2])


@each
def test_items_of_any_layout(f: Format) -> None:
    x = np.array([[1, 2, 4], [0.5, 1, 2]], dtype(f))
    want = [[1.0, 2.0, 4.0], [0.5, 1.0, 2.0]]
    assert x.tolist() == want
    assert x.T.tolist() == [list(row) for row in zip(*want, strict=True)]
    assert x[:, ::-2].tolist() == [[4.0, 1.0], [2.0, 0.5]]
    assert x[:0].tolist() == []
    assert json.loads(json.dumps(x.tolist())) == want
    assert type(x[0, 0, ...].tolist()) is type(x[0, 0, ...].item()) is float
    assert type(x.item(1, 2)) is type(x.item((1, 2))) is float
    unaligned = np.zeros(5, [("p", "u1"), ("v", dtype(f))])
    unaligned["v"] = 2
    assert unaligned["v"].tolist() == [2.0] * 5
    assert [type(v) for v in unaligned.item(0)] == [int, float]
    assert [type(v) for v in unaligned[0].item()] == [int, float]
    assert [type(v) for v in unaligned.tolist()[0]] == [int, float]
    assert [v.item() for v in np.nditer(x)] == [1.0, 2.0, 4.0, 0.5, 1.0, 2.0]


@each
def test_elements_stay_scalars(f: Format) -> None:
    d, kind = dtype(f), dtype(f).type
    x = np.array([[1, 2, 4], [0.5, 1, 2]], d)
    scalars = [
        x[0, 0],
        *x[0],
        *list(x[1]),
        *x.flat,
        x.flat[2],
        max(x[0]),
        x.max(),
        np.median(x[:, 0]) if f.signed else x.min(),
        x[0, 0, ...][()],
        *(v for _, v in np.ndenumerate(x)),
        *(v[()] for v in np.nditer(x)),
        np.ma.array(x)[0, 0],
        x.take(1),
        np.zeros(1, [("a", d)])[0]["a"],
        *np.zeros(1, [("a", d)])[0],
        x[0, 0] + x[0, 1],
        next(iter(x[0])),
    ]
    assert {type(v) for v in scalars} == {kind}
    assert np.vectorize(lambda v: v)(x).dtype == d
    assert np.array([*x[0]]).dtype == d
    assert np.stack(list(x)).dtype == d
    assert np.frompyfunc(type, 1, 1)(x).tolist() == [[float] * 3] * 2


@each
def test_objects_are_float16s(f: Format) -> None:
    """Convert to Python floats that a cast back converts to the same codes."""
    x = np.array([1, 2, 0.5], dtype(f))
    half = x.astype(np.float16)
    for function in (
        lambda v: v.astype(object),
        lambda v: np.add(v, np.array([1, 1, 1], object)),
        lambda v: np.array(v, dtype=object),
        lambda v: np.append(v, np.array(["a"], object))[:3],
        lambda v: np.array([*v.tolist()], object),
    ):
        got, want = function(x), function(half)
        assert got.dtype == want.dtype == object
        assert [type(v) for v in got] == [type(v) for v in want]
        assert got.tolist() == want.tolist()
    assert td.bits(x.astype(object).astype(x.dtype)).tolist() == td.bits(x).tolist()


@pytest.mark.parametrize("f", ALL, ids=name)
def test_unused_bits_change_no_result(f: Format) -> None:
    """Ignore unused bits of Inf, in whole arrays and in single numbers."""
    items = all_items(f)[:: max(1, len(all_items(f)) // 4096)]
    used = np.bitwise_or.reduce(all_items(f))
    x, dirty = array(f, items), array(f, items | ~used)
    for function in (
        *(np.max, np.min, np.nanmax, np.nanmin, np.fmax.reduce, np.fmin.reduce),
        *(
            np.argmax,
            np.argmin,
            np.sum,
            np.nansum,
            np.mean,
            np.nanmean,
            np.var,
            np.prod,
        ),
        *(np.sort, np.unique, np.cumsum, np.count_nonzero, np.exp, np.floor, np.isinf),
        *(np.isnan, np.negative, np.tanh, lambda x: x + x, lambda x: x @ x),
        *(lambda x: np.vecdot(x, x), lambda x: x.astype(np.float32)),
    ):
        for part in (slice(None), slice(None, None, 3), slice(5, 9)):
            with np.errstate(all="ignore"):
                want, found = function(x[part]), function(dirty[part])
            np.testing.assert_array_equal(
                np.asarray(found, np.float32), np.asarray(want, np.float32)
            )
