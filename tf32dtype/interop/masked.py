"""Fill values of masked arrays: infinities where there are, as for NumPy's floats.

`numpy.ma` makes its tables when it is imported, from the largest and least finite
numbers of the types that it finds registered then. A masked maximum of infinities
would come out finite, or fail if `numpy.ma` came first. It is not imported for this:
that would double the time that importing this package takes.
"""

from collections.abc import Mapping
from types import ModuleType

import numpy as np

from tf32dtype.format import Format

from .imports import when_imported


def register(formats: Mapping[str, Format]) -> None:
    """Fill with the least or greatest number of each format, Inf if it has it."""
    least = {f.type: -np.inf if f.has_infinity else f.min for f in formats.values()}
    greatest = {f.type: np.inf if f.has_infinity else f.max for f in formats.values()}

    def correct(module: ModuleType) -> None:
        module.max_filler.update(least)
        module.min_filler.update(greatest)

    when_imported("numpy.ma.core", correct)
