"""Recognize arrays of blocks or tiles without importing `tf32dtype.blocks`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from ..blocks.facts_text import Scaled


def is_scaled(a: object) -> TypeGuard[Scaled]:
    """Return whether an object is a `BlockArray` or a `TileArray`."""
    blocks = sys.modules.get("tf32dtype.blocks")  # None if it is not imported
    # While another thread imports the module, it may not have the classes yet.
    return any(
        isinstance(a, getattr(blocks, name, ())) for name in ("BlockArray", "TileArray")
    )
