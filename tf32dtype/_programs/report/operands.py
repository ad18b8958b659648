"""Constant operands: matrices that a line multiplies by again and again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

#: Rows of a line whose operands have no names.
_MOST_NAMELESS = 256
#: The facts about an operand that `blas_call_sites` returns.
_Operand = dict[str, Any]


def constant_operands(
    sides: Sequence[list[_Operand] | None], dtype: str
) -> list[_Operand] | None:
    """Return the operands that split a call site into rows; None: it stays one row.

    Operands with names are constant: they were there, with this content, before the
    line first ran. Other operands are constant if most are used again, always in the
    same buffer; and only those of one side may be: a program that repeats itself uses
    all of its intermediate results again. Where the other operand is always the same,
    or changes in place, as weights in training, these are its data.

    Parameters
    ----------
    sides : pair of lists
        The operands of A and of B, in the order of their first use; None: too many.
    dtype : str
        Their dtype.
    """
    several = [
        side
        for side, other in zip(reversed(sides), sides, strict=True)
        if side and len(side) > 1 and not _is_one(other)
    ]
    found = [side for side in several if _most(bool(x["name"]) for x in side)]
    if not found:
        found = [side for side in several if _most(x["calls"] > 1 for x in side)]
        size = np.dtype(dtype).itemsize
        if len(found) != 1 or not _are_buffers(found[0], size):
            return None
    return min(found, key=len, default=None)


def _is_one(side: list[_Operand] | None) -> bool:
    """Return whether it is one matrix, or one with a name that changes in place."""
    if not side:
        return False
    is_place = len({one["address"] for one in side}) == 1
    return len(side) == 1 or (is_place and any(x["is_named_buffer"] for x in side))


def _most(facts: Iterable[bool]) -> bool:
    known = [*facts]
    return 2 * sum(known) > len(known)


def _are_buffers(side: list[_Operand], size: int) -> bool:
    """Return whether each has its own buffer, not a slice of the next one's buffer."""
    addresses = {one["address"] for one in side}
    ends = {x["address"] + x["rows"] * x["columns"] * size for x in side}
    is_steady = not any(one["has_moved"] for one in side)
    is_own = len(addresses) == len(side) and not addresses & ends
    return is_steady and is_own and len(side) <= _MOST_NAMELESS
