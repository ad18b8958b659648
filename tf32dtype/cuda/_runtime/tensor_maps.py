"""Make tensor maps, which Hopper's bulk copies need, by the driver's library.

CuPy does not export the function. The library is loaded at the first use.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: CUtensorMap, and the alignment that the function requires.
MAP = np.dtype("V128")
_ALIGNED = 64
#: CU_TENSOR_MAP_DATA_TYPE_UINT8, _UINT16 and _UINT32, by bytes. Copies of unsigned
#: integers change no bits.
_TYPES = {1: 0, 2: 1, 4: 2}
#: CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B
_SWIZZLE_128B, _PROMOTION_128B = 3, 2


class TensorMapError(RuntimeError):
    """Raised if the driver cannot make a tensor map."""


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
    """Return a tensor map, by which kernels copy boxes of a tensor to shared memory.

    Parameters
    ----------
    address : int
        Address of the first element, a multiple of 16.
    size : {1, 2, 4}
        Bytes per element.
    extents : tuple of int
        Elements along each axis, the contiguous axis first. Copies fill the parts of a
        box outside these extents with zeros.
    strides : tuple of int
        Strides of all axes but the first, in bytes. Each is a multiple of 16 and of the
        stride before it.
    box : tuple of int
        Elements of a box along each axis, at most 256.
    swizzled : bool
        Whether to permute 16-byte chunks within 128 bytes. A box then has at most 128
        bytes along the first axis.

    Raises
    ------
    TensorMapError
        If no driver can make maps, or if the driver rejects this map.
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
