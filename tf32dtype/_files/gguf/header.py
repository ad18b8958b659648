"""The header of a GGUF file; each value is checked before it is used.

    "GGUF", version, number of tensors, number of keys
    the keys: name, type, value
    the tensors: name, dimensions (the last axis first), kind, offset of its bytes
    padding, then the bytes of the tensors

Source: the page gguf.md of ggml's repository, version 3 of the format.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base.wording import brief

_MAGIC = b"GGUF"
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_VERSIONS = (2, 3)  # in version 1 all counts are of 32 bits
_MOST_AXES = 4
_MOST_NUMBERS = 1 << 59  # of 8 bytes each: more than any address space has


@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of a tensor are stored: in blocks along the last axis."""

    name: str
    #: the number of values per block
    block: int
    #: the number of bytes per block
    size: int


#: The kinds: GGUF's number, name, values per block and bytes per block. Source: ggml's
#: headers and gguf 0.19. Missing numbers belong to kinds that GGUF no longer has.
_KINDS_TEXT = """
    0 F32 1 4       1 F16 1 2       2 Q4_0 32 18    3 Q4_1 32 20    6 Q5_0 32 22
    7 Q5_1 32 24    8 Q8_0 32 34    9 Q8_1 32 40    10 Q2_K 256 84  11 Q3_K 256 110
    12 Q4_K 256 144 13 Q5_K 256 176 14 Q6_K 256 210 15 Q8_K 256 292
    16 IQ2_XXS 256 66               17 IQ2_XS 256 74                18 IQ3_XXS 256 98
    19 IQ1_S 256 50 20 IQ4_NL 32 18 21 IQ3_S 256 110                22 IQ2_S 256 82
    23 IQ4_XS 256 136               24 I8 1 1       25 I16 1 2      26 I32 1 4
    27 I64 1 8      28 F64 1 8      29 IQ1_M 256 56 30 BF16 1 2     34 TQ1_0 256 54
    35 TQ2_0 256 66 39 MXFP4 32 17  40 NVFP4 64 36  41 Q1_0 128 18
"""
_WORDS = _KINDS_TEXT.split()
KINDS = {
    int(number): Kind(name, int(block), int(size))
    for number, name, block, size in zip(*[iter(_WORDS)] * 4, strict=True)
}

#: The types of values by GGUF number; 8 is a string, 9 an array.
_SCALARS = {
    number: np.dtype(code)
    for number, code in enumerate("u1 i1 <u2 <i2 <u4 <i4 <f4 ? - - <u8 <i8 <f8".split())
    if code != "-"
}
_TEXT, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class Tensor:
    """The facts of a tensor in the header."""

    name: str
    #: the kind; None if `KINDS` does not have its number
    kind: Kind | None
    number: int
    #: the shape in NumPy's order, which is the reverse of the file's
    shape: tuple[int, ...]
    #: the position of its first byte in the file
    offset: int

    @property
    def nbytes(self) -> int:
        """The size in the file in bytes; 0 if the kind is not known."""
        if self.kind is None:
            return 0
        return math.prod(self.shape) // self.kind.block * self.kind.size


@dataclass(frozen=True, slots=True)
class Header:
    """The keys and tensors of a file, in the order of the file."""

    metadata: dict[str, Any]
    tensors: dict[str, Tensor]


