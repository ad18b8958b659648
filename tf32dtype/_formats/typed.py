"""Types of arguments and results, as type checkers see them.

NumPy's stubs have the same two rules. A scalar type or a dtype says what the result is
made of; a name does not, and there the result is an array of anything. A product is an
array, though that of two vectors is a number when it runs.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .aliases import FormatAlias, FormatName, NumPyName
from .table import Format

#: What an array is made of.
Scalar = TypeVar("Scalar", bound=np.generic)
#: An array that is written to and returned.
Out = TypeVar("Out", bound=NDArray[Any])
#: What says it: a scalar type or a dtype.
DTypeOf: TypeAlias = type[Scalar] | np.dtype[Scalar]

FormatNamed: TypeAlias = FormatName | FormatAlias | Format
#: A format by its name, its row, its scalar type or its dtype.
FormatLike: TypeAlias = FormatNamed | DTypeOf[Any]
TargetNamed: TypeAlias = FormatNamed | NumPyName
#: And float16 and float32.
TargetLike: TypeAlias = FormatLike | NumPyName

#: One number, where an array_like may be one.
Number: TypeAlias = float | np.number[Any] | np.bool

#: What values of blocks become besides a dtype's.
ValueNamed: TypeAlias = (
    TargetNamed | Literal["float64", "fp64", "f64", "double"] | type[float]
)

#: Which products of elements and residuals are added.
Terms = Literal[1, 3, 4]

#: Formats by the bytes of their codes.
InByte: TypeAlias = (
    _core.float8_e5m2
    | _core.float8_e4m3fn
    | _core.float8_e4m3
    | _core.float8_e3m4
    | _core.float8_e5m2fnuz
    | _core.float8_e4m3fnuz
    | _core.float8_e4m3b11fnuz
    | _core.float8_e8m0fnu
    | _core.float6_e2m3fn
    | _core.float6_e3m2fn
    | _core.float4_e2m1fn
)
InTwoBytes: TypeAlias = _core.bfloat16
InFourBytes: TypeAlias = _core.tf32
