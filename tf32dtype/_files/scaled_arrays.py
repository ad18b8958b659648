"""Whether something is an array of blocks or tiles, asked without loading these."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from ..blocks.facts_text import Scaled


def is_scaled(a: object) -> TypeGuard[Scaled]:
    """Whether it is a `BlockArray` or a `TileArray` of `tf32dtype.blocks`."""
    blocks = sys.modules.get("tf32dtype.blocks")  # not loaded: there are none
    # While another thread loads it there are none either.
    return any(
        isinstance(a, getattr(blocks, name, ())) for name in ("BlockArray", "TileArray")
    )
