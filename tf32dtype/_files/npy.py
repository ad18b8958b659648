"""Headers and data of `.npy` files with this package's formats.

NumPy keeps the bits of a custom dtype but loses its name. This module keeps the name in
one of two forms. "bits" is a file of unsigned integers, which every reader opens; the
name is a Python comment after the dictionary in the header:

    {'descr': '<u2', 'fortran_order': False, 'shape': (3,), } # tf32dtype: bfloat16

NumPy reads the dictionary with `ast.literal_eval`, which skips comments; NumPy would
refuse another key in the dictionary. "names" is a file with the format's name in the
place of a NumPy dtype. `np.dtype` knows this name once this package is imported. Fields
of structured dtypes can have such names too:

    {'descr': 'bfloat16', 'fortran_order': False, 'shape': (3,), }

Arrays of blocks are stored as the bytes of their buffer; a comment has all other facts:

    {'descr': '|u1', 'fortran_order': False, 'shape': (34,), } # tf32dtype blocks:
    {'format': 'mxfp4', 'shape': (64,), 'axis': 0, 'block_size': 32,
    'scale_format': 'float8_e8m0fnu', 'tensor_scale': 1.0}      (one line in the file)

Arrays of tiles are stored in the same form: codes, then scales, with their facts.

Values are little-endian; unused bits are zero. The file format is NEP 1's.
"""

from __future__ import annotations

import re
import struct
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._formats.codes import bits, chunks
from .._formats.table import Format, as_own, format_of_dtype, formats

if TYPE_CHECKING:
    from ..blocks.facts_text import Scaled
    from ..blocks.layout import Facts
    from ..blocks.tile_bytes import TileFacts

    #: The facts in a header that NumPy does not know.
    Form: TypeAlias = Format | Facts | TileFacts

Header = Literal["bits", "names"]

_ALIGNMENT = 64  # of the data in the file, as in NumPy's own files
_CHUNK_BYTES = 1 << 24
_MOST_HEADER = 10_000  # characters; np.load refuses more
_COMMENT = r"\}\s*# tf32dtype: (\S+)\s*\Z"
_BLOCKS_COMMENT = r"\}\s*# tf32dtype blocks: (.*?)\s*\Z"


# -- writing ----------------------------------------------------------------


def preamble(array: NDArray[Any], header: Header) -> bytes:
    """Return the bytes before the data of an array of a format, or with such fields.

    Raises
    ------
    ValueError
        If the header would be longer than readers accept, or if fields overlap.
    """
    form = format_of_dtype(array.dtype)
    descr, comment = descr_of(array.dtype), ""
    if form is not None and header == "bits":
        descr, comment = f"<u{form.itemsize}", f"tf32dtype: {form.name}"
    return _header(descr, array.shape, _is_fortran(array), comment)


def write(stream: IO[bytes], array: NDArray[Any], header: Header) -> None:
    """Write an array of a format, or an array with fields of formats."""
    stream.write(preamble(array, header))
    order: Literal["C", "F"] = "F" if _is_fortran(array) else "C"
    for chunk in chunks(array, _CHUNK_BYTES, order):
        items = np.zeros(len(chunk), array.dtype)
        _put(items, chunk)
        stream.write(items.tobytes())


def write_blocks(stream: IO[bytes], array: Scaled) -> None:
    """Write an array of blocks or of tiles."""
    from ..blocks.facts_text import to_bytes, to_text

    data = to_bytes(array)
    comment = f"tf32dtype blocks: {to_text(array)}"
    stream.write(_header("|u1", data.shape, False, comment))
    stream.write(data.tobytes())


def descr_of(dtype: np.dtype[Any]) -> Any:
    """Return the description of a dtype in a header, with our formats by their names.

    `np.lib.format.descr_to_dtype` makes the dtype from it.

    Raises
    ------
    ValueError
        For fields that overlap or are out of order, which NumPy cannot describe.
    """
    if dtype.names is None:
        form = format_of_dtype(dtype)
        return dtype.str if form is None else form.name
    found: list[Any] = []
    for entry in dtype.descr:
        label: Any = entry[0]
        name = label[1] if isinstance(label, tuple) else label
        if name:
            field = dtype[name]
            base, shape = field.subdtype or (field, ())
            entry = (label, descr_of(base), *([shape] if shape else []))
        found.append(entry)  # an entry without a name is padding
    return found


