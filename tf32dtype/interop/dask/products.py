"""Matrix products of dask arrays, with the same bits as in one process."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Unpack, get_args

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from ..._base.matrices import check_axes, check_k
from ..._base.options import refuse_unknown, shows
from ..._base.wording import brief
from ..._formats.table import Format, find_dtype, formats
from ..._functions.averages import FORMATS
from ..._matmul.matmul import matmul as multiply_matrices
from ..._matmul.precisions import (
    PrecisionName,
    ProductOptions,
    Settings,
    find_precision,
    resolve,
)
from ..._programs.context import current_settings
from .chains import Operand, Order, as_chunks, sum_over_k
from .reductions import is_ours, round_to

Function = Callable[..., Any]

_SINGLE = np.dtype(np.float32)
_CHAIN = 256
_CHAIN_OF_PARTS = 4096
#: The product of two chunks of formats, with float32 sums.
_multiply = partial(np.matmul, dtype=_SINGLE)


class _Way(NamedTuple):
    """The method to compute a product of two chunks."""

    #: the function that multiplies two stacks of matrices, with float32 sums
    multiply: Function
    #: the number of consecutive k that form one term of the sum; None: all of k
    chain: int | None
    #: the format that operands are scaled to; None without scaling
    scaled: Format | None = None
    #: whether each row and column has its own scale
    by_row: bool = False


@shows(ProductOptions, Settings)
def matmul(
    a: Any,
    b: Any,
    *,
    precision: PrecisionName | None = None,
    order: Order = "k",
    dtype: DTypeLike | None = None,
    **options: Unpack[ProductOptions],
) -> da.Array:
    """Multiply matrices in chunks, with the same bits as in one process.

    ``a @ b`` of dask arrays calls this function if their dtypes are formats of this
    package, or if they are float32 in a scope of `tf32dtype.matmul_precision`.

    Parameters
    ----------
    a, b : dask.array.Array or array_like
        Arrays of shapes (..., m, k) and (..., k, n), as for `numpy.matmul`. The other
        axes broadcast; a vector of length k is a row or a column. The dtypes are
        formats of this package or, with a precision, dtypes that promote to float32.
        Chunks along k are changed to multiples of 256, or of 4096 for precisions of
        several components (bf16x9, ...). With a `device`, k is a single chunk.
    precision : str or None
        As for `tf32dtype.matmul`. None: the precision of the scope that is open at this
        call. It is stored in the tasks and does not change before they run.
    order : {"k", "any"}
        "k": sums are added in the order of k, so the bits equal those of `numpy.matmul`
        for the whole arrays. "any": the chunks of k are computed in parallel, and their
        float32 sums are added in float64.
    dtype : dtype, optional
        The dtype that the float32 sums are rounded to, once. The default is the dtype
        of the result of `numpy.matmul`.
    rounding, scale, special_values, device, instruction
        As for `tf32dtype.matmul`.

    Returns
    -------
    dask.array.Array
        The product of shape (..., m, n), without the axis that a vector lacks.

    Raises
    ------
    ValueError
        For shapes that do not match; for chunks of unknown sizes; for an unknown
        precision or order; for ``scale="tensor"`` with a device.
    TypeError
        For dtypes that the precision does not support.

    See Also
    --------
    tensordot : Sum products over several axes.
    matmul_precision : Set the precision in all workers of a cluster.
    tf32dtype.matmul : Multiply arrays in memory.

    Examples
    --------
    >>> import dask.array as da, numpy as np, tf32dtype as td
    >>> a = da.ones((4, 1000), dtype=np.float32, chunks=(2, 500)) / 3
    >>> td.interop.dask.matmul(a, a.T, precision="bf16x9").compute()[0, 0]
    np.float32(111.111115)
    """
    refuse_unknown("matmul", options, ProductOptions)
    a, b = as_chunks(a, "a"), as_chunks(b, "b")
    way, target = _way(a, b, precision, dtype, **options)
    check_axes(a.shape, b.shape)
    is_row, is_column = a.ndim == 1, b.ndim == 1
    a = a[None] if is_row else a
    b = b[:, None] if is_column else b
    _check_lengths(a.shape[-1], b.shape[-2], a, b)
    scales = []
    if way.scaled is not None:
        both = (-2, -1)
        a, of_a = _scaled(a, way.scaled, (-1,) if way.by_row else both)
        b, of_b = _scaled(b, way.scaled, (-2,) if way.by_row else both)
        scales = [of_a, of_b]
    stack = max(a.ndim, b.ndim) - 2
    *others, m, k, n = range(stack + 3)
    result = sum_over_k(
        Operand(a, [*others[stack + 2 - a.ndim :], m, k]),
        Operand(b, [*others[stack + 2 - b.ndim :], k, n]),
        [*others, m, n],
        way.multiply,
        way.chain,
        _checked_order(order),
    )
    for scale in scales:
        result = result * scale
    result = result[..., 0, :] if is_row else result
    return round_to(result[..., 0] if is_column else result, target)


@shows(ProductOptions, Settings)
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: PrecisionName | None = None,
    order: Order = "k",
    dtype: DTypeLike | None = None,
    **options: Unpack[ProductOptions],
) -> da.Array:
    """Sum products over axes of two arrays in chunks, with the bits of one process.

    Parameters
    ----------
    a, b : dask.array.Array or array_like
        As for `matmul`. Each contracted axis except the first is made a single chunk.
    axes : int or two sequences of int
        As for `numpy.tensordot`.
    precision, order, dtype
        As for `matmul`.
    rounding, scale, special_values, device, instruction
        As for `matmul`.

    Returns
    -------
    dask.array.Array
        An array with the axes of `a` that are not contracted, then those of `b`.

    Raises
    ------
    ValueError, TypeError
        As for `matmul`, and for contracted axes whose lengths differ.

    See Also
    --------
    matmul : Multiply matrices.
    matmul_precision : Set the precision in all workers of a cluster.

    Examples
    --------
    >>> import dask.array as da, numpy as np, tf32dtype as td
    >>> a = da.ones((4, 8), dtype=np.float32, chunks=2)
    >>> c = td.interop.dask.tensordot(a, a, axes=([1], [1]), precision="bf16x9")
    >>> c.shape, c.compute()[0, 0]
    ((4, 4), np.float32(8.0))
    """
    refuse_unknown("tensordot", options, ProductOptions)
    a, b = as_chunks(a, "a"), as_chunks(b, "b")
    way, target = _way(a, b, precision, dtype, **options)
    a_axes, b_axes = _contracted(a, b, axes)
    a_free = [axis for axis in range(a.ndim) if axis not in a_axes]
    b_free = [axis for axis in range(b.ndim) if axis not in b_axes]
    for x, y in zip(a_axes, b_axes, strict=True):
        _check_lengths(a.shape[x], b.shape[y], a, b)
    x = _with_one_k(a.transpose(a_free + a_axes), len(a_axes))
    y = _with_one_k(b.transpose(b_free + b_axes), len(b_axes))
    k, left = len(a_free), list(range(len(a_free)))
    right = [k + 1 + i for i in range(len(b_free))]
    y = y.transpose([len(right), *range(len(right))])
    scales = []
    if way.scaled is not None:
        x, of_x = _scaled(x, way.scaled, (-1,) if way.by_row else tuple(range(x.ndim)))
        y, of_y = _scaled(y, way.scaled, (0,) if way.by_row else tuple(range(y.ndim)))
        scales = [of_x[(..., 0, *[None] * len(right))], of_y[0]]
    result = sum_over_k(
        Operand(x, [*left, k]),
        Operand(y, [k, *right]),
        left + right,
        partial(_multiply_flat, multiply=way.multiply),
        way.chain,
        _checked_order(order),
    )
    for scale in scales:
        result = result * scale
    return round_to(result, target)


# -- dask's functions ------------------------------------------------------------------


def matmul_answer(own: Function) -> Function:
    @functools.wraps(own)
    def answer(a: Any, b: Any) -> Any:
        return _answered(matmul, own, a, b)

    return answer


def tensordot_answer(own: Function) -> Function:
    @functools.wraps(own)
    def answer(lhs: Any, rhs: Any, axes: Any = 2) -> Any:
        return _answered(tensordot, own, lhs, rhs, axes)

    return answer


def _answered(function: Function, own: Function, a: Any, b: Any, *axes: Any) -> Any:
    """Multiply by our function if dask's result would differ from one process."""
    for x in (a, b):
        meta = getattr(x, "_meta", x)
        if not isinstance(meta, np.ndarray) or isinstance(meta, np.ma.MaskedArray):
            return own(a, b, *axes)
    if is_ours(a) or is_ours(b):
        is_for_us = _result_dtype(a, b) in FORMATS
        return (function if is_for_us else own)(a, b, *axes)
    settings = current_settings()
    common = np.result_type(a.dtype, b.dtype)
    if settings is None or not _obeys(settings, a, b, common):
        return own(a, b, *axes)
    if common == _SINGLE:
        return function(a, b, *axes)
    return function(a.astype(_SINGLE), b.astype(_SINGLE), *axes).astype(common)


