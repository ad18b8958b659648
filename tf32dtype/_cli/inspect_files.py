"""`tf32dtype inspect` of a file: its tensors, and what numbers they hold."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.errors import UserError
from .._base.text import Table, bars, counted, number, printable, progress, size
from .._files.readers import Tensor, TensorFile, release, values
from .._files.tensor_names import UnknownTensor, select
from .._measures.value_counts import PIECE, Counts, count, is_countable, pieces
from .operands import opened

Array = NDArray[Any]


@dataclass(frozen=True)
class _Row:
    """A tensor, or the scales of one, and its numbers; None: they are none."""

    name: str
    label: str
    shape: tuple[int, ...]
    nbytes: int
    counts: Counts | None
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "format": self.label,
            "shape": [*self.shape],
            "bytes": self.nbytes,
            **(self.counts.record() if self.counts else {}),
            **({"error": self.error} if self.error else {}),
        }

    def cells(self) -> list[str]:
        """For the table."""
        shape = " x ".join(map(str, self.shape)) or "-"
        start = [printable(self.name), self.label, shape, size(self.nbytes)]
        found = self.counts
        if found is None:
            return [*start, *["-"] * 7]
        return [
            *start,
            "-" if found.least is None else number(found.least),
            "-" if found.greatest is None else number(found.greatest),
            _share(found.zeros, found.size),
            _share(found.subnormals, found.size),
            _share(found.infinities, found.size),
            _share(found.nans, found.size),
            _exponents(found),
        ]


_HEADER = (
    "tensor",
    "format",
    "shape",
    "bytes",
    "min",
    "max",
    "zeros",
    "subnormal",
    "Inf",
    "NaN",
    "exponents",
)


def report(path: str, patterns: list[str] | None) -> tuple[dict[str, Any], Table]:
    """Report the tensors of a file.

    Parameters
    ----------
    path : str
    patterns : list of str, optional
        Names of tensors, or patterns of the shell for names; all by default.

    Raises
    ------
    UserError
        If the file cannot be read, or has no such tensor.
    """
    with opened(path) as file:
        chosen = _choose(file, path, patterns)
        rows = []
        steps = sum(_steps(tensor) for tensor in chosen)
        with progress(True, "reading", steps, sys.stderr) as advance:
            for tensor in chosen:
                rows.append([*_rows(tensor, advance)])
        record = {
            "file": path,
            "kind": file.kind,
            "metadata": file.metadata,
            "tensors": [
                {
                    "name": first.name,
                    **first.record(),
                    **({"scales": scales[0].record()} if scales else {}),
                }
                for first, *scales in rows
            ],
        }
        total = size(sum(tensor.nbytes for tensor in chosen))
        title = f"{path}: {file.kind}, {total} in {counted(len(chosen), 'tensor')}"
    return record, Table(title, _HEADER, [x.cells() for row in rows for x in row])


def _choose(file: TensorFile, path: str, patterns: list[str] | None) -> list[Tensor]:
    try:
        chosen = {*select(patterns, file, path)}
    except UnknownTensor as error:
        raise UserError(str(error)) from None
    return [tensor for name, tensor in file.items() if name in chosen]


def _steps(tensor: Tensor) -> int:
    return -(-tensor.size // PIECE) or 1


def _rows(tensor: Tensor, advance: Callable[[], None]) -> Iterator[_Row]:
    """Yield the rows of a tensor, and of its scales if it has some."""
    facts = tensor.name, tensor.label, tensor.shape, tensor.nbytes
    try:
        array: Any = tensor.get()
    except UserError as error:
        yield _Row(*facts, None, str(error))
        advance()
        return
    if isinstance(array, np.ndarray):
        yield _Row(*facts, _count(array, advance))
        release(array)
        return
    told = _told(values(array, PIECE), advance)
    yield _Row(*facts, count(told, np.dtype(np.float32)))
    scales = array.block_scales
    counted = count(pieces(scales), scales.dtype)
    name = f"{tensor.name} (scales)"
    stored = array.scales
    yield _Row(name, array.scale_format, scales.shape, stored.nbytes, counted)


def _count(array: Array, advance: Callable[[], None]) -> Counts | None:
    if not is_countable(array.dtype):
        advance()
        return None

    return count(_told(pieces(array), advance), array.dtype)


def _told(arrays: Iterator[Array], advance: Callable[[], None]) -> Iterator[Array]:
    """Yield the arrays; release each one after use and advance the progress bar."""
    for array in arrays:
        yield array
        release(array)
        advance()


# -- text -----------------------------------------------------------------------


def _share(many: int, size: int) -> str:
    """Return a share in percent that shows 0 or 100% only if it is exact."""
    if many in (0, size):
        return "100%" if many else "0"
    share = many / size
    if share < 0.0001:
        return "<0.01%"
    return ">99.99%" if share > 0.9999 else f"{share:.2%}"


def _exponents(found: Counts) -> str:
    record = found.record()["exponents"]
    if not record["counts"]:
        return "-"
    first = record["first"]
    last = first + len(record["counts"]) - 1
    return f"2^{first} {bars(record['counts'])} 2^{last}"
