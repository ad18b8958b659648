"""Create GPU arrays from a shape, or from arrays and scalars of other libraries."""

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
    """Return a dtype that arrays of this class can have.

    Raises
    ------
    TypeError, ValueError
        If `dtype` is neither a format nor float32.
    """
    try:
        if find_dtype(dtype) == FLOAT32:
            return FLOAT32
    except TypeError:
        pass  # the error of `find` lists the formats
    return find(dtype).dtype


def asarray(
    x: Any,
    dtype: TargetLike | None = None,
    *,
    rounding: Rounding = "ties_to_even",
    overflow: Overflow = "ieee",
) -> ndarray:
    """Convert an object to an array on the GPU, of a format or of float32.

    Parameters
    ----------
    x : array_like
        A NumPy array, scalar or list, which is copied to the current device; a CuPy
        array; or an object with `__dlpack__` (PyTorch tensors, for example) or
        `__cuda_array_interface__`. The result shares the memory of a GPU array if no
        cast is needed. A dtype of ml_dtypes counts as the format of the same name.
    dtype : str, dtype or type, optional
        A format, or float32 (default: the dtype of `x`, which must be one of these).
    rounding, overflow : str
        How to cast, as for `tf32dtype.quantize`. Nothing is rounded if `x` has the
        dtype already.

    Returns
    -------
    ndarray
        An array with the shape of `x`; `x` itself if it is an `ndarray` of this dtype.
        Arrays of float32 are also of this class, so that `tf32dtype.matmul_precision`
        affects their matrix products.

    Raises
    ------
    TypeError
        If `x` has another dtype and `dtype` is not given, if `dtype` is neither a
        format nor float32, or if `x` is not real.
    ValueError
        If the format, the rounding or the overflow is unknown. "stochastic" is not
        supported on a GPU.

    See Also
    --------
    quantize : Round also to float16, and arrays that have the dtype already.
    ndarray.get : Copy the array to the host.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> tfc.asarray([1.1, 2.2], td.tf32)
    array([1.1, 2.2], dtype=tf32)
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
    """Return an array on the GPU, cast to a dtype if one is wanted.

    With `always`, also round an array that has the dtype already.
    """
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
        # CuPy does not have this dtype: cast on the host, rounding once.
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
    """Round values once to a format, float16 or float32, on the GPU.

    Parameters
    ----------
    x : array_like
        Values to round, as for `asarray`.
    dtype : str, dtype or type
        The format to round to, or float16 or float32.
    rounding, overflow : str
        How to round, as for `tf32dtype.quantize`.

    Returns
    -------
    ndarray or cupy.ndarray
        The rounded values, with the shape of `x` and the dtype `dtype`. float16 gives a
        plain CuPy array.

    Raises
    ------
    TypeError
        If `x` is not real, or `dtype` is not one of these.
    ValueError
        If the format, the rounding or the overflow is unknown. "stochastic" is not
        supported on a GPU.

    See Also
    --------
    asarray : Convert an object to an array on the GPU.
    tf32dtype.quantize : Round values on the CPU.

    Examples
    --------
    >>> import tf32dtype.cuda as tfc
    >>> tfc.quantize([0.3, 500.0], "fp8_e4m3", overflow="saturate").get().tolist()
    [0.3125, 448.0]
    """
    wanted = target_dtype(dtype)
    found = _of_dtype(x, wanted, rounding, overflow, always=True)
    if wanted == np.float16 or isinstance(found, ndarray):
        return found
    return wrap(found, wanted)


# -- from a shape ----------------------------------------------------------------------


def zeros(shape: Any, dtype: TargetLike) -> ndarray:
    """Return a new array of zeros.

    All codes are 0. The format float8_e8m0fnu has no zero: its code 0 is 2^-127.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : str, dtype or type
        A format, or float32.

    Returns
    -------
    ndarray
        An array of this shape and dtype on the current device.

    Raises
    ------
    TypeError
        If `dtype` is neither a format nor float32.
    ValueError
        If the format is unknown.

    See Also
    --------
    empty, ones, full
    zeros_like : Take the shape and dtype of another array.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> tfc.zeros(3, td.bfloat16)
    array([0., 0., 0.], dtype=bfloat16)
    """
    wanted = element_dtype(dtype)
    storage = STORAGE[wanted.itemsize]
    return wrap(backend.current().call("zeros", shape, storage), wanted)


def ones(shape: Any, dtype: TargetLike) -> ndarray:
    """Return a new array filled with ones.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : str, dtype or type
        A format, or float32.

    Returns
    -------
    ndarray
        An array of this shape and dtype on the current device.

    Raises
    ------
    TypeError
        If `dtype` is neither a format nor float32.
    ValueError
        If the format is unknown.

    See Also
    --------
    empty, zeros, full
    ones_like : Take the shape and dtype of another array.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> tfc.ones(3, td.bfloat16)
    array([1., 1., 1.], dtype=bfloat16)
    """
    return full(shape, 1, dtype)


def full(shape: Any, fill_value: Any, dtype: TargetLike | None = None) -> ndarray:
    """Return a new array filled with one value, which is cast once.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    fill_value : number
        Value of all elements.
    dtype : str, dtype or type, optional
        A format, or float32 (default: the dtype of `fill_value`).

    Returns
    -------
    ndarray
        An array of this shape and dtype on the current device.

    Raises
    ------
    TypeError
        If `dtype` is neither a format nor float32. If it is not given, and `fill_value`
        does not have such a dtype.
    ValueError
        If the format is unknown.

    See Also
    --------
    empty, zeros, ones
    full_like : Take the shape and dtype of another array.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> tfc.full(2, 1.5, td.bfloat16)
    array([1.5, 1.5], dtype=bfloat16)
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
    """Return a new uninitialized array of a format or of float32.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : str, dtype or type
        A format, or float32.

    Returns
    -------
    ndarray
        An array of this shape and dtype on the current device.

    Raises
    ------
    TypeError
        If `dtype` is neither a format nor float32.
    ValueError
        If the format is unknown.

    See Also
    --------
    zeros, ones, full
    empty_like : Take the shape and dtype of another array.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> tfc.empty((2, 3), td.bfloat16).shape
    (2, 3)
    """
    return empty(shape, element_dtype(dtype))


