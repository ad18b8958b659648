"""Scalar types as dtypes, with the stubs of NumPy."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import tf32dtype as td

# -- construction ----------------------------------------------------------------------

numbers = np.array([1.1, 2.2], dtype=np.float32)
a = np.array([1.1, 2.2], dtype=td.tf32)
assert_type(np.dtype(td.tf32), np.dtype[td.tf32])
assert_type(a, npt.NDArray[td.tf32])
assert_type(a.dtype, np.dtype[td.tf32])
assert_type(numbers.astype(td.bfloat16), npt.NDArray[td.bfloat16])
assert_type(np.zeros((2, 3), td.float8_e4m3fn).dtype, np.dtype[td.float8_e4m3fn])
assert_type(np.full((2, 3), 1.5, td.fp4).dtype, np.dtype[td.float4_e2m1fn])
assert_type(np.ones_like(a), npt.NDArray[td.tf32])
assert_type(a.view(np.uint32), npt.NDArray[np.uint32])

dtype: np.dtype[td.bfloat16] = np.dtype(td.bf16)
floating: npt.NDArray[np.floating] = a
kind: type[np.floating] = td.float8_e8m0fnu

# -- types that are kept ---------------------------------------------------------------

assert_type(a[:1], npt.NDArray[td.tf32])
assert_type(a.T, npt.NDArray[td.tf32])
assert_type(-a, npt.NDArray[td.tf32])
assert_type(abs(a), npt.NDArray[td.tf32])
assert_type(a + 1, npt.NDArray[td.tf32])
assert_type(a**2, npt.NDArray[td.tf32])
assert_type(np.sort(a), npt.NDArray[td.tf32])
assert_type(np.asarray(a), npt.NDArray[td.tf32])
assert_type(np.sum(a), td.tf32)
assert_type(a < a, npt.NDArray[np.bool])
assert_type(a.item(), float)

# -- types that NumPy's stubs leave open, as for float32 -------------------------------

# Operators on two arrays of floats have a type of any floats. Some functions and
# methods have the type Any, which a declared type replaces.
assert_type(a + a, npt.NDArray[np.floating])
assert_type(a * 2.0, npt.NDArray[np.floating])
assert_type(a @ a, npt.NDArray[np.floating])
product: npt.NDArray[td.tf32] = np.matmul(a, a)
exponentials: npt.NDArray[td.tf32] = np.exp(a)
total: td.tf32 = a.sum()
of_rows: npt.NDArray[td.tf32] = a.sum(0)
mean: td.tf32 = a.mean()
halves = (a * 0.5).astype(td.tf32, copy=False)
assert_type(halves, npt.NDArray[td.tf32])

# -- numbers ---------------------------------------------------------------------------

x = td.tf32(1.5)
assert_type(x, td.tf32)
assert_type(td.float8_e5m2("0.1"), td.float8_e5m2)
assert_type(x + x, td.tf32)
assert_type(x + 1, td.tf32)
assert_type(x * 0.5, td.tf32)
assert_type(0.5 * x, td.tf32)
assert_type(x / 3.0, td.tf32)
assert_type(x // 2, td.tf32)
assert_type(x**2, td.tf32)
assert_type(-x, td.tf32)
assert_type(abs(x), td.tf32)
assert_type(x < 1.0, np.bool)
assert_type(x + np.float32(1), np.floating)
assert_type(float(x), float)
assert_type(int(x), int)
assert_type(round(x), int)
assert_type(x.hex(), str)
assert_type(x.is_integer(), bool)
assert_type(x.as_integer_ratio(), tuple[int, int])
assert_type(x.dtype, np.dtype[td.tf32])
assert_type(np.float32(x), np.float32)


def is_tf32(number: object) -> bool:
    if isinstance(number, td.tf32):
        assert_type(number, td.tf32)
        return True
    return False


def scaled(w: npt.NDArray[td.bfloat16], by: float) -> npt.NDArray[td.bfloat16]:
    return td.quantize(w * by, td.bfloat16)


# -- facts -----------------------------------------------------------------------------

assert_type(np.finfo(td.tf32), np.finfo[td.tf32])
row = td.formats["fp8_e4m3"]
assert_type(row, td.Format)
assert_type(row.bits, int)
assert_type(row.max, float)
assert_type(row.dtype, np.dtype[Any])
