"""Reduce, hash, group and join Series and DataFrames of the formats.

pandas has code for NumPy's float32 and float64. It converts float16 to float64 for
hashing and to float32 for grouping. In reductions it rounds each step to the dtype of
the column, and replaces NaN by infinities and zeros. With this module, the same
functions of pandas convert the formats to float64, which represents all their values
exactly. If float32 input would give a float32 result, the result is rounded once to the
format. Functions that only move values take them as integers of the same size.

A result with NaN stays float64 if the format has no NaN. If you put a missing value in
a column of such a format, the column becomes float64, as a column of integers does. If
a later version of pandas lacks these functions, unsupported operations raise as before.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from .._base.caller import cast
from .._base.imports import when_imported
from .._formats.table import format_of_dtype, formats

_Function = Callable[..., Any]
_DOUBLE = np.dtype(np.float64)


def register() -> None:
    """Make pandas support the formats, once it is imported."""
    when_imported("pandas", _teach)


def _teach(pandas: ModuleType) -> None:
    modules = [m for name, m in [*sys.modules.items()] if name.startswith("pandas.")]
    for place, wrapper in _wrappers().items():
        path, _, name = place.rpartition(".")
        try:
            owner = operator.attrgetter(path)(pandas)
            own = getattr(owner, name)
        except AttributeError:  # another version of pandas
            continue
        wrapped = functools.wraps(own)(wrapper(own))
        setattr(owner, name, wrapped)
        for module in modules:  # modules that use `from ... import`
            if vars(module).get(name) is own:
                setattr(module, name, wrapped)
    index = pandas.Index
    if hasattr(index, "_engine_types") and hasattr(index, "_get_engine_target"):
        double = index._engine_types[_DOUBLE]
        index._engine_types |= {form.dtype: double for form in formats.values()}


def _wrappers() -> dict[str, Callable[[_Function], _Function]]:
    """Return the wrapper for each changed function of pandas."""

    def of(module: str, names: str) -> Iterable[str]:
        return (f"{module}.{name}" for name in names.split())

    reductions = """
        nanany nanall nansum nanmean nanmedian nanstd nanvar nansem nanmin nanmax
        nanargmax nanargmin nanskew nankurt nanprod na_accum_func
    """
    movers = "pad_inplace pad_2d_inplace backfill_inplace backfill_2d_inplace"
    return {
        **dict.fromkeys(of("core.nanops", reductions), _reduced),
        "core.groupby.ops.WrappedCythonOp._call_cython_op": _grouped,
        "core.groupby.ops.BaseGrouper._reduceat_aggregate": _grouped,
        "core.algorithms._ensure_data": _widened_after,
        "core.indexes.base.Index._get_engine_target": _widened_after,
        "core.reshape.merge._convert_arrays_and_get_rizer_klass": _widened_before,
        "core.methods.selectn.SelectNSeries.compute": _selected,
        "core.reshape.tile._preprocess_for_cut": _widened_after,
        "core.internals.blocks.Block.round": _block_rounded,
        "_libs.groupby.group_quantile": _widened_before,
        **dict.fromkeys(of("_libs.algos", movers), _moved),
        "_libs.reshape.unstack": _moved,
        "_libs.lib.maybe_convert_objects": _format_of_objects,
        "core.dtypes.cast.ensure_dtype_can_hold_na": _double_for_nan,
        "core.dtypes.cast.np_can_hold_element": _no_nan_held,
        "core.internals.managers.BlockManager._make_na_block": _nan_in_double,
        "core.algorithms.diff": _widened_for_nan,
        "core.dtypes.missing._array_equivalent_float": _widened_before,
        "core.util.hashing._hash_ndarray": _widened_before,
    }


def _lacks_nan(dtype: Any) -> bool:
    form = format_of_dtype(dtype)
    return form is not None and not form.has_nan


def _widened(x: Any) -> Any:
    """Return an array, Index or Series of a format in float64; others unchanged."""
    dtype: Any = getattr(x, "dtype", None)
    return x if format_of_dtype(dtype) is None else x.astype(_DOUBLE)


def _items(x: Any) -> Any:
    """View an array of a format as unsigned integers; return others unchanged."""
    ours = isinstance(x, np.ndarray) and format_of_dtype(x.dtype) is not None
    return x.view(f"u{x.dtype.itemsize}") if ours else x


def _rounded(result: Any, dtype: Any) -> Any:
    """Round a float64 result to the format of a column; return others unchanged."""
    form = format_of_dtype(dtype)
    if (
        form is None
        or getattr(result, "dtype", object) != _DOUBLE  # not None, which is float64
        or (not form.has_nan and np.isnan(result).any())
    ):
        return result
    return cast(result, form.dtype)


def _widened_after(own: _Function) -> _Function:
    return lambda *args: _widened(own(*args))


def _widened_before(own: _Function) -> _Function:
    return _with_arrays(own, _widened)


def _moved(own: _Function) -> _Function:
    return _with_arrays(own, _items)


def _with_arrays(own: _Function, change: Callable[[Any], Any]) -> _Function:
    def call(*args: Any, **options: Any) -> Any:
        changed = {name: change(x) for name, x in options.items()}
        return own(*map(change, args), **changed)

    return call


def _reduced(own: _Function) -> _Function:
    def call(values: Any, *args: Any, **options: Any) -> Any:
        result = own(_widened(values), *args, **options)
        return _rounded(result, getattr(values, "dtype", None))

    return call


def _grouped(own: _Function) -> _Function:
    def call(self: Any, values: Any, *args: Any, **options: Any) -> Any:
        result = own(self, _widened(values), *args, **options)
        if getattr(self, "how", None) in getattr(self, "cast_blocklist", ()):
            return result
        return _rounded(result, values.dtype)

    return call


def _selected(own: _Function) -> _Function:
    """Select the largest or smallest values in float64, as pandas negates them all."""

    def compute(self: Any, method: str) -> Any:
        if format_of_dtype(self.obj.dtype) is None:
            return own(self, method)
        wide = type(self)(_widened(self.obj), self.n, self.keep)
        return own(wide, method).astype(self.obj.dtype)

    return compute


def _block_rounded(own: _Function) -> _Function:
    """Round to decimals by NumPy's function; the array method rounds several times."""

    def round(self: Any, decimals: int) -> Any:
        if format_of_dtype(self.dtype) is None:
            return own(self, decimals)
        return self.make_block_same_class(np.round(self.values, decimals))

    return round


