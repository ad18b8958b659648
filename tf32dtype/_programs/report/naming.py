"""Names of call sites, shapes and shares in the report."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from ..._base.text import decibels, number
from .call_sites import CallSite, Frame, Shape
from .exponents import Exponents

_LONGEST = 32  # characters of a file's path
#: What a report counts.
MULTIPLICATION = "matrix multiplication"


def where(site: CallSite) -> str:
    """A call site in a table: "solver.py:12 step"; the shared object if no frame is.

    One of several constant operands follows: "[3 of 36: layers.2.weight, 384 x 1536]".
    """
    frame = site.user or site.library
    name = at(frame) if frame else os.path.basename(site.caller) or "unknown"
    return name if site.operand is None else f"{name} {site.operand}"


def at(frame: Frame) -> str:
    """A frame: its file relative to the current folder, its line and its function.

    A line of a notebook is "In [3]:5".
    """
    file = shortened(frame.file) if frame.cell is None else frame.name
    function = "" if frame.function == "<module>" else f" {frame.function}"
    return f"{file}:{frame.line}{function}"


def shortened(path: str) -> str:
    """Return a path relative to the current folder, or the end of a long path."""
    if path.startswith("<"):  # "<stdin>"
        return path
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        relative = path
    if not relative.startswith(".."):
        path = relative
    _, _, installed = path.replace(os.sep, "/").rpartition("/site-packages/")
    path = installed or path
    parts = path.replace(os.sep, "/").split("/")
    while len("/".join(parts)) > _LONGEST and len(parts) > 1:
        parts = parts[1:]
    short = "/".join(parts)
    return short if short == path else f".../{short}"


def share(part: float, whole: float) -> str:
    """In percent; "-" of nothing."""
    return f"{100 * part / whole:.1f}" if whole else "-"


def snr_text(snr: float) -> str:
    """Return an SNR in dB; "none" if the relative error is infinite."""
    return "none" if snr == -math.inf else decibels(snr)


def ratio(x: float) -> str:
    """Return a measured ratio; "infinite" in words, "-" if none is known."""
    if math.isnan(x):
        return "-"
    return "infinite" if math.isinf(x) else number(x)


def exponents(of: Exponents) -> str:
    """Return the range of exponents: "-12..3"; "-" if there is no number but zero."""
    return "-" if of.smallest is None else f"{of.smallest}..{of.largest}"


def shape(of: Shape) -> str:
    """ "64 x 64 x 1000": m, n and k."""
    return " x ".join(map(str, of))


def some(names: Sequence[str], most: int, between: str = "; ") -> str:
    """Return the first of them, and how many there are besides."""
    more = len(names) - most
    return between.join([*names[:most], *[f"and {more} more"] * (more > 0)])


def joined(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def numbered(count: int, one: str) -> str:
    """ "1 call", "2 calls"."""
    return f"{count} {one}" + "s" * (count != 1)


def kind_and_message(error: BaseException) -> str:
    """Return an exception in one line."""
    name = type(error).__name__
    lines = str(error).splitlines()
    return f"{name}: {lines[0]}" if lines else name
