"""The tuner: reference, report, search, and a last run of the plan it found."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base.errors import UserError
from ..._base.version import __version__
from ..._base.whole_files import write_whole
from .checks import Check, Numbers, digest, distance
from .items import Items
from .journal import SUFFIX, Trials
from .search import Levels, Search
from .subjects import Subject
from .trials import OutOfTime, Program, Runner, Trial, text_files

#: The time limit of a trial: a multiple of the reference's time, and some seconds.
LONGER, SECONDS = 10.0, 10.0
#: The share of the tolerance by which two unchanged runs may differ.
NOISE = 0.1


@dataclass(frozen=True)
class TuneOptions:
    """The program to tune, the check of its result, and the search's options."""

    program: Program
    #: the program's file; None: a module
    script: str | None
    check: Check
    tolerance: float
    #: the tolerance is absolute, not a share of the result's largest magnitude
    absolute: bool
    #: the plan's file
    out: str
    #: what is tuned
    subject: Subject
    jobs: int = 1
    #: seconds
    time_limit: float = float("inf")
    resumes: bool = False


@dataclass
class Tuned:
    """The plan that was found, as the precision of each item."""

    items: Items[Any]
    #: the precision of each item; None: unchanged
    precisions: list[str | None]
    #: the distance of the plan's result from the reference
    distance: float
    #: programs that were started
    runs: int
    #: no single step lowers further, and the plan was run once more
    final: bool


@dataclass
class _Outcome:
    """The outcome of a plan's trial."""

    distance: float
    digest: str
    why: str


