"""Tensors of GGUF files, as llama.cpp reads them: arrays, and arrays of blocks.

Floats and integers are arrays on the file's own bytes, which are mapped; MXFP4, NVFP4,
Q8_0 and Q4_0 become arrays of blocks or tiles with the same elements and scales. No
library is needed to read, and the package `gguf` writes:

    writer.add_tensor(name, a.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
"""

from .._files.gguf.reading import File, load, open

__all__ = ["File", "load", "open"]


def __dir__() -> list[str]:
    return __all__
