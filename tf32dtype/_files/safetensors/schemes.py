"""Weights with scales in checkpoints: found among their tensors, and taken apart.

A checkpoint has such a weight in two tensors or three. How they are called, and which
dtypes and shapes they have, is a scheme: rows in `scheme_rows.py`; what needs metadata,
torchao's and this package's own, in `scheme_metadata.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base.wording import brief
from ...blocks.array import BlockArray
from ...blocks.tiles import TileArray
from .dtypes import KINDS
from .scheme_evidence import Entries, Evidence, config_beside
from .scheme_metadata import OWN, OWN_ROWS, join, said, what_is_said
from .scheme_metadata import plain as plain_metadata
from .scheme_rows import OTHER_FORMAT, Facts, Row, Scaled, in_pattern
from .scheme_table import METHODS, NAMED, REFUSED, TORCHAO

__all__ = [
    "SCHEMES",
    "Evidence",
    "Facts",
    "Found",
    "Group",
    "config_beside",
    "default_scheme",
    "find",
    "join",
    "outline",
    "plain_metadata",
    "tensors_of",
]

_ROWS = (*NAMED, *TORCHAO, *OWN_ROWS)
#: All that `outline` and `tensors_of` know.
SCHEMES = ("vllm", *dict.fromkeys(row.scheme for row in _ROWS))
#: What vllm reads of any format that it has.
_ALIASES = {"vllm": "compressed-tensors"}

Outline = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]


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
    def markers(self) -> tuple[str, ...]:
        """The texts that the marker of the weight's module may have; empty: none."""
        return self._row.markers

    @property
    def reading(self) -> tuple[Any, ...]:
        """The facts that are equal for two groups that read a weight alike."""
        sizes = None
        if self.facts.tile is not None:
            sizes = tuple(map(min, self.facts.sizes, self.shape[-2:]))
        blocks = (self.facts.axis, self.facts.block_size)
        return (self.format, self.shape, sizes, blocks, *self._row.reading)

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
        arrays = {
            part: get(name)
            for part, name in self._members.items()
            if part not in ("marker", "shape")  # which only say what the others are
        }
        try:
            return self._row.read(self.facts, arrays)
        except (ValueError, TypeError) as error:
            raise ValueError(f"weight {brief(self.name)}: {error}") from None


# -- reading --------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The weights with scales among the tensors of a checkpoint."""

    #: no tensor is in two of them
    groups: list[Group]
    #: tensors that may be codes of weights in no known scheme, or in several, and why;
    #: by the name under which they would be read
    refused: dict[str, str]


def find(evidence: Evidence) -> Found:
    """Find the weights with scales among the tensors of a checkpoint.

    A weight is read by a scheme that all evidence fits: names, dtypes, shapes, the
    marker of its module, the method in config.json. It is refused if two schemes fit
    that read it differently, or if its codes have scales in the same module that no
    scheme explains.
    """
    groups: list[Group] = []
    refused: dict[str, str] = {}
    taken: set[str] = set()
    fitting: dict[str, list[Group]] = {}
    for name, row, facts in _candidates(evidence):
        members = _fit(name, row, facts, evidence.entries)
        if members is None or (
            name in evidence.entries and name not in members.values()
        ):
            continue  # not all are there, or a tensor of its own has that name
        group = Group(name, facts, row, members)
        if row not in NAMED:  # metadata say so
            if not taken & {name, *group.members}:
                taken |= {name, *group.members}
                groups.append(group)
        elif _agrees(group, evidence):
            fitting.setdefault(name, []).append(group)
    for name, several in fitting.items():
        first = several[0]
        if taken & {name, *first.members}:
            continue
        other = next((x for x in several if x.reading != first.reading), None)
        if other is not None:
            refused[first.members[0]] = (
                f"tensor {brief(name)} fits two schemes: {first.scheme} ({first.facts})"
                f" and {other.scheme} ({other.facts})"
            )
            taken.update(*(group.members for group in several))
            continue
        taken |= {name, *first.members}
        groups.append(first)
    for name in evidence.entries:
        if name not in taken and (why := _suspicion(name, evidence)):
            refused[name] = why
    return Found(groups, refused)


def _candidates(evidence: Evidence) -> Iterator[tuple[str, Row, Facts]]:
    yield from said(evidence)
    for scales in evidence.entries:
        for row in NAMED:
            name = row.name_of(scales)
            for facts in () if name is None else row.infer(name, evidence):
                yield name or "", row, facts


def _fit(name: str, row: Row, facts: Facts, entries: Entries) -> dict[str, str] | None:
    """The members that are there, if they are all that the weight needs."""
    found: dict[str, str] = {}
    for part, member in row.members(name, facts).items():
        form = entries.get(member.name)
        # A marker is text of any length.
        if form in member.forms or (part == "marker" and form is not None):
            found[part] = member.name
        elif form is not None or not member.is_optional:
            return None
    return found


def _agrees(group: Group, evidence: Evidence) -> bool:
    """Whether the marker of the module, and config.json, say what the row does."""
    module = group.name.rpartition(".")[0]
    marker, wanted = evidence.marker(module), group.markers
    says_so = not wanted if marker is None else marker in wanted
    schemes = METHODS.get(evidence.method or "")
    return says_so and (schemes is None or group.scheme in schemes)


# -- codes that no scheme explains ----------------------------------------------

#: Dtypes of tensors that may be codes: packed integers need two axes.
_CODES = {
    name
    for name, kind in KINDS.items()
    if name.startswith("F") and kind.bits <= 8 and name != "F8_E8M0"
}
_PACKED = {"U8", "I8", "I32", "U32"}
#: Names of tensors that belong to codes, and of scales for activations.
_SCALE = re.compile(r"scale|scb$|absmax|zero|quant|g_idx|codebook|amax|_s_", re.I)
_OF_INPUTS = re.compile(
    r"(input|output|act|activation|^[kqv]|kv)_?scale|scale_?(input|out)"
)


def has_codes(kind: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor of this dtype may be codes."""
    return kind in _CODES or (kind in _PACKED and len(shape) > 1)


def names_of_codes(name: str) -> list[str]:
    """The tensors that the codes of a weight may be in."""
    return [*dict.fromkeys(in_pattern(row.codes, name) for row in NAMED)]


def _suspicion(name: str, evidence: Evidence) -> str | None:
    """Why a tensor may be codes of a weight; None if nothing says so."""
    kind, shape = evidence.entries[name]
    module, _, parameter = name.rpartition(".")
    if not has_codes(kind, shape) or (
        _SCALE.search(parameter) and "qweight" not in parameter
    ):
        return None
    beside = evidence.beside(name)
    scales = [
        x
        for x in beside
        if _SCALE.search(x.rpartition(".")[2] or x)
        and not _OF_INPUTS.search(x.rpartition(".")[2])
    ]
    known = next(
        (
            tool
            for pattern, tool in REFUSED
            for x in (name, *beside)
            if re.search(pattern, x)
        ),
        None,
    )
    if not scales and known is None:
        return None
    there = ", ".join(
        "{} of {} and shape {}".format(x, *evidence.entries[x]) for x in scales[:4]
    )
    text = f"tensor {brief(name)} of {kind} and shape {shape}"
    text += f" has scales in no known scheme beside it: {there}" if there else ""
    text += f" (as {known} has them)" if known else ""
    marker = evidence.marker(module)
    text += f"; its marker says {brief(marker)}" if marker else ""
    if evidence.method is not None and METHODS.get(evidence.method) is not None:
        text += f"; config.json says quant_method {brief(evidence.method)}"
    return text


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
