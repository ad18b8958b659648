"""Cast arrays on a GPU from any numeric dtype to any other, rounding once.

The bits are those of `astype` and `quantize` on the CPU. No floating-point error is
reported: a GPU has no flags.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ... import _core
from ..._base.caller import warn
from ..._base.wording import brief, one_of
from ..._formats.quantize import OVERFLOWS, ROUNDINGS, Overflow, Rounding
from ..._formats.table import find_dtype
from .._runtime import backend, strides
from .._runtime.backend import KEPT, Constant, Kernel, int32
from .._runtime.storage import is_ours, plain
from . import ndarray

#: `enum tf_number_kind` of src/formats/number_kinds.h, by NumPy's kind and size.
_KINDS = {
    ("b", 1): "TF_BOOL",
    ("f", 2): "TF_FLOAT16",
    ("f", 4): "TF_FLOAT32",
    ("f", 8): "TF_FLOAT64",
    **{("i", size): f"TF_INT{8 * size}" for size in (1, 2, 4, 8)},
    **{("u", size): f"TF_UINT{8 * size}" for size in (1, 2, 4, 8)},
}


def kind(dtype: Any) -> str:
    """Return the name that kernels use for a format or a real NumPy dtype.

    Raises
    ------
    TypeError
        If the dtype is neither a format nor one of NumPy's real dtypes.
    """
    dtype = find_dtype(dtype)
    if dtype.type in _core.scalar_types:
        return f"tf_{dtype.name}_index"
    try:
        return _KINDS[dtype.kind, dtype.itemsize]
    except KeyError:
        raise TypeError(
            "dtype of an array on a GPU must be a format of tf32dtype, bool, an"
            f" integer, float16, float32, float64, complex64 or complex128; got {dtype}"
        ) from None


def empty(shape: Any, dtype: Any) -> Any:
    """Allocate an uninitialized array in C order.

    It is of this package's class if the dtype is a format, otherwise a plain array.
    """
    dtype = np.dtype(dtype)
    shape = shape if isinstance(shape, tuple) else (shape,)
    return ndarray.allocate(shape, dtype, ndarray.lying(shape, dtype.itemsize))


def cast(
    x: Any,
    dtype: Any,
    *,
    rounding: Rounding = "ties_to_even",
    overflow: Overflow = "ieee",
    copy: bool = True,
) -> Any:
    """Cast an array to another dtype, in C order.

    Parameters
    ----------
    x : cupy.ndarray
        Array of a format or of a NumPy dtype. If it is complex and `dtype` is not, the
        imaginary parts are dropped with NumPy's warning.
    dtype : dtype or type
        A format or a NumPy dtype.
    rounding, overflow : str
        As for `tf32dtype.quantize`, except "stochastic". Other values than the defaults
        require that `dtype` is a format, float16 or float32.
    copy : bool
        Whether to copy an array that has the dtype already.

    Returns
    -------
    cupy.ndarray
        An array of this package's class if `dtype` is a format, or if `dtype` is
        float32 and `x` is of this class. Otherwise a plain CuPy array.

    Raises
    ------
    TypeError
        If a dtype is not numeric.
    ValueError
        If `rounding` or `overflow` is unknown, or not supported for `dtype`.
    """
    dtype = find_dtype(dtype)
    how = _manner(dtype, rounding, overflow)
    _check(x.dtype)
    _check(dtype)
    if x.dtype == dtype and how is None:
        if not copy:
            return x
        result = backend.current().call("ndarray.copy", plain(x))
    else:
        result = empty(x.shape, dtype)
        _into(x, result, how)
        if is_ours(dtype):
            return result
    single = dtype == np.float32 and isinstance(x, ndarray.ndarray)
    return ndarray.wrap(result, dtype) if is_ours(dtype) or single else result


def converted(x: Any, dtype: np.dtype[Any], strides: tuple[int, ...]) -> Any:
    """Cast an array to another dtype, with given strides that leave no gaps.

    It is of this package's class if the dtype is a format, otherwise a plain array.
    """
    _check(x.dtype)
    _check(dtype)
    result = ndarray.allocate(x.shape, dtype, strides)
    _into(x, result, None)
    return result


def cast_into(
    x: Any,
    out: Any,
    *,
    rounding: Rounding = "ties_to_even",
    overflow: Overflow = "ieee",
) -> None:
    """Cast an array's values to the dtype of another array, and write them into it.

    Parameters
    ----------
    x : cupy.ndarray
        Array whose shape broadcasts to that of `out`. The arrays may overlap.
    out : cupy.ndarray
        Array to write into, with any strides.
    rounding, overflow : str
        As for `cast`.
    """
    how = _manner(out.dtype, rounding, overflow)
    _check(x.dtype)
    _check(out.dtype)
    _into(x, out, how)


@lru_cache(maxsize=KEPT)
def _check(dtype: np.dtype[Any]) -> None:
    if dtype not in (np.complex64, np.complex128):
        kind(dtype)


def _manner(
    dtype: Any, rounding: str, overflow: str
) -> tuple[Constant, Constant] | None:
    """Return the kernel's arguments for rounding and overflow; None for defaults."""
    if rounding == ROUNDINGS[0] and overflow == OVERFLOWS[0]:
        return None
    known = [name for name in ROUNDINGS if name != "stochastic"]
    if rounding == "stochastic":
        raise ValueError(
            f"rounding must be one of {', '.join(known)} on a GPU; got 'stochastic'."
            " Use tf32dtype.quantize on the CPU, where random numbers are drawn"
        )
    if rounding not in known:
        raise ValueError(one_of("rounding", rounding, known))
    if overflow not in OVERFLOWS:
        raise ValueError(one_of("overflow", overflow, OVERFLOWS))
    if not is_ours(dtype) and dtype not in (np.float16, np.float32):
        raise ValueError(
            "dtype must be a format of tf32dtype, float16 or float32 with"
            f" rounding={brief(rounding)}, overflow={brief(overflow)}; got {dtype},"
            " which is only rounded to nearest"
        )
    return int32(ROUNDINGS.index(rounding)), int32(OVERFLOWS.index(overflow))


def _into(x: Any, out: Any, how: tuple[Constant, Constant] | None) -> None:
    if x.dtype.kind == "c" and out.dtype.kind != "c":
        warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
        )
        x = x.real
    call = backend.current().call
    if how is None and not _singles(x.dtype) and not _singles(out.dtype):
        call("copyto", plain(out), plain(x), casting="unsafe")
        return
    if out.dtype.kind == "c":
        call("copyto", out.imag, 0)
        out = out.real
    widest = max(x.itemsize, out.itemsize)
    strides.elementwise(
        kernel(x.dtype, out.dtype, how is not None), [out], [x],
        *(how or (int32(0), int32(0))), per_thread=16 // widest * 4,
    )  # fmt: skip


@lru_cache(maxsize=KEPT)
def kernel(source: np.dtype[Any], target: np.dtype[Any], modes: bool) -> Kernel:
    """Return the cast kernel; with `modes` it takes rounding and overflow arguments."""
    options = f"-DFROM={kind(source)}", f"-DTO={kind(target)}"
    return Kernel("cuda/formats/cast.cu", "cast", (*options, *("-DMODES=1",) * modes))


def _singles(dtype: Any) -> bool:
    """Return whether casts from or to a dtype need this package's kernel.

    CuPy casts between all other dtypes.
    """
    return is_ours(dtype) or dtype == np.float32
