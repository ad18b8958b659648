"""The result of a collector: a program's matrix multiplications by call site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..notebooks import cell_of
from ..operand import Operand

Array = NDArray[Any]
Shape = tuple[int, int, int]


class Sample(NamedTuple):
    """Rows and columns of one product's operands."""

    #: (r, k) rows of op(A), in the product's own dtype: float32, float64, complex64 or
    #: complex128; they include the rows that hold A's largest magnitude
    a: Array
    #: (k, c) columns of op(B), likewise
    b: Array
    m: int
    n: int
    k: int
    #: whether all rows and columns are kept
    whole: bool


class Frame(NamedTuple):
    """A line that was being executed."""

    file: str
    line: int
    function: str
    #: the number of the notebook's cell that the code is in; None: it is in a file
    cell: int | None = None

    @property
    def name(self) -> str:
        """The file; a cell as the notebook shows it: "In [3]"."""
        return self.file if self.cell is None else f"In [{self.cell}]"

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {"file": self.name, "line": self.line, "function": self.function}


def frame_of(row: tuple[str, int, str] | None) -> Frame | None:
    """Return a frame from the file, line and function that `_core` has of it."""
    return row and Frame(*row, cell_of(row[0]))


class LaterSum(NamedTuple):
    """A sum or difference of a product's results, by a ufunc of NumPy."""

    #: "add" or "subtract"
    function: str
    #: frame of the sum; None: not known
    frame: Frame | None
    #: the bits of the product's results that cancel there, of all sampled calls: log2
    #: of the ratio of root mean squares, of the product's part to the sum; 0 if the sum
    #: is larger
    bits: float

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        frame = self.frame and self.frame.record()
        return {"function": self.function, "at": frame, "canceled_bits": self.bits}


@dataclass(frozen=True)
class CallSite:
    """All products of one call site in the source, by one routine, of one dtype.

    If the line multiplies by several constant operands, the products with one of them.
    """

    #: nearest frame of the user's code; None: no Python code below the call
    user: Frame | None
    #: innermost frame, if it is another one
    library: Frame | None
    #: the shared object that called BLAS
    caller: str
    #: "gemm", "syrk", "gemv", "dot", ...
    routine: str
    #: "float32", "float64", "complex64" or "complex128"
    dtype: str
    calls: int
    multiply_adds: int
    seconds: float
    #: (m, n, k): how often; the most frequent first, no more than the collector keeps
    shapes: dict[Shape, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    #: sums and differences of the results of sampled calls, those where the most bits
    #: cancel first
    later_sums: tuple[LaterSum, ...] = ()
    #: the constant operand; None: there is none, or only one
    operand: Operand | None = None


@dataclass(frozen=True)
class NotReached:
    """Work that no precision reaches."""

    #: "LAPACK", "FFT", "integer matmul", "einsum without optimize", ...
    kind: str
    #: name of the called function
    name: str
    calls: int
    #: None: not measured
    seconds: float | None
    #: option that would reach it; "" if none would
    remedy: str


@dataclass(frozen=True)
class Run:
    """A program's run, or that of a `with` block."""

    #: the program and its arguments; empty for a block
    argv: tuple[str, ...]
    seconds: float
    call_sites: tuple[CallSite, ...]
    not_reached: tuple[NotReached, ...]
    python: str
    numpy: str
    tf32dtype: str
    #: products that should have been kept, but were too large for the memory
    left_out: int = 0
    #: products without a call site, because there are too many call sites
    without_call_site: int = 0

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of all call sites."""
        return sum(site.multiply_adds for site in self.call_sites)

    @property
    def busy_seconds(self) -> float:
        """The program's time, or the products' if threads made them side by side."""
        return max(self.seconds, sum(site.seconds for site in self.call_sites))
