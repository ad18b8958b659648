"""Load and save weights with scales as arrays of blocks and of tiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..._base.caller import warn
from ..._base.text import counted
from ..._base.wording import brief
from ..tensor_names import select
from . import schemes
from .header import checked_metadata
from .scheme_companions import may_be_codes
from .scheme_metadata import OWN_KEY, described

if TYPE_CHECKING:
    from .reading import SafeTensors
    from .scheme_rows import Scaled


def find(tensors: SafeTensors, metadata: Iterable[Mapping[str, str]]) -> schemes.Found:
    """Find the weights with scales of a checkpoint, given the metadata of its files."""
    entries = {x: (tensors.stored_as(x), tensors.info(x).shape) for x in tensors}
    config = schemes.config_beside(tensors.files[0])
    said = schemes.join(metadata)
    return schemes.find(schemes.Evidence(entries, said, tensors.__getitem__, config))


def load_with_weights(
    tensors: SafeTensors, names: str | Iterable[str] | None, path: str
) -> dict[str, NDArray[Any] | Scaled]:
    """Return the result of `load` with ``blocks=True``."""
    named = [names] if isinstance(names, str) else None if names is None else [*names]
    found = tensors.found()
    weights = {group.name: group for group in found.groups}
    of_codes = {weight.members[0]: name for name, weight in weights.items()}
    others = {name for weight in weights.values() for name in weight.members[1:]}
    known = {of_codes.get(name, name): None for name in tensors if name not in others}
    for name in named or ():
        if name not in weights and name not in known:
            _check_refused(schemes.names_of_codes(name), found, path)
    for name in described(tensors.metadata, tensors.keys()):
        if name not in weights and (named is None or name in named):
            raise ValueError(
                f"{path}: the codes and scales of {brief(name)} do not match metadata"
                f" {OWN_KEY!r}"
            )
    selected = select(named, known, path)
    _check_refused(selected, found, path)
    loaded: dict[str, NDArray[Any] | Scaled] = {}
    for name in selected:
        if name not in weights:
            loaded[name] = tensors[name]
            continue
        arrays = {member: tensors[member] for member in weights[name].members}
        try:
            loaded[name] = weights[name].read(arrays.__getitem__)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return loaded


def _check_refused(names: Iterable[str], found: schemes.Found, path: str) -> None:
    for name in names:
        if name in found.refused:
            raise ValueError(
                f"{path}: {found.refused[name]}. Use blocks=False to load the codes, or"
                " names to leave the tensor out"
            )


def warn_of_codes(tensors: SafeTensors, path: str) -> None:
    """Warn a caller who did not set `blocks` that some values are codes."""
    if not any(
        may_be_codes(tensors.stored_as(x), tensors.info(x).shape) for x in tensors
    ):
        return
    found = tensors.found()
    scaled = [group.members[0] for group in found.groups] + [*found.refused]
    if scaled:
        count = counted(len(scaled), "tensor")
        warn(
            f"{path}: the scales of {count}, such as {brief(scaled[0])}, are in other"
            " tensors and are not applied. Use blocks=True to apply them, or"
            " blocks=False to load the codes without this warning"
        )


def taken_apart(
    tensors: Mapping[Any, Any], metadata: Mapping[str, str] | None, scheme: str
) -> tuple[dict[Any, Any], dict[str, str] | None]:
    """Split arrays of blocks and tiles into the tensors and metadata of a file.

    Raises
    ------
    ValueError
        For an unknown scheme, for an array that the scheme cannot store, and for two
        tensors with the same name.
    TypeError
        If metadata are not strings.
    """
    found: dict[Any, Any] = {}
    said = []
    for name, given in tensors.items():
        if not isinstance(name, str):
            found[name] = given  # a name that the header refuses later
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
    given_texts.pop(OWN_KEY, None)  # from another file, for other tensors
    return found, schemes.join([given_texts, *said])
