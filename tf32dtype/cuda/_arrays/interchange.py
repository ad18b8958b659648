"""Exchange arrays with the host and with other libraries."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ..._base.wording import brief, one_of
from ..._formats.table import formats
from ...interop.dlpack import CODES
from .._runtime import backend
from .._runtime.storage import STORAGE, is_ours, raw
from .ndarray import wrap


def device_of(x: Any) -> Any:
    """Return a context manager that makes an array's device the current one.

    Without a GPU, in tests, it does nothing.
    """
    return x.device if cupy.cuda.is_available() else contextlib.nullcontext()


# -- the host --------------------------------------------------------------------------


def get(
    x: Any, stream: Any, order: Any, out: NDArray[Any] | None, blocking: bool
) -> NDArray[Any]:
    """Copy an array to the host; see `ndarray.get`."""
    if out is not None:
        if not isinstance(out, np.ndarray) or out.dtype != x.dtype:
            found = getattr(out, "dtype", type(out).__name__)
            raise TypeError(f"out must be a NumPy array of {x.dtype}; got {found}")
        if out.shape != x.shape:
            raise ValueError(
                f"out must have the shape of the array, {x.shape}; got {out.shape}"
            )
    letter = str(order)[:1].upper()
    if letter not in ("C", "F", "A"):
        raise ValueError(one_of("order", order, ("C", "F", "A")))
    if letter == "A":
        letter = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    storage = STORAGE[x.dtype.itemsize]
    if stream is not None or not blocking:
        into = None if out is None else out.view(storage)
        backend.check_elements(x)
        found = raw(x).get(stream, letter, into, blocking)
        if out is not None:
            return out
        return found.view(x.dtype)  # type: ignore[no-any-return]
    if out is not None:
        np.copyto(out.view(storage), backend.current().get(raw(x)))
        return out
    turned = x.T if letter == "F" else x
    codes = np.ascontiguousarray(backend.current().get(raw(turned)))
    made: NDArray[Any] = codes.view(x.dtype).reshape(turned.shape)
    return made.T if letter == "F" else made


def set(x: Any, arr: NDArray[Any], stream: Any) -> None:
    """Copy a NumPy array into an array; see `ndarray.set`."""
    if not isinstance(arr, np.ndarray) or arr.dtype != x.dtype:
        found = getattr(arr, "dtype", type(arr).__name__)
        raise TypeError(f"arr must be a NumPy array of {x.dtype}; got {found}")
    if arr.shape != x.shape:
        raise ValueError(
            f"arr must have the shape of the array, {x.shape}; got {arr.shape}"
        )
    codes = np.ascontiguousarray(arr).view(STORAGE[x.dtype.itemsize]).reshape(x.shape)
    if stream is not None:
        backend.check_elements(x)
        raw(x).set(codes, stream)
        return
    with device_of(x):
        there = backend.current().put(codes)
        backend.current().call("ndarray.__setitem__", raw(x), ..., there)


def put(x: NDArray[Any]) -> Any:
    """Copy a NumPy array to the device, as an `ndarray` if its dtype is a format."""
    if not is_ours(x.dtype):
        return backend.current().put(x)
    codes = np.ascontiguousarray(x).view(STORAGE[x.dtype.itemsize]).reshape(x.shape)
    return wrap(backend.current().put(codes), x.dtype)


# -- the CUDA array interface ----------------------------------------------------------


def cuda_array_interface(x: Any) -> dict[str, Any]:
    """Return the interface's description of an array.

    It describes tf32 as float32, and other formats as their unsigned storage, because
    the interface has no types for them.
    """
    as_float = x.dtype.name in ("tf32", "float32")
    shown = x.view(np.float32, cupy.ndarray) if as_float else raw(x)
    return shown.__cuda_array_interface__  # type: ignore[no-any-return]


# -- DLPack ----------------------------------------------------------------------------

# dlpack.h, version 1.1: DLTensor has its DLDataType {uint8 code, uint8 bits, uint16
# lanes} after a pointer, a DLDevice {int32, int32} and int32 ndim. DLManagedTensor
# begins with it; DLManagedTensorVersioned has a DLPackVersion {uint32, uint32}, two
# pointers and uint64 flags before it.
_TYPE_IN_TENSOR = 8 + 8 + 4
_TENSOR_IN = {b"dltensor": 0, b"dltensor_versioned": 8 + 8 + 8 + 8}
_UNSIGNED, _FLOAT = 1, 2
_NAMES = {code: name for name, code in CODES.items()}

_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def type_code(capsule: Any) -> Any:
    """Return the type code of a DLPack capsule's tensor, as a byte to read or write."""
    name = _get_name(capsule) if type(capsule).__name__ == "PyCapsule" else None
    if name not in _TENSOR_IN:
        raise BufferError(
            f"capsule must be an unused DLPack capsule; got {brief(capsule)}"
        )
    start = _get_pointer(capsule, name) + _TENSOR_IN[name] + _TYPE_IN_TENSOR
    return ctypes.c_uint8.from_address(start)


def to_dlpack(x: Any, **keywords: Any) -> Any:
    """Export an array as a DLPack capsule with the type code of its format.

    tf32 is exported as float32.

    Raises
    ------
    BufferError
        If the format is FP6 or FP4: DLPack packs these codes, and tf32dtype stores one
        code per byte.
    """
    name = x.dtype.name
    if name in ("tf32", "float32"):
        shown, code = x.view(np.float32, cupy.ndarray), _FLOAT
    elif name in CODES:
        shown, code = raw(x), CODES[name]
    else:
        raise BufferError(
            f"DLPack packs {name} more tightly than one byte per element, which"
            " tf32dtype does not; use tf32dtype.cuda.bits(x)"
        )
    capsule = backend.current().call("ndarray.__dlpack__", shown, **keywords)
    type_code(capsule).value = code
    return capsule


class _Producer:
    """Export another library's array with a type code that NumPy and CuPy can import.

    Its type code is replaced by that of unsigned integers if it is one of a format.
    """

    def __init__(self, x: Any) -> None:
        self.x = x
        self.code = _UNSIGNED

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        try:
            capsule = self.x.__dlpack__(**keywords)
        except TypeError:  # older versions accept only `stream`
            keywords = {k: v for k, v in keywords.items() if k == "stream"}
            capsule = self.x.__dlpack__(**keywords)
        found = type_code(capsule)
        self.code = found.value
        if self.code in _NAMES:
            found.value = _UNSIGNED
        return capsule


def from_dlpack(x: Any) -> Any:
    """Return another library's array as a CuPy array that shares its memory.

    An array on the host becomes a NumPy array. If the type code is that of a format,
    the array has that format.

    Raises
    ------
    BufferError
        If neither CuPy nor this package supports the type.
    """
    producer = _Producer(x)
    on_host = x.__dlpack_device__()[0] == 1  # kDLCPU
    found = (np if on_host else cupy).from_dlpack(producer)
    if producer.code not in _NAMES:
        return found
    dtype = formats[_NAMES[producer.code]].dtype
    return found.view(dtype) if on_host else wrap(found, dtype)
