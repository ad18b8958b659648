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
    """A binary file that takes its name when the `with` statement ends without error.

    What is written goes to a file beside, which then is renamed. The rights of an old
    file stay, and so does a link: the file behind it is replaced. What is there but is
    no regular file (a pipe, a device, the standard output) is written as it is.

    Parameters
    ----------
    path : path

    Yields
    ------
    binary file object

    Raises
    ------
    OSError
        If it cannot be written; the file is as it was, and none is left beside.
    """
    name = os.fspath(path)
    if not is_replaced(name):
        # The standard output by its descriptor, which has its own place in a file.
        target = next((os.dup(fd) for fd in _OWN if _is_open_as(name, fd)), name)
        with open(target, "wb") as file:
            yield file
        return
    import tempfile  # who writes no file need not pay for it

    name = os.path.realpath(name)
    try:
        handle, beside = tempfile.mkstemp(".part", "tf32dtype-", os.path.dirname(name))
    except OSError as error:  # names the file beside
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
    """Write a text to a file, as `replacing` does."""
    with replacing(path) as file:
        file.write(text.encode())


def is_replaced(path: str) -> bool:
    """Whether a new file takes the place of what is there."""
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
    """The rights of the file that is there, or of a new one."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
