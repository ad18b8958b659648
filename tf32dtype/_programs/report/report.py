"""A finished report: measurements and verdicts of all call sites, and its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TextIO

from ..._base.errors import UserError
from ..._base.whole_files import write_whole
from ..._base.wording import brief
from .advice import Advice, CallSiteReport, advise
from .arithmetic import Arithmetic
from .call_sites import NotReached, Run
from .culprits import LineTrials, try_lines_of_function, try_lines_of_program
from .figures import measure
from .html import to_fragment, to_html
from .json_report import to_json
from .options import ReportOptions
from .output import check_folder
from .program_runs import ProgramRuns
from .table import print_report
from .trial import Outcome, try_function, try_program
from .verdict import judge

_LEAST_SECONDS = 0.5  # to measure in, however short the run
_SHARE = 0.5  # of the run's time, to measure in


class Report:
    """The losses of a run in other precisions, by call site.

    Parameters
    ----------
    run : Run
        The run that a collector watched.
    options : ReportOptions
        The ways to measure, and the target.
    ending : str
        How the program ended if not well: "raised ValueError: ...".
    advance : callable
        Called after each sample; `count` returns how many samples there are.

    Attributes
    ----------
    run : Run
        As given.
    call_sites : tuple of CallSiteReport
        Call site, figures and verdict of each, the one with the most multiply-adds
        first.
    trial : Outcome or None
        The trial of the program, if there was one.
    arithmetic : Arithmetic or None
        The effects of rounding NumPy's arithmetic, if it was rounded.
    lines : LineTrials or None
        The trials of the program's lines in the format of the arithmetic, if any.
    """

    def __init__(
        self,
        run: Run,
        options: ReportOptions,
        ending: str = "",
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self.run = run
        self.ending = ending
        self.target_db = options.target_db
        self.exact = options.exact
        self._options = options
        self.named = options.named
        seconds = None if options.exact else max(_LEAST_SECONDS, _SHARE * run.seconds)
        sites = sorted(run.call_sites, key=lambda site: -site.multiply_adds)
        figures = measure(sites, options.ways, seconds, advance)
        self.call_sites = tuple(
            CallSiteReport(site, found, judge(site, found, self.target_db, self.named))
            for site, found in zip(sites, figures, strict=True)
        )
        self.trial: Outcome | None = None
        self.lines: LineTrials | None = None
        self.arithmetic: Arithmetic | None = None
        if options.arithmetic is not None:
            self.arithmetic = Arithmetic.last(options.arithmetic)

    def try_program(
        self,
        runs: ProgramRuns,
        tell: Callable[[str], None] = lambda line: None,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        """Run a program again: in the advised precisions, or line by line in a format.

        Parameters
        ----------
        runs : ProgramRuns
            The program, which it has watched.
        tell : callable
            Given a line for the user before the program runs.
        advance : callable
            Called after each run of the program in a format.
        """
        sites, seconds, options = self.call_sites, self.run.seconds, self._options
        if self.arithmetic is not None:
            self.lines = try_lines_of_program(
                runs, self.arithmetic.call_sites, sites, seconds, options, tell, advance
            )
        elif sites:
            self.trial = try_program(runs, sites, seconds, options, tell)

    def try_function(self, function: Callable[[], Any]) -> None:
        """Call a function again: as `try_program`."""
        sites, options = self.call_sites, self._options
        if self.arithmetic is not None:
            self.lines = try_lines_of_function(
                function, self.arithmetic.call_sites, sites, options
            )
        else:
            self.trial = try_function(function, sites, options)

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The advice."""
        tried = self.trial.advice(self.target_db) if self.trial else None
        products = advise(self.run, self.call_sites, self.target_db, tried)
        if self.arithmetic is None:
            return products
        lines = self.lines.advice if self.lines else ()
        return (
            *lines,
            *(products if self.call_sites else ()),
            *self.arithmetic.advice,
        )

    @property
    def keeps_results(self) -> bool:
        """Whether a trial has shown that the program bears the advised precisions."""
        return self.trial is not None and self.trial.keeps(self.target_db)

    @property
    def not_reached(self) -> tuple[NotReached, ...]:
        """The work that was not reached."""
        return self.run.not_reached

    def print(self, stream: TextIO | None = None) -> None:
        """Write a table and the advice to a stream; None: standard output."""
        print_report(self, stream)

    def to_html(self) -> str:
        """Return the report as one HTML page that needs no network."""
        return to_html(self)

    def to_fragment(self) -> str:
        """Return the table and the advice in HTML, for a notebook."""
        return to_fragment(self)

    def to_json(self) -> str:
        """Return the report as strict JSON; Inf and NaN are strings."""
        return to_json(self)

    def save(self, path: str) -> None:
        """Write a file.

        Parameters
        ----------
        path : str or path
            Ends in ".html" or ".json".

        Raises
        ------
        ValueError
            For another ending, and a folder that does not exist.
        OSError
            If it cannot be written; the file is as it was.
        """
        text = str(path)
        make = {".html": self.to_html, ".json": self.to_json}.get(text[-5:].lower())
        if make is None:
            raise UserError(f"path must end in .html or .json; got {brief(text)}")
        check_folder(text)
        write_whole(text, make())


def count(run: Run) -> int:
    """Return how many samples a run has."""
    return sum(len(site.samples) for site in run.call_sites)
