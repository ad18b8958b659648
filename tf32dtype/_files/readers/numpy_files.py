"""Read arrays of `.npy` and `.npz` files."""

from __future__ import annotations

from os.path import basename, splitext
from typing import Any

import numpy as np

from ..arrays import Archive, load, outline
from .tensor import Tensor, TensorFile


def read(path: str) -> TensorFile:
    """Return the mapped array of a `.npy` file, or the arrays of an archive."""
    loaded = load(path, mmap_mode="r")
    if isinstance(loaded, Archive):
        return _archive(path, loaded)
    name = splitext(basename(path))[0]
    dtype = loaded.dtype if isinstance(loaded, np.ndarray) else None
    label = loaded.dtype.name if isinstance(loaded, np.ndarray) else loaded.format
    tensor = Tensor(name, label, loaded.shape, loaded.nbytes, lambda: loaded, dtype)
    return TensorFile("npy", [path], [tensor], is_array=True)


def _archive(path: str, archive: Archive) -> TensorFile:
    tensors = []
    for name in archive:
        found = outline(archive, name)
        if found is None:
            continue  # bytes of another file

        def read(name: str = name) -> Any:
            return archive[name]

        tensors.append(
            Tensor(name, found.label, found.shape, found.nbytes, read, found.dtype)
        )
    return TensorFile("npz", [path], tensors, close=archive.close)
