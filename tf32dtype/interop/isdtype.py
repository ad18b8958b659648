"""`np.isdtype` knows the formats, and with it what asks it before it takes an array.

It looks for a type in two tables of NumPy's, which no package has a function to enter.
SciPy, scikit-learn and xarray refuse what it refuses. https://github.com/numpy/numpy/issues/27545
is about a better way.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import numpy as np

from .._formats.table import Format


def register(formats: Mapping[str, Format]) -> None:
    """Enter the types that `np.isdtype` does not know by itself."""
    unknown = [form.type for form in formats.values() if not _is_known(form.type)]
    if not unknown:
        return
    try:
        tables = import_module("numpy._core._type_aliases")
        # Before NumPy's own: what takes the last for the widest still finds that. And
        # before the other table, which alone would make them known, and no floats.
        tables.sctypes["float"][:0] = unknown
        tables.allTypes.update({f"tf32dtype.{t.__name__}": t for t in unknown})
    except (ImportError, AttributeError, KeyError, TypeError):
        return  # another NumPy's tables: it refuses the types, as it would anyhow


def _is_known(scalar: type[np.generic]) -> bool:
    try:
        return np.isdtype(scalar, "numeric")
    except TypeError:
        return False
