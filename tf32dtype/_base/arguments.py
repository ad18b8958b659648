"""Check arguments that many calls have: paths, flags, numbers and strings."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

import numpy as np

from .wording import brief


def checked_path(path: object, argument: str = "path", what: str = "a file") -> str:
    """Return a path as a string, or raise a TypeError that names the argument."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{argument} must be the path of {what}; got {brief(path)}")
    return os.fspath(path)


def checked_flag(
    value: object, argument: str, *, optional: bool = False
) -> bool | None:
    """Return True or False, or raise a TypeError that names the argument.

    None is also allowed if the argument is optional.
    """
    if value is None and optional:
        return None
    if not isinstance(value, bool | np.bool):
        choices = "True, False or None" if optional else "True or False"
        raise TypeError(f"{argument} must be {choices}; got {brief(value)}")
    return bool(value)


def checked_number(value: object, argument: str) -> float:
    """Return a real number, or raise a TypeError that names the argument.

    Integers out of the range of float64 become infinite.
    """
    try:
        if not isinstance(value, str | bytes):
            return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    except OverflowError:
        return math.inf
    raise TypeError(f"{argument} must be a number; got {brief(value)}")


def checked_strings(given: object, argument: str) -> tuple[str, ...]:
    """Return one or several strings, or raise a TypeError that names the argument."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        raise TypeError(
            f"{argument} must be a string or several strings; got {brief(given)}"
        )
    found = tuple(given)
    for one in found:
        if not isinstance(one, str):
            raise TypeError(f"{argument} must be strings; got {brief(one)}")
    return found
