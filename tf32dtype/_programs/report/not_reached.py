"""Work that no precision reaches: LAPACK's, NumPy's loops without BLAS, FFTs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy._core import einsumfunc

from ... import _core
from ..._base.imports import when_imported
from .call_sites import NotReached


class Counts:
    """The counts at one moment."""

    def __init__(self) -> None:
        self._then = {row[:2]: row[2:] for row in _core.named_counts()}
        self._products_then = {row[:3]: row[3:] for row in _core.blas_counts()}

    def products(self) -> list[tuple[str, str, str, int, int]]:
        """Return products since that moment: fate, dtype, routine, calls, size.

        Earlier ones are those of a process that runs `tf32dtype run` as a child.
        """
        found = []
        for fate, dtype, routine, calls, adds in _core.blas_counts():
            before = self._products_then.get((fate, dtype, routine), (0, 0))
            if calls > before[0]:
                calls, adds = calls - before[0], adds - before[1]
                found.append((fate, dtype, routine, calls, adds))
        return found

    def since(self) -> list[tuple[str, str, int, float]]:
        """Return the counts since that moment: kind, name, calls, seconds."""
        found = []
        for kind, name, calls, seconds in _core.named_counts():
            calls_then, seconds_then = self._then.get((kind, name), (0, 0.0))
            if calls > calls_then:
                found.append((kind, name, calls - calls_then, seconds - seconds_then))
        return found


def not_reached(counts: Counts, lapack: bool) -> list[NotReached]:
    """Return the work that was not reached since a moment.

    LAPACK's routines are one entry, and so are solves; each loop is an entry.

    Parameters
    ----------
    counts : Counts
        The counts of that moment.
    lapack : bool
        Whether matrix multiplications inside LAPACK were reached.
    """
    found = []
    rows = counts.since()
    for kind, what, remedy in (
        ("lapack", "LAPACK", _INSIDE if lapack else _OUTSIDE),
        ("solve", "triangular solves", ""),
    ):
        slowest = sorted(
            (row for row in rows if row[0] == kind), key=lambda row: -row[3]
        )
        if slowest:
            names = ", ".join(row[1] for row in slowest[:4])
            more = ", ..." if len(slowest) > 4 else ""
            calls = sum(row[2] for row in slowest)
            seconds = sum(row[3] for row in slowest)
            found.append(NotReached(what, names + more, calls, seconds, remedy))
    for kind, name, calls, seconds in rows:
        if kind == "loop":
            what, _, reason = name.partition(": ")
            found.append(NotReached(what, "", calls, seconds, _REMEDIES[reason]))
    return found


_OUTSIDE = "Use --lapack to include its matrix multiplications"
_INSIDE = "Only its matrix multiplications by BLAS were included"
_REMEDIES = {
    "dtype": "Convert the operands to float32",
    "strided": "NumPy does not use BLAS for these arrays. Use np.ascontiguousarray",
    "own": "They already have a precision of td",
    "einsum": "Use optimize=True, or td.einsum",
    "fft": "FFTs are not supported",
}


@cache
def watch_loops() -> None:
    """Begin to count NumPy's loops that a precision does not reach, and FFTs."""
    for ufunc in (np.matmul, np.matvec, np.vecmat, np.vecdot):
        _core.count_loops(ufunc, f"np.{ufunc.__name__} of {{}}: dtype", "fdFD")
    when_imported("numpy.fft._pocketfft_umath", _count_numpys_ffts)
    for name in ("_pocketfft.pypocketfft", "_duccfft.pyduccfft"):  # SciPy 1.18: DUCC
        when_imported(f"scipy.fft.{name}", _count_scipys_ffts)
    names = vars(einsumfunc)
    names["c_einsum"] = _core.counted(
        names["c_einsum"], "np.einsum without optimize: einsum"
    )


@cache
def watch_strided_loops() -> None:
    """Begin to count NumPy's matrix multiplications that do not use BLAS."""
    for ufunc in (np.matmul, np.matvec, np.vecmat, np.vecdot):
        name = f"np.{ufunc.__name__} of {{}}, strided: strided"
        _core.count_loops(ufunc, name, only="fdFD", with_blas=False)


def _count_numpys_ffts(module: Any) -> None:
    for name in ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft"):
        if isinstance(ufunc := getattr(module, name, None), np.ufunc):
            _core.count_loops(ufunc, "np.fft of {}: fft")


def _count_scipys_ffts(module: Any) -> None:
    for name in ("c2c", "r2c", "c2r", "dct", "dst", "r2r_fftpack"):
        if own := getattr(module, name, None):
            setattr(module, name, _core.counted(own, "scipy.fft: fft"))
