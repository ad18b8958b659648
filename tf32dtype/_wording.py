"""How messages name what was given, and pages of the documentation."""

from __future__ import annotations

import reprlib
from typing import Any

from . import _version
from ._caller import warn

_LONGEST = 100  # characters of a text, or of one thing's repr
_MOST = 6  # things in a list

#: The pages that messages name, by their paths on the site.
PAGES = {
    "Accuracy": "benchmarks/accuracy",
    "Arithmetic": "how_to/arithmetic",
    "BLAS": "how_to/blas",
    "Blocks": "concepts/blocks",
    "Command line": "reference/command",
    "Files": "how_to/files",
    "Formats": "concepts/formats",
    "Precision": "how_to/precision",
    "Report": "how_to/report",
    "Tensor cores": "concepts/tensor_cores",
    "Terminal": "how_to/terminal",
    "Tune": "how_to/tune",
}

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _LONGEST
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _MOST


def brief(value: Any) -> str:
    """A value in an error: its repr, or what it is where that would be long.

    Parameters
    ----------
    value : object
        What was given.

    Returns
    -------
    str
        One short line; of anything with a dtype and a shape (arrays of NumPy, CuPy and
        PyTorch, of blocks and of tiles) these, but not its values.

    Examples
    --------
    >>> brief(np.zeros((2, 3), np.float32)), brief("bf17"), brief([1] * 1000)
    ('an array of float32, shape (2, 3)', "'bf17'", '[1, 1, 1, 1, 1, 1, ...]')
    """
    if isinstance(value, type):
        return repr(value)
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 0:
        what = dtype
        if hasattr(value, "scale_format"):
            kind = "blocks" if hasattr(value, "block_size") else "tiles"
            what = f"{value.format} {kind}"
        return f"an array of {what}, shape {tuple(shape)}"
    return " ".join(_short.repr(value).split())


def page(name: str) -> str:
    """Return the address of a page of the documentation, or words that name the page.

    Parameters
    ----------
    name : str
        One of `PAGES`.

    Returns
    -------
    str
        An address once `DOCUMENTATION` of _version.py holds that of the site.

    Examples
    --------
    >>> page("Precision")
    'the page "Precision" of the documentation'
    """
    path = PAGES[name]
    if _version.DOCUMENTATION:
        return f"{_version.DOCUMENTATION.rstrip('/')}/{path}.html"
    return f'the page "{name}" of the documentation'


def warn_of_raw_bytes(array: Any, name: str) -> None:
    """Tell who reads items without a type what they may be.

    Parameters
    ----------
    array : ndarray or scalar
        What was read.
    name : str
        Where from.
    """
    dtype = array.dtype
    if dtype.kind == "V" and not dtype.isbuiltin and dtype.names is None:
        example = {1: "float8_e4m3fn", 2: "bfloat16", 4: "tf32"}.get(dtype.itemsize)
        cure = f" (td.{example}, perhaps: array.view(td.{example}))" if example else ""
        warn(
            f"{name} holds raw items of {dtype.itemsize} bytes, as NumPy and h5py write"
            f" arrays of dtypes that they do not know: view it as what it is{cure};"
            " td.save and td.hdf5.save keep the dtype"
        )
