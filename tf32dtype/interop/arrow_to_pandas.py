"""Columns of the formats in DataFrames that Arrow makes.

The protocol requires an extension array. This module uses pandas' own extension array
around a NumPy array. Such a column prints and computes like any other, and
`df.astype({"x": bfloat16})` makes a plain column of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pandas.api.extensions import ExtensionDtype
from pandas.arrays import NumpyExtensionArray


class FromArrow(ExtensionDtype):
    """A converter for pyarrow, in the form of a pandas dtype; no column has this dtype.

    Parameters
    ----------
    convert : callable
        Converts an Arrow array to a new ndarray, whose dtype the column gets.
    """

    name = "tf32dtype"
    type = np.floating

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert

    def __from_arrow__(self, array: Any) -> NumpyExtensionArray:
        return NumpyExtensionArray(self._convert(array))
