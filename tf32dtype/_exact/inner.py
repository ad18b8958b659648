"""NumPy's own float64 products, whatever precision the caller has set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core

Array = NDArray[Any]


def float64_matmul(a: Array, b: Array, out: Array) -> None:
    """Compute a @ b by NumPy, outside of all scopes of `matmul_precision`."""
    variable = _core.precision_variable
    token = variable.set((*variable.get(), _core.PrecisionScope(None, None)))
    _core.publish_precision()
    try:
        np.matmul(a, b, out=out)
    finally:
        variable.reset(token)
        del token  # a traceback would keep the scopes around this call
        _core.publish_precision()


def rounds_as_usual() -> bool:
    """Return whether no scope of `arithmetic` rounds float64 to fewer bits."""
    return bool((np.array([1.0]) + 2.0**-52)[0] > 1.0)
