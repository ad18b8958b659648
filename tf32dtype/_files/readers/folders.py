"""Read folders with several files of tensors, such as one file per array."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from .tensor import Tensor, TensorFile

#: The suffixes of the files that are read from a folder.
SUFFIXES = (".npy", ".npz", ".gguf", ".h5", ".hdf5", ".onnx", ".zarr")


def paths(folder: str, names: Sequence[str]) -> list[str]:
    """Return the paths of the files of tensors among a folder's names, sorted."""
    found = (name for name in sorted(names) if name.endswith(SUFFIXES))
    return [os.path.join(folder, name) for name in found]


def read(files: Sequence[str], open_file: Callable[[str], TensorFile]) -> TensorFile:
    """Read the tensors of all files; name them `w` (from w.npy) or `x:w` (w in x.npz).

    If two files differ only in their suffixes, the names have the suffixes.
    """
    stems = [os.path.splitext(os.path.basename(path))[0] for path in files]
    inside: list[str] = []
    tensors: list[Tensor] = []
    with ExitStack() as stack:
        for path, stem in zip(files, stems, strict=True):
            file = stack.enter_context(open_file(path))
            inside += file.paths
            prefix = os.path.basename(path) if stems.count(stem) > 1 else stem
            for tensor in file.values():
                name = prefix if file.is_array else f"{prefix}:{tensor.name}"
                tensors.append(replace(tensor, name=name))
        close = stack.pop_all().close
    return TensorFile("folder", inside, tensors, close=close)
