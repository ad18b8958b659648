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

from . import blocks  # noqa: E402
from . import dispatch as _dispatch  # noqa: E402, F401
from ._arrays.creation import (  # noqa: E402
    asarray,
    bits,
    empty_like,
    from_bits,
    full,
    full_like,
    ones,
    ones_like,
    quantize,
    zeros,
    zeros_like,
)
from ._arrays.creation import new as empty  # noqa: E402
from ._arrays.ndarray import ndarray  # noqa: E402
from ._matmul.matmul import matmul  # noqa: E402
from ._matmul.mode import matmul_mode  # noqa: E402
from ._runtime.backend import use as _use  # noqa: E402
from ._runtime.device import Device as _Device  # noqa: E402

_use(_Device())

asarray.__module__ = __name__  # pickles name it, and the folder below may change

__all__ = [
    "asarray",
    "bits",
    "blocks",
    "empty",
    "empty_like",
    "from_bits",
    "full",
    "full_like",
    "matmul",
    "matmul_mode",
    "ndarray",
    "ones",
    "ones_like",
    "quantize",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return __all__
