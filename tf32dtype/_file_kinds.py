"""What a file is that holds no arrays as `td.load` reads them, and what reads it."""

from __future__ import annotations

import io
import math
import os
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

HEAD_BYTES = 512  # of a file, which tell what it is
_ZIP = b"PK"

_RUNS = " reads it and runs what is in it, so trust where it is from"

#: By the bytes that begin it: what a file is, and what to do.
_KINDS = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "read it with h5py.File"),
    (b"GGUF", "a GGUF file", "read it with gguf.GGUFReader"),
    (b"MATLAB 5.0", "a MATLAB file", "read it with scipy.io.loadmat"),
    (b"PAR1", "a Parquet file", "read it with pandas.read_parquet"),
    (b"\x1f\x8b", "compressed by gzip", "unpack it first, gzip -d"),
    (b"BZh", "compressed by bzip2", "unpack it first, bzip2 -d"),
    (b"\xfd7zXZ\0", "compressed by xz", "unpack it first, xz -d"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it first, zstd -d"),
    *((bytes((0x80, i)), "a pickle", "pickle.load" + _RUNS) for i in range(2, 6)),
)


def check(head: bytes, name: str) -> None:
    """Raise the error that is due unless a file begins as `.npy` or `.npz` does.

    Parameters
    ----------
    head : bytes
        The first `HEAD_BYTES` of the file, or all if it is shorter.
    name : str
        The file's name, for the error.

    Raises
    ------
    EOFError
        If it is empty.
    ValueError
        If it is something else; the error says what, and what reads it.
    """
    if head.startswith((np.lib.format.MAGIC_PREFIX, _ZIP)):
        return
    if not head:
        raise EOFError(f"{name} is empty: there is no array in it")
    what, cure = _kind(head)
    raise ValueError(f"{name} is {what}, and td.load reads .npy and .npz files: {cure}")


def _kind(head: bytes) -> tuple[str, str]:
    for magic, what, cure in _KINDS:
        if head.startswith(magic):
            return what, cure
    if head[8:10] in (b'{"', b"{}") and int.from_bytes(head[:8], "little") < 1 << 30:
        cure = "read it with safetensors.numpy.load_file or safetensors.torch.load_file"
        return "a safetensors file", cure
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        text = head[: error.start].decode() if error.start > len(head) - 4 else "\0"
    if all(letter.isprintable() or letter in "\r\n\t" for letter in text):
        return f"text, {text[:20]!r}...", "read numbers with np.loadtxt or pandas"
    return f"no file of arrays (it begins with {head[:8]!r})", "write it with td.save"


def check_members(npz: NpzFile, name: str) -> None:
    """Close an archive that PyTorch reads, not NumPy, and raise a ValueError."""
    if any(member.endswith("/data.pkl") for member in npz.files):
        npz.close()
        raise ValueError(
            f"{name} is a checkpoint of PyTorch, and td.load reads .npy and .npz files:"
            " read it with torch.load(file, weights_only=True)"
        )


def why_not(stream: IO[bytes], name: str, error: Exception) -> str:
    """Why NumPy could not read a `.npy` file that a stream is at the begin of."""
    if type(error).__name__ == "BadZipFile":
        return f"{name} is a damaged archive: {error}. Copy or write it again"
    try:
        dtype, shape = _header(stream)
    except Exception:  # whatever the bytes make of NumPy's parser
        return f"{name} has a damaged header: {error}"
    if dtype.hasobject:
        return (
            f"{name} holds Python objects in a pickle, which td.load never reads:"
            " np.load(file, allow_pickle=True)" + _RUNS
        )
    there = _left(stream)
    needed = math.prod(shape) * dtype.itemsize
    if 0 <= there < needed:
        return (
            f"{name} is cut short: {needed} bytes of {dtype}, shape {shape}, are"
            f" announced and {there} are there. Copy or write it again"
        )
    return f"{name} cannot be read: {error}"


def _header(stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    major, _ = np.lib.format.read_magic(stream)
    read = (
        np.lib.format.read_array_header_1_0
        if major == 1
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(stream)
    return dtype, shape


def _left(stream: IO[bytes]) -> int:
    """Bytes from here to the end."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return end - here


def name_of(file: Any) -> str:
    """How an error calls a file."""
    name = file if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "the file"
