"""Block arrays in a GPU's memory: `tf32dtype.blocks` on CuPy.

>>> import numpy as np, tf32dtype.cuda as tfc
>>> a = tfc.blocks.quantize(tfc.asarray(np.ones((2, 64), np.float32)), "tcfp16")
>>> (a @ a.T).get()
array([[64., 64.],
       [64., 64.]], dtype=float32)
"""

from .array import BlockArray, asarray
from .products import matmul
from .quantization import quantize

__all__ = ["BlockArray", "asarray", "matmul", "quantize"]


def __dir__() -> list[str]:
    return __all__