def _format_of_objects(own: _Function) -> _Function:
    """Convert an object array of scalars of a format to that format."""

    def convert(objects: Any, *args: Any, **options: Any) -> Any:
        first = objects.flat[0] if objects.size else None
        if isinstance(first, np.floating) and first.dtype != _DOUBLE:
            types = {type(x) for x in objects.flat}
            dtypes = [np.dtype(t) for t in types if issubclass(t, np.floating)]
            if len(dtypes) == len(types) and any(map(format_of_dtype, dtypes)):
                return objects.astype(np.result_type(*dtypes))
        return own(objects, *args, **options)

    return convert


def _double_for_nan(own: _Function) -> _Function:
    return lambda dtype: _DOUBLE if _lacks_nan(dtype) else own(dtype)


def _widened_for_nan(own: _Function) -> _Function:
    def call(values: Any, *args: Any, **options: Any) -> Any:
        wide = _widened(values) if _lacks_nan(values.dtype) else values
        return own(wide, *args, **options)

    return call


def _no_nan_held(own: _Function) -> _Function:
    """Make pandas check a list with NaN as it checks an array with NaN.

    For a list, pandas checks only in columns of integers whether an element would
    change, but not in columns of floats.
    """

    def hold(dtype: Any, element: Any) -> Any:
        if not _lacks_nan(dtype):
            return own(dtype, element)
        if isinstance(element, list | tuple):
            numbers = np.asarray(element)
            if numbers.dtype.kind == "f" and np.isnan(numbers).any():
                element = numbers
        with np.errstate(invalid="ignore"):
            return own(dtype, element)

    return hold


def _nan_in_double(own: _Function) -> _Function:
    """Make a new column of NaN in float64, not in a format without NaN."""

    def make(
        self: Any, placement: Any, fill_value: Any = None, use_na_proxy: bool = False
    ) -> Any:
        is_nan = not use_na_proxy and (fill_value is None or fill_value is np.nan)
        if is_nan and any(_lacks_nan(block.dtype) for block in self.blocks):
            fill_value = np.float64(np.nan)
        return own(self, placement, fill_value, use_na_proxy)

    return make
