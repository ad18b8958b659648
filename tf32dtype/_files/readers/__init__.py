"""Read named tensors of files of any supported kind."""

from .memory import lines, release, values
from .readers import open_file
from .tensor import Tensor, TensorFile

__all__ = ["Tensor", "TensorFile", "lines", "open_file", "release", "values"]
