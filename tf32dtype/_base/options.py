"""Keywords that several calls share.

They are spelled in a TypedDict, whose types checkers see through `Unpack`, and in a
NamedTuple, which has their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import Parameter, signature
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def shows(options: Any, defaults: Any) -> Callable[[F], F]:
    """Name the keywords in the signature of a function that takes ``**options``.

    `help` and `inspect.signature` show the keywords of the TypedDict `options`, with
    the defaults of the NamedTuple `defaults`.
    """

    def shown(function: F) -> F:
        own = [
            parameter
            for parameter in signature(function).parameters.values()
            if parameter.kind is not Parameter.VAR_KEYWORD
        ]
        named = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=defaults._field_defaults[name],
                annotation=annotation.__forward_arg__,  # as it is written
            )
            for name, annotation in options.__annotations__.items()
        ]
        whole = signature(function).replace(parameters=[*own, *named])
        function.__signature__ = whole  # type: ignore[attr-defined]
        return function

    return shown


def refuse_unknown(call: str, given: Collection[str], options: Any) -> None:
    """Raise as Python does for a keyword that is none of a TypedDict's.

    Raises
    ------
    TypeError
        It names the keyword.
    """
    for name in given:
        if name not in options.__optional_keys__:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")
