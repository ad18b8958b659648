"""Find weights with scales among the tensors of checkpoints, and write them.

A checkpoint stores such a weight in two or three tensors. A scheme defines their names,
dtypes and shapes. The schemes are rows in `scheme_rows.py`. The schemes that need
metadata, torchao's and this package's own, are in `scheme_metadata.py`.
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
from .scheme_companions import Companions, are_numbers, may_be_codes, module_of
from .scheme_evidence import UNMARKED, Entries, Evidence, config_beside
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
#: The names of all schemes that `outline` and `tensors_of` accept.
SCHEMES = ("vllm", *dict.fromkeys(row.scheme for row in _ROWS))
#: Other names of schemes: vllm reads this scheme for each format that it has.
_ALIASES = {"vllm": "compressed-tensors"}

Outline = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]


@dataclass(frozen=True, repr=False)
class Group:
    """A weight with scales, found among the tensors of a checkpoint."""

    name: str
    facts: Facts
    _row: Row
    #: the names of its tensors by their role
    _members: dict[str, str]

    @property
    def scheme(self) -> str:
        return self._row.scheme

    @property
    def format(self) -> str:
        """The block format, or the format of the elements of tiles."""
        return self.facts.format

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weight."""
        return self.facts.shape

    @property
    def markers(self) -> tuple[str, ...]:
        """The possible strings in the marker of its module; empty for no marker."""
        return self._row.markers

    @property
    def reading(self) -> tuple[Any, ...]:
        """The facts that are equal for two groups that read a weight alike."""
        sizes = None
        if self.facts.tile is not None:
            sizes = tuple(map(min, self.facts.sizes, self.shape[-2:]))
        blocks = (self.facts.axis, self.facts.block_size)
        return (self.format, self.shape, sizes, blocks, *self._row.reading)

    def is_of(self, module: str, evidence: Evidence) -> bool:
        """Return whether config.json does not contradict this weight of the module."""
        return self._row.agrees(self.facts, module, evidence)

    @property
    def members(self) -> tuple[str, ...]:
        """The names of its tensors, with the codes first."""
        return tuple(self._members.values())

    def __repr__(self) -> str:
        return f"<{self.name}: {self.facts}, {self.scheme}>"

    def read(self, get: Callable[[str], NDArray[Any]]) -> Scaled:
        """Return the weight, given a function that returns its tensors by name.

        Raises
        ------
        ValueError
            If the tensors have invalid values, such as negative scales or a tensor
            scale of 0.
        """
        arrays = {
            part: get(name)
            for part, name in self._members.items()
            if part not in ("marker", "shape")  # which only describe the others
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
    #: tensors that may be codes of a weight in an unknown scheme or in several schemes,
    #: with the reasons, by the name under which they would be read
    refused: dict[str, str]
    #: tensors that may be scales of refused codes, with the names of these codes
    companions: dict[str, str]


def find(evidence: Evidence) -> Found:
    """Find the weights with scales among the tensors of a checkpoint.

    A weight is read by a scheme that matches all evidence: names, dtypes, shapes, the
    marker of its module, the method in config.json. It is refused if two matching
    schemes read it differently, or if its module has scales that no scheme explains.
    """
    groups: list[Group] = []
    refused: dict[str, str] = {}
    companions_of: dict[str, set[str]] = {}  # by the names in `refused`
    taken: set[str] = set()
    fitting: dict[str, list[Group]] = {}
    for name, row, facts in _candidates(evidence):
        members = _fit(name, row, facts, evidence.entries)
        if members is None or (
            name in evidence.entries and name not in members.values()
        ):
            continue  # a tensor is missing, or another tensor has that name
        group = Group(name, facts, row, members)
        if row not in NAMED:  # metadata say so
            if not taken & {name, *group.members}:
                taken |= {name, *group.members}
                groups.append(group)
        elif _agrees(group, evidence):
            fitting.setdefault(name, []).append(group)
    companions = Companions(evidence.entries)
    for name, several in fitting.items():
        first = several[0]
        if taken & {name, *first.members}:
            continue
        taken |= {name, *first.members}
        if why := _contradiction(several, companions):
            codes = first.members[0]
            refused[codes] = why
            companions_of[codes] = companions.near(codes, name)
            companions_of[codes].update(*(group.members for group in several))
            taken.update(*(group.members for group in several))
        else:
            groups.append(first)
    for name in evidence.entries:
        if name not in taken and (why := _suspicion(name, evidence, companions)):
            refused[name] = why
            companions_of[name] = companions.near(name)
    in_groups = {member for group in groups for member in group.members}
    doubtful = {
        name: codes
        for codes, names in companions_of.items()
        for name in names - in_groups - refused.keys()
    }
    return Found(groups, refused, doubtful)


def _candidates(evidence: Evidence) -> Iterator[tuple[str, Row, Facts]]:
    yield from said(evidence)
    for scales, (kind, _) in evidence.entries.items():
        for row in NAMED:
            name = row.name_of(scales) if row.takes(kind) else None
            for facts in () if name is None else row.infer(name, evidence):
                yield name or "", row, facts


def _fit(name: str, row: Row, facts: Facts, entries: Entries) -> dict[str, str] | None:
    """Return the existing tensors of a weight, or None if a needed one is missing."""
    found: dict[str, str] = {}
    for part, member in row.members(name, facts).items():
        form = entries.get(member.name)
        # A marker is a string of any length.
        if form in member.forms or (part == "marker" and form is not None):
            found[part] = member.name
        elif form is not None or not member.is_optional:
            return None
    return found


def _agrees(group: Group, evidence: Evidence) -> bool:
    """Return whether the marker of the module and config.json agree with the row."""
    module = module_of(group.name)
    marker, wanted = evidence.marker(module), group.markers
    if not wanted if marker is None else marker in wanted:
        schemes = METHODS.get(evidence.method or "")
        is_method = schemes is None or group.scheme in schemes
        return is_method and group.is_of(module, evidence)
    return False


def _contradiction(several: list[Group], companions: Companions) -> str | None:
    """Return why a weight is refused although schemes match, or None."""
    first = several[0]
    name = first.members[0]
    other = next((x for x in several if x.reading != first.reading), None)
    if other is not None:
        return (
            f"tensor {brief(name)} fits two schemes: {first.scheme} ({first.facts}) and"
            f" {other.scheme} ({other.facts})"
        )
    members = {member for group in several for member in group.members}
    more = set(companions.of(name, first.name)) - set(first.members)
    if more := more | (members - set(first.members)):
        return (
            f"tensor {brief(name)} fits scheme {first.scheme} ({first.facts}), which"
            f" does not have {', '.join(sorted(more)[:4])}"
        )
    return None


# -- codes that no scheme explains ----------------------------------------------


def names_of_codes(name: str) -> list[str]:
    """Return the names of tensors that may contain the codes of a weight."""
    return [*dict.fromkeys(in_pattern(row.codes, name) for row in NAMED)]


def _suspicion(name: str, evidence: Evidence, companions: Companions) -> str | None:
    """Return why a tensor may be the codes of a weight, or None."""
    kind, shape = evidence.entries[name]
    if not may_be_codes(kind, shape) or companions.is_companion(name):
        return None
    scales = companions.of(name)
    if len(shape) == 1:  # the weight of a norm
        scales = [x for x in scales if evidence.entries[x][1] != shape]
    known = next(
        (
            tool
            for pattern, tool in REFUSED
            if any(re.search(pattern, x) for x in (name, *scales))
        ),
        None,
    )
    module = module_of(name)
    is_te = f"{module}._extra_state" in evidence.entries and are_numbers(kind, shape)
    known = "Transformer Engine" if is_te else known
    marker = evidence.marker(module)
    says = (
        f"; its marker says {brief(marker)}" if marker not in (None, UNMARKED) else ""
    )
    if METHODS.get(evidence.method or "") is not None:
        says += f"; config.json says quant_method {brief(evidence.method)}"
    if not scales and known is None and not (says and are_numbers(kind, shape)):
        return None
    there = ", ".join(
        "{} of {} and shape {}".format(x, *evidence.entries[x]) for x in scales[:4]
    )
    text = f"tensor {brief(name)} of {kind} and shape {shape} is in no known scheme"
    text += f" with {there}" if there else ", and has no scales" if not known else ""
    text += f" ({known} has such tensors)" if known else ""
    if kind == "U32" and any(x.endswith("biases") for x in scales):
        text += "; affine weights of MLX need bits and group_size in config.json"
    return text + says


# -- writing --------------------------------------------------------------------


def default_scheme(facts: Facts) -> str:
    """Return the scheme that most readers know, of those that can store a weight."""
    return next(x for x in SCHEMES[1:] if _row(x, facts) is not None)


def outline(
    name: str, facts: Facts, scheme: str = OWN
) -> tuple[Outline, dict[str, str]]:
    """Return dtypes, shapes and metadata of the tensors that will store a weight.

    These facts do not depend on the values, so the header of a file can be written
    before the values are known.

    Returns
    -------
    tensors : dict of str to (dtype, shape)
    metadata : dict of str to str
        The metadata of this weight; `join` combines those of several weights.

    Raises
    ------
    ValueError
        If the scheme is unknown or cannot store such a weight.
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
    """Return the tensors that store an array, and their metadata.

    Parameters
    ----------
    name : str
    array : BlockArray, TileArray or array_like
        The array; an array without scales is returned as a single tensor.
    scheme : str
        One of `SCHEMES`.

    Raises
    ------
    ValueError
        As for `outline`; and if the scales of the array have another format.
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
