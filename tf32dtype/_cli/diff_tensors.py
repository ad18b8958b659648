"""`tf32dtype diff`: the tensors of two files, and how far each pair is apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.errors import UserError
from .._files.readers import Tensor, TensorFile, lines, release
from .._measures.differences import Differences
from .._measures.ulps import coarser
from .._measures.value_counts import PIECE
from .operands import choose

Array = NDArray[Any]

#: The results that a tensor may have, the worst first. Only the last two are not a
#: difference.
RESULTS = (
    "only in A",
    "only in B",
    "shape differs",
    "unreadable",
    "differs",
    "format differs",
    "within limits",
    "equal",
)
_GOOD = RESULTS[-2:]


class Limits(NamedTuple):
    """How far tensors may be apart; None: not limited in this measure."""

    #: the largest distance of two values
    ulps: int | None = None
    #: the lowest signal-to-noise ratio
    db: float | None = None

    def __bool__(self) -> bool:
        return self.ulps is not None or self.db is not None

    def allow(self, found: Differences) -> bool:
        """Say whether differences are within all limits that are given."""
        if found.differing == 0:
            return True
        has_ulps = found.form is not None
        if self.ulps is not None and not (has_ulps and found.largest_ulps <= self.ulps):
            return False
        return self.db is None or (found.is_numeric and found.snr >= self.db)


@dataclass(frozen=True)
class Row:
    """A tensor of A and the one of B that has its name."""

    name: str
    result: str
    #: None: the side has no such tensor
    a: Tensor | None
    b: Tensor | None
    #: None: the values were not compared
    found: Differences | None = None
    #: why the values were not compared, or may mean something else
    note: str = ""

    @property
    def is_good(self) -> bool:
        """Whether both sides are equal here."""
        return self.result in _GOOD

    @property
    def _badness(self) -> tuple[Any, ...]:
        """The key to sort by."""
        snr, ulps = 0.0, 0.0
        if self.found is not None:
            snr = self.found.snr if self.found.is_numeric else -np.inf
            ulps = self.found.largest_ulps
        return RESULTS.index(self.result), snr, -ulps, self.name

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        form = self.found and self.found.form
        return {
            "name": self.name,
            "result": self.result,
            "a": _outline(self.a),
            "b": _outline(self.b),
            **({} if self.found is None else self.found.record()),
            **({} if self.found is None else {"ulps_of": form and form.name}),
            **({"note": self.note} if self.note else {}),
        }


@dataclass
class Report:
    """All rows, the worst first."""

    files: tuple[str, str]
    limits: Limits
    rows: list[Row] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each result that one has, the worst first."""
        counts = Counter(row.result for row in self.rows)
        return {result: counts[result] for result in RESULTS if counts[result]}

    @property
    def differs(self) -> bool:
        """Whether a row is a difference."""
        return not all(row.is_good for row in self.rows)

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "files": [*self.files],
            "limits": self.limits._asdict(),
            "differs": self.differs,
            "counts": self.counts,
            "tensors": [row.record() for row in self.rows],
        }


#: Two tensors of one name, of which one may be missing.
Pair = tuple[str, Tensor | None, Tensor | None]


def pairs(a: TensorFile, b: TensorFile, names: Sequence[tuple[str, str]]) -> list[Pair]:
    """Find the tensors that belong together.

    Parameters
    ----------
    a, b : TensorFile
    names : sequence of (path, name)
        The user's names of A and B; an empty name is the whole file.

    Returns
    -------
    list of Pair
        If a name was given for a file, this tensor and that of the other file, by its
        own name or the same one; for two files, one of which is an array without a
        name, their only tensors; else all names of both, those of A first.

    Raises
    ------
    UserError
        If there is no tensor that was named.
    """
    (path_a, name_a), (path_b, name_b) = names
    is_one = len(a) == len(b) == 1 and (a.is_array or b.is_array)
    if name_a or name_b or is_one:
        x = choose(a, path_a, name_a or (name_b if name_b in a else ""))
        y = choose(b, path_b, name_b or (name_a if name_a in b else ""))
        name = x.name if x.name == y.name else f"{x.name}, {y.name}"
        return [(name, x, y)]
    every = dict.fromkeys([*a, *b])
    return [(name, a.get(name), b.get(name)) for name in every]


