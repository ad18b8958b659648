"""Series and DataFrames of our formats: hashing, grouping and joining.

pandas has loops for NumPy's float32 and float64, and takes float16 as float64 where it
hashes, as float32 where it groups. The functions that choose the loops take our
numbers as float64, which holds them all, in the same places. Groups' results have the
dtype that float32's would have in its place: they are rounded once. Where a later
pandas has no such functions, what it does not know raises, as before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .._formats.table import format_of_dtype
from .._imports import when_imported

_Function = Callable[..., Any]


def register() -> None:
    """Have pandas choose loops for our numbers, once it is imported."""

    def hash_in_double(module: ModuleType) -> None:
        _wrap(vars(module), "_ensure_data", _widened_after)

    def join_in_double(module: ModuleType) -> None:
        name = "_convert_arrays_and_get_rizer_klass"
        _wrap(vars(module), name, _widened_before)

    def group_in_double(module: ModuleType) -> None:
        operation = getattr(module, "WrappedCythonOp", None)
        own = getattr(operation, "_call_cython_op", None)
        if operation is not None and own is not None:
            operation._call_cython_op = _grouped(own)

    when_imported("pandas.core.algorithms", hash_in_double)
    when_imported("pandas.core.reshape.merge", join_in_double)
    when_imported("pandas.core.groupby.ops", group_in_double)


def _wrap(
    names: dict[str, Any], name: str, wrapper: Callable[[_Function], _Function]
) -> None:
    own = names.get(name)
    if own is not None:
        names[name] = functools.wraps(own)(wrapper(own))


def _widened(x: Any) -> Any:
    """Numbers of our formats in float64; all else as it is."""
    ours = isinstance(x, np.ndarray) and format_of_dtype(x.dtype) is not None
    return x.astype(np.float64) if ours else x


def _widened_after(own: _Function) -> _Function:
    return lambda values: _widened(own(values))


def _widened_before(own: _Function) -> _Function:
    return lambda left, right: own(_widened(left), _widened(right))


def _grouped(own: _Function) -> _Function:
    @functools.wraps(own)
    def call(self: Any, values: Any, **options: Any) -> Any:
        result = own(self, _widened(values), **options)
        form = format_of_dtype(values.dtype)
        if (
            form is None
            or result.dtype != np.float64
            or self.how in self.cast_blocklist
            or (not form.has_nan and np.isnan(result).any())
        ):
            return result
        return result.astype(form.dtype)

    return call
