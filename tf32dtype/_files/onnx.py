"""Tensors of ONNX models as arrays and back, those of the narrow types among them.

    weights = {t.name: to_array(t, base_dir) for t in model.graph.initializer}

ONNX keeps numbers as little-endian bytes (`raw_data`) or as integers (`int32_data`);
those of less than a byte are packed, the first in the lowest bits. The types are those
of `onnx.proto`, TensorProto.DataType.
"""

from __future__ import annotations

import math
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.requirements import need
from .._base.wording import brief
from .._formats import bit_packing
from .._formats.codes import bits, from_bits
from .._formats.table import as_own, format_of_dtype, formats

if TYPE_CHECKING:
    from onnx import TensorProto

onnx: ModuleType = need("td.interop.onnx", "onnx", "onnx")
need("td.interop.onnx", "onnx", "onnx.numpy_helper")

#: What ONNX calls the formats that it has, the last two from onnx 1.23 on.
_FORMATS = {
    "BFLOAT16": "bfloat16",
    "FLOAT8E4M3FN": "float8_e4m3fn",
    "FLOAT8E4M3FNUZ": "float8_e4m3fnuz",
    "FLOAT8E5M2": "float8_e5m2",
    "FLOAT8E5M2FNUZ": "float8_e5m2fnuz",
    "FLOAT8E8M0": "float8_e8m0fnu",
    "FLOAT4E2M1": "float4_e2m1fn",
    "FLOAT6E2M3": "float6_e2m3fn",
    "FLOAT6E3M2": "float6_e3m2fn",
}
#: Packed integers: the dtype that holds one, and its bits.
_INTEGERS = {
    "UINT4": (np.dtype(np.uint8), 4),
    "INT4": (np.dtype(np.int8), 4),
    "UINT2": (np.dtype(np.uint8), 2),
    "INT2": (np.dtype(np.int8), 2),
}


__all__ = ["dtype_of", "from_array", "to_array"]


def __dir__() -> list[str]:
    return __all__


def to_array(
    tensor: TensorProto, base_dir: str | os.PathLike[str] | None = None
) -> NDArray[Any]:
    """The numbers of a tensor.

    Parameters
    ----------
    tensor : onnx.TensorProto
    base_dir : path, optional
        The folder of the model, for a tensor whose numbers are in a file beside it.
        onnx opens that file, and refuses one outside the folder.

    Returns
    -------
    ndarray
        Of the tensor's format (bfloat16, FP8, FP6, FP4); of int8 or uint8 for integers
        of 4 and 2 bits; of all other types what `onnx.numpy_helper.to_array` returns.
        Read-only where it is a view of the tensor's bytes.

    Raises
    ------
    ValueError
        If the dimensions do not go with the data, if an integer of `int32_data` is no
        code, for an unknown type; for data in a file without `base_dir`, or in a file
        that is missing, too short or outside. The error names the tensor.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> tensor = td.interop.onnx.from_array(np.array([0.5, 6], td.float4_e2m1fn), "w")
    >>> tensor.raw_data, td.interop.onnx.to_array(tensor)
    (b'q', array([0.5, 6. ], dtype=float4_e2m1fn))
    """
    if not isinstance(tensor, onnx.TensorProto):
        raise TypeError(f"tensor must be an onnx.TensorProto; got {brief(tensor)}")
    try:
        return _array(tensor, base_dir)
    except (ValueError, onnx.checker.ValidationError) as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


def from_array(a: ArrayLike, name: str | None = None) -> TensorProto:
    """A tensor of an array, its numbers in `raw_data`.

    Parameters
    ----------
    a : array_like
        Of a format that ONNX has, or of any dtype of `onnx.numpy_helper.from_array`.
        Integers of 4 and 2 bits are arrays of `ml_dtypes` there:
        ``from_array(a.astype(ml_dtypes.int4))``.
    name : str, optional

    Returns
    -------
    onnx.TensorProto

    Raises
    ------
    TypeError
        For a format that ONNX, or this version of it, has no type for.
    """
    array = np.asarray(as_own(a))
    form = format_of_dtype(array.dtype)
    if form is None:
        result: TensorProto = onnx.numpy_helper.from_array(
            array.astype(array.dtype.newbyteorder("="), copy=False), name
        )
        return result
    known = {held: number for number, held in _numbers(_FORMATS).items()}
    if form.name not in known:
        raise TypeError(
            f"dtype must be one that onnx {onnx.__version__} has "
            f"({', '.join(known)}); got {form.name}. Use a.astype(np.float32)"
        )
    codes = np.atleast_1d(bits(array)).reshape(-1)
    if form.bits < 8:
        codes = _packed(codes, form.bits)
    raw = codes.astype(codes.dtype.newbyteorder("<"), copy=False).tobytes()
    number = known[form.name]
    made: TensorProto = onnx.TensorProto(
        dims=array.shape, data_type=number, raw_data=raw, name=name
    )
    return made


def dtype_of(tensor: TensorProto) -> np.dtype[Any] | None:
    """The dtype of what `to_array` returns; None for an unknown type.

    Parameters
    ----------
    tensor : onnx.TensorProto
        Its type is looked at, and nothing else.
    """
    number = tensor.data_type
    if (name := _numbers(_FORMATS).get(number)) is not None:
        return formats[name].dtype
    if (found := _numbers(_INTEGERS).get(number)) is not None:
        dtype: np.dtype[Any] = found[0]
        return dtype
    if number not in onnx.TensorProto.DataType.values() or number == 0:
        return None
    known: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(number)
    return known


