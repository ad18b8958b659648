"""Arrays in `.npy` and `.npz` files that keep their format's name.

`np.save` keeps the bits of a custom dtype and loses its name. Here the array is
a plain `.npy` file of unsigned integers, which every reader of such files opens,
and the name is a Python comment after the dictionary in the file's header:

    {'descr': '<u2', 'fortran_order': False, 'shape': (3,), } # tf32dtype: bfloat16

NumPy reads the dictionary with `ast.literal_eval`, which skips comments (a further
key in the dictionary it would refuse). The file format is NEP 1's.

Arrays of blocks are the bytes of their buffer, and a comment of all else:

    {'descr': '|u1', 'fortran_order': False, 'shape': (34,), } # tf32dtype blocks:
    {'format': 'mxfp4', 'shape': (64,), 'axis': 0, 'block_size': 32,
    'scale_format': 'float8_e8m0fnu', 'tensor_scale': 1.0}      (one line in the file)
"""

from __future__ import annotations

import ast
import os
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _file_kinds
from ._formats.codes import bits, from_bits
from ._formats.table import Format, as_own, formats
from ._wording import brief

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

    from .blocks.array import BlockArray
    from .blocks.layout import Facts

    Path = str | os.PathLike[str]

_ALIGNMENT = 64  # of the data in the file, as in NumPy's own files
_CHUNK_BYTES = 1 << 24
_COMMENT = r"\}\s*# tf32dtype: (\S+)\s*\Z"
_BLOCKS_COMMENT = r"\}\s*# tf32dtype blocks: (.*?)\s*\Z"
_BLOCKS_KEYS = "format shape axis block_size scale_format tensor_scale".split()


def save(file: Path | IO[bytes], arr: ArrayLike | BlockArray) -> None:
    """Write an array to a `.npy` file, with the name of its format.

    Parameters
    ----------
    file : path or binary file object
        `.npy` is appended to a path that does not end so.
    arr : array_like or BlockArray
        Arrays of this package's formats are written as little-endian unsigned
        integers, unused bits zero; `ml_dtypes` arrays of a format known here
        likewise; arrays of NumPy's own dtypes as `np.save` writes them; arrays of
        blocks as the bytes of their buffer.

    Raises
    ------
    TypeError
        For what a `.npy` file would not give back: structured arrays with a
        custom dtype in a field, masked arrays, custom dtypes of other packages.
    ValueError
        For arrays of Python objects.

    See Also
    --------
    load, savez
    """
    array = _storable(arr)
    if isinstance(file, str | os.PathLike):
        with open(_with_suffix(file, ".npy"), "wb") as stream:
            _write(stream, array)
    else:
        _write(file, array)


def savez(
    file: Path | IO[bytes],
    *args: ArrayLike | BlockArray,
    **kwds: ArrayLike | BlockArray,
) -> None:
    """Write several arrays to an uncompressed `.npz` file.

    Parameters
    ----------
    file : path or binary file object
        `.npz` is appended to a path that does not end so.
    *args, **kwds : array_like or BlockArray
        Arrays as for `save`, stored under their keywords; positional ones under
        `arr_0`, `arr_1` and so on, as `np.savez` does.

    Raises
    ------
    TypeError, ValueError
        As `save`, before anything is written; ValueError also when a keyword is
        the name of a positional array.

    See Also
    --------
    load, save
    """
    import zipfile

    named = {f"arr_{i}": arr for i, arr in enumerate(args)}
    for name in named.keys() & kwds.keys():
        raise ValueError(f"a positional array and a keyword are both named {name!r}")
    arrays = {name: _storable(arr) for name, arr in {**named, **kwds}.items()}
    if isinstance(file, str | os.PathLike):
        file = _with_suffix(file, ".npz")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                _write(stream, array)


def load(file: Path | IO[bytes], *, mmap_mode: Any = None) -> Any:
    """Read what `save`, `savez` or NumPy wrote.

    Parameters
    ----------
    file : path or binary file object
        A `.npy` or `.npz` file; a file object must support `seek`.
    mmap_mode : {None, 'r', 'r+', 'w+', 'c'}, optional
        Map a `.npy` file into memory instead of reading it, as `np.load` does.

    Returns
    -------
    numpy.ndarray, BlockArray or Archive
        An array for `.npy`, a mapping from names to arrays for `.npz`. Files
        without a format's name are read as `np.load(allow_pickle=False)` does.

    Raises
    ------
    ValueError
        If the file is of another kind (a pickle, safetensors, HDF5, GGUF, text, ...),
        which the error names; if it is damaged, cut short or would need pickle; if it
        names a format that is not known, or whose items are of another size than the
        file's; if what it says of blocks makes no array of them.
    EOFError
        If the file is empty.
    OSError
        If the file cannot be opened.
    """
    name = _file_kinds.name_of(file)
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as stream:
            form = _begin(stream, name)
            loaded = _load(stream, file, name, mmap_mode)
    else:
        form = _begin(file, name)
        loaded = _load(file, file, name, mmap_mode)
    if isinstance(loaded, np.ndarray):
        return _as_format(loaded, form)
    return Archive(loaded, name)


