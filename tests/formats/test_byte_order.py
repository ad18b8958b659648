"""Byte order: byteswap() reverses bytes; dtypes have only the machine's order."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import item_type
from tests.reference.formats import Format
from tests.support.bits import ALL, array, dtype, name
from tf32dtype import _core

each = pytest.mark.parametrize("f", ALL, ids=name)
OTHER = "big" if sys.byteorder == "little" else "little"


def some(f: Format, shape: Any = (4, 6)) -> tuple[Any, Any]:
    """Return random raw items, unused bits too, as the format and as integers."""
    rng = np.random.default_rng(3)
    items = rng.integers(0, 2 ** (8 * dtype(f).itemsize), shape).astype(item_type(f))
    return array(f, items.copy()), items


LAYOUTS = {
    "all": lambda x: x,
    "transposed": lambda x: x.T,
    "columns": lambda x: x[:, ::2],
    "reversed": lambda x: x[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[0], (3, 6)),
    "empty": lambda x: x[:0],
    "none": lambda x: x[1, 2, ...],
}


@each
def test_byteswap(f: Format) -> None:
    """Swap as integers of the same size do; unused bits move with the others."""
    for layout, view in LAYOUTS.items():
        x, items = map(view, some(f))
        swapped = x.byteswap()
        assert swapped.dtype == x.dtype, layout
        assert swapped.tobytes() == items.byteswap().tobytes(), layout
        assert swapped.byteswap().tobytes() == x.tobytes() == items.tobytes(), layout


@each
def test_byteswap_in_place(f: Format) -> None:
    for layout, view in LAYOUTS.items():
        if layout == "broadcast":  # read-only
            continue
        x, items = some(f)
        part = view(x)
        assert part.byteswap(inplace=True) is part, layout
        view(items).byteswap(inplace=True)
        assert x.tobytes() == items.tobytes(), layout


@each
def test_byteswap_of_fields_and_scalars(f: Format) -> None:
    x, items = some(f, 5)
    records = []
    for values in (x, items):
        record = np.zeros(5, [("a", "u1"), ("b", values.dtype), ("c", "i4")])
        record["b"], record["c"] = values, np.arange(5)
        records.append(record)
    one, other = records
    assert one.byteswap().tobytes() == other.byteswap().tobytes()
    assert one["b"].byteswap().tobytes() == items.byteswap().tobytes()
    assert x[0].byteswap().tobytes() == items[0].byteswap().tobytes()


@each
def test_nothing_else_swaps(f: Format) -> None:
    """Move whole items in copies, casts between layouts, sorting and fields."""
    x, items = some(f)
    assert x.copy("F").tobytes() == items.tobytes()
    assert np.concatenate([x, x]).tobytes() == np.concatenate([items, items]).tobytes()
    assert x[[2, 0]].tobytes() == items[[2, 0]].tobytes()
    assert x.astype(object).astype(x.dtype).shape == x.shape
    record = np.zeros(4, [("a", "u1"), ("b", x.dtype, 6)])
    record["b"] = x
    assert record[2]["b"].tobytes() == items[2].tobytes()
    assert np.sort(td.bits(np.sort(x, None))).tobytes() == (
        np.sort(td.bits(x), None).tobytes()
    )


@each
def test_newbyteorder(f: Format) -> None:
    """Accept only the machine's byte order; asking for another one is an error."""
    d = dtype(f)
    for order in ("=", "|", "native", "I", sys.byteorder):
        assert d.newbyteorder(order) is d
    for orders in ((OTHER,), (OTHER[0].upper(),), ("S",), ()):
        if d.itemsize == 1:
            assert d.newbyteorder(*orders) is d
            continue
        with pytest.raises(
            ValueError, match=f"byte order of {f.name} must be that of this"
        ):
            d.newbyteorder(*orders)
    with pytest.raises(ValueError, match="byteorder"):
        d.newbyteorder("x")
    with pytest.raises(TypeError):
        np.dtype(f">{f.name}")


def test_the_error_says_how_to_read() -> None:
    x = np.array([1.5, -2], td.bfloat16)
    data = x.byteswap().tobytes()
    with pytest.raises(ValueError, match=r"byte order of .*\. Use np") as caught:
        np.frombuffer(data, x.dtype.newbyteorder(OTHER))
    line = str(caught.value).partition(". Use ")[2]
    assert (eval(line, {"np": np, "td": td, "data": data}) == x).all()


@pytest.mark.parametrize("kind", [td.bfloat16, td.tf32])
def test_files_in_the_other_order_are_refused(kind: Any) -> None:
    file = io.BytesIO()
    td.save(file, np.array([1.5, -2], kind))
    size = np.dtype(kind).itemsize
    assert f"'<u{size}'".encode() in file.getvalue()  # on every machine
    other = file.getvalue().replace(b"'<u", b"'>u")
    if sys.byteorder == "little":
        with pytest.raises(ValueError, match=f"; got >u{size}"):
            td.load(io.BytesIO(other))


@each
def test_pickles_of_another_machine(f: Format) -> None:
    """Pickle arrays as bytes in the machine's order; scalars have one order."""
    x, _ = some(f)
    for protocol in range(2, 6):
        back = pickle.loads(pickle.dumps(x, protocol))
        assert (back.dtype, back.tobytes()) == (x.dtype, x.tobytes())
    function, arguments = x.dtype.__reduce__()
    if x.dtype.itemsize > 1:
        with pytest.raises(ValueError, match="byte order"):
            function(arguments[0], OTHER)
    one = array(
        f, np.array([f.sign_bit | 1], np.uint32).astype(item_type(f)) << f.shift
    )
    _, (_, item) = one[0].__reduce__()
    assert int.from_bytes(item, "little") == td.bits(one)[0]
    assert pickle.loads(pickle.dumps(one[0])).tobytes() == one.tobytes()
    with pytest.raises(ValueError, match="bytes"):
        _core._core._scalar_from_item(x.dtype.type, b"12345")
