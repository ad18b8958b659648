"""Einstein summation: one matrix product for each pair of operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._base.caller import errors_at_caller
from .._base.options import refuse_unknown, shows
from .._base.wording import brief
from .._exact.rounding import dtype_into
from .._exact.sums import exact_sum
from .._formats.table import find_dtype, own_array
from .._formats.typed import Out
from .matmul import check_operands, matmul
from .precisions import (
    EXACT,
    PrecisionName,
    ProductOptions,
    Settings,
    resolve,
    whole_name,
)
from .subscripts import Plan, Product, Shape, View, parse, plan_for


class Functions(Protocol):
    """The functions that contract arrays, of NumPy or of another array library."""

    def asarray(self, x: Any) -> Any: ...
    def as_strided(
        self, x: Any, shape: Sequence[int], strides: Sequence[int]
    ) -> Any: ...
    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any: ...
    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any: ...
    def cast(self, x: Any, dtype: np.dtype[Any]) -> Any: ...
    def sum(self, x: Any, axis: tuple[int, ...], dtype: np.dtype[Any]) -> Any: ...
    def matmul(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any: ...
    def multiply(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any: ...
    def is_array(self, x: Any) -> bool: ...
    def copyto(self, out: Any, x: Any) -> None: ...


class _NumPy:
    """The functions of NumPy."""

    as_strided = staticmethod(np.lib.stride_tricks.as_strided)
    broadcast_to = staticmethod(np.broadcast_to)

    def asarray(self, x: Any) -> Any:
        return own_array(x)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)

    def cast(self, x: Any, dtype: np.dtype[Any]) -> Any:
        return x.astype(dtype, copy=False)

    def sum(self, x: Any, axis: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return np.asarray(np.sum(x, axis=axis, dtype=dtype))

    def matmul(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return np.matmul(x, y, dtype=dtype)

    def multiply(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return np.multiply(x, y, dtype=dtype)

    def is_array(self, x: Any) -> bool:
        return isinstance(x, np.ndarray)

    def copyto(self, out: Any, x: Any) -> None:
        np.copyto(out, x, casting="same_kind")


_NUMPY = _NumPy()


class _InPrecision(_NumPy):
    """The functions of NumPy, with matrix products in a precision."""

    def __init__(
        self, precision: PrecisionName | None, options: ProductOptions
    ) -> None:
        self._precision = precision
        self._multiply = partial(matmul, precision=precision, **options)

    def matmul(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return self._multiply(x, y, dtype=dtype)


class _InFloat32(_InPrecision):
    """Those of a precision for float32 operands."""

    def asarray(self, x: Any) -> Any:
        array = own_array(x)
        check_operands(array.dtype, np.dtype(np.float32), self._precision)
        return array


class _Exact(_InPrecision):
    """Exact sums and products, each rounded once."""

    def __init__(
        self, precision: PrecisionName | None, options: ProductOptions
    ) -> None:
        super().__init__(precision, options)
        self._rounding: Any = options.get("rounding") or "ties_to_even"
        self._sum = partial(exact_sum, rounding=self._rounding)

    def check(self, plan: Plan) -> None:
        """Refuse directions that the result would not have."""
        if plan.roundings > 1 and self._rounding.startswith("toward"):
            raise ValueError(
                "rounding must be 'ties_to_even' or 'ties_to_away' for subscripts that"
                f" need {plan.roundings} steps, each of which rounds; got"
                f" {self._rounding!r}. Compute the steps one by one"
            )

    def sum(self, x: Any, axis: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return np.asarray(self._sum(x, axis, dtype=dtype))

    def multiply(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return self._multiply(x, y, dtype=dtype)  # k is 1


def _functions_in(precision: PrecisionName | None, options: ProductOptions) -> _NumPy:
    if resolve(Settings(precision, **options)) is None:
        return _NUMPY
    name = whole_name(precision)
    kind = {None: _InFloat32, EXACT: _Exact}.get(name, _InPrecision)
    return kind(precision, options)


@overload
def einsum(
    subscripts: ArrayLike,
    *operands: Any,
    out: Out,
    dtype: DTypeLike | None = ...,
    optimize: bool | Sequence[Any] = ...,
    precision: PrecisionName | None = ...,
    **options: Unpack[ProductOptions],
) -> Out: ...
@overload
def einsum(
    subscripts: ArrayLike,
    *operands: Any,
    out: None = ...,
    dtype: DTypeLike | None = ...,
    optimize: bool | Sequence[Any] = ...,
    precision: PrecisionName | None = ...,
    **options: Unpack[ProductOptions],
) -> Any: ...
@shows(ProductOptions, Settings)
def einsum(
    subscripts: ArrayLike,
    *operands: Any,
    out: NDArray[Any] | None = None,
    dtype: DTypeLike | None = None,
    optimize: bool | Sequence[Any] = "greedy",
    precision: PrecisionName | None = None,
    **options: Unpack[ProductOptions],
) -> Any:
    """Sum products of arrays over the letters that the result does not have.

    This computes `numpy.einsum`, also for the formats of this package, and uses
    `numpy.matmul` for the products that are summed.

    Parameters
    ----------
    subscripts : str
        One letter for each dimension of each operand, ``...`` for any number of
        further dimensions, ``,`` between operands, and ``->`` before the letters of the
        result. Without ``->`` the result has the dimensions of ``...`` and then, in
        alphabetic order, the letters that occur once. Spaces do not matter.
    *operands : array_like
        As many arrays as the subscripts name. A letter has one length in all of
        them; a length of 1 is repeated as often as needed. You can also pass each
        operand with a list of the numbers 0 to 51 and Ellipsis instead of letters:
        ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
    out : ndarray, optional
        An array of the result's shape to write into; the result is converted to its
        dtype, by casting "same_kind". With "exact", one step rounds to its dtype.
    dtype : data-type, optional
        The dtype of every sum and product and of the result, by casting "same_kind".
        The default is `numpy.result_type` of the operands. Python numbers and lists
        count as the arrays that `numpy.asarray` makes of them.
    optimize : {"greedy", "optimal", True, False} or list or tuple
        The order of products if there are three operands or more. A name chooses it as
        `numpy.einsum_path` does; True means "greedy", False means from left to right.
        You can also pass a path that `numpy.einsum_path` returned, or a name with a
        limit of elements for intermediate results. Operands that are left together
        because of the limit are multiplied from left to right.
    precision : str or None
        The precision of the matrix products, as in `tf32dtype.matmul`. None: that of
        the enclosing scope. With "exact", every step below is exact, and rounds once.
    rounding, scale, special_values, device, instruction
        As in `tf32dtype.matmul`.

    Returns
    -------
    ndarray or scalar
        The result, or `out` if given. With one operand and nothing to sum, it is a view
        of the operand.

    Raises
    ------
    ValueError
        For subscripts that are malformed or do not fit the operands. For a directed
        `rounding` of more than one step. For letters of the
        result that occur twice in it or in no operand. For lengths of a letter that
        differ, an `out` of another shape, or an unknown `optimize`. For an unknown
        precision, and for a keyword that the precision does not use.
    TypeError
        If an operand does not convert to `dtype`, or the result to `out`. If `out` is
        not an array. For lists that hold anything but integers and Ellipsis. For
        operands that the precision is not for.

    See Also
    --------
    matmul : Multiply two arrays in a chosen precision.
    matmul_precision : Set the precision of float32 products, also of `numpy.einsum`.

    Notes
    -----
    Two operands are multiplied in at most three steps, each of which has results of
    `dtype` and rounds once:

    - letters that only one of the two has, and nothing else needs, are summed first,
      by ``np.sum(a, axis, dtype=dtype)``;
    - letters that both have, and nothing else needs, are the k of one
      ``np.matmul(a, b, dtype=dtype)``, in the order of the first operand, the last of
      them fastest;
    - without such letters the product is ``np.multiply(a, b, dtype=dtype)``.

    So ``"ij,jk->ik"`` rounds once and has the bits of ``a @ b``, three matrices round
    twice, and ``dtype=np.float32`` gives the float32 sums of the formats' products,
    which a third operand is multiplied with in float32.

    A precision replaces `numpy.matmul` in the second step by `tf32dtype.matmul`. For
    precisions of float32 operands, all steps are float32, and the result is rounded
    to `dtype` at the end. With "exact", the steps are those of `exact_sum` and
    `tf32dtype.matmul`. So one operand, and two operands without a first step, give the
    exact result, rounded once. Three operands are rounded after each step.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([[1, 2], [3, 4]], dtype=td.bfloat16)
    >>> td.einsum("ij,kj->ik", a, a)
    array([[ 5., 11.],
           [11., 25.]], dtype=bfloat16)
    >>> td.einsum("bij,bjk,k->bi", a[None], a[None], a[0], dtype=np.float32)
    array([[27., 59.]], dtype=float32)
    >>> x = np.array([1e8, 1, -1e8], dtype=np.float32)
    >>> td.einsum("i,i->", x, np.ones(3, dtype=np.float32), precision="exact")
    np.float32(1.0)
    """
    refuse_unknown("einsum", options, ProductOptions)
    functions = _functions_in(precision, options)
    steps = np.dtype(np.float32) if isinstance(functions, _InFloat32) else None
    result = contract(functions, subscripts, operands, out, dtype, optimize, steps)
    return result[()] if out is None else out


def contract(
    functions: Functions,
    subscripts: Any,
    operands: tuple[Any, ...],
    out: Any = None,
    dtype: DTypeLike | None = None,
    optimize: bool | Sequence[Any] = "greedy",
    steps: np.dtype[Any] | None = None,
) -> Any:
    """Compute `einsum` for arrays of any library; return the result, `out` if given.

    `steps` is the dtype of every sum and product, if it is not that of the result.
    """
    given, labels, output = parse(subscripts, operands)
    arrays = [functions.asarray(operand) for operand in given]
    for number, array in enumerate(arrays):
        if array.dtype.kind in "SUTmM" or array.dtype.type is np.void:
            raise TypeError(f"operand {number} must hold numbers; got {array.dtype}")
    plan = plan_for(labels, output, tuple([x.shape for x in arrays]), optimize)
    common = _common(arrays) if dtype is None else find_dtype(dtype)
    if isinstance(functions, _Exact):
        functions.check(plan)
        if dtype is None and plan.roundings <= 1:
            common = dtype_into(out, common)
    for number, array in enumerate(arrays):
        if array.dtype != common and not np.can_cast(array.dtype, common, "same_kind"):
            raise TypeError(
                f"operand {number} of dtype {array.dtype} cannot be cast to"
                f" dtype={common} by casting 'same_kind'"
            )
    if out is not None:
        if not functions.is_array(out):
            raise TypeError(f"out must be an array; got {brief(out)}")
        if out.shape != plan.shape:
            raise ValueError(
                f"out must have the result's shape {plan.shape}; got {out.shape}"
            )
    with errors_at_caller("einsum"):
        array = _run(functions, plan, arrays, steps or common)
        if dtype is not None:  # one operand and nothing summed, or another dtype
            array = functions.cast(array, common)
        if out is None:
            return array
        functions.copyto(out, array)
        return out


def _common(arrays: list[Any]) -> np.dtype[Any]:
    first, *others = [array.dtype for array in arrays]
    if all(dtype is first for dtype in others):
        return np.result_type(first)
    return np.result_type(first, *others)


# -- the steps of a plan -------------------------------------------------------------


def _run(
    functions: Functions, plan: Plan, arrays: list[Any], dtype: np.dtype[Any]
) -> Any:
    values = [
        x if axes is None else _diagonal(functions, x, axes)
        for x, axes in zip(arrays, plan.diagonals, strict=True)
    ]
    for step in plan.steps:
        if isinstance(step, Product):
            a = _seen(functions, values[step.first.place], step.first, dtype)
            b = _seen(functions, values[step.second.place], step.second, dtype)
            multiply = functions.matmul if step.summed else functions.multiply
            values.append(_shaped(functions, multiply(a, b, dtype), step.shape))
        else:
            values.append(_seen(functions, values[step.place], step, dtype))
    return values[-1]


def _diagonal(functions: Functions, x: Any, places: tuple[tuple[int, ...], ...]) -> Any:
    """Return a view of an array whose labels are all different."""
    shape = [x.shape[axes[0]] for axes in places]
    strides = [sum(x.strides[axis] for axis in axes) for axes in places]
    return functions.as_strided(x, shape, strides)


def _seen(functions: Functions, x: Any, view: View, dtype: np.dtype[Any]) -> Any:
    if view.axes:
        x = functions.sum(x, view.axes, dtype)
    if view.order is not None:
        x = x.transpose(view.order)
    if view.whole is not None:
        x = functions.broadcast_to(x, view.whole)
    return _shaped(functions, x, view.shape)


def _shaped(functions: Functions, x: Any, shape: Shape | None) -> Any:
    return x if shape is None or x.shape == shape else functions.reshape(x, shape)
