"""Columns of the formats in what Arrow makes for pandas.

The protocol wants an extension array. pandas' own around an array of NumPy is one; a
column of it prints and computes like any, and `df.astype({"x": bfloat16})` is without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pandas.api.extensions import ExtensionDtype
from pandas.arrays import NumpyExtensionArray


class FromArrow(ExtensionDtype):
    """What pyarrow asks, by pandas' protocol, to make a column: no dtype of any.

    Parameters
    ----------
    convert : callable
        Makes a new ndarray of an Arrow array. The column has its dtype.
    """

    name = "tf32dtype"
    type = np.floating

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert

    def __from_arrow__(self, array: Any) -> NumpyExtensionArray:
        return NumpyExtensionArray(self._convert(array))
