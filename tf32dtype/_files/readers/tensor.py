"""A tensor of a file, and a file of tensors: what all readers make of theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._base.errors import UserError
from ..tensor_names import NamedTensors

if TYPE_CHECKING:
    from ..safetensors.schemes import Group

Array = NDArray[Any]


@dataclass(frozen=True)
class Tensor:
    """A tensor that is still in its file."""

    name: str
    #: what its numbers are: a format's name, a dtype's, a block format's, or what else
    #: the file calls them
    label: str
    shape: tuple[int, ...]
    #: bytes of its numbers, and of their scales
    nbytes: int
    #: the array, mapped where the file allows; or an array of blocks, or of tiles. A
    #: ValueError names the file, the tensor and what is wrong
    read: Callable[[], Any]
    #: of what `read` returns; None: blocks, or what cannot be read
    dtype: np.dtype[Any] | None = None
    #: those of the file that hold it; empty: itself alone
    parts: tuple[Tensor, ...] = ()
    #: the one of several files that it is in
    path: str = ""
    #: of a weight in several tensors of a safetensors file
    group: Group | None = None
    #: why its numbers may mean something else than they say; empty: they do not
    doubt: str = ""
    #: why `read` would fail; empty: nothing is known against it
    problem: str = ""

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    def get(self) -> Any:
        """What `read` returns.

        Raises
        ------
        UserError
            If it cannot be read.
        """
        try:
            return self.read()
        except (ValueError, TypeError) as error:
            raise UserError(str(error)) from None


class TensorFile(NamedTensors[Tensor]):
    """The tensors of a file by name, in the file's order; a context that closes it.

    Parameters
    ----------
    kind : str
        What the file is: "safetensors".
    paths : sequence of str
        The files that it consists of, the one that names the others first.
    tensors : sequence of Tensor
    metadata : mapping of str to str
        What a safetensors file says of itself.
    close : callable
    is_array : bool
        It holds one array without a name; the tensor's is the file's.
    """

    def __init__(
        self,
        kind: str,
        paths: Sequence[str],
        tensors: Sequence[Tensor],
        *,
        metadata: Mapping[str, str] | None = None,
        close: Callable[[], object] = lambda: None,
        is_array: bool = False,
    ) -> None:
        self.kind = kind
        self.paths = tuple(paths)
        self.metadata = dict(metadata or {})
        self.is_array = is_array
        self._tensors = self._names = {tensor.name: tensor for tensor in tensors}
        self._close = close

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def close(self) -> None:
        self._close()
