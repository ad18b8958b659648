"""The arrays that a command reads: of files of one, or tensors of files by name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.errors import UserError
from .._files.readers import Tensor, TensorFile, open_file
from .._files.tensor_names import UnknownTensor

Array = NDArray[Any]

_MOST = 20  # members that an error lists


@contextmanager
def opened(path: str) -> Iterator[TensorFile]:
    """The tensors of a file; a UserError if there are none to be read."""
    try:
        file = open_file(path)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror or error}{_near(path)}"
        ) from None
    except (ValueError, ImportError) as error:
        raise UserError(str(error)) from None
    with file:
        yield file


def read(text: str, *, finite: bool = True) -> Array:
    """Return the array that `FILE` or `FILE:NAME` names.

    Parameters
    ----------
    text : str
        A path, or the path of a file of several tensors, a colon and the name of one. A
        file of one needs no name.
    finite : bool
        Whether all numbers must be finite.

    Returns
    -------
    numpy.ndarray
        An array of a real dtype, which is not empty. An
        array of blocks becomes float64, which holds its values exactly.

    Raises
    ------
    UserError
        If there is no such array, or it is not real, or empty, or not all finite.
    """
    path, name = parted(text)
    with opened(path) as file:
        tensor = choose(file, path, name)
        if not file.is_array:
            text = f"{path}:{tensor.name}"
        array = tensor.get()
    found: Array = (
        array if isinstance(array, np.ndarray) else array.dequantize(np.float64)
    )
    _check(found, text, finite)
    return found


def have_one_name(first: str, second: str) -> bool:
    """Say whether two words that `read` takes name tensors of one name."""
    names = []
    for text in (first, second):
        path, name = parted(text)
        with opened(path) as file:
            names.append(choose(file, path, name).name)
    return names[0] == names[1]


def are_checkpoints(first: str, second: str) -> bool:
    """Say whether two words name files, or folders, of several tensors each."""
    for text in (first, second):
        path, name = parted(text)
        with opened(path) as file:
            if name or len(file) < 2:
                return False
    return True


def parted(text: str) -> tuple[str, str]:
    """Split a word at a colon into the longest path that exists, and a name."""
    if os.path.exists(text) or ":" not in text:
        return text, ""
    path = text
    while ":" in path:
        path = path.rpartition(":")[0]
        if os.path.exists(path):
            return path, text[len(path) + 1 :]
    first, _, last = text.rpartition(":")
    return first, last


def _near(path: str) -> str:
    """Return the file that was perhaps meant."""
    near = [path + end for end in (".npy", ".npz") if os.path.exists(path + end)]
    return f"; use {' or '.join(near)}" if near else ""


def choose(file: TensorFile, path: str, name: str) -> Tensor:
    """Return the tensor of this name; without one, the only one that the file has.

    Raises
    ------
    UserError
        If the file has no such tensor, or several and the name is empty.
    """
    if file.is_array:
        if name:
            raise UserError(
                f"{path} holds one array and not tensors with names; omit :{name}"
            )
        return next(iter(file.values()))
    listed = ", ".join(f"{path}:{known}" for known in islice(file, _MOST))
    listed += ", ..." * (len(file) > _MOST)
    if not file:
        raise UserError(f"{path} must hold a tensor; got none")
    if not name and len(file) > 1:
        raise UserError(f"{path} has {len(file)} tensors; use one of {listed}")
    if name and name not in file:
        raise UserError(str(UnknownTensor(name, file, path)))
    return file[name or next(iter(file))]


def _check(array: Array, name: str, must_be_finite: bool) -> None:
    if array.dtype.kind == "V" and array.dtype.names is None:
        raise UserError(
            f"{name} must hold real numbers; got {array.dtype}, elements of"
            f" {array.dtype.itemsize} bytes without a format, which np.save does not"
            " keep. Write the array with td.save, or convert the file with"
            " td.save(file, np.load(file).view(td.bfloat16)) or another format"
        )
    if array.dtype.kind == "c":
        raise UserError(
            f"{name} must hold real numbers; got {array.dtype}. Save x.real and x.imag"
            " and compare each"
        )
    if array.dtype.kind not in "biuf":
        raise UserError(f"{name} must hold real numbers; got {array.dtype}")
    if array.size == 0:
        raise UserError(f"{name} must not be empty; got shape {array.shape}")
    if not must_be_finite:
        return
    finite = np.isfinite(array)
    bad = array.size - int(np.count_nonzero(finite))
    if bad:
        first = np.unravel_index(int(np.argmin(finite)), array.shape)
        raise UserError(
            f"{name} must hold finite numbers; got {bad} Inf or NaN, the first at"
            f" {[int(i) for i in first]}"
        )
