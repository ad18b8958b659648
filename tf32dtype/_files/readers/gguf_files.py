"""Read tensors of GGUF files."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gguf import reading as gguf
from .tensor import Tensor, TensorFile


def read(path: str) -> TensorFile:
    """Return the mapped tensors of a file; arrays of blocks are made on access."""
    file = gguf.open(path)
    return TensorFile("GGUF", [path], [_tensor(file, name) for name in file])


def _tensor(file: gguf.File, name: str) -> Tensor:
    facts = file.tensors[name]
    label = facts.kind.name if facts.kind else f"kind {facts.number}"
    dtype: np.dtype[Any] | None = None
    problem = ""
    try:
        file.check(name)
    except ValueError as error:
        problem = str(error)
    else:
        if facts.kind and facts.kind.block == 1:
            array = file[name]
            assert isinstance(array, np.ndarray)
            dtype, label = array.dtype, array.dtype.name
        else:
            label = label.lower()

    def load() -> Any:
        return file[name]

    return Tensor(name, label, facts.shape, facts.nbytes, load, dtype, problem=problem)
