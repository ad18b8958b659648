"""Convert tensors of ONNX models, also of narrow types, to arrays and back.

    weights = {t.name: to_array(t, base_dir) for t in model.graph.initializer}

ONNX stores values as little-endian bytes (`raw_data`) or as integers (`int32_data`).
Values of less than a byte are packed, the first in the lowest bits. The types are those
of `onnx.proto`, TensorProto.DataType.
"""

from __future__ import annotations

import math
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.arguments import checked_path
from .._base.requirements import need
from .._base.wording import brief
from .._formats import bit_packing
from .._formats.codes import bits, from_bits
from .._formats.table import as_own, format_of_dtype, formats

if TYPE_CHECKING:
    from onnx import TensorProto

onnx: ModuleType = need("td.interop.onnx", "onnx", "onnx")
need("td.interop.onnx", "onnx", "onnx.numpy_helper")

#: The names of formats in ONNX; the last two need onnx 1.23.
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
#: Packed integers: the dtype of an unpacked one, and the bits of a packed one.
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
    """Return the values of an ONNX tensor as an array.

    Parameters
    ----------
    tensor : onnx.TensorProto
        A tensor of a model, such as one of `model.graph.initializer`.
    base_dir : path, optional
        The folder of the model, for a tensor whose data are in a separate file. onnx
        opens that file, and refuses files outside the folder.

    Returns
    -------
    ndarray
        An array of the tensor's format (bfloat16, FP8, FP6, FP4), or of int8 or uint8
        for integers of 4 and 2 bits. For other types it equals the result of
        `onnx.numpy_helper.to_array`. It is read-only if it views the tensor's bytes.

    Raises
    ------
    ValueError
        If the dimensions do not match the data; if an integer in `int32_data` is not a
        code; for an unknown type. For data in a separate file: if `base_dir` is not
        given, or the file is missing, too short or outside that folder. The error names
        the tensor.
    TypeError
        If `tensor` is not a tensor of onnx.

    See Also
    --------
    from_array : Return an ONNX tensor with the values of an array.
    dtype_of : Return the dtype without the values.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> tensor = td.interop.onnx.from_array(np.array([0.5, 6], td.float4_e2m1fn), "w")
    >>> tensor.raw_data, td.interop.onnx.to_array(tensor).tolist()
    (b'q', [0.5, 6.0])
    """
    _check_tensor(tensor)
    if base_dir is not None:
        base_dir = checked_path(base_dir, "base_dir", "the model's folder")
    try:
        return _array(tensor, base_dir)
    except (ValueError, onnx.checker.ValidationError) as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


def from_array(a: ArrayLike, name: str | None = None) -> TensorProto:
    """Return an ONNX tensor with the values of an array in `raw_data`.

    Parameters
    ----------
    a : array_like
        An array of a format that ONNX has, or of any dtype that
        `onnx.numpy_helper.from_array` accepts. For integers of 4 and 2 bits, give an
        array of `ml_dtypes`: ``from_array(a.astype(ml_dtypes.int4))``.
    name : str, optional
        The name of the tensor.

    Returns
    -------
    onnx.TensorProto
        A tensor with the shape of `a`, and with the type of its format.

    Raises
    ------
    TypeError
        For a format without a type in ONNX, or in the installed version. For a `name`
        that is not a string.

    See Also
    --------
    to_array : Return the values of an ONNX tensor as an array.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> tensor = td.interop.onnx.from_array(np.array([1.5, 2], td.bfloat16), "w")
    >>> tensor.name, tensor.dims, tensor.raw_data
    ('w', [2], b'\\xc0?\\x00@')
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string or None; got {brief(name)}")
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
    """Return the dtype of the array that `to_array` returns, or None if unknown.

    Parameters
    ----------
    tensor : onnx.TensorProto
        The tensor; only its type is read.

    Returns
    -------
    numpy.dtype or None
        A format, int8 or uint8 for integers of 4 and 2 bits, or another NumPy dtype.
        None if the installed version of onnx does not have the type.

    Raises
    ------
    TypeError
        If `tensor` is not a tensor of onnx.

    See Also
    --------
    to_array : Return the values of the tensor.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> tensor = td.interop.onnx.from_array(np.array([1.5, 2], td.bfloat16), "w")
    >>> td.interop.onnx.dtype_of(tensor)
    dtype(bfloat16)
    """
    _check_tensor(tensor)
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


def _check_tensor(tensor: object) -> None:
    if not isinstance(tensor, onnx.TensorProto):
        raise TypeError(f"tensor must be an onnx.TensorProto; got {brief(tensor)}")


def _array(tensor: TensorProto, base_dir: str | None) -> NDArray[Any]:
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
        # Shift up and down again, so that the sign fills the upper bits.
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
    """Return values of one of NumPy's own dtypes."""
    if dtype == np.bool_ and (np.frombuffer(raw, np.uint8) > 1).any():
        # NumPy relies on this, and writes out of bounds for other values.
        raise ValueError("bools must be 0 or 1; got other bytes")
    return np.frombuffer(raw, dtype)


def _numbers(table: dict[str, Any]) -> dict[int, Any]:
    """Return the entries of a table by type number, for the types of this onnx."""
    known = onnx.TensorProto.DataType.items()
    return {number: table[name] for name, number in known if name in table}


def _codes(
    tensor: TensorProto,
    base_dir: str | None,
    width: int,
    count: int,
) -> NDArray[np.unsignedinteger[Any]]:
    """Return `count` codes of `width` bits each, unpacked."""
    size = -(-count * width // 8)
    item = np.dtype(f"<u{max(width, 8) // 8}")
    raw = _raw(tensor, base_dir, size)
    if raw is not None:
        items = np.frombuffer(raw, item)
        return items if width >= 8 else _unpacked(items, width, count)
    # An integer is one code of FP6, or one byte of packed codes of 4 and 2 bits.
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


def _raw(tensor: TensorProto, base_dir: str | None, size: int) -> bytes | None:
    """Return the bytes of a tensor after checking their number; None for integers."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        tensor = _loaded(tensor, base_dir, size)
    if not tensor.HasField("raw_data"):
        return None
    raw: bytes = tensor.raw_data  # each access makes a copy
    if len(raw) != size:
        raise ValueError(
            f"raw_data must have {size} bytes for dims {tuple(tensor.dims)}; "
            f"got {len(raw)}"
        )
    return raw


def _loaded(tensor: TensorProto, base_dir: str | None, size: int) -> TensorProto:
    """Return the tensor with exactly its bytes from its external file."""
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
    helper.load_external_data_for_tensor(loaded, base_dir)
    return loaded


def _unpacked(
    packed: NDArray[Any], width: int, count: int
) -> NDArray[np.unsignedinteger[Any]]:
    whole = np.zeros(-(-len(packed) // 3) * 3, np.uint8)  # 3 bytes have four FP6
    whole[: len(packed)] = packed
    return bit_packing.unpack(whole, width)[:count]


def _packed(codes: NDArray[Any], width: int) -> NDArray[np.uint8]:
    whole = np.zeros(-(-len(codes) // 4) * 4, np.uint8)
    whole[: len(codes)] = codes
    return bit_packing.pack(whole, width)[: -(-len(codes) * width // 8)]
