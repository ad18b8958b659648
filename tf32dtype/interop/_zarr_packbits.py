"""The packbits codec of Zarr, which stores only the used bits of each value.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import parse_named_configuration

from .._formats.table import format_of_dtype

Padding = Literal["first_byte", "last_byte", "none"]


@dataclass(frozen=True, kw_only=True)
class PackBits(ArrayBytesCodec):
    """A codec that stores two FP4 values or eight bools per byte, four FP6 in three.

    Parameters
    ----------
    padding_encoding : {"none", "first_byte", "last_byte"}
        The position of an additional byte with the number of unused bits at the end.
    first_bit, last_bit : int, optional
        The first and last bit of each value to store, counted from the least
        significant bit. The default is all bits. When data are read, other bits are
        zeros, or copies of the last bit for signed integers. tf32 has bits 13 to 31.

    Raises
    ------
    ValueError
        For another `padding_encoding`, and for bits that are not integers of 0 or more.
        When an array is created, also for a dtype that the codec does not support or
        that lacks these bits.

    See Also
    --------
    tf32dtype.pack : Pack the numbers of an array in bytes.

    Examples
    --------
    >>> import numpy as np, zarr, tf32dtype as td
    >>> codec = td.interop.zarr.PackBits()
    >>> z = zarr.create_array(
    ...     {}, shape=4, dtype=np.dtype(td.fp4), serializer=codec, compressors=None
    ... )
    >>> z[:] = [0.5, 6, -1, 2]
    >>> codec.pack(z[:]).nbytes
    2
    """

    padding_encoding: Padding = "none"
    first_bit: int | None = None
    last_bit: int | None = None

    is_fixed_size = True

    def __post_init__(self) -> None:
        if self.padding_encoding not in get_args(Padding):
            raise ValueError(
                f"padding_encoding must be one of {', '.join(get_args(Padding))}; got"
                f" {self.padding_encoding!r}"
            )
        for name in ("first_bit", "last_bit"):
            bit = getattr(self, name)
            if bit is not None and (type(bit) is not int or bit < 0):
                raise ValueError(
                    f"{name} must be an integer of 0 or more, or None; got {bit!r}"
                )

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        _, found = parse_named_configuration(
            data, "packbits", require_configuration=False
        )
        facts: dict[str, Any] = found or {}
        try:
            return cls(**facts)
        except TypeError:
            raise ValueError(
                "configuration of packbits must have only padding_encoding, first_bit"
                f" and last_bit; got {facts}"
            ) from None

    def to_dict(self) -> Any:
        facts = {
            "padding_encoding": self.padding_encoding,
            "first_bit": self.first_bit,
            "last_bit": self.last_bit,
        }
        default = {"padding_encoding": "none"}
        said = {
            name: fact
            for name, fact in facts.items()
            if fact is not None and default.get(name) != fact
        }
        return {"name": "packbits"} | ({"configuration": said} if said else {})

    def validate(self, *, dtype: Any, **others: Any) -> None:
        self._bits(dtype.to_native_dtype())

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        dtype = chunk_spec.dtype.to_native_dtype()
        return self._packed_size(input_byte_length // dtype.itemsize, dtype)

    # New versions of zarr call the first two methods, older versions the others.

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        packed = self.pack(chunk_data.as_numpy_array())
        return chunk_spec.prototype.buffer.from_array_like(packed)

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        dtype = chunk_spec.dtype.to_native_dtype()
        array = self.unpack(chunk_data.as_numpy_array(), chunk_spec.shape, dtype)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(array)

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return self._encode_sync(chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return self._decode_sync(chunk_data, chunk_spec)

    def pack(self, array: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the packed bytes of the values of an array, in C order."""
        first, end = self._bits(array.dtype)
        size = array.dtype.itemsize
        item = np.dtype(f"u{size}")
        items = array.reshape(-1).view(item.newbyteorder(array.dtype.byteorder))
        low_first = items.astype(item.newbyteorder("<")).view(np.uint8)
        bits = np.unpackbits(low_first.reshape(-1, size), axis=1, bitorder="little")
        packed = np.packbits(bits[:, first:end], bitorder="little")
        padding = np.uint8(8 * packed.size - array.size * (end - first))
        match self.padding_encoding:
            case "first_byte":
                return np.insert(packed, 0, padding)
            case "last_byte":
                return np.append(packed, padding)
            case _:
                return packed

    def unpack(
        self, packed: NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """Return the array that `pack` has packed.

        Raises
        ------
        ValueError
            If the number of bytes, or the byte of padding, does not match the shape.
        """
        first, end = self._bits(dtype)
        size, count = dtype.itemsize, math.prod(shape)
        needed = self._packed_size(count, dtype)
        if packed.size != needed:
            raise ValueError(
                f"chunk must have {needed} bytes for {count} elements of {dtype} in the"
                f" packbits codec; got {packed.size}"
            )
        where = {"first_byte": 0, "last_byte": -1}.get(self.padding_encoding)
        if where is not None:
            padding = -count * (end - first) % 8
            if packed[where] != padding:
                raise ValueError(
                    f"{self.padding_encoding} must be {padding}, the bits of padding"
                    f" after {count} elements of {dtype}; got {packed[where]}"
                )
            packed = np.delete(packed, where)
        bits = np.zeros((count, 8 * size), np.uint8)
        kept = np.unpackbits(packed, count=count * (end - first), bitorder="little")
        bits[:, first:end] = kept.reshape(count, end - first)
        if dtype.kind == "i":
            bits[:, end:] = bits[:, end - 1 : end]
        low_first = np.packbits(bits, axis=1, bitorder="little")
        items = low_first.view(f"<u{size}").astype(f"u{size}").reshape(shape)
        plain = items.view(dtype.newbyteorder("="))
        return plain.astype(dtype, copy=False)

    def _bits(self, dtype: np.dtype[Any]) -> tuple[int, int]:
        """Return the first stored bit, and the bit after the last one.

        Raises
        ------
        ValueError
            If the codec does not support the dtype, or the dtype lacks these bits.
        """
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise ValueError(
                "dtype must be bool, an integer or a float of 64 bits or less for the"
                f" packbits codec; got {dtype}"
            )
        form = format_of_dtype(dtype)
        if form is not None:
            all_bits = form.bits + form.unused_low_bits
        else:
            all_bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
        first = 0 if self.first_bit is None else self.first_bit
        last = all_bits - 1 if self.last_bit is None else self.last_bit
        if not first <= last < all_bits:
            raise ValueError(
                f"first_bit and last_bit must be within bits 0 to {all_bits - 1} of"
                f" {dtype}; got {first} and {last}"
            )
        return first, last + 1

    def _packed_size(self, count: int, dtype: np.dtype[Any]) -> int:
        first, end = self._bits(dtype)
        return -(-count * (end - first) // 8) + (self.padding_encoding != "none")
