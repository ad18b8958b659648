"""Files that are written as a whole, or stay as they were."""

from __future__ import annotations

import os
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
    if not os.path.isdir(folder):
        raise UserError(f"{brief(path)}: no such folder: {folder}")
    if not os.access(folder, os.W_OK):
        raise UserError(f"{brief(path)}: the folder cannot be written: {folder}")


def write_whole(path: str, text: str) -> None:
    """Write a text to a file beside, then rename that.

    Raises
    ------
    OSError
        If it cannot be written; the file is as it was, and none is left beside.
    """
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


def _mode(path: str) -> int:
    """The rights of the file that is there, or of a new one."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
