"""The arguments of a check: arrays as stacks of matrices, and scales."""

from __future__ import annotations

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

    #: results and operands as stacks of matrices: (s, m, n), (s, m, k), (s, k, n)
    d: Array
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
    promote_every: int | None
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

    def part(self, matrices: Array, rows: Array, columns: Array) -> Request:
        """Return some matrices, rows and columns."""

        def of(x: Array | None) -> Array | None:
            if x is None:
                return None
            full: Array = np.broadcast_to(x, self.d.shape)
            found: Array = full[np.ix_(matrices, rows, columns)]
            return found

        d = of(self.d)
        assert d is not None
        return replace(
            self,
            d=d,
            a=self.a[matrices][:, rows],
            b=self.b[matrices][:, :, columns],
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
    own_alpha = checked_number(alpha, "alpha")
    alpha, exponents = own_alpha, None
    if blocks is not None:
        a, b, exponents = blocks.a, blocks.b, blocks.exponents
        scale_a, scale_b = blocks.scale_a, blocks.scale_b
        alpha *= blocks.alpha
    a, b, d = _array(a, "a"), _array(b, "b"), _array(d, "d")
    left, right, stack, shape = as_matrices(a, b)
    check_shape(d.shape, shape, "d")
    if not (d.dtype.kind == "f" or format_of_dtype(d.dtype)):
        raise TypeError(f"d must have a floating-point dtype; got {d.dtype}")
    if d.size == 0:
        raise ValueError(f"d must not be empty; got shape {d.shape}")
    m, n, k = left.shape[-2], right.shape[-1], left.shape[-1]
    count = d.size // (m * n)
    whole = (count, m, n)
    return Request(
        d=d.reshape(whole),
        a=np.broadcast_to(left, (*stack, m, k)).reshape(count, m, k),
        b=np.broadcast_to(right, (*stack, k, n)).reshape(count, k, n),
        c=_added(c, "c", shape, whole),
        bias=_added(bias, "bias", shape, whole),
        alpha=alpha,
        beta=checked_number(beta, "beta"),
        scale_a=_scale(scale_a, "scale_a", m, k, 0),
        scale_b=_scale(scale_b, "scale_b", n, k, 1),
        promote_every=_length(promote_every),
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


def _array(x: Any, name: str) -> Array:
    """Return an array of NumPy, CuPy or PyTorch as NumPy's."""
    if hasattr(x, "__cuda_array_interface__"):
        x = x.get() if hasattr(x, "get") else x.cpu()
    return plain_array(x, name)


def _added(
    x: Any, name: str, shape: tuple[int, ...], whole: tuple[int, ...]
) -> Array | None:
    if x is None:
        return None
    array = _array(x, name).astype(np.float64)
    try:
        return np.broadcast_to(array, shape).reshape(whole)
    except ValueError:
        raise ValueError(
            f"{name} must broadcast to the shape of d, {shape}; got shape {array.shape}"
        ) from None


def _scale(x: Any, name: str, length: int, k: int, axis: int) -> Array | None:
    """Return scales of shape (length, groups), or (groups, length) for axis 1."""
    if x is None:
        return None
    array = _array(x, name).astype(np.float64)
    if array.ndim == 0 or array.size == 1:
        return np.full((length, 1) if axis == 0 else (1, length), array.reshape(()))
    if array.ndim == 2:
        lines, groups = array.shape if axis == 0 else array.shape[::-1]
        if 0 < groups <= max(k, 1) and lines and length % lines == 0:
            return np.repeat(array, length // lines, axis)
    words = (
        ("(m, groups)", "one for each row")
        if axis == 0
        else ("(groups, n)", "one for each column")
    )
    raise ValueError(
        f"{name} must be a number or have shape {words[0]}: {words[1]} and range of k;"
        f" got shape {array.shape} for {length} {'rows' if axis == 0 else 'columns'}"
    )


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
