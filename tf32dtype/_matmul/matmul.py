"""Multiply arrays in a chosen precision."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._base.caller import reports_errors
from .._base.matrices import as_out, unwrapped
from .._base.options import refuse_unknown
from .._base.wording import brief
from .._formats.table import as_own, find_dtype, own_array
from .precisions import PrecisionName, ProductOptions, Settings, resolve

_REMEDIES = {
    "float16": "Cast them, x.astype(np.float32), or call td.tensor_core.matmul",
    "float64": "Cast them, x.astype(np.float32), or multiply in the scope of"
    " td.matmul_precision({}, float64=True)",
    "complex64": "Multiply in the scope of td.matmul_precision({}, complex64=True)",
    "complex128": "Multiply in the scope of"
    " td.matmul_precision({}, float64=True, complex64=True)",
}


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
    """Compute `tf32dtype.matmul` without a bound."""
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
