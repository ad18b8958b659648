"""Files that are written as a whole, or stay as they were."""

from __future__ import annotations

import os
import stat
import tempfile

from .._measures import UserError
from .._wording import brief


def check_folder(path: str) -> None:
    """Whether a file can be written there, before anything is done for it.

    Raises
    ------
    UserError
        If its folder does not exist or cannot be written, or if it is a folder.
    """
    folder = os.path.dirname(path) or "."
    if not os.path.basename(path) or os.path.isdir(path):
        raise UserError(f"{brief(path)} is a folder, not a file")
    if not _is_replaced(path):
        if not os.access(path, os.W_OK):
            raise UserError(f"{brief(path)} cannot be written")
        return
    if not os.path.isdir(folder):
        raise UserError(f"{brief(path)}: no such folder: {folder}")
    if not os.access(folder, os.W_OK):
        raise UserError(f"{brief(path)}: the folder cannot be written: {folder}")


def write_whole(path: str, text: str) -> None:
    """Write a text to a file beside, then rename that.

    What is there but is no regular file (a pipe, a device, the standard output) is
    written as it is.

    Raises
    ------
    OSError
        If it cannot be written; the file is as it was, and none is left beside.
    """
    if not _is_replaced(path):
        # The standard output by its descriptor, which has its own place in a file.
        target = next((os.dup(fd) for fd in _OWN if _is_open_as(path, fd)), path)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        return
    path = os.path.realpath(path)  # the file behind a link is written
    handle, beside = tempfile.mkstemp(dir=os.path.dirname(path), suffix=".part")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, _mode(path))
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


#: Standard output and standard error.
_OWN = (1, 2)


def _is_replaced(path: str) -> bool:
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


def _mode(path: str) -> int:
    """The rights of the file that is there, or of a new one."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
