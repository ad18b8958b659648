"""Read arrays of Zarr folders."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ..._base.requirements import need
from .. import opaque
from ..file_kinds import is_absurd
from .tensor import Tensor, TensorFile

#: The files that mark a Zarr folder, of version 3 and 2.
MARKS = frozenset(("zarr.json", ".zgroup", ".zarray"))


def read(path: str) -> TensorFile:
    """Return the arrays of a group and of its groups, or a single array."""
    zarr = need("reading a Zarr folder", "zarr", "zarr")  # interop adds our dtypes
    paths = [path]
    for folder, _, names in os.walk(path):
        paths += [os.path.join(folder, name) for name in sorted(names)]
    there = sum(map(os.path.getsize, paths))
    try:
        found = zarr.open(path, mode="r")
        if isinstance(found, zarr.Array):
            name = os.path.splitext(os.path.basename(os.path.abspath(path)))[0]
            return TensorFile(
                "Zarr", paths, [_tensor(path, name, found, there)], is_array=True
            )
        members = sorted(found.members(max_depth=None))
    except Exception as error:
        if isinstance(error, OSError):
            raise
        raise ValueError(f"{path} is not a valid Zarr folder: {error}") from None
    tensors = [
        _tensor(path, name, member, there)
        for name, member in members
        if isinstance(member, zarr.Array)
    ]
    return TensorFile("Zarr", paths, tensors)


def _check_size(array: Any, there: int) -> None:
    """Raise ValueError if the array, or a chunk, is far larger than its folder."""
    items = max(math.prod(array.shape), math.prod(array.chunks))
    announced = items * array.dtype.itemsize
    if is_absurd(announced, there):
        raise ValueError(
            f"array must fit its folder of {there} bytes; got {announced} bytes. If the"
            " size is right, read slices with zarr"
        )


def _tensor(path: str, name: str, array: Any, there: int) -> Tensor:
    text = array.attrs.get(opaque.ATTRIBUTE)

    def load() -> Any:
        try:
            _check_size(array, there)
            # zarr returns a number for an array without axes
            return opaque.as_named(np.asarray(array[...]), text)
        except Exception as error:  # codecs may raise anything
            if isinstance(error, OSError | MemoryError):
                raise
            raise ValueError(f"{path}: array {name}: {error}") from None

    form = opaque.format_named(text, array.dtype)
    dtype = array.dtype if form is None else form.dtype
    return Tensor(name, dtype.name, array.shape, array.nbytes, load, dtype)
