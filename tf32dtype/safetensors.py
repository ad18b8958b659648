"""Read and write safetensors files, with every dtype that they support.

>>> import numpy as np, tf32dtype as td
>>> td.safetensors.save("a.safetensors", {"w": np.ones(3, td.float8_e4m3fn)})
>>> td.safetensors.load("a.safetensors")
{'w': array([1., 1., 1.], dtype='float8_e4m3fn')}
"""

from ._files.safetensors.reading import SafeTensors, TensorInfo, load, open
from ._files.safetensors.writing import save

__all__ = ["SafeTensors", "TensorInfo", "load", "open", "save"]


def __dir__() -> list[str]:
    return __all__
