"""Files next to an output that record finished work, so that the next run resumes it.

The first line names the command that writes the journal. A file without this line is
not a journal: no command writes or removes it. Each further line has the CRC-32 of a
record, and the record in JSON.
"""

from __future__ import annotations

import io
import json
import os
import stat
import zlib
from typing import Any

from .errors import UserError

#: Windows has only the last flag. On Linux, O_NONBLOCK opens a named pipe at once.
_FLAGS = os.O_RDWR | os.O_CREAT
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class Journal:
    """Open and lock a journal, and read its records.

    Parameters
    ----------
    path : str
        The file. A new file stays empty until the first record is written.
    command : str
        The command that resumes.

    Attributes
    ----------
    records : list of dict
        The records of earlier runs, up to the first incomplete line.
    is_new : bool
        No earlier run has left a journal.
    is_damaged : bool
        A line is not as it was written. `records` is empty.

    Raises
    ------
    UserError
        If the file is not a journal of the command, or another process has it open.
        The file stays as it was.
    """

    def __init__(self, path: str, command: str) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        self.is_damaged = False
        self._head = f"tf32dtype {command}: journal, version 1\n".encode()
        self._file = self._open()
        try:
            _lock(self._file, path, command)
            self._read()
        except BaseException:
            self.close()
            raise

    def _open(self) -> io.FileIO:
        try:
            found = os.lstat(self.path).st_mode
            if not stat.S_ISREG(found):
                raise self._foreign()
        except FileNotFoundError:
            pass
        return io.FileIO(os.open(self.path, _FLAGS, 0o666), "r+")

    def _foreign(self) -> UserError:
        return UserError(
            f"{self.path} already exists and is not a tf32dtype journal. Move or remove"
            " that file"
        )

    def _read(self) -> None:
        data = self._file.readall()
        self.is_new = not data
        if not self.is_new and not data.startswith(self._head):
            raise self._foreign()
        lines = data[len(self._head) :].split(b"\n")[:-1]
        try:
            self.records = [_record(line) for line in lines]
        except ValueError:
            self.is_damaged = True
        self._end = len(data[: len(self._head)]) + sum(len(line) + 1 for line in lines)

    def begin(self, *records: dict[str, Any]) -> None:
        """Replace all records by these."""
        self._end = min(self._end, len(self._head))
        self._truncate()
        self.write(*records)

    def write(self, *records: dict[str, Any]) -> None:
        """Add records, which are on the disk when this method returns."""
        data = self._head * (self._end == 0) + b"".join(map(_line, records))
        end = self._end + len(data)
        try:
            self._file.seek(self._end)
            while data:
                data = data[self._file.write(data) :]
            self._end = end
            self._truncate()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from None

    def _truncate(self) -> None:
        """Remove lines of earlier runs that do not count."""
        self._file.truncate(self._end)

    def close(self) -> None:
        """Release the journal for other processes."""
        self._file.close()

    def remove(self) -> None:
        """Remove and close the journal."""
        os.unlink(self.path)
        self.close()


def _line(record: dict[str, Any]) -> bytes:
    text = json.dumps(record).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _record(line: bytes) -> dict[str, Any]:
    """Return the record of a line, or raise ValueError if its bytes have changed."""
    text = line[9:]
    if line[:9] != b"%08x " % zlib.crc32(text):
        raise ValueError("the checksum differs")
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError("no record")
    return record


def _lock(file: io.FileIO, path: str, command: str) -> None:
    try:
        import fcntl
    except ImportError:  # on Windows, users must not start two at a time
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The process that held the lock may have removed the file meanwhile.
        is_there = os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except OSError:
        is_there = False
    if not is_there:
        output = path.removesuffix(".journal").removesuffix(".part")
        raise UserError(
            f"cannot write {output}: another {command} is writing this file"
        )
