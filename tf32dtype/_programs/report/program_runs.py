"""Runs of a program in copies of its folder, to compare what it prints and writes."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..tune.checks import Check, CheckError
from ..tune.trials import LEFT_OUT, Program, Runner
from .changes import Output, has_numbers, read_output
from .recording import Recording

_MOST_FILES, _MOST_BYTES = 5000, 512 << 20  # of a folder that is copied
NO_NUMBERS = "there are no numbers to compare. Print or write some, or use --check"


class ProgramRuns:
    """Runs of a program that the command has watched.

    Parameters
    ----------
    words : sequence of str
        The program as Python's command line has it, and its arguments.
    check : str, optional
        Where the numbers to compare are, as `tf32dtype tune` has it.
    Raises
    ------
    UserError
        For a check that is not one.
    """

    def __init__(self, words: Sequence[str], check: str | None = None) -> None:
        self._words = tuple(words)
        self._check = None if check is None else Check(check)
        self._folder = os.path.realpath(os.getcwd())
        self._environment = dict(os.environ)
        self._files = _scan(self._folder)
        self._recording = Recording()
        self._written: list[str] = []

    def start(self) -> None:
        """Begin to watch what the program prints and writes."""
        self._recording.start()

    def stop(self) -> None:
        """Stop to watch."""
        self._recording.stop()

    def prepare(self) -> None:
        """Find which files the watched run has written.

        Raises
        ------
        CheckError
            If the program should not run again.
        """
        recording, before = self._recording, self._files
        if before is None:
            raise CheckError(
                f"the folder has more than {_MOST_FILES} files or {_MOST_BYTES >> 20}"
                " MiB. Use `tf32dtype tune`"
            )
        if self._words[0] == "-" or recording.reads_input:
            raise CheckError("the program reads standard input")
        if outside := sorted(filter(self._is_outside, recording.opened)):
            raise CheckError(f"the program writes {outside[0]}, outside of its folder")
        after = _scan(self._folder) or {}
        self._written = [x for x, facts in after.items() if before.get(x) != facts]
        self._new = {os.path.join(self._folder, x) for x in after if x not in before}

    def first(self) -> Output | None:
        """Return the output of the watched run; None if it was not seen.

        Raises
        ------
        CheckError
            If there is nothing to compare.
        """
        if self._recording.printed is None:
            return None
        first = self.numbers(self._folder, self._recording.printed)
        if not has_numbers(first):
            raise CheckError(NO_NUMBERS)
        return first

    @contextmanager
    def runner(self) -> Iterator[Runner]:
        """Return what runs the program, after `prepare`.

        The files of the watched run are restored if another run changes them.

        Raises
        ------
        CheckError
            If a run changed some, by an absolute path.
        """
        program = Program(self._words, self._folder, self._environment, self._left_out)
        with self._kept_files():
            yield Runner(program, self, math.inf)

    @contextmanager
    def _kept_files(self) -> Iterator[None]:
        paths = [os.path.join(self._folder, name) for name in self._written]
        changed = []
        with tempfile.TemporaryDirectory(prefix="tf32dtype-report-") as room:
            copies = [os.path.join(room, str(i)) for i in range(len(paths))]
            for path, copy in zip(paths, copies, strict=True):
                shutil.copy2(path, copy, follow_symlinks=False)
            try:
                yield
            finally:
                for path, copy in zip(paths, copies, strict=True):
                    if _facts(path) != _facts(copy):
                        changed.append(path)
                        shutil.copy2(copy, path, follow_symlinks=False)
        if changed:
            raise CheckError(f"the program writes {changed[0]} by an absolute path")

    def _is_outside(self, path: str) -> bool:
        path = os.path.realpath(path)
        inside = (self._folder, "/dev", "/proc", os.path.expanduser("~/.cache"))
        ours = any(path.startswith(os.path.join(x, "")) for x in inside)
        return not ours and os.path.exists(path)

    def _left_out(self, folder: Any, names: list[str]) -> set[str]:
        """Leave out what is not copied, and the files that the program has made."""
        made = {x for x in names if os.path.join(folder, x) in self._new}
        return {*LEFT_OUT(folder, names), *_skipped(folder, names), *made}

    # The interface of a reader of a run's output.

    needs_folder = True

    def numbers(self, folder: str, output: str) -> Output:
        """Return what can be compared."""
        if self._check is not None:
            found = self._check.numbers(folder, output)
            if len(found) == 1:
                return {"the checked numbers": next(iter(found.values()))}
            return {f"checked {name}": x for name, x in found.items()}
        return read_output(folder, self._written, output)


def _scan(folder: str) -> dict[str, tuple[int, int]] | None:
    """Return the size and time of each file by its path; None if there are too many."""
    found: dict[str, tuple[int, int]] = {}
    total = 0
    for parent, folders_below, names in os.walk(folder):
        skipped = _skipped(parent, folders_below)
        folders_below[:] = [x for x in folders_below if x not in skipped]
        for name in names:
            path = os.path.join(parent, name)
            facts = _facts(path)
            if facts is None:
                continue
            total += facts[0]
            if len(found) >= _MOST_FILES or total > _MOST_BYTES:
                return None
            found[os.path.relpath(path, folder)] = facts
    return found


def _facts(path: str) -> tuple[int, int] | None:
    """Return the size and time of a file; None if there is none."""
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns


def _skipped(parent: Any, names: Iterable[str]) -> set[str]:
    """Folders that a program does not compute with."""
    return {
        name
        for name in names
        if name in (".git", "__pycache__", "node_modules")
        or os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))
    }
