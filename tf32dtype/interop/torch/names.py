"""Names of layers, as `named_modules` gives them, and patterns of names.

In a pattern, ``*`` matches any characters. A name with ``[`` also matches itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..._base.arguments import checked_strings
from ..._base.caller import warn
from ..._base.wording import brief, did_you_mean
from ..._files.layer_plans import is_named


def checked_names(names: object, argument: str) -> tuple[str, ...]:
    """Return names, or raise a TypeError: a single string is not a list of names."""
    if isinstance(names, str):
        raise TypeError(
            f"{argument} must be a list of names; got {brief(names)}. Use"
            f" [{brief(names)}]"
        )
    return checked_strings(names, argument)


def is_one_of(layer: str, names: Iterable[str]) -> bool:
    """Return whether one of the names or patterns matches a layer."""
    return any(is_named(layer, name) for name in names)


def absent(names: Iterable[str], layers: Iterable[str]) -> Iterator[str]:
    """Yield the names that match none of the layers."""
    known = [*layers]
    return (x for x in names if not any(is_named(layer, x) for layer in known))


def said_of_names(
    names: Iterable[str], layers: Iterable[str], argument: str
) -> Iterator[str]:
    """Yield a line for each name that matches no layer."""
    known = [*layers]
    for name in absent(names, known):
        fix = did_you_mean(name, filter(None, known))
        line = f"{argument} names {brief(name)}, which matches no layer"
        yield f"{line}. {fix}" if fix else line


def warn_of_names(names: Iterable[str], layers: Iterable[str], argument: str) -> None:
    """Warn of names that match no layer, and give the names nearest to them."""
    for line in said_of_names(names, layers, argument):
        warn(line)
