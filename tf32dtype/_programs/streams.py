"""Write messages after a program has ended, even if it closed its streams."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from .._base.whole_files import write_whole


def open_closed() -> None:
    """Open the standard streams that the process was started without.

    Otherwise a file that the command opens would get the number of such a stream, and
    then all that is printed. Writing to standard output fails; standard error is
    discarded.
    """
    for name, flags in (
        ("stdin", os.O_RDONLY),
        ("stdout", os.O_RDONLY),
        ("stderr", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            stream = open(os.open(os.devnull, flags), mode)  # noqa: SIM115
            setattr(sys, name, stream)


def is_open(stream: TextIO | None) -> bool:
    """Say whether a stream can be written.

    A program may close the stream or its descriptor, or detach it. Its contents are
    then already written.
    """
    try:
        if stream is None:
            return False
        stream.flush()
        os.fstat(stream.fileno())
    except io.UnsupportedOperation:  # it is in memory, as in a notebook
        return True
    except (OSError, ValueError):
        return False
    return True


def tell(stream: TextIO | None, write: Callable[[TextIO], None]) -> OSError | None:
    """Write to a stream of the process, and return the error if that fails.

    After a failure nothing more is written to the stream, so that Python's own end does
    not fail. A broken pipe is not returned.
    """
    if stream is None or not is_open(stream):
        return None
    try:
        write(stream)
        stream.flush()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            return error
    return None


def say(command: str, line: str, stream: TextIO | None = None) -> None:
    """Write a line to standard error or to the given stream."""
    text = f"tf32dtype {command}".rstrip() + f": {line}"
    tell(stream or sys.stderr, lambda stream: print(text, file=stream))


def complain(command: str, what: str, error: OSError) -> None:
    """Write a line to the original standard error, even if the program replaced it."""
    say(command, f"{what}: {error.strerror or error}", sys.__stderr__)


def flush_own() -> None:
    """Write the buffered output of the program before the command's own messages."""
    with suppress(Exception):  # the program may have put anything there
        sys.stdout.flush()


def keep(command: str, path: str | None, make: Callable[[], str]) -> bool:
    """Write an output file; if that fails, print a line and return False."""
    if path is None:
        return True
    flush_own()
    try:
        write_whole(path, make())
    except OSError as error:
        complain(command, path, error)
        return False
    return True
