"""Read tensors of single safetensors files, or of checkpoints with an index."""

from __future__ import annotations

from typing import Any

from ..._base.wording import brief
from ..safetensors import schemes
from ..safetensors.reading import SafeTensors
from ..safetensors.reading import open as open_safetensors
from .tensor import Tensor, TensorFile


def read(path: str) -> TensorFile:
    """Return the tensors of a file, of an index, or of a folder with one of these.

    A weight whose scales are separate tensors becomes one tensor.
    """
    file = open_safetensors(path)
    found = file.found()
    groups = {group.members[0]: group for group in found.groups}
    inside = {name for group in found.groups for name in group.members}
    tensors = []
    for name in file:
        if name in groups:
            tensors.append(_weight(file, groups[name]))
        elif name not in inside:
            tensors.append(_tensor(file, name, _doubt(found, name)))
    return TensorFile(
        "safetensors", file.files, tensors, metadata=file.metadata, close=file.close
    )


def _doubt(found: schemes.Found, name: str) -> str:
    """Return why the values of a tensor may need scales, or an empty string."""
    if codes := found.companions.get(name):
        return f"it may belong to tensor {brief(codes)}, which cannot be decoded"
    return found.refused.get(name, "")


def _tensor(file: SafeTensors, name: str, doubt: str = "") -> Tensor:
    info = file.info(name)
    return Tensor(
        name,
        info.dtype.name,
        info.shape,
        info.nbytes,
        lambda: file[name],
        info.dtype,
        path=_path(file, name),
        doubt=doubt,
    )


def _weight(file: SafeTensors, group: schemes.Group) -> Tensor:
    def read() -> Any:
        try:
            return group.read(lambda name: file[name])
        except ValueError as error:
            path = file.file_of(group.members[0])
            text = str(error)
            raise ValueError(text if path in text else f"{path}: {text}") from None

    parts = tuple(_tensor(file, name) for name in group.members)
    return Tensor(
        group.name,
        group.format if group.facts.tile is None else f"{group.format} tiles",
        group.shape,
        sum(part.nbytes for part in parts),
        read,
        parts=parts,
        path=_path(file, group.members[0]),
        group=group,
    )


def _path(file: SafeTensors, name: str) -> str:
    return file.file_of(name) if len(file.files) > 1 else ""
