"""Make `np.isdtype` accept the formats, for the libraries that call it.

`np.isdtype` looks for a type in two tables of NumPy, which have no public function to
add types. SciPy, scikit-learn and xarray refuse dtypes that `np.isdtype` refuses. See
https://github.com/numpy/numpy/issues/27545 about a better method.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import numpy as np

from .._formats.table import Format


def register(formats: Mapping[str, Format]) -> None:
    """Add the types that `np.isdtype` does not know."""
    unknown = [form.type for form in formats.values() if not _is_known(form.type)]
    if not unknown:
        return
    try:
        tables = import_module("numpy._core._type_aliases")
        # Insert before NumPy's own types, because some code takes the last one for the
        # widest. Change this table before the other one: with only the other table, the
        # types would be known, but not as floats.
        tables.sctypes["float"][:0] = unknown
        tables.allTypes.update({f"tf32dtype.{t.__name__}": t for t in unknown})
    except (ImportError, AttributeError, KeyError, TypeError):
        return  # NumPy has other tables: it refuses the types, as without this


def _is_known(scalar: type[np.generic]) -> bool:
    try:
        return np.isdtype(scalar, "numeric")
    except TypeError:
        return False
