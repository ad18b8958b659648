"""The words and numbers that `explain` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .models import Model
from .steps import Exact

#: The most groups that are shown in full; with more, each group is one line.
IN_FULL = 8

_NANS = {
    "float16": "0x7FFF",
    "float32": "0x7FFFFFFF",
    "float64": "0x7FF8000000000000",
}
_WIDTHS = (4, 11, 11, 11, 16, 12)


def row(*cells: str) -> str:
    """Return all flush right but for the truncated bits."""
    aligned = [cell.rjust(n) for cell, n in zip(cells, _WIDTHS, strict=False)]
    return "  ".join([" ".join(aligned), *cells[len(_WIDTHS) :]]).rstrip()


def span(ks: Sequence[int]) -> str:
    return f"{ks[0]}-{ks[-1]}" if ks else "-"


def ranges(ks: Sequence[int]) -> str:
    """0, 1, 2, 5 as "0-2, 5"."""
    starts = [k for k in ks if k - 1 not in ks]
    ends = [k for k in ks if k + 1 not in ks]
    both = zip(starts, ends, strict=True)
    return ", ".join(str(i) if i == j else f"{i}-{j}" for i, j in both)


def some(words: Sequence[str], most: int) -> str:
    rest = len(words) - most
    return ", ".join(words[:most]) + f" and {rest} more" * (rest > 0)


def count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def hexadecimal(x: Exact, exponent: int | None = None) -> str:
    """As `float.hex`, with a significand below 2 or of the given exponent."""
    if exponent is None:
        exponent = x.magnitude.bit_length() - 1 + x.unit
    bits = exponent - x.unit
    whole, fraction = divmod(x.magnitude << -bits % 4, 1 << bits + -bits % 4)
    digits = f"{fraction:0{(bits + 3) // 4}X}".rstrip("0") if fraction else ""
    point = f".{digits}" * bool(digits)
    return f"{'-' * x.negative}0x{whole:X}{point}p{exponent:+d}"


def units(n: int) -> str:
    return f"{'-' * (n < 0)}0x{abs(n):X}"


def decimal(model: Model, value: float) -> str:
    with np.errstate(invalid="ignore"):
        return str(np.dtype(model.accumulator).type(value))


def shown(model: Model, value: float) -> str:
    """Return bits and value of an accumulator; a NaN is the unit's."""
    if math.isnan(value):
        return f"{_NANS[model.accumulator]}  nan"
    return bits_and_value(np.dtype(model.accumulator).type(value))


def bits_and_value(x: Any) -> str:
    size = x.dtype.itemsize
    return f"0x{int(x.view(f'u{size}')):0{2 * size}X}  {x!s}"
