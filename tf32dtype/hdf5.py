"""Read and write arrays of every format in HDF5 files, by h5py.

>>> import numpy as np, tf32dtype as td
>>> td.hdf5.save("a.h5", {"layer/w": np.ones(3, td.float8_e4m3fn)})
>>> td.hdf5.load("a.h5")
{'layer/w': array([1., 1., 1.], dtype='float8_e4m3fn')}
"""

from ._files.hdf5.datasets import assign, read, write
from ._files.hdf5.files import load, save

__all__ = ["assign", "load", "read", "save", "write"]


def __dir__() -> list[str]:
    return __all__
