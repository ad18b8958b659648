"""Codes of 4, 6, 8, 12 and 16 bits in bytes: the first in the lowest bits."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray


def unpack(packed: NDArray[np.uint8], width: int) -> NDArray[np.unsignedinteger[Any]]:
    """Codes, one an item, from bytes along the last axis.

    Parameters
    ----------
    packed : ndarray of uint8, shape (..., n * width / 8)
    width : int
        Bits of a code, at most 16; whole groups of codes and bytes.

    Returns
    -------
    ndarray of uint8 or uint16, shape (..., n)
    """
    *others, size = packed.shape
    in_group, of_group = _group(width)
    groups = packed.reshape(*others, size // of_group, of_group)
    item = np.uint8 if width <= 8 else np.uint16
    codes = np.empty((*groups.shape[:-1], in_group), item)
    for i in range(in_group):
        at, shift = divmod(i * width, 8)
        bits = groups[..., at].astype(np.uint32)
        for more in range(1, (shift + width + 7) // 8):
            bits |= groups[..., at + more].astype(np.uint32) << np.uint32(8 * more)
        codes[..., i] = bits >> np.uint32(shift) & np.uint32((1 << width) - 1)
    return codes.reshape(*others, size * 8 // width)


def pack(codes: NDArray[np.unsignedinteger[Any]], width: int) -> NDArray[np.uint8]:
    """What `unpack` reads: bytes from codes that are less than 2^width."""
    *others, count = codes.shape
    in_group, of_group = _group(width)
    groups = codes.reshape(*others, count // in_group, in_group)
    packed = np.zeros((*groups.shape[:-1], of_group), np.uint8)
    for i in range(in_group):
        at, shift = divmod(i * width, 8)
        bits = groups[..., i].astype(np.uint32) << np.uint32(shift)
        for more in range((shift + width + 7) // 8):
            packed[..., at + more] |= (bits >> np.uint32(8 * more)).astype(np.uint8)
    return packed.reshape(*others, count * width // 8)


def _group(width: int) -> tuple[int, int]:
    """The least number of codes that fills whole bytes, and of those bytes."""
    shared = gcd(width, 8)
    return 8 // shared, width // shared
