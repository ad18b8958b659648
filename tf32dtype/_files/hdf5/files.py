"""HDF5 files as a whole: arrays by name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._base.whole_files import replacing
from ..._base.wording import brief
from ..file_kinds import check_name, is_absurd
from ..tensor_names import UnknownTensor, select
from . import datasets
from .storage import h5py

if TYPE_CHECKING:
    from ...blocks.facts_text import Scaled

Path = str | os.PathLike[str]


def save(path: Path, arrays: Mapping[str, ArrayLike | Scaled], **create: Any) -> None:
    """Write arrays to an HDF5 file.

    Parameters
    ----------
    path : path
        A file that is there is replaced as a whole, or left as it is if anything
        fails.
    arrays : mapping of str to array_like or BlockArray
        As for `write`. Slashes in names are of groups: "layer/0/weight".
    **create
        As for `write`: ``compression="gzip"``. Arrays without a dimension, which HDF5
        cannot compress, are written without.

    Raises
    ------
    ImportError
        Without h5py.
    TypeError, ValueError
        As `write`, with the name of the array; for names that `load` would not give
        back; for a path that names another kind of file, such as `a.npy`.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> w = np.ones((2, 3), td.bfloat16)
    >>> td.hdf5.save("a.h5", {"layer/w": w, "step": 7}, compression="gzip")
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"arrays must be a mapping of names to arrays; got {brief(arrays)}"
        )
    for name in arrays:
        _check_name(name)
    check_name(os.fspath(path), "td.hdf5.save", ".h5", ".hdf5")
    h5py()  # if it is missing, this says so before there is a file
    with replacing(path) as stream, h5py().File(stream, "w") as file:
        for name, array in arrays.items():
            has_shape = array.ndim if hasattr(array, "ndim") else np.ndim(array)
            options = create if has_shape else {}
            try:
                datasets.write(file, name, array, **options)
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"{name}: {error}") from error


def load(
    path: Path, names: str | Iterable[str] | None = None
) -> dict[str, NDArray[Any] | Scaled]:
    """Read the arrays of an HDF5 file.

    Parameters
    ----------
    path : path
        Of `save`, or of any other program.
    names : str or iterable of str, optional
        Names of datasets, or patterns as in file names: ``"layer/*"``.

    Returns
    -------
    dict of str to ndarray or BlockArray
        All datasets of the file's groups, as `read` gives them, in the order of their
        names. Links by name, within the file and to others, are not followed.

    Raises
    ------
    ImportError
        Without h5py.
    KeyError
        For a name that is no dataset's, and a pattern of none.
    ValueError
        If it is no HDF5 file, or a damaged one: the error names the file, the dataset
        and what is wrong. If the file announces more than a GiB, and more than a
        thousand times as much as it holds. If a dataset's data is in other files.
    OSError
        If the file cannot be opened.

    Notes
    -----
    h5py's library, libhdf5, reads the file. It is not made for files of an attacker,
    some of which crash it.
    """
    open_file = h5py().File  # a missing library is no damage
    file_name = os.fsdecode(path)
    with open(path, "rb") as stream:  # the system's errors as they are
        size = os.fstat(stream.fileno()).st_size
    with errors_of(file_name), open_file(path, "r") as file:
        found = datasets_of(file)
        wanted = {name: found[name] for name in select(names, found, file_name)}
        check_size(wanted, size)
        arrays = {}
        for name, dataset in wanted.items():
            with errors_of(name):
                check_dataset(dataset)
                arrays[name] = datasets.read(dataset, ...)
        return arrays


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Whatever libhdf5 and h5py raise for a damaged file, as a ValueError of a name."""
    try:
        yield
    except (UnknownTensor, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:  # the system's, not of the file's contents
            raise
        raise ValueError(f"{name}: {error}") from error
    except Exception as error:
        # A KeyError's text is its argument in quotes.
        what = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise ValueError(f"{name}: {what}") from error


def datasets_of(file: Any) -> dict[str, Any]:
    """All datasets by name, each group once: links may go in circles.

    h5py's own walk, `visititems`, crashes in some damaged files.
    """
    found = {}
    seen = {file}
    waiting = [("", file)]
    while waiting:
        prefix, group = waiting.pop()
        for key in group:
            if isinstance(key, bytes):  # h5py's for what is no UTF-8
                name = prefix + key.decode(errors="backslashreplace")
            else:
                name = prefix + key
            with errors_of(name):
                if not isinstance(group.get(key, getlink=True), h5py().HardLink):
                    continue
                thing = group[key]
                if isinstance(thing, h5py().Dataset):
                    found[name] = thing
                elif isinstance(thing, h5py().Group) and thing not in seen:
                    seen.add(thing)
                    waiting.append((f"{name}/", thing))
    return {name: found[name] for name in sorted(found)}


def check_size(found: dict[str, Any], size: int) -> None:
    """Raise ValueError where the arrays would take absurdly more than the file does."""
    announced = {
        name: math.prod(dataset.shape or ()) * dataset.id.get_type().get_size()
        for name, dataset in found.items()
    }
    if is_absurd(sum(announced.values()), size):
        largest = max(announced, key=announced.__getitem__)
        raise ValueError(
            f"{largest} must fit the file of {size} bytes; got {announced[largest]}"
            f" bytes. If the size is right, use td.hdf5.read(file[{largest!r}])"
        )


def check_dataset(dataset: Any) -> None:
    """Raise a ValueError if reading would leave the file, or crash libhdf5."""
    _check_data_is_here(dataset)
    _check_checksums(dataset)


def _check_data_is_here(dataset: Any) -> None:
    """Raise ValueError for data in other files, which whoever wrote this one names."""
    if dataset.external or dataset.is_virtual:
        raise ValueError(
            "data is in other files, which td.hdf5.load does not open: if you trust the"
            " file, use td.hdf5.read"
        )


def _check_checksums(dataset: Any) -> None:
    """Raise ValueError for chunks that are too short for their checksums.

    libhdf5 2.0 reads past their end.
    """
    if dataset.fletcher32:
        short = dataset.id.chunk_iter(lambda chunk: True if chunk.size < 4 else None)
        if short:
            raise ValueError("chunks must be at least as long as their checksums")


def _check_name(name: object) -> None:
    parts = name.split("/") if isinstance(name, str) else []
    if not parts or "\0" in str(name) or not {"", "."}.isdisjoint(parts):
        raise ValueError(
            "name must be a string with single slashes between groups; got"
            f" {brief(name)}"
        )