def steps(pair: Pair) -> int:
    """Return how often `compare` advances for a pair."""
    _, x, y = pair
    if x is None or y is None or x.shape != y.shape:
        return 1
    return -(-x.size // PIECE) or 1


def compare(
    found: Sequence[Pair],
    files: tuple[str, str],
    limits: Limits,
    advance: Callable[[], None],
) -> Report:
    """Compare tensors, one pair at a time and in pieces.

    Tensors of mapped files (npy, safetensors, most of GGUF) are read piece by piece,
    others are in memory as a whole.
    """
    rows = [_compare(pair, limits, advance) for pair in found]
    return Report(files, limits, sorted(rows, key=lambda row: row._badness))


def _compare(pair: Pair, limits: Limits, advance: Callable[[], None]) -> Row:
    name, x, y = pair
    missing = "only in A" if y is None else "only in B"
    if x is None or y is None or x.shape != y.shape:
        advance()
        is_there = x is not None and y is not None
        return Row(name, "shape differs" if is_there else missing, x, y)
    try:
        first, second = x.get(), y.get()
        difference = _differences(first, second, advance)
    except UserError as error:
        advance()
        return Row(name, "unreadable", x, y, note=str(error))
    for array in (first, second):
        release(array)
    is_same = x.label == y.label
    note = "" if is_same else x.doubt or y.doubt
    result = "equal"
    if limits and not (is_same and difference.differing == 0):
        result = "within limits" if limits.allow(difference) else "differs"
    elif difference.differing:
        result = "differs"
    elif not is_same:
        result = "format differs"
    return Row(name, result, x, y, difference, note)


def _differences(first: Any, second: Any, advance: Callable[[], None]) -> Differences:
    types = [_dtype(array) for array in (first, second)]
    is_numeric = all(dtype.kind in "biufc" for dtype in types)
    if not is_numeric and types[0] != types[1]:
        raise UserError(
            f"A and B must both hold numbers, or have one dtype; got {types[0]} and"
            f" {types[1]}"
        )
    found = Differences(coarser(*types) if is_numeric else None, is_numeric=is_numeric)
    for x, y in _pieces(first, second):
        found.take(x, y)
        for array in (first, second):
            release(array)
        advance()
    return found


def _dtype(array: Any) -> np.dtype[Any]:
    """Return the dtype of the numbers that are compared."""
    return array.dtype if isinstance(array, np.ndarray) else np.dtype(np.float32)


def _pieces(first: Any, second: Any) -> Iterator[tuple[Array, Array]]:
    """Yield both arrays in pieces that belong together, blocks as their values."""
    arrays = [array for array in (first, second) if isinstance(array, np.ndarray)]
    if len(arrays) == 2:
        if all(array.flags.f_contiguous for array in arrays):
            first, second = first.T, second.T
        x, y = (
            array.reshape(-1) if array.flags.c_contiguous else array.flat
            for array in (first, second)
        )
        for start in range(0, first.size, PIECE):
            some = slice(start, start + PIECE)
            yield np.asarray(x[some]), np.asarray(y[some])
        return
    if not arrays:  # the blocks of both may not end at the same index
        second = second.dequantize()
    by = second if isinstance(first, np.ndarray) else first
    for index in lines(by, PIECE):
        x, y = (
            array[index] if isinstance(array, np.ndarray) else array[index].dequantize()
            for array in (first, second)
        )
        yield x, y


def _outline(tensor: Tensor | None) -> dict[str, Any] | None:
    if tensor is None:
        return None
    return {
        "format": tensor.label,
        "shape": [*tensor.shape],
        "bytes": tensor.nbytes,
    }
