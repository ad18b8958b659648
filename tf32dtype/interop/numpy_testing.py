"""Make NumPy's assertions in ulps support the formats.

`np.testing.assert_array_max_ulp` and the message of `assert_array_almost_equal_nulp`
reinterpret the bits of float16, float32 and float64, and reject other dtypes. If a
later version of NumPy lacks the changed function, they still reject other dtypes.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

from .._base.imports import when_imported
from .._formats.table import format_of_dtype


def register() -> None:
    """Make NumPy's assertions accept the formats, once they are imported."""
    when_imported("numpy.testing._private.utils", _teach)


def _teach(module: ModuleType) -> None:
    own = vars(module).get("nulp_diff")
    if own is None:
        return

    @functools.wraps(own)
    def nulp_diff(x: Any, y: Any, dtype: Any = None) -> Any:
        a, b = (np.asarray(operand, dtype=dtype) for operand in (x, y))
        has_format = any(format_of_dtype(z.dtype) is not None for z in (a, b))
        if not has_format or a.shape != b.shape:
            return own(x, y, dtype)
        from .._measures.ulps import ulp_distance  # imported only if needed

        return ulp_distance(a, b)

    vars(module)["nulp_diff"] = nulp_diff
