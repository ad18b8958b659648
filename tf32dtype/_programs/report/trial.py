"""The program once more, in the precisions that its report advises."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ... import _core
from ..._matmul.matmul import matmul
from ..._measures.ways import Way
from ..context import matmul_precision
from ..plan_lines import folders
from ..plans import Plan, PlannedCallSite, plan_text
from ..tune.checks import CheckError
from ..tune.items import line_of
from ..tune.trials import OutOfTime, Trial, text_files
from ..tune.tune import LONGER, SECONDS
from .advice import Advice, CallSiteReport
from .call_sites import CallSite
from .changes import Change, Output, compare, has_numbers, values_of
from .naming import MULTIPLICATION, joined, kind_and_message, numbered
from .options import ReportOptions
from .program_runs import NO_NUMBERS, ProgramRuns
from .verdict import tolerance

_SIZE = 192  # of a product that is timed
_NAMED = 3  # parts of the output that a line names
_DOUBLE = ("float64", "complex128")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trial, or the reason why there is none."""

    #: call sites that had another precision, and these precisions
    call_sites: int = 0
    precisions: tuple[str, ...] = ()
    #: the largest changes first
    changes: tuple[Change, ...] = ()
    #: numbers that change from run to run, which were left out
    noisy: int = 0
    #: how the program failed in these precisions; "" if it did not
    failure: str = ""
    #: reason why there was no trial, or why it shows nothing
    why: str = ""

    @property
    def largest(self) -> float:
        """The largest change; Inf if the program failed."""
        return max([x.largest for x in self.changes], default=math.inf)

    def keeps(self, target_db: float) -> bool:
        """Return whether the program's results stay within the target."""
        return not self.why and self.largest <= tolerance(target_db)

    @property
    def effect(self) -> str:
        """The effect on the results, in words."""
        if self.failure:
            text = f"it fails: {self.failure}"
        elif not self.largest:
            text = "its results do not change"
        else:
            text = "; ".join(x.text for x in self.changes[:_NAMED] if x.largest)
        if self.noisy:
            noisy = numbered(self.noisy, "number")
            text += f". Not compared: {noisy} that change in each run"
        return text

    def advice(self, target_db: float) -> Advice:
        """Return the line for the report."""
        if self.why:
            return Advice("program_unknown", f"No trial of the program: {self.why}")
        these = f"these {self.call_sites} call sites"
        if self.call_sites == 1:
            these = "this call site"
        text = f"The program: with {these} in {joined(self.precisions)} {self.effect}"
        if self.keeps(target_db):
            return Advice("program", text)
        return Advice(
            "program_changes",
            text + ". `tf32dtype tune` finds the precisions that keep the results",
        )

    def record(self, target_db: float) -> dict[str, Any]:
        """Return a record for JSON."""
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
        frames = [x and x.record() for x in (site.user, site.library)]
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
    sites = [one.call_site for one in reports]
    if any(x and x.cell is not None for s in sites for x in (s.user, s.library)):
        return "its call sites are in a notebook. Move the code into a file"
    if any(x.verdict.way and x.verdict.kind == "sufficient" for x in reports):
        return "it cannot run in these formats, or the source cannot be read"
    return "no call site allows a lower precision"


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


