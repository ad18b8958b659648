"""Scopes as decorators: the body of a function runs inside."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Scope(AbstractContextManager[Any]):
    """A context manager that decorates functions too, ``async def`` ones included."""

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate a function: its body runs inside.

        Raises
        ------
        TypeError
            For a generator function, whose body would run outside.
        """
        generators = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_one(function) for is_one in generators):
            raise TypeError(
                f"{type(self).__name__} cannot decorate a generator function, whose"
                " body runs after the call. Use `with` inside of the function"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def inner(*args: _P.args, **kwargs: _P.kwargs) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return inner  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self:
                return function(*args, **kwargs)

        return wrapper
