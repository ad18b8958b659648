"""Choose a reader by the first bytes of a file, or by the content of a folder."""

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

#: The readers by the names that `file_kinds.kind` returns.
_READERS: dict[str, Callable[[str], TensorFile]] = {
    "a safetensors file": safetensors_files.read,
    "a GGUF file": gguf_files.read,
    "an HDF5 file": hdf5_files.read,
    "an ONNX model": onnx_files.read,
}


def open_file(path: str) -> TensorFile:
    """Open a file or folder of any kind that contains tensors.

    Parameters
    ----------
    path : str
        A file or a folder.

    Raises
    ------
    ValueError
        If the file has no readable tensors; the error names the kind of the file.
    OSError
        If the file cannot be read.
    ImportError
        If reading the file requires a library that is not installed.
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
