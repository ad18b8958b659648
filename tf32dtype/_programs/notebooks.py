"""Cells of notebooks, whose code has no file that stays."""

from __future__ import annotations

import re
import sys


def cell_of(file: str) -> int | None:
    """Return the number of the cell that IPython compiled under a file's name.

    Parameters
    ----------
    file : str
        As code objects have it: "<ipython-input-3-...>", "/tmp/ipykernel_1/2.py".

    Returns
    -------
    int or None
        3 for a cell that is shown as "In [3]"; None if IPython knows no such cell. A
        cell that ran several times has its last number.
    """
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = getattr(get_shell and get_shell(), "compile", None)
    label = getattr(compiler, "format_code_name", lambda _: None)(file)
    number = label and re.search(r"\d+", label[1])
    return int(number[0]) if number else None
