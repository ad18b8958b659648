"""How far the numbers that a program prints and writes change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._base.text import number
from .naming import numbered

Array = NDArray[Any]
#: Outputs by the name of a file or a value; printed text has the name PRINTED.
Output = dict[str, "str | Array"]

PRINTED = ""
_MOST_BYTES = 64 << 20  # of a file that is compared
_LABEL = 32  # characters of the words before a number
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|inf|nan)(?![\w.]*\w)",
    re.I,
)
_BRACKET = re.compile(r"([][(),;])")
#: Times change from run to run; they are not compared.
_UNIT = re.compile(r"\s*(?:[mnuµ]?s|secs?|seconds?|min|minutes?|it/s)\b")
_TIME = re.compile(r"time|elapsed|took|seconds|duration|flop", re.I)


@dataclass(frozen=True)
class Change:
    """The largest change of a number in one part of the output."""

    #: a file's name, or PRINTED
    name: str
    #: as a share of the number, or of the largest one of its array; Inf: other text,
    #: NaN, or another count of numbers
    largest: float
    #: "inertia 32852 -> 129957"
    example: str

    @property
    def text(self) -> str:
        """In words, for the report."""
        what = self.name or "the printed numbers"
        verb = "change" if what.endswith(" numbers") else "changes"
        if self.largest == np.inf:
            return f"{what} {verb} ({self.example})"
        return f"{what} {verb} by at most {_share(self.largest)} ({self.example})"


class Compared(NamedTuple):
    """Two runs' outputs, compared."""

    changes: tuple[Change, ...]
    #: numbers that change from run to run, which were left out
    noisy: int


def _share(change: float) -> str:
    if change < 10:
        return f"{number(100 * change)} %"
    return f"{number(change)} times the value"


def read_output(folder: str, names: Iterable[str], printed: str | None) -> Output:
    """Read printed text, and the files that can be compared."""
    found: Output = {} if printed is None else {PRINTED: printed}
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.path.getsize(path) <= _MOST_BYTES:
            found |= _read(path, name)
    return found


def _read(path: str, name: str) -> Output:
    try:
        if path.endswith(".npy"):
            return {name: np.load(path, allow_pickle=False)}
        if path.endswith(".npz"):
            with np.load(path, allow_pickle=False) as arrays:
                return {f"{name} {key}": arrays[key] for key in arrays}
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return {} if "\0" in text else {name: text}
    except (OSError, ValueError):  # not text
        return {}


