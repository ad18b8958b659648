"""Share the memory of arrays with other libraries through DLPack.

The type codes are those of dlpack.h, version 1.3, which has no code for tf32. In
DLPack, FP6 and FP4 values are packed unless a flag says that each value fills a byte.
Arrays of this package use one byte per value. Capsules from before version 1.0 have no
flags.

This module makes and reads the capsules itself. NumPy before 2.5 exchanges only its own
dtypes, and no version exchanges values of less than a byte.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import _core
from .._base.wording import brief
from .._formats import bit_packing
from .._formats.codes import from_bits
from .._formats.table import Format, as_own, formats, own_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: The type codes of formats whose values fill whole bytes.
CODES = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
#: The type codes of formats with less than 8 bits per value.
NARROW_CODES = {"float6_e2m3fn": 15, "float6_e3m2fn": 16, "float4_e2m1fn": 17}
#: The type codes of NumPy's own dtypes.
_NUMPYS = {
    "i1 i2 i4 i8": 0,
    "u1 u2 u4 u8": 1,
    "f2 f4 f8": 2,
    "c8 c16": 5,
    "b1": 6,
}
#: The type code and the number of bits of each dtype.
_TYPES: dict[np.dtype[Any], tuple[int, int]] = {
    **{
        np.dtype(name): (code, 8 * np.dtype(name).itemsize)
        for names, code in _NUMPYS.items()
        for name in names.split()
    },
    **{
        formats[name].dtype: (code, formats[name].bits)
        for name, code in (CODES | NARROW_CODES).items()
    },
}
_DTYPES = {code_and_bits: dtype for dtype, code_and_bits in _TYPES.items()}

_CPU = (1, 0)
#: Kinds of memory that the CPU can read: its own, and memory pinned or managed by CUDA
#: or ROCm.
_HOST = (1, 3, 11, 13)
_GPUS = {2: "a CUDA GPU", 10: "a ROCm GPU"}
_NEWEST = (1, 3)
_OLD = "the consumer asked for DLPack before 1.0, which"


def register(formats: Mapping[str, Format]) -> None:
    """Register the type codes with NumPy, if its version supports that."""
    register_dtype = getattr(np.dtypes, "register_dlpack_dtype", None)
    if register_dtype is None:
        return
    for name, code in CODES.items():
        form = formats[name]
        try:
            register_dtype((code, form.bits), form.dtype)
        except ValueError:
            # NumPy has registered the type of another package for this code. Export
            # with the code works nevertheless.
            continue


# -- arrays to others ------------------------------------------------------------------


def to_dlpack(a: ArrayLike) -> DLPackExporter:
    """Export an array through the DLPack protocol.

    Parameters
    ----------
    a : array_like
        An array of any format except tf32, or of NumPy's boolean, integer,
        floating-point and complex dtypes.

    Returns
    -------
    DLPackExporter
        An object for `from_dlpack` of other libraries, with `__dlpack__` and
        `__dlpack_device__`. This object and the tensors that are made from it keep the
        array alive.

    Raises
    ------
    BufferError
        For a dtype that DLPack does not support.
    TypeError
        For a masked array.

    See Also
    --------
    from_dlpack : Import an array through the protocol.

    Notes
    -----
    FP6 and FP4 are exchanged as one value per byte, with the flag for unpacked values.
    A read-only array has the flag for read-only memory. Consumers from before DLPack
    1.0, which has no flags, are refused in both cases. Negative strides and views of
    read-only memory (``np.memmap(..., "r")``, bytes) are also refused: some libraries
    end the process, or write to the memory.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([1.5, 2], td.bfloat16)
    >>> td.from_dlpack(td.to_dlpack(a))
    array([1.5, 2. ], dtype=bfloat16)
    """
    _refuse_mask(a)
    array = own_array(a)
    if array.dtype not in _TYPES:
        raise BufferError(_no_type(array.dtype))
    return DLPackExporter(array)


def _refuse_mask(a: object) -> None:
    if isinstance(a, np.ma.MaskedArray):
        raise TypeError(
            "array must not have a mask in DLPack; got a masked array a. Use a.data and"
            " a.mask"
        )


def _no_type(dtype: np.dtype[Any]) -> str:
    if dtype.name == "tf32":
        return (
            "dtype must be one that DLPack has; got tf32. Use"
            " td.to_dlpack(a.view(np.float32)), which has the same bits"
        )
    if not dtype.isnative:
        return (
            f"dtype must have native byte order in DLPack; got {dtype}. Use"
            " a.astype(a.dtype.newbyteorder('='))"
        )
    return f"dtype must be one that DLPack has; got {dtype}"


class DLPackExporter:
    """An array for `from_dlpack` of other libraries, as `to_dlpack` returns it."""

    __slots__ = ("_array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the DLPack device of the array, which is always the CPU."""
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule, as the array API standard defines it.

        Parameters
        ----------
        stream : None
            Must be None on the CPU.
        max_version : (int, int), optional
            The newest DLPack version that the consumer reads. None: before 1.0.
        dl_device : (int, int), optional
            The requested device, which must be the CPU.
        copy : bool, optional
            True exports a copy; otherwise the memory is shared.

        Raises
        ------
        BufferError
            For another device or a stream. For read-only memory without ``copy=True``.
            For a consumer from before DLPack 1.0, if the array needs a flag.
        """
        if stream is not None:
            raise BufferError(f"stream must be None on the CPU; got {brief(stream)}")
        if dl_device is not None and tuple(dl_device) != _CPU:
            raise BufferError(
                f"dl_device must be the CPU, {_CPU}; got {brief(dl_device)}"
            )
        from .._base.mapping import is_protected  # it loads mmap and numpy.typing

        array = self._array.copy() if copy else self._array
        if is_protected(array):
            raise BufferError(
                "array must have writable memory; got a mapped file or bytes, to which"
                " some libraries (PyTorch) write. Use a.copy()"
            )
        code, bits = _TYPES[array.dtype]
        is_versioned = max_version is not None and max_version[0] >= 1
        if not is_versioned and bits < 8:
            raise BufferError(f"{_OLD} cannot mark {array.dtype} as unpacked")
        if not is_versioned and not array.flags.writeable:
            raise BufferError(f"{_OLD} cannot mark an array as read-only; use a.copy()")
        return _core.dlpack_export(array, code, bits, is_versioned, bool(copy))

    def __repr__(self) -> str:
        return f"<DLPack of {brief(self._array)}>"


# -- arrays of others ------------------------------------------------------------------


def from_dlpack(
    x: Any, /, *, device: Literal["cpu"] | None = None, copy: bool | None = None
) -> NDArray[Any]:
    """Import an array of another library through the DLPack protocol.

    Parameters
    ----------
    x : object
        An object with `__dlpack__` (a tensor of PyTorch, an array of JAX or NumPy) in
        memory that the CPU can read. Or a DLPack capsule, which can be used only once.
    device : {"cpu"}, optional
        "cpu" asks the other library to copy the values to the CPU.
    copy : bool, optional
        True: always copy. False: never copy. None: copy only if the memory cannot be
        shared.

    Returns
    -------
    ndarray
        An array of a format or a NumPy dtype. It is read-only if the other library says
        so, or cannot say it (capsules from before DLPack 1.0). Packed FP4 and FP6
        values are unpacked to a copy. For pairs of FP4 (PyTorch's `float4_e2m1fn_x2`),
        the last axis becomes twice as long.

    Raises
    ------
    TypeError
        For an object without `__dlpack__`; for a masked array; for a `copy` that is not
        True, False or None.
    ValueError
        For another `device`.
    BufferError
        For memory of a GPU. For types that neither NumPy nor this package has. With
        ``copy=False`` if a copy is needed. For capsules that were used before or that
        do not describe a valid array.

    See Also
    --------
    to_dlpack : Export an array through the protocol.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> td.from_dlpack(np.arange(3, dtype=np.int8))
    array([0, 1, 2], dtype=int8)
    """
    if device not in (None, "cpu"):
        raise ValueError(f"device must be 'cpu' or None; got {brief(device)}")
    from .._base.arguments import checked_flag  # `import tf32dtype` need not load it

    copy = checked_flag(copy, "copy", optional=True)
    if isinstance(x, np.ndarray):  # NumPy has no capsules for all of our formats
        _refuse_mask(x)
        own: NDArray[Any] = np.asarray(as_own(x))
        return own.copy() if copy else own.view()
    if type(x).__name__ == "PyCapsule":
        return _array_of(x, copy)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"x must have __dlpack__; got {brief(x)}. Use np.asarray(x)")
    if device is None and hasattr(x, "__dlpack_device__"):
        _check_device(x.__dlpack_device__())
    return _array_of(_capsule_of(x, device, copy), copy)


def _capsule_of(x: Any, device: str | None, copy: bool | None) -> Any:
    wishes: dict[str, Any] = {}
    if device is not None:
        wishes["dl_device"] = _CPU
    if copy is False:  # True need not be passed on: the copy is made here
        wishes["copy"] = False
    try:
        return x.__dlpack__(max_version=_NEWEST, **wishes)
    except TypeError:  # before DLPack 1.0 there are no such keywords
        if device is not None:
            raise
        return x.__dlpack__()


def _check_device(device: Any) -> None:
    try:
        kind, _ = map(int, device)
    except (TypeError, ValueError):
        raise BufferError(
            f"device of x must be a kind and a number; got {brief(device)}"
        ) from None
    if kind in _HOST:
        return
    copies = 'td.from_dlpack(x, device="cpu") for a copy'
    if kind in _GPUS:
        copies = f"tf32dtype.cuda.asarray(x) for a GPU array, {copies}"
    raise BufferError(
        "x must be in memory of the CPU; got"
        f" {_GPUS.get(kind, f'a device of DLPack kind {kind}')}. Use {copies}"
    )


def _array_of(capsule: Any, copy: bool | None) -> NDArray[Any]:
    device, kind, shape, strides, offset, is_writeable, is_padded = (
        _core.dlpack_describe(capsule)
    )
    _check_device(device)
    code, bits, lanes = kind
    dtype = _DTYPES.get((code, bits))
    is_pairs = kind == (NARROW_CODES["float4_e2m1fn"], 4, 2)
    if dtype is None or (lanes != 1 and not is_pairs):
        raise BufferError(
            f"type of x must be that of a dtype; got DLPack type {code} with"
            f" {bits} bits and {lanes} lanes"
        )
    if any(length < 0 for length in shape):
        raise BufferError(f"shape of x must be integers of 0 or more; got {shape}")
    if strides is None:
        strides = _in_order(shape)
    is_packed = bits < 8 and (is_pairs or not is_padded)
    if not is_packed:
        _check_memory(shape, strides, offset, dtype.itemsize)
        steps = tuple(step * dtype.itemsize for step in strides)
        found = _core.dlpack_take(capsule, dtype, shape, steps, is_writeable)
        return found.copy() if copy else found
    if copy is False:
        raise BufferError(f"copy must not be False for packed {dtype}; got False")
    if is_pairs:
        _check_memory(shape, strides, offset, 1)
        pairs = _core.dlpack_take(capsule, np.dtype(np.uint8), shape, strides, False)
        unpacked = bit_packing.unpack(pairs[..., np.newaxis], bits)
        *others, last = shape or (1,)
        return from_bits(unpacked.reshape(*others, 2 * last), dtype)
    return _unpacked(capsule, dtype, bits, shape, strides, offset)


def _unpacked(
    capsule: Any,
    dtype: np.dtype[Any],
    bits: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int | None,
) -> NDArray[Any]:
    """Unpack values that are stored without gaps, the first in the lowest bits."""
    in_order = _in_order(shape)
    count = math.prod(shape)
    if count and any(
        length > 1 and step != wanted
        for length, step, wanted in zip(shape, strides, in_order, strict=True)
    ):
        raise BufferError(f"packed {dtype} x must be contiguous; got strides {strides}")
    size = -(-count * bits // 8)
    _check_memory((size,), (1,), offset, 1)
    packed = _core.dlpack_take(capsule, np.dtype(np.uint8), (size,), (1,), False)
    whole = np.zeros(-(-size // 3) * 3, np.uint8)  # groups of FP6 fill three bytes
    whole[:size] = packed
    codes = bit_packing.unpack(whole, bits)[:count]
    return from_bits(codes.reshape(shape), dtype)


def _in_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array in C order, in elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _check_memory(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int | None,
    itemsize: int,
) -> None:
    """Raise BufferError for an array that is too large or has no memory."""
    lengths = [max(length, 1) for length in shape]
    ends = [length * abs(step) for length, step in zip(lengths, strides, strict=True)]
    most = max(sum(ends) + 1, math.prod(lengths)) * itemsize + (offset or 0)
    if most > sys.maxsize:
        raise BufferError(
            f"x must fit in memory; got shape {shape} and strides {strides}"
        )
    if offset is None and 0 not in shape:
        raise BufferError(f"x must have memory for shape {shape}; got a null pointer")
