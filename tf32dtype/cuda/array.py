"""The array class, and its memory."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .. import _core

#: unsigned dtypes that elements are stored as, by their size
STORAGE = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}


class ndarray(cupy.ndarray):  # type: ignore[misc]
    """An array on a GPU whose dtype is of this package, or float32."""


def is_ours(dtype: Any) -> bool:
    """Whether a dtype is one of this package's formats."""
    return np.dtype(dtype).type in _core.scalar_types


def raw(x: Any) -> Any:
    """The elements' storage: a plain CuPy array of unsigned integers, a view."""
    return x.view(STORAGE[x.dtype.itemsize], cupy.ndarray)


def wrap(storage: Any, dtype: Any) -> ndarray:
    """Storage, or a float32 array, as an array of a dtype: a view."""
    return storage.view(np.dtype(dtype), ndarray)  # type: ignore[no-any-return]


def empty(shape: Any, dtype: Any) -> ndarray:
    """Memory as it is; C order."""
    dtype = np.dtype(dtype)
    return wrap(cupy.empty(shape, STORAGE[dtype.itemsize]), dtype)
