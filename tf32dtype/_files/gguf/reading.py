"""Tensors of GGUF files, as llama.cpp reads them: arrays, and arrays of blocks.

Floats and integers are arrays on the file's own bytes, which are mapped; MXFP4, NVFP4,
Q8_0 and Q4_0 become arrays of blocks or tiles with the same elements and scales. No
library is needed to read, and the package `gguf` writes:

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
#: What becomes of a tensor.
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
    mmap : bool
        Arrays are read-only views of the file, which is mapped into memory: the system
        reads what is used of it, and the file must not be shortened meanwhile. False:
        arrays of their own, which can be written.
    names : str or iterable of str, optional
        Names of tensors, or patterns as in file names: `"blk.0.*"`. All by default.

    Returns
    -------
    dict of str to ndarray, BlockArray or TileArray
        In the order of the file; `File` has what becomes of each kind.

    Raises
    ------
    ValueError
        If it is no such file, or damaged: the error names the file, the tensor and
        what is wrong. For a tensor of a kind that only the package gguf reads, if it
        is not installed, before any is read.
    KeyError
        For a name that is no tensor's, and a pattern of none; it offers those near.
    OSError
        If the file cannot be read.

    See Also
    --------
    open
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
    """A GGUF file whose tensors are read one at a time, when they are asked for.

    Parameters
    ----------
    path : path

    Returns
    -------
    File
        A mapping from names, to be used in a `with` statement or closed. Only the
        header has been read and checked.

    Raises
    ------
    ValueError, OSError
        As `load`.
    """
    return File(path)


class File(NamedTensors[Held]):
    """The tensors of a GGUF file by name. Arrays that it returned outlive `close`.

    Shapes are NumPy's: the axis that GGUF has first is the last one.

    ============================= =====================================================
    kind                          what it becomes
    ============================= =====================================================
    F64, F32, F16, BF16           a read-only array on the bytes of the file, mapped
    I64, I32, I16, I8             likewise
    MXFP4                         `~tf32dtype.blocks.BlockArray` of mxfp4
    NVFP4                         `~tf32dtype.blocks.BlockArray` of nvfp4; the file may
                                  have what multiplies it as a tensor of its own,
                                  NAME.scale
    Q8_0, Q4_0                    `~tf32dtype.blocks.TileArray` of int8, a float16 scale
                                  for 32 numbers
    Q4_K, IQ4_XS and the like     float32 values of `gguf.dequantize`, if the package
                                  gguf is installed; else an error
    ============================= =====================================================

    Values are those of `gguf.dequantize`, but for scales of NaN (MXFP4's 0xff and
    NVFP4's 0x7f), which it takes for 2^128 and 0; for numbers beyond float32, which it
    makes infinite and a block array the largest; and for the sign of zeros.

    Attributes
    ----------
    metadata : dict of str to values
        The keys of the file: numbers, texts, lists of texts, arrays of numbers.
    tensors : dict of str to Tensor
        What the header says of each: `name`, `kind` (with its `name`), `shape`,
        `nbytes`, and `offset` in the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
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
        """Let go of the file."""
        self._data = None

    def check(self, name: str) -> None:
        """Whether a tensor is of a kind that is read.

        Parameters
        ----------
        name : str
            The tensor's.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        ValueError
            If it is of another kind; the error says what reads it.
        """
        self._reader(name)

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor's rows, as `gguf.dequantize` takes them.

        Parameters
        ----------
        name : str
            The tensor's.

        Returns
        -------
        ndarray of uint8
            Of the tensor's shape, but for the last axis: the bytes of a row.

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
        if name not in self.tensors:
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
        If it does not dequantize the kind.
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
    """Each block of 64 numbers is four of 16: their scales, then their codes."""
    blocks = _blocks(raw, tensor)
    *rows, count, _ = blocks.shape
    scales = blocks[..., :4].reshape(*rows, count * 4)
    halves = blocks[..., 4:].reshape(*rows, count * 4, 8)
    return BlockArray.from_codes("nvfp4", _paired(halves), scales, shape=tensor.shape)


def _q8_0(raw: NDArray[np.uint8], tensor: Tensor) -> TileArray:
    blocks = _blocks(raw, tensor)
    return _scaled(blocks, blocks[..., 2:].view(np.int8), tensor)


def _q4_0(raw: NDArray[np.uint8], tensor: Tensor) -> TileArray:
    """The codes 0 to 15 are the integers -8 to 7."""
    blocks = _blocks(raw, tensor)
    codes = bit_packing.unpack(_paired(blocks[..., 2:]), 4)
    return _scaled(blocks, codes.view(np.int8) - np.int8(8), tensor)


def _scaled(
    blocks: NDArray[np.uint8], elements: NDArray[np.int8], tensor: Tensor
) -> TileArray:
    """Blocks that begin with a float16 scale."""
    scales = blocks[..., :2].view("<f2")[..., 0]
    return TileArray.from_codes(
        "int8", elements.reshape(tensor.shape), scales, (1, elements.shape[-1])
    )


def _blocks(raw: NDArray[np.uint8], tensor: Tensor) -> NDArray[np.uint8]:
    """Bytes as (*rows, blocks of a row, bytes of a block)."""
    kind = tensor.kind
    assert kind is not None
    *rows, length = tensor.shape
    return raw.reshape(*rows, length // kind.block, kind.size)


def _paired(halves: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Neighbors in a byte, the first in the low half.

    GGUF has the first half of a block in the low halves of its bytes, and the second
    half of it in the high ones.
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