def _check_ours(error: Exception) -> None:
    """Raise an error of reading again, unless it is about what the file holds."""
    from zipfile import BadZipFile  # who reads no archive need not pay for it

    if not isinstance(error, ValueError | BadZipFile):
        raise error


def _begin(stream: IO[bytes], name: str) -> Format | Facts | None:
    """What a file says of its format; the stream is left where it was."""
    if not hasattr(stream, "seek"):
        raise TypeError(f"file is a path or a binary file object, not {brief(stream)}")
    start = stream.tell()
    head = stream.read(_file_kinds.HEAD_BYTES)
    if not isinstance(head, bytes):
        raise TypeError(f'{name} is open as text: open it in binary mode, "rb"')
    _file_kinds.check(head, name)
    stream.seek(start)
    form = _read_name(stream)
    stream.seek(start)
    return form


def _load(
    stream: IO[bytes], file: Path | IO[bytes], name: str, mmap_mode: Any
) -> NDArray[Any] | NpzFile:
    """What NumPy reads, or an error that says why it cannot."""
    start = stream.tell()
    try:
        loaded = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    except Exception as error:
        _check_ours(error)
        stream.seek(start)
        raise ValueError(_file_kinds.why_not(stream, name, error)) from error
    if not isinstance(loaded, np.ndarray):
        _file_kinds.check_members(loaded, name)
    return loaded  # type: ignore[no-any-return]


class Archive(Mapping[str, Any]):
    """The arrays of an `.npz` file by name, each read when it is asked for.

    Returned by `load`. Close it, or use it in a `with` statement, to close the
    file. `files` lists the names.
    """

    def __init__(self, npz: NpzFile, name: str = "the file") -> None:
        self._npz = npz
        self._name = name
        self.files = list(npz.files)

    def __getitem__(self, name: str) -> Any:
        if name not in self._npz:
            raise KeyError(f"{name} is not in {self._name}: {', '.join(self.files)}")
        try:
            array: Any = self._npz[name]
        except Exception as error:
            _check_ours(error)
            raise ValueError(self._why_not(name, error)) from error
        if not isinstance(array, np.ndarray):
            return array  # bytes of another file
        with self._member(name) as stream:
            return _as_format(array, _read_name(stream))

    def _member(self, name: str) -> IO[bytes]:
        archive = self._npz.zip
        assert archive is not None  # it is open
        member = name if name in archive.namelist() else f"{name}.npy"
        return archive.open(member)

    def _why_not(self, name: str, error: Exception) -> str:
        with self._member(name) as stream:
            return _file_kinds.why_not(stream, f"{name} in {self._name}", error)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._npz.close()

    def __repr__(self) -> str:
        return f"<tf32dtype archive of {', '.join(self.files)}>"


# -- writing ----------------------------------------------------------------


def _storable(arr: ArrayLike | BlockArray) -> NDArray[Any] | BlockArray:
    """The array to write, of blocks, of one of our dtypes or of NumPy's own."""
    if not isinstance(arr, np.ndarray) and _is_blocks(arr):
        return arr
    if isinstance(arr, np.ma.MaskedArray):
        raise TypeError(
            "a .npy file has no place for a mask: write both with "
            "td.savez(file, data=a.data, mask=a.mask)"
        )
    array: NDArray[Any] = as_own(np.asanyarray(arr))
    dtype = array.dtype
    if dtype.hasobject:
        raise ValueError(f"arrays of {dtype} need pickle, which td.load never uses")
    if dtype.names is not None and _has_custom_field(dtype):
        raise TypeError(
            f"a .npy file cannot name the formats of the fields in {dtype}: write "
            "each field by itself, td.savez(file, **{n: a[n] for n in a.dtype.names})"
        )
    if _is_custom(dtype) and _format_of(dtype) is None:
        raise TypeError(
            f"a .npy file cannot name the dtype {dtype}: write its bits, "
            f"td.save(file, a.view(np.uint{8 * dtype.itemsize}))"
        )
    return array


