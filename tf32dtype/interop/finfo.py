"""Correct `np.finfo` for formats that NumPy's formulas do not fit.

NumPy assumes that the distance from 1 to the next smaller number is half of eps. This
gives 0 in formats where 1 is the smallest normal number. NumPy also computes the
resolution from the number ten, which some formats cannot represent, and negates the
minimum to print it. `np.finfo` caches the results in one object per dtype; this module
writes the correct values to that object.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._formats.table import Format


def register(formats: Mapping[str, Format]) -> None:
    """Correct the cached `np.finfo` objects of these formats."""
    for form in formats.values():
        info = np.finfo(form.dtype)
        below = max(form.eps / 2, form.smallest_subnormal)
        facts = {
            "epsneg": form.type(below),
            "resolution": form.type(10.0**-form.decimal_digits),
            "negep": int(np.log2(below)),
        }
        vars(info).update(facts)
        if not form.signed:
            with np.errstate(invalid="ignore"):
                str(info)  # this string is cached too
