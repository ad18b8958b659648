"""Elements without a type, and the strings that name their format.

`np.save`, h5py and zarr 2 have no type for arrays of ml_dtypes. They store untyped
elements of the same size. Some writers name the format next to them:

- Keras: the HDF5 attribute "dtype", "bfloat16" (its class `H5IOStore`);
- Zarr: the same attribute, which xarray also uses for types that a file cannot store.
  TensorStore names the format as the data type itself, and does not need this module.

`.npy` and `.npz` files cannot store the name, and there is no common convention. This
module reads a JSON file of the same name: ``{"dtype": "bfloat16"}`` next to a `.npy`
file, ``{"name": "bfloat16"}`` or ``{"name": {"dtype": "bfloat16"}}`` next to a `.npz`
file.
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
    """Return whether elements are bytes without a type."""
    return dtype.kind == "V" and not dtype.isbuiltin and dtype.names is None


def format_named(text: object, dtype: np.dtype[Any]) -> Format | None:
    """Return the format that a string names for elements of a dtype.

    Return None if the elements have a type, or if the format has another size.
    """
    if not is_opaque(dtype) or not isinstance(text, str):
        return None
    form = formats.get(text)
    return form if form is not None and form.itemsize == dtype.itemsize else None


def as_named(array: NDArray[Any], text: object) -> NDArray[Any]:
    """Return the array in the format that a string names, or unchanged."""
    form = format_named(text, array.dtype)
    return array if form is None else array.view(form.dtype)


class Names:
    """The formats of the arrays of a file whose elements have no type.

    Parameters
    ----------
    path : path, optional
        The path of the file; a JSON file next to it may name the formats.
    given : str, optional
        The format of all these arrays; it takes precedence over the JSON file.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, given: str | None = None
    ) -> None:
        self._path = path
        self._given = given
        self._beside: dict[str, Any] | None = None

    def find(self, name: str, dtype: np.dtype[Any]) -> Format | None:
        """Return the format of an array; None if elements have a type, or no name.

        Raises
        ------
        ValueError
            If the given format has another size.
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
        """Return the array in its format, or unchanged."""
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
