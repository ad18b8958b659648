"""The summary of a run: which multiplications were emulated, and which unchanged."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, TextIO

from .. import _core
from .._base.text import number
from .._matmul.precisions import Settings
from .report.naming import MULTIPLICATION, numbered
from .report.not_reached import Counts, not_reached
from .streams import tell


class Unchanged(NamedTuple):
    """Work that the precision did not reach."""

    work: str
    calls: int
    multiply_adds: int | None
    seconds: float | None
    #: what would reach it; "" if nothing would
    remedy: str

    def line(self) -> str:
        """Return the line for the terminal."""
        size = [] if self.multiply_adds is None else [_adds(self.multiply_adds)]
        time = [] if self.seconds is None else [f"{number(self.seconds)} s"]
        counts = ", ".join([self.work, numbered(self.calls, "call"), *size, *time])
        return f"unchanged: {counts}" + (f". {self.remedy}" if self.remedy else "")


class Reached(NamedTuple):
    """The matrix multiplications of a run."""

    precision: str
    #: dtype and routine: calls, multiply-adds
    emulated: dict[tuple[str, str], tuple[int, int]]
    unchanged: list[Unchanged]
    #: calls that stayed unchanged because memory was short
    out_of_memory: int
    #: whether NumPy's arithmetic was rounded too
    arithmetic: bool

    @property
    def calls(self) -> int:
        """The number of emulated calls."""
        return sum(calls for calls, _ in self.emulated.values())

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of emulated calls."""
        return sum(adds for _, adds in self.emulated.values())

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "precision": self.precision,
            "emulated": {
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
                    for (dtype, routine), (calls, adds) in self.emulated.items()
                ],
            },
            "unchanged": [one._asdict() for one in self.unchanged],
        }

    @property
    def share(self) -> float:
        """The emulated share of the counted multiply-adds; 0 if there were none."""
        others = sum(one.multiply_adds or 0 for one in self.unchanged)
        return self.multiply_adds / max(self.multiply_adds + others, 1)

    def print(self, stream: TextIO) -> None:
        """Write the summary; its first line says if nothing was emulated."""
        if self.calls:
            first = (
                f"tf32dtype: {numbered(self.calls, MULTIPLICATION)} ran in"
                f" {self.precision} ({100 * self.share:.1f} % of all multiply-adds)"
            )
        else:
            first = f"tf32dtype: no {MULTIPLICATION} ran in {self.precision}"
            if not self.arithmetic:
                first += "; the results are unchanged"
            if stream.isatty():
                first = f"\x1b[1;31m{first}\x1b[0m"
        lines = [first]
        for dtype in dict.fromkeys(dtype for dtype, _ in self.emulated):
            rows = [
                f"{calls} {routine}"
                for (its, routine), (calls, _) in self.emulated.items()
                if its == dtype
            ]
            lines.append(f"  {dtype}: {', '.join(rows)}")
        lines += [f"  {one.line()}" for one in self.unchanged]
        if not self.calls and not self.unchanged:
            lines.append(f"  The program made no {MULTIPLICATION}.")
        print("\n".join(lines), file=stream)


_PRODUCTS = "matrix multiplications"
#: The name and the remedy of work that was not emulated, by its fate.
_FATES = {
    "emulated otherwise": (f"{_PRODUCTS} in a precision that the program sets", ""),
    "no precision": (f"{_PRODUCTS} inside matmul_precision(None)", ""),
    "float64": (_PRODUCTS, "Use --float64 to include them"),
    "complex": (_PRODUCTS, "Use --complex64 to include them"),
    "dot": ("dot products and norms", "Use --dots to include them"),
    "short": (f"{_PRODUCTS} with k below --min-size", ""),
    "outside": (f"{_PRODUCTS} excluded by --only, --except or a plan", ""),
    "no memory": (
        f"{_PRODUCTS} for which memory was short",
        "Some results are not in the requested precision",
    ),
}


def reached(
    label: str, settings: Settings, counts: Counts, arithmetic: bool
) -> Reached:
    """Return the summary of this process and those that it started.

    Parameters
    ----------
    label : str
        The name of the precision.
    settings : Settings
        The settings of the run.
    counts : Counts
        The counts before the run of work that no precision reaches.
    arithmetic : bool
        Whether NumPy's arithmetic was rounded too.
    """
    emulated: dict[tuple[str, str], tuple[int, int]] = {}
    others: dict[tuple[str, str], tuple[int, int]] = {}
    for fate, dtype, routine, calls, adds in _core.blas_counts():
        into, key = (emulated, (dtype, routine))
        if fate != "emulated":
            into, key = others, (fate, dtype)
        before = into.get(key, (0, 0))
        into[key] = before[0] + calls, before[1] + adds
    found = [_unchanged(*key, *size, settings.blas) for key, size in others.items()]
    for one in not_reached(counts, settings.lapack):
        work = f"{one.kind} ({one.name})" if one.name else one.kind
        found.append(Unchanged(work, one.calls, None, one.seconds, one.remedy))
    short = sum(
        calls for (fate, _), (calls, _) in others.items() if fate == "no memory"
    )
    return Reached(label, emulated, found, short, arithmetic)


def _unchanged(fate: str, dtype: str, calls: int, adds: int, blas: bool) -> Unchanged:
    work, remedy = _FATES[fate]
    if fate == "no precision" and not blas:
        work = f"{_PRODUCTS} by BLAS"
        remedy = "Leave out --no-blas to include them"
    if dtype == "complex128" and fate in ("float64", "complex"):
        remedy = "Use --float64 --complex64 to include them"
    return Unchanged(f"{dtype} {work}", calls, adds, None, remedy)


def _adds(count: int) -> str:
    return f"{number(count)} multiply-adds"


def print_reached(summary: Reached) -> None:
    """Print to standard error, wherever the program has redirected it."""
    tell(sys.__stderr__, summary.print)
