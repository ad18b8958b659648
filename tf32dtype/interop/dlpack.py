"""DLPack's codes: what other array libraries call the formats.

NumPy 2.5 has a place for them; before it, only NumPy's own dtypes are exchanged.
The codes are those of DLPack 1.1, dlpack.h. It has none for tf32, and FP6 and FP4
are packed there, while an item here is a byte.
"""

from collections.abc import Mapping

import numpy as np

from .._formats.table import Format

CODES = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}


def register(formats: Mapping[str, Format]) -> None:
    """Tell NumPy the codes, where it asks for them."""
    register_dtype = getattr(np.dtypes, "register_dlpack_dtype", None)
    if register_dtype is None:
        return
    for name, code in CODES.items():
        form = formats[name]
        try:
            register_dtype((code, form.bits), form.dtype)
        except ValueError:
            # Some other package's type is what NumPy makes of this code; ours
            # is exported under it all the same.
            continue