def _like(x: Any, dtype: Any, shape: Any) -> tuple[Any, Any]:
    return (x.shape if shape is None else shape), (x.dtype if dtype is None else dtype)


def empty_like(
    x: Any, dtype: TargetLike | None = None, *, shape: Any = None
) -> ndarray:
    """Return a new uninitialized array with the shape and dtype of another array.

    Parameters
    ----------
    x : cupy.ndarray
        Array that gives the defaults.
    dtype : str, dtype or type, optional
        A format, or float32 (default: the dtype of `x`).
    shape : int or tuple of int, optional
        Shape of the result (default: the shape of `x`).

    Returns
    -------
    ndarray
        An array on the current device.

    Raises
    ------
    TypeError, ValueError
        As for `empty`.

    See Also
    --------
    empty : Name the shape and the dtype.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> x = tfc.asarray([1, 2], td.bfloat16)
    >>> tfc.empty_like(x).shape
    (2,)
    """
    return new(*_like(x, dtype, shape))


def zeros_like(
    x: Any, dtype: TargetLike | None = None, *, shape: Any = None
) -> ndarray:
    """Return a new array of zeros with the shape and dtype of another array.

    Parameters
    ----------
    x : cupy.ndarray
        Array that gives the defaults.
    dtype : str, dtype or type, optional
        A format, or float32 (default: the dtype of `x`).
    shape : int or tuple of int, optional
        Shape of the result (default: the shape of `x`).

    Returns
    -------
    ndarray
        An array on the current device.

    Raises
    ------
    TypeError, ValueError
        As for `zeros`.

    See Also
    --------
    zeros : Name the shape and the dtype.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> x = tfc.asarray([1, 2], td.bfloat16)
    >>> tfc.zeros_like(x)
    array([0., 0.], dtype=bfloat16)
    """
    return zeros(*_like(x, dtype, shape))


