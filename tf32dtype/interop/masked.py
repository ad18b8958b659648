"""Masked arrays of our formats: what they are filled with, their sums and means.

They fill with infinities where there are, as for NumPy's floats. `numpy.ma` makes its
tables when it is imported, from the largest and least finite numbers of the types that
it finds registered then. A masked maximum of infinities would come out finite, or fail
if `numpy.ma` came first. It is not imported for this: that would double the time that
importing this package takes.

Means are `numpy.ma`'s own in float64, rounded once: it divides a sum that is rounded.
So are sums of a format that has no zero to fill with. Variances and deviations, which
are float64 where something is masked, of `float16` too, are computed from float64.
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
    """Fill with the least or greatest number of each format, Inf if it has it."""
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
    """A method of masked arrays, which for our formats computes in float64."""
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
            # Not the root of the variance, which is rounded.
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
            numbers[mask] = 1  # which every format has
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
