"""The arguments of a check: arrays as stacks of matrices, and scales."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.arguments import checked_number
from .._base.matrices import as_matrices, check_shape
from .._base.wording import brief
from .._formats.table import format_of_dtype
from ..tensor_core.products import plain_array
from .block_operands import BlockOperands

Array = NDArray[Any]


@dataclass(frozen=True)
class Request:
    """The results to check, the operands, and all that is added or multiplied."""

    #: results as a stack of matrices, (s, m, n)
    d: Array
    #: operands of shapes (stack, m, k) and (stack, k, n), which may be broadcast
    a: Array
    b: Array
    #: arrays that broadcast to d, or None
    c: Array | None
    bias: Array | None
    alpha: float
    beta: float
    #: (m, groups) and (groups, n), or None
    scale_a: Array | None
    scale_b: Array | None
    #: k of a range with its own scales, or of a promotion; None: all of k
    group: int | None
    #: the stack's shape, and whether matrices have rows and columns or are vectors
    stack: tuple[int, ...]
    axes: tuple[bool, bool]
    #: the matrices, rows and columns of the product that d has
    matrices: Array
    rows: Array
    columns: Array
    #: number of elements of the product
    size: int
    #: operands that are arrays of blocks, and the exponents that their values are
    #: aligned by, of shapes (m, k) and (k, n)
    blocks: tuple[Any, Any] | None = None
    exponents: tuple[Array, Array] | None = None
    #: the alpha that was given; `alpha` includes the scales of arrays of blocks
    own_alpha: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether the results are a @ b."""
        others = (self.c, self.bias, self.scale_a, self.scale_b, self.exponents)
        return self.alpha == 1 and all(x is None for x in others)

    def whole_matrices_of(self, i: int) -> tuple[Array, Array]:
        """Return the operands of matrix i, with all rows and columns."""
        at = np.unravel_index(int(self.matrices[i]), self.stack or (1,))
        return (self.a[at], self.b[at]) if self.stack else (self.a, self.b)

    def matrices_of(self, i: int) -> tuple[Array, Array]:
        """Return the operands of matrix i."""
        a, b = self.whole_matrices_of(i)
        rows, columns = self.rows, self.columns
        whole = len(rows) == a.shape[0] and len(columns) == b.shape[1]
        return (a, b) if whole else (a[rows], b[:, columns])

    def part(self, matrices: Array, rows: Array, columns: Array) -> Request:
        """Return some matrices, rows and columns."""

        def of(x: Array | None) -> Array | None:
            if x is None:
                return None
            found: Array = x[np.ix_(matrices, rows, columns)]
            return found

        d = of(self.d)
        assert d is not None
        return replace(
            self,
            d=d,
            c=of(self.c),
            bias=of(self.bias),
            scale_a=None if self.scale_a is None else self.scale_a[rows],
            scale_b=None if self.scale_b is None else self.scale_b[:, columns],
            matrices=self.matrices[matrices],
            rows=self.rows[rows],
            columns=self.columns[columns],
            exponents=self.exponents
            and (self.exponents[0][rows], self.exponents[1][:, columns]),
        )

    def sampled(self, count: int) -> Request:
        """Return about so many elements of rows and columns drawn at random."""
        s, m, n = self.d.shape
        rng = np.random.default_rng(0)
        few = min(s, max(1, min(16, count)))
        side = max(1, round((count / few) ** 0.5))
        height = min(m, max(side, -(-count // (few * min(n, side)))))
        width = min(n, max(side, -(-count // (few * height))))
        return self.part(
            *(
                np.sort(rng.choice(length, some, replace=False))
                for length, some in ((s, few), (m, height), (n, width))
            )
        )

    def index(self, matrix: int, row: int, column: int) -> tuple[int, ...]:
        """Return the index of an element in the array that was given."""
        found = np.unravel_index(int(self.matrices[matrix]), self.stack or (1,))
        stack = [int(x) for x in found] if self.stack else []
        rows = [int(self.rows[row])] * self.axes[0]
        return (*stack, *rows, *[int(self.columns[column])] * self.axes[1])


def request(
    d: Any,
    a: Any,
    b: Any,
    c: Any,
    alpha: Any,
    beta: Any,
    bias: Any,
    scale_a: Any,
    scale_b: Any,
    promote_every: Any,
    blocks: BlockOperands | None = None,
) -> Request:
    """Check the arguments of `check_matmul` and return them as stacks of matrices."""
    given = a, b
    own_alpha = _finite(alpha, "alpha")
    alpha, exponents = own_alpha, None
    if blocks is not None:
        a, b, exponents = blocks.a, blocks.b, blocks.exponents
        scale_a, scale_b = blocks.scale_a, blocks.scale_b
        alpha *= blocks.alpha
    a, b, d = as_array(a, "a"), as_array(b, "b"), as_array(d, "d")
    left, right, stack, shape = as_matrices(a, b)
    check_shape(d.shape, shape, "d")
    if d.dtype.kind in "iub":
        raise TypeError(
            f"d must have a floating-point dtype; got {d.dtype}. Integer products are"
            " exact: use np.array_equal(d, np.matmul(a, b, dtype=np.int32))"
        )
    if not (d.dtype.kind == "f" or format_of_dtype(d.dtype)):
        raise TypeError(f"d must have a floating-point dtype; got {d.dtype}")
    m, n, k = left.shape[-2], right.shape[-1], left.shape[-1]
    count = math.prod(stack)
    whole = (count, m, n)
    factor = _finite(beta, "beta")
    of_a = _scale(scale_a, "scale_a", m, k, 0)
    of_b = _scale(scale_b, "scale_b", n, k, 1)
    of_a, of_b, group = _grouped(of_a, of_b, _length(promote_every), k)
    return Request(
        d=d.reshape(whole),
        a=np.broadcast_to(left, (*stack, m, k)),
        b=np.broadcast_to(right, (*stack, k, n)),
        c=None if factor == 0 else _added(c, "c", shape, whole),
        bias=_added(bias, "bias", shape, whole),
        alpha=alpha,
        beta=factor,
        scale_a=of_a,
        scale_b=of_b,
        group=group,
        stack=stack,
        axes=(a.ndim > 1, b.ndim > 1),
        matrices=np.arange(count),
        rows=np.arange(m),
        columns=np.arange(n),
        size=d.size,
        blocks=None if blocks is None else given,
        exponents=exponents,
        own_alpha=own_alpha,
    )


def as_array(x: Any, name: str) -> Array:
    """Return an array of NumPy, CuPy or PyTorch as NumPy's."""
    if hasattr(x, "detach"):  # a tensor of PyTorch
        x = x.detach().cpu()
    elif hasattr(x, "__cuda_array_interface__") and hasattr(x, "get"):
        x = x.get()
    try:
        return plain_array(x, name)
    except ValueError as error:
        raise ValueError(f"{name} must be an array; got {brief(x)} ({error})") from None


def _numbers(x: Any, name: str) -> Array:
    """Return real numbers in float64."""
    array = as_array(x, name)
    if not (array.dtype.kind in "biuf" or format_of_dtype(array.dtype)):
        raise TypeError(f"{name} must hold real numbers; got {array.dtype}")
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def _finite(x: Any, name: str) -> float:
    number = checked_number(x, name)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; got {brief(x)}")
    return number


def _added(
    x: Any, name: str, shape: tuple[int, ...], whole: tuple[int, ...]
) -> Array | None:
    if x is None:
        return None
    array = _numbers(x, name)
    try:
        return np.broadcast_to(array, shape).reshape(whole)
    except ValueError:
        raise ValueError(
            f"{name} must broadcast to the shape of d, {shape}; got shape {array.shape}"
        ) from None


#: Sides of the blocks that share a scale, the most frequent first.
_BLOCKS = (128, 32, 16, 64, 256, 512)


def _scale(x: Any, name: str, length: int, k: int, axis: int) -> Array | None:
    """Return scales of shape (length, groups), or (groups, length) for axis 1."""
    if x is None:
        return None
    array = _numbers(x, name)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; got Inf or NaN")
    if array.ndim == 0 or array.size == 1:
        return np.full((length, 1) if axis == 0 else (1, length), array.reshape(()))
    if array.shape == (length,):
        return np.expand_dims(array, 1 - axis)
    if array.ndim == 2:
        lines, groups = array.shape if axis == 0 else array.shape[::-1]
        side = _side(length, lines)
        if side and _side(k, groups):
            wide: Array = np.repeat(array, side, axis)
            return wide[:length] if axis == 0 else wide[:, :length]
    what, lines_of = ("(m, groups)", "row") if axis == 0 else ("(groups, n)", "column")
    raise ValueError(
        f"{name} must be a number, one number for each {lines_of}, or an array of shape"
        f" {what}, whose blocks divide {length} {lines_of}s and {k} k or have a side of"
        f" 128, 32, 16, 64, 256 or 512; got shape {array.shape}"
    )


def _side(length: int, blocks: int) -> int:
    """Return the side of blocks, of which the last may be shorter; 0 if none fits."""
    sides = [x for x in _BLOCKS if -(-length // x) == blocks]
    if blocks in (1, length) or (blocks > 0 and not sides and length % blocks == 0):
        return max(1, length // blocks)
    return sides[0] if sides else 0


def _grouped(
    a: Array | None, b: Array | None, promote: int | None, k: int
) -> tuple[Array | None, Array | None, int | None]:
    """Return scales with the same ranges of k, and the length of a range."""
    counts = [1 if a is None else a.shape[1], 1 if b is None else b.shape[0]]
    lengths = [_side(k, count) for count in counts if count > 1]
    if promote is not None:
        lengths.append(promote)
    if not lengths:
        return a, b, None
    group = min(lengths)
    for length in lengths:
        if length % group:
            raise ValueError(
                "ranges of k with one scale must be multiples of each other and of"
                f" promote_every; got ranges of {lengths} k"
            )
    total = max(1, -(-k // group))
    of_a = None if a is None else _repeated(a, 1, k, group, total)
    of_b = None if b is None else _repeated(b, 0, k, group, total)
    return of_a, of_b, group


def _repeated(x: Array, axis: int, k: int, group: int, total: int) -> Array:
    """Return scales with one number for each of `total` groups along an axis."""
    count = x.shape[axis]
    times = total if count == 1 else _side(k, count) // group
    return np.repeat(x, times, axis).take(range(total), axis)


def _length(every: Any) -> int | None:
    if every is None:
        return None
    try:
        found = operator.index(every)
    except TypeError:
        raise TypeError(
            f"promote_every must be an integer; got {brief(every)}"
        ) from None
    if found < 1:
        raise ValueError(f"promote_every must be 1 or more; got {found}")
    return found
