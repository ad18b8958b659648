"""Series and DataFrames of our formats: reducing, hashing, grouping and joining.

pandas has loops for NumPy's float32 and float64, and takes float16 as float64 where it
hashes, as float32 where it groups. Where it reduces, it rounds every step to the dtype
of the column, and puts infinities and zeros in the place of NaN. The functions that do
so take our numbers as float64, which holds them all, in the same places. Results have
the dtype that float32's would have in their place: they are rounded once. Functions
that move numbers take them as integers of their size.

A result with NaN of a format that has none stays float64, and a column that a missing
value is put in becomes float64, as one of integers does. Where a later pandas has no
such functions, what it does not know raises, as before.
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
    """Have pandas take our numbers, once it is imported."""
    when_imported("pandas", _teach)


def _teach(pandas: ModuleType) -> None:
    modules = [m for name, m in [*sys.modules.items()] if name.startswith("pandas.")]
    for place, wrapper in _wrappers().items():
        path, _, name = place.rpartition(".")
        try:
            owner = operator.attrgetter(path)(pandas)
            own = getattr(owner, name)
        except AttributeError:  # another pandas
            continue
        wrapped = functools.wraps(own)(wrapper(own))
        setattr(owner, name, wrapped)
        for module in modules:  # those that have it by `from ... import`
            if vars(module).get(name) is own:
                setattr(module, name, wrapped)
    index = pandas.Index
    if hasattr(index, "_engine_types") and hasattr(index, "_get_engine_target"):
        double = index._engine_types[_DOUBLE]
        index._engine_types |= {form.dtype: double for form in formats.values()}


def _wrappers() -> dict[str, Callable[[_Function], _Function]]:
    """What is put around each function of pandas."""

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
    """An array, Index or Series of our formats in float64; all else as it is."""
    dtype: Any = getattr(x, "dtype", None)
    return x if format_of_dtype(dtype) is None else x.astype(_DOUBLE)


def _items(x: Any) -> Any:
    """The items of an array of our formats; all else as it is."""
    ours = isinstance(x, np.ndarray) and format_of_dtype(x.dtype) is not None
    return x.view(f"u{x.dtype.itemsize}") if ours else x


def _rounded(result: Any, dtype: Any) -> Any:
    """What was computed of a column of a dtype in float64, if it is of a format."""
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
    """The largest or smallest numbers: pandas changes the signs of all."""

    def compute(self: Any, method: str) -> Any:
        if format_of_dtype(self.obj.dtype) is None:
            return own(self, method)
        wide = type(self)(_widened(self.obj), self.n, self.keep)
        return own(wide, method).astype(self.obj.dtype)

    return compute


def _block_rounded(own: _Function) -> _Function:
    """To decimals, by NumPy's function: the method of arrays has steps."""

    def round(self: Any, decimals: int) -> Any:
        if format_of_dtype(self.dtype) is None:
            return own(self, decimals)
        return self.make_block_same_class(np.round(self.values, decimals))

    return round


def _format_of_objects(own: _Function) -> _Function:
    """The dtype of objects that are NumPy's floats: pandas makes one of their size."""

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
    """Have pandas check a list that has NaN as it checks an array.

    pandas looks whether an element of a list changes in a column of integers, but not
    of floats.
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
    """A new column of NaN, which has the dtype of the others otherwise."""

    def make(
        self: Any, placement: Any, fill_value: Any = None, use_na_proxy: bool = False
    ) -> Any:
        is_nan = not use_na_proxy and (fill_value is None or fill_value is np.nan)
        if is_nan and any(_lacks_nan(block.dtype) for block in self.blocks):
            fill_value = np.float64(np.nan)
        return own(self, placement, fill_value, use_na_proxy)

    return make
