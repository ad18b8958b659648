"""Read and write `.npy` and `.npz` files that keep the name of a format."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.whole_files import replacing
from .._base.wording import one_of, warn_of_raw_bytes
from .._formats.table import find, format_of_dtype, own_array
from . import file_kinds, npy, opaque
from .npy import Header
from .scaled_arrays import is_scaled
from .tensor_names import NamedTensors

if TYPE_CHECKING:
    from zipfile import ZipFile

    from numpy.lib.npyio import NpzFile

    from ..blocks.facts_text import Scaled
    from .npy import Form

    Path: TypeAlias = str | os.PathLike[str]
    #: The content of a file, or of a member of an archive.
    Held: TypeAlias = NDArray[Any] | Scaled

HEADERS = get_args(Header)


def save(
    file: Path | IO[bytes],
    arr: ArrayLike | Scaled,
    *,
    header: Header | None = None,
) -> None:
    """Write an array to a `.npy` file, with the name of its format.

    Parameters
    ----------
    file : path or binary file object
        `.npy` is appended to a path that does not end with it. If this function
        raises, an existing file stays as it was.
    arr : array_like, BlockArray or TileArray
        Arrays of this package's formats, `ml_dtypes` arrays of one of these formats,
        and structured arrays with fields of these formats. Arrays of NumPy's own dtypes
        are written as `np.save` writes them. Arrays of blocks are written as the bytes
        of their buffer.
    header : {"bits", "names"}, optional
        How the file names the format; `load` reads both. None: "bits", but "names" for
        structured arrays, because "bits" cannot name the formats of several fields.

        - "bits": all readers of `.npy` files see unsigned integers, with or without
          this package. The name is a comment in the header.
        - "names": the name is stored in the place of a NumPy dtype. Once `tf32dtype` is
          imported, `np.load` also returns the array with its dtype, with `mmap_mode` or
          without. If `ml_dtypes` is imported too, the dtype is that of `ml_dtypes` (see
          `names`). NumPy without either package refuses the file, as do most readers
          other than NumPy. With only `ml_dtypes`, NumPy refuses tf32.

    Raises
    ------
    TypeError
        For arrays that a `.npy` file cannot restore: masked arrays, custom dtypes of
        other packages, structured arrays with ``header="bits"``. If `file` is neither a
        path nor a binary file object.
    ValueError
        For arrays of Python objects, and arrays of tiles with zero points or biases;
        for an unknown `header`; for a file header that is longer than readers accept;
        for a name of another kind of file, such as `a.safetensors`.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : Read the file.
    savez : Write several arrays to one file.
    tf32dtype.safetensors.save : Write arrays to a safetensors file.

    Notes
    -----
    Values are little-endian; unused bits are zero.

    Examples
    --------
    >>> import io, numpy as np, tf32dtype as td
    >>> file = io.BytesIO()
    >>> td.save(file, np.array([1.5, 2], td.tf32), header="names")
    >>> _ = file.seek(0)
    >>> np.load(file)
    array([1.5, 2. ], dtype=tf32)
    """
    array, how = _storable(arr, header)
    with _opened(file, ".npy") as stream:
        _write(stream, array, how)


def savez(
    file: Path | IO[bytes],
    *args: ArrayLike | Scaled,
    header: Header | None = None,
    **kwds: ArrayLike | Scaled,
) -> None:
    """Write several arrays to an uncompressed `.npz` file.

    Parameters
    ----------
    file : path or binary file object
        `.npz` is appended to a path that does not end with it. If this function
        raises, an existing file stays as it was.
    *args : array_like, BlockArray or TileArray
        Arrays as for `save`, stored under `arr_0`, `arr_1` and so on, as `np.savez`
        does.
    header : {"bits", "names"}, optional
        As for `save`.
    **kwds : array_like, BlockArray or TileArray
        Arrays as for `save`, stored under their keywords.

    Raises
    ------
    TypeError, ValueError
        As for `save`, before anything is written. ValueError also if a keyword is
        the name of a positional array, and for a file whose name ends with `.npy`.

    See Also
    --------
    load : Read the file.
    save : Write one array.
    savez_compressed : Write a compressed file.

    Examples
    --------
    >>> import io, numpy as np, tf32dtype as td
    >>> file = io.BytesIO()
    >>> td.savez(file, w=np.array([1.5, 2], td.bfloat16), step=7)
    >>> _ = file.seek(0)
    >>> td.load(file)["w"]
    array([1.5, 2. ], dtype=bfloat16)
    """
    _save_archive(file, args, header, kwds, compressed=False)


def savez_compressed(
    file: Path | IO[bytes],
    *args: ArrayLike | Scaled,
    header: Header | None = None,
    **kwds: ArrayLike | Scaled,
) -> None:
    """Write several arrays to a compressed `.npz` file.

    Parameters
    ----------
    file, *args, header, **kwds
        As for `savez`.

    Raises
    ------
    TypeError, ValueError
        As for `savez`.

    See Also
    --------
    load : Read the file.
    savez : Write an uncompressed file.

    Examples
    --------
    >>> import io, numpy as np, tf32dtype as td
    >>> file = io.BytesIO()
    >>> td.savez_compressed(file, w=np.zeros(10**6, td.bfloat16))
    >>> len(file.getvalue()) < 10**4
    True
    """
    _save_archive(file, args, header, kwds, compressed=True)


def load(
    file: Path | IO[bytes],
    *,
    mmap_mode: Literal["r", "r+", "c"] | None = None,
    dtype: object = None,
) -> Held | Archive:
    """Read a `.npy` or `.npz` file that this package or NumPy wrote.

    Parameters
    ----------
    file : path or binary file object
        A `.npy` or `.npz` file; a file object must support `seek`.
    mmap_mode : {None, "r", "r+", "c"}, optional
        Map a `.npy` file into memory instead of reading it, as `np.load` does. "r" maps
        it read-only, "r+" for reading and writing. With "c", changes stay in memory.
    dtype : dtype or str, optional
        The format of elements that `np.save` wrote without a type, as it does for
        arrays of ml_dtypes (``V1``, ``V2``, ``V4``). None: the format that a JSON file
        next to `file` names. That file is ``a.npy.json`` or ``a.json`` and contains
        ``{"dtype": "bfloat16"}``, or ``{"name": "bfloat16"}`` for an archive. Elements
        that have a type keep it.

    Returns
    -------
    numpy.ndarray, BlockArray, TileArray or Archive
        An array for `.npy`, a mapping from names to arrays for `.npz`. Files
        without a format's name are read as `np.load(allow_pickle=False)` does.

    Raises
    ------
    ValueError
        If the file is of another kind (a pickle, safetensors, HDF5, GGUF, text, ...),
        which the error names. If the file is damaged, truncated or would need pickle.
        If the file names an unknown format, or one whose elements have another size
        than those of the file. If its description of blocks is not valid. For another
        `mmap_mode`; to make a new file with "w+", use `np.lib.format.open_memmap`. If
        `dtype` is not a format of the size of the elements without a type.
    EOFError
        If the file is empty.
    OSError
        If the file cannot be opened.
    TypeError
        If `file` is neither a path nor a binary file object, or `dtype` is not a dtype.

    See Also
    --------
    save : Write one array.
    savez : Write several arrays to one file.
    tf32dtype.safetensors.load : Read a safetensors file.

    Examples
    --------
    >>> import io, numpy as np, tf32dtype as td
    >>> file = io.BytesIO()
    >>> td.save(file, np.array([1.5, 2], td.bfloat16))
    >>> _ = file.seek(0)
    >>> td.load(file)
    array([1.5, 2. ], dtype=bfloat16)
    """
    if mmap_mode is not None and str(mmap_mode) not in ("r", "r+", "c"):
        raise ValueError(one_of("mmap_mode", mmap_mode, ("r", "r+", "c")))
    given = None if dtype is None else find(dtype, "dtype").name
    name = file_kinds.name_of(file)
    with file_kinds.naming(name):
        if isinstance(file, str | os.PathLike):
            with open(file, "rb") as stream:
                return _load(stream, file, name, mmap_mode, given)
        return _load(file, file, name, mmap_mode, given)


def _begin(stream: IO[bytes], name: str) -> Form | None:
    """Return the format that a file names; restore the position of the stream."""
    file_kinds.check_stream(stream, "seek")
    start = stream.tell()
    head = stream.read(file_kinds.HEAD_BYTES)
    file_kinds.check(head, name)
    stream.seek(start)
    form = npy.read_name(stream)
    stream.seek(start)
    return form


def _load(
    stream: IO[bytes],
    file: Path | IO[bytes],
    name: str,
    mmap_mode: Any,
    given: str | None,
) -> Held | Archive:
    """Return the content of a file after checking its header."""
    form = _begin(stream, name)
    file_kinds.check_npy(stream, name)
    loaded = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    path = file if isinstance(file, str | os.PathLike) else None
    names = opaque.Names(path, given)
    if isinstance(loaded, np.ndarray):
        typed = names.apply(opaque.ATTRIBUTE, loaded)
        warn_of_raw_bytes(typed, name)
        return npy.as_format(typed, form)
    file_kinds.check_members(loaded, name)
    return Archive(loaded, name, names)


class Archive(NamedTensors["Held"]):
    """The arrays of an `.npz` file by name, each read on access.

    `load` returns it. Close it, or use it in a `with` statement, to close the file.
    `files` lists the names.
    """

    def __init__(
        self, npz: NpzFile, name: str = "the file", formats: opaque.Names | None = None
    ) -> None:
        self._npz = self._names = npz
        self._name = name
        self._formats = formats or opaque.Names()
        self.files: list[str] = list(npz.files)

    def __getitem__(self, name: str) -> Held:
        if name not in self._npz:
            raise KeyError(one_of("name", name, self.files, f"`files` of {self._name}"))
        archive, member = self._member(name)
        named = f"{name} in {self._name}"
        with file_kinds.naming(named):
            file_kinds.check_member(archive, member, named)
            array: Any = self._npz[name]
            if not isinstance(array, np.ndarray):
                return array  # type: ignore[no-any-return]  # bytes of another file
            array = self._formats.apply(name, array)
            warn_of_raw_bytes(array, named)
            with archive.open(member) as stream:
                return npy.as_format(array, npy.read_name(stream))

    def _member(self, name: str) -> tuple[ZipFile, str]:
        archive = self._npz.zip
        assert archive is not None  # it is open
        return archive, name if name in archive.namelist() else f"{name}.npy"

    def close(self) -> None:
        """Close the file."""
        self._npz.close()

    def __repr__(self) -> str:
        return f"<tf32dtype archive of {', '.join(self.files)}>"


class Outline(NamedTuple):
    """The facts of an array that has not been read."""

    #: the dtype; None for an array of blocks
    dtype: np.dtype[Any] | None
    #: the name of the format
    label: str
    shape: tuple[int, ...]
    nbytes: int


def outline(archive: Archive, name: str) -> Outline | None:
    """Return the facts in the header of a member, or None if it is not an array.

    Raises
    ------
    ValueError
        If the header is damaged.
    """
    zipped, member = archive._member(name)
    named = f"{name} in {archive._name}"
    with file_kinds.naming(named), zipped.open(member) as stream:
        if not file_kinds.is_npy(stream.read(file_kinds.HEAD_BYTES)):
            return None
        stream.seek(0)
        form = npy.read_name(stream)
        stream.seek(0)
        dtype, shape = file_kinds.header(stream)
    nbytes = math.prod(shape) * dtype.itemsize
    if isinstance(form, tuple):
        return Outline(None, form[0], form[1], nbytes)
    form = form or archive._formats.find(name, dtype)
    if form is not None:
        dtype = form.dtype
    return Outline(dtype, dtype.name, shape, nbytes)


# -- writing ----------------------------------------------------------------


def _save_archive(
    file: Path | IO[bytes],
    args: tuple[ArrayLike | Scaled, ...],
    header: Header | None,
    kwds: dict[str, ArrayLike | Scaled],
    compressed: bool,
) -> None:
    import zipfile

    named = {f"arr_{i}": arr for i, arr in enumerate(args)}
    for name in named.keys() & kwds.keys():
        raise ValueError(
            "keyword must not be the name of a positional array; got"
            f" {name!r}. Use another keyword"
        )
    arrays = {n: _storable(arr, header) for n, arr in {**named, **kwds}.items()}
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with (
        _opened(file, ".npz") as stream,
        zipfile.ZipFile(stream, "w", kind) as archive,
    ):
        for name, (array, how) in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write(member, array, how)


def _opened(file: Path | IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes]]:
    """Return a stream to write to; the file of a path is replaced as a whole."""
    if not isinstance(file, str | os.PathLike):
        file_kinds.check_stream(file, "write")
        return nullcontext(file)
    path = os.fspath(file)
    file_kinds.check_name(path, "td.savez" if suffix == ".npz" else "td.save", suffix)
    return replacing(path if path.endswith(suffix) else path + suffix)


def _storable(
    arr: ArrayLike | Scaled, header: Header | None
) -> tuple[NDArray[Any] | Scaled, Header | None]:
    """Return the array to write and the header to use; None for NumPy's own dtypes."""
    if header is not None and not (isinstance(header, str) and header in HEADERS):
        raise ValueError(
            one_of("header", header, ("bits", "names"))
            + ". Use another name for an array of an archive"
        )
    if is_scaled(arr):
        return arr, None
    if isinstance(arr, np.ma.MaskedArray):
        raise TypeError(
            "arr must not be a masked array. Use td.savez(file, data=a.data,"
            " mask=a.mask)"
        )
    array = own_array(arr)
    dtype = array.dtype
    if dtype.hasobject:
        raise ValueError(
            f"arr must not hold Python objects; got {dtype}. Use np.save, which pickles"
        )
    custom = {item for item in _items(dtype) if item.isbuiltin == 2}
    for item in custom:
        if format_of_dtype(item) is None:
            raise TypeError(
                f"a .npy file cannot name the dtype {item}. Write its bits,"
                f" td.save(file, a.view(np.uint{8 * item.itemsize}))"
            )
    if not custom:
        return array, None
    if header is None:
        header = "bits" if dtype.names is None else "names"
    elif header == "bits" and dtype.names is not None:
        raise TypeError(
            f"header='bits' cannot name the formats of the fields in {dtype}. Use"
            " header='names'"
        )
    npy.preamble(array, header)  # raises if the header would be too long
    return array, header


def _items(dtype: np.dtype[Any]) -> Iterator[np.dtype[Any]]:
    """Yield the dtypes of all fields, or the dtype itself if it has no fields."""
    if dtype.subdtype is not None:
        yield from _items(dtype.subdtype[0])
    elif dtype.names is not None:
        for name in dtype.names:
            yield from _items(dtype[name])
    else:
        yield dtype


def _write(
    stream: IO[bytes], array: NDArray[Any] | Scaled, header: Header | None
) -> None:
    if not isinstance(array, np.ndarray):
        npy.write_blocks(stream, array)
    elif header is None:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    else:
        npy.write(stream, array, header)
