"""Linear systems in reduced precision, with certified errors.

>>> import tf32dtype as td
>>> td.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 4.0]).x
array([1., 1.])
"""

from ._linalg.backward_error import BackwardError, backward_error
from ._linalg.cholesky import cholesky
from ._linalg.lu import LU, lu
from ._linalg.solve import Solution, solve

__all__ = [
    "LU",
    "BackwardError",
    "Solution",
    "backward_error",
    "cholesky",
    "lu",
    "solve",
]


def __dir__() -> list[str]:
    return __all__
