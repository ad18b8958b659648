"""Series and DataFrames of our formats: hashing, grouping and joining.

pandas has loops for NumPy's float32 and float64, and takes float16 as float64 where it
hashes, as float32 where it groups. The functions that choose the loops take our
numbers as float64, which holds them all, in the same places. Groups' results have the
dtype that float32's would have in its place: they are rounded once. Where a later
pandas has no such functions, what it does not know raises, as before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .._formats.table import Format
from .._imports import when_imported

_Function = Callable[..., Any]


def register(formats: Mapping[str, Format]) -> None:
    """Have pandas choose loops for numbers of these formats, once it is imported."""
    known = {form.dtype: form for form in formats.values()}

    def hash_in_double(module: ModuleType) -> None:
        _wrap(vars(module), "_ensure_data", lambda own: _widened_after(own, known))

    def join_in_double(module: ModuleType) -> None:
        name = "_convert_arrays_and_get_rizer_klass"
        _wrap(vars(module), name, lambda own: _widened_before(own, known))

    def group_in_double(module: ModuleType) -> None:
        operation = getattr(module, "WrappedCythonOp", None)
        own = getattr(operation, "_call_cython_op", None)
        if operation is not None and own is not None:
            operation._call_cython_op = _grouped(own, known)

    when_imported("pandas.core.algorithms", hash_in_double)
    when_imported("pandas.core.reshape.merge", join_in_double)
    when_imported("pandas.core.groupby.ops", group_in_double)


def _wrap(
    names: dict[str, Any], name: str, wrapper: Callable[[_Function], _Function]
) -> None:
    own = names.get(name)
    if own is not None:
        names[name] = functools.wraps(own)(wrapper(own))


def _widened(x: Any, known: Mapping[Any, Format]) -> Any:
    """Numbers of our formats in float64; all else as it is."""
    ours = isinstance(x, np.ndarray) and x.dtype in known
    return x.astype(np.float64) if ours else x


def _widened_after(own: _Function, known: Mapping[Any, Format]) -> _Function:
    return lambda values: _widened(own(values), known)


def _widened_before(own: _Function, known: Mapping[Any, Format]) -> _Function:
    return lambda left, right: own(_widened(left, known), _widened(right, known))


def _grouped(own: _Function, known: Mapping[Any, Format]) -> _Function:
    @functools.wraps(own)
    def call(self: Any, values: Any, **options: Any) -> Any:
        result = own(self, _widened(values, known), **options)
        form = known.get(values.dtype)
        if (
            form is None
            or result.dtype != np.float64
            or self.how in self.cast_blocklist
            or (not form.has_nan and np.isnan(result).any())
        ):
            return result
        return result.astype(form.dtype)

    return call