def read(data: NDArray[np.uint8]) -> Header:
    """Read and check the header of a file.

    Parameters
    ----------
    data : ndarray of uint8
        The whole file.

    Raises
    ------
    ValueError
        If the header is not valid, or of an unsupported version. Nothing outside the
        file is read, and no more is allocated than the file contains.
    """
    walk = _Walk(data)
    if walk.take(4, "the magic") != _MAGIC:
        raise ValueError(
            f"the file must begin with {_MAGIC!r}; got {bytes(data[:4])!r}"
        )
    version = walk.number(_U32, "the version")
    if version & 0xFFFF == 0 and version:
        raise ValueError(
            "the file must be little-endian; got big-endian. Use gguf-convert-endian "
            "of the package gguf"
        )
    if version not in _VERSIONS:
        known = " or ".join(map(str, _VERSIONS))
        raise ValueError(f"version must be {known}; got {version}")
    tensors = walk.number(_U64, "the number of tensors")
    keys = walk.number(_U64, "the number of keys")
    metadata = _metadata(walk, keys)
    infos = [_info(walk, i) for i in range(tensors)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment.bit_count() != 1:
        raise ValueError(
            f"general.alignment must be a power of two; got {brief(alignment)}"
        )
    start = -(-walk.at // alignment) * alignment
    return Header(metadata, _placed(infos, start, alignment, len(data)))


class _Walk:
    """A reader that starts at the beginning of a file and never passes its end."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data.data
        self.at = 0

    def take(self, size: int, what: str) -> memoryview:
        start, end = self.at, self.at + size
        if end > len(self._data):
            left = len(self._data) - start
            raise ValueError(
                f"the file ends within {what}, which must have {size} bytes; got {left}"
            )
        self.at = end
        return self._data[start:end]

    def number(self, code: struct.Struct, what: str) -> int:
        value: int = code.unpack(self.take(code.size, what))[0]
        return value

    def text(self, what: str) -> bytes:
        return bytes(self.take(self.number(_U64, what), what))

    def name(self, what: str) -> str:
        raw = self.text(what)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise ValueError(f"{what} must be UTF-8; got {brief(raw)}") from None

    def value(self, kind: int, what: str) -> Any:
        """Read a value of one of the types."""
        if kind == _TEXT:
            # Bytes that are not UTF-8 are kept: pieces of a tokenizer can be any bytes.
            return self.text(what).decode(errors="surrogateescape")
        if kind == _ARRAY:
            return self._array(what)
        if kind not in _SCALARS:
            raise ValueError(f"{what} must be of type 0 to 12; got {kind}")
        return self._numbers(kind, 1, what)[0].item()

    def _array(self, what: str) -> list[str] | NDArray[Any]:
        kind = self.number(_U32, what)
        count = self.number(_U64, what)
        if kind == _TEXT:
            return [self.value(kind, what) for _ in range(count)]
        if kind not in _SCALARS:
            raise ValueError(f"{what} must not be an array of type {kind}")
        return self._numbers(kind, count, what)

    def _numbers(self, kind: int, count: int, what: str) -> NDArray[Any]:
        dtype = _SCALARS[kind]
        raw = np.frombuffer(self.take(count * dtype.itemsize, what), np.uint8)
        return raw != 0 if dtype == np.bool_ else raw.copy().view(dtype)


def _metadata(walk: _Walk, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for i in range(count):
        key = walk.name(f"key {i}")
        if key in metadata:
            raise ValueError(f"keys must be different; got {brief(key)} twice")
        what = f"the value of {brief(key)}"
        metadata[key] = walk.value(walk.number(_U32, what), what)
    return metadata


def _info(walk: _Walk, i: int) -> Tensor:
    """Read the entry of a tensor, whose offset counts from the first tensor's bytes."""
    name = walk.name(f"the name of tensor {i}")
    what = f"the entry of tensor {brief(name)}"
    axes = walk.number(_U32, what)
    if axes > _MOST_AXES:
        raise ValueError(
            f"tensor {brief(name)} must have at most {_MOST_AXES} axes; got {axes}"
        )
    shape = tuple(walk.number(_U64, what) for _ in range(axes))[::-1]
    if math.prod(max(length, 1) for length in shape) > _MOST_NUMBERS:
        raise ValueError(f"tensor {brief(name)} must fit in memory; got shape {shape}")
    number = walk.number(_U32, what)
    kind = KINDS.get(number)
    row = shape[-1] if shape else 1
    if kind is not None and row % kind.block:
        raise ValueError(
            f"tensor {brief(name)} must have rows of a multiple of {kind.block} values "
            f"for {kind.name}; got {row}"
        )
    return Tensor(name, kind, number, shape, walk.number(_U64, what))


def _placed(
    infos: list[Tensor], start: int, alignment: int, end: int
) -> dict[str, Tensor]:
    """Return the tensors by name, with offsets in the file; check that none overlap."""
    tensors: dict[str, Tensor] = {}
    for info in infos:
        name = brief(info.name)
        if info.name in tensors:
            raise ValueError(f"tensors must have different names; got {name} twice")
        if info.offset % alignment:
            raise ValueError(
                f"tensor {name} must begin at a multiple of {alignment}; "
                f"got {info.offset}"
            )
        offset = start + info.offset
        placed = Tensor(info.name, info.kind, info.number, info.shape, offset)
        if offset + placed.nbytes > end:
            raise ValueError(
                f"tensor {name} of shape {info.shape} must end within the file's {end} "
                f"bytes; got {placed.nbytes} bytes from byte {offset} on"
            )
        tensors[info.name] = placed
    filled = sorted((t for t in tensors.values() if t.nbytes), key=lambda t: t.offset)
    for first, second in pairwise(filled):
        if first.offset + first.nbytes > second.offset:
            raise ValueError(
                f"tensors {brief(first.name)} and {brief(second.name)} must not overlap"
            )
    return tensors