def _is_blocks(arr: object) -> TypeGuard[BlockArray]:
    known = sys.modules.get("tf32dtype.blocks")  # not loaded: there are none
    return known is not None and isinstance(arr, known.BlockArray)


def _write(stream: IO[bytes], array: NDArray[Any] | BlockArray) -> None:
    if not isinstance(array, np.ndarray):
        from .blocks.array import facts_of

        facts = dict(zip(_BLOCKS_KEYS, facts_of(array), strict=True))
        data = array.buffer
        stream.write(_header("|u1", data.shape, False, f"tf32dtype blocks: {facts}"))
        stream.write(data.tobytes())
        return
    form = _format_of(array.dtype)
    if form is None:
        np.lib.format.write_array(stream, array, allow_pickle=False)
        return
    fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    order: Literal["C", "F"] = "F" if fortran else "C"
    little_endian = f"<u{form.itemsize}"
    comment = f"tf32dtype: {form.name}"
    stream.write(_header(little_endian, array.shape, fortran, comment))
    chunks = np.nditer(
        array.view(f"u{form.itemsize}"),
        flags=["external_loop", "buffered", "zerosize_ok"],
        buffersize=_CHUNK_BYTES // form.itemsize,
        order=order,
    )
    for chunk in chunks:
        clean = bits(from_bits(chunk, form.dtype, dirty="ignore"))
        stream.write(clean.astype(little_endian, copy=False).tobytes())


def _header(descr: str, shape: tuple[int, ...], fortran: bool, comment: str) -> bytes:
    prefix = np.lib.format.magic(1, 0)
    text = (
        f"{{'descr': '{descr}', 'fortran_order': {fortran}, "
        f"'shape': {shape}, }} # {comment}"
    ).encode("latin1")
    size = len(text) + 1  # the line's end
    size += -(len(prefix) + 2 + size) % _ALIGNMENT
    return prefix + struct.pack("<H", size) + text.ljust(size - 1) + b"\n"


def _with_suffix(file: Path, suffix: str) -> str:
    path = os.fspath(file)
    return path if path.endswith(suffix) else path + suffix


# -- reading ----------------------------------------------------------------


def _read_name(stream: IO[bytes]) -> Format | Facts | None:
    """What a `.npy` header says after its dictionary; None for any other file."""
    magic = stream.read(8)
    if len(magic) < 8 or not magic.startswith(np.lib.format.MAGIC_PREFIX):
        return None
    length_code = "<H" if magic[6] == 1 else "<I"
    length = stream.read(struct.calcsize(length_code))
    if len(length) < struct.calcsize(length_code):
        return None
    (size,) = struct.unpack(length_code, length)
    if size > 10_000:  # np.load refuses such headers
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
        raise ValueError(f"the file's format: {error.args[0]}") from None


def _blocks_facts(text: str) -> Facts:
    try:
        facts = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or list(facts) != _BLOCKS_KEYS:
        raise ValueError(
            f"the file's blocks: a dictionary of {', '.join(_BLOCKS_KEYS)} is needed, "
            f"not {text}"
        )
    found: Facts = tuple(facts.values())
    return found


def _as_format(array: NDArray[Any], form: Format | Facts | None) -> Any:
    if form is None:
        return array
    if not isinstance(form, Format):
        return _as_blocks(array, form)
    if array.dtype != np.dtype(f"u{form.itemsize}"):
        raise ValueError(
            f"the file says {form.name}, which takes unsigned integers of "
            f"{form.itemsize} bytes, and holds {array.dtype}"
        )
    return array.view(form.dtype)


def _as_blocks(array: NDArray[Any], facts: Facts) -> BlockArray:
    from .blocks.array import restore

    try:
        return restore(facts, np.asarray(array))
    except (ValueError, TypeError) as error:
        raise ValueError(f"the file's blocks: {error}") from None


# -- dtypes -----------------------------------------------------------------


def _format_of(dtype: np.dtype[Any]) -> Format | None:
    """Our format of this dtype; None for any other dtype."""
    return next((form for form in formats.values() if form.dtype == dtype), None)


def _is_custom(dtype: np.dtype[Any]) -> bool:
    return dtype.isbuiltin == 2


def _has_custom_field(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        dtype = dtype.subdtype[0]
    if dtype.names is None:
        return _is_custom(dtype)
    return any(_has_custom_field(dtype[name]) for name in dtype.names)
