"""Safetensors files that are written at any place, and get their names at the end."""

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
#: Of a full disk, a full quota, a file beyond what is allowed.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Part:
    """The work file of one output: its header, and room for all tensors.

    Parameters
    ----------
    path : str
        The output's name; the work file's has `SUFFIX` behind.
    outlines : mapping of str to (dtype, shape)
        Of its tensors.
    metadata : mapping of str to str

    Raises
    ------
    ValueError, TypeError
        For tensors that no safetensors file can have, named.
    """

    def __init__(
        self, path: str, outlines: Outlines, metadata: Mapping[str, str]
    ) -> None:
        self.path = path
        self.work = path + SUFFIX
        layout = lay_out(outlines, metadata or None)
        self._head, self._kinds = layout.header, layout.kinds
        self._at = dict(layout.offsets)
        #: bytes of each tensor
        self.sizes = {
            name: kind.size(outlines[name][1]) for name, kind in layout.kinds.items()
        }
        self._ends = {name: self._at[name] + n for name, n in self.sizes.items()}
        self.size = max([len(self._head), *self._ends.values()])
        self._stream: IO[bytes] | None = None

    def open(self, *, anew: bool) -> None:
        """Open the work file: a new one, or the one that an earlier run has left.

        Raises
        ------
        OSError
            If there is no room for a new one.
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
        """Whether an earlier run has left a work file of this size."""
        try:
            return os.path.getsize(self.work) == self.size
        except OSError:
            return False

    def is_there(self) -> bool:
        """Whether there is a work file, or the output that it has become."""
        return os.path.exists(self.work) or os.path.exists(self.path)

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Write the next items of a tensor."""
        assert self._stream is not None
        with told(self.work):
            self._stream.seek(self._at[name])
            write_data(self._stream, array, self._kinds[name])
            self._at[name] = self._stream.tell()
        assert self._at[name] <= self._ends[name], name

    def sync(self) -> None:
        """Have all that was written on the disk."""
        if self._stream is not None:
            with told(self.work):
                self._stream.flush()
                os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the work file, which stays."""
        if self._stream is not None:
            with suppress(OSError):  # what could not be written was told
                self._stream.close()

    def discard(self) -> None:
        """Close and remove the work file."""
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self.work)

    def finish(self) -> None:
        """Close the work file, and give it its name if it does not have it yet."""
        self.close()
        if os.path.exists(self.work):
            os.chmod(self.work, mode(self.path))
            os.replace(self.work, self.path)


def _take_room(fd: int, size: int) -> None:
    """Take the space of a file, so that a disk too small is found at once."""
    try:
        os.posix_fallocate(fd, 0, size)
    except AttributeError:
        os.truncate(fd, size)
    except OSError as error:
        if error.errno in _FULL:
            raise
        os.truncate(fd, size)  # a file system that cannot


@contextmanager
def told(
    path: str,
    what: str = "the same command then resumes, because finished work is kept",
) -> Iterator[None]:
    """Have errors of a full disk say what becomes of the work."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            f"{path} cannot be written: {error.strerror}. Make room: {what}"
        ) from None