def _obeys(settings: Settings, a: Any, b: Any, common: np.dtype[Any]) -> bool:
    """Return whether the open scope applies (see :doc:`/reference/precision`)."""
    if settings.plan is not None or min(a.ndim, b.ndim) == 0:
        return False
    is_dot = a.ndim == b.ndim == 1
    return (
        (common == _SINGLE or (common == np.float64 and settings.float64))
        and a.shape[-1] >= settings.min_size
        and (settings.has_dots() or not is_dot)
    )


def einsum_answer(own: Function) -> Function:
    """Replace einsum: sums of chunks stay float32 until all are added."""

    @functools.wraps(own)
    def answer(*operands: Any, dtype: Any = None, **kwargs: Any) -> Any:
        dtypes = [x.dtype for x in operands if isinstance(x, da.Array)]
        common = np.result_type(*dtypes) if dtypes else None
        if dtype is not None or common not in FORMATS:
            return own(*operands, dtype=dtype, **kwargs)
        return round_to(own(*operands, dtype=_SINGLE, **kwargs), common)

    return answer


# -- how -------------------------------------------------------------------------------


def _result_dtype(a: Any, b: Any) -> np.dtype[Any]:
    """Return the dtype of NumPy's product."""
    one, other = (np.zeros((1, 1), x.dtype) for x in (a, b))
    found: np.dtype[Any] = np.matmul(one, other).dtype
    return found