def try_program(
    runs: ProgramRuns,
    reports: Sequence[CallSiteReport],
    seconds: float,
    options: ReportOptions,
    tell: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Run a program in the advised precisions and, at the same time, unchanged.

    Parameters
    ----------
    runs : ProgramRuns
        The program, which it has watched.
    reports : sequence of CallSiteReport
        The call sites with their verdicts.
    seconds : float
        How long the program took.
    options : ReportOptions
        The target: numbers may change by this share.
    tell : callable
        Given a line for the user before the program runs.
    """
    try:
        return _try_program(runs, reports, seconds, options, tell)
    except CheckError as error:
        return Outcome(why=str(error))
    except KeyboardInterrupt:
        return Outcome(why="it was interrupted")
    except (OSError, OutOfTime, ValueError) as error:
        return Outcome(why=f"it cannot be made: {error}")


def _try_program(
    runs: ProgramRuns,
    reports: Sequence[CallSiteReport],
    seconds: float,
    options: ReportOptions,
    tell: Callable[[str], None],
) -> Outcome:
    found = lowered(reports, options.collector.dots)
    runs.prepare()
    first = runs.first()
    expected = estimated_seconds(found, seconds)
    tell(
        f"runs the program again in {joined([way.name for way in found.ways])}"
        f", about {max(expected, 1):.0f} s; Ctrl-C leaves this out"
    )
    with text_files([plan_text(found.plan)], ".toml") as (plan,):
        summary = plan + ".json"
        words = ["-m", "tf32dtype", "run", "--quiet", "--json", summary]
        limit = LONGER * expected + SECONDS
        with runs.runner() as runner:
            again, other = runner.run([(), [*words, "--plan", plan]], limit)
        calls = _emulated(summary)
    unchanged = unchanged_numbers(again)
    if other.numbers is None:
        return found.outcome(failure=other.why)
    if calls < found.calls:
        raise CheckError(
            f"it made {calls} of {numbered(found.calls, MULTIPLICATION)} in these"
            " precisions"
        )
    return found.outcome(
        **compared(first or unchanged, unchanged, other.numbers, options.target_db)
    )


def _emulated(path: str) -> int:
    try:
        with open(path, encoding="utf-8") as file:
            return int(json.load(file)["emulated"]["calls"])
    except OSError:  # the program ended before its summary
        return 0


def unchanged_numbers(trial: Trial) -> Output:
    """Return the output of a run of the unchanged program.

    Raises
    ------
    CheckError
        If it failed.
    """
    if trial.numbers is None:
        raise CheckError(f"the unchanged program fails if it runs again: {trial.why}")
    numbers: Output = trial.numbers
    return numbers


def compared(
    first: Output, again: Output, other: Output, target_db: float
) -> dict[str, Any]:
    """Return the changes of an output, as fields of an outcome.

    Raises
    ------
    CheckError
        If there is nothing to compare.
    """
    if not has_numbers(first):
        raise CheckError(NO_NUMBERS)
    changes, noisy = compare(first, again, other, tolerance(target_db))
    if not changes:
        raise CheckError("all of its numbers differ from run to run, or are times")
    return {"changes": changes, "noisy": noisy}


# -- a function ------------------------------------------------------------------


def try_function(
    function: Callable[[], Any],
    reports: Sequence[CallSiteReport],
    options: ReportOptions,
) -> Outcome:
    """Call a function twice unchanged, and once in the advised precisions."""
    try:
        found = lowered(reports, options.collector.dots)
        first, again = unchanged_values(function)
        before = _emulated_calls()
        with (
            text_files([plan_text(found.plan)], ".toml") as (path,),
            matmul_precision(plan=path),
        ):
            try:
                other = values_of(function())
            except Exception as error:
                return found.outcome(failure=kind_and_message(error))
        if _emulated_calls() == before:
            raise CheckError("the function makes none of these multiplications")
        return found.outcome(**compared(first, again, other, options.target_db))
    except CheckError as error:
        return Outcome(why=str(error))
    except KeyboardInterrupt:
        return Outcome(why="it was interrupted")


def unchanged_values(function: Callable[[], Any]) -> tuple[Output, Output]:
    """Call a function twice, and return the numbers of its results.

    Raises
    ------
    CheckError
        If it fails, or there are no numbers.
    """
    with matmul_precision(None):
        try:
            first, again = values_of(function()), values_of(function())
        except Exception as error:
            raise CheckError(f"the function raised {kind_and_message(error)}") from None
    if not has_numbers(first):
        raise CheckError(NO_NUMBERS)
    return first, again


def _emulated_calls() -> int:
    return sum(row[3] for row in _core.blas_counts() if row[0] == "emulated")
