"""Which reader a file gets: by the bytes that begin it; folders by what they hold."""

from __future__ import annotations

import os
from collections.abc import Callable

from .. import file_kinds
from ..safetensors import sharded
from . import (
    folders,
    gguf_files,
    hdf5_files,
    numpy_files,
    onnx_files,
    safetensors_files,
    zarr_files,
)
from .tensor import TensorFile

#: By what `file_kinds.kind` calls such files.
_READERS: dict[str, Callable[[str], TensorFile]] = {
    "a safetensors file": safetensors_files.read,
    "a GGUF file": gguf_files.read,
    "an HDF5 file": hdf5_files.read,
    "an ONNX model": onnx_files.read,
}


def open_file(path: str) -> TensorFile:
    """The tensors of a file, of any kind that holds some.

    Parameters
    ----------
    path : str
        A file or a folder.

    Raises
    ------
    ValueError
        If there are no tensors in it that can be read here; it says what the file is.
    OSError
        If it cannot be read.
    ImportError
        If its kind needs a library that is missing.
    """
    if os.path.isdir(path):
        return _read_folder(path)
    if path.endswith(sharded.INDEX_SUFFIX):
        return safetensors_files.read(path)
    with open(path, "rb") as stream:
        head = stream.read(file_kinds.HEAD_BYTES)
    if not head:
        raise ValueError(f"{path} is empty and does not hold a tensor")
    if file_kinds.is_numpy(head):
        return numpy_files.read(path)
    what, cure = file_kinds.kind(head)
    if what not in _READERS:
        raise ValueError(f"{path} must be a file of tensors; got {what}; {cure}")
    return _READERS[what](path)


def _read_folder(path: str) -> TensorFile:
    names = os.listdir(path)
    if any(name.endswith((".safetensors", sharded.INDEX_SUFFIX)) for name in names):
        return safetensors_files.read(path)
    if not zarr_files.MARKS.isdisjoint(names):
        return zarr_files.read(path)
    if found := folders.paths(path, names):
        return folders.read(found, open_file)
    raise ValueError(
        f"{path} must be a folder of safetensors, Zarr or"
        f" {', '.join(folders.SUFFIXES)} files; got none"
    )
