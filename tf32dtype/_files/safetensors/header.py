"""Read, check and write headers of safetensors files.

A file begins with eight bytes, the little-endian length of the header. The header
follows, a JSON object

    {"__metadata__": {"key": "text", ...},
     "name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...}

and then the data. Each byte of the data belongs to exactly one tensor. Tensors of F4
and F6 are packed and must fill whole bytes.
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

_LENGTH = 8  # bytes of the length; the header is padded to a multiple of it
_METADATA = "__metadata__"
_MAX_DIMENSIONS = 64  # of a NumPy array
_MAX_BYTES = 2**63 - 1


class Entry(NamedTuple):
    """A tensor of a file, which has the bytes `begin` to `end` of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """The checked content of a header; the entries are in the order of their bytes."""

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

    Only the header itself is allocated. All tensors in the result are within the file.

    Parameters
    ----------
    stream : binary file object
        The file, at its start.
    size : int
        The size of the whole file in bytes.
    file : str
        The name of the file, for errors.

    Raises
    ------
    ValueError
        If the header is too long, truncated or not a JSON object, or has a key twice.
        If a dtype is unknown, a shape is invalid, or a size does not match dtype and
        shape. If tensors overlap, or bytes belong to no tensor. If metadata are not
        strings. The error names the file and the tensor.
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
    """Return the JSON object, and leave the stream at the start of the data."""
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
    """Parse a JSON object whose keys are all different.

    Raises
    ------
    ValueError
        If the text is not such an object.
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
    """Raise ValueError unless each byte of the data belongs to exactly one tensor."""
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
    """Return whether a string is free of lone surrogates, which JSON can contain."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_size(dtype: Any, shape: Sequence[Any]) -> int:
    """Return the number of bytes that a tensor takes in the file.

    Raises
    ------
    ValueError
        For an unknown dtype, for a shape that an array cannot have, and for packed
        elements that do not fill whole bytes.
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
    # NumPy requires this for arrays without elements too.
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
    """Return the header of a file, and where the data of its tensors begin.

    Parameters
    ----------
    specs : iterable of (name, dtype, shape)
        The tensors; names of dtypes are those of `KINDS`.
    metadata : mapping of str to str, optional
        The metadata of the file.

    Returns
    -------
    header : bytes
        The length and the header, padded so that the data begin at a multiple of eight.
        The bytes equal those of the reference writer, which does not define the order
        of metadata. This function sorts metadata by key.
    offsets : dict of str to int
        The positions of the data of each tensor, in bytes from the start of the file.
        The order is that of the file: by dtype, so that each tensor is aligned, then by
        name.

    Raises
    ------
    ValueError
        For tensors that `parse` would refuse, and for two tensors with the same name.
    TypeError
        If a name or metadata are not strings.
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
    """Return checked metadata; raise TypeError or ValueError if they are not valid."""
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
