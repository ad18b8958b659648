"""The summary of a run: which multiplications were emulated, and which unchanged."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, TextIO

from .. import _core
from .._base.text import number
from .._matmul import precisions
from .._matmul.precisions import Settings
from .report.naming import MULTIPLICATION, numbered, some
from .report.not_reached import Counts, not_reached
from .streams import tell


class Unchanged(NamedTuple):
    """Work that the precision did not reach."""

    work: str
    calls: int
    multiply_adds: int | None
    seconds: float | None
    #: option that would reach it; "" if none would
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
    #: format that NumPy's arithmetic was rounded to; None: it was not rounded
    arithmetic: str | None
    #: ufunc: calls of its loops, rounded results
    rounded: dict[str, tuple[int, int]]
    #: how the program failed; "" if it did not
    ending: str

    @property
    def calls(self) -> int:
        """The number of emulated calls."""
        return sum(calls for calls, _ in self.emulated.values())

    @property
    def rounded_calls(self) -> int:
        """The number of calls whose results were rounded."""
        return sum(calls for calls, _ in self.rounded.values())

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of emulated calls."""
        return sum(adds for _, adds in self.emulated.values())

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "precision": self.precision,
            "ending": self.ending,
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
            "arithmetic": self.arithmetic
            and {
                "format": self.arithmetic,
                "calls": self.rounded_calls,
                "by_ufunc": [
                    {"ufunc": name, "calls": calls, "results": results}
                    for name, (calls, results) in self.rounded.items()
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
        if self.ending:
            print(f"tf32dtype: the program {self.ending}", file=stream)
            return
        first = f"tf32dtype: {self._first()}"
        if not (self.calls or self.rounded) and stream.isatty():
            first = f"\x1b[1;31m{first}\x1b[0m"
        lines = [first]
        for dtype in dict.fromkeys(dtype for dtype, _ in self.emulated):
            rows = [
                f"{calls} {routine}"
                for (its, routine), (calls, _) in self.emulated.items()
                if its == dtype
            ]
            lines.append(f"  {dtype}: {', '.join(rows)}")
        if self.rounded:
            rows = [
                f"{calls} {name} ({numbered(results, 'result')})"
                for name, (calls, results) in self._largest()
            ]
            lines.append(f"  ufuncs: {some(rows, _MOST, ', ')}")
        lines += [f"  {one.line()}" for one in self.unchanged]
        if not (self.calls or self.unchanged or self.rounded):
            lines.append(f"  The program made no {MULTIPLICATION}.")
            if not self.arithmetic and precisions.whole_name(self.precision) is None:
                lines.append("  Use --arithmetic to round NumPy's other operations.")
        print("\n".join(lines), file=stream)

    def _first(self) -> str:
        products = f"no {MULTIPLICATION} ran in {self.precision}"
        if self.calls:
            products = (
                f"{numbered(self.calls, MULTIPLICATION)} ran in {self.precision}"
                f" ({100 * self.share:.1f} % of all multiply-adds)"
            )
        if self.rounded:
            calls = numbered(self.rounded_calls, "ufunc call")
            were = "was" if self.rounded_calls == 1 else "were"
            return f"{products}; {calls} {were} rounded to {self.arithmetic}"
        if self.arithmetic:
            products += f"; no ufunc call was rounded to {self.arithmetic}"
        return products if self.calls else f"{products}; the results are unchanged"

    def _largest(self) -> list[tuple[str, tuple[int, int]]]:
        return sorted(self.rounded.items(), key=lambda row: -row[1][1])


_MOST = 8  # ufuncs that a line names
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
    "foreign thread": (
        f"{_PRODUCTS} in threads without Python code",
        "Set OMP_NUM_THREADS=1 to include those of OpenMP",
    ),
    "no memory": (
        f"{_PRODUCTS} without enough memory",
        "Some results are not in the requested precision",
    ),
}


def reached(
    label: str,
    settings: Settings,
    counts: Counts,
    arithmetic: str | None = None,
    ending: str = "",
    counts_children: bool = False,
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
    arithmetic : str, optional
        The format to which NumPy's arithmetic was rounded.
    ending : str
        How the program failed: "raised ValueError: ...".
    counts_children : bool
        Whether products of child processes are only counted.
    """
    emulated: dict[tuple[str, str], tuple[int, int]] = {}
    others: dict[tuple[str, str], tuple[int, int]] = {}
    for fate, dtype, routine, calls, adds in counts.products():
        into, key = (emulated, (dtype, routine))
        if fate != "emulated":
            if counts_children and routine == "dot" and adds == 2 * calls:
                continue  # a child process has imported NumPy, which tests its BLAS
            into, key = others, (fate, dtype)
        before = into.get(key, (0, 0))
        into[key] = before[0] + calls, before[1] + adds
    found = [
        _unchanged(*key, *size, settings, counts_children)
        for key, size in others.items()
    ]
    for one in not_reached(counts, settings.lapack):
        work = f"{one.kind} ({one.name})" if one.name else one.kind
        found.append(Unchanged(work, one.calls, None, one.seconds, one.remedy))
    short = sum(
        calls for (fate, _), (calls, _) in others.items() if fate == "no memory"
    )
    rounded = _core.take_arithmetic_counts() if arithmetic else {}
    return Reached(label, emulated, found, short, arithmetic, rounded, ending)


def _unchanged(
    fate: str,
    dtype: str,
    calls: int,
    adds: int,
    settings: Settings,
    counts_children: bool,
) -> Unchanged:
    work, remedy = _FATES[fate]
    if fate == "no precision" and not precisions.has_blas(settings.precision):
        work = f"{_PRODUCTS} by BLAS" + " or in child processes" * counts_children
        remedy = (
            f"{settings.precision} is only for real products by NumPy's functions in"
            " this process"
        )
    elif fate == "no precision" and not settings.blas:
        work = f"{_PRODUCTS} by BLAS"
        remedy = "Omit --no-blas to include them"
    elif fate == "no precision" and counts_children:
        work = f"{_PRODUCTS} in child processes or inside matmul_precision(None)"
        remedy = "Start child processes with `tf32dtype run` to include them"
    if dtype == "complex128" and fate in ("float64", "complex"):
        remedy = "Use --float64 --complex64 to include them"
    return Unchanged(f"{dtype} {work}", calls, adds, None, remedy)


def _adds(count: int) -> str:
    return f"{number(count)} multiply-adds"


def print_reached(summary: Reached) -> None:
    """Print to standard error, wherever the program has redirected it."""
    tell(sys.__stderr__, summary.print)
