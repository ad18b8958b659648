"""Convert arrays to codes, and codes to arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import _core
from .._base.wording import one_of
from .table import find, own_array

Dirty = Literal["raise", "ignore"]

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .typed import (
        DTypeOf,
        FormatLike,
        FormatNamed,
        InByte,
        InFourBytes,
        InTwoBytes,
        Scalar,
    )


@overload
def bits(a: InByte) -> np.uint8: ...
@overload
def bits(a: InTwoBytes) -> np.uint16: ...
@overload
def bits(a: InFourBytes) -> np.uint32: ...
@overload
def bits(a: NDArray[InByte]) -> NDArray[np.uint8]: ...
@overload
def bits(a: NDArray[InTwoBytes]) -> NDArray[np.uint16]: ...
@overload
def bits(a: NDArray[InFourBytes]) -> NDArray[np.uint32]: ...
@overload
def bits(a: ArrayLike) -> NDArray[np.unsignedinteger[Any]]: ...
def bits(a: ArrayLike) -> Any:
    """Return the codes of an array of one of the formats.

    Parameters
    ----------
    a : array_like
        An array, or a scalar, whose dtype is a format of this package or its like in
        ml_dtypes.

    Returns
    -------
    ndarray or unsigned integer
        uint8, uint16 or uint32 of the same shape. Unused bits are zero: the low 13
        of tf32, whose codes have float32's layout, and the high ones of fp6 and fp4.

    Raises
    ------
    TypeError
        If the dtype of `a` is not a format of this package.

    See Also
    --------
    from_bits : Create an array of a format from its codes.
    pack : Pack the codes in bytes, without unused bits.

    Examples
    --------
    >>> import tf32dtype as td
    >>> hex(td.bits(td.tf32(-1.5)))
    '0xbfc00000'
    """
    array = own_array(a)
    if array.dtype.type not in _core.scalar_types:
        raise TypeError(
            f"a must have a dtype of td.formats; got {array.dtype}. Use a.view with an"
            " unsigned integer for the bits of NumPy's dtypes"
        )
    return _core.bits_of(array)[()]


@overload
def from_bits(
    codes: ArrayLike, dtype: DTypeOf[Scalar], *, dirty: Dirty = ...
) -> NDArray[Scalar]: ...
@overload
def from_bits(
    codes: ArrayLike, dtype: FormatNamed, *, dirty: Dirty = ...
) -> NDArray[Any]: ...
def from_bits(
    codes: ArrayLike, dtype: FormatLike, *, dirty: Dirty = "raise"
) -> NDArray[Any]:
    """Create an array of a format from its codes.

    Parameters
    ----------
    codes : array_like of int
        Unsigned integers as `bits` returns them; other integers are converted if
        they fit.
    dtype : str, dtype or type
        The format.
    dirty : {"raise", "ignore"}
        How to treat codes with unused bits set. "raise" raises a ValueError. "ignore"
        keeps the bits, which every operation ignores.

    Returns
    -------
    ndarray
        An array of the format with the shape of `codes`. It is a view of `codes` if
        they are an array of the dtype that `bits` returns.

    Raises
    ------
    ValueError
        For an integer that is not a code, an unknown format or an unknown `dirty`.
    TypeError
        If `codes` are not integers, or `dtype` is not a format.

    See Also
    --------
    bits : Return the codes of an array.
    unpack : Read numbers from packed bytes.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.from_bits([0x7E, 0x08], "float8_e4m3fn").tolist()
    [448.0, 0.015625]
    """
    if dirty not in ("raise", "ignore"):
        raise ValueError(one_of("dirty", dirty, ("raise", "ignore")))
    form = find(dtype, "dtype")
    array = np.asarray(codes)
    if array.dtype.kind not in "ui":
        raise TypeError(f"codes must be integers; got {array.dtype}")
    wanted = np.dtype(f"u{form.itemsize}")
    if array.dtype != wanted:
        limits = np.iinfo(wanted)
        outside = (array < 0) | (array > limits.max)
        if outside.any():
            value = array[outside].flat[0]
            raise ValueError(
                f"codes of {form.name} must be from 0 to {limits.max}; got {int(value)}"
            )
        array = array.astype(wanted)
    index = list(_core.names).index(form.name)
    result: NDArray[Any] = _core.from_bits_of(array, index, dirty == "raise")
    return result


def code_chunks(
    array: NDArray[Any], size: int
) -> Iterator[NDArray[np.unsignedinteger[Any]]]:
    """Yield the codes of an array as files store them: little-endian, unused bits zero.

    Parameters
    ----------
    array : ndarray
        An array of one of the formats, of any layout.
    size : int
        Bytes of a chunk, at most.

    Yields
    ------
    ndarray of unsigned integers, shape (n,)
        Contiguous, in C order.
    """
    form = find(array.dtype)
    for chunk in little_endian_chunks(array.view(f"u{form.itemsize}"), size):
        yield bits(chunk.view(form.dtype))


def little_endian_chunks(array: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """Yield the bytes of an array of a NumPy dtype, as `code_chunks` does."""
    for chunk in chunks(array, size, dtype=array.dtype.newbyteorder("<")):
        yield np.ascontiguousarray(chunk)


def chunks(
    array: NDArray[Any],
    size: int,
    order: Literal["C", "F"] = "C",
    dtype: np.dtype[Any] | None = None,
) -> Any:
    """Return pieces of one axis and at most `size` bytes, in C or Fortran order.

    In the array's dtype, or its like of another byte order.
    """
    return np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_dtypes=dtype,
        casting="equiv",
        buffersize=max(1, size // max(1, array.itemsize)),
        order=order,
    )
