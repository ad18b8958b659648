"""Correctly rounded products on a GPU: see src/cuda/exact/round_sums.cu.

cuBLAS multiplies in float64. A bound of the errors decides most results; the kernel
computes the others with more precision, and at last exactly. So the bits are those of
`tf32dtype.matmul` on the CPU, whatever cuBLAS does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import cupy
import numpy as np

from ..._exact.stages import compensated_error, float64_error
from ..._integer_products.schemes import COUNTS, Scheme
from .._arrays.ndarray import lying
from .._runtime.backend import Kernel, View, Words, check_aligned, current
from . import operand_rows, wgmma
from .integer_products import (
    MOST_K,
    RECONSTRUCTION,
    Residues,
    at,
    plan_residues,
    reconstruction_of,
)
from .tile_options import LARGEST, MOST, Launches, Matrices, Room, Writer, pieces

FLOAT64 = np.dtype(np.float64)
#: struct row_facts of src/cuda/exact/rows.h
FACTS = 24
#: Rows and columns of a tile, and threads of a block, of round_sums.cu.
SIDE, THREADS = 64, 256

#: struct source of round_sums.cu, with residues
SOURCE = np.dtype(
    [
        *((name, np.uint64) for name in ("residues", "of_x", "of_y")),
        ("plane", np.int64),
        ("by", RECONSTRUCTION),
    ]
)

#: The k of a float64 product. Shorter sums have smaller errors, but each product reads
#: and writes all sums.
DEPTH = 2048
#: Sums that are in memory at a time.
MOST_SUMS = 1 << 27


def rows_kernel(dtype: np.dtype[Any]) -> Kernel:
    """Return the kernel that reads rows of float32 or float64."""
    return operand_rows.kernel("rows.cu", "read_rows", dtype)


def rounding_kernel(dtype: np.dtype[Any], of_integers: bool = False) -> Kernel:
    """Return the kernel that rounds sums, or integers, to float32 or float64."""
    options = f"-DSINGLE={int(dtype == np.float32)}", f"-DINTEGERS={int(of_integers)}"
    return Kernel("cuda/exact/round_sums.cu", "round_sums", options)


def moduli_for(k: int, dtype: np.dtype[Any]) -> int:
    """Return the number of moduli that decide most results of float32 or float64.

    At most about 1 result in 1,000 is then undecided if operands are normal. For
    float64 and k above 1,000, all 20 moduli are needed.
    """
    size = max(k - 1, 1).bit_length()
    bits = np.finfo(dtype).nmant + 10 + size / 2
    least = 2 * (bits - 5) + 1 + 10 + size
    for moduli in COUNTS:
        if Scheme("crt", moduli).product.bit_length() > least:
            return moduli
    return COUNTS[-1]


def errors(k: int) -> tuple[float, float]:
    """Bound the errors of both kinds of sums, relative to the norms.

    The first sum is a float64 product of any order in each `DEPTH` of k. It may be
    truncated instead of rounded: no document of NVIDIA excludes it. The second one is
    that of round_sums.cu.
    """
    terms = min(k, DEPTH) + pieces(k, DEPTH)
    return 2 * float64_error(terms), compensated_error(8 * k)


class _Rows(NamedTuple):
    """The float64 rows of an operand, and their facts, in an allocation."""

    kernel: Kernel
    extents: tuple[int, ...]  #: `Matrices.extents`
    rows: int  #: bytes from the start of the allocation
    facts: int

    def read(self, x: View, memory: Any) -> None:
        """Launch the kernel that reads the operand."""
        places = (at(memory, start) for start in (self.rows, self.facts))
        operand_rows.read(self.kernel, self.extents, x, *places)

    @property
    def step(self) -> int:
        """Return the rows from a matrix of a stack to the next."""
        return self.extents[4] if self.extents[3] > 1 else 0


def _plan_rows(x: Matrices, room: Room) -> _Rows:
    """Plan to read (s, lines, k) into an allocation."""
    _, lines, k = x.shape
    count = x.distinct
    if count > MOST or max(lines, k) > LARGEST:
        raise ValueError(
            f"a and b must have at most {MOST} matrices, and {LARGEST} elements along"
            f" an axis, with precision 'exact' on a GPU; got shape {x.shape}"
        )
    every = count * lines
    places = room.place(8 * every * k), room.place(FACTS * every)
    return _Rows(rows_kernel(x.dtype), x.extents, *places)


class _Part(NamedTuple):
    """Some results of a stack: matrices, and rows of each."""

    first: int
    matrices: int
    top: int
    height: int


def _parts(s: int, m: int, n: int) -> Iterator[_Part]:
    together = min(max(MOST_SUMS // (m * n), 1), MOST)
    height = m if m * n <= MOST_SUMS else max(MOST_SUMS // n // SIDE, 1) * SIDE
    for first in range(0, s, together):
        for top in range(0, m, height):
            yield _Part(first, min(together, s - first), top, min(height, m - top))


class _ExactProduct(NamedTuple):
    """The launches of a correctly rounded product."""

    x: _Rows
    y: _Rows
    sums: int  #: where float64 sums begin in the allocation
    size: int  #: bytes of the allocation
    shape: tuple[int, int, int]
    parts: tuple[_Part, ...]  #: those whose sums are in memory at a time
    kernel: Kernel
    rounding: int
    errors: tuple[int, ...]  #: `errors` as bits
    residues: Residues | None  #: products of integers, instead of float64 products

    def __call__(self, a: View, b: View, out: View) -> None:
        check_aligned((a, b))  # launches cannot check, as they get no arrays
        memory = cupy.cuda.alloc(self.size)
        b = b.swapaxes(1, 2)
        self.x.read(a, memory)
        self.y.read(b, memory)
        if self.residues is not None:
            of_residues = cupy.cuda.alloc(self.residues.size)
            self.residues.compute(a, b, of_residues)
            source = _source(self.residues, of_residues)
            self._round(self.parts[0], memory, source, out)
            return
        for part in self.parts:
            self._multiply(part, memory)
            self._round(part, memory, Words(memory.ptr + self.sums), out)

    def _multiply(self, part: _Part, memory: Any) -> None:
        """Launch the float64 products of a part."""
        k, n = self.x.extents[5], self.shape[2]
        sums = View(
            FLOAT64,
            memory + self.sums,
            (part.matrices, part.height, n),
            lying((part.matrices, part.height, n), 8),
        )
        for begin in range(0, max(k, 1), DEPTH):
            depth = min(DEPTH, k - begin)
            x, y = (
                View(
                    FLOAT64,
                    memory + rows.rows + 8 * (row * k + begin),
                    (part.matrices, height, depth),
                    (8 * k * rows.step, 8 * k, 8),
                )
                for rows, row, height in (
                    (self.x, part.first * self.x.step + part.top, part.height),
                    (self.y, part.first * self.y.step, n),
                )
            )
            current().gemm(x, y.swapaxes(1, 2), sums, "float64", beta=float(begin > 0))

    def _round(self, part: _Part, memory: Any, source: Any, out: View) -> None:
        """Launch the kernel that rounds the sums of a part, or integers."""
        (_, m, n), k = self.shape, self.x.extents[5]
        x_row = part.first * self.x.step + part.top
        y_row = part.first * self.y.step
        words = Words(
            memory.ptr + self.x.rows + 8 * k * x_row,
            memory.ptr + self.y.rows + 8 * k * y_row,
            memory.ptr + self.x.facts + FACTS * x_row,
            memory.ptr + self.y.facts + FACTS * y_row,
            self.x.step,
            self.y.step,
            part.height,
            n,
            k,
            self.rounding,
            *self.errors,
        )
        tiles = pieces(part.height, SIDE) * pieces(n, SIDE)
        to = out.at((part.first * m + part.top) * n * out.itemsize)
        current().launch(
            self.kernel, (tiles, part.matrices), (THREADS,), words, source, to
        )


def _source(residues: Residues, memory: Any) -> Any:
    """Return struct source."""
    x = np.zeros((), SOURCE)
    x["residues"] = memory.ptr + residues.products
    x["of_x"], x["of_y"] = (memory.ptr + i.rows for i in (residues.x, residues.y))
    x["plane"] = math.prod(residues.shape)
    x["by"] = reconstruction_of(residues.scheme.number).value
    return x


def plan(
    a: Matrices, b: Matrices, c: Matrices, rounding: int, *, by_integers: bool = False
) -> Writer:
    """Plan a correctly rounded product of stacks.

    Parameters
    ----------
    a, b : Matrices
        Operands (s, m, k) and (s, k, n) of float32 or float64, with any strides.
    c : Matrices
        Result (s, m, n) of float32 or float64 in C order. It must not overlap the
        operands.
    rounding : int
        A value of `enum tf_rounding`, except stochastic rounding.
    by_integers : bool
        Whether to multiply integers on int8 units instead of float64 numbers, if the
        device can. The bits are the same.

    Raises
    ------
    ValueError
        If an operand is too large for one launch.
    """
    if 0 in c.shape:
        return Launches()
    room = Room()
    x, y = _plan_rows(a, room), _plan_rows(b.flipped, room)
    s, m, n = c.shape
    residues = None
    if by_integers and wgmma.is_here() and 0 < a.shape[2] <= MOST_K and s <= MOST:
        scheme = Scheme("crt", moduli_for(a.shape[2], c.dtype))
        residues = plan_residues(a, b.flipped, c.shape, scheme, shares=True)
    parts = tuple(_parts(s, m, n)) if residues is None else (_Part(0, s, 0, m),)
    most = 0 if residues else max(part.matrices * part.height * n for part in parts)
    sums = room.place(8 * most)
    bits = np.array(errors(a.shape[2])).view(np.int64).tolist()
    return _ExactProduct(
        x,
        y,
        sums,
        room.size,
        (s, m, n),
        parts,
        rounding_kernel(c.dtype, residues is not None),
        rounding,
        tuple(bits),
        residues,
    )
