"""Arrays made: from what other libraries have, and from nothing."""

from __future__ import annotations

from typing import Any, Literal

import cupy
import numpy as np

from ..._base.wording import one_of
from ..._formats.codes import from_bits as host_from_bits
from ..._formats.quantize import Overflow, Rounding, target_dtype
from ..._formats.quantize import quantize as host_quantize
from ..._formats.table import find, find_dtype
from ..._formats.typed import TargetLike
from .._runtime import backend
from .._runtime.storage import STORAGE, is_ours, raw
from . import casts, interchange
from .ndarray import empty, ndarray, wrap

#: NumPy's dtypes that CuPy has, by their letters.
_CUPYS = "?bhilqBHILQefd"
FLOAT32 = np.dtype(np.float32)


def element_dtype(dtype: Any) -> np.dtype[Any]:
    """The same, for elements of this class.

    Raises
    ------
    TypeError, ValueError
        For all but the formats and float32.
    """
    try:
        if find_dtype(dtype) == FLOAT32:
            return FLOAT32
    except TypeError:
        pass  # `find` says what there is
    return find(dtype).dtype


def asarray(
    x: Any,
    dtype: TargetLike | None = None,
    *,
    rounding: Rounding = "ties_to_even",
    overflow: Overflow = "ieee",
) -> ndarray:
    """An array on the GPU of one of the formats, or of float32.

    Parameters
    ----------
    x : array_like
        NumPy arrays, scalars and lists, which are moved to the current device; CuPy
        arrays; whatever has `__dlpack__` (PyTorch's tensors) or
        `__cuda_array_interface__`, whose memory is used as it is if no cast is needed.
        ml_dtypes' types count as the formats of equal names.
    dtype : str, dtype or type, optional
        A format, or float32. By default that of `x`, which must be one of these.
    rounding, overflow : str
        Of the cast, as for `tf32dtype.quantize`. Nothing is rounded where `x` has the
        dtype already.

    Returns
    -------
    ndarray
        `x` itself if it is one of the dtype. Arrays of float32 are of this class so
        that their products obey `tf32dtype.matmul_precision`.

    Raises
    ------
    TypeError
        If `x` has another dtype and none is asked for, or has no real numbers.
    ValueError
        For an unknown format.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> tfc.asarray([1.1, 2.2], td.tf32)
    array([1.0996094, 2.1992188], dtype=tf32)
    """
    wanted = None if dtype is None else element_dtype(dtype)
    found = _of_dtype(x, wanted, rounding, overflow)
    return found if isinstance(found, ndarray) else wrap(found, found.dtype)


def _of_dtype(
    x: Any,
    wanted: Any,
    rounding: Rounding,
    overflow: Overflow,
    always: bool = False,
) -> Any:
    """On the GPU; `always` rounded, also what has the dtype already."""
    found = _on_device(x, wanted, rounding, overflow)
    own = find_dtype(found.dtype)
    if own.kind == "c":
        raise _complex(own)
    if own != found.dtype:
        found = wrap(found, own)
    if wanted is None:
        if not is_ours(own) and own != FLOAT32:
            raise _unnamed(own)
        wanted = own
    if own != wanted or always:
        found = casts.cast(
            found, wanted, rounding=rounding, overflow=overflow, copy=False
        )
    return found


def _unnamed(dtype: np.dtype[Any]) -> TypeError:
    return TypeError(
        f"dtype must be given for an array of {dtype}; use float32 or one of td.formats"
    )


def _complex(dtype: np.dtype[Any]) -> TypeError:
    return TypeError(f"x must hold real numbers; got {dtype}")


