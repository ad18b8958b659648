"""Which layers own the numbers of a tensor."""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from typing import NamedTuple

from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef

from . import graph

#: Casts that are remembered before those that are gone are forgotten.
_MOST = 4096


class Layer(NamedTuple):
    """A layer: its name in one scope, and its module."""

    name: str
    module: weakref.ref[nn.Module] | None = None


class _Owner(NamedTuple):
    """The layers that a parameter or buffer belongs to."""

    start: int
    tensor: weakref.ref[Tensor]
    layers: list[Layer]

    @property
    def is_there(self) -> bool:
        """Whether the tensor still has its numbers at the address."""
        tensor = self.tensor()
        return tensor is not None and tensor.data_ptr() == self.start

    def has(self, address: int) -> bool:
        """Return whether a number of the tensor is at an address."""
        tensor = self.tensor()
        if tensor is None:
            return False
        size, left = tensor.element_size(), address - self.start
        axes = zip(tensor.stride(), tensor.shape, strict=True)
        for stride, count in sorted(axes, reverse=True):
            if stride:
                at, left = divmod(left, stride * size)
                if at >= count:
                    return False
        return bool(left < size)


class _Casts(threading.local):
    """Casts of parameters by their address: their memory, and the parameter.

    `torch.autocast` keeps them for a thread, also from one scope to the next.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[StorageWeakRef, weakref.ref[Tensor]]] = {}


_casts = _Casts()


class Owners:
    """The parameters and buffers of modules, by the memory that they have."""

    def __init__(self) -> None:
        #: the owners in each storage, by their addresses
        self._of_storage: dict[int, list[_Owner]] = {}

    def own(self, tensor: Tensor, layer: Layer) -> None:
        """Let a parameter or buffer belong to a layer, too."""
        tensor = graph.plain(tensor)
        address = 0 if isinstance(tensor, FakeTensor) else graph.address(tensor)
        if address == 0:
            return
        start, owners = tensor.data_ptr(), self._of_storage.setdefault(address, [])
        at = bisect_right(owners, start, key=lambda x: x.start)
        for i in reversed(range(at)):
            if owners[i].start != start:
                break
            if not owners[i].is_there:
                del owners[i]  # other numbers are there now
                at -= 1
            elif owners[i].tensor() is tensor:
                if layer not in owners[i].layers:
                    owners[i].layers.append(layer)
                return
        owners.insert(at, _Owner(start, weakref.ref(tensor), [layer]))

    def _owner(self, x: Tensor, preferred: str = "") -> _Owner | None:
        """Return the owner of the numbers of a tensor, or of their cast."""
        address = graph.address(x)
        storage, source = _casts.known.get(address, (None, None))
        if storage is not None and source is not None and not storage.expired():
            tensor = source()
            if tensor is not None and graph.address(tensor) != address:
                return self._owner_at(tensor, preferred)
        return self._owner_at(x, preferred)

    def _owner_at(self, x: Tensor, preferred: str) -> _Owner | None:
        """Return the owner of the memory of a tensor."""
        address = graph.address(x)
        owners = self._of_storage.get(address)
        if owners is None:
            return None
        found: list[_Owner] = []
        start = x.data_ptr()
        for i in reversed(range(bisect_right(owners, start, key=lambda x: x.start))):
            if found and owners[i].start != found[0].start:
                break
            if owners[i].is_there and owners[i].has(start):
                found.append(owners[i])
        return max(found, key=lambda owner: _rank(owner, x, preferred), default=None)

    def cast(self, x: Tensor, result: Tensor) -> None:
        """Remember a tensor that has the numbers of a parameter in another dtype."""
        owner = self._owner(x)
        if owner is None:
            return
        storage, casts = result.untyped_storage(), _casts.known
        if len(casts) >= _MOST:
            for address in [a for a, (memory, _) in casts.items() if memory.expired()]:
                del casts[address]
        casts[storage.data_ptr()] = StorageWeakRef(storage), owner.tensor

    def layer(self, x: Tensor, preferred: str) -> Layer | None:
        """Return the layer that a weight belongs to; None: it is not a weight."""
        owner = self._owner(x, preferred)
        if owner is None:
            return None
        found = (layer for layer in owner.layers if layer.name == preferred)
        return next(found, owner.layers[0])


def _rank(owner: _Owner, x: Tensor, preferred: str) -> tuple[int, bool, bool]:
    tensor = owner.tensor()
    is_whole = tensor is not None and tensor.numel() == x.numel()
    is_preferred = preferred in [layer.name for layer in owner.layers]
    return owner.start, is_whole, is_preferred
