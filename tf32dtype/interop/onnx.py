"""Tensors of ONNX models as arrays and back, those of the narrow types among them.

    weights = {t.name: to_array(t, base_dir) for t in model.graph.initializer}

ONNX keeps numbers as little-endian bytes (`raw_data`) or as integers (`int32_data`);
those of less than a byte are packed, the first in the lowest bits. The types are those
of `onnx.proto`, TensorProto.DataType.
"""

from .._files.onnx import dtype_of, from_array, to_array

__all__ = ["dtype_of", "from_array", "to_array"]


def __dir__() -> list[str]:
    return __all__