def _array(
    tensor: TensorProto, base_dir: str | os.PathLike[str] | None
) -> NDArray[Any]:
    dims = tuple(tensor.dims)
    if any(length < 0 for length in dims):
        raise ValueError(f"dims must be 0 or more; got {dims}")
    if tensor.HasField("segment"):
        raise ValueError("tensor must not be a segment of a tensor")
    count = math.prod(dims)
    number = tensor.data_type
    if (name := _numbers(_FORMATS).get(number)) is not None:
        form = formats[name]
        codes = _codes(tensor, base_dir, form.bits, count)
        return from_bits(codes, form.dtype).reshape(dims)
    if (found := _numbers(_INTEGERS).get(number)) is not None:
        dtype, width = found
        codes = _codes(tensor, base_dir, width, count)
        unused = 8 - width
        # Shifted up and down, so that the sign fills what it should.
        integers: NDArray[Any] = (codes << unused).view(dtype) >> unused
        return integers.reshape(dims)
    kind = dtype_of(tensor)
    if kind is None:
        raise ValueError(
            f"data_type must be one that onnx {onnx.__version__} has; got {number}"
        )
    if number != onnx.TensorProto.STRING:
        dtype = kind.newbyteorder("<")
        raw = _raw(tensor, base_dir, count * dtype.itemsize)
        if raw is not None:
            return _builtin(raw, dtype).reshape(dims)
    result: NDArray[Any] = onnx.numpy_helper.to_array(tensor)
    return result


def _builtin(raw: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers of one of NumPy's own dtypes."""
    if dtype == np.bool_ and (np.frombuffer(raw, np.uint8) > 1).any():
        # NumPy takes it for granted, and writes out of bounds where it is not so.
        raise ValueError("bools must be 0 or 1; got other bytes")
    return np.frombuffer(raw, dtype)


def _numbers(table: dict[str, Any]) -> dict[int, Any]:
    """What a table says of the types that this onnx has, by their numbers."""
    known = onnx.TensorProto.DataType.items()
    return {number: table[name] for name, number in known if name in table}


def _codes(
    tensor: TensorProto,
    base_dir: str | os.PathLike[str] | None,
    width: int,
    count: int,
) -> NDArray[np.unsignedinteger[Any]]:
    """Codes of so many bits, one an item; of so many numbers."""
    size = -(-count * width // 8)
    item = np.dtype(f"<u{max(width, 8) // 8}")
    raw = _raw(tensor, base_dir, size)
    if raw is not None:
        items = np.frombuffer(raw, item)
        return items if width >= 8 else _unpacked(items, width, count)
    # Integers of FP6 are a code each; of 4 and 2 bits, a byte of the packed ones.
    is_packed = width in (4, 2)
    entries = np.array(tensor.int32_data, np.int64)
    needed = size if is_packed else count
    if len(entries) != needed:
        raise ValueError(
            f"int32_data must have {needed} integers for {count} elements of {width} "
            f"bits; got {len(entries)}"
        )
    most = (1 << (8 if is_packed else width)) - 1
    outside = (entries < 0) | (entries > most)
    if outside.any():
        value = int(entries[outside][0])
        raise ValueError(f"int32_data must be codes from 0 to {most}; got {value}")
    codes: NDArray[Any] = entries.astype(item)
    return _unpacked(codes, width, count) if is_packed else codes


def _raw(
    tensor: TensorProto, base_dir: str | os.PathLike[str] | None, size: int
) -> bytes | None:
    """The tensor's bytes, as many as they should be; None if it has integers."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        tensor = _loaded(tensor, base_dir, size)
    if not tensor.HasField("raw_data"):
        return None
    raw: bytes = tensor.raw_data  # a copy whenever it is asked for
    if len(raw) != size:
        raise ValueError(
            f"raw_data must have {size} bytes for dims {tuple(tensor.dims)}; "
            f"got {len(raw)}"
        )
    return raw


def _loaded(
    tensor: TensorProto, base_dir: str | os.PathLike[str] | None, size: int
) -> TensorProto:
    """A tensor with the bytes that another one has in a file: these, and no more."""
    where = {entry.key: entry.value for entry in tensor.external_data}
    if base_dir is None:
        raise ValueError(
            "base_dir must be the model's folder, because the data are in the file "
            f"{where.get('location')!r}; got None"
        )
    if where.setdefault("length", str(size)) != str(size):
        raise ValueError(
            f"length of the external data must be {size} for dims "
            f"{tuple(tensor.dims)}; got {where['length']}"
        )
    loaded: TensorProto = onnx.TensorProto(
        dims=tensor.dims,
        data_type=tensor.data_type,
        name=tensor.name,
        data_location=tensor.data_location,
        external_data=[
            onnx.StringStringEntryProto(key=key, value=value)
            for key, value in where.items()
        ],
    )
    helper = onnx.external_data_helper
    helper.load_external_data_for_tensor(loaded, os.fspath(base_dir))
    return loaded


def _unpacked(
    packed: NDArray[Any], width: int, count: int
) -> NDArray[np.unsignedinteger[Any]]:
    whole = np.zeros(-(-len(packed) // 3) * 3, np.uint8)  # groups of four codes of 6
    whole[: len(packed)] = packed
    return bit_packing.unpack(whole, width)[:count]


def _packed(codes: NDArray[Any], width: int) -> NDArray[np.uint8]:
    whole = np.zeros(-(-len(codes) // 4) * 4, np.uint8)
    whole[: len(codes)] = codes
    return bit_packing.pack(whole, width)[: -(-len(codes) * width // 8)]
