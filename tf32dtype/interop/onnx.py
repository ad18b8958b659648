"""Convert tensors of ONNX models, also of narrow types, to arrays and back.

    weights = {t.name: to_array(t, base_dir) for t in model.graph.initializer}

ONNX stores values as little-endian bytes (`raw_data`) or as integers (`int32_data`).
Values of less than a byte are packed, the first in the lowest bits. The types are those
of `onnx.proto`, TensorProto.DataType.
"""

from .._files.onnx import dtype_of, from_array, to_array

__all__ = ["dtype_of", "from_array", "to_array"]


def __dir__() -> list[str]:
    return __all__
