"""Save and load whole HDF5 files: mappings from names to arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._base.arguments import checked_path
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
        The path of the file. An existing file is replaced as a whole, or stays as it is
        if an error occurs.
    arrays : mapping of str to array_like, BlockArray or TileArray
        Arrays as for `write`. Slashes in names separate groups: "layer/0/weight".
    **create
        As for `write`: ``compression="gzip"``. Arrays without an axis are written
        without these options, because HDF5 cannot compress them.

    Raises
    ------
    ImportError
        If h5py is not installed.
    TypeError, ValueError
        As for `write`, with the name of the array; for names that `load` could not
        restore; for a path that names another kind of file, such as `a.npy`.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : Read the file.
    write : Write one array to an open file.
    tf32dtype.safetensors.save : Write arrays to a safetensors file.

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
    check_name(checked_path(path), "td.hdf5.save", ".h5", ".hdf5")
    h5py()  # raises before a file is made if h5py is missing
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
        A file that `save` or any other program wrote.
    names : str or iterable of str, optional
        Names of datasets, or patterns as in file names: ``"layer/*"``. None: all.

    Returns
    -------
    dict of str to ndarray, BlockArray or TileArray
        The datasets of all groups, as `read` returns them, in the order of their names.
        Soft and external links are not followed.

    Raises
    ------
    ImportError
        If h5py is not installed.
    KeyError
        For a name or pattern that matches no dataset.
    TypeError
        If `path` is not a path, or a name is not a string.
    ValueError
        If the file is not an HDF5 file, or is damaged: the error names the file, the
        dataset and the fault. If the arrays would take more than one GiB and more than
        a thousand times the size of the file. If a dataset has its data in other files.
    OSError
        If the file cannot be opened.

    See Also
    --------
    save : Write a file.
    read : Read one dataset of an open file, or a selection.

    Notes
    -----
    The library of h5py, libhdf5, reads the file. Do not load untrusted files: some
    malicious files crash libhdf5.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> td.hdf5.save("a.h5", {"layer/w": np.array([1.5, 2], td.bfloat16), "step": 7})
    >>> td.hdf5.load("a.h5", names="layer/*")
    {'layer/w': array([1.5, 2. ], dtype=bfloat16)}
    """
    open_file = h5py().File  # outside `errors_of`: a missing library is not damage
    file_name = checked_path(path)
    with open(path, "rb") as stream:  # errors of the system stay as they are
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
    """Turn errors of libhdf5 and h5py for a damaged file into a ValueError."""
    try:
        yield
    except (UnknownTensor, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:  # of the system, not of the content
            raise
        raise ValueError(f"{name}: {error}") from error
    except Exception as error:
        # The string of a KeyError would have quotes around the message.
        what = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise ValueError(f"{name}: {what}") from error


def datasets_of(file: Any) -> dict[str, Any]:
    """Return all datasets by name; visit each group once, as links may form circles.

    h5py's own walk, `visititems`, crashes in some damaged files.
    """
    found = {}
    seen = {file}
    waiting = [("", file)]
    while waiting:
        prefix, group = waiting.pop()
        for key in group:
            if isinstance(key, bytes):  # a name that is not UTF-8
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
    """Raise ValueError if the arrays would take far more memory than the file has."""
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
    """Raise ValueError if reading would open other files or crash libhdf5."""
    _check_data_is_here(dataset)
    _check_checksums(dataset)


def _check_data_is_here(dataset: Any) -> None:
    """Raise ValueError for data in other files: the file could name any file."""
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
