"""NumPy's functions that look for NumPy's own dtypes, answered for our formats.

They have tables of float16, float32 and float64, or put Inf where a format has none.
Each function here answers one of NumPy, with the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from .contraction import einsum

Function = Callable[..., Any]
_FORMATS = {np.dtype(scalar) for scalar in _core.scalar_types}


def _einsum(own: Function) -> Function:
    """NumPy's loops are a table; ours is one np.matmul of each pair of arrays."""

    def answer(
        *operands: Any,
        out: Any = None,
        optimize: Any = False,
        dtype: Any = None,
        order: Any = "K",
        casting: Any = "safe",
    ) -> Any:
        for operand in operands if dtype is not None else ():
            given = getattr(operand, "dtype", None)
            if given is not None and not np.can_cast(given, dtype, casting):
                raise TypeError(
                    f"np.einsum does not cast {given} to {np.dtype(dtype)} by the rule"
                    f" {casting!r}; casting='same_kind' allows more"
                )
        result = einsum(*operands, out=out, dtype=dtype, optimize=optimize)
        if out is None and order not in ("K", "k"):
            result = np.asanyarray(result, order=order)[()]
        return result

    return answer


def _common_type(own: Function) -> Function:
    def common_type(*arrays: Any) -> Any:
        half = np.zeros(0, np.float16)
        own(*(half if a.dtype in _FORMATS else a for a in arrays))  # what it refuses
        dtypes = [
            np.dtype(float) if np.issubdtype(a.dtype, np.integer) else a.dtype
            for a in arrays
        ]
        return np.result_type(*dtypes).type

    return common_type


def _index(own: Function) -> Function:
    """In float32, which has the infinities that stand for NaN."""

    def index(a: Any, *args: Any, **kwargs: Any) -> Any:
        a = np.asanyarray(a)
        if a.dtype not in _FORMATS:
            return NotImplemented
        return own(a.astype(np.float32), *args, **kwargs)

    return index


def register() -> None:
    """Have NumPy's functions answered."""
    public: Any
    for public, answer in (
        (np.einsum, _einsum),
        (np.common_type, _common_type),
        (np.nanargmax, _index),
        (np.nanargmin, _index),
    ):
        function = public._implementation
        _core.answer(function, answer(function))
