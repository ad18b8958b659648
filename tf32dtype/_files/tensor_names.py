"""Tensors of a file by their names."""

from __future__ import annotations

import fnmatch
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Self, TypeVar

from .._base.wording import brief, did_you_mean

_FIRST = 3  # names that an error lists if none is near


_Value = TypeVar("_Value")


class NamedTensors(Mapping[str, _Value]):
    """The tensors of an open file by name; a context that closes it."""

    #: in the file's order
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
    """A name that no tensor has."""

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
    """Names of tensors, of which some are patterns as in file names.

    Parameters
    ----------
    names : str or iterable of str, optional
        All by default.
    known : collection of str
        Those that the file has.
    path : str
        The file, for the error.

    Raises
    ------
    KeyError
        For a name that is no tensor's, and a pattern of none; it offers those near.
    TypeError
        For what is no name.
    """
    if names is None:
        return list(known)
    if not isinstance(names, str | Iterable):
        raise TypeError(
            f"names must be a string or several strings; got {brief(names)}"
        )
    chosen: dict[str, None] = {}
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise TypeError(f"names must be strings; got {brief(name)}")
        found = [name] if name in known else fnmatch.filter(known, name)
        if not found:
            raise UnknownTensor(name, known, path)
        chosen.update(dict.fromkeys(found))
    return list(chosen)
