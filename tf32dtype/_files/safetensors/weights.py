"""Weights with scales as `load` and `save` have them: arrays of blocks and of tiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..._base.wording import brief
from ..tensor_names import select
from . import schemes
from .header import checked_metadata
from .scheme_metadata import OWN_KEY, described

if TYPE_CHECKING:
    from .reading import SafeTensors
    from .scheme_rows import Scaled


def find(
    tensors: SafeTensors, metadata: Iterable[Mapping[str, str]]
) -> dict[str, schemes.Group]:
    """The weights with scales of a checkpoint, by name; metadata are its files'."""
    groups = schemes.find(_entries(tensors), schemes.join(metadata))
    return {group.name: group for group in groups}


def load_with_weights(
    tensors: SafeTensors, names: str | Iterable[str] | None, path: str
) -> dict[str, NDArray[Any] | Scaled]:
    """What `load` with ``blocks=True`` returns."""
    named = [names] if isinstance(names, str) else None if names is None else [*names]
    weights = tensors.weights()
    of_codes = {weight.members[0]: name for name, weight in weights.items()}
    others = {name for weight in weights.values() for name in weight.members[1:]}
    known = {of_codes.get(name, name): None for name in tensors if name not in others}
    entries = _entries(tensors)
    for name in named or ():
        if isinstance(name, str) and name not in weights:
            _check_whole(name, entries, path)
    for name in described(tensors.metadata, entries):
        if name not in weights and (named is None or name in named):
            raise ValueError(
                f"{path}: the codes and scales of {brief(name)} do not match metadata"
                f" {OWN_KEY!r}"
            )
    found: dict[str, NDArray[Any] | Scaled] = {}
    for name in select(named, known, path):
        if name not in weights:
            found[name] = tensors[name]
            continue
        arrays = {member: tensors[member] for member in weights[name].members}
        try:
            found[name] = weights[name].read(arrays.__getitem__)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return found


def _check_whole(name: str, entries: schemes.Entries, path: str) -> None:
    reason = schemes.why_not(name, entries)
    if reason is not None:
        raise ValueError(f"{path}: {reason}")


def _entries(tensors: SafeTensors) -> schemes.Entries:
    return {x: (tensors.stored_as(x), tensors.info(x).shape) for x in tensors}


def taken_apart(
    tensors: Mapping[Any, Any], metadata: Mapping[str, str] | None, scheme: str
) -> tuple[dict[Any, Any], dict[str, str] | None]:
    """Arrays and metadata of a file, with arrays of blocks and tiles in their parts.

    Raises
    ------
    ValueError
        For an unknown scheme, an array that it has no place for, and two tensors that
        would have one name.
    TypeError
        For metadata that are no texts.
    """
    found: dict[Any, Any] = {}
    said = []
    for name, given in tensors.items():
        if not isinstance(name, str):
            found[name] = given  # the header refuses it
            continue
        parts, texts = schemes.tensors_of(name, given, scheme)
        for part in parts.keys() & found.keys():
            raise ValueError(
                f"tensors must have different names; got {brief(part)} twice"
            )
        found |= parts
        said.append(texts)
    if metadata is None and not any(said):
        return found, None
    given_texts = checked_metadata({} if metadata is None else metadata)
    given_texts.pop(OWN_KEY, None)  # copied from a file, of other tensors
    return found, schemes.join([given_texts, *said])
