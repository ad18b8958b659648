"""Products of arrays of blocks, with one another and with other arrays."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._base.caller import cast
from .._base.matrices import check_k, checked_out, stack_of
from .._base.wording import one_of
from .._formats.table import find, find_dtype, own_array
from .._formats.typed import DTypeOf, Out, Scalar, Terms, ValueNamed
from .base import Blocks
from .scaled import Scaled

#: The most axes of a stack of matrices, which NumPy's iterators can handle.
_MOST_STACK = 32
Parts = tuple[NDArray[Any] | None, ...]
#: The block size if no operand has blocks.
_BLOCK = 128
#: Arrays of blocks in CPU memory: `BlockArray`.
HostBlocks = Blocks[NDArray[np.uint8], NDArray[np.float32]]


@overload
def matmul(
    a: Scaled[Any] | ArrayLike,
    b: Scaled[Any] | ArrayLike,
    *,
    terms: Terms | None = ...,
    dtype: DTypeOf[Any] | ValueNamed = ...,
    out: Out | tuple[Out],
) -> Out: ...
@overload
def matmul(
    a: Scaled[Any] | ArrayLike,
    b: Scaled[Any] | ArrayLike,
    *,
    terms: Terms | None = ...,
    out: None = ...,
) -> NDArray[np.float32]: ...
@overload
def matmul(
    a: Scaled[Any] | ArrayLike,
    b: Scaled[Any] | ArrayLike,
    *,
    terms: Terms | None = ...,
    dtype: DTypeOf[Scalar],
    out: None = ...,
) -> NDArray[Scalar]: ...
@overload
def matmul(
    a: Scaled[Any] | ArrayLike,
    b: Scaled[Any] | ArrayLike,
    *,
    terms: Terms | None = ...,
    dtype: ValueNamed,
    out: None = ...,
) -> NDArray[Any]: ...
def matmul(
    a: Scaled[Any] | ArrayLike,
    b: Scaled[Any] | ArrayLike,
    *,
    terms: Terms | None = None,
    dtype: DTypeOf[Any] | ValueNamed = np.float32,
    out: NDArray[Any] | tuple[NDArray[Any]] | None = None,
) -> Any:
    """Multiply matrices, one of them or both in blocks along k, or in tiles.

    The codes of blocks are decoded a few at a time during the multiplication: the
    values of the array are never in memory as a whole. The values of tiles are, as
    float32.

    Parameters
    ----------
    a, b : BlockArray, TileArray or array_like
        Operands of the shapes that `numpy.matmul` takes: (..., m, k) and (..., k, n).
        Their other axes broadcast. A vector of length k is a row as `a`, and a column
        as `b`. Blocks must be along k: the last axis of `a`, axis -2 of `b`, or the
        only axis of a vector. Blocks of two arrays must have the same size. One operand
        may be an array of float32, float16, a format of this package, or integers that
        are exact in float32.
    terms : {1, 3, 4}, optional
        The number of products of codes hi and residuals lo that are added. 1: only
        hi hi. 3: all except lo lo. 4 or None: all. Operands without residuals give the
        same result for each value.
    dtype : dtype
        The dtype of the result: float32 (default), float64, float16 or a format of this
        package.
        The float32 sums are rounded to it once, ties to even.
    out : ndarray, optional
        An array of the result's shape to write into, with any strides. It may overlap
        an operand.

    Returns
    -------
    ndarray or scalar
        The result of shape (..., m, n), without the axis that a vector lacks. `out` is
        returned if given.

    Raises
    ------
    ValueError
        For shapes that do not fit, blocks along another axis, or blocks of two sizes.
        For other values of `terms`. For an `out` that has another shape or is
        read-only.
    TypeError
        If neither operand has blocks. For an operand of another dtype, such as float64,
        which would be rounded. For another dtype of the result, or a dtype that cannot
        be cast to that of `out`.
    MemoryError
        If memory is short. Nothing has been written then.

    See Also
    --------
    quantize : Round numbers to blocks.
    tf32dtype.tensor_core.matmul : Multiply blocks as a device does.
    tf32dtype.matmul : Multiply arrays without scales in a chosen precision.

    Notes
    -----
    For each block of k in order, and each term: hi hi, hi lo, lo hi, lo lo in order::

        s = fma(a[k], b[k], s)           for the k of the block in order, from s = +0
        c = fma(scale_a * scale_b, s, c) from c = +0, the product rounded to float32

    in float32, of elements; the scale of hi is the block's S, that of lo S * R rounded,
    that of an operand without blocks 1; if neither has any, 128 k are a block. So every
    machine gives the same bits. A NaN is the canonical positive one.

    Floating-point errors are reported as NumPy does (`numpy.errstate`): overflow for an
    Inf in the result whose row and column are finite, invalid for a NaN whose row and
    column hold none.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> weights = td.blocks.quantize(np.eye(64, dtype=np.float32), "mxfp4", axis=0)
    >>> td.blocks.matmul(np.arange(64, dtype=np.float32), weights)[:5]
    array([0., 1., 2., 3., 4.], dtype=float32)
    """
    if not isinstance(a, Scaled) and not isinstance(b, Scaled):
        raise TypeError(
            "a or b must be an array of blocks; for other arrays, use numpy.matmul"
        )
    if terms not in (None, 1, 3, 4) or isinstance(terms, bool):
        raise ValueError(one_of("terms", terms, (1, 3, 4, None)))
    x, y = _factor(a, 0), _factor(b, 1)
    block, stack = _checked(x, y)
    rows = () if x.is_vector else (x.lines,)
    columns = () if y.is_vector else (y.lines,)
    shape = (*stack, *rows, *columns)
    wanted = _result_dtype(dtype)
    native = wanted.newbyteorder("=")
    target = checked_out(out, shape, wanted)
    direct = target is not None and target.dtype == native and _is_apart(target, x, y)
    result = target if direct and target is not None else np.empty(shape, native)
    flags = _multiply(x, y, result, stack, block, terms or 4)
    if target is not None and not direct:
        np.copyto(target, cast(result, wanted), casting="same_kind")
    _core.report(flags, b"matmul")
    if target is not None:
        return target
    return cast(result, wanted)[()]


class _Factor(NamedTuple):
    """An operand as lines along k, in a stack of matrices."""

    #: numbers (*stack, lines, k); or codes, scales and residuals
    parts: Parts
    #: further arguments of the core: element, residual, scale format, tensor's scale
    facts: tuple[int, int, int, float] | None
    #: size of a block; 0 for plain numbers
    block: int
    shape: tuple[int, ...]
    stack: tuple[int, ...]
    lines: int
    k: int
    is_vector: bool

    def stacked(self, stack: tuple[int, ...]) -> Parts:
        """Return the parts with at least one axis of a stack."""
        own = len(self.stack)
        if not stack:
            return tuple(part if part is None else part[None] for part in self.parts)
        if stack == self.stack:
            return self.parts
        return tuple(
            part if part is None else np.broadcast_to(part, (*stack, *part.shape[own:]))
            for part in self.parts
        )

    def merged(self) -> _Factor:
        """Return all matrices of the stack as one."""
        own = len(self.stack) + 1
        lines = math.prod(self.stack) * self.lines
        parts = tuple(
            part if part is None else part.reshape(lines, *part.shape[own:])
            for part in self.parts
        )
        return self._replace(parts=parts, stack=(), lines=lines)

    def operand(self, parts: Parts) -> Any:
        """Return the operand in the form that the core takes."""
        return parts[0] if self.facts is None else (*parts, *self.facts)


def _is_blocks(x: object) -> TypeGuard[HostBlocks]:
    """Return whether an operand is an array of blocks in this machine's memory."""
    return isinstance(x, Blocks) and isinstance(x.buffer, np.ndarray)


