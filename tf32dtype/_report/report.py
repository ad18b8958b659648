"""A finished report: figures and verdicts of all places, and how to keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from .._measures import UserError
from .._whole_files import write_whole
from .._wording import brief
from .advice import Advice, PlaceReport, advise
from .arithmetic import Arithmetic
from .figures import measure
from .html import to_html
from .json_report import to_json
from .options import ReportOptions
from .output import check_folder
from .places import Elsewhere, Run
from .table import print_report
from .verdict import judge

_LEAST_SECONDS = 0.5  # to measure in, however short the run
_SHARE = 0.5  # of the run's time, to measure in


class Report:
    """What a run would lose in other precisions, and where.

    Parameters
    ----------
    run : Run
        What a collector saw.
    options : ReportOptions
        What to measure.
    ending : str
        How the program ended if not well: "raised ValueError: ...".
    advance : callable
        Called after each sample: `count` tells how many there are.

    Attributes
    ----------
    run : Run
        As given.
    places : tuple of PlaceReport
        place, figures and verdict of each place, what has the most multiply-adds first.
    advice : tuple of Advice
        What to do.
    arithmetic : Arithmetic or None
        What rounding NumPy's arithmetic did, if it was rounded.
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
        seconds = None if options.exact else max(_LEAST_SECONDS, _SHARE * run.seconds)
        places = sorted(run.places, key=lambda place: -place.multiply_adds)
        figures = measure(places, options.ways, seconds, advance)
        self.places = tuple(
            PlaceReport(place, found, judge(place, found, self.target_db))
            for place, found in zip(places, figures, strict=True)
        )
        self.advice: tuple[Advice, ...] = advise(run, self.places, self.target_db)
        self.arithmetic: Arithmetic | None = None
        if options.arithmetic is not None:
            self.arithmetic = Arithmetic.last(options.arithmetic)
            products = self.advice if places else ()
            self.advice = (*products, *self.arithmetic.advice)

    @property
    def elsewhere(self) -> tuple[Elsewhere, ...]:
        """What was not reached."""
        return self.run.elsewhere

    def print(self, stream: TextIO | None = None) -> None:
        """Write a table and the advice to a stream; None: standard output."""
        print_report(self, stream)

    def to_html(self) -> str:
        """One page that needs no network."""
        return to_html(self)

    def to_json(self) -> str:
        """Strict JSON; Inf and NaN are strings."""
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
            raise UserError(f"a report is saved as .html or .json, not {brief(text)}")
        check_folder(text)
        write_whole(text, make())


def count(run: Run) -> int:
    """How many samples there are to measure."""
    return sum(len(place.samples) for place in run.places)