def _way(
    a: da.Array,
    b: da.Array,
    precision: str | None,
    dtype: DTypeLike | None,
    **options: Any,
) -> tuple[_Way, np.dtype[Any]]:
    """Return how to multiply, and the dtype that the sums are rounded to."""
    settings = Settings(precision, **options)
    resolve(settings)  # raises for invalid settings
    own = _result_dtype(a, b)
    target = own if dtype is None else find_dtype(dtype)
    if own in FORMATS:
        if precision is not None:
            raise TypeError(
                f"precision must be None for {own}; got {precision!r}. Use a @ b"
            )
        return _Way(_multiply, _CHAIN), target
    if precision is None:
        settings = current_settings() or settings
    if settings.precision is None or own != _SINGLE:
        raise TypeError(
            "a and b must have formats of tf32dtype or, with a precision, float32; got"
            f" {a.dtype} and {b.dtype}. Use dask.array for other dtypes"
        )
    return _way_of(settings), target


def _way_of(settings: Settings) -> _Way:
    assert settings.precision is not None
    row = find_precision(settings.precision)
    is_scaled = row.short.startswith("fp8")
    if is_scaled and settings.device is None:
        by_row = settings.scale == "row"
        return _Way(_multiply, _CHAIN, formats[row.format], by_row)
    if is_scaled and settings.scale == "tensor":
        raise ValueError(
            f"scale must be 'row' with device={settings.device!r}, because each chunk"
            " would have its own scale; got 'tensor'"
        )
    options = {
        name: getattr(settings, name) for name in ProductOptions.__optional_keys__
    }
    multiply = partial(multiply_matrices, precision=row.short, **options)
    if settings.device is not None:
        return _Way(multiply, None)
    return _Way(multiply, _CHAIN if row.components == 1 else _CHAIN_OF_PARTS)


