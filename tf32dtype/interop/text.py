"""Make `np.genfromtxt` round text to the formats once, as `np.loadtxt` does.

`np.genfromtxt` converts text to float64 first, except for types in its table of
converters. The class with this table has a method to add types. They are added after
the converter for strings, so a column gets one of these types only on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import numpy as np

from .._formats.table import Format


def register(formats: Mapping[str, Format]) -> None:
    """Add each format, with NaN for missing values, as for NumPy's floats."""
    rows = [(form.type, form.type, np.nan) for form in formats.values()]
    try:
        converter = import_module("numpy.lib._iotools").StringConverter
        converter.upgrade_mapper(rows)
    except (ImportError, AttributeError):
        return  # another NumPy, which rounds text to float64 first
