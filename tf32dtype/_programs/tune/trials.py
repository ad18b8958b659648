"""Runs of the program in fresh processes, and what their answers are."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from .checks import CheckError

#: The files that are not copied with the folder.
LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", "*.journal")


class Reader(Protocol):
    """Reads the answer of a run, as `checks.Check` does."""

    #: whether it reads files that the program writes
    needs_folder: bool

    def numbers(self, folder: str, output: str) -> Any:
        """Return the answer; raise CheckError if there is none."""


class OutOfTime(Exception):
    """The time limit is reached."""


@dataclass(frozen=True)
class Program:
    """A program and its arguments."""

    #: "script.py" or ("-m", "module"), and the program's own arguments
    words: tuple[str, ...]
    folder: str
    #: environment variables; None: those of this process
    environment: Mapping[str, str] | None = None
    #: files that are not copied with the folder, as shutil.copytree takes them
    left_out: Callable[[Any, list[str]], set[str]] = LEFT_OUT


@dataclass
class Trial:
    """A run's answer, or why it has none."""

    numbers: Any
    why: str
    seconds: float
    #: folder in which it ran, which may no longer exist
    folder: str = ""


class Runner:
    """Runs the program with words before it, as many at a time as are started.

    Parameters
    ----------
    program : Program
        The program.
    check : Reader
        The reader of the program's result.
    deadline : float
        The end of the time limit, by time.monotonic.
    """

    def __init__(self, program: Program, check: Reader, deadline: float) -> None:
        self.program, self.check, self.deadline = program, check, deadline
        #: number of runs
        self.count = 0

    def run(self, before: Sequence[Sequence[str]], limit: float) -> list[Trial]:
        """Run at the same time, once for each list of words before the program.

        Raises
        ------
        OutOfTime
            If the deadline passes; runs are ended.
        """
        with tempfile.TemporaryDirectory(prefix="tf32dtype-tune-") as room:
            runs: list[_Run] = []
            try:
                for number, words in enumerate(before):
                    if time.monotonic() >= self.deadline:
                        raise OutOfTime
                    self.count += 1
                    folder = self._folder(os.path.join(room, str(number)))
                    runs.append(_Run(words, self.program, folder, room, number))
                return [self._ended(run, limit) for run in runs]
            finally:
                for run in runs:
                    run.end()

    def _folder(self, path: str) -> str:
        if not self.check.needs_folder:
            return self.program.folder
        shutil.copytree(
            self.program.folder, path, symlinks=True, ignore=self.program.left_out
        )
        return path

    def _ended(self, run: _Run, limit: float) -> Trial:
        code = run.wait(min(self.deadline, run.began + limit))
        seconds = time.monotonic() - run.began
        if code is None:
            if time.monotonic() >= self.deadline:
                raise OutOfTime
            return Trial(None, f"the program ran longer than {seconds:.3g} s", seconds)
        output, errors = run.texts()
        if code:
            last = (errors.strip().splitlines() or [""])[-1][:200]
            return Trial(None, f"exit code {code}: {last}".rstrip(": "), seconds)
        try:
            numbers = self.check.numbers(run.folder, output)
            return Trial(numbers, "", seconds, run.folder)
        except CheckError as error:
            return Trial(None, str(error), seconds, run.folder)


class _Run:
    """A process that was started; its output goes to files, which never fill."""

    def __init__(
        self,
        before: Sequence[str],
        program: Program,
        folder: str,
        room: str,
        number: int,
    ) -> None:
        self.folder = folder
        self._names = [os.path.join(room, f"{number}.{x}") for x in ("out", "err")]
        self.began = time.monotonic()
        with open(self._names[0], "wb") as out, open(self._names[1], "wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, *before, *program.words],
                cwd=folder,
                env=program.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # so that its children end with it
            )

    def wait(self, until: float) -> int | None:
        try:
            return self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def texts(self) -> tuple[str, str]:
        texts = []
        for name in self._names:
            with open(name, encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
        return texts[0], texts[1]

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def text_files(texts: Sequence[str], suffix: str) -> Iterator[list[str]]:
    """Files that live as long as they are needed."""
    with tempfile.TemporaryDirectory(prefix="tf32dtype-tune-") as folder:
        paths = [os.path.join(folder, f"{i}{suffix}") for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        yield paths
