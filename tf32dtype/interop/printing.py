"""Arrays print as NumPy's float32 ones do, with the digits of their own format.

NumPy prints numbers of its own types alone. The elements of others it joins as
`str` has them, whatever the print options say (from version 2.5), or prints with the
digits of float64 (before). `numpy._core.arrayprint` decides it, by three functions that
it looks up by name each time: what picks the format of an array, and what writes one
number. They are replaced by ones that do the same for our types and hand all others
on. Where a later NumPy has no such names, arrays print as it prints them.
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
    """Have NumPy print numbers of these formats by their own digits."""
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
    """Write a number by its format's digits, with a function that writes float64's.

    Parameters
    ----------
    write : callable
        NumPy's `dragon4_positional` or `dragon4_scientific`, which has the parameters
        of `np.format_float_positional` or `np.format_float_scientific`.
    notation : {'positional', 'scientific'}
    x : scalar
        The number.
    shortest : float
        The number whose digits, as float64 prints it, are the shortest ones that
        read back as `x` in its format.
    """
    number = float(x)
    if unique and shortest != number and math.isfinite(number):
        from decimal import Decimal  # not needed before something is printed

        _, all_digits, exponent = Decimal(repr(shortest)).normalize().as_tuple()
        # The digits that `precision` and `min_digits` count, and what means no limit.
        if notation == "scientific":
            digits, unlimited = len(all_digits) - 1, -1
        elif layout.get("fractional", True):
            digits, unlimited = max(0, -int(exponent)), -1
        else:
            digits, unlimited = len(all_digits), 0
        if digits < min_digits:  # those beyond the shortest are the number's own
            precision = min_digits
        elif digits <= precision or precision <= unlimited:
            number = shortest
    return write(
        number, precision=precision, unique=unique, min_digits=min_digits, **layout
    )


# -- arrays ----------------------------------------------------------------------


class _Numbers(np.ndarray[Any, np.dtype[np.float32]]):
    """Hold numbers of a format as float32, by which NumPy decides on a layout.

    They become scalars of the format when NumPy takes one after the other to write it.
    """

    scalar: type[np.floating[Any]] | None = None

    def __array_finalize__(self, parent: object) -> None:
        self.scalar = getattr(parent, "scalar", None)

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False, /
    ) -> Any:
        return array[()] if return_scalar else array  # results are no such numbers

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
