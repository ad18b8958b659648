"""Weights with scales in checkpoints: found among their tensors, and taken apart.

A checkpoint has such a weight in two tensors or three. How they are called, and which
dtypes and shapes they have, is a scheme: rows in `scheme_rows.py`; what needs metadata,
torchao's and this package's own, in `scheme_metadata.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base.wording import brief
from ...blocks.array import BlockArray
from ...blocks.tiles import TileArray
from .dtypes import KINDS
from .scheme_metadata import OWN, OWN_ROWS, Metadata, join, said, what_is_said
from .scheme_metadata import plain as plain_metadata
from .scheme_rows import OTHER_FORMAT, Facts, Form, Row, Scaled, in_pattern
from .scheme_table import NAMED, TORCHAO

__all__ = [
    "SCHEMES",
    "Facts",
    "Group",
    "default_scheme",
    "find",
    "join",
    "outline",
    "plain_metadata",
    "tensors_of",
    "why_not",
]

_ROWS = (*NAMED, *TORCHAO, *OWN_ROWS)
#: All that `outline` and `tensors_of` know.
SCHEMES = ("vllm", *dict.fromkeys(row.scheme for row in _ROWS))
#: What vllm reads of any format that it has.
_ALIASES = {"vllm": "compressed-tensors"}

Outline = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
#: Dtypes by name, and shapes, of a file's tensors.
Entries = Mapping[str, Form]


@dataclass(frozen=True, repr=False)
class Group:
    """A weight with scales, found among the tensors of a checkpoint."""

    name: str
    facts: Facts
    _row: Row
    #: names of tensors by what they are
    _members: dict[str, str]

    @property
    def scheme(self) -> str:
        return self._row.scheme

    @property
    def format(self) -> str:
        """Of blocks, or of the elements of tiles."""
        return self.facts.format

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the weight."""
        return self.facts.shape

    @property
    def members(self) -> tuple[str, ...]:
        """The names of its tensors, the codes' first."""
        return tuple(self._members.values())

    def __repr__(self) -> str:
        return f"<{self.name}: {self.facts}, {self.scheme}>"

    def read(self, get: Callable[[str], NDArray[Any]]) -> Scaled:
        """The weight, of its tensors as `get` returns them.

        Raises
        ------
        ValueError
            If they hold what no weight has: negative scales, a tensor's scale of 0.
        """
        arrays = {part: get(name) for part, name in self._members.items()}
        try:
            return self._row.read(self.facts, arrays)
        except (ValueError, TypeError) as error:
            raise ValueError(f"weight {brief(self.name)}: {error}") from None


# -- reading --------------------------------------------------------------------


def find(entries: Entries, metadata: Metadata | None = None) -> list[Group]:
    """The weights with scales among the tensors of a checkpoint.

    Parameters
    ----------
    entries : mapping of str to tuple
        The dtype of each tensor, as the file names it, and its shape.
    metadata : mapping of str to str, optional
        The file's.

    Returns
    -------
    list of Group
        No tensor is in two of them. A tensor of scales whose weight is not there, or is
        of another dtype or shape than a scheme has, is in none.
    """
    groups: list[Group] = []
    taken: set[str] = set()
    for name, row, facts in _candidates(entries, metadata or {}):
        members = _fit(name, row, facts, entries)
        if members is None or taken & {name, *members.values()}:
            continue
        if name in entries and name not in members.values():
            continue  # a tensor of its own has that name
        taken |= {name, *members.values()}
        groups.append(Group(name, facts, row, members))
    return groups


def _candidates(
    entries: Entries, metadata: Metadata
) -> Iterator[tuple[str, Row, Facts]]:
    yield from said(metadata, entries)
    for scales in entries:
        for row in NAMED:
            suffix = in_pattern(row.scales, "")
            if not scales.endswith(suffix):
                continue
            name = scales.removesuffix(suffix)
            codes = entries.get(in_pattern(row.codes, name))
            for facts in () if codes is None else row.infer(codes):
                yield name, row, facts


