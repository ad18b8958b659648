"""The program once more, in the precisions that its report advises."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ... import _core
from ..._matmul.matmul import matmul
from ..._measures.ways import Way
from ..context import matmul_precision
from ..plan_lines import folders
from ..plans import Plan, PlannedCallSite, plan_text
from ..tune.checks import Check, CheckError
from ..tune.items import line_of
from ..tune.trials import LEFT_OUT, OutOfTime, Program, Runner, text_files
from ..tune.tune import LONGER, SECONDS
from .advice import Advice, CallSiteReport
from .call_sites import CallSite
from .changes import Change, Output, compare, has_numbers, read_output, values_of
from .naming import MULTIPLICATION, joined, numbered
from .recording import Recording
from .verdict import tolerance

_MOST_FILES, _MOST_BYTES = 5000, 512 << 20  # of a folder that is copied
_NO_NUMBERS = "there are no numbers to compare. Print or write some, or use --check"
_SIZE = 192  # of a product that is timed
_NAMED = 3  # parts of the output that a line names
_DOUBLE = ("float64", "complex128")


@dataclass(frozen=True)
class Outcome:
    """The evidence of a trial, or why there is none."""

    #: call sites that had another precision, and these precisions
    call_sites: int = 0
    precisions: tuple[str, ...] = ()
    #: the largest changes first
    changes: tuple[Change, ...] = ()
    #: numbers that change from run to run, which were left out
    noisy: int = 0
    #: how the program failed in these precisions; "" if it did not
    failure: str = ""
    #: why there was no trial, or it shows nothing
    why: str = ""

    @property
    def largest(self) -> float:
        """The largest change; Inf if the program failed."""
        return max([x.largest for x in self.changes], default=math.inf)

    def keeps(self, target_db: float) -> bool:
        """Whether the program's results stay within the target."""
        return not self.why and self.largest <= tolerance(target_db)

    def advice(self, target_db: float) -> Advice:
        """Return the line for the report."""
        if self.why:
            return Advice("program_unknown", f"No trial of the program: {self.why}")
        these = f"these {self.call_sites} call sites"
        if self.call_sites == 1:
            these = "this call site"
        text = f"The program: with {these} in {joined(self.precisions)} "
        if self.failure:
            text += f"it fails: {self.failure}"
        elif not self.largest:
            text += "its results do not change"
        else:
            text += "; ".join(x.text for x in self.changes[:_NAMED] if x.largest)
        if self.noisy:
            text += (
                f". Not compared: {numbered(self.noisy, 'number')}, other in each run"
            )
        if self.keeps(target_db):
            return Advice("program", text)
        return Advice(
            "program_changes",
            text + ". `tf32dtype tune` finds the precisions that keep the results",
        )

    def record(self, target_db: float) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "keeps_results": self.keeps(target_db)}


@dataclass(frozen=True)
class Lowered:
    """The call sites that a trial lowers."""

    plan: Plan
    ways: tuple[Way, ...]
    sites: tuple[CallSite, ...]

    @property
    def calls(self) -> int:
        """How many products the watched run made there."""
        return sum(site.calls for site in self.sites)

    def outcome(self, **found: Any) -> Outcome:
        """Return an outcome of these call sites."""
        names = tuple(way.name for way in self.ways)
        return Outcome(len(self.plan.call_sites), names, **found)


def lowered(reports: Sequence[CallSiteReport], dots: bool) -> Lowered:
    """Return the call sites that have an advised precision, and a plan with these.

    Several routines and dtypes of a line, or of its operand, have one precision, that
    with the most bits; the line stays as it is if one of them needs its own dtype.

    Raises
    ------
    CheckError
        If there is none.
    """
    where = folders()
    rows: dict[Any, list[tuple[CallSite, Way | None]]] = {}
    for site, figures, verdict in reports:
        frames = [x and x._asdict() for x in (site.user, site.library)]
        lines = [line_of(frame, (os.sep, os.sep), where) for frame in frames]
        if any(lines) and all(
            x is None or y for x, y in zip(frames, lines, strict=True)
        ):
            errors = figures.errors.get(verdict.way or "")
            way = errors.way if errors else None
            if way and way.name == "f32" and site.dtype not in _DOUBLE:
                way = None
            rows.setdefault((*lines, site.operand), []).append((site, way))
    planned, ways, sites = [], {}, []
    for (user, library, operand), those in rows.items():
        found = [way for _, way in those if way and way.precision]
        if len(found) < len(those):
            continue
        way = max(found, key=lambda way: (way.name == "f32", way.bits))
        planned.append(PlannedCallSite(way.name, user, library, operand=operand))
        ways[way.name] = way
        sites += [site for site, _ in those]
    if not planned:
        raise CheckError(_nothing(reports))
    dtypes = {site.dtype for site in sites}
    plan = Plan(
        tuple(planned),
        float64=bool(dtypes & {*_DOUBLE}),
        complex64=any(x.startswith("complex") for x in dtypes),
        dots=dots,
    )
    return Lowered(plan, tuple(ways.values()), tuple(sites))


def _nothing(reports: Sequence[CallSiteReport]) -> str:
    if any(x.verdict.way and x.verdict.kind == "sufficient" for x in reports):
        return "it cannot run in these formats, or the source cannot be read"
    return "no call site bears a lower precision"


