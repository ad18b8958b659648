"""Recognize files that `td.load` does not read, and name what reads them."""

from __future__ import annotations

import errno
import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from .._base.wording import brief

if TYPE_CHECKING:
    from zipfile import ZipFile

    from numpy.lib.npyio import NpzFile

HEAD_BYTES = 512  # read from the start of a file to find its kind
_ZIP = b"PK\3\4", b"PK\5\6"  # with members, and without

#: A size in bytes that is accepted whatever the size of the file.
_SMALL = 1 << 30
#: The largest compression ratio of deflate.
_MOST_COMPRESSION = 1032

_RUNS = " reads the file and runs its code, so use it only for trusted files"

#: The first bytes of a file, with its kind and advice on how to read it.
_KINDS = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "use td.hdf5.load"),
    (b"GGUF", "a GGUF file", "use td.interop.gguf.load"),
    (b"MATLAB 5.0", "a MATLAB file", "use scipy.io.loadmat"),
    (b"PAR1", "a Parquet file", "use pandas.read_parquet"),
    (b"\x1f\x8b", "a file compressed by gzip", "unpack the file first, gzip -d"),
    (b"BZh", "a file compressed by bzip2", "unpack the file first, bzip2 -d"),
    (b"\xfd7zXZ\0", "a file compressed by xz", "unpack the file first, xz -d"),
    (
        b"\x28\xb5\x2f\xfd",
        "a file compressed by zstd",
        "unpack the file first, zstd -d",
    ),
    *((bytes((0x80, i)), "a pickle", "pickle.load" + _RUNS) for i in range(2, 6)),
)
#: The tags of fields that follow the version in a model: producer, graph or operators.
_ONNX_FIELDS = (b"\x12", b"\x3a", b"\x42")

#: The kind of a file by the suffix of its name, and what writes it.
_SUFFIXES = {
    ".npy": ("a .npy file", "td.save(file, a)"),
    ".npz": ("an .npz file", "td.savez(file, name=a)"),
    ".safetensors.index.json": (
        "the index of a checkpoint",
        'td.safetensors.save("model.safetensors", tensors, max_shard_size="5GB")',
    ),
    ".safetensors": ("a safetensors file", 'td.safetensors.save(file, {"name": a})'),
    ".h5": ("an HDF5 file", 'td.hdf5.save(file, {"name": a})'),
    ".hdf5": ("an HDF5 file", 'td.hdf5.save(file, {"name": a})'),
    ".zarr": ("a Zarr array", "zarr.create_array(file, data=a)"),
    ".gguf": ("a GGUF file", "gguf.GGUFWriter"),
    ".onnx": ("an ONNX model", "onnx.save of td.interop.onnx.from_array(a)"),
    ".arrow": ("an Arrow file", "pyarrow of td.interop.arrow.to_arrow(a)"),
    ".feather": ("an Arrow file", "pyarrow of td.interop.arrow.to_arrow(a)"),
    ".parquet": ("a Parquet file", "pyarrow of td.interop.arrow.to_arrow(a)"),
    ".pt": ("a file of PyTorch", "torch.save of td.interop.torch.from_numpy(a)"),
    ".pth": ("a file of PyTorch", "torch.save of td.interop.torch.from_numpy(a)"),
}


def check_name(path: str, writer: str, *own: str) -> None:
    """Raise a ValueError if a name is that of another kind of file.

    Parameters
    ----------
    path : str
        The path of the file to be written.
    writer : str
        The name of the writing function, for the error.
    *own : str
        The suffixes of the files that it writes.
    """
    suffix = next((x for x in _SUFFIXES if path.lower().endswith(x)), None)
    if suffix is not None and suffix not in own:
        what, cure = _SUFFIXES[suffix]
        raise ValueError(
            f"{writer} cannot write {what}; got the name {path}. Use {cure}"
        )


def check_stream(file: object, method: str) -> None:
    """Raise a TypeError unless an object is a binary file with a method."""
    if hasattr(file, "encoding"):  # also of wrappers, such as those of tempfile
        raise TypeError(f"{name_of(file)} must be open in binary mode; got a text file")
    if not hasattr(file, method):
        raise TypeError(f"file must be a path or a binary file; got {brief(file)}")


def check(head: bytes, name: str) -> None:
    """Raise an error unless a file begins as `.npy` or `.npz` files do.

    Parameters
    ----------
    head : bytes
        The first `HEAD_BYTES` of the file, or all bytes of a shorter file.
    name : str
        The file's name, for the error.

    Raises
    ------
    EOFError
        If the file is empty.
    ValueError
        If the file is of another kind; the error names the kind and what reads it.
    """
    if is_numpy(head):
        return
    if not head:
        raise EOFError(f"{name} is empty and does not hold an array")
    what, cure = kind(head)
    raise ValueError(f"{name} must be a .npy or .npz file; got {what}; {cure}")


def is_npy(head: bytes) -> bool:
    """Return whether a file with these first bytes may be `.npy`."""
    return head.startswith(np.lib.format.MAGIC_PREFIX)


def is_numpy(head: bytes) -> bool:
    """Return whether a file with these first bytes may be `.npy` or `.npz`."""
    return head.startswith((np.lib.format.MAGIC_PREFIX, *_ZIP))


