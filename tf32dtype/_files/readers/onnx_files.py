"""Read the initializers of ONNX models."""

from __future__ import annotations

import math
import os
from typing import Any

from ..._base.requirements import need
from .tensor import Tensor, TensorFile


def read(path: str) -> TensorFile:
    """Return the initializers of a model; external data are read on access."""
    onnx = need("reading an ONNX model", "onnx", "onnx")
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # a class of protobuf, which is not imported
        if isinstance(error, OSError):
            raise
        raise ValueError(f"{path} is not a valid ONNX model: {error}") from None
    folder = os.path.dirname(os.path.abspath(path))
    tensors = [_tensor(path, folder, x) for x in model.graph.initializer]
    beside = {
        os.path.join(folder, entry.value)
        for x in model.graph.initializer
        for entry in x.external_data
        if entry.key == "location"
    }
    return TensorFile("ONNX", [path, *filter(os.path.exists, sorted(beside))], tensors)


def _tensor(path: str, folder: str, proto: Any) -> Tensor:
    from ..onnx import dtype_of, to_array

    def load() -> Any:
        try:
            return to_array(proto, folder)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    dtype = dtype_of(proto)
    shape = tuple(proto.dims)
    return Tensor(
        proto.name,
        f"type {proto.data_type}" if dtype is None else dtype.name,
        shape,
        math.prod(shape) * (dtype.itemsize if dtype else 0),
        load,
        dtype,
    )
