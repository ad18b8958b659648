"""Safetensors files that are written in any order and renamed at the end."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from numpy.typing import NDArray

from ..._base.whole_files import mode
from ..safetensors.writing import lay_out, write_data
from .targets import Outlines

SUFFIX = ".part"
#: The error numbers of a full disk, a full quota and a file above the size limit.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Part:
    """The work file of one output: its header, and space for all tensors.

    Parameters
    ----------
    path : str
        The output's name; the work file's name ends with an additional `SUFFIX`.
    outlines : mapping of str to (dtype, shape)
        The dtypes and shapes of its tensors.
    metadata : mapping of str to str
        The metadata of the output.

    Raises
    ------
    ValueError, TypeError
        For a tensor that a safetensors file cannot store; the error names the tensor.
    """

    def __init__(
        self, path: str, outlines: Outlines, metadata: Mapping[str, str]
    ) -> None:
        self.path = path
        self.work = path + SUFFIX
        layout = lay_out(outlines, metadata or None)
        self._head, self._kinds = layout.header, layout.kinds
        self._at = dict(layout.offsets)
        #: the size of each tensor in bytes
        self.sizes = {
            name: kind.size(outlines[name][1]) for name, kind in layout.kinds.items()
        }
        self._ends = {name: self._at[name] + n for name, n in self.sizes.items()}
        self.size = max([len(self._head), *self._ends.values()])
        self._stream: IO[bytes] | None = None

    def open(self, *, anew: bool) -> None:
        """Open a new work file, or the one that an earlier run has left.

        Raises
        ------
        OSError
            If the disk has no space for a new one.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC if anew else os.O_RDWR
        for name in ("O_NOFOLLOW", "O_BINARY"):
            flags |= getattr(os, name, 0)
        self._stream = os.fdopen(os.open(self.work, flags, 0o666), "r+b")
        if anew:
            with told(self.work, f"{self.size} bytes are needed; nothing is kept"):
                _take_room(self._stream.fileno(), self.size)
                self._stream.write(self._head)

    def is_whole(self) -> bool:
        """Return whether an earlier run has left a work file of this size."""
        try:
            return os.path.getsize(self.work) == self.size
        except OSError:
            return False

    def is_there(self) -> bool:
        """Return whether the work file or the finished output exists."""
        return os.path.exists(self.work) or os.path.exists(self.path)

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Write the next elements of a tensor."""
        assert self._stream is not None
        with told(self.work):
            self._stream.seek(self._at[name])
            write_data(self._stream, array, self._kinds[name])
            self._at[name] = self._stream.tell()
        assert self._at[name] <= self._ends[name], name

    def sync(self) -> None:
        """Flush all written data to the disk."""
        if self._stream is not None:
            with told(self.work):
                self._stream.flush()
                os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the work file without removing it."""
        if self._stream is not None:
            with suppress(OSError):  # a failed write was reported already
                self._stream.close()

    def discard(self) -> None:
        """Close and remove the work file."""
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self.work)

    def finish(self) -> None:
        """Close the work file, and rename it to the output if this is not yet done."""
        self.close()
        if os.path.exists(self.work):
            os.chmod(self.work, mode(self.path))
            os.replace(self.work, self.path)


def _take_room(fd: int, size: int) -> None:
    """Reserve the space of a file, so that a full disk is found at once."""
    try:
        os.posix_fallocate(fd, 0, size)
    except AttributeError:
        os.truncate(fd, size)
    except OSError as error:
        if error.errno in _FULL:
            raise
        os.truncate(fd, size)  # the file system cannot reserve space


@contextmanager
def told(
    path: str,
    what: str = "the same command then resumes, because finished work is kept",
) -> Iterator[None]:
    """Make errors of a full disk say what happens to the finished work."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            f"{path} cannot be written: {error.strerror}. Make room: {what}"
        ) from None