class Tuner:
    """Finds a plan.

    Parameters
    ----------
    options : TuneOptions
        The program, the check and the options.
    advance : callable
        A function that is called after each trial.
    tell : callable
        A function that is called with lines for the user.
    """

    def __init__(
        self,
        options: TuneOptions,
        advance: Callable[[], None] = lambda: None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.options = options
        self._advance, self._tell = advance, tell
        self._runner = Runner(
            options.program, options.check, time.monotonic() + options.time_limit
        )
        self._journal = Trials(options.out + SUFFIX, options.resumes, tell)
        self._base = self._hash(
            options.program.words,
            options.check.text,
            options.absolute,
            str(options.subject),
            [platform.python_version(), np.__version__, __version__],
            _contents([options.script] if options.script else []),
        )
        self._reference: Numbers
        self._limit = float("inf")
        self._items: Items[Any] = Items()

    def run(self) -> Tuned:
        """Search, and write the plan.

        Raises
        ------
        UserError
            If the program fails unchanged, its answer is not deterministic, or it has
            nothing to tune. No plan is written.
        OutOfTime, KeyboardInterrupt
            Before there is any plan.
        """
        try:
            return self._run()
        finally:
            self._journal.close()

    def _run(self) -> Tuned:
        self._find_reference()
        self._find_items()
        options, items = self.options, self._items.items
        names = options.subject.precisions
        order = [
            sorted(
                range(len(items)),
                key=lambda i, name=name: (  # type: ignore[misc]
                    -items[i].snr.get(name, -np.inf),
                    -items[i].work,
                ),
            )
            for name in names
        ]
        search = Search(order, len(items), self._attempt)
        final = True
        try:
            search.run()
            outcome = self._verify(search.best)
        except (OutOfTime, KeyboardInterrupt):
            final = False
            outcome = self._known(search.best) or _Outcome(
                0.0, digest(self._reference), ""
            )
        precisions = [self._name(level) for level in search.best]
        tuned = Tuned(
            self._items, precisions, outcome.distance, self._runner.count, final
        )
        facts: dict[str, str | float | bool] = {
            "program": " ".join(options.program.words),
            "check": options.check.text,
            "tolerance": options.tolerance,
            "absolute": options.absolute,
            "distance": outcome.distance,
            "answer": outcome.digest,
            "final": final,
        }
        write_whole(options.out, self._text(search.best, facts))
        return tuned

    # -- before the search ----------------------------------------------------------

    def _find_reference(self) -> None:
        first = self._unchanged()
        assert first.numbers is not None
        key = "reference " + self._base
        record = {"answer": digest(first.numbers)}
        self._reference = first.numbers
        self._limit = LONGER * first.seconds + SECONDS
        if (before := self._journal.find(key)) is not None:
            if before["answer"] != record["answer"]:
                raise UserError(
                    "the unchanged program must give the same result as before; got"
                    " a different result. Start again without --resume"
                )
            return
        second = self._unchanged()
        assert second.numbers is not None
        noise = distance(second.numbers, first.numbers, self.options.absolute)
        if noise > NOISE * self.options.tolerance:
            raise UserError(
                "the check must be deterministic: two runs of the unchanged program may"
                f" differ by {NOISE * self.options.tolerance:.3g}; got {noise:.3g}"
            )
        if noise:
            self._tell(f"two runs of the unchanged program differ by {noise:.3g}")
        self._journal.write(key, record)

    def _unchanged(self) -> Trial:
        (trial,) = self._runner.run([()], float("inf"))
        self._advance()
        if trial.numbers is None:
            raise UserError(
                f"the unchanged program must give a result; got none: {trial.why}"
            )
        return trial

    def _find_items(self) -> None:
        options = self.options
        key = "call sites " + self._base
        if (record := self._journal.find(key)) is None:
            with text_files([""], ".json") as (path,):
                words = ["-m", "tf32dtype", *options.subject.report_words()]
                words += ["--quiet", "--json", path]
                (trial,) = self._runner.run([words], self._limit)
                self._advance()
                with open(path, encoding="utf-8") as file:
                    text = file.read()
            if not text:
                raise UserError(
                    f"the report of the program cannot be read: {trial.why}"
                )
            record = {
                "folder": trial.folder,
                "call_sites": options.subject.kept(json.loads(text)),
            }
            self._journal.write(key, record)
        self._items = options.subject.read(record, options.program.folder)
        if not self._items.items:
            others = ", ".join(sorted(self._items.foreign))
            raise UserError(
                f"the program must {options.subject.verb} to tune; got none"
                + f". Use --float64 or --complex64 to include {others}" * bool(others)
            )
        self._base = self._hash(
            self._base, _contents(options.subject.files(self._items))
        )

    # -- trials ---------------------------------------------------------------------

    def _attempt(self, wanted: Sequence[Levels]) -> list[bool | None]:
        known = [self._known(levels) for levels in wanted]
        if known[0] is None:
            unknown = [
                x for x, outcome in zip(wanted, known, strict=True) if not outcome
            ]
            self._try(list(dict.fromkeys(unknown))[: self.options.jobs])
            known = [self._known(levels) for levels in wanted]
        return [None if x is None else self._passes(x) for x in known]

    def _passes(self, outcome: _Outcome) -> bool:
        return outcome.distance <= self.options.tolerance

    def _known(self, levels: Levels) -> _Outcome | None:
        record = self._journal.find(self._key(levels))
        if record is None:
            return None
        far = record["distance"]
        return _Outcome(np.inf if far is None else far, record["answer"], record["why"])

    def _key(self, levels: Levels) -> str:
        return self._hash(self._base, self._text(levels))

    def _try(self, all_levels: Sequence[Levels]) -> list[Trial]:
        texts = [self._text(x) for x in all_levels]
        with text_files(texts, ".toml") as paths:
            run = ["-m", "tf32dtype", *self.options.subject.run_words(), "--quiet"]
            words = [[*run, "--plan", path] for path in paths]
            trials = self._runner.run(words, self._limit)
        for levels, trial in zip(all_levels, trials, strict=True):
            far, answer = None, ""
            if trial.numbers is not None:
                answer = digest(trial.numbers)
                far = distance(trial.numbers, self._reference, self.options.absolute)
            record = {
                "distance": None if far == np.inf else far,
                "answer": answer,
                "why": trial.why,
                "precisions": [self._name(level) for level in levels],
            }
            self._journal.write(self._key(levels), record)
            self._advance()
        return trials

    def _verify(self, levels: Levels) -> _Outcome:
        """Run a plan once more: the answer is that of its trial, to the bit."""
        before = self._known(levels)
        (trial,) = self._try([levels])
        outcome = self._known(levels)
        assert outcome is not None
        if not self._passes(outcome) or (before and before.digest != outcome.digest):
            why = trial.why or f"{outcome.distance:.3g} from the reference's"
            raise UserError(
                "the program must be deterministic; got a different result in the last"
                f" run of the plan: {why}"
            )
        return outcome

    def _text(
        self, levels: Levels, found: Mapping[str, str | float | bool] | None = None
    ) -> str:
        names = [self._name(level) for level in levels]
        return self.options.subject.text(self._items, names, found)

    def _name(self, level: int) -> str | None:
        names = self.options.subject.precisions
        return names[level] if level < len(names) else None

    @staticmethod
    def _hash(*things: Any) -> str:
        return hashlib.sha256(json.dumps(things).encode()).hexdigest()


def _contents(paths: Sequence[str]) -> list[str]:
    found = []
    for path in paths:
        with open(path, "rb") as file:
            found.append(hashlib.sha256(file.read()).hexdigest())
    return found
