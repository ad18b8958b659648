"""Regions of the source: FILE or FILE:FUNCTION."""

from __future__ import annotations

import ast
import os
from typing import NamedTuple

from ..._base.errors import UserError
from ..._base.wording import brief


class Region(NamedTuple):
    """A file, or a function in it."""

    #: absolute path of the file, with links resolved
    file: str
    #: name of a function, or "Class.method"; None: the whole file
    function: str | None

    def __str__(self) -> str:
        return self.file + (f":{self.function}" if self.function else "")


def find_region(text: str) -> Region:
    """Return the region that FILE or FILE:FUNCTION names.

    Raises
    ------
    UserError
        If there is no such file, or no such function in it.
    """
    path, colon, function = text, "", ""
    if not os.path.isfile(text):
        path, colon, function = text.rpartition(":")
    if not os.path.isfile(path):
        raise UserError(
            "a region must be FILE or FILE:FUNCTION of an existing file; got"
            f" {brief(text)}"
        )
    if colon:
        known = _functions(path)
        if known is not None and function not in known:
            some = ", ".join(sorted(known)[:3]) or "(it has none)"
            raise UserError(
                f"a region must name a function of {path}, such as {some}; got"
                f" {brief(function)}"
            )
    return Region(os.path.realpath(path), function or None)


def _functions(path: str) -> set[str] | None:
    """Return names of functions, and of methods with classes; None if unreadable."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    found: set[str] = set()
    _gather(tree, "", found)
    return found


def _gather(node: ast.AST, prefix: str, found: set[str]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= {child.name, prefix + child.name}
            _gather(child, f"{prefix}{child.name}.", found)
        elif isinstance(child, ast.ClassDef):
            _gather(child, f"{prefix}{child.name}.", found)
        else:
            _gather(child, prefix, found)
