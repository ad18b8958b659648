"""Items without a type, and the text that names their format.

`np.save`, h5py and zarr 2 know no type for arrays of ml_dtypes: they store items of so
many bytes. Some writers name the format next to them:

- Keras: the HDF5 attribute "dtype", "bfloat16" (its class `H5IOStore`);
- Zarr: the same attribute, which xarray too has for types that a file cannot hold.
  TensorStore names the format as the data type itself, which needs nothing of this.

`.npy` and `.npz` files have no place for it, and their writers agree on none: a JSON
file of the same name is read, ``{"dtype": "bfloat16"}`` next to a `.npy` file, and
``{"name": "bfloat16"}`` or ``{"name": {"dtype": "bfloat16"}}`` next to a `.npz` file.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._formats.table import Format, formats

#: The attribute of Keras, and the key in JSON.
ATTRIBUTE = "dtype"
_MOST_JSON = 1 << 20  # bytes


def is_opaque(dtype: np.dtype[Any]) -> bool:
    """Whether items are bytes without a type."""
    return dtype.kind == "V" and not dtype.isbuiltin and dtype.names is None


def format_named(text: object, dtype: np.dtype[Any]) -> Format | None:
    """Return the format that a text names for items of a dtype.

    None if the items have a type, or the text names no format of their size.
    """
    if not is_opaque(dtype) or not isinstance(text, str):
        return None
    form = formats.get(text)
    return form if form is not None and form.itemsize == dtype.itemsize else None


def as_named(array: NDArray[Any], text: object) -> NDArray[Any]:
    """Return the array in the format that a text names, or as it is."""
    form = format_named(text, array.dtype)
    return array if form is None else array.view(form.dtype)


class Names:
    """The formats of the arrays of a file whose items have no type.

    Parameters
    ----------
    path : path, optional
        The file, next to which a JSON file may name them.
    given : str, optional
        The format of all of them, which goes before.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, given: str | None = None
    ) -> None:
        self._path = path
        self._given = given
        self._beside: dict[str, Any] | None = None

    def find(self, name: str, dtype: np.dtype[Any]) -> Format | None:
        """Return the format of an array; None if its items have a type, or no name.

        Raises
        ------
        ValueError
            If the format that is given is of another size.
        """
        if not is_opaque(dtype):
            return None
        if self._given is not None:
            found = format_named(self._given, dtype)
            if found is None:
                raise ValueError(
                    f"dtype must be a format of {dtype.itemsize} bytes, as the items in"
                    f" the file are; got {self._given}"
                )
            return found
        if self._beside is None:
            self._beside = {} if self._path is None else _beside(self._path)
        return format_named(self._beside.get(name), dtype)

    def apply(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array in its format, or as it is."""
        form = self.find(name, array.dtype)
        return array if form is None else array.view(form.dtype)


def _beside(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the formats that a JSON file next to a file names; {} without such a file.

    The file of ``a.npy`` is ``a.npy.json`` or ``a.json``.
    """
    name = os.fsdecode(path)
    for candidate in (f"{name}.json", f"{os.path.splitext(name)[0]}.json"):
        try:
            with open(candidate, "rb") as stream:
                found = json.loads(stream.read(_MOST_JSON))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return {
                key: value.get(ATTRIBUTE) if isinstance(value, dict) else value
                for key, value in found.items()
            }
    return {}