def _factor(x: Scaled[Any] | ArrayLike, which: int) -> _Factor:
    name = "ab"[which]
    parts: Parts
    if _is_blocks(x):
        element, residual, scale, block = x._layout.core
        facts = (element, residual, scale, float(x.tensor_scale))
        shape = x.shape
        along = 0 if x.ndim == 1 else x.ndim - 1 - which
        if x.axis != along:
            raise ValueError(
                f"{name} must have its blocks along k, which is axis {along}; got"
                f" blocks along axis {x.axis} of shape {shape}"
            )
        parts = (x.codes, x.scales, x.residuals)
        if x.ndim == 1:
            parts = tuple(part if part is None else part[None] for part in parts)
    else:
        facts, block = None, 0
        numbers = _numbers(x, name)
        shape = numbers.shape
        if not shape:
            raise ValueError(f"{name} must have at least one axis; got a scalar")
        if len(shape) == 1:
            parts = (numbers[None],)
        else:
            parts = (numbers.swapaxes(-1, -2) if which else numbers,)
    if len(shape) == 1:
        return _Factor(parts, facts, block, shape, (), 1, shape[0], True)
    lines, k = shape[-2:] if which == 0 else shape[:-3:-1]
    return _Factor(parts, facts, block, shape, shape[:-2], lines, k, False)


