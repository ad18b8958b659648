"""Codes of 4, 6, 8, 12 and 16 bits in bytes: the first in the lowest bits, or highest.

A group is the least number of codes that fills whole bytes: two of 4 bits, four of 6.
Its codes, each in an item of its own, are a word. Neighbors in it are pushed together,
then neighboring pairs, until the word is the group's bytes and zeros; many words at
once, so that NumPy's loops are over words. Unpacking pulls apart what packing pushes.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.unsignedinteger[Any]]
    Words = NDArray[Any]

_PIECE = 1 << 17  # codes, a multiple of all groups: they stay in the cache


def pack(codes: Codes, width: int, high_first: bool = False) -> NDArray[np.uint8]:
    """Return bytes from codes, along the last axis.

    Parameters
    ----------
    codes : ndarray of unsigned integers, shape (..., n)
        Less than 2^width.
    width : int
        Bits of a code, at most 16; n is whole groups.
    high_first : bool
        Whether the first code lies in the highest bits.

    Returns
    -------
    ndarray of uint8, shape (..., n * width / 8)
    """
    flat = np.ascontiguousarray(codes, _item(width)).reshape(-1)
    packed = np.empty(flat.size * width // 8, np.uint8)
    for start in range(0, flat.size, _PIECE):
        end = start + _PIECE
        piece = packed[start * width // 8 : end * width // 8]
        _push(flat[start:end], piece, width, high_first)
    return packed.reshape(*codes.shape[:-1], codes.shape[-1] * width // 8)


def unpack(packed: NDArray[np.uint8], width: int, high_first: bool = False) -> Codes:
    """Codes, uint8 or uint16, from bytes: what `pack` was given.

    Parameters
    ----------
    packed : ndarray of uint8, shape (..., n * width / 8)
    width, high_first
        As for `pack`.

    Returns
    -------
    ndarray of uint8 or uint16, shape (..., n)
    """
    flat = np.ascontiguousarray(packed).reshape(-1)
    codes = np.empty(flat.size * 8 // width, _item(width))
    for start in range(0, codes.size, _PIECE):
        end = start + _PIECE
        piece = flat[start * width // 8 : end * width // 8]
        codes[start:end] = _pulled(piece, width, high_first)
    return codes.reshape(*packed.shape[:-1], packed.shape[-1] * 8 // width)


def group(width: int) -> tuple[int, int]:
    """Return the least number of codes that fills whole bytes, and of those bytes."""
    shared = gcd(width, 8)
    return 8 // shared, width // shared


def _push(
    codes: Codes, packed: NDArray[np.uint8], width: int, high_first: bool
) -> None:
    in_group, of_group = group(width)
    words: Words = codes
    while in_group > 1:
        bits = 8 * words.itemsize
        words = words.view(f"<u{2 * words.itemsize}")
        first, second = words & ((1 << width) - 1), words >> bits
        upper = first if high_first else second
        upper <<= width
        words = (first | second).astype(words.dtype, copy=False)
        in_group //= 2
        width *= 2
    parts = words.view(np.uint8).reshape(-1, words.itemsize)
    for to, at in enumerate(_places(of_group, high_first)):
        packed[to::of_group] = parts[:, at]


def _pulled(packed: NDArray[np.uint8], width: int, high_first: bool) -> Codes:
    in_group, of_group = group(width)
    size = in_group * _item(width).itemsize
    parts = np.zeros((packed.size // of_group, size), np.uint8)
    for at, to in enumerate(_places(of_group, high_first)):
        parts[:, to] = packed[at::of_group]
    words: Words = parts.reshape(-1).view(f"<u{size}")
    width *= in_group
    while in_group > 1:
        in_group //= 2
        width //= 2
        bits = 4 * words.itemsize
        lower, upper = words & ((1 << width) - 1), words >> width
        first, second = (upper, lower) if high_first else (lower, upper)
        second <<= bits
        words = (first | second).astype(words.dtype, copy=False).view(f"<u{bits // 8}")
    return words


def _places(of_group: int, high_first: bool) -> range:
    """Return where the bytes of a group are in a little-endian word.

    NumPy's loops take one byte of all words at a time, which is faster than a few of
    each.
    """
    return range(of_group)[::-1] if high_first else range(of_group)


def _item(width: int) -> np.dtype[Any]:
    """Return the dtype of an array of codes."""
    return np.dtype(np.uint8 if width <= 8 else "<u2")
