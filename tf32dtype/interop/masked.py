"""Correct the fill values, sums and means of masked arrays of the formats.

Fill values are infinities if the format has them, as for NumPy's floats. When
`numpy.ma` is imported, it makes its tables from the largest and smallest finite values
of all registered types. With these tables, a masked maximum of infinities would be
finite. If `numpy.ma` were imported before this package, the maximum would fail. This
module does not import `numpy.ma`, which would double the import time of this package.

`numpy.ma` computes a mean from a rounded sum. Here it computes means in float64, and
the result is rounded once. Sums of a format without zero, which cannot be filled, are
computed in the same manner. If elements are masked, variances and standard deviations
are float64, as for `float16`; they are computed from float64 values.
"""

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .._base.caller import cast
from .._base.imports import when_imported
from .._formats.table import Format
from .._functions.averages import FORMATS, rounded


def register(formats: Mapping[str, Format]) -> None:
    """Set fill values to Inf or, without Inf, to the smallest or largest number."""
    least = {f.type: -np.inf if f.has_infinity else f.min for f in formats.values()}
    greatest = {f.type: np.inf if f.has_infinity else f.max for f in formats.values()}

    def correct(module: ModuleType) -> None:
        module.max_filler.update(least)
        module.min_filler.update(greatest)
        for name in ("sum", "mean", "var", "std"):
            own = getattr(module.MaskedArray, name)
            setattr(module.MaskedArray, name, _in_double(own, module))

    when_imported("numpy.ma.core", correct)


def _in_double(own: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    """Return a method of masked arrays that computes in float64 for the formats."""
    name = own.__name__

    @functools.wraps(own)
    def method(
        self: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        target = self.dtype if dtype is None else np.dtype(dtype)
        form = FORMATS.get(target)
        is_whole = module.getmask(self) is module.nomask
        if form is not None and is_whole and name == "std":
            # numpy.ma would take the root of the variance, which is rounded.
            result = np.ndarray.std(self, axis, dtype, out, *args, **kwargs)
            return result if result is out else result[()]
        if form is None or is_whole or (name == "sum" and form.has_zero):
            return own(self, axis, dtype, out, *args, **kwargs)
        wide = cast(self, target).astype(np.float64)
        if name in ("var", "std"):
            return own(wide, axis, None, out, *args, **kwargs)
        result = own(wide, axis, None, None, *args, **kwargs)
        if isinstance(result, module.MaskedArray) and result is not module.masked:
            mask = module.getmask(result)
            numbers = result.data.copy()
            numbers[mask] = 1  # every format has 1
            result = rounded(numbers, target).view(type(self))
            result._mask = mask
            result._update_from(self)
        else:
            result = rounded(result, target)
        if out is None:
            return result
        if isinstance(out, module.MaskedArray):
            out[...] = result
        else:
            out.flat = np.nan if result is module.masked else result
        return out

    return method
