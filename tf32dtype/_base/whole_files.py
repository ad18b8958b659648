"""Files that are written as a whole, or stay as they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

Path = str | os.PathLike[str]

#: Standard output and standard error.
_OWN = (1, 2)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` if the `with` statement succeeds.

    The data go to a temporary file in the same folder, which is renamed at the end. The
    permissions of an existing file are kept. If `path` is a link, the file that it
    points to is replaced. If `path` exists but is not a regular file (a pipe, a device,
    the standard output), the data are written to it directly.

    Parameters
    ----------
    path : path

    Yields
    ------
    binary file object

    Raises
    ------
    OSError
        If the file cannot be written. An existing file is then unchanged, and the
        temporary file is removed.
    """
    name = os.fspath(path)
    if not is_replaced(name):
        # Write to the standard output's own descriptor, to keep its file offset.
        target = next((os.dup(fd) for fd in _OWN if _is_open_as(name, fd)), name)
        with open(target, "wb") as file:
            yield file
        return
    import tempfile  # who writes no file need not pay for it

    name = os.path.realpath(name)
    try:
        handle, beside = tempfile.mkstemp(".part", "tf32dtype-", os.path.dirname(name))
    except OSError as error:  # names the temporary file
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with open(handle, "w+b") as file:
            yield file
        os.chmod(beside, mode(name))
        os.replace(beside, name)
    except BaseException:
        os.unlink(beside)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a string to a file, as `replacing` does."""
    with replacing(path) as file:
        file.write(text.encode())


def is_replaced(path: str) -> bool:
    """Return whether `replacing` replaces the path by a new file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) and not any(_is_open_as(path, fd) for fd in _OWN)


def _is_open_as(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def mode(path: str) -> int:
    """Return the permissions of the file if it exists, else those of a new file."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
