"""What the products of a run came to, and what would reach those that did not obey."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, TextIO

from .. import _core
from .._matmul.precisions import Settings
from .._report.elsewhere import Counts, elsewhere
from .._text import number
from .streams import tell


class Missed(NamedTuple):
    """Products, or other work, that a precision did not reach."""

    what: str
    calls: int
    multiply_adds: int | None
    seconds: float | None
    #: what would reach it
    cure: str

    def line(self) -> str:
        """For the terminal."""
        size = [] if self.multiply_adds is None else [_adds(self.multiply_adds)]
        time = [] if self.seconds is None else [f"{number(self.seconds)} s"]
        measured = ", ".join([_calls(self.calls), *size, *time])
        return f"{self.what}: {measured}" + (f". {self.cure}" if self.cure else "")


class Reached(NamedTuple):
    """The products of a run."""

    precision: str
    #: dtype and routine: calls, multiply-adds
    obeyed: dict[tuple[str, str], tuple[int, int]]
    missed: list[Missed]
    #: products that should have obeyed, and did not for want of memory
    lost: int

    @property
    def calls(self) -> int:
        """Products that obeyed."""
        return sum(calls for calls, _ in self.obeyed.values())

    @property
    def multiply_adds(self) -> int:
        """Of those that obeyed."""
        return sum(adds for _, adds in self.obeyed.values())

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "precision": self.precision,
            "obeyed": {
                "calls": self.calls,
                "multiply_adds": self.multiply_adds,
                "share_of_multiply_adds": self.share,
                "by_dtype_and_routine": [
                    {
                        "dtype": dtype,
                        "routine": routine,
                        "calls": calls,
                        "multiply_adds": adds,
                    }
                    for (dtype, routine), (calls, adds) in self.obeyed.items()
                ],
            },
            "missed": [missed._asdict() for missed in self.missed],
        }

    @property
    def share(self) -> float:
        """Of the multiply-adds that were counted; 0 if there were none."""
        others = sum(missed.multiply_adds or 0 for missed in self.missed)
        return self.multiply_adds / max(self.multiply_adds + others, 1)

    def print(self, stream: TextIO) -> None:
        """Write the summary; its first line says if nothing obeyed."""
        if self.calls:
            first = (
                f"tf32dtype: {_calls(self.calls)} obeyed {self.precision},"
                f" {self.share:.1%} of the multiply-adds of all products that were seen"
            )
        else:
            first = (
                f"tf32dtype: nothing obeyed {self.precision}: the program's results are"
                " those of its own precision"
            )
            if stream.isatty():
                first = f"\x1b[1;31m{first}\x1b[0m"
        lines = [first]
        for dtype in dict.fromkeys(dtype for dtype, _ in self.obeyed):
            rows = [
                f"{calls} {routine}"
                for (its, routine), (calls, _) in self.obeyed.items()
                if its == dtype
            ]
            lines.append(f"  obeyed, {dtype}: {', '.join(rows)}")
        lines += [f"  not, {missed.line()}" for missed in self.missed]
        if not self.calls and not self.missed:
            lines.append("  No matrix product was seen at all.")
        print("\n".join(lines), file=stream)


#: Of a product that was seen and did not obey: what it is called, and what helps.
_CURES = {
    "obeyed another": ("in a precision that the program sets itself", ""),
    "no precision": ("outside of the precision", "matmul_precision(None) holds there"),
    "float64": ("", "Reach them with --float64"),
    "complex": ("", "Reach them with --complex64"),
    "dot": ("dots and norms", "Reach them with --dots"),
    "short": ("shorter sums than --min-size", ""),
    "outside": ("outside of --only, inside of --except, or left out by a plan", ""),
    "no memory": (
        "no memory for what the precision needs",
        "The program's results are not what was asked for",
    ),
}


def reached(label: str, settings: Settings, counts: Counts) -> Reached:
    """What has been counted in this process and those that it started, under settings
    that go by a label; of what no precision reaches since a moment."""
    obeyed: dict[tuple[str, str], tuple[int, int]] = {}
    missed: dict[tuple[str, str], tuple[int, int]] = {}
    for fate, dtype, routine, calls, adds in _core.blas_counts():
        into, key = (obeyed, (dtype, routine))
        if fate != "obeyed":
            into, key = missed, (fate, dtype)
        before = into.get(key, (0, 0))
        into[key] = before[0] + calls, before[1] + adds
    found = [_missed(*key, *size, settings.blas) for key, size in missed.items()]
    for one in elsewhere(counts, settings.lapack):
        what = f"{one.kind} ({one.name})" if one.name else one.kind
        found.append(Missed(what, one.calls, None, one.seconds, one.advice))
    lost = sum(calls for (fate, _), (calls, _) in missed.items() if fate == "no memory")
    return Reached(label, obeyed, found, lost)


def _missed(fate: str, dtype: str, calls: int, adds: int, blas: bool) -> Missed:
    what, cure = _CURES[fate]
    if fate == "no precision" and not blas:
        what, cure = "made by BLAS", "Reach them without --no-blas"
    if dtype == "complex128":
        cure = {
            "float64": "Reach them with --float64 --complex64",
            "complex": "Reach them with --float64 --complex64",
        }.get(fate, cure)
    named = ", ".join(filter(None, [what, f"products in {dtype}"]))
    return Missed(named, calls, adds, None, cure)


def _calls(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def _adds(count: int) -> str:
    return f"{number(count)} multiply-adds"


def print_reached(summary: Reached) -> None:
    """To standard error, wherever the program has put that."""
    tell(sys.__stderr__, summary.print)