def _checked_order(order: object) -> Order:
    for known in get_args(Order):
        if order == known:
            found: Order = known
            return found
    raise ValueError(f"order must be 'k' or 'any'; got {brief(order)}")


def _check_lengths(one: Any, other: Any, a: da.Array, b: da.Array) -> None:
    if math.isnan(one) or math.isnan(other):
        raise ValueError(
            f"k must have chunks of known sizes; got shapes {a.shape} and {b.shape}."
            " Use compute_chunk_sizes()"
        )
    check_k(one, other, a.shape, b.shape)


def _contracted(a: da.Array, b: da.Array, axes: Any) -> tuple[list[int], list[int]]:
    """Return the axes that `numpy.tensordot` sums over."""
    if isinstance(axes, int | np.integer):
        count = int(axes)
        pair: Sequence[Any] = range(a.ndim - count, a.ndim), range(count)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ValueError(
                f"axes must be from 0 to {min(a.ndim, b.ndim)} for arrays of {a.ndim}"
                f" and {b.ndim} axes; got {count}"
            )
    else:
        pair = axes
    found = []
    for x, given in zip((a, b), pair, strict=True):
        own = given if isinstance(given, Sequence) else [given]
        found.append(list(np.lib.array_utils.normalize_axis_tuple(own, x.ndim)))
    if len(found[0]) != len(found[1]):
        raise ValueError(f"axes must name as many of a as of b; got {brief(axes)}")
    return found[0], found[1]


def _with_one_k(x: da.Array, count: int) -> da.Array:
    """Merge the last `count` axes into one."""
    if count == 1:
        return x
    first = x.ndim - count
    x = x.rechunk({axis: -1 for axis in range(first + 1, x.ndim)})
    return x.reshape(*x.shape[:first], math.prod(x.shape[first:]))


def _multiply_flat(a: Any, b: Any, multiply: Function) -> Any:
    """Multiply arrays of shapes (..., k) and (k, ...) as matrices."""
    k = a.shape[-1]
    shape = a.shape[:-1] + b.shape[1:]
    rows, columns = math.prod(a.shape[:-1]), math.prod(b.shape[1:])
    return multiply(a.reshape(rows, k), b.reshape(k, columns)).reshape(shape)


# -- scales ----------------------------------------------------------------------------


def _scaled(
    x: da.Array, form: Format, axes: tuple[int, ...]
) -> tuple[da.Array, da.Array]:
    """Return values scaled to a format, and the factors to multiply them by.

    All values along the given axes share a factor.
    """
    x = x.astype(_SINGLE)
    most = da.reduction(x, _most, _most, axis=axes, keepdims=True, dtype=_SINGLE)
    scale = da.core.elemwise(partial(_scale, form=form), most, dtype=_SINGLE)
    return da.core.elemwise(
        partial(_over, form=form), x, scale, dtype=form.dtype
    ), scale


def _most(x: Any, axis: Any, keepdims: bool) -> Any:
    magnitudes: Any = np.where(np.isfinite(x), np.abs(x), _SINGLE.type(0))
    return magnitudes.max(axis, keepdims=keepdims, initial=0)


def _scale(most: Any, form: Format) -> Any:
    least = _SINGLE.type(2.0**-126)
    scale = np.maximum(most / _SINGLE.type(form.max), least)
    return np.where(most == 0, _SINGLE.type(1), scale)


def _over(x: Any, scale: Any, form: Format) -> Any:
    with np.errstate(all="ignore"):
        return (x / scale).astype(form.dtype)
