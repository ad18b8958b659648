"""Warnings that name the line outside of this package which called it."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Modules whose frames are skipped; importlib is between an import and its module.
_PASSED = (__name__.partition(".")[0], "importlib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of this package.

    ``skip_file_prefixes`` of `warnings.warn` is the same from Python 3.12 on.
    """
    frame = sys._getframe(1)
    while frame.f_back and _module(frame.f_globals).partition(".")[0] in _PASSED:
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        _module(frame.f_globals),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _module(names: dict[str, Any]) -> str:
    return str(names.get("__name__", ""))


class errors_at_caller:
    """Give NumPy's warnings of floating-point errors in a block at the caller's line.

    NumPy names the line that calls it, which is one of this package. Errors that
    `numpy.errstate` does not warn of are NumPy's.

    Parameters
    ----------
    where : str
        The operation that the warning names: "overflow encountered in `where`".
    """

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        self._found: dict[str, int] = {}
        self._state: Any = None
        if np.geterrcall() is None:  # else there is a function for some
            modes: Any = np.geterr()
            for key, mode in modes.items():
                modes[key] = "call" if mode == "warn" else mode
            self._state = np.errstate(call=self._found.setdefault, **modes)
            self._state.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._state is not None:
            self._state.__exit__(kind, error, traceback)
        if self._found and error is None:
            for name in self._found:
                warn(f"{name} encountered in {self._where}", RuntimeWarning)


def reports_errors(where: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function: its body runs in `errors_at_caller`."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def reporting(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with errors_at_caller(where):
                return function(*args, **kwargs)

        return reporting

    return decorate


def report(give: Callable[[int, bytes], None], flags: int, where: str) -> None:
    """Report errors at the caller's line; `give` reports them as NumPy does."""
    with errors_at_caller(where):
        give(flags, where.encode())


def cast(array: Any, dtype: Any) -> Any:
    """Convert an array to a dtype; return the array itself if it has the dtype."""
    if array.dtype == dtype:
        return array
    with errors_at_caller("cast"):
        return array.astype(dtype)
