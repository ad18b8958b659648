"""Split arrays of blocks and tiles into bytes and a string, for files of any kind."""

from __future__ import annotations

import ast

import numpy as np
from numpy.typing import NDArray

from .._base.wording import brief
from . import array as blocks
from . import tile_bytes as tiles
from .array import BlockArray
from .layout import Facts
from .tile_bytes import TileFacts
from .tiles import TileArray

Scaled = BlockArray | TileArray

_KEYS = "format shape axis block_size scale_format tensor_scale".split()
_TILE_KEYS = "format shape tile scale_format".split()


def to_text(array: Scaled) -> str:
    """Return a dictionary of Python's literals, in one line."""
    if isinstance(array, TileArray):
        return str(dict(zip(_TILE_KEYS, tiles.facts_of(array), strict=True)))
    return str(dict(zip(_KEYS, blocks.facts_of(array), strict=True)))


def to_bytes(array: Scaled) -> NDArray[np.uint8]:
    return tiles.bytes_of(array) if isinstance(array, TileArray) else array.buffer


def from_text(text: str) -> Facts | TileFacts:
    """Read the arguments of `restore` besides the bytes, without checking them.

    Raises
    ------
    ValueError
        If the text is not as `to_text` writes it.
    """
    try:
        # Valid strings have no backslashes, and Python would warn of some.
        facts = None if "\\" in text else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or list(facts) not in (_KEYS, _TILE_KEYS):
        raise ValueError(
            f"block metadata must be a dictionary of {', '.join(_KEYS)} (for tiles:"
            f" {', '.join(_TILE_KEYS)}); got {brief(text)}"
        )
    found: Facts | TileFacts = tuple(facts.values())
    return found


def restore(facts: Facts | TileFacts, buffer: NDArray[np.uint8]) -> Scaled:
    """Return the array of these facts and bytes, all checked.

    Raises
    ------
    ValueError, TypeError
        If they do not make an array.
    """
    if len(facts) == 4:
        return tiles.restore(facts, buffer)
    return blocks.restore(facts, buffer)