def kind(head: bytes) -> tuple[str, str]:
    """Return the kind of a file with these first bytes, and what reads it.

    The file is neither `.npy` nor `.npz`, and not empty.

    Parameters
    ----------
    head : bytes
        As for `check`.
    """
    if known := _by_magic(head):
        return known
    # This is not a text file, whose first eight letters would be a larger number.
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 48:
        return "a safetensors file", "use td.safetensors.load"
    if head[:1] == b"\x08" and head[1:2] < b"\x20" and head[2:3] in _ONNX_FIELDS:
        return "an ONNX model", "use onnx.load and td.interop.onnx.to_array"
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        text = head[: error.start].decode() if error.start > len(head) - 4 else "\0"
    if all(letter.isprintable() or letter in "\r\n\t" for letter in text):
        return f"text, {text[:20]!r}...", "use np.loadtxt or pandas"
    return f"a file that begins with {head[:8]!r}", "use td.save to write arrays"


def foreign(stream: IO[bytes]) -> tuple[str, str] | None:
    """Return the kind of a file by its first bytes and what reads it, or None.

    Parameters
    ----------
    stream : binary file object
        The whole file; its position is set to the start.
    """
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    if is_npy(head):
        return "a .npy file", "use td.load"
    if head.startswith(_ZIP):
        return (
            "an archive (.npz or PyTorch)",
            "use td.load or torch.load(file, weights_only=True)",
        )
    return _by_magic(head)


def _by_magic(head: bytes) -> tuple[str, str] | None:
    """Return the entry of `_KINDS` for a file with these first bytes, or None."""
    return next((entry[1:] for entry in _KINDS if head.startswith(entry[0])), None)


def check_members(npz: NpzFile, name: str) -> None:
    """Close an archive that PyTorch wrote, and raise a ValueError."""
    if any(member.endswith("/data.pkl") for member in npz.files):
        npz.close()
        raise ValueError(
            f"{name} is a PyTorch checkpoint, which tf32dtype cannot read. Convert the"
            " checkpoint: safetensors.torch.save_file(torch.load(file,"
            " weights_only=True), 'file.safetensors')"
        )


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn every error that the content of a file may raise into a ValueError.

    The ValueError names the file. Errors of reading (missing file, missing permission,
    too little memory) and of arguments stay as they are.
    """
    try:
        yield
    except (TypeError, MemoryError):
        raise
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # a damaged archive raises these
            raise
        raise ValueError(f"{name} cannot be read: {error}") from error
    except (ValueError, EOFError) as error:
        if str(error).startswith(name):
            raise
        why = str(error) or "the data end too early"
        raise ValueError(f"{name} cannot be read: {why}") from error
    except Exception as error:
        fault = "is not a valid archive" if _is_of_zip(error) else "cannot be read"
        raise ValueError(
            f"{name} {fault}: {error}. Copy or write the file again"
        ) from error


def _is_of_zip(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("zipfile", "zlib", "_lzma")


def check_npy(stream: IO[bytes], name: str, size: int | None = None) -> None:
    """Raise a ValueError if a `.npy` file is shorter than its header announces.

    NumPy allocates as many bytes as the header announces. Files of other kinds pass.

    Parameters
    ----------
    stream : binary file object
        The file, at its start; its position is restored.
    name : str
        The name of the file, for the error.
    size : int, optional
        The size of the file in bytes. Give it if finding the end of the stream would
        require reading it.
    """
    start = stream.tell()
    magic = stream.read(len(np.lib.format.MAGIC_PREFIX))
    stream.seek(start)
    if not is_npy(magic):
        return
    try:
        dtype, shape = header(stream)
    except Exception as error:  # NumPy's parser may raise anything
        raise ValueError(f"{name} does not have a valid header: {error}") from None
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds pickled Python objects, which td.load cannot read:"
            " np.load(file, allow_pickle=True)" + _RUNS
        )
    if not all(type(n) is int and n >= 0 for n in shape):  # True is a number to NumPy
        raise ValueError(
            f"{name} does not have a valid header: shape must be integers of 0 or more;"
            f" got {shape}"
        )
    there = _left(stream) if size is None else size - (stream.tell() - start)
    needed = math.prod(shape) * dtype.itemsize
    if there < needed:
        raise ValueError(
            f"{name} is truncated: the data must have {needed} bytes ({dtype}, shape"
            f" {shape}); got {there}. Copy or write the file again"
        )
    stream.seek(start)


def check_member(archive: ZipFile, member: str, name: str) -> None:
    """Check a member of an archive as `check_npy` checks a file."""
    info = archive.getinfo(member)
    assert archive.fp is not None  # it is open
    whole = archive.fp.seek(0, io.SEEK_END)
    packed = min(info.compress_size, whole)
    # The sizes in the archive may be wrong, so they are limited by its real size.
    most = {0: packed, 8: _MOST_COMPRESSION * packed}.get(
        info.compress_type, info.file_size
    )
    with archive.open(member) as stream:
        check_npy(stream, name, min(info.file_size, most))


def is_absurd(announced: int, there: int) -> bool:
    """Return whether a file of `there` bytes announces far more than it can hold."""
    return announced > max(_SMALL, _MOST_COMPRESSION * there)


def header(stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return dtype and shape from the header of a `.npy` file, read from its start."""
    major, _ = np.lib.format.read_magic(stream)
    read = (
        np.lib.format.read_array_header_1_0
        if major == 1
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(stream)
    return dtype, shape


def _left(stream: IO[bytes]) -> int:
    """Return the number of bytes from the position of a stream to its end."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return end - here


def name_of(file: Any) -> str:
    """Return the name of a file for errors."""
    name = file if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "the file"
