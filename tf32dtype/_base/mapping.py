"""Files mapped into memory, and the memory that arrays view."""

from __future__ import annotations

import errno
import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The flag without which Linux refuses files larger than memory; named in Python 3.13.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def map_file(descriptor: int, size: int) -> NDArray[np.uint8]:
    """Map a file as a read-only array.

    The pages are copied when they are written. Libraries that do not know of read-only
    arrays (PyTorch) therefore write to memory of the process: neither does the process
    end, nor does the file change.

    Parameters
    ----------
    descriptor : int
        A descriptor of a readable file. You may close it afterwards.
    size : int
        Bytes of the file.
    """
    return np.frombuffer(memoryview(_pages(descriptor, size)).toreadonly(), np.uint8)


def _pages(descriptor: int, size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
    flags, rights = mmap.MAP_PRIVATE | _NO_RESERVE, mmap.PROT_READ | mmap.PROT_WRITE
    try:
        return mmap.mmap(descriptor, size, flags, rights)
    except OSError as error:
        if error.errno != errno.ENOMEM:  # of systems that reserve all the same
            raise
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)


def exporter(array: Any) -> Any:
    """Return the object whose memory an array views: itself, a map, bytes, ..."""
    while array is not None:
        found = array
        array = array.obj if isinstance(array, memoryview) else _base(array)
    return found


def _base(array: Any) -> Any:
    return getattr(array, "base", None)


def is_protected(array: NDArray[Any]) -> bool:
    """Say whether an array's memory is read-only.

    That is the memory of a file that is mapped to be read, of bytes or of an Arrow
    buffer. A write would end the process, or change an object that counts as constant.
    """
    if array.flags.writeable:
        return False
    owner = exporter(array)
    try:
        return not isinstance(owner, np.ndarray) and memoryview(owner).readonly
    except (TypeError, ValueError, BufferError):  # it has no buffer, or is closed
        return False
