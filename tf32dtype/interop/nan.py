"""NumPy's functions that put 0 in the place of NaN, of a format that has no zero.

`nansum`, `nancumsum`, `nanmean`, `nanvar` and `nanstd` would put NaN there, and so
take it into the sum that should leave it out.
"""

import functools
import sys
from typing import Any

import numpy as np

_MODULE = "numpy.lib._nanfunctions_impl"
_NAME = "_replace_nan"


def register(without_zero: type) -> None:
    """Let them refuse NaN of a dtype; what has none they compute as it is."""
    module = sys.modules.get(_MODULE)
    own = getattr(module, _NAME, None)
    if own is None:
        return

    @functools.wraps(own)
    def replace(a: Any, value: Any) -> Any:
        x = np.asanyarray(a)
        if x.dtype.type is not without_zero or value != 0:
            return own(a, value)
        nan = np.isnan(x)
        if nan.any():
            raise TypeError(
                f"{x.dtype} has no zero to put in the place of NaN: use"
                " np.sum(a, where=~np.isnan(a)), or np.mean and the like"
            )
        return np.array(x, subok=True, copy=True), nan

    setattr(module, _NAME, replace)
