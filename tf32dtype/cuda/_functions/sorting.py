"""Sort and search arrays by unsigned integers in the order of the numbers."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..._base.wording import one_of
from ..._formats.table import formats
from .._arrays.indexing import as_elements
from .._arrays.ndarray import wrap
from .._runtime import backend
from .._runtime.storage import STORAGE, is_ours, raw


def keys(x: Any) -> Any:
    """Map numbers to unsigned integers in the same order.

    Equal numbers, and all NaN, which come last, have equal keys. Other dtypes are their
    own keys.
    """
    if not is_ours(x.dtype):
        return x.view(x.dtype, cupy.ndarray)
    form = formats[x.dtype.name]
    storage = STORAGE[form.itemsize].type
    call = backend.current().call
    used = storage(((1 << form.bits) - 1) << form.unused_low_bits)
    code = call("bitwise_and", raw(x), used)
    key = code
    if form.signed:
        sign = storage(1 << (form.bits - 1 + form.unused_low_bits))
        magnitude = call("bitwise_and", code, storage(sign ^ used))
        zero = call("equal", magnitude, storage(0))
        negative = call("not_equal", call("bitwise_and", code, sign), storage(0))
        # Codes of negative numbers are inverted, because these numbers descend.
        # Both zeros have the same key, so that one key remains above all others for
        # NaN.
        above = call("subtract", call("bitwise_or", code, sign), storage(1))
        below = call("bitwise_xor", code, used)
        key = call("where", negative, below, above)
        key = call("where", zero, storage(sign - storage(1)), key)
    last = storage(np.iinfo(storage).max)
    return call("where", np.isnan(x), last, key)


def argsort(x: Any, axis: Any = -1) -> Any:
    """Return the indices that sort an array stably."""
    if axis is None:
        x, axis = x.reshape(-1), -1
    return backend.current().call("argsort", keys(x), axis, kind="stable")


def sort(x: Any, axis: Any = -1) -> Any:
    """Return a sorted copy; equal numbers, such as -0 and 0, keep their order."""
    if axis is None:
        x, axis = x.reshape(-1), -1
    order = argsort(x, axis)
    call = backend.current().call
    return wrap(call("take_along_axis", raw(x), order, axis), x.dtype)


def sort_into(x: Any, axis: Any) -> None:
    """Sort an array in place."""
    backend.current().call("ndarray.__setitem__", raw(x), ..., raw(sort(x, axis)))


def _comparable(*given: Any) -> list[Any]:
    """Cast arrays, lists and scalars to their common dtype, as arrays on the GPU."""
    dtypes = [x.dtype if hasattr(x, "dtype") else x for x in given]
    common = np.result_type(
        *(np.asarray(x).dtype if isinstance(x, list) else x for x in dtypes)
    )
    made = []
    for x in given:
        if isinstance(x, cupy.ndarray):
            made.append(x if x.dtype == common else x.astype(common))
            continue
        storage = as_elements(x, common)
        if not isinstance(storage, cupy.ndarray):
            storage = backend.current().put(np.asarray(storage))
        made.append(wrap(storage, common) if is_ours(common) else storage.view(common))
    return made


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Find where to insert values in a sorted array, as `numpy.searchsorted` does."""
    if side not in ("left", "right"):
        raise ValueError(one_of("side", side, ("left", "right")))
    if sorter is not None and not isinstance(sorter, cupy.ndarray):
        sorter = backend.current().put(np.asarray(sorter))
    both = [keys(x) for x in _comparable(a, v)]
    return backend.current().call("searchsorted", *both, side=side, sorter=sorter)


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    """Test which elements are among others, as `numpy.isin` does; NaN never is."""
    x, y = _comparable(element, test_elements)
    call = backend.current().call
    found = call("isin", keys(x), keys(y))
    number = call("equal", x, x) if not is_ours(x.dtype) else np.equal(x, x)
    found = call("logical_and", found, number)
    return call("logical_not", found) if invert else found


def lexsort(keys_: Any, axis: int = -1) -> Any:
    """Return indices that sort by several keys of one dtype, as `numpy.lexsort`."""
    if axis != -1:
        raise TypeError(f"axis of np.lexsort must be -1 on a GPU; got {axis!r}")
    made = backend.current().call("stack", [keys(x) for x in _comparable(*keys_)])
    return backend.current().call("lexsort", made)


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the sorted unique elements of a whole array, as `numpy.unique` does."""
    if axis is not None or not equal_nan:
        raise TypeError(
            f"axis and equal_nan=False are not supported for unique of {x.dtype} on a"
            " GPU; use x.get()"
        )
    call = backend.current().call
    flat = x.reshape(-1)
    found = call("unique", keys(flat), True, return_inverse, return_counts)
    values = wrap(call("take", raw(flat), found[1]), x.dtype)
    rest = list(found[2:])
    if return_inverse:
        rest[0] = rest[0].reshape(x.shape)
    results = (values, *([found[1]] if return_index else []), *rest)
    return results if len(results) > 1 else values