def ones_like(x: Any, dtype: TargetLike | None = None, *, shape: Any = None) -> ndarray:
    """Return a new array of ones with the shape and dtype of another array.

    Parameters
    ----------
    x : cupy.ndarray
        Array that gives the defaults.
    dtype : str, dtype or type, optional
        A format, or float32 (default: the dtype of `x`).
    shape : int or tuple of int, optional
        Shape of the result (default: the shape of `x`).

    Returns
    -------
    ndarray
        An array on the current device.

    Raises
    ------
    TypeError, ValueError
        As for `ones`.

    See Also
    --------
    ones : Name the shape and the dtype.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> x = tfc.asarray([1, 2], td.bfloat16)
    >>> tfc.ones_like(x)
    array([1., 1.], dtype=bfloat16)
    """
    return ones(*_like(x, dtype, shape))


def full_like(
    x: Any, fill_value: Any, dtype: TargetLike | None = None, *, shape: Any = None
) -> ndarray:
    """Return a new array of one value with the shape and dtype of another array.

    Parameters
    ----------
    x : cupy.ndarray
        Array that gives the defaults.
    fill_value : number
        Value of all elements.
    dtype : str, dtype or type, optional
        A format, or float32 (default: the dtype of `x`).
    shape : int or tuple of int, optional
        Shape of the result (default: the shape of `x`).

    Returns
    -------
    ndarray
        An array on the current device.

    Raises
    ------
    TypeError, ValueError
        As for `full`.

    See Also
    --------
    full : Name the shape and the dtype.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> x = tfc.asarray([1, 2], td.bfloat16)
    >>> tfc.full_like(x, 1.5)
    array([1.5, 1.5], dtype=bfloat16)
    """
    shape, dtype = _like(x, dtype, shape)
    return full(shape, fill_value, dtype)


# -- codes -----------------------------------------------------------------------------


def bits(x: Any) -> Any:
    """Return the codes of an array on a GPU.

    Parameters
    ----------
    x : cupy.ndarray
        Array of a format.

    Returns
    -------
    cupy.ndarray
        A copy as uint8, uint16 or uint32, with the shape of `x`. Unused bits are zero.

    Raises
    ------
    TypeError
        If `x` is not a CuPy array of a format.

    See Also
    --------
    from_bits : Return an array from its codes.
    tf32dtype.bits : Return the codes of an array on the CPU.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> tfc.bits(tfc.asarray([1, -2], td.bfloat16))
    array([16256, 49152], dtype=uint16)
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
    """Create an array of a format on a GPU from its codes.

    Parameters
    ----------
    codes : array_like of int
        Integers on the host, or a CuPy array of the unsigned dtype that `bits` returns.
    dtype : str, dtype or type
        The format.
    dirty : {"raise", "ignore"}
        Whether codes with unused bits set raise a ValueError. If the format has unused
        bits, "raise" (default) waits for the GPU to check the codes.

    Returns
    -------
    ndarray
        An array of the format with the shape of `codes`; a view of `codes` if they are
        on the GPU.

    Raises
    ------
    ValueError
        If an integer is not a code, or if the format or `dirty` is unknown.
    TypeError
        If `codes` are not integers, or on the GPU of another dtype than `bits` returns.
        If `dtype` is not a format.

    See Also
    --------
    bits : Return the codes of an array.
    tf32dtype.from_bits : Create an array on the CPU.

    Examples
    --------
    >>> import tf32dtype.cuda as tfc
    >>> tfc.from_bits([0x3F80, 0xC000], "bfloat16")
    array([ 1., -2.], dtype=bfloat16)
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
