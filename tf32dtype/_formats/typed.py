"""Types of arguments and results, as type checkers see them.

NumPy's stubs have the same two rules. If an argument is a scalar type or a dtype, it
determines the type of the result's items. If it is a name, the items may be of any
type. A product is typed as an array, although the product of two vectors is a number.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .aliases import FormatAlias, FormatName, NumPyName
from .table import Format

#: The scalar type of an array's items.
Scalar = TypeVar("Scalar", bound=np.generic)
#: An array that is written to and returned.
Out = TypeVar("Out", bound=NDArray[Any])
#: An argument that chooses the scalar type: the type itself or a dtype.
DTypeOf: TypeAlias = type[Scalar] | np.dtype[Scalar]

FormatNamed: TypeAlias = FormatName | FormatAlias | Format
#: A format by its name, its row, its scalar type or its dtype.
FormatLike: TypeAlias = FormatNamed | DTypeOf[Any]
TargetNamed: TypeAlias = FormatNamed | NumPyName
#: A format, float16 or float32, by the same.
TargetLike: TypeAlias = FormatLike | NumPyName

#: One number, for an array_like argument that may be a number.
Number: TypeAlias = float | np.number[Any] | np.bool

#: A dtype for the values of block arrays, by its name or type.
ValueNamed: TypeAlias = (
    TargetNamed | Literal["float64", "fp64", "f64", "double"] | type[float]
)

#: The number of products of elements and residuals that are added.
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
