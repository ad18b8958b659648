"""Mappings from names to the tensors of a file, and patterns of names."""

from __future__ import annotations

import fnmatch
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Self, TypeVar

from .._base.arguments import checked_strings
from .._base.wording import brief, did_you_mean

_FIRST = 3  # names that an error lists if none is near


_Value = TypeVar("_Value")


class NamedTensors(Mapping[str, _Value]):
    """The tensors of an open file by name; a context that closes it."""

    #: the names in the order of the file
    _names: Collection[str]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class UnknownTensor(KeyError):
    """The error for a name that no tensor has."""

    def __init__(self, name: object, known: Collection[str], path: str) -> None:
        first = ", ".join(map(brief, [*known][:_FIRST]))
        listed = f"The first tensors are {first}" if first else "The file has none"
        fix = did_you_mean(name, known) or listed
        super().__init__(f"{brief(name)} is not a tensor of {path}. {fix}")

    def __str__(self) -> str:
        return str(self.args[0])


def select(
    names: str | Iterable[str] | None, known: Collection[str], path: str
) -> list[str]:
    """Return the names of the tensors that some names or patterns select.

    Parameters
    ----------
    names : str or iterable of str, optional
        Names, or patterns as in file names: "layer.*". None: all tensors.
    known : collection of str
        The names of all tensors of the file.
    path : str
        The path of the file, for the error.

    Raises
    ------
    KeyError
        For a name or pattern that matches no tensor; the error suggests similar names.
    TypeError
        If a name is not a string.
    """
    if names is None:
        return list(known)
    chosen: dict[str, None] = {}
    for name in checked_strings(names, "names"):
        found = [name] if name in known else fnmatch.filter(known, name)
        if not found:
            raise UnknownTensor(name, known, path)
        chosen.update(dict.fromkeys(found))
    return list(chosen)
