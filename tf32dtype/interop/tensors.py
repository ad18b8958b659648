"""Accept tensors of PyTorch as arguments of the functions of this package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray


def register() -> None:
    """Make all functions accept tensors; the functions still return arrays."""
    _core.viewers.append(_of_torch)


def _of_torch(x: Any) -> NDArray[Any] | None:
    tensor: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if not isinstance(x, tensor):
        return None
    from .torch.tensors import to_numpy  # which imports torch

    return to_numpy(x)
