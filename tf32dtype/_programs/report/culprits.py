"""The lines that change a program's results in a format, found by trials.

A trial computes in the format in one line, in a group of lines, or in all others. The
worst lines by the measurements are tried one by one. The others are tried together, and
by halves as long as they change the results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ..._matmul.precisions import precision_of_format
from ..arithmetic import arithmetic
from ..context import matmul_precision
from ..plan_lines import Line, folders
from ..plans import NONE, Plan, PlannedCallSite, plan_text
from ..tune.checks import CheckError
from ..tune.items import line_of
from ..tune.trials import OutOfTime, text_files
from ..tune.tune import LONGER, SECONDS
from .advice import Advice, CallSiteReport
from .arithmetic import ArithmeticCallSite
from .call_sites import Frame
from .changes import values_of
from .naming import at, joined, kind_and_message, numbered
from .options import ReportOptions
from .program_runs import ProgramRuns
from .trial import Outcome, compared, unchanged_numbers, unchanged_values

_ONE_BY_ONE = 5  # lines
MOST_RUNS = 32
_NAMED = 3  # lines that the advice names

#: Runs plans, and compares their results with those of the unchanged program.
Attempt = Callable[[Sequence[Plan]], list[Outcome]]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class LineTrial:
    """The effect of a line on the results."""

    line: Frame
    #: the results if only this line computes in the format
    only: Outcome
    #: the results if all other lines do
    without: Outcome


@dataclass
class LineTrials:
    """The trials of a program's lines."""

    format: str
    target_db: float
    #: the results if all lines compute in the format
    together: Outcome = field(default_factory=Outcome)
    #: the largest change first
    lines: list[LineTrial] = field(default_factory=list)
    #: lines that keep the results together
    harmless: int = 0
    #: lines that were not tried
    untried: int = 0

    @property
    def keeps(self) -> bool:
        """Whether the results stay within the target if all lines use the format."""
        return self.together.keeps(self.target_db)

    @property
    def advice(self) -> Iterator[Advice]:
        """The lines for the report."""
        if self.together.why:
            text = f"No trial of the program: {self.together.why}"
            yield Advice("program_unknown", text)
            return
        text = f"The program: with all lines in {self.format} {self.together.effect}"
        if self.keeps:
            yield Advice("program", text)
            return
        yield Advice("program_changes", text)
        blamed = [x for x in self.lines if not x.only.keeps(self.target_db)]
        for one in blamed[:_NAMED]:
            text = (
                f"With only {at(one.line)} in {self.format} {one.only.effect}; with all"
                f" other lines {one.without.effect}"
            )
            yield Advice("line_changes", text)
        if more := blamed[_NAMED:]:
            names = joined([at(one.line) for one in more])
            yield Advice("line_changes", f"{names} change the results too")
        if not blamed and not self.untried:
            text = "No line changes the results by itself: the errors of all add up"
            yield Advice("line_changes", text)
        if self.untried:
            text = f"Not tried: {numbered(self.untried, 'line')}"
            yield Advice("program_unknown", text)

    def records(self) -> dict[str, Any]:
        """Return entries for JSON."""
        return {
            "together": self.together.record(self.target_db),
            "trials": [
                {
                    **one.line.record(),
                    "alone": one.only.largest,
                    "without": one.without.largest,
                    "outcomes": {
                        "alone": asdict(one.only),
                        "without": asdict(one.without),
                    },
                }
                for one in self.lines
            ],
            "harmless_lines": self.harmless,
            "untried_lines": self.untried,
        }


# -- the lines and their plans -------------------------------------------------------


class _Candidate(NamedTuple):
    frame: Frame
    #: as a plan names the user's line, or that of a library without a caller
    lines: tuple[Line | None, Line | None]


class _Plans(NamedTuple):
    """Makes plans that compute in a format in some lines."""

    format: str
    options: ReportOptions

    def only(self, lines: Iterable[_Candidate]) -> Plan:
        """Return a plan for these lines."""
        name, format = precision_of_format(self.format) or "", self.format
        sites = [PlannedCallSite(name, *x.lines, arithmetic=format) for x in lines]
        return self._plan(tuple(sites))

    def without(self, lines: Iterable[_Candidate]) -> Plan:
        """Return a plan for all lines but these."""
        return self._plan(
            tuple(PlannedCallSite(None, *x.lines, arithmetic=NONE) for x in lines),
            precision_of_format(self.format),
            self.format,
        )

    def _plan(
        self,
        sites: tuple[PlannedCallSite, ...],
        default: str | None = None,
        arithmetic: str | None = None,
    ) -> Plan:
        return Plan(
            sites,
            default,
            float64=self.options.float64,
            dots=True,
            arithmetic=arithmetic,
        )


def _candidates(
    sites: Sequence[ArithmeticCallSite], products: Sequence[CallSiteReport]
) -> tuple[list[_Candidate], int]:
    """Return the lines that a plan can name, the worst first, and how many others."""
    harm: dict[tuple[str, int], tuple[float, ...]] = {}
    frames: dict[tuple[str, int], tuple[Frame, bool]] = {}

    def take(user: Frame | None, library: Frame | None, *its: float) -> None:
        frame = user or library
        key = (frame.file, frame.line) if frame else ("", 0)
        harm[key] = max(its, harm.get(key, its))
        if frame:
            frames.setdefault(key, (frame, user is not None))

    for site in sites:
        results = max(site.results, 1)
        lost = site.overflows + site.nans + site.operand_overflows
        absorbed = site.absorbed_sums / max(site.sums, 1)
        take(site.user, site.library, lost / results, absorbed, site.inexact / results)
    for product, _, verdict in products:
        take(product.user, product.library, float(bool(verdict.ranges)), 0.0, 1.0)
    where = folders()
    found, others = [], 0
    for key in sorted(harm, key=lambda key: harm[key], reverse=True):
        frame, is_user = frames.get(key, (None, True))
        line = frame and line_of(frame.record(), (os.sep, os.sep), where)
        if frame is None or line is None:
            others += 1
            continue
        found.append(_Candidate(frame, (line, None) if is_user else (None, line)))
    return found, others


