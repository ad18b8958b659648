"""Tensors of PyTorch wherever this package's functions take arrays."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray


def register() -> None:
    """Have all functions see them; what they return are arrays."""
    _core.viewers.append(_of_torch)


def _of_torch(x: Any) -> NDArray[Any] | None:
    tensor: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if not isinstance(x, tensor):
        return None
    from .torch.tensors import to_numpy  # which imports torch

    return to_numpy(x)
