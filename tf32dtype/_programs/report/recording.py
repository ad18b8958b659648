"""Record the output and the files of a program, as far as Python sees them."""

from __future__ import annotations

import io
import os
import stat
import sys
from typing import Any

_MOST = 64 << 20  # bytes of output that are kept
_at_work: list[Recording] = []
_is_hooked = False


class Recording:
    """A copy of standard output, and the files that were opened to write.

    Streams are replaced by ones of the same descriptors. The recording has no output of
    child processes and of C code.

    Attributes
    ----------
    reads_input : bool
        Whether standard input was read.
    opened : set of str
        Absolute paths of the files that were opened to write.
    """

    def __init__(self) -> None:
        self.reads_input = False
        self.opened: set[str] = set()
        self._bytes: list[bytes] = []
        self._size = 0
        self._originals = sys.stdout, sys.stdin
        self._encoding = "utf-8"
        self._is_complete = False
        self._stream: io.TextIOWrapper | None = None

    def start(self) -> None:
        """Begin to record."""
        global _is_hooked
        if not _is_hooked:
            _is_hooked = True
            sys.addaudithook(_hook)
        _at_work.append(self)
        out, into = self._originals
        if (fd := _descriptor(out)) is not None:
            writer: Any = _Writer(self, fd)
            if isinstance(out.buffer, io.BufferedWriter):  # not with python -u
                writer = io.BufferedWriter(writer)
            self._encoding, self._is_complete = out.encoding, True
            self._stream = _wrapped(writer, out)
            sys.stdout = sys.__stdout__ = self._stream  # type: ignore[misc]
        fd = _descriptor(into)
        if fd is not None and _is_pipe_or_file(fd):
            reader = io.BufferedReader(_Reader(self, fd))
            sys.stdin = sys.__stdin__ = _wrapped(reader, into)  # type: ignore[misc]

    def stop(self) -> None:
        """Stop to record; streams stay, as the program may have kept them."""
        try:
            # Record the output that is still in buffers. The program may have replaced
            # the stream by any object, which may hold output for the stream.
            sys.stdout.flush()
            if self._stream is not None:
                self._stream.flush()
        except Exception:
            self._is_complete = False
        finally:
            _at_work.remove(self)

    @property
    def printed(self) -> str | None:
        """The printed text; None if it is not known."""
        if not self._is_complete or self._size > _MOST:
            return None
        text = b"".join(self._bytes).decode(self._encoding, "replace")
        return text.replace("\r\n", "\n")

    def take(self, data: bytes) -> None:
        """Add output."""
        self._size += len(data)
        if self._size <= _MOST:
            self._bytes.append(data)


class _Writer(io.FileIO):
    def __init__(self, recording: Recording, fd: int) -> None:
        super().__init__(fd, "w", closefd=False)
        self._recording = recording

    def write(self, data: Any) -> int:
        count = super().write(data)
        if count and self._recording in _at_work:
            self._recording.take(bytes(memoryview(data)[:count]))
        return count


class _Reader(io.FileIO):
    def __init__(self, recording: Recording, fd: int) -> None:
        super().__init__(fd, "r", closefd=False)
        self._recording = recording

    def readinto(self, buffer: Any) -> int:
        self._recording.reads_input = True
        return super().readinto(buffer)

    def readall(self) -> bytes:
        self._recording.reads_input = True
        return super().readall()


def _descriptor(stream: Any) -> int | None:
    """Return the descriptor of one of Python's own buffered streams; None of others."""
    if type(stream) is not io.TextIOWrapper or stream.closed:
        return None
    raw = getattr(stream.buffer, "raw", stream.buffer)
    return raw.fileno() if type(raw) is io.FileIO else None


def _wrapped(buffer: Any, like: Any) -> io.TextIOWrapper:
    stream = io.TextIOWrapper(
        buffer,
        like.encoding,
        like.errors,
        newline="\n" if like.writable() else None,
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )
    getattr(buffer, "raw", buffer).name = like.name
    stream.mode = like.mode  # type: ignore[misc]
    return stream


def _is_pipe_or_file(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _at_work:
        return
    if event == "builtins.input":
        _at_work[-1].reads_input = True
    elif event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        if writes and isinstance(path, str | bytes):
            _at_work[-1].opened.add(os.path.abspath(os.fsdecode(path)))