def values_of(value: Any, name: str = "") -> Output:
    """Return the numbers and texts of a function's result."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {name or "the result": value}
    if isinstance(value, Mapping):
        parts = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list | tuple) and not all(map(np.isscalar, value)):
        parts = [(f"[{i}]", one) for i, one in enumerate(value)]
    else:
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            array = array.astype(np.float64)
        return {name or "the result": array}
    return {k: v for key, one in parts for k, v in values_of(one, name + key).items()}


def has_numbers(output: Output) -> bool:
    """Return whether anything can be compared."""
    return any(
        any(not one.is_time for one in _numbers(x)) if isinstance(x, str) else x.size
        for x in output.values()
    )


def compare(first: Output, again: Output, other: Output, tolerance: float) -> Compared:
    """Compare a run with the first one.

    Parameters
    ----------
    first, again : dict
        The outputs of two unchanged runs. Numbers that differ between these by more
        than a tenth of the tolerance are left out.
    other : dict
        The output to compare.
    tolerance : float
        The change that is allowed.
    """
    changes, noisy = [], 0
    for name, its in first.items():
        twin, new = again.get(name, its), other.get(name)
        if new is None:
            changes.append(Change(name, np.inf, "missing"))
        elif isinstance(its, str):
            if not isinstance(new, str) or not isinstance(twin, str):
                continue
            change, left_out = _compare_texts(name, its, twin, new, tolerance / 10)
            noisy += left_out
            changes += change
        elif not isinstance(new, str) and not isinstance(twin, str):
            if _compare_arrays(name, its, twin).largest > tolerance / 10:
                noisy += its.size
                continue
            changes.append(_compare_arrays(name, its, new))
    changes.sort(key=lambda change: -change.largest)
    return Compared(tuple(changes), noisy)


def scales_of_text(text: str) -> dict[int, tuple[str, float]]:
    """Return the numbers of a text by the index where each begins.

    With each is the name of its part: those that share a scale have the same.
    """
    return {one.start: (str(one.group), one.value) for one in _numbers(text)}


# -- text ----------------------------------------------------------------------------


class _Number(NamedTuple):
    start: int
    value: float
    text: str
    label: str
    is_time: bool
    #: numbers within brackets share a scale, and those of a table's column
    group: object


def _numbers(text: str) -> list[_Number]:
    found: list[_Number] = []
    columns = _columns(text)
    end, group, depth = 0, 0, 0
    for match in _NUMBER.finditer(text):
        between = text[end : match.start()]
        lowest = depth
        for bracket in re.findall(r"[\[\]]", between):
            depth = max(0, depth + (1 if bracket == "[" else -1))
            lowest = min(lowest, depth)
        group += lowest == 0
        label = between.rsplit("\n", 1)[-1].strip(" \t=:,;()[]'\"|")[-_LABEL:]
        if not label and found and "\n" not in between:
            label = found[-1].label
        end = match.end()
        is_time = bool(_UNIT.match(text, end) or _TIME.search(label))
        column = columns.get(match.start()) if depth == 0 else None
        shared = group if column is None else column
        start, value = match.start(), float(match[0])
        found.append(_Number(start, value, match[0], label, is_time, shared))
    return found


def _columns(text: str) -> dict[int, object]:
    """Return the columns of tables, lines with as many numbers and no words.

    A column is found by the index in the text where one of its numbers begins.
    """
    found: dict[int, object] = {}
    start, table, before = 0, 0, 0
    for line in text.splitlines(keepends=True):
        matches = [*_NUMBER.finditer(line)]
        if _NUMBER.sub("", line).strip(" \t\r\n,;|"):
            matches = []
        table += len(matches) != before
        before = len(matches)
        for i, match in enumerate(matches):
            found[start + match.start()] = table, i
        start += len(line)
    return found


def _compare_texts(
    name: str, first: str, again: str, other: str, noise: float
) -> tuple[list[Change], int]:
    words, twins = _words(first), _words(again)
    if words != twins:  # as of a program that prints in any order
        return [], len(_numbers(first))
    if words != _words(other):
        return [Change(name, np.inf, _first_difference(first, other))], 0
    a, b, c = map(_numbers, (first, again, other))
    scales: dict[object, float] = {}
    for one in a:
        if np.isfinite(one.value):
            scales[one.group] = max(scales.get(one.group, 0.0), abs(one.value))
    worst, example, noisy, counted = 0.0, "", 0, 0
    for x, y, z in zip(a, b, c, strict=True):
        if x.is_time:
            continue
        scale = scales.get(x.group, 0.0)
        if _relative(x.value, y.value, scale) > noise:
            noisy += 1
            continue
        counted += 1
        change = _relative(x.value, z.value, scale)
        if change > worst:
            worst = change
            example = f"{x.label} {_short(x)} -> {_short(z)}".strip()
    return [Change(name, worst, example)] if counted else [], noisy


def _short(one: _Number) -> str:
    return one.text if len(one.text) <= 12 else number(one.value, 6)


def _words(text: str) -> list[str]:
    """Return what is not a number, without the blanks that align numbers."""
    return _BRACKET.sub(r" \1 ", _NUMBER.sub(" # ", text)).split()


def _first_difference(first: str, other: str) -> str:
    a, b = first.splitlines(), other.splitlines()
    for x, y in zip(a, b, strict=False):
        if _words(x) != _words(y):
            return f"{x.strip()[:60]!r} -> {y.strip()[:60]!r}"
    return f"{numbered(len(a), 'line')} -> {numbered(len(b), 'line')}"


def _relative(x: float, y: float, scale: float) -> float:
    if x == y or (x != x and y != y):
        return 0.0
    if not (np.isfinite(x) and np.isfinite(y)) or not scale:
        return float("inf")
    return abs(y - x) / scale


# -- arrays --------------------------------------------------------------------------


def _compare_arrays(name: str, first: Array, other: Array) -> Change:
    if first.shape != other.shape:
        return Change(name, np.inf, f"shape {first.shape} -> {other.shape}")
    if first.dtype.kind not in "biufc" or other.dtype.kind not in "biufc":
        same = np.array_equal(first, other)
        return Change(name, 0.0 if same else np.inf, "" if same else "other values")
    wide = np.complex128 if "c" in first.dtype.kind + other.dtype.kind else np.float64
    x, y = np.atleast_1d(first.astype(wide)), np.atleast_1d(other.astype(wide))
    with np.errstate(all="ignore"):
        error = np.abs(y - x)
    error[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
    error[np.isnan(error)] = np.inf
    if not error.any():
        return Change(name, 0.0, "")
    at = np.unravel_index(np.argmax(error), error.shape)
    scale = float(np.max(np.abs(x), where=np.isfinite(x), initial=0.0))
    largest = float(error[at]) / scale if scale else np.inf
    where = f"{[int(i) for i in at]} " if first.ndim else ""
    example = f"{where}{number(x[at], 6)} -> {number(y[at], 6)}"
    return Change(name, largest, example)
