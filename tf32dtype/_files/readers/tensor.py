"""A tensor of a file, and a file of tensors: the common result of all readers."""

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
    #: the name of its format, dtype or block format, or any other name that the file
    #: has for its values
    label: str
    shape: tuple[int, ...]
    #: the size of its values and their scales in bytes
    nbytes: int
    #: the function that returns the array (mapped if possible), or the array of blocks
    #: or tiles; its ValueError names the file, the tensor and the fault
    read: Callable[[], Any]
    #: the dtype of the array; None for blocks and for unreadable tensors
    dtype: np.dtype[Any] | None = None
    #: the tensors of the file that it consists of; empty if it is a single tensor
    parts: tuple[Tensor, ...] = ()
    #: the file that contains it, if there are several files
    path: str = ""
    #: the facts of a weight in several tensors of a safetensors file
    group: Group | None = None
    #: why its values may need scales or another decoding; empty if they do not
    doubt: str = ""
    #: why `read` would fail; empty if no reason is known
    problem: str = ""

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def get(self) -> Any:
        """Read the tensor.

        Raises
        ------
        UserError
            If the tensor cannot be read.
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
        The kind of the file, such as "safetensors".
    paths : sequence of str
        The files that it consists of; a file that names the others comes first.
    tensors : sequence of Tensor
    metadata : mapping of str to str
        The metadata of a safetensors file.
    close : callable
        The function that closes the file.
    is_array : bool
        Whether the file has a single array without a name. The tensor then has the name
        of the file.
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
