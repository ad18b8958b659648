"""The arrays that a command reads: of `.npy` files, and members of `.npz` files."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import load
from . import CommandError

Array = NDArray[Any]

_MOST = 20  # members that an error lists


def read(text: str) -> Array:
    """The array that `FILE` or `FILE.npz:NAME` names.

    Parameters
    ----------
    text : str
        A path, or the path of an archive, a colon and the name of an array in it. An
        archive of one array needs no name.

    Returns
    -------
    numpy.ndarray
        Of a real dtype, not empty, all finite; a saved array of blocks in float64,
        which holds its values exactly.

    Raises
    ------
    CommandError
        If there is no such array, or it is not real, or empty, or not all finite.
    """
    path, member = text, ""
    if not os.path.exists(text) and ":" in text:
        path, _, member = text.rpartition(":")
    array: Any
    try:
        array = load(path, mmap_mode="r")
        if hasattr(array, "files"):
            with array:
                text, array = _member(array, path, member)
        elif member:
            raise CommandError(f"{path} holds one array: leave out :{member}")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}{_near(path)}") from None
    except (ValueError, EOFError) as error:
        raise CommandError(str(error)) from None
    found: Array = (
        array if isinstance(array, np.ndarray) else array.dequantize(np.float64)
    )
    _check(found, text)
    return found


def _near(path: str) -> str:
    """The file that was perhaps meant."""
    near = [path + end for end in (".npy", ".npz") if os.path.exists(path + end)]
    return f"; there is {' and '.join(near)}" if near else ""


def _member(archive: Any, path: str, member: str) -> tuple[str, Any]:
    """An array of an archive, and how it is called."""
    names = archive.files
    listed = ", ".join(f"{path}:{name}" for name in names[:_MOST])
    listed += ", ..." * (len(names) > _MOST)
    if not names:
        raise CommandError(f"{path} is an archive without arrays")
    if not member and len(names) > 1:
        raise CommandError(f"{path} is an archive: choose one of {listed}")
    if member and member not in names:
        raise CommandError(f"{path} has no {member!r}; it has {listed}")
    name = member or names[0]
    array = archive[name]
    if isinstance(array, bytes):
        raise CommandError(f"{path}:{name} is a file in the archive, not an array")
    return f"{path}:{name}", array


def _check(array: Array, name: str) -> None:
    if array.dtype.kind == "V" and array.dtype.names is None:
        raise CommandError(
            f"{name} holds {array.dtype}, items of {array.dtype.itemsize} bytes without"
            " a format, whose name np.save does not keep: write the array with td.save,"
            " or what is there with td.save(file, np.load(file).view(td.bfloat16)), or"
            " whichever format it was"
        )
    if array.dtype.kind == "c":
        raise CommandError(
            f"{name} holds {array.dtype}, not real numbers: save x.real and x.imag, and"
            " compare each"
        )
    if array.dtype.kind not in "biuf":
        raise CommandError(f"{name} holds {array.dtype}, not real numbers")
    if array.size == 0:
        raise CommandError(f"{name} has shape {array.shape}: there is no number in it")
    finite = np.isfinite(array)
    bad = array.size - int(np.count_nonzero(finite))
    if bad:
        first = np.unravel_index(int(np.argmin(finite)), array.shape)
        raise CommandError(
            f"{name} holds {bad} values that are Inf or NaN, the first at"
            f" {[int(i) for i in first]}: losses are of finite numbers"
        )
