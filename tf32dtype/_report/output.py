"""Whether what is asked for can be written, before it is computed."""

from __future__ import annotations

import os

from .._measures import UserError
from .._whole_files import is_replaced
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
    if not is_replaced(path):
        if not os.access(path, os.W_OK):
            raise UserError(f"{brief(path)} cannot be written")
        return
    if not os.path.isdir(folder):
        raise UserError(f"{brief(path)}: no such folder: {folder}")
    if not os.access(folder, os.W_OK):
        raise UserError(f"{brief(path)}: the folder cannot be written: {folder}")
