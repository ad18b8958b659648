"""`np.genfromtxt` rounds text to the formats once, as `np.loadtxt` does.

It takes every float for one of 64 bits, except the types that its table of converters
has. The class that holds the table has a method to enter them. They come after what
takes any text, so that no column becomes one of them without its dtype being given.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import numpy as np

from .._formats.table import Format


def register(formats: Mapping[str, Format]) -> None:
    """Enter each format with NaN for what is missing, as NumPy's floats have it."""
    rows = [(form.type, form.type, np.nan) for form in formats.values()]
    try:
        converter = import_module("numpy.lib._iotools").StringConverter
        converter.upgrade_mapper(rows)
    except (ImportError, AttributeError):
        return  # another NumPy: it rounds text to float64 first, as it would anyhow