def _numbers(x: object, name: str) -> NDArray[Any]:
    array = own_array(x)
    if array.dtype.type in _core.scalar_types:
        return array
    is_real = array.dtype.kind in "biuf" and array.dtype.isbuiltin != 2
    if is_real and np.can_cast(array.dtype, np.float32, "safe"):
        wanted = np.float16 if array.dtype == np.float16 else np.float32
        return array.astype(wanted, copy=False)
    raise TypeError(
        f"{name} must be float32, float16, a format of tf32dtype or integers that"
        f" float32 represents; got {array.dtype}. Use {name}.astype(np.float32)"
    )


def _checked(x: _Factor, y: _Factor) -> tuple[int, tuple[int, ...]]:
    """Return the size of blocks, and the shape of the stack."""
    sizes = [factor.block for factor in (x, y) if factor.block] or [_BLOCK]
    if sizes[0] != sizes[-1]:
        raise ValueError(
            f"a and b must have the same block size; got {sizes[0]} and {sizes[1]}"
        )
    if max(len(x.stack), len(y.stack)) > _MOST_STACK:
        raise ValueError(
            f"a and b must have at most {_MOST_STACK} axes before the last two; got"
            f" {max(len(x.stack), len(y.stack))}"
        )
    check_k(x.k, y.k, x.shape, y.shape)
    return sizes[0], stack_of(x.stack, y.stack, x.shape, y.shape)


def _result_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    wanted = find_dtype(np.float32 if dtype is None else dtype)
    if wanted.kind != "f" or wanted.itemsize > 8:
        try:
            return find(wanted).dtype
        except TypeError:
            raise TypeError(
                "dtype must be float32, float64, float16 or one of td.formats; got"
                f" {wanted}"
            ) from None
    return wanted


def _is_apart(target: NDArray[Any], *factors: _Factor) -> bool:
    """Return whether writing changes nothing that is still to be read, or written."""
    if any(
        np.may_share_memory(target, part)
        for factor in factors
        for part in factor.parts
        if part is not None
    ):
        return False
    lengths = zip(target.shape, target.strides, strict=True)
    return all(stride for length, stride in lengths if length > 1)


def _multiply(
    x: _Factor,
    y: _Factor,
    out: NDArray[Any],
    stack: tuple[int, ...],
    block: int,
    terms: int,
) -> int:
    """Write the product to `out`, of its shape, and return the floating-point flags."""
    if x.is_vector:
        out = out[..., None] if y.is_vector else out[..., None, :]
    if y.is_vector:
        out = out[..., None]
    if x.stack and math.prod(y.stack) == 1 and out.flags.c_contiguous:
        # Decode the one operand that all matrices of the stack share only once.
        x, y = x.merged(), y.merged()
        out, stack = out.reshape(x.lines, y.lines), ()
    if not stack:
        out = out[None]
    left, right = x.operand(x.stacked(stack)), y.operand(y.stacked(stack))
    return _core.block_matmul(left, right, out, x.k, block, terms)
