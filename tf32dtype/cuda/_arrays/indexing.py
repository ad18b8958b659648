"""Read and write elements of arrays, by CuPy's indexing of their storage."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .._runtime import backend
from .._runtime.storage import STORAGE, is_ours, raw
from . import casts
from .ndarray import wrap


def is_basic(key: Any) -> bool:
    """Return whether indexing with a key gives a view."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, slice)
        or (isinstance(part, int | np.integer) and not isinstance(part, bool))
        for part in parts
    )


def get(x: Any, key: Any) -> Any:
    """Return x[key] for a key with arrays, masks or lists."""
    call = backend.current().call
    return wrap(call("ndarray.__getitem__", raw(x), _indices(key)), x.dtype)


def _indices(key: Any) -> Any:
    """Replace the empty lists of a key by integer arrays, which NumPy does not do."""
    if isinstance(key, tuple):
        return tuple(_indices(part) for part in key)
    return (
        np.zeros(np.shape(key), np.intp) if isinstance(key, list) and not key else key
    )


def set(x: Any, key: Any, value: Any) -> None:
    """Assign x[key] = value, with the value cast once to the dtype of x."""
    if isinstance(value, np.ndarray) and value.ndim:
        if value.size == 1:
            value = value.reshape(())[()]
        elif key is Ellipsis or (isinstance(key, slice) and key == slice(None)):
            x.set(value)  # like CuPy, this requires the same dtype and shape
            return
    target, storage = raw(x), as_elements(value, x.dtype)
    if is_basic(key):
        target, key = target[key], ...
    storage = apart(storage, target, in_place=key is ...)
    backend.current().call("ndarray.__setitem__", target, _indices(key), storage)


def apart(x: Any, target: Any, *, in_place: bool = False) -> Any:
    """Return an array, or a copy if it shares memory with the target of a write.

    CuPy copies in the order of memory. With `in_place`, each element is written where
    it is read.
    """
    if not isinstance(x, cupy.ndarray) or not cupy.may_share_memory(x, target):
        return x
    same = x.data.ptr == target.data.ptr and x.strides == target.strides
    if in_place and same and x.shape == target.shape:
        return x
    return backend.current().call("ndarray.copy", x)


def _cast_on_host(value: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):  # a GPU has no flags
        return np.asarray(value, dtype)


def on_host(value: Any, dtype: Any) -> Any:
    """Cast one or more values on the host, and return their storage."""
    return _cast_on_host(value, dtype).view(STORAGE[np.dtype(dtype).itemsize])


def as_elements(value: Any, dtype: Any) -> Any:
    """Cast a value to a dtype, and return its storage.

    The storage of an array or list is on the device; that of a number is a NumPy
    scalar. If the dtype is neither a format nor float32, return values of the dtype
    instead of storage.

    Raises
    ------
    TypeError
        If `value` is a NumPy array: arrays are not copied from the host implicitly.
    """
    dtype = np.dtype(dtype)
    stored = is_ours(dtype) or dtype == np.float32
    if isinstance(value, cupy.ndarray):
        if value.dtype != dtype:
            value = casts.cast(value, dtype)
        return raw(value) if stored else value.view(dtype, cupy.ndarray)
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(
            f"value must be on the GPU; got a NumPy array of shape {value.shape}. Use"
            " tf32dtype.cuda.asarray"
        )
    number = _cast_on_host(value, dtype)
    if number.ndim:
        return backend.current().put(
            number.view(STORAGE[dtype.itemsize]) if stored else number
        )
    return number.view(STORAGE[dtype.itemsize])[()] if stored else number[()]


__all__ = ["apart", "as_elements", "get", "is_basic", "set"]
