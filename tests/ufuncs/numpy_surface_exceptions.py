"""Results of our types that differ from float16's, and the reason: NumPy decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Exempt:
    """A result that is not float16's, and the reason.

    The outcome is a dtype's name, or "raises NAME". "bits" is for our bits in a void
    dtype. "own" is for a dtype by the rule with another value, and "other" for another
    dtype, too.
    """

    outcome: str
    reason: str
    formats: tuple[str, ...] = ()  # all, if empty


_LISTED: dict[Exempt, str] = {
    Exempt("own", "is about the format's own spacing"): "ufunc.nextafter ufunc.spacing",
    Exempt("float16", "names float16"): "np.float16",
    Exempt("bits", "a .npy header has no name for our dtypes: td.save, td.load"): """
        np.save np.load np.savez np.savez_compressed np.lib.format.open_memmap
        np.lib.format.descr_to_dtype np.lib.format.write_array""",
    Exempt(
        "raises ValueError", "PEP 3118 has no code for our dtypes: a.view('u2')"
    ): """
        ndarray.data ndarray.__buffer__""",
    Exempt(
        "raises BufferError",
        "DLPack has no code for it; before NumPy 2.5 for none of ours",
        ("tf32",) if hasattr(np.dtypes, "register_dlpack_dtype") else (),
    ): """
        ndarray.__dlpack__""",
    Exempt("other", "counts in uint64, as td.ulp_distance does"): """
        np.testing.assert_array_max_ulp""",
    Exempt(
        "raises ValueError", "has the machine's byte order alone", ("bfloat16", "tf32")
    ): """
        np.dtype:f(T).newbyteorder('>').itemsize>0""",
    Exempt(
        "other", "np.ma takes Inf, which the format has not", ("float8_e4m3fn",)
    ): """
        np.ma.maximum_fill_value np.ma.minimum_fill_value""",
}
# Keys are names, or "name:expression" if only this expression is an exception.
EXCEPTIONS = {key: exempt for exempt, text in _LISTED.items() for key in text.split()}