def estimated_seconds(found: Lowered, seconds: float) -> float:
    """Return about how long the program takes: its time, and that of the products."""
    x = np.ones((_SIZE, _SIZE), np.float32)
    slowest = 0.0
    for way in found.ways:
        assert way.precision is not None
        began = time.perf_counter()
        matmul(x, x, precision=way.precision.short)
        slowest = max(slowest, time.perf_counter() - began)
    adds = sum(site.multiply_adds for site in found.sites)
    return seconds + slowest * adds / _SIZE**3


# -- a program -------------------------------------------------------------------


class ProgramTrial:
    """A trial of a program that the command runs.

    Parameters
    ----------
    words : sequence of str
        The program as Python's command line has it, and its arguments.
    check : str, optional
        Where the numbers to compare are, as `tf32dtype tune` has it.
    dots : bool
        Whether dot products are lowered too.

    Raises
    ------
    UserError
        For a check that is not one.
    """

    def __init__(
        self, words: Sequence[str], check: str | None = None, dots: bool = False
    ) -> None:
        self._words, self._dots = tuple(words), dots
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

    def run(
        self,
        reports: Sequence[CallSiteReport],
        seconds: float,
        target_db: float,
        tell: Callable[[str], None] = lambda line: None,
    ) -> Outcome:
        """Run the program in the advised precisions and, at the same time, unchanged.

        Parameters
        ----------
        reports : sequence of CallSiteReport
            The call sites with their verdicts.
        seconds : float
            How long the program took.
        target_db : float
            The required SNR: numbers may change by this share.
        tell : callable
            Given a line for the user before the program runs.
        """
        try:
            return self._run(reports, seconds, target_db, tell)
        except CheckError as error:
            return Outcome(why=str(error))
        except KeyboardInterrupt:
            return Outcome(why="it was interrupted")
        except (OSError, OutOfTime, ValueError) as error:
            return Outcome(why=f"it cannot be made: {error}")

    def _run(
        self,
        reports: Sequence[CallSiteReport],
        seconds: float,
        target_db: float,
        tell: Callable[[str], None],
    ) -> Outcome:
        found = lowered(reports, self._dots)
        first = self._first()
        expected = estimated_seconds(found, seconds)
        tell(
            f"runs the program again in {joined([way.name for way in found.ways])}"
            f", about {max(expected, 1):.0f} s; Ctrl-C leaves this out"
        )
        program = Program(self._words, self._folder, self._environment, self._left_out)
        runner = Runner(program, self, math.inf)
        with text_files([plan_text(found.plan)], ".toml") as (plan,):
            summary = plan + ".json"
            words = ["-m", "tf32dtype", "run", "--quiet", "--json", summary]
            limit = LONGER * expected + SECONDS
            with self._kept_files():
                trials = runner.run([(), [*words, "--plan", plan]], limit)
            calls = _emulated(summary)
        again, other = trials
        if again.numbers is None:
            raise CheckError(
                f"the unchanged program fails if it runs again: {again.why}"
            )
        if other.numbers is None:
            return found.outcome(failure=other.why)
        if calls < found.calls:
            raise CheckError(
                f"it made {calls} of {numbered(found.calls, MULTIPLICATION)} in these"
                " precisions"
            )
        return _compared(
            found, first or again.numbers, again.numbers, other.numbers, target_db
        )

    def _first(self) -> Output | None:
        """Return the output of the watched run; None if it was not seen.

        Raises
        ------
        CheckError
            If the program should not run again, or there is nothing to compare.
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
        if recording.printed is None:
            return None
        first = self.numbers(self._folder, recording.printed)
        if not has_numbers(first):
            raise CheckError(_NO_NUMBERS)
        return first

    @contextmanager
    def _kept_files(self) -> Iterator[None]:
        """Restore the files of the first run if another one changes them.

        Raises
        ------
        CheckError
            If one did, by an absolute path.
        """
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
            return {"the checked numbers": self._check.numbers(folder, output)}
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


def _emulated(path: str) -> int:
    try:
        with open(path, encoding="utf-8") as file:
            return int(json.load(file)["emulated"]["calls"])
    except OSError:  # the program ended before its summary
        return 0


def _compared(
    found: Lowered, first: Output, again: Output, other: Output, target_db: float
) -> Outcome:
    if not has_numbers(first):
        raise CheckError(_NO_NUMBERS)
    changes, noisy = compare(first, again, other, tolerance(target_db))
    if not changes:
        raise CheckError("all of its numbers differ from run to run, or are times")
    return found.outcome(changes=changes, noisy=noisy)


# -- a function ------------------------------------------------------------------


def try_function(
    function: Callable[[], Any],
    reports: Sequence[CallSiteReport],
    target_db: float,
    dots: bool,
) -> Outcome:
    """Call a function twice unchanged, and once in the advised precisions."""
    try:
        found = lowered(reports, dots)
        with matmul_precision(None):
            first, again = values_of(function()), values_of(function())
        if not has_numbers(first):
            raise CheckError(_NO_NUMBERS)
        before = _emulated_calls()
        with (
            text_files([plan_text(found.plan)], ".toml") as (path,),
            matmul_precision(plan=path),
        ):
            try:
                other = values_of(function())
            except Exception as error:
                return found.outcome(failure=f"{type(error).__name__}: {error}")
        if _emulated_calls() == before:
            raise CheckError("the function makes none of these multiplications")
        return _compared(found, first, again, other, target_db)
    except CheckError as error:
        return Outcome(why=str(error))
    except KeyboardInterrupt:
        return Outcome(why="it was interrupted")


def _emulated_calls() -> int:
    return sum(row[3] for row in _core.blas_counts() if row[0] == "emulated")