def _is_fortran(array: NDArray[Any]) -> bool:
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


def _put(target: NDArray[Any], source: Any) -> None:
    """Copy elements except padding; ours become little-endian, unused bits zero."""
    dtype = target.dtype
    if dtype.names is not None:
        for name in dtype.names:
            _put(target[name], source[name])
        return
    form = format_of_dtype(dtype)
    if form is None:
        target[...] = source
        return
    target.view(f"<u{form.itemsize}")[...] = bits(source)


def _header(descr: Any, shape: tuple[int, ...], fortran: bool, comment: str) -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    text += f" # {comment}" if comment else ""
    if len(text) > _MOST_HEADER - _ALIGNMENT:
        raise ValueError(
            f"header of a .npy file must have at most {_MOST_HEADER} characters; got"
            f" {len(text)}. Write the fields as separate arrays"
        )
    try:
        version, encoded = (1, 0), text.encode("latin1")
    except UnicodeEncodeError:  # names of fields can be any Unicode
        version, encoded = (3, 0), text.encode()
    prefix = np.lib.format.magic(*version)
    code = _length_code(prefix)
    size = len(encoded) + 1  # the line's end
    size += -(len(prefix) + struct.calcsize(code) + size) % _ALIGNMENT
    return prefix + struct.pack(code, size) + encoded.ljust(size - 1) + b"\n"


# -- reading ----------------------------------------------------------------


def read_name(stream: IO[bytes]) -> Form | None:
    """Return the format or block facts in the comment of a `.npy` header, or None.

    Raises
    ------
    ValueError
        If the format is not known, or the facts of blocks are not valid.
    """
    magic = stream.read(8)
    if len(magic) < 8 or not magic.startswith(np.lib.format.MAGIC_PREFIX):
        return None
    code = _length_code(magic)
    length = stream.read(struct.calcsize(code))
    if len(length) < struct.calcsize(code):
        return None
    (size,) = struct.unpack(code, length)
    if size > _MOST_HEADER:
        return None
    header = stream.read(size).decode("latin1")
    blocks = re.search(_BLOCKS_COMMENT, header)
    if blocks is not None:
        return _blocks_facts(blocks[1])
    comment = re.search(_COMMENT, header)
    if comment is None:
        return None
    try:
        return formats[comment[1]]
    except KeyError as error:
        raise ValueError(error.args[0]) from None


def as_format(array: NDArray[Any], form: Form | None) -> NDArray[Any] | Scaled:
    """Return an array that NumPy read with the format or block facts of its header.

    Raises
    ------
    ValueError
        If the array does not fit the format or facts.
    """
    if form is None:
        # If ml_dtypes is imported, NumPy takes a name for a dtype of ml_dtypes.
        own: NDArray[Any] = as_own(array)
        return own
    if not isinstance(form, Format):
        return _as_blocks(array, form)
    if array.dtype != np.dtype(f"u{form.itemsize}"):
        raise ValueError(
            f"a file of {form.name} must hold unsigned integers of"
            f" {form.itemsize} bytes; got {array.dtype}"
        )
    return array.view(form.dtype)


def _length_code(magic: bytes) -> str:
    return "<H" if magic[6] == 1 else "<I"


def _blocks_facts(text: str) -> Facts | TileFacts:
    from ..blocks.facts_text import from_text

    try:
        return from_text(text)
    except ValueError as error:
        raise ValueError(f"blocks in the file: {error}") from None


def _as_blocks(array: NDArray[Any], facts: Facts | TileFacts) -> Scaled:
    from ..blocks.facts_text import restore

    try:
        return restore(facts, np.asarray(array))
    except (ValueError, TypeError) as error:
        raise ValueError(f"blocks in the file: {error}") from None
