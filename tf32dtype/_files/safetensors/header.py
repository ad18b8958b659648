"""Headers of safetensors files: read with all checks, and written.

A file is eight bytes, the header's length, little-endian; the header, a JSON object

    {"__metadata__": {"key": "text", ...},
     "name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...}

and the data, of which the tensors cover every byte once. Sizes count bits: tensors of
F4 and F6 are packed, and take whole bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from ..._base.wording import brief
from ..file_kinds import foreign
from .dtypes import KINDS

#: The longest header that the reference reads.
MAX_HEADER = 100_000_000

_LENGTH = 8  # bytes of the header's length, and what the header is padded to
_METADATA = "__metadata__"
_MAX_DIMENSIONS = 64  # of a NumPy array
_MAX_BYTES = 2**63 - 1


class Entry(NamedTuple):
    """A tensor of a file: its bytes are `begin` to `end`, from the file's start."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """What a header says, checked; the entries are in the order of their bytes."""

    entries: dict[str, Entry]
    metadata: dict[str, str]


class Spec(NamedTuple):
    """A tensor to be written."""

    name: str
    dtype: str
    shape: tuple[int, ...]


# -- reading ----------------------------------------------------------------


def parse(stream: IO[bytes], size: int, file: str) -> Header:
    """Read and check the header of a file.

    Nothing is allocated but what the header itself takes; all tensors that are returned
    lie within the file.

    Parameters
    ----------
    stream : binary file object
        At the file's start.
    size : int
        Bytes of the whole file.
    file : str
        Its name, for errors.

    Raises
    ------
    ValueError
        For anything that is no header of a file of this size: one too long or cut
        short, no JSON object, keys that are there twice, dtypes without a meaning,
        shapes that are none, sizes that are not those of dtype and shape, tensors that
        overlap, bytes that belong to none, metadata that is no text. The error names
        the file, and the tensor.
    """
    try:
        table = _table(stream, size)
        raw = table.pop(_METADATA, None)
        metadata = {} if raw is None else checked_metadata(raw)
        start = stream.tell()
        entries = [_entry(name, facts, start) for name, facts in table.items()]
        entries.sort(key=lambda entry: entry[3:])
        _check_cover(entries, start, size)
    except (ValueError, TypeError) as error:
        if other := foreign(stream):
            raise ValueError(
                f"{file} must be a safetensors file; got {'; '.join(other)}"
            ) from None
        raise ValueError(f"{file} is not a valid safetensors file: {error}") from None
    return Header({entry.name: entry for entry in entries}, metadata)


def _table(stream: IO[bytes], size: int) -> dict[str, Any]:
    """The JSON object; the stream then is where the data begin."""
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        raise ValueError(
            f"the file must have at least {_LENGTH} bytes; got {len(head)}"
        )
    length = int.from_bytes(head, "little")
    _check_length(length)
    if length > size - _LENGTH:
        raise ValueError(
            f"the header must have {length} bytes, as its length says; got only"
            f" {size - _LENGTH}"
        )
    text = stream.read(length)
    if len(text) < length:
        raise ValueError("the file was truncated while being read")
    try:
        return parse_object(text)
    except ValueError as error:
        raise ValueError(f"header: {error}") from None


def parse_object(text: bytes) -> dict[str, Any]:
    """A JSON object of which no key is there twice.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        found = json.loads(
            text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise ValueError(
            "JSON must have few levels; got more than Python can read"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(f"JSON must be an object; got {brief(found)}")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"keys must be different; got {brief(key)} twice")
        table[key] = value
    return table


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def _entry(name: str, facts: Any, start: int) -> Entry:
    try:
        check_name(name)
        if not isinstance(facts, dict):
            raise ValueError(f"entry must be an object; got {brief(facts)}")
        for key in ("dtype", "shape", "data_offsets"):
            if key not in facts:
                raise ValueError(f"entry must have {key}; got {brief(facts)}")
        dtype, shape = facts["dtype"], facts["shape"]
        if not isinstance(shape, list):
            raise ValueError(f"shape must be a list; got {brief(shape)}")
        needed = check_size(dtype, shape)
        begin, end = _offsets(facts["data_offsets"])
        if end - begin != needed:
            raise ValueError(
                f"data_offsets must span {needed} bytes for {dtype} of shape "
                f"{brief(shape)}; got [{begin}, {end}], which span {end - begin}"
            )
    except ValueError as error:
        raise ValueError(f"tensor {brief(name)}: {error}") from None
    return Entry(name, dtype, tuple(shape), start + begin, start + end)


def _offsets(pair: Any) -> tuple[int, int]:
    if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_count, pair))):
        raise ValueError(
            f"data_offsets must be two integers from 0 to {_MAX_BYTES}; "
            f"got {brief(pair)}"
        )
    begin, end = pair
    return begin, end


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number <= _MAX_BYTES


def _check_cover(entries: list[Entry], start: int, size: int) -> None:
    """Tensors, in order, take all bytes of the data once."""
    for entry in entries:
        if entry.end > size:
            raise ValueError(
                f"tensor {brief(entry.name)} must end within the file's {size} bytes; "
                f"got end {entry.end}. Copy or write the file again"
            )
    here = start
    for before, entry in zip([None, *entries], entries, strict=False):
        if entry.begin < here:
            assert before is not None
            raise ValueError(
                f"tensors {brief(before.name)} and {brief(entry.name)} must not "
                f"overlap; got bytes {before.begin} to {before.end} and {entry.begin} "
                f"to {entry.end}"
            )
        if entry.begin > here:
            raise ValueError(
                f"bytes {here} to {entry.begin}, before tensor {brief(entry.name)}, "
                "do not belong to any tensor"
            )
        here = entry.end
    if here < size:
        raise ValueError(f"the last {size - here} bytes do not belong to any tensor")


# -- both -------------------------------------------------------------------


def check_name(name: str) -> None:
    """Raise ValueError for a tensor's name that no file can have."""
    if name == _METADATA:
        raise ValueError(f"name must not be {_METADATA}")
    if not is_unicode(name):
        raise ValueError("name must be valid Unicode; got half a surrogate pair")


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON can write."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_size(dtype: Any, shape: Sequence[Any]) -> int:
    """Bytes that a tensor takes in the file.

    Raises
    ------
    ValueError
        For an unknown dtype, a shape that no array has, packed items that do not fill
        whole bytes.
    """
    kind = KINDS.get(dtype) if isinstance(dtype, str) else None
    if kind is None:
        raise ValueError(_unknown_dtype(dtype))
    if len(shape) > _MAX_DIMENSIONS:
        raise ValueError(
            f"shape must have at most {_MAX_DIMENSIONS} dimensions; got {len(shape)}"
        )
    if not all(map(_is_count, shape)):
        raise ValueError(
            f"shape must be integers from 0 to {_MAX_BYTES}; got {brief(shape)}"
        )
    # NumPy asks this of arrays without items too.
    if math.prod(n for n in shape if n) * kind.dtype.itemsize > _MAX_BYTES:
        raise ValueError(
            f"shape must take less than 2**63 bytes; got {brief(shape)} of {dtype}"
        )
    if not kind.is_whole(shape):
        raise ValueError(
            f"shape must fill whole bytes; got {math.prod(shape)} elements of {dtype}, "
            f"{kind.bits} bits each"
        )
    return kind.size(shape)


