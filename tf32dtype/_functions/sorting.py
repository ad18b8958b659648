"""Partitions and searches of our formats.

NumPy has them for its own dtypes. For others it sorts all of an array to partition it,
and asks the dtype to compare two elements at a time. Here it partitions integers in
the order of the items, and looks for numbers and their places in float32, which holds
all of ours.

Each function answers the method of arrays of its name, with the same arguments, and
returns NotImplemented where NumPy's own is to do it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._formats.table import Format
from .averages import FORMATS

Array = np.ndarray[Any, Any]


def _negative_nans(form: Format) -> int:
    """How many items are NaN with a sign, of a format that has NaN as IEEE 754."""
    return ((1 << form.mantissa_bits) - 1) << (8 * form.itemsize - form.bits)


@functools.cache
def _order(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return all items of one byte in their order, and the position of each.

    Both are integers that NumPy partitions quickly.
    """
    items = np.arange(256, dtype=np.uint8)
    order = items.view(dtype).argsort(kind="stable").astype(np.uint8)
    return order, order.argsort().astype(np.uint32)


def _keys(items: Array, form: Format) -> Array:
    """Map items to different integers in the same order.

    Wider formats are as IEEE 754 has them. Negative numbers have all bits inverted,
    others the sign bit. The smallest integers, which are NaN, move from below zero to
    the top.
    """
    if form.itemsize == 1:
        return _order(form.dtype)[1][items]
    last = 8 * items.itemsize - 1
    keys = items ^ (-(items >> last) | items.dtype.type(1 << last))
    keys -= items.dtype.type(_negative_nans(form))
    return np.asarray(keys)


def _items(keys: Array, form: Format) -> Array:
    """Return the items, from such integers."""
    if form.itemsize == 1:
        return _order(form.dtype)[0][keys]
    last = 8 * keys.itemsize - 1
    keys += keys.dtype.type(_negative_nans(form))
    keys ^= ((keys >> last) - keys.dtype.type(1)) | keys.dtype.type(1 << last)
    return keys


#: Arrays of so many elements are sorted instead of partitioned.
_FEW = 1024


def _sort_instead(a: Array, kth: Any, axis: Any = -1, *rest: Any) -> bool:
    """Sort instead of a partition if the arguments are valid. Return whether they are.

    Sorting few elements, or items of one or two bytes, takes less time than a
    partition.
    """
    if rest or type(axis) is not int or not -a.ndim <= axis < a.ndim:
        return False
    length = a.shape[axis]
    places = kth if isinstance(kth, list | tuple) else [kth]
    are_valid = (type(k) is int and -length <= k < length for k in places)
    if not places or not all(are_valid):
        return False
    np.ndarray.sort(a, axis)
    return True


def _partition(a: Array, *args: Any, **kwargs: Any) -> Any:
    form = FORMATS.get(a.dtype)
    if form is None or not a.flags.writeable:
        return NotImplemented
    others = dict(kwargs)
    kind, order = others.pop("kind", "introselect"), others.pop("order", None)
    axis = [others.pop("axis")] if "axis" in others and len(args) == 1 else []
    is_usual = isinstance(kind, str) and kind == "introselect" and order is None
    is_quick = form.itemsize < 4 or a.size <= _FEW
    if args and is_quick and is_usual and not others and _sort_instead(a, *args, *axis):
        return None
    items = np.asarray(a).view(f"u{form.itemsize}")
    keys = _keys(items, form)
    keys.partition(*args, **kwargs)
    items[...] = _items(keys, form)
    return None


def _argpartition(a: Array, *args: Any, **kwargs: Any) -> Any:
    if a.dtype not in FORMATS:
        return NotImplemented
    return np.asarray(a).astype(np.float32).argpartition(*args, **kwargs)


def _searchsorted(a: Array, v: Any = None, *args: Any, **kwargs: Any) -> Any:
    if a.dtype not in FORMATS or getattr(v, "dtype", None) != a.dtype:
        return NotImplemented
    # For fewer values, converting the whole array takes longer.
    if not isinstance(v, np.ndarray) or v.size * 128 < a.size:
        return NotImplemented
    numbers = np.asarray(a).astype(np.float32)
    return numbers.searchsorted(np.asarray(v).astype(np.float32), *args, **kwargs)


METHODS: dict[str, Callable[..., Any]] = {
    "partition": _partition,
    "argpartition": _argpartition,
    "searchsorted": _searchsorted,
}
