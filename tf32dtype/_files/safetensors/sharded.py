"""Read and write the index of a checkpoint, which has the file of each tensor.

    {"metadata": {"total_size": 123}, "weight_map": {"name": "model-00001-of-00002..."}}

is an index as huggingface_hub writes it to `model.safetensors.index.json`.
"""

from __future__ import annotations

import json
import os
from pathlib import PurePosixPath
from typing import Any

from ..._base.wording import brief
from . import header

SUFFIX = ".safetensors"
INDEX_SUFFIX = ".safetensors.index.json"


def find(path: str) -> str:
    """Return the file or index that a path refers to.

    A folder refers to its only checkpoint. The path of a missing file refers to the
    index of its shards, if that exists.

    Raises
    ------
    FileNotFoundError
        For a folder without a checkpoint.
    ValueError
        For a folder with several checkpoints.
    """
    if not os.path.isdir(path):
        index = index_path(path)
        return index if not os.path.exists(path) and os.path.exists(index) else path
    names = sorted(os.listdir(path))
    for suffix in (INDEX_SUFFIX, SUFFIX):
        found = [name for name in names if name.endswith(suffix)]
        if suffix == INDEX_SUFFIX:  # a single file may be newer or older than the index
            found += [x for x in map(_whole_name, found) if x in names]
        if len(found) == 1:
            return os.path.join(path, found[0])
        if found:
            raise ValueError(
                f"{path} has several checkpoints, {', '.join(map(brief, found[:6]))}: "
                "use the path of one of these files"
            )
    raise FileNotFoundError(f"{path} does not have a file *{SUFFIX} or *{INDEX_SUFFIX}")


def _whole_name(index: str) -> str:
    """Return the file name that belongs to an index for a checkpoint in one file."""
    return index.removesuffix(INDEX_SUFFIX) + SUFFIX


def is_index(path: str) -> bool:
    return path.endswith(".json")


def read(path: str) -> dict[str, str]:
    """Return the path of the file that contains each tensor.

    Raises
    ------
    ValueError
        For a damaged index, or one that names files outside its folder.
    """
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        text = stream.read() if size <= header.MAX_HEADER else b""
    try:
        if size > header.MAX_HEADER:
            raise ValueError(
                f"the file must have at most {header.MAX_HEADER} bytes; got {size}"
            )
        table = header.parse_object(text)
        places = table.get("weight_map")
        if not isinstance(places, dict):
            raise ValueError(f"weight_map must be an object; got {brief(places)}")
        folder = os.path.dirname(path)
        return {
            name: os.path.join(folder, _checked(name, place))
            for name, place in places.items()
        }
    except ValueError as error:
        raise ValueError(f"{path} is not a valid index of tensors: {error}") from None


def _checked(name: str, place: Any) -> str:
    """Return a file name after checking that it stays in the folder of the index."""
    if not isinstance(place, str) or not place:
        raise ValueError(f"tensor {brief(name)} must be in a file; got {brief(place)}")
    parts = PurePosixPath(place).parts
    plain = set(place).isdisjoint("\\:\0") and header.is_unicode(place)
    if place[0] == "/" or ".." in parts or not plain:
        raise ValueError(
            f"tensor {brief(name)} must be in a file of the folder; got {brief(place)}"
        )
    return place


def split(sizes: dict[str, int], most: int) -> list[list[str]]:
    """Divide names of tensors into shards of at most `most` bytes or one tensor."""
    shards: list[list[str]] = []
    room = 0
    for name, size in sizes.items():
        if not shards or size > room:
            shards.append([])
            room = most
        shards[-1].append(name)
        room -= size
    return shards


def shard_path(path: str, number: int, count: int) -> str:
    """Return the path of a shard, with the name that huggingface_hub uses."""
    return f"{path.removesuffix(SUFFIX)}-{number:05}-of-{count:05}{SUFFIX}"


def index_path(path: str) -> str:
    return path.removesuffix(SUFFIX) + INDEX_SUFFIX


def index_of(places: dict[str, str], total: int) -> bytes:
    """Return an index with the file of each tensor, and the total size in bytes."""
    table = {"metadata": {"total_size": total}, "weight_map": places}
    return (json.dumps(table, indent=2, sort_keys=True) + "\n").encode()
