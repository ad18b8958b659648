"""What the products of a run came to: how many obeyed, and what would reach the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy._core import einsumfunc

from .. import _core
from .._imports import when_imported
from .._text import number


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
    "no precision": ("outside of the precision", "matmul_precision(None) holds there"),
    "float64": ("", "Reach them with --float64"),
    "complex": ("", "Reach them with --complex64"),
    "dot": ("dots and norms", "Reach them with --dots"),
    "short": ("shorter sums than --min-size", ""),
    "outside": ("outside of --only, or inside of --except", ""),
    "no memory": ("no memory", ""),
}


def reached(precision: str) -> Reached:
    """What has been counted so far in this process and its forked children."""
    obeyed: dict[tuple[str, str], tuple[int, int]] = {}
    missed: dict[tuple[str, str], tuple[int, int]] = {}
    for fate, dtype, routine, calls, adds in _core.blas_counts():
        into, key = (obeyed, (dtype, routine))
        if fate != "obeyed":
            into, key = missed, (fate, dtype)
        before = into.get(key, (0, 0))
        into[key] = before[0] + calls, before[1] + adds
    found = [_missed(*key, *size) for key, size in missed.items()]
    found += _named(_core.named_counts())
    return Reached(precision, obeyed, found)


def _missed(fate: str, dtype: str, calls: int, adds: int) -> Missed:
    what, cure = _CURES[fate]
    if dtype == "complex128":
        cure = {
            "float64": "Reach them with --float64 --complex64",
            "complex": "Reach them with --float64 --complex64",
        }.get(fate, cure)
    named = ", ".join(filter(None, [what, f"products in {dtype}"]))
    return Missed(named, calls, adds, None, cure)


def _named(rows: Iterable[tuple[str, str, int, float]]) -> list[Missed]:
    """LAPACK's routines and solves are told together, loops one by one."""
    found = []
    of = {
        kind: [row for row in rows if row[0] == kind]
        for kind in ("lapack", "solve", "loop")
    }
    for kind, what, cure in (
        ("lapack", "LAPACK", "--lapack reaches the products inside, not its other sums"),
        ("solve", "triangular solves", ""),
    ):
        if calls := of[kind]:
            slowest = sorted(calls, key=lambda row: -row[3])
            names = ", ".join(row[1] for row in slowest[:4])
            more = ", ..." if len(calls) > 4 else ""
            found.append(
                Missed(
                    f"{what} ({names}{more})",
                    sum(row[2] for row in calls),
                    None,
                    sum(row[3] for row in calls),
                    cure,
                )
            )
    for _, name, calls, seconds in of["loop"]:
        what, _, cure = name.partition(": ")
        found.append(Missed(what, calls, None, seconds, _LOOP_CURES.get(cure, "")))
    return found


_LOOP_CURES = {
    "dtype": "Convert to float32 first",
    "einsum": "Write optimize=True, or td.einsum",
    "fft": "No precision reaches an FFT",
}


# -- what is no call of BLAS -------------------------------------------------------------


def watch_loops() -> None:
    """Count NumPy's loops that a precision does not reach, and FFTs, from here on."""
    for ufunc in (np.matmul, np.matvec, np.vecmat, np.vecdot):
        _core.count_loops(ufunc, f"np.{ufunc.__name__} of {{}}: dtype", "fdFD")
    when_imported("numpy.fft._pocketfft_umath", _count_numpys_ffts)
    when_imported("scipy.fft._pocketfft.pypocketfft", _count_scipys_ffts)
    own = einsumfunc.c_einsum
    einsumfunc.c_einsum = _counted(own, "np.einsum without optimize: einsum")


def _count_numpys_ffts(module: Any) -> None:
    for name in ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft"):
        if isinstance(ufunc := getattr(module, name, None), np.ufunc):
            _core.count_loops(ufunc, "np.fft of {}: fft")


def _count_scipys_ffts(module: Any) -> None:
    for name in ("c2c", "r2c", "c2r", "dct", "dst", "r2r_fftpack"):
        if own := getattr(module, name, None):
            setattr(module, name, _counted(own, "scipy.fft: fft"))


def _counted(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    return _core.counted(function, name)


def _calls(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def _adds(count: int) -> str:
    return f"{number(count)} multiply-adds"


def print_reached(summary: Reached) -> None:
    """To standard error, wherever the program has put that."""
    if stream := sys.__stderr__:
        summary.print(stream)
