"""Look up results of a function in tables that NumPy's ufuncs made on the CPU.

A format has few codes, so that all results of a function fit in a table. A one-byte
format has 256 results for one operand and 65536 for two. bfloat16 has 65536 results for
one operand, tf32 has 2**19 (2 MiB). A table is made at the first call of a function,
and stays on the device.
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
#: Blocks of `PAIR`: each has a table in shared memory and a multiprocessor for itself.
PAIR_LAUNCH = Launch(threads=1024, blocks=1, shared=1 << 16)

_tables: dict[tuple[Any, ...], list[Any]] = {}


def _all_items(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return all codes of a format as stored elements; all bytes if it has one byte."""
    shift = formats[dtype.name].unused_low_bits
    codes = np.arange(1 << (8 * dtype.itemsize - shift), dtype=np.int64)
    items: NDArray[Any] = (codes << shift).astype(f"u{dtype.itemsize}")
    return items.view(dtype)


def _results(ufunc: np.ufunc, loop: tuple[np.dtype[Any], ...], x: Any) -> list[Any]:
    """Return storage of all results on the device of `x`, one array per output."""
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
    """Compute a function of one array, and write the results to `outputs`.

    `outputs` have the dtypes of the loop, and any strides.
    """
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
    """Compute a function of two arrays of one-byte formats; see `struct tf_constants`.

    An operand may be a constant instead of an array.
    """
    tables = _results(ufunc, loop, storage[0])
    for out, table in zip(outputs, tables, strict=True):
        elementwise(
            PAIR, [out], storage, constants, table, per_thread=16, launch=PAIR_LAUNCH
        )
