"""Scopes as decorators: the body of a function runs inside."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def decorated(
    scope: AbstractContextManager[object], function: Callable[_P, _R]
) -> Callable[_P, _R]:
    """The function, whose body runs inside of a scope; an ``async def`` one too.

    Raises
    ------
    TypeError
        For a generator function, whose body would run outside.
    """
    generators = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_one(function) for is_one in generators):
        raise TypeError(
            f"{type(scope).__name__} cannot decorate a generator function, whose body"
            " runs after the call. Use `with` inside of the function"
        )
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def inner(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            with scope:
                return await function(*args, **kwargs)

        return inner  # type: ignore[return-value]

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with scope:
            return function(*args, **kwargs)

    return wrapper
