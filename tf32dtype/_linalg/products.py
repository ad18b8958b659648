"""The products of a factorization: their precision, dtype and range."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.options import refuse_unknown
from .._formats.table import formats
from .._matmul.matmul import matmul
from .._matmul.precisions import (
    PrecisionName,
    ProductOptions,
    Settings,
    find_precision,
    resolve,
    whole_name,
)

Array = NDArray[Any]


class Products(NamedTuple):
    """How a factorization multiplies the matrices of its updates."""

    precision: PrecisionName | None
    options: ProductOptions
    #: the dtype of factors while they are computed
    dtype: np.dtype[Any]
    #: numbers from 2^-reach to 2^reach are far from the ends of the precision's range
    reach: int

    @classmethod
    def of(
        cls,
        call: str,
        precision: PrecisionName | None,
        options: ProductOptions,
        dtype: np.dtype[Any],
    ) -> Products:
        """Return the products of a call for matrices of a dtype.

        Raises
        ------
        TypeError, ValueError
            As `tf32dtype.matmul`.
        """
        refuse_unknown(call, options, ProductOptions)
        resolve(Settings(precision, **options))
        largest = float(np.finfo(dtype).max)
        if precision is not None and whole_name(precision) is None:
            name = find_precision(precision).format
            dtype = np.dtype(np.float32)
            largest = float(
                formats[name].max if name in formats else np.finfo(name).max
            )
        return cls(precision, options, dtype, math.frexp(largest)[1] // 2)

    def __call__(self, x: Array, y: Array) -> Array:
        """Multiply matrices."""
        product: Array = matmul(x, y, precision=self.precision, **self.options)
        return product
