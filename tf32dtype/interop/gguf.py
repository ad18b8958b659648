"""Read tensors of GGUF files, the format of llama.cpp, as arrays and block arrays.

Floats and integers become arrays that view the mapped bytes of the file. MXFP4, NVFP4,
Q8_0 and Q4_0 become arrays of blocks or tiles with the same elements and scales.
Reading needs no other library. To write, use the package `gguf`:

    writer.add_tensor(name, a.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
"""

from .._files.gguf.reading import File, load, open

__all__ = ["File", "load", "open"]


def __dir__() -> list[str]:
    return __all__
