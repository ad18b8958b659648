"""The facts that the commands show, for this package's formats and NumPy's floats.

Exact arithmetic is in `fractions.Fraction`; nothing here rounds twice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .._base.errors import UserError
from .._base.wording import one_of
from .._formats.aliases import (
    ALIASES,
    NUMPY_ALIASES,
    canonical,
    cure,
    meanings,
)
from .._formats.codes import bits
from .._formats.table import Format, formats
from ..blocks.formats import formats as block_formats

NUMPY_NAMES = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Facts:
    """One format, ours or NumPy's."""

    name: str
    dtype: np.dtype[Any]
    bits: int
    unused_low_bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool
    has_infinity: bool
    has_nan: bool
    has_zero: bool
    has_negative_zero: bool
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float
    eps: float
    decimal_digits: int

    def spacing(self, magnitude: Fraction) -> Fraction:
        """Return distance of neighbors at a magnitude, were there no largest number."""
        least = Fraction(self.smallest_normal) * Fraction(self.eps)
        exponent = floor_log2(magnitude) if magnitude else floor_log2(least)
        spacing = Fraction(2) ** (exponent - self.mantissa_bits)
        return spacing if self.name == "float8_e8m0fnu" else max(spacing, least)

    def round(self, exact: Fraction) -> np.floating[Any]:
        """Return the nearest number, ties to even."""
        with np.errstate(all="ignore"):
            if self.name in formats:
                return self.dtype.type(exact)  # type: ignore[no-any-return]
            return self._round_to_numpy(exact)

    def _round_to_numpy(self, exact: Fraction) -> np.floating[Any]:
        spacing = self.spacing(abs(exact))
        # Python's round() of a Fraction is exact, ties to even.
        rounded = round(abs(exact) / spacing) * spacing
        magnitude = math.inf if rounded > Fraction(self.max) else float(rounded)
        return self.dtype.type(-magnitude if exact < 0 else magnitude)  # type: ignore[no-any-return]

    def code(self, value: np.floating[Any]) -> int:
        """Return the bits of a number as they lie in memory."""
        if self.name in formats:
            return int(bits(value))
        return int(np.asarray(value).view(f"u{self.dtype.itemsize}"))

    def from_code(self, code: int) -> np.floating[Any]:
        """Return the number with these bits; unused bits are ignored."""
        unsigned = np.asarray(code, f"u{self.dtype.itemsize}")
        value: Any = unsigned.view(self.dtype)[()]
        return value  # type: ignore[no-any-return]


def known() -> list[str]:
    """Return names of all formats: ours in the order of their table, then NumPy's."""
    return [*formats, *NUMPY_NAMES]


def facts(name: str) -> Facts:
    """Return the facts of a format by its name or a short name.

    Raises
    ------
    UserError
        If there is no such format.
    """
    full = canonical(name)
    if full in NUMPY_NAMES:
        return _of_numpy(full)
    if full in formats:
        return _of_ours(formats[full])
    if full in block_formats:
        raise UserError(
            "format must not be a block format, whose values share a scale; got"
            f" {name!r}. {cure(name)}, or the commands inspect, compare and sizes"
        )
    names = [*known(), *_short_names()]
    raise UserError(one_of("format", name, names, "td.formats", cure(name)))


def meant(names: str) -> list[str]:
    """Return the full names of the formats and block formats that an option names.

    A name that means two formats, such as "fp6", gives both.

    Raises
    ------
    UserError
        For a name that is none's, or if there is none.
    """
    found = [
        full for name in names.replace(",", " ").split() for full in meanings(name)
    ]
    for name in found:
        if name not in block_formats:
            facts(name)
    if not found:
        raise UserError("formats must name at least one format; got none")
    return [*dict.fromkeys(found)]


def _short_names() -> list[str]:
    rows = (ALIASES | NUMPY_ALIASES).values()
    return [name for names in rows for name in names]


def select(names: str | None, default: Sequence[str]) -> list[Facts]:
    """Return the formats of an option such as `--formats tf32,bf16`."""
    if names is None:
        return [facts(name) for name in default]
    chosen = [facts(name) for name in names.replace(",", " ").split()]
    if not chosen:
        raise UserError("--formats must name at least one format; got none")
    return chosen


def signed() -> list[str]:
    """Return names of our formats that have a sign: all but the scale format."""
    return [name for name, form in formats.items() if form.signed]


def floor_log2(x: Fraction) -> int:
    """Return the exponent of the power of two at or below a positive number."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= x else exponent - 1


def _of_ours(form: Format) -> Facts:
    return Facts(
        name=form.name,
        dtype=form.dtype,
        bits=form.bits,
        unused_low_bits=form.unused_low_bits,
        exponent_bits=form.exponent_bits,
        mantissa_bits=form.mantissa_bits,
        bias=form.bias,
        signed=form.signed,
        has_infinity=form.has_infinity,
        has_nan=form.has_nan,
        has_zero=form.has_zero,
        has_negative_zero=form.has_negative_zero,
        max=form.max,
        min=form.min,
        smallest_normal=form.smallest_normal,
        smallest_subnormal=form.smallest_subnormal,
        eps=form.eps,
        decimal_digits=form.decimal_digits,
    )


def _of_numpy(name: str) -> Facts:
    dtype = np.dtype(name)
    info = np.finfo(dtype)
    return Facts(
        name=name,
        dtype=dtype,
        bits=info.bits,
        unused_low_bits=0,
        exponent_bits=info.bits - 1 - info.nmant,
        mantissa_bits=info.nmant,
        bias=1 - int(math.log2(info.smallest_normal)),
        signed=True,
        has_infinity=True,
        has_nan=True,
        has_zero=True,
        has_negative_zero=True,
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        smallest_subnormal=float(info.smallest_subnormal),
        eps=float(info.eps),
        decimal_digits=info.precision,
    )
