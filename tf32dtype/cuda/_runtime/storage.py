"""The storage of an array's elements, and views of it for CuPy's own functions."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ... import _core
from ..._formats.table import find_dtype

#: Unsigned dtypes that store elements, by their size in bytes.
STORAGE: dict[int, Any] = {n: np.dtype(f"u{n}") for n in (1, 2, 4)}
_TYPES = frozenset(_core.scalar_types)


def is_ours(dtype: Any) -> bool:
    """Return whether a dtype is one of this package's formats."""
    found = dtype if isinstance(dtype, np.dtype) else find_dtype(dtype)
    return found.type in _TYPES


def no_kernel(name: str, dtype: Any) -> TypeError:
    """Return the error of a function that has no kernel for arrays of a dtype."""
    return TypeError(
        f"{name} has no GPU kernel for {dtype}; use x.astype(np.float32) (CuPy) or"
        " x.get() (NumPy)"
    )


def raw(x: Any) -> Any:
    """Return a view of the elements' storage, a plain array of unsigned integers."""
    return x.view(STORAGE[x.dtype.itemsize], cupy.ndarray)


def plain(x: Any) -> Any:
    """Return a view of the elements that CuPy's own functions accept.

    The view is a plain array: storage if the dtype of `x` is a format, otherwise of the
    same dtype.
    """
    return raw(x) if is_ours(x.dtype) else cupy.ndarray.view(x, x.dtype, cupy.ndarray)
