"""All results of a function, made by NumPy's ufunc on the CPU and kept on the device.

A format has few numbers, so that a function's results fit a table: 256 of one byte, or
65536 for two operands; 65536 of bfloat16; 2**19 of tf32, 2 MiB. A table is made when a
function is first called, and stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._formats.table import formats
from .._arrays.interchange import device_of
from .._runtime import backend
from .._runtime.backend import Kernel, int32
from .._runtime.storage import STORAGE
from .._runtime.strides import Launch, elementwise

ONE = Kernel("cuda/ufuncs/lookup.cu", "one")
PAIR = Kernel("cuda/ufuncs/lookup_pair.cu", "look_up_pair")
#: A block of it has a table in shared memory, and is the only one of a multiprocessor.
PAIR_LAUNCH = Launch(threads=1024, blocks=1, shared=1 << 16)

_tables: dict[tuple[Any, ...], list[Any]] = {}


def _all_items(dtype: np.dtype[Any]) -> NDArray[Any]:
    """One item of each code; of one-byte formats, each byte."""
    shift = formats[dtype.name].unused_low_bits
    codes = np.arange(1 << (8 * dtype.itemsize - shift), dtype=np.int64)
    items: NDArray[Any] = (codes << shift).astype(f"u{dtype.itemsize}")
    return items.view(dtype)


def _results(ufunc: np.ufunc, loop: tuple[np.dtype[Any], ...], x: Any) -> list[Any]:
    """Storage of all results on an array's device, an array for each output."""
    key = backend.current(), x.data.device_id, ufunc, loop
    if key not in _tables:
        items = _all_items(loop[0])
        operands = [items] if ufunc.nin == 1 else [items[:, None], items]
        with np.errstate(all="ignore"):
            made = ufunc(*operands, signature=loop)
        with device_of(x):
            _tables[key] = [
                backend.current().put(y.view(STORAGE[y.dtype.itemsize]), lasting=True)
                for y in (made if ufunc.nout > 1 else [made])
            ]
    return _tables[key]


def one(
    ufunc: np.ufunc, loop: tuple[np.dtype[Any], ...], outputs: list[Any], x: Any
) -> None:
    """A function of one array into arrays, any strides, of the loop's dtypes."""
    tables = _results(ufunc, loop, x)
    shift = int32(formats[loop[0].name].unused_low_bits)
    for out, table in zip(outputs, tables, strict=True):
        elementwise(
            ONE, [out], [x], table, shift, int32(x.itemsize), int32(out.itemsize),
            per_thread=16 // x.itemsize,
        )  # fmt: skip


def pair(
    ufunc: np.ufunc,
    loop: tuple[np.dtype[Any], ...],
    outputs: list[Any],
    storage: list[Any],
    constants: Any,
) -> None:
    """A function of two arrays of bytes, or of one and a constant (map.h)."""
    tables = _results(ufunc, loop, storage[0])
    for out, table in zip(outputs, tables, strict=True):
        elementwise(
            PAIR, [out], storage, constants, table, per_thread=16, launch=PAIR_LAUNCH
        )
