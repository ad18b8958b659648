"""The dtypes of safetensors files, by their names in headers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._formats.table import Format, formats


class Kind(NamedTuple):
    """The storage of tensors whose dtype has a certain name."""

    name: str
    #: the bits per element in the file, where elements of less than a byte are packed
    bits: int
    #: the dtype of an array, where every element has whole bytes
    dtype: np.dtype[Any]
    form: Format | None

    def size(self, shape: Sequence[int]) -> int:
        """Return the number of whole bytes of a tensor in the file."""
        return math.prod(shape) * self.bits // 8

    def is_whole(self, shape: Sequence[int]) -> bool:
        """Return whether packed elements fill the last byte, as the format requires."""
        return math.prod(shape) * self.bits % 8 == 0

    @property
    def is_packed(self) -> bool:
        return self.bits < 8 * self.dtype.itemsize


#: The names with their dtypes, in the order of `enum Dtype` of huggingface/safetensors.
#: The reference writer stores the last dtypes first, so that every tensor is aligned.
_NAMES = """
    BOOL=bool F4=float4_e2m1fn F6_E2M3=float6_e2m3fn F6_E3M2=float6_e3m2fn
    U8=u1 I8=i1 F8_E5M2=float8_e5m2 F8_E4M3=float8_e4m3fn F8_E8M0=float8_e8m0fnu
    F8_E4M3FNUZ=float8_e4m3fnuz F8_E5M2FNUZ=float8_e5m2fnuz
    I16=<i2 U16=<u2 F16=<f2 BF16=bfloat16 I32=<i4 U32=<u4 F32=<f4
    C64=<c8 F64=<f8 I64=<i8 U64=<u8
"""


def _kind(name: str, which: str) -> Kind:
    if which in formats:
        form = formats[which]
        return Kind(name, form.bits, form.dtype, form)
    dtype = np.dtype(which)
    return Kind(name, 8 * dtype.itemsize, dtype, None)


#: All kinds that a file can have, by name.
KINDS = {
    name: _kind(name, which)
    for name, which in (entry.split("=") for entry in _NAMES.split())
}


def kind_of(dtype: np.dtype[Any]) -> Kind | None:
    """Return the kind of a dtype, whatever its byte order; None if it has no name."""
    native = dtype.newbyteorder("=")
    return next((x for x in KINDS.values() if x.dtype == native), None)


def carrier_of(form: Format) -> Kind:
    """Return the kind of integers or floats that stores a format without a name."""
    kind = kind_of(form.carrier)
    assert kind is not None
    return kind


def stored_kind(dtype: np.dtype[Any], shape: Sequence[int]) -> Kind:
    """Return the kind that stores an array: its own, or that of its format's carrier.

    Raises
    ------
    TypeError
        For a dtype that files cannot store.
    """
    kind = kind_of(dtype)
    if kind is not None and kind.is_whole(shape):
        return kind
    if dtype in formats:
        return carrier_of(formats[dtype])
    raise TypeError(
        f"dtype must be one that safetensors files have ({', '.join(KINDS)});"
        f" got {dtype}"
    )
