"""GPU arrays of reduced-precision numbers, on CuPy.

>>> import numpy as np, tf32dtype as td, tf32dtype.cuda as tfc
>>> a = tfc.asarray(np.ones((2, 2)), dtype=td.tf32)
>>> (a @ a).get()
array([[2., 2.],
       [2., 2.]], dtype=tf32)
"""

from ._requirements import check as _check

_check()
del _check

from .array import ndarray  # noqa: E402

__all__ = ["ndarray"]
