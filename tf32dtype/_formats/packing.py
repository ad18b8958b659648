"""Pack numbers in as few bytes as their bits need, as files of other libraries do."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.wording import brief, one_of
from . import bit_packing
from .codes import bits, from_bits
from .table import Format, find, own_array
from .typed import DTypeOf, FormatLike, FormatNamed, Scalar

Order = Literal["low", "high"]
Packed = ArrayLike | bytes | bytearray | memoryview


def pack(a: ArrayLike, *, order: Order = "low") -> NDArray[np.uint8]:
    """Pack numbers in bytes: two FP4 numbers in one byte, four FP6 numbers in three.

    Parameters
    ----------
    a : array_like
        An array of a format of this package, or of the same format of ml_dtypes.
    order : {"low", "high"}
        Where the first number of a byte is stored: in the low bits, as in safetensors,
        ONNX, DLPack and `tf32dtype.blocks`; or in the high bits. The bits of an FP6
        number continue in the next byte, from its low or high end.

    Returns
    -------
    ndarray of uint8
        A copy of shape ``(ceil(a.size * bits / 8),)``: the codes in C order, without
        gaps between rows. Unused bits of the last byte are 0. Codes of whole bytes are
        little-endian. A tf32 code takes the four bytes of a float32. For these formats
        the result is ``a.tobytes()``, except for unused bits.

    Raises
    ------
    TypeError
        If the dtype of `a` is not a format of this package.
    ValueError
        For an unknown order, and for "high" with a format wider than a byte: its bytes
        have only one order.

    See Also
    --------
    unpack : Read the numbers back.
    bits : Return the codes, one per item.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([[0.5, 1, 1.5], [2, 3, 4]], td.fp4)
    >>> td.pack(a).tolist() == [0x21, 0x43, 0x65]
    True
    >>> td.pack(a, order="high").tolist() == [0x12, 0x34, 0x56]
    True
    """
    array = own_array(a)
    form = find(array.dtype)
    high_first = _is_high_first(order, form)
    codes = bits(array.reshape(-1))
    if form.bits >= 8:
        little_endian = codes.astype(f"<u{form.itemsize}")
        return little_endian.view(np.uint8)
    size = _bytes_of(codes.size, form)
    short = -codes.size % bit_packing.group(form.bits)[0]
    if short:
        codes = np.concatenate([codes, np.zeros(short, codes.dtype)])
    return bit_packing.pack(codes, form.bits, high_first)[:size]


@overload
def unpack(
    packed: Packed,
    format: DTypeOf[Scalar],
    shape: int | Sequence[int],
    *,
    order: Order = ...,
) -> NDArray[Scalar]: ...
@overload
def unpack(
    packed: Packed,
    format: FormatNamed,
    shape: int | Sequence[int],
    *,
    order: Order = ...,
) -> NDArray[Any]: ...
def unpack(
    packed: Packed,
    format: FormatLike,
    shape: int | Sequence[int],
    *,
    order: Order = "low",
) -> NDArray[Any]:
    r"""Read numbers from packed bytes, made by `pack` or by another library.

    Parameters
    ----------
    packed : array_like of uint8, or bytes
        The bytes, read in C order; the array may have any shape. Rows of whole bytes,
        as in torch's float4_e2m1fn_x2, follow each other without gaps too.
    format : str, dtype or type
        The format.
    shape : int or tuple of int
        The shape of the result, counted in numbers.
    order : {"low", "high"}
        As for `pack`.

    Returns
    -------
    ndarray
        A copy, of the format's dtype.

    Raises
    ------
    TypeError
        If `packed` is not made of uint8, or `shape` of integers.
    ValueError
        If there are more bytes, or fewer, than the shape takes; if bits are set that
        belong to no number, which speaks for another shape or format; for an unknown
        format or order.

    See Also
    --------
    pack, from_bits
    tf32dtype.blocks.BlockArray.from_codes : For codes that have scales.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.unpack(b"\x21\x43\x65", "fp4", (2, 3)).tolist()
    [[0.5, 1.0, 1.5], [2.0, 3.0, 4.0]]
    """
    form = find(format)
    high_first = _is_high_first(order, form)
    lengths = _shape(shape)
    count = math.prod(lengths)
    flat = _as_bytes(packed)
    size = _bytes_of(count, form)
    if flat.size != size:
        raise ValueError(
            f"packed must have {size} bytes for {count} numbers of {form.name}, shape"
            f" {lengths}; got {flat.size}"
        )
    if form.bits >= 8:
        native = flat.view(f"<u{form.itemsize}").astype(f"u{form.itemsize}")
        numbers = from_bits(native, form.dtype, dirty="ignore")
        if form.unused_low_bits and (bits(numbers) != native).any():
            raise ValueError(
                f"packed must have zeros in the bits that {form.name} does not use; got"
                " other bits. To round float32 numbers, use"
                f" np.frombuffer(packed, '<f4').astype(td.{form.name})"
            )
        return numbers.reshape(lengths)
    of_group = bit_packing.group(form.bits)[1]
    short = -size % of_group
    if short:
        flat = np.concatenate([flat, np.zeros(short, np.uint8)])
    codes = bit_packing.unpack(flat, form.bits, high_first)
    if codes[count:].any():
        raise ValueError(
            f"packed must have zeros after the last of {count} numbers of {form.name},"
            f" shape {lengths}; got other bits in the last byte"
        )
    return from_bits(codes[:count], form.dtype, dirty="ignore").reshape(lengths)


def _bytes_of(count: int, form: Format) -> int:
    width = form.bits if form.bits < 8 else 8 * form.itemsize
    return -(-count * width // 8)


def _is_high_first(order: str, form: Format) -> bool:
    if not isinstance(order, str) or order not in ("low", "high"):
        raise ValueError(one_of("order", order, ("low", "high")))
    if order == "high" and form.bits > 8:
        raise ValueError(
            "order must be 'low' for a format of more than 8 bits; got 'high' for"
            f" {form.name}, whose bytes are little-endian"
        )
    return order == "high"


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    given: Any = shape
    try:
        lengths = given if hasattr(given, "__iter__") else (given,)
        found = tuple(operator.index(length) for length in lengths)
    except TypeError:
        raise TypeError(
            f"shape must be an integer or a tuple of integers; got {brief(shape)}"
        ) from None
    if min(found, default=0) < 0:
        raise ValueError(f"shape must not have negative lengths; got {found}")
    return found


def _as_bytes(packed: Any) -> NDArray[np.uint8]:
    if isinstance(packed, bytes | bytearray | memoryview):
        return np.frombuffer(packed, np.uint8)
    array = np.asarray(packed)
    if array.dtype != np.uint8:
        raise TypeError(f"packed must be bytes or a uint8 array; got {array.dtype}")
    return array.reshape(-1)
