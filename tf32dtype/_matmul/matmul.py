"""Multiply float32 arrays in a chosen precision."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._base.caller import reports_errors
from .._base.matrices import as_out, unwrapped
from .._base.options import refuse_unknown, shows
from .._base.wording import brief
from .._formats.table import as_own, find_dtype, own_array
from .._formats.typed import DTypeOf, Out, Scalar
from .precisions import PrecisionName, ProductOptions, Settings, resolve

_REMEDIES = {
    "float16": "Cast them, x.astype(np.float32), or call td.tensor_core.matmul",
    "float64": "Cast them, x.astype(np.float32), or multiply in the scope of"
    " td.matmul_precision({}, float64=True)",
    "complex64": "Multiply in the scope of td.matmul_precision({}, complex64=True)",
    "complex128": "Multiply in the scope of"
    " td.matmul_precision({}, float64=True, complex64=True)",
}


@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = ...,
    dtype: DTypeLike | None = ...,
    out: Out | tuple[Out],
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
    **options: Unpack[ProductOptions],
) -> NDArray[Scalar]: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName,
    dtype: None = ...,
    out: None = ...,
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
) -> NDArray[Scalar]: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = ...,
    dtype: DTypeLike | None = ...,
    out: None = ...,
    **options: Unpack[ProductOptions],
) -> NDArray[Any]: ...
@shows(ProductOptions, Settings)
@reports_errors("matmul")
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = None,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | tuple[NDArray[Any]] | None = None,
    **options: Unpack[ProductOptions],
) -> Any:
    """Multiply matrices in a chosen precision.

    Parameters
    ----------
    a, b : array_like
        Operands of the shapes that `numpy.matmul` takes: (..., m, k) and (..., k, n).
        Their other axes broadcast. A vector of length k is a row as `a`, and a column
        as `b`. With a precision, the dtypes must promote to float32.
    precision : str or None
        As in `matmul_precision`. None: the precision of the enclosing scope; without a
        scope, the result is NumPy's own.
    dtype : dtype, optional
        The dtype of the result. The float32 sums are rounded to it once, ties to even.
        Without a precision this also applies to operands of this package's formats. If
        NumPy computes the result, `dtype` has the meaning it has for `numpy.matmul`.
    out : ndarray, optional
        An array of the result's shape to write into. It may overlap the operands.
    rounding, scale, special_values, device, instruction
        As in `matmul_precision`.

    Returns
    -------
    ndarray or scalar
        The result of shape (..., m, n), without the axis that a vector lacks. Its dtype
        is `dtype`, float32 by default. `out` is returned if given.

    Raises
    ------
    ValueError
        For shapes that do not fit, and for an unknown precision. For a keyword that the
        precision does not use. For a device that has no model for the precision.
    TypeError
        With a precision, if the operands do not promote to float32, or are of a format
        of this package: their products have only one precision, ``a @ b``. If float32
        cannot be cast to `dtype`, or `dtype` to that of `out`.
    MemoryError
        If memory is short. Then `out` is unchanged.

    See Also
    --------
    matmul_precision : Set the precision of all products in a scope.

    Notes
    -----
    Floating-point errors are reported as NumPy does (`numpy.errstate`): overflow for
    an Inf in the result whose row and column are finite, invalid for a NaN whose row
    and column hold none. See :doc:`/concepts/accumulation` for the order of the sums.

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
    """
    refuse_unknown("matmul", options, ProductOptions)
    chosen = resolve(Settings(precision, **options))
    a, b = _operand(a), _operand(b)
    dtype = None if dtype is None else find_dtype(dtype)
    numpys: Any = np.matmul
    if chosen is None and dtype is None:
        return numpys(a, b, out=out)
    target: Any = unwrapped(out)
    if target is not None and not isinstance(target, np.ndarray):
        raise TypeError(f"out must be an array; got {brief(target)}")
    x, y = np.asanyarray(a), np.asanyarray(b)
    multiply: Any
    if chosen is not None and chosen.exact is not None:
        return chosen.exact.matmul(x, y, dtype, out)
    if chosen is not None:
        check_operands(x.dtype, y.dtype, precision)
        multiply = partial(product_in, x, y, chosen)
    elif (common := np.result_type(x, y)).type in _core.scalar_types:
        _core.prepare_product(x.dtype, y.dtype, common)
        multiply = partial(numpys, x, y, dtype=np.float32)
    else:
        chosen = _core.current_precision()
        if chosen is not None and chosen.exact is not None:
            return chosen.exact.matmul(x, y, dtype, out)
        if chosen is None or common != np.float32:
            return numpys(a, b, out=out, dtype=dtype)
        multiply = partial(product_in, x, y, chosen)
    if dtype is None or np.dtype(dtype) == np.float32:
        return multiply(out=out)
    if np.dtype(dtype).kind not in "fc":
        raise TypeError(f"dtype must be a floating-point dtype; got {dtype}")
    result = multiply().astype(dtype)
    if target is None:
        return result
    np.copyto(as_out(target, result.shape), result, casting="same_kind")
    return target


def _operand(x: Any) -> Any:
    """Return an array, or another object that np.matmul leaves the product to."""
    return as_own(x) if hasattr(x, "__array_ufunc__") else own_array(x)


def check_operands(
    a: np.dtype[Any],
    b: np.dtype[Any],
    precision: str | None,
    remedies: Mapping[str, str] = _REMEDIES,
) -> None:
    """Refuse dtypes of operands that a precision is not for.

    Raises
    ------
    TypeError
        It names a remedy, of those by the dtype that the operands promote to.
    """
    formats = [x.name for x in (a, b) if x.type in _core.scalar_types]
    if formats:
        raise TypeError(
            f"operands must be float32 with precision={precision!r}; got {formats[0]}."
            " Omit precision=, or cast to float32, x.astype(np.float32)"
        )
    common = np.result_type(a, b)
    if common != np.float32:
        remedy = remedies.get(common.name, "Cast them, x.astype(np.float32)")
        raise TypeError(
            f"operands must be float32 with precision={precision!r}; got {a} and"
            f" {b}. {remedy.format(repr(precision))}"
        )


def product_in(
    a: NDArray[Any],
    b: NDArray[Any],
    spec: _core.MatmulSpec,
    out: NDArray[Any] | None = None,
) -> Any:
    variable = _core.precision_variable
    token = variable.set((*variable.get(), _core.PrecisionScope(None, spec)))
    try:
        return _core.matmul(a, b, out=out)
    finally:
        variable.reset(token)
        del token  # a traceback would keep the scopes around this call
