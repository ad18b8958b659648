"""Tensors and leaves of the operation that autograd differentiates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointFunction

#: Operations that keep the numbers of a tensor, but for its dtype.
_SAME_NUMBERS = {
    "Alias",
    "Expand",
    "Permute",
    "ReshapeAlias",
    "Squeeze",
    "T",
    "ToCopy",
    "Transpose",
    "UnsafeView",
    "Unsqueeze",
    "View",
}
_RAW = "_raw_saved_"


def plain(x: Tensor) -> Tensor:
    """Return the tensor that `torch.func` wrapped."""
    while torch._C._functorch.is_functorch_wrapped_tensor(x):
        x = torch._C._functorch.get_unwrapped(x)
    return x


def address(x: Tensor) -> int:
    """Return the address of a tensor's storage; 0: it has no numbers."""
    try:
        start: int = x.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # it is sparse, or not initialized
        return 0
    return start


def is_own_function(node: Any) -> bool:
    """Return whether a node is of a `torch.autograd.Function`."""
    return isinstance(node, torch._C._FunctionBase)


def saved(node: Any) -> list[Tensor]:
    """Return the tensors that a node saved, but for those that hooks must unpack.

    A hook may compute a forward pass again, and `checkpoint` allows that only once.
    """
    found: list[Tensor] = []
    own = is_own_function(node)
    for name in (f"{_RAW}tensors",) if own else _names(node.__class__):
        one = getattr(node, name)
        for x in one if isinstance(one, (tuple, list)) else (one,):
            if x.unpack_hook is None and isinstance(x.data, Tensor):
                found.append(plain(x.data))
    return [x for x in found if address(x)]


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of the saved tensors of a class of nodes."""
    return tuple(name for name in dir(kind) if name.startswith(_RAW))


def leaves(node: Any) -> Iterator[Tensor]:
    """Give the leaves whose numbers are operands of a node's operation, last first."""
    for following, _ in reversed(node.next_functions):
        while following is not None and _kind(following) in _SAME_NUMBERS:
            following = following.next_functions[0][0]
        variable = getattr(following, "variable", None)
        if isinstance(variable, Tensor):
            yield plain(variable)


def _kind(node: Any) -> str:
    name: str = node.name()
    return name.rstrip("0123456789").removesuffix("Backward")


def checkpoint_frame() -> tuple[Any, Any]:
    """Return the call of `checkpoint` whose function runs, and what runs it again.

    None: there is none. This is of ``use_reentrant=False``.
    """
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    if hooks is None:
        return None, None
    pack = getattr(hooks[0], "_torchdynamo_orig_callable", hooks[0])
    if getattr(pack, "__module__", "") != "torch.utils.checkpoint":
        return None, None
    names = zip(pack.__code__.co_freevars, pack.__closure__ or (), strict=True)
    values = {name: cell.cell_contents for name, cell in names}
    if "target_frame_ref" in values:
        return values["target_frame_ref"](), pack
    return values.get("frame"), None


def is_checkpoint(node: Any) -> bool:
    """Return whether a node computes a forward pass again (``use_reentrant=True``)."""
    return getattr(node, "_forward_cls", None) is CheckpointFunction
