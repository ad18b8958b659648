"""Read and write TOML files whose keys are checked one by one."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .wording import brief

T = TypeVar("T")

#: Keys that need no quotes.
_BARE = re.compile("[A-Za-z0-9_-]+")
#: The names of types in TOML.
_KINDS = {str: "string", bool: "boolean", int: "number", dict: "table"}


def read(path: str, parse: Callable[[dict[str, Any]], T]) -> T:
    """Return what a function makes of a TOML file.

    Raises
    ------
    ValueError
        If the file cannot be read or is not TOML, and those of the function; the
        message names the file.
    """
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    try:
        return parse(found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_version(found: dict[str, Any], version: int) -> None:
    """Remove the key "version", or raise ValueError if it is another one."""
    if (given := found.pop("version", None)) != version or given is True:
        raise ValueError(f"version must be {version}; got {brief(given)}")


def take(found: dict[str, Any], name: str, kind: type, usual: Any) -> Any:
    """Remove a key and return its value, or `usual` without the key.

    Raises
    ------
    ValueError
        If the value has another type; if there is no value, and `usual` is None.
    """
    value = found.pop(name, usual)
    if value is None:
        raise ValueError(f"{name} must be given")
    if type(value) is not kind:
        raise ValueError(f"{name} must be a {_KINDS[kind]}; got {brief(value)}")
    return value


def take_tables(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Remove a key and return its tables, which are written as [[name]].

    Raises
    ------
    ValueError
        If it has other values.
    """
    tables = found.pop(name, [])
    if not (isinstance(tables, list) and all(isinstance(x, dict) for x in tables)):
        raise ValueError(f"{name} must be written as tables [[{name}]]")
    return tables


def refuse(rest: Mapping[str, Any], owner: str) -> None:
    """Raise ValueError if keys are left."""
    for name in rest:
        raise ValueError(f"{owner} cannot have the key {brief(name)}")


def table(title: str, entries: Mapping[str, Any]) -> str:
    """Return the text of a table below its title, which may be empty."""
    return title + "".join(f"{_key(k)} = {text(v)}\n" for k, v in entries.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else text(name)


def text(value: Any) -> str:
    """Return the text of a string, number, boolean or inline table."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float):
        return repr(value)
    # Strings, integers and booleans of JSON are valid TOML once DEL is escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
