"""The dtype and the rounding of exact results."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._base.matrices import unwrapped
from .._base.wording import cast_advice, one_of
from .._formats.quantize import ROUNDINGS, quantize
from .._formats.table import format_of_dtype

#: The directions of IEEE 754 in which an exact value can be rounded.
ExactRounding = Literal[
    "ties_to_even",
    "ties_to_away",
    "toward_zero",
    "toward_positive",
    "toward_negative",
]
EXACT_ROUNDINGS = get_args(ExactRounding)

_PARTS: dict[str, np.dtype[Any]] = {
    "complex64": np.dtype(np.float32),
    "complex128": np.dtype(np.float64),
}
_NARROW = ("float16",)


class Target(NamedTuple):
    """How exact values become results: in two steps, of which only one rounds.

    Results of float16 and of formats are first rounded to odd in float32: an inexact
    value becomes the neighbor whose last bit is odd. Rounding this number to a dtype of
    22 bits or less gives the exact value's rounding (Boldo and Melquiond, IEEE Trans.
    Computers 57(4), 2008).
    """

    #: the dtype of results
    dtype: np.dtype[Any]
    #: the direction in which results are rounded
    rounding: str
    #: float32 or float64, the dtype of the first step
    work: np.dtype[Any]
    #: the rounding of the first step, a value of `enum tf_rounding`
    first: int

    @classmethod
    def of(cls, dtype: np.dtype[Any], rounding: str | None) -> Target:
        """Return the target for a dtype.

        Raises
        ------
        TypeError
            For a dtype that is not a floating-point dtype of at most 64 bits.
        ValueError
            For an unknown rounding.
        """
        chosen = check_rounding(rounding)
        part: np.dtype[Any] = _PARTS.get(dtype.name, dtype)
        if part.char in "fd":
            return cls(dtype, chosen, part, ROUNDINGS.index(chosen))
        if part.name in _NARROW or format_of_dtype(part) is not None:
            odd = ROUNDINGS.index("to_odd")
            return cls(dtype, chosen, np.dtype(np.float32), odd)
        raise TypeError(
            "dtype must be float16, float32, float64, complex64, complex128 or a format"
            f" of td.formats for exact results; got {dtype}"
        )

    def finish(self, results: NDArray[Any]) -> NDArray[Any]:
        """Return results of the first step in the dtype."""
        if self.dtype.kind == "c" or self.dtype == self.work:
            return results
        name: Any = self.dtype.name
        rounding: Any = self.rounding
        return np.asarray(quantize(results, name, rounding=rounding))


def check_rounding(rounding: str | None) -> str:
    """Return the direction of rounding; None means ties to even.

    Raises
    ------
    ValueError
        For an unknown one.
    """
    if rounding is None:
        return "ties_to_even"
    if rounding not in EXACT_ROUNDINGS:
        raise ValueError(one_of("rounding", rounding, EXACT_ROUNDINGS))
    return rounding


def is_exactly_readable(dtype: np.dtype[Any]) -> bool:
    """Return whether float64, or two of them, hold every number of a dtype."""
    if dtype.type in _core.scalar_types:
        return True
    if dtype.kind in "biu":
        return dtype.itemsize <= 4
    return dtype.char in "efdFD"


def number_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 or float64, whichever holds the numbers of a readable dtype."""
    is_narrow = dtype.type in _core.scalar_types or dtype.char in "ef"
    return np.dtype(np.float32 if is_narrow else np.float64)


def as_numbers(x: NDArray[Any]) -> NDArray[Any]:
    """Return readable real numbers as float32 or float64."""
    return x.astype(number_dtype(x.dtype), copy=False)


def dtype_into(out: Any, made: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype to which results are rounded: that of `out` if it fits."""
    dtype: np.dtype[Any] = getattr(unwrapped(out), "dtype", made)
    is_fit = is_exactly_readable(dtype) and dtype.kind not in "biu"
    return dtype if is_fit and (dtype.kind == "c") == (made.kind == "c") else made


def result_dtype(
    a: np.dtype[Any], b: np.dtype[Any], dtype: np.dtype[Any] | None, out: Any = None
) -> np.dtype[Any]:
    """Return the dtype of a product: `dtype`, or that of `out`, or of the operands.

    Raises
    ------
    TypeError
        If the operands are not readable floating-point numbers, or complex with a real
        `dtype`.
    """
    for x in (a, b):
        if not is_exactly_readable(x):
            raise TypeError(
                "operands must be floating-point numbers of at most 64 bits with"
                f" precision='exact'; got {x}{cast_advice(x, 'float64')}"
            )
    common = np.result_type(a, b)
    if common.kind in "biu":
        raise TypeError(
            "operands must be floating-point numbers with precision='exact'; got"
            f" {a} and {b}{cast_advice(common, 'float64')}"
        )
    chosen = dtype_into(out, common) if dtype is None else dtype
    if common.kind == "c" and chosen.kind != "c":
        raise TypeError(f"dtype must be complex for complex operands; got {chosen}")
    return chosen