# -- the search ------------------------------------------------------------------------


def _search(
    trials: LineTrials, plans: _Plans, lines: list[_Candidate], attempt: Attempt
) -> None:
    """Try lines until those that change the results are known, or runs are used up."""
    trials.untried += len(lines)

    def one_by_one(line: _Candidate) -> None:
        only, without = attempt([plans.only([line]), plans.without([line])])
        trials.lines.append(LineTrial(line.frame, only, without))
        trials.lines.sort(key=lambda one: -one.only.largest)
        trials.untried -= 1

    for line in lines[:_ONE_BY_ONE]:
        one_by_one(line)
    groups = [lines[_ONE_BY_ONE:]]
    runs = 2 * len(lines[:_ONE_BY_ONE])
    while groups and runs < MOST_RUNS:
        pair, groups = groups[:2], groups[2:]
        pair = [x for x in pair if x]
        large = [x for x in pair if len(x) > 1]
        for group in pair:
            if len(group) == 1:
                one_by_one(group[0])
                runs += 2
        outcomes = attempt([plans.only(x) for x in large]) if large else []
        runs += len(outcomes)
        for group, outcome in zip(large, outcomes, strict=True):
            if outcome.keeps(trials.target_db):
                trials.harmless += len(group)
                trials.untried -= len(group)
            else:
                middle = (len(group) + 1) // 2
                groups += [group[:middle], group[middle:]]


def _try_lines(
    trials: LineTrials,
    options: ReportOptions,
    candidates: tuple[list[_Candidate], int],
    attempt: Attempt,
) -> None:
    plans = _Plans(trials.format, options)
    lines, trials.untried = candidates
    (trials.together,) = attempt([plans.without([])])
    if trials.keeps:
        trials.harmless = len(lines)
    else:
        _search(trials, plans, lines, attempt)


@contextmanager
def _kept(trials: LineTrials) -> Iterator[None]:
    """Keep what was found if the trials end early."""
    try:
        yield
    except CheckError as error:
        trials.together = Outcome(why=str(error))
    except KeyboardInterrupt:
        if not trials.lines:
            trials.together = Outcome(why="it was interrupted")
    except (OSError, OutOfTime, ValueError) as error:
        trials.together = Outcome(why=f"it cannot be made: {error}")


def try_lines_of_program(
    runs: ProgramRuns,
    sites: Sequence[ArithmeticCallSite],
    products: Sequence[CallSiteReport],
    seconds: float,
    options: ReportOptions,
    tell: Tell,
    advance: Callable[[], None] = lambda: None,
) -> LineTrials:
    """Run a program with some of its lines in a format.

    Parameters
    ----------
    runs : ProgramRuns
        The program, which it has watched while all lines computed in the format.
    sites, products : sequence
        The call sites of ufuncs and of matrix multiplications.
    seconds : float
        How long the program took.
    options : ReportOptions
        The format, and the target: numbers may change by this share.
    tell : callable
        Given a line for the user before the program runs.
    advance : callable
        Called after each run, `MOST_RUNS` times at most.
    """
    assert options.arithmetic is not None
    trials = LineTrials(options.arithmetic, options.target_db)
    limit = LONGER * seconds + SECONDS
    with _kept(trials):
        runs.prepare()
        candidates = _candidates(sites, products)
        tell(
            f"runs the program with some of {numbered(len(candidates[0]), 'line')} in"
            f" {options.arithmetic}, up to {MOST_RUNS} times, about"
            f" {max(seconds, 1):.0f} s each; Ctrl-C keeps what was found"
        )
        with runs.runner() as runner:
            first, again = (
                unchanged_numbers(runner.run([()], limit)[0]) for _ in range(2)
            )

            def attempt(plans: Sequence[Plan]) -> list[Outcome]:
                with text_files([plan_text(plan) for plan in plans], ".toml") as paths:
                    words = ["-m", "tf32dtype", "run", "--quiet", "--plan"]
                    found = runner.run([[*words, path] for path in paths], limit)
                for _ in found:
                    advance()
                return [
                    Outcome(failure=one.why)
                    if one.numbers is None
                    else Outcome(
                        **compared(first, again, one.numbers, options.target_db)
                    )
                    for one in found
                ]

            _try_lines(trials, options, candidates, attempt)
    return trials


def try_lines_of_function(
    function: Callable[[], Any],
    sites: Sequence[ArithmeticCallSite],
    products: Sequence[CallSiteReport],
    options: ReportOptions,
) -> LineTrials:
    """Call a function with some of its lines in a format: as `try_lines_of_program`."""
    assert options.arithmetic is not None
    trials = LineTrials(options.arithmetic, options.target_db)
    with _kept(trials):
        first, again = unchanged_values(function)

        def attempt(plans: Sequence[Plan]) -> list[Outcome]:
            found = []
            with text_files([plan_text(plan) for plan in plans], ".toml") as paths:
                for path in paths:
                    with matmul_precision(plan=path), arithmetic(plan=path):
                        try:
                            other = values_of(function())
                        except Exception as error:
                            found.append(Outcome(failure=kind_and_message(error)))
                            continue
                    found.append(
                        Outcome(**compared(first, again, other, options.target_db))
                    )
            return found

        _try_lines(trials, options, _candidates(sites, products), attempt)
    return trials