def _fit(name: str, row: Row, facts: Facts, entries: Entries) -> dict[str, str] | None:
    """The members that are there, if they are all that the weight needs."""
    found: dict[str, str] = {}
    for part, member in row.members(name, facts).items():
        if entries.get(member.name) in member.forms:
            found[part] = member.name
        elif member.name in entries or not member.is_optional:
            return None
    return found


def why_not(name: str, entries: Entries) -> str | None:
    """What is wrong with a weight that has scales beside it, and is no group.

    None for a tensor without scales.
    """
    beside = [
        in_pattern(pattern, name)
        for row in NAMED
        for pattern in (row.codes, row.scales)
        if in_pattern(row.scales, name) in entries
    ]
    there = [
        "{} of {} and shape {}".format(member, *entries[member])
        for member in dict.fromkeys(beside)
        if member in entries
    ]
    if not there:
        return None
    return (
        f"weight {brief(name)} is not in a known scheme; got tensors {', '.join(there)}"
    )


# -- writing --------------------------------------------------------------------


def default_scheme(facts: Facts) -> str:
    """The scheme that most readers know of those that can hold a weight."""
    return next(x for x in SCHEMES[1:] if _row(x, facts) is not None)


def outline(
    name: str, facts: Facts, scheme: str = OWN
) -> tuple[Outline, dict[str, str]]:
    """The tensors that a weight will be, and the metadata that belong to them.

    Nothing of this depends on the numbers, so that the header of a file can be written
    before they are known.

    Returns
    -------
    tensors : dict of str to (dtype, shape)
    metadata : dict of str to str
        `join` makes one of several.

    Raises
    ------
    ValueError
        If the scheme has no place for such a weight, or is unknown.
    """
    row = _checked_row(name, facts, scheme)
    tensors: Outline = {}
    for member in row.members(name, facts).values():
        kind, shape = member.forms[0]
        tensors[member.name] = (KINDS[kind].dtype, shape)
    return tensors, what_is_said(name, row, facts)


def tensors_of(
    name: str, array: Any, scheme: str = OWN
) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors of an array, and the metadata that belong to them.

    Parameters
    ----------
    name : str
    array : BlockArray, TileArray or array_like
        What has no scales is its own tensor, as it is.
    scheme : str
        One of `SCHEMES`.

    Raises
    ------
    ValueError
        As `outline`; and if the array's scales have another format.
    """
    if not isinstance(array, BlockArray | TileArray):
        _checked_scheme(scheme)
        return {name: array}, plain_metadata(name, scheme)
    facts = Facts.of(array)
    tensors, metadata = outline(name, facts, scheme)
    row = _checked_row(name, facts, scheme)
    try:
        parts = row.write(array)
    except ValueError as error:
        raise ValueError(_refused(name, facts, scheme, str(error))) from None
    found = {}
    for part, member in row.members(name, facts).items():
        dtype, shape = tensors[member.name]
        given = parts[part]
        found[member.name] = (
            given if given.dtype == dtype else given.view(dtype)
        ).reshape(shape)
    return found, metadata


def _checked_row(name: str, facts: Facts, scheme: str) -> Row:
    _checked_scheme(scheme)
    row = _row(scheme, facts)
    if row is None:
        reasons = [r.refusal(facts) for r in _rows(scheme)]
        others = (x for x in reasons if x is not None and x != OTHER_FORMAT)
        why = next(others, OTHER_FORMAT)
        raise ValueError(_refused(name, facts, scheme, why))
    if "torchao" in scheme and "." not in name:
        raise ValueError(
            f"tensor name must contain a module's name and a dot for scheme 'torchao';"
            f" got {brief(name)}"
        )
    return row


def _refused(name: str, facts: Facts, scheme: str, why: str) -> str:
    return f"scheme {brief(scheme)} cannot store {brief(name)} ({facts}): {why}"


def _rows(scheme: str) -> list[Row]:
    wanted = _ALIASES.get(scheme, scheme)
    return [row for row in _ROWS if row.scheme == wanted]


def _row(scheme: str, facts: Facts) -> Row | None:
    return next((x for x in _rows(scheme) if x.refusal(facts) is None), None)


def _checked_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ValueError(
            f"scheme must be one of {', '.join(SCHEMES)}; got {brief(scheme)}"
        )
