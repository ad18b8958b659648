"""Calls that PyTorch refuses: its own errors, before an operation is replaced.

PyTorch computes the operation once for each new kind of call, on small tensors. These
have the dtypes of the operands, and sizes that are equal where those of the operands
are. In a convolution, there are no images instead. If PyTorch refuses the small call,
it gets the operands themselves, and the error is its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from .operations import aten

#: Operations whose sizes are calculated, with the operands that have images.
_OF_IMAGES = {
    aten.convolution.default: (0,),
    aten._convolution.default: (0,),
    aten.convolution_backward.default: (0, 1),
}
#: The kinds of calls that PyTorch accepts.
_accepted: set[Any] = set()
#: How many of them are remembered.
_MOST = 1 << 13


def check_call(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise PyTorch's error for a call that it refuses."""
    key = (func, _key(args), _key(tuple(kwargs.items())))
    if key in _accepted:
        return
    with _disable_current_modes():
        try:
            small = _without_images if func in _OF_IMAGES else _shrunken
            _call(func, *small(func, args, kwargs))
        except Exception:  # the small call differs, or the call is invalid
            with suppress(NotImplementedError):  # only this package computes it
                _call(func, *pytree.tree_map_only(Tensor, _copied, (args, kwargs)))
    if len(_accepted) >= _MOST:
        _accepted.clear()
    _accepted.add(key)


def _call(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    if "out" in kwargs:  # other sizes would give a warning
        kwargs["out"] = kwargs["out"].new_empty(0)
    func(*args, **kwargs)


def _copied(x: Tensor) -> Tensor:
    """Return a copy, into which an operation may write."""
    return x.detach().clone()


def _key(x: Any) -> Any:
    """Return what tells kinds of arguments apart."""
    if isinstance(x, Tensor):
        return x.shape, x.dtype
    if isinstance(x, (tuple, list)):
        return tuple(map(_key, x))
    return x


def _shrunken(func: Any, args: Any, kwargs: Any) -> Any:
    """Return arguments with the least sizes that are equal where those given are."""
    sizes = {0: 0, 1: 1}

    def small(x: Tensor) -> Tensor:
        shape = [sizes.setdefault(size, len(sizes)) for size in x.shape]
        return torch.zeros(shape, dtype=x.dtype)

    return pytree.tree_map_only(Tensor, small, (args, kwargs))


def _without_images(func: Any, args: Any, kwargs: Any) -> Any:
    """Return arguments of a convolution of no images.

    Raises
    ------
    TypeError
        For operands of two dtypes, which PyTorch only finds in images.
    """
    if len({x.dtype for x in args[:3] if isinstance(x, Tensor)}) > 1:
        raise TypeError
    found = [*args]
    for i in _OF_IMAGES[func]:
        found[i] = args[i][:0]
    return found, dict(kwargs)
