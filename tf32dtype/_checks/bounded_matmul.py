"""Multiply arrays in a chosen precision, with a bound of the errors."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._base.arguments import checked_flag
from .._base.caller import errors_at_caller
from .._base.matrices import unwrapped
from .._base.options import refuse_unknown, shows
from .._base.wording import brief
from .._formats.table import format_of_dtype, own_array
from .._formats.typed import DTypeOf, Out, Scalar
from .._matmul import matmul as product
from .._matmul.precisions import (
    EXACT,
    Float32PrecisionName,
    PrecisionName,
    ProductOptions,
    Settings,
    whole_name,
)

Array = NDArray[Any]


@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = ...,
    dtype: DTypeLike | None = ...,
    out: Out | tuple[Out],
    bound: Literal[False] = ...,
    **options: Unpack[ProductOptions],
) -> Out: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = ...,
    dtype: DTypeOf[Scalar],
    out: None = ...,
    bound: Literal[False] = ...,
    **options: Unpack[ProductOptions],
) -> NDArray[Scalar]: ...
@overload
def matmul(
    a: NDArray[Scalar],
    b: NDArray[Scalar],
    *,
    precision: Literal["exact"],
    dtype: None = ...,
    out: None = ...,
    bound: Literal[False] = ...,
    **options: Unpack[ProductOptions],
) -> NDArray[Scalar]: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Float32PrecisionName,
    dtype: None = ...,
    out: None = ...,
    bound: Literal[False] = ...,
    **options: Unpack[ProductOptions],
) -> NDArray[np.float32]: ...
@overload
def matmul(
    a: NDArray[Scalar],
    b: NDArray[Scalar],
    *,
    precision: None = ...,
    dtype: None = ...,
    out: None = ...,
    bound: Literal[False] = ...,
) -> NDArray[Scalar]: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = ...,
    dtype: DTypeLike | None = ...,
    out: None = ...,
    bound: Literal[False] = ...,
    **options: Unpack[ProductOptions],
) -> NDArray[Any]: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = ...,
    dtype: DTypeLike | None = ...,
    out: NDArray[Any] | tuple[NDArray[Any]] | None = ...,
    bound: bool,
    **options: Unpack[ProductOptions],
) -> Any: ...
@shows(ProductOptions, Settings)
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = None,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | tuple[NDArray[Any]] | None = None,
    bound: bool = False,
    **options: Unpack[ProductOptions],
) -> Any:
    """Multiply matrices in a chosen precision.

    Parameters
    ----------
    a, b : array_like
        Operands of the shapes that `numpy.matmul` takes: (..., m, k) and (..., k, n).
        Their other axes broadcast. A vector of length k is a row as `a`, and a column
        as `b`. With a precision, the dtypes must promote to float32. "exact" also takes
        float64, complex numbers and the formats of this package.
    precision : str or None
        As in `matmul_precision`. None: the precision of the enclosing scope; without a
        scope, the result is NumPy's own. "crt2" to "crt20", also with "_fast", and
        "int8x2" to "int8x20" emulate float32 and float64 products on INT8 units, see
        :doc:`/reference/emulated_precisions`.
    dtype : dtype, optional
        The dtype of the result. The float32 sums are rounded to it once, ties to even;
        "exact" rounds the exact sums to it once; its default is the dtype of `out`.
        Without a precision this also applies to operands of this package's formats. If
        NumPy computes the result, `dtype` has the meaning it has for `numpy.matmul`.
    out : ndarray, optional
        An array of the result's shape to write into. It may overlap the operands.
    bound : bool
        Whether a bound of the error of each element is returned, too: see
        `error_bound`.
    rounding, scale, special_values, device, instruction
        As in `matmul_precision`. "exact" rounds results in the direction `rounding`.

    Returns
    -------
    ndarray or scalar
        The result of shape (..., m, n), without the axis that a vector lacks. Its dtype
        is `dtype`. The default is float32, or for "exact" and the emulated precisions
        the dtype that the operands promote to. `out` is returned if given.
    ndarray of float64
        Only with `bound`: the largest distance between each element and the exact
        product, rounding of operands included. Inf means that a sum may overflow, NaN
        that an operand is Inf or NaN.

    Raises
    ------
    ValueError
        For shapes that do not fit, and for an unknown precision. For a keyword that the
        precision does not use. For a device that has no model for the precision. For
        `bound` with a keyword that changes the rounding of operands, or in a scope.
    TypeError
        If the precision is not for the dtypes of the operands. Products of this
        package's formats have only one precision other than "exact", ``a @ b``. If
        float32 cannot be cast to `dtype`, or `dtype` to that of `out`. If `bound` is
        not True or False.
    MemoryError
        If memory is short. Then `out` is unchanged.

    See Also
    --------
    matmul_precision : Set the precision of all products in a scope.
    exact_sum : Sum an array exactly, and round once.
    error_bound : Bound the errors of a product, also of other programs.

    Notes
    -----
    Floating-point errors are reported as NumPy does (`numpy.errstate`): overflow for
    an Inf in the result whose row and column are finite, invalid for a NaN whose row
    and column hold none. See :doc:`/concepts/accumulation` for the order of the sums.

    With "exact", each element is the exact sum of the products, rounded once, and so
    does not depend on any order. A sum that is exactly zero is +0. Parts of complex
    results are rounded separately.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([[1.001, 2], [3, 4]], dtype=np.float32)
    >>> td.matmul(a, a, precision="bf16")
    array([[ 7., 10.],
           [15., 22.]], dtype=float32)
    >>> td.matmul(a, a, precision="tf32", dtype=np.float16)
    array([[ 7.004, 10.   ],
           [15.   , 22.   ]], dtype=float16)
    >>> x = np.array([1e8, 1, -1e8], dtype=np.float32)
    >>> td.matmul(x, np.ones(3, dtype=np.float32), precision="exact")
    np.float32(1.0)
    >>> c, bound = td.matmul(a, a, precision="bf16", bound=True)
    >>> bool((abs(c - a.astype(float) @ a.astype(float)) <= bound).all())
    True
    """
    if not checked_flag(bound, "bound"):
        return product.matmul(
            a, b, precision=precision, dtype=dtype, out=out, **options
        )
    refuse_unknown("matmul", options, ProductOptions)
    settings = Settings(precision, **options)
    _check(settings)
    with errors_at_caller("matmul"):
        x, y = own_array(a), own_array(b)
        kept = x, y
        target = unwrapped(out)
        if isinstance(target, np.ndarray):  # the bound needs the operands as they were
            kept = x.copy(), y.copy()
        result = product.matmul(
            x, y, precision=precision, dtype=dtype, out=out, **options
        )
        return result, _bound(*kept, np.asarray(result), settings)


def _check(settings: Settings) -> None:
    """Refuse settings for which there is no bound."""
    usual = Settings(settings.precision)
    whole = whole_name(settings.precision)
    rounds = whole == EXACT
    if whole is not None and not rounds:
        raise ValueError(
            f"precision must not be an emulated one with bound=True; got {whole!r}."
            " Compare its result with precision='exact'"
        )
    for name in ProductOptions.__optional_keys__:
        value = getattr(settings, name)
        if value != getattr(usual, name) and not (rounds and name == "rounding"):
            raise ValueError(
                f"{name} must not be given with bound=True; got {brief(value)}. For"
                " devices, use td.error_bound"
            )
    if settings.precision is None and _core.current_precision() is not None:
        raise ValueError(
            "precision must be given with bound=True in the scope of a precision; got"
            " None"
        )


def _bound(a: Array, b: Array, result: Array, settings: Settings) -> Array:
    from .error_bounds import error_bound

    if whole_name(settings.precision) == EXACT:
        if result.dtype.kind == "c":
            parts = [
                _of_exact(part, settings.rounding)
                for part in (result.real, result.imag)
            ]
            return np.hypot(*parts) * (1 + 2.0**-50)
        return _of_exact(result, settings.rounding)
    name: Any = settings.precision
    dtype: Any = result.dtype
    if format_of_dtype(np.result_type(a, b)) is None and name is None:
        if dtype not in (np.float32, np.float64):
            raise TypeError(
                "bound=True must be given with a precision, or with float32 or float64"
                f" operands; got {dtype}"
            )
        return error_bound(a, b, unit=dtype.name)
    single = a.astype(np.float32), b.astype(np.float32)
    return error_bound(*single, precision=name or "f32", dtype=dtype)


def _of_exact(result: Array, rounding: str | None) -> Array:
    """Return the largest error of correctly rounded results.

    It is half a unit in the last place to nearest, and one unit in other directions.
    """
    from .unit_bounds import Format

    form = Format.of(result.dtype)
    values = np.abs(result.astype(np.float64))
    with np.errstate(all="ignore"):
        unit = form.quantum(values)
    is_directed = str(rounding).startswith("toward")
    bound = unit if is_directed else unit / 2
    largest = values >= form.largest
    return np.where(np.isnan(values), np.nan, np.where(largest, np.inf, bound))
