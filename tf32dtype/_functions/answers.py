"""Implement NumPy's functions that only know NumPy's own dtypes, for our formats.

NumPy's versions have tables of float16, float32 and float64, or put Inf in formats
without Inf, or are slow because BLAS does not know the dtype. Each function here
replaces one of NumPy for our formats, with the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from .. import _core
from .._base.caller import cast, errors_at_caller, warn
from . import averages, sorting
from .averages import FORMATS, Function


def _is_dot(*operands: Any) -> bool:
    """Say whether operands are "i,i", with some letter, and two vectors of one dtype.

    Most of the time of a short one would be that of a plan.
    """
    if len(operands) != 3:
        return False
    subscripts, a, b = operands
    return (
        type(a) is type(b) is np.ndarray
        and a.dtype is b.dtype
        and a.ndim == 1
        and a.shape == b.shape != (0,)
        and type(subscripts) is str
        and len(subscripts) == 3
        and subscripts[1] == ","
        and subscripts[0] == subscripts[2]
        and subscripts.isascii()
        and subscripts[0].isalpha()
    )


def _einsum(own: Function) -> Function:
    """Compute by one np.matmul per pair of arrays: NumPy's table lacks our formats."""

    def answer(
        *operands: Any,
        out: Any = None,
        optimize: Any = False,
        dtype: Any = None,
        order: Any = "K",
        casting: Any = "safe",
    ) -> Any:
        plain = out is dtype is None and not optimize and order == "K"
        if plain and casting == "safe" and _is_dot(*operands):
            return _core.OwnCall(np.matmul, operands[1:], {}, None)
        from .._matmul.einsum import einsum  # when the first one asks for it

        np.can_cast(float, float, casting)  # the rule is known
        for operand in operands if dtype is not None else ():
            given = getattr(operand, "dtype", None)
            if given is not None and not np.can_cast(given, dtype, casting):
                raise TypeError(
                    f"np.einsum cannot cast {given} to {np.dtype(dtype)} by the rule"
                    f" {casting!r}. Use casting='same_kind'"
                )
        optimize = optimize or False
        if casting == "unsafe":
            if dtype is not None:
                operands = tuple(
                    cast(x, dtype) if hasattr(x, "dtype") else x for x in operands
                )
            result = einsum(*operands, optimize=optimize)
            if out is not None:
                with errors_at_caller("cast"):
                    np.copyto(out, result, casting=casting)
                return out
        else:
            result = einsum(*operands, out=out, dtype=dtype, optimize=optimize)
        if out is None and order not in ("K", "k"):
            result = np.asanyarray(result, order=order)[()]
        return result

    return answer


def _common_type(own: Function) -> Function:
    def common_type(*arrays: Any) -> Any:
        half = np.zeros(0, np.float16)
        own(*(half if a.dtype in FORMATS else a for a in arrays))  # what it refuses
        dtypes = [
            np.dtype(float) if np.issubdtype(a.dtype, np.integer) else a.dtype
            for a in arrays
        ]
        return np.result_type(*dtypes).type

    return common_type


def _isclose(own: Function) -> Function:
    """Compare in float64, in which differences and tolerances stay in range."""

    def double(x: Any) -> Any:
        if isinstance(x, list | tuple):
            x = np.asanyarray(x)
        is_ours = getattr(x, "dtype", None) in FORMATS
        return x.astype(np.float64) if is_ours else x

    def is_tolerance(x: Any) -> bool:
        """Say whether float64 has all products of x with our numbers."""
        return type(x) in (int, float) and (x == 0 or 1e-200 < abs(x) < 1e200)

    def isclose(
        a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False
    ) -> Any:
        if (
            type(a) is type(b) is np.ndarray
            and a.dtype is b.dtype
            and a.dtype in FORMATS
            and is_tolerance(rtol)
            and is_tolerance(atol)
        ):
            tolerances = np.float64(rtol), np.float64(atol)
            return _core.is_close(a, b, *tolerances, np.bool_(bool(equal_nan)))
        return own(double(a), double(b), double(rtol), double(atol), equal_nan)

    return isclose


def _index(own: Function) -> Function:
    """Return a handler for `nanargmax` or `nanargmin`.

    The index is that of the plain method if it finds no NaN. Otherwise the search is in
    float32, which has the infinities that replace NaN.
    """
    method = "argmax" if own.__name__ == "nanargmax" else "argmin"

    def index(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        a = np.asanyarray(a)
        if a.dtype not in FORMATS:
            return NotImplemented
        is_simple = type(a) is np.ndarray and not args and not kwargs
        if is_simple and a.size and (axis is None or (type(axis) is int and a.ndim)):
            if axis is None:
                found = getattr(a, method)()
                chosen = a.flat[found]
            else:
                found = getattr(a, method)(axis, keepdims=True)
                chosen = np.take_along_axis(a, found, axis)
                found = found.squeeze(axis)[()]
            if not np.any(np.isnan(chosen)):
                return found
        return own(a.astype(np.float32), axis, *args, **kwargs)

    return index


#: For each function of NumPy, a factory that takes it and returns our implementation.
#: Products and sums have the same bits as NumPy's. NumPy multiplies one row by one
#: column after the other, and adds one row after the other.
ANSWERS: dict[str, Callable[[Function], Function]] = {
    "numpy.einsum": _einsum,
    "numpy.common_type": _common_type,
    "numpy.isclose": _isclose,
    "numpy.nanargmax": _index,
    "numpy.nanargmin": _index,
    "numpy.count_nonzero": lambda own: _core.count_nonzero,
    "numpy.dot": lambda own: _core.format_dot,
    "numpy.inner": lambda own: _core.format_inner,
    "numpy.vdot": lambda own: _core.format_vdot,
    "numpy.convolve": lambda own: _core.format_convolve,
    "numpy.correlate": lambda own: _core.format_correlate,
    "numpy.sum": lambda own: _core.sum_over_rows,
    "numpy._core._methods._sum": lambda own: _core.sum_over_rows,  # of arrays
}

#: Our implementations of methods; their first argument is the array or the ufunc.
METHODS: dict[str, Function] = {
    "dot": _core.format_dot,
    "reduceat": _core.reduce_segments,
    **sorting.METHODS,
}


def register() -> None:
    """Register our implementations of NumPy's functions, those of `averages` too."""
    unknown = []
    for path, answer in (averages.ANSWERS | ANSWERS).items():
        module, _, name = path.rpartition(".")
        public = getattr(import_module(module), name, None)
        function = getattr(public, "_implementation", public)
        if isinstance(function, FunctionType | BuiltinFunctionType):
            _core.answer(function, answer(function))
        else:
            unknown.append(path)
    for name, handler in METHODS.items():
        if not _core.answer_method(name, handler):
            unknown.append(f"numpy.ndarray.{name}")
    if unknown:
        warn(
            f"this version of tf32dtype does not support NumPy {np.__version__}:"
            f" {', '.join(unknown)} of its dtypes may round more than once, or fail."
            " Use a newer tf32dtype, or NumPy 2.5",
            RuntimeWarning,
        )