def _unknown_dtype(dtype: Any) -> str:
    return f"dtype must be one of {', '.join(KINDS)}; got {brief(dtype)}"


def _check_length(length: int) -> None:
    if length > MAX_HEADER:
        raise ValueError(f"header must have at most {MAX_HEADER} bytes; got {length}")


# -- writing ----------------------------------------------------------------


def write(
    specs: Iterable[Spec | tuple[str, str, Sequence[int]]],
    metadata: Mapping[str, str] | None = None,
) -> tuple[bytes, dict[str, int]]:
    """The header of a file.

    Parameters
    ----------
    specs : iterable of (name, dtype, shape)
        Names of dtypes are those of `KINDS`.
    metadata : mapping of str to str, optional

    Returns
    -------
    header : bytes
        With its length, padded so that the data begin at a multiple of eight. Byte for
        byte that of the reference, which leaves the order of metadata open: here it is
        sorted.
    offsets : dict of str to int
        Where the data of each tensor begin, in bytes from the file's start, in the
        order of the file: by dtype, so that each tensor is aligned, then by name.

    Raises
    ------
    ValueError
        For what `parse` refuses, and two tensors of one name.
    TypeError
        For names and metadata that are no texts.
    """
    tensors = [Spec(name, dtype, tuple(shape)) for name, dtype, shape in specs]
    table: dict[str, Any] = {}
    if metadata is not None:
        table[_METADATA] = dict(sorted(checked_metadata(metadata).items()))
    sizes = {}
    here = 0
    for name, dtype, shape in _in_order(tensors):
        if name in sizes:
            raise ValueError(
                f"tensors must have different names; got {brief(name)} twice"
            )
        try:
            check_name(name)
            size = check_size(dtype, shape)
        except ValueError as error:
            raise ValueError(f"tensor {brief(name)}: {error}") from None
        sizes[name] = size
        offsets = [here, here + size]
        table[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        here += size
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    _check_length(len(text))
    head = len(text).to_bytes(_LENGTH, "little") + text
    return head, dict(zip(sizes, _starts(sizes.values(), len(head)), strict=True))


def _in_order(tensors: list[Spec]) -> list[Spec]:
    order = {dtype: number for number, dtype in enumerate(reversed(KINDS))}
    for name, dtype, _ in tensors:
        if not isinstance(name, str):
            raise TypeError(f"tensor names must be strings; got {brief(name)}")
        if dtype not in order:
            raise ValueError(f"tensor {brief(name)}: {_unknown_dtype(dtype)}")
    return sorted(tensors, key=lambda x: (order[x.dtype], x.name))


def _starts(sizes: Iterable[int], here: int) -> Iterator[int]:
    for size in sizes:
        yield here
        here += size


def checked_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata as a file can have it, or a TypeError or ValueError."""
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a mapping of strings; got {brief(metadata)}")
    for pair in metadata.items():
        for text in pair:
            if not isinstance(text, str):
                raise TypeError(
                    f"metadata must hold only strings; got {brief(text)} (key "
                    f"{brief(pair[0])})"
                )
            if not is_unicode(text):
                raise ValueError(
                    "metadata must be valid Unicode; got half a surrogate pair (key "
                    f"{brief(pair[0])})"
                )
    return dict(metadata)