def _on_device(x: Any, wanted: Any, rounding: Rounding, overflow: Overflow) -> Any:
    if isinstance(x, cupy.ndarray):
        return x
    if not isinstance(x, np.ndarray | np.generic):
        if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
            x = interchange.from_dlpack(x)
            if isinstance(x, cupy.ndarray):
                return x
        elif hasattr(x, "__cuda_array_interface__"):
            return cupy.asarray(x)
    array = np.asarray(x)
    own = find_dtype(array.dtype)
    if own != array.dtype:
        array = array.view(own)
    if array.dtype.kind == "c":
        raise _complex(array.dtype)
    if not is_ours(own) and array.dtype.char not in _CUPYS:
        # What CuPy has no dtype for is cast on the host, once.
        if wanted is None:
            raise _unnamed(array.dtype)
        with np.errstate(all="ignore"):
            if array.dtype.kind not in "fiu":
                if (rounding, overflow) != ("ties_to_even", "ieee"):
                    raise TypeError(
                        f"x must have a numeric dtype for rounding={rounding!r},"
                        f" overflow={overflow!r}; got {array.dtype}"
                    )
                array = array.astype(wanted)
            else:
                array = host_quantize(
                    array, wanted, rounding=rounding, overflow=overflow
                )
                array = np.asarray(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if wanted is None and not is_ours(array.dtype) and array.dtype != FLOAT32:
        raise _unnamed(array.dtype)
    return interchange.put(array)


def quantize(
    x: Any,
    dtype: TargetLike,
    *,
    rounding: Rounding = "ties_to_even",
    overflow: Overflow = "ieee",
) -> Any:
    """Round numbers to a format, float16 or float32, once, in a chosen mode.

    Arrays of float16 are CuPy's own.

    Parameters
    ----------
    x : array_like
        As for `asarray`.
    dtype : str, dtype or type
        The format to round to; or float16 or float32.
    rounding, overflow : str
        As for `tf32dtype.quantize`.

    See Also
    --------
    asarray, tf32dtype.quantize
    """
    wanted = target_dtype(dtype)
    found = _of_dtype(x, wanted, rounding, overflow, always=True)
    if wanted == np.float16 or isinstance(found, ndarray):
        return found
    return wrap(found, wanted)


# -- from nothing ----------------------------------------------------------------------


def zeros(shape: Any, dtype: TargetLike) -> ndarray:
    """Codes 0: zeros, but for float8_e8m0fnu, which has none: there 2^-127.

    Parameters
    ----------
    shape : int or tuple of int
        Of the array.
    dtype : str, dtype or type
        A format, or float32.
    """
    wanted = element_dtype(dtype)
    storage = STORAGE[wanted.itemsize]
    return wrap(backend.current().call("zeros", shape, storage), wanted)


def ones(shape: Any, dtype: TargetLike) -> ndarray:
    """Ones.

    Parameters
    ----------
    shape : int or tuple of int
        Of the array.
    dtype : str, dtype or type
        A format, or float32.
    """
    return full(shape, 1, dtype)


def full(shape: Any, fill_value: Any, dtype: TargetLike | None = None) -> ndarray:
    """A number in all elements, cast once.

    Parameters
    ----------
    shape : int or tuple of int
        Of the array.
    fill_value : number
        What all elements are.
    dtype : str, dtype or type, optional
        A format, or float32; by default that of the number.
    """
    if dtype is None:
        found = getattr(fill_value, "dtype", None)
        if found is None or not (is_ours(found) or found == FLOAT32):
            raise _unnamed(np.asarray(fill_value).dtype)
        dtype = found
    result = new(shape, dtype)
    result[...] = fill_value
    return result


def new(shape: Any, dtype: TargetLike) -> ndarray:
    """Memory as it is, of one of the formats or float32.

    Parameters
    ----------
    shape : int or tuple of int
        Of the array.
    dtype : str, dtype or type
        A format, or float32.
    """
    return empty(shape, element_dtype(dtype))


def _like(x: Any, dtype: Any, shape: Any) -> tuple[Any, Any]:
    return (x.shape if shape is None else shape), (x.dtype if dtype is None else dtype)


def empty_like(
    x: Any, dtype: TargetLike | None = None, *, shape: Any = None
) -> ndarray:
    """Memory as it is, of the shape and dtype of an array.

    Parameters
    ----------
    x : cupy.ndarray
        The array.
    dtype : str, dtype or type, optional
        A format, or float32; by default that of `x`.
    shape : int or tuple of int, optional
        By default that of `x`.
    """
    return new(*_like(x, dtype, shape))


def zeros_like(
    x: Any, dtype: TargetLike | None = None, *, shape: Any = None
) -> ndarray:
    """`zeros` of the shape and dtype of an array.

    Parameters
    ----------
    x : cupy.ndarray
        The array.
    dtype : str, dtype or type, optional
        A format, or float32; by default that of `x`.
    shape : int or tuple of int, optional
        By default that of `x`.
    """
    return zeros(*_like(x, dtype, shape))


def ones_like(x: Any, dtype: TargetLike | None = None, *, shape: Any = None) -> ndarray:
    """`ones` of the shape and dtype of an array.

    Parameters
    ----------
    x : cupy.ndarray
        The array.
    dtype : str, dtype or type, optional
        A format, or float32; by default that of `x`.
    shape : int or tuple of int, optional
        By default that of `x`.
    """
    return ones(*_like(x, dtype, shape))


def full_like(
    x: Any, fill_value: Any, dtype: TargetLike | None = None, *, shape: Any = None
) -> ndarray:
    """`full` of the shape and dtype of an array.

    Parameters
    ----------
    x : cupy.ndarray
        The array.
    fill_value : number
        What all elements are.
    dtype : str, dtype or type, optional
        A format, or float32; by default that of `x`.
    shape : int or tuple of int, optional
        By default that of `x`.
    """
    shape, dtype = _like(x, dtype, shape)
    return full(shape, fill_value, dtype)


# -- codes -----------------------------------------------------------------------------


def bits(x: Any) -> Any:
    """Codes of an array of one of the formats, as `tf32dtype.bits` gives them.

    Parameters
    ----------
    x : cupy.ndarray
        Of one of the formats.

    Returns
    -------
    cupy.ndarray
        uint8, uint16 or uint32, a copy. Unused bits are zero.

    Raises
    ------
    TypeError
        If `x` is no CuPy array of one of the formats.
    """
    if not isinstance(x, cupy.ndarray):
        raise TypeError(f"x must be an array on a GPU; got {type(x).__name__}")
    form = find(x.dtype)
    used = ((1 << form.bits) - 1) << form.unused_low_bits
    mask = STORAGE[form.itemsize].type(used)
    return backend.current().call("bitwise_and", raw(x), mask)


def from_bits(
    codes: Any, dtype: TargetLike, *, dirty: Literal["raise", "ignore"] = "raise"
) -> ndarray:
    """An array of a format from its codes, as `tf32dtype.from_bits` makes it.

    Parameters
    ----------
    codes : array_like of int
        On the host, or a CuPy array of the unsigned integer type that `bits` gives.
    dtype : str, dtype or type
        The format.
    dirty : {"raise", "ignore"}
        What to do about codes with unused bits set. To raise a ValueError, the codes of
        formats that have such bits are looked at, which waits for the GPU.

    Returns
    -------
    ndarray
        A view of `codes` where they are on the GPU.
    """
    form = find(dtype)
    if not isinstance(codes, cupy.ndarray):
        return asarray(host_from_bits(codes, form.dtype, dirty=dirty))
    if dirty not in ("raise", "ignore"):
        raise ValueError(one_of("dirty", dirty, ("raise", "ignore")))
    storage = STORAGE[form.itemsize]
    if codes.dtype != storage:
        raise TypeError(f"codes must be {storage} for {form.name}; got {codes.dtype}")
    result = wrap(codes, form.dtype)
    if dirty == "raise" and form.bits != 8 * form.itemsize:
        host = backend.current().get(codes.view(storage, cupy.ndarray))
        host_from_bits(np.ascontiguousarray(host), form.dtype)
    return result


__all__ = [
    "asarray", "bits", "empty_like", "from_bits", "full", "full_like", "new", "ones",
    "ones_like", "quantize", "zeros", "zeros_like",
]  # fmt: skip
