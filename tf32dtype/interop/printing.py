"""Print arrays as NumPy prints float32 arrays, with the digits of their own format.

NumPy formats only values of its own types. From version 2.5, it joins the `str` of
other elements and ignores the print options. Before, it printed other elements with the
digits of float64. `numpy._core.arrayprint` looks up three functions by name on each
call: one chooses the layout of an array, two write a number. This module replaces them
by functions that handle the formats and pass all other types on. If a later NumPy has
no such names, arrays are printed as NumPy prints them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy._core import arrayprint

from .. import _core
from .._formats.table import Format

_Write = Callable[..., str]
_Notation = Literal["positional", "scientific"]


def register(formats: Mapping[str, Format]) -> None:
    """Make NumPy print values of these formats with their own digits."""
    types = frozenset(form.type for form in formats.values())
    notations: tuple[_Notation, ...] = ("positional", "scientific")
    known = vars(arrayprint)
    for notation in notations:
        if (write := known.get(f"dragon4_{notation}")) is not None:
            known[f"dragon4_{notation}"] = _writer(write, notation, types)
    choose, formatters = (
        known.get(name) for name in ("_get_format_function", "_get_formatdict")
    )
    if choose is not None and formatters is not None:
        known["_get_format_function"] = _chooser(choose, formatters, types)


# -- one number ------------------------------------------------------------------


def _writer(write: _Write, notation: _Notation, types: frozenset[type]) -> _Write:
    def write_number(x: Any, *args: Any, **options: Any) -> str:
        if type(x) in types and not args:
            return write_digits(write, notation, x, _core.printed(x), **options)
        return write(x, *args, **options)

    return write_number


def write_digits(
    write: _Write,
    notation: _Notation,
    x: Any,
    shortest: float,
    *,
    precision: int = -1,
    unique: bool = True,
    min_digits: int = -1,
    **layout: Any,
) -> str:
    """Write a value with the digits of its format, by a function for float64.

    Parameters
    ----------
    write : callable
        NumPy's `dragon4_positional` or `dragon4_scientific`, which has the parameters
        of `np.format_float_positional` or `np.format_float_scientific`.
    notation : {'positional', 'scientific'}
    x : scalar
        The value.
    shortest : float
        The float64 value whose printed digits are the shortest ones that read back as
        `x` in its format.
    """
    number = float(x)
    if unique and shortest != number and math.isfinite(number):
        from decimal import Decimal  # not needed before something is printed

        _, all_digits, exponent = Decimal(repr(shortest)).normalize().as_tuple()
        # The digits that `precision` and `min_digits` count; the value for no limit.
        if notation == "scientific":
            digits, unlimited = len(all_digits) - 1, -1
        elif layout.get("fractional", True):
            digits, unlimited = max(0, -int(exponent)), -1
        else:
            digits, unlimited = len(all_digits), 0
        if digits < min_digits:  # further digits are those of the exact value
            precision = min_digits
        elif digits <= precision or precision <= unlimited:
            number = shortest
    return write(
        number, precision=precision, unique=unique, min_digits=min_digits, **layout
    )


# -- arrays ----------------------------------------------------------------------


class _Numbers(np.ndarray[Any, np.dtype[np.float32]]):
    """The values of a format as float32, from which NumPy chooses a layout.

    When NumPy iterates over them to write each value, it gets scalars of the format.
    """

    scalar: type[np.floating[Any]] | None = None

    def __array_finalize__(self, parent: object) -> None:
        self.scalar = getattr(parent, "scalar", None)

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False, /
    ) -> Any:
        return array[()] if return_scalar else array  # results are plain arrays

    def __iter__(self) -> Iterator[Any]:
        assert self.scalar is not None
        return iter(self.view(np.ndarray).astype(self.scalar))


def _chooser(
    choose: Callable[..., Any],
    formatters: Callable[..., Any],
    types: frozenset[type],
) -> Callable[..., Any]:
    def choose_format(data: Any, **options: Any) -> Any:
        scalar = data.dtype.type
        if scalar not in types:
            return choose(data, **options)
        numbers = np.asarray(data).astype(np.float32).view(_Numbers)
        numbers.scalar = scalar
        return formatters(numbers, **options)["float"]()

    return choose_format
