"""Find source lines by their text: a plan survives edits elsewhere in a file."""

from __future__ import annotations

import ast
import os
import re
import site
import sys
import sysconfig
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .._base.wording import brief

_NAMELESS = re.compile(
    r"(?:^|(?:\.<locals>)?\.)<(?:lambda|listcomp|setcomp|dictcomp|genexpr)>"
)


@dataclass(frozen=True)
class Line:
    """A line of a function."""

    #: path of the file: relative to a folder that is searched, or absolute
    file: str
    #: qualified name of the function in Python; "<module>" outside
    function: str
    #: text of the line without blanks around it
    text: str
    #: number among the function's lines with this text, from 1 on, and their count
    count: int = 1
    of: int = 1

    def __str__(self) -> str:
        which = f" ({self.count} of {self.of})" if self.of > 1 else ""
        return f"{self.file}, {self.function}: {brief(self.text)}{which}"


class LineError(LookupError):
    """A line does not exist or is ambiguous; the message is one line."""


_program_folder: str | None = None


def search_first(folder: str) -> None:
    """Look for files in the program's own folder before all others."""
    global _program_folder
    _program_folder = folder


def folders(*others: str) -> list[str]:
    """Return the folders to search: the program's, the current, others, Python's."""
    paths = sysconfig.get_paths()
    found = [_program_folder or sys.path[0], os.getcwd(), *others, *sys.path]
    found += [paths[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    return list(dict.fromkeys(os.path.realpath(folder) for folder in found))


def find_file(name: str, where: Sequence[str]) -> str | None:
    """Return the path of a file with links resolved; None if there is no such file."""
    for folder in where:
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.isfile(path):
            return path
    return None


def name_line(
    file: str, number: int, function: str, where: Sequence[str]
) -> Line | None:
    """Return the line of a number in a file; None if its source is not known."""
    path = os.path.realpath(file)
    found = _read(path)
    if found is None or not 0 < number <= len(found):
        return None
    text, own = found[number - 1]
    equal = _equal(found, text, own)
    return Line(_name(path, where), own, text, equal.index(number) + 1, len(equal))


def find_line(line: Line, where: Sequence[str]) -> tuple[str, int]:
    """Return the path of a line's file, with links resolved, and the line's number.

    Raises
    ------
    LineError
        If the line does not exist, or several lines match.
    """
    path = find_file(line.file, where)
    if path is None and re.match(r"In \[\d+\]", line.file):
        raise LineError(f"a cell of a notebook must be moved into a file: {line}")
    if path is None:
        raise LineError(f"file not found: {line}")
    found = _read(path)
    if found is None:
        raise LineError(f"file cannot be read: {line}")
    equal = _equal(found, line.text, named(line.function))
    if not equal:
        raise LineError(f"line not found in the file: {line}")
    if len(equal) != line.of:
        raise LineError(f"line must be unique; got {len(equal)} equal lines: {line}")
    return path, equal[line.count - 1]


def named(function: str) -> str:
    """Return the function with a name that a qualified name is of, or lies in."""
    return _NAMELESS.sub("", function) or "<module>"


def _name(path: str, where: Sequence[str]) -> str:
    for folder in where:
        if path.startswith(os.path.join(folder, "")):
            name = os.path.relpath(path, folder)
            if find_file(name, where) == path:
                return name
    return path


def _equal(found: Sequence[tuple[str, str]], text: str, function: str) -> list[int]:
    return [i for i, line in enumerate(found, 1) if line == (text, function)]


def _read(path: str) -> tuple[tuple[str, str], ...] | None:
    """Return the text and the function of each line."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return _parsed(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _parsed(path: str, *state: int) -> tuple[tuple[str, str], ...] | None:
    try:
        with tokenize.open(path) as file:
            source = file.read()
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return None
    lines = source.split("\n")
    functions = ["<module>"] * len(lines)
    _gather(tree, "", functions)
    return tuple(zip(map(str.strip, lines), functions, strict=True))


def _gather(node: ast.AST, prefix: str, functions: list[str]) -> None:
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = prefix + child.name
            first, last = child.lineno - 1, child.end_lineno or child.lineno
            functions[first:last] = [name] * (last - first)
            inner = name + ("." if isinstance(child, ast.ClassDef) else ".<locals>.")
        _gather(child, inner, functions)
