"""Maps of tensors for Hopper's copies, which the driver's library makes.

CuPy has no name for the function. The library is not looked for before it is needed.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: CUtensorMap, and the alignment that the function demands
MAP = np.dtype("V128")
_ALIGNED = 64
#: CU_TENSOR_MAP_DATA_TYPE_UINT8, _UINT16 and _UINT32, by bytes: no number is changed.
_TYPES = {1: 0, 2: 1, 4: 2}
#: CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B
_SWIZZLE_128B, _PROMOTION_128B = 3, 2


class TensorMapError(RuntimeError):
    """The driver makes no map."""


@cache
def _encode() -> Any:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name).cuTensorMapEncodeTiled
    except (OSError, AttributeError) as error:
        raise TensorMapError(f"the driver cannot make tensor maps: {error}") from error


@lru_cache(256)
def tensor_map(
    address: int,
    size: int,
    extents: tuple[int, ...],
    strides: tuple[int, ...],
    box: tuple[int, ...],
    swizzled: bool,
) -> NDArray[np.void]:
    """A map by which boxes of a tensor are copied to shared memory.

    Parameters
    ----------
    address : int
        Of the first element, a multiple of 16.
    size : {1, 2, 4}
        Bytes of an element.
    extents : tuple of int
        Elements along each axis, the contiguous one first. Beyond them are zeros.
    strides : tuple of int
        Bytes along the others: multiples of 16, and each of the one before.
    box : tuple of int
        Elements of a box along each axis, at most 256.
    swizzled : bool
        Whether 16-byte chunks are permuted within 128 bytes, which is all that a box
        then has along the first axis.

    Raises
    ------
    TensorMapError
        If there is no driver that makes maps, or it refuses this one.
    """
    raw = np.zeros(MAP.itemsize + _ALIGNED, np.uint8)
    start = -raw.ctypes.data % _ALIGNED
    made = raw[start : start + MAP.itemsize]
    rank = len(extents)

    def numbers(kind: Any, given: tuple[int, ...]) -> Any:
        return (kind * len(given))(*given)

    status = _encode()(
        ctypes.c_void_p(made.ctypes.data),
        ctypes.c_int(_TYPES[size]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        numbers(ctypes.c_uint64, extents),
        numbers(ctypes.c_uint64, strides),
        numbers(ctypes.c_uint32, box),
        numbers(ctypes.c_uint32, (1,) * rank),
        ctypes.c_int(0),  # CU_TENSOR_MAP_INTERLEAVE_NONE
        ctypes.c_int(_SWIZZLE_128B if swizzled else 0),
        ctypes.c_int(_PROMOTION_128B),
        ctypes.c_int(0),  # CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE: zeros
    )
    if status:
        raise TensorMapError(
            f"cuTensorMapEncodeTiled returned {status} for extents {extents}, strides"
            f" {strides} and boxes of {box}"
        )
    found: NDArray[np.void] = made.view(MAP)[0, ...]
    return found
