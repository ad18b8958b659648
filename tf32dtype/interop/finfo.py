"""`np.finfo` of formats that NumPy's formulas do not hold for.

It takes half of eps for the distance from 1 to the next smaller number, which is 0 in
formats where 1 is the smallest normal number; ten, which not every format holds, for
the base of the resolution; and negates the minimum to print it. What it computes, it
keeps in the one object that it makes of a dtype: the right values are put there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._formats.table import Format


def register(formats: Mapping[str, Format]) -> None:
    """Correct what NumPy says of these formats."""
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
                str(info)  # kept, too
