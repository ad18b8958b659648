"""Checks of output files before anything is computed."""

from __future__ import annotations

import os

from ..._base.errors import UserError
from ..._base.whole_files import is_replaced
from ..._base.wording import brief


def check_folder(path: str) -> None:
    """Check that a file can be written.

    Raises
    ------
    UserError
        If its folder does not exist or cannot be written, or if it is a folder.
    """
    folder = os.path.dirname(path) or "."
    if not os.path.basename(path) or os.path.isdir(path):
        raise UserError(f"the output must be a file; got the folder {brief(path)}")
    if not is_replaced(path):
        if not os.access(path, os.W_OK):
            raise UserError(f"{brief(path)} cannot be written")
        return
    if not os.path.isdir(folder):
        raise UserError(
            f"the output must be in an existing folder; got {brief(path)}, and {folder}"
            " does not exist"
        )
    if not os.access(folder, os.W_OK):
        raise UserError(
            f"{brief(path)} cannot be written: the folder {folder} is not writable"
        )
