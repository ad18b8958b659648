"""Read tensors of GGUF files, the format of llama.cpp, as arrays and block arrays.

Floats and integers become arrays that view the mapped bytes of the file. MXFP4, NVFP4,
Q8_0 and Q4_0 become arrays of blocks or tiles with the same elements and scales.
Reading needs no other library. To write, use the package `gguf`:

    writer.add_tensor(name, a.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._base.arguments import checked_path
from ..._base.mapping import map_file
from ..._base.requirements import install
from ..._base.wording import brief
from ..._formats import bit_packing
from ..._formats.codes import from_bits
from ...blocks import BlockArray, TileArray
from ..tensor_names import NamedTensors, UnknownTensor, select
from . import header as gguf_header
from .header import Kind, Tensor

Path = str | os.PathLike[str]
#: The types that a tensor is read as.
Held = NDArray[Any] | BlockArray | TileArray


__all__ = ["File", "load", "open"]


def __dir__() -> list[str]:
    return __all__


def load(
    path: Path, *, mmap: bool = True, names: str | Iterable[str] | None = None
) -> dict[str, Held]:
    """Read tensors of a GGUF file.

    Parameters
    ----------
    path : path
        The path of the file.
    mmap : bool
        True: arrays are read-only views of the file, which is mapped into memory. The
        system reads only the used pages, and the file must not be shortened while it is
        mapped. False: new arrays, which can be written.
    names : str or iterable of str, optional
        Names of tensors, or patterns as in file names: `"blk.0.*"`. All by default.

    Returns
    -------
    dict of str to ndarray, BlockArray or TileArray
        The tensors in the order of the file. See `File` for the result of each kind.

    Raises
    ------
    ValueError
        If the file is not a GGUF file, or is damaged: the error names the file, the
        tensor and the fault. For a tensor of a kind that only the package gguf reads,
        if that package is not installed; this error comes before any tensor is read.
    KeyError
        For a name or pattern that matches no tensor; the error suggests similar names.
    OSError
        If the file cannot be read.
    TypeError
        If `path` is not a path, or a name is not a string.

    See Also
    --------
    open : Read tensors one at a time.
    tf32dtype.safetensors.load : Read a safetensors file.

    Examples
    --------
    Write a file with the package gguf, and read it:

    >>> import gguf, numpy as np, tf32dtype as td
    >>> writer = gguf.GGUFWriter("a.gguf", "llama")
    >>> writer.add_tensor("w", np.array([1.5, 2], np.float16))
    >>> writer.write_header_to_file()
    >>> writer.write_kv_data_to_file()
    >>> writer.write_tensors_to_file()
    >>> writer.close()
    >>> td.interop.gguf.load("a.gguf", names="w*")
    {'w': array([1.5, 2. ], dtype=float16)}
    """
    with open(path) as file:
        wanted = select(names, file.tensors, file._path)
        for name in wanted:
            file.check(name)
        found = {name: file[name] for name in wanted}
    if not mmap:
        for name, array in found.items():
            found[name] = array.copy() if isinstance(array, np.ndarray) else array
    return found


def open(path: Path) -> File:
    """Open a GGUF file whose tensors are read one at a time, on access.

    Parameters
    ----------
    path : path
        The path of the file.

    Returns
    -------
    File
        A mapping from names to tensors; close it or use it in a `with` statement. Only
        the header is read and checked at this point.

    Raises
    ------
    ValueError, OSError, TypeError
        As for `load`.

    See Also
    --------
    load : Read all tensors, or some by name.
    File : The mapping that this function returns.

    Examples
    --------
    Write a file with the package gguf, and read it:

    >>> import gguf, numpy as np, tf32dtype as td
    >>> writer = gguf.GGUFWriter("a.gguf", "llama")
    >>> writer.add_tensor("w", np.array([1.5, 2], np.float16))
    >>> writer.write_header_to_file()
    >>> writer.write_kv_data_to_file()
    >>> writer.write_tensors_to_file()
    >>> writer.close()
    >>> with td.interop.gguf.open("a.gguf") as f:
    ...     f.metadata["general.architecture"], f.tensors["w"].kind.name, f["w"]
    ('llama', 'F16', array([1.5, 2. ], dtype=float16))
    """
    return File(path)


class File(NamedTensors[Held]):
    """The tensors of a GGUF file by name. Arrays that it returned outlive `close`.

    Shapes are in NumPy's order: the first axis of GGUF is the last one.

    ============================= =====================================================
    kind                          result
    ============================= =====================================================
    F64, F32, F16, BF16           a read-only array on the bytes of the file, mapped
    I64, I32, I16, I8             likewise
    MXFP4                         `~tf32dtype.blocks.BlockArray` of mxfp4
    NVFP4                         `~tf32dtype.blocks.BlockArray` of nvfp4; the file may
                                  have its factor as a separate tensor, NAME.scale
    Q8_0, Q4_0                    `~tf32dtype.blocks.TileArray` of int8, one float16
                                  scale per 32 values
    Q4_K, IQ4_XS and the like     float32 values of `gguf.dequantize`, if the package
                                  gguf is installed; else an error
    ============================= =====================================================

    Values equal those of `gguf.dequantize`, with three exceptions. Scales of NaN
    (MXFP4's 0xff and NVFP4's 0x7f) are 2^128 and 0 for `gguf.dequantize`. Values out of
    the range of float32 are infinite there, but the largest number in a block array.
    The sign of zeros can differ.

    Attributes
    ----------
    metadata : dict of str to values
        The keys of the file: numbers, strings, lists of strings, arrays of numbers.
    tensors : dict of str to Tensor
        The facts of each tensor in the header: `name`, `kind` (with its `name`),
        `shape`, `nbytes`, and `offset` in the file.

    See Also
    --------
    open : Open a file, with an example.
    """

    def __init__(self, path: Path) -> None:
        self._path = checked_path(path)
        self._data: NDArray[np.uint8] | None = _mapped(self._path)
        try:
            header = gguf_header.read(self._data)
        except ValueError as error:
            raise ValueError(
                f"{self._path} is not a valid GGUF file: {error}"
            ) from None
        self.metadata: dict[str, Any] = header.metadata
        self.tensors: dict[str, Tensor] = header.tensors
        self._names = self.tensors

    def __getitem__(self, name: str) -> Held:
        read = self._reader(name)
        tensor = self.tensors[name]
        raw = self._bytes(tensor)
        try:
            found = read(raw, tensor)
        except ValueError as error:
            raise ValueError(f"{self._path}: tensor {brief(name)}: {error}") from None
        _core.name_tensor(found, name)
        return found

    def __repr__(self) -> str:
        return f"<{len(self)} tensors of {self._path}>"

    def close(self) -> None:
        """Release the file."""
        self._data = None

    def check(self, name: str) -> None:
        """Raise an error if a tensor is of a kind that cannot be read.

        Parameters
        ----------
        name : str
            The name of the tensor.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        ValueError
            If its kind cannot be read; the error names the kinds that can.
        """
        self._reader(name)

    def raw(self, name: str) -> NDArray[np.uint8]:
        """Return the bytes of the rows of a tensor, as `gguf.dequantize` takes them.

        Parameters
        ----------
        name : str
            The name of the tensor.

        Returns
        -------
        ndarray of uint8
            The tensor's shape, except that the last axis counts the bytes of a row.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        ValueError
            For a kind whose bytes are not known.
        """
        kind = self._kind(name)
        tensor = self.tensors[name]
        *rows, length = tensor.shape or (1,)
        row = length // kind.block * kind.size
        return self._bytes(tensor).reshape(*rows, row)

    def _bytes(self, tensor: Tensor) -> NDArray[np.uint8]:
        if self._data is None:
            raise ValueError(f"{self._path} is closed and cannot be read")
        return self._data[tensor.offset : tensor.offset + tensor.nbytes]

    def _kind(self, name: str) -> Kind:
        if not isinstance(name, str) or name not in self.tensors:
            raise UnknownTensor(name, self.tensors, self._path)
        tensor = self.tensors[name]
        if tensor.kind is None:
            raise ValueError(
                f"{self._path}: tensor {brief(name)} must be of a kind that this "
                f"version knows; got kind {tensor.number}"
            )
        return tensor.kind

    def _reader(self, name: str) -> _Reader:
        kind = self._kind(name).name
        if kind in _READERS:
            return _READERS[kind]
        try:
            return _of_package(kind)
        except ImportError:
            why = f"; the package gguf reads others ({install('gguf')})"
        except NotImplementedError:
            why = ", and the installed package gguf does not read it"
        raise ValueError(
            f"{self._path}: tensor {brief(name)} must have one of the "
            f"kinds {', '.join(_READERS)}; got {kind}{why}"
        )


def _mapped(path: str) -> NDArray[np.uint8]:
    if os.path.getsize(path) == 0:
        raise ValueError(f"{path} is not a valid GGUF file: the file is empty")
    with builtins.open(path, "rb") as stream:
        return map_file(stream.fileno(), os.fstat(stream.fileno()).st_size)


# -- kinds ---------------------------------------------------------------------------

_Reader = Callable[[NDArray[np.uint8], Tensor], Held]


def _plain(code: str) -> _Reader:
    return lambda raw, tensor: raw.view(code).reshape(tensor.shape)


@cache
def _of_package(kind: str) -> _Reader:
    """Return the reader of a kind that the package gguf dequantizes.

    Raises
    ------
    ImportError
        If the package is not installed.
    NotImplementedError
        If the package does not dequantize the kind.
    """
    import gguf

    which = gguf.GGMLQuantizationType[kind]
    _, size = gguf.GGML_QUANT_SIZES[which]
    gguf.dequantize(np.zeros((1, size), np.uint8), which)

    def read(raw: NDArray[np.uint8], tensor: Tensor) -> NDArray[np.float32]:
        blocks = _blocks(raw, tensor)
        values = gguf.dequantize(blocks.reshape(*blocks.shape[:-2], -1), which)
        return np.asarray(values, np.float32).reshape(tensor.shape)

    return read


def _bfloat16(raw: NDArray[np.uint8], tensor: Tensor) -> NDArray[Any]:
    return from_bits(raw.view("<u2"), "bfloat16").reshape(tensor.shape)


def _mxfp4(raw: NDArray[np.uint8], tensor: Tensor) -> BlockArray:
    blocks = _blocks(raw, tensor)
    scales, halves = blocks[..., 0], blocks[..., 1:]
    return BlockArray.from_codes("mxfp4", _paired(halves), scales, shape=tensor.shape)


def _nvfp4(raw: NDArray[np.uint8], tensor: Tensor) -> BlockArray:
    """Split blocks of 64 values (four scales, then all codes) into blocks of 16."""
    blocks = _blocks(raw, tensor)
    *rows, count, _ = blocks.shape
    scales = blocks[..., :4].reshape(*rows, count * 4)
    halves = blocks[..., 4:].reshape(*rows, count * 4, 8)
    return BlockArray.from_codes("nvfp4", _paired(halves), scales, shape=tensor.shape)


def _q8_0(raw: NDArray[np.uint8], tensor: Tensor) -> TileArray:
    blocks = _blocks(raw, tensor)
    return _scaled(blocks, blocks[..., 2:].view(np.int8), tensor)


def _q4_0(raw: NDArray[np.uint8], tensor: Tensor) -> TileArray:
    """Convert the codes 0 to 15 to the integers -8 to 7, and read their scales."""
    blocks = _blocks(raw, tensor)
    codes = bit_packing.unpack(_paired(blocks[..., 2:]), 4)
    return _scaled(blocks, codes.view(np.int8) - np.int8(8), tensor)


def _scaled(
    blocks: NDArray[np.uint8], elements: NDArray[np.int8], tensor: Tensor
) -> TileArray:
    """Return the tiles of blocks that begin with a float16 scale."""
    scales = blocks[..., :2].view("<f2")[..., 0]
    return TileArray.from_codes(
        "int8", elements.reshape(tensor.shape), scales, (1, elements.shape[-1])
    )


def _blocks(raw: NDArray[np.uint8], tensor: Tensor) -> NDArray[np.uint8]:
    """Return bytes with the shape (*rows, blocks per row, bytes per block)."""
    kind = tensor.kind
    assert kind is not None
    *rows, length = tensor.shape
    return raw.reshape(*rows, length // kind.block, kind.size)


def _paired(halves: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return codes with two neighbors in each byte, the first in the low half.

    GGUF stores the first half of a block in the low halves of its bytes, and the second
    half of the block in the high halves.
    """
    pairs = np.ascontiguousarray(halves).view("<u2")
    codes = np.empty(halves.shape, np.uint8)
    first, second = np.split(codes, 2, axis=-1)
    first[...] = pairs & 0xF | pairs >> 4 & 0xF0
    second[...] = pairs >> 4 & 0xF | pairs >> 8 & 0xF0
    return codes


_READERS: dict[str, _Reader] = {
    "F64": _plain("<f8"),
    "F32": _plain("<f4"),
    "F16": _plain("<f2"),
    "BF16": _bfloat16,
    "I64": _plain("<i8"),
    "I32": _plain("<i4"),
    "I16": _plain("<i2"),
    "I8": _plain("i1"),
    "MXFP4": _mxfp4,
    "NVFP4": _nvfp4,
    "Q8_0": _q8_0,
    "Q4_0": _q4_0,
}
