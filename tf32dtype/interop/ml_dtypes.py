"""View arrays of this package under dtypes of ml_dtypes, and the reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.requirements import need
from .._formats.table import as_own, find, own_array, with_items

_DType = np.dtype[Any]


@overload
def as_ml_dtypes(a: np.generic) -> Any: ...
@overload
def as_ml_dtypes(a: ArrayLike) -> NDArray[Any]: ...
def as_ml_dtypes(a: ArrayLike) -> Any:
    """View an array under the dtype of ml_dtypes, for libraries that require it.

    Parameters
    ----------
    a : array_like
        An array or a scalar of a format that both packages have: all except tf32. In
        structured arrays, each field of such a format is viewed. Arrays of dtypes of
        NumPy and ml_dtypes are returned unchanged.

    Returns
    -------
    ndarray or scalar
        A view with the same shape and memory: writing to one array writes to the other.
        For a scalar, the result is a scalar.

    Raises
    ------
    TypeError
        For tf32, and for a dtype of another package.
    ImportError
        If ml_dtypes is needed but not installed.

    See Also
    --------
    from_ml_dtypes

    Notes
    -----
    This function imports ml_dtypes. After that, NumPy takes names such as "bfloat16"
    for dtypes of ml_dtypes: see `names`.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> td.as_ml_dtypes(np.array([1.5, 2], td.bfloat16))
    array([1.5, 2], dtype=bfloat16)
    """
    return _viewed(a, _theirs)


@overload
def from_ml_dtypes(a: np.generic) -> Any: ...
@overload
def from_ml_dtypes(a: ArrayLike) -> NDArray[Any]: ...
def from_ml_dtypes(a: ArrayLike) -> Any:
    """View an array of ml_dtypes under the dtype of this package.

    Functions of this package accept arrays of ml_dtypes without this view. Functions of
    NumPy compute with the code of the package that the dtype belongs to.

    Parameters
    ----------
    a : array_like
        An array or a scalar of ml_dtypes, of a format that both packages have. In
        structured arrays, each field of such a format is viewed. Arrays of dtypes of
        NumPy and this package are returned unchanged.

    Returns
    -------
    ndarray or scalar
        A view with the same shape and memory: writing to one array writes to the other.
        For a scalar, the result is a scalar.

    Raises
    ------
    TypeError
        For another dtype, such as int4 and the complex dtypes of ml_dtypes.

    See Also
    --------
    as_ml_dtypes

    Examples
    --------
    >>> import numpy as np, ml_dtypes, tf32dtype as td
    >>> td.from_ml_dtypes(np.array([1.5, 2], ml_dtypes.bfloat16)).dtype
    dtype(bfloat16)
    """
    return _viewed(a, _ours)


def _viewed(a: Any, change: Callable[[_DType], _DType]) -> Any:
    own = as_own(a)
    array = own if isinstance(own, np.ndarray | np.generic) else own_array(own)
    dtype = with_items(array.dtype, change)
    view: Any = array if dtype is array.dtype else np.asanyarray(array).view(dtype)
    return view[()] if isinstance(a, np.generic) else view


def _theirs(dtype: _DType) -> _DType:
    name = dtype.type.__name__
    if dtype.isbuiltin != 2 or dtype.type.__module__.startswith("ml_dtypes"):
        return dtype
    if find(dtype).name == "tf32":
        raise TypeError(
            "dtype must be one that ml_dtypes has; got tf32. Use a.view(np.float32)"
        )
    ml_dtypes = need("td.as_ml_dtypes", "ml-dtypes", "ml_dtypes")
    theirs: _DType = np.dtype(getattr(ml_dtypes, name))
    return theirs


def _ours(dtype: _DType) -> _DType:
    return dtype if dtype.isbuiltin != 2 else find(dtype).dtype
