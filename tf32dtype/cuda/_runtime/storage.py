"""How an array's elements are stored, and how CuPy's own functions take them."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ... import _core
from ..._formats.table import find_dtype

#: unsigned dtypes that elements are stored as, by their size
STORAGE: dict[int, Any] = {n: np.dtype(f"u{n}") for n in (1, 2, 4)}
_TYPES = frozenset(_core.scalar_types)


def is_ours(dtype: Any) -> bool:
    """Whether a dtype is one of this package's formats."""
    found = dtype if isinstance(dtype, np.dtype) else find_dtype(dtype)
    return found.type in _TYPES


def no_kernel(name: str, dtype: Any) -> TypeError:
    """Return the error of a function that has no kernel for arrays of a dtype."""
    return TypeError(
        f"{name} has no GPU kernel for {dtype}; use x.astype(np.float32) (CuPy) or"
        " x.get() (NumPy)"
    )


def raw(x: Any) -> Any:
    """The elements' storage: a plain CuPy array of unsigned integers, a view."""
    return x.view(STORAGE[x.dtype.itemsize], cupy.ndarray)


def plain(x: Any) -> Any:
    """Return the elements as CuPy's own functions take them.

    The result is a view: a plain array of a NumPy dtype, or storage if the dtype of `x`
    is ours.
    """
    return raw(x) if is_ours(x.dtype) else cupy.ndarray.view(x, x.dtype, cupy.ndarray)
