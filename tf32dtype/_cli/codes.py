"""A number of a format: its code, its bits, its neighbors, what rounding it lost."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .._base.errors import UserError
from .._base.text import Painted, Table
from .._measures.format_facts import Facts
from .exact import (
    Number,
    decimal_digits,
    exact_value,
    finite,
    hexadecimal,
    integer_times_power,
    is_code,
    parse,
    to_float,
)

#: The fields of a code, and their colors.
FIELDS = {"sign": "bold red", "exponent": "bold green", "mantissa": "bold cyan"}
_LONGEST_FIELD = 23  # bits of it that a table shows: a float32's mantissa


def read(text: str, form: Facts) -> Number:
    """Return the exact value of a number, or of a code of the format."""
    return (
        exact_value(form.from_code(code(text, form))) if is_code(text) else parse(text)
    )


def code(text: str, form: Facts) -> int:
    """Read a code that the user typed.

    Raises
    ------
    UserError
        If the format's codes are shorter.
    """
    typed = int(text, 16)
    # The codes of fp6 and fp4 are shorter than their byte.
    width = form.bits + form.unused_low_bits
    if typed >> width:
        raise UserError(
            f"code of {form.name} must have at most {width} bits; got {text}"
        )
    return typed


def round_to(form: Facts, exact: Number) -> np.floating[Any]:
    """Return the number of a format nearest to an exact value, NaN and Inf included."""
    if isinstance(exact, Fraction):
        return form.round(exact)
    with np.errstate(all="ignore"):
        return form.dtype.type(exact)  # type: ignore[no-any-return]


def describe(
    form: Facts, value: np.floating[Any], code: int | None = None
) -> dict[str, Any]:
    """Code, fields, exact value and neighbors of a number."""
    below, above = neighbors(form, value)
    return {
        **coded(form, value, code),
        "below": None if below is None else float(below),
        "above": None if above is None else float(above),
    }


def coded(
    form: Facts, value: np.floating[Any], code: int | None = None
) -> dict[str, Any]:
    """Return the code, the fields and the exact value of a number.

    Pass `code` for a NaN: a format may have several NaN codes, and `value` cannot tell
    them apart.
    """
    return {
        "value": float(value),
        **_code_and_fields(form, form.code(value) if code is None else code),
        "kind": kind(form, value),
        "integer_times_power": integer_times_power(exact_value(value)),
        "decimal": decimal_digits(exact_value(value)),
        "hex": hexadecimal(float(value)),
    }


def neighbors(
    form: Facts, value: np.floating[Any]
) -> tuple[np.floating[Any] | None, np.floating[Any] | None]:
    """Return the finite numbers next to a finite one; None if there is none."""
    if not math.isfinite(value):
        return None, None
    to = form.dtype.type
    with np.errstate(all="ignore"):
        below = np.nextafter(value, to(form.min)) if value > form.min else None
        above = np.nextafter(value, to(form.max)) if value < form.max else None
    return below, above


def error(form: Facts, exact: Number) -> dict[str, Any]:
    """Return the error of rounding a number to a format.

    `ulps` counts spacings of the format at the exact value; None where there is no
    finite error.
    """
    value = round_to(form, exact)
    record: dict[str, Any] = {
        "format": form.name,
        **_code_and_fields(form, form.code(value)),
        "value": float(value),
        "outcome": outcome(form, exact, value),
        "absolute": None,
        "relative": None,
        "ulps": None,
    }
    typed, rounded = finite(exact), finite(exact_value(value))
    if typed is not None and rounded is not None:
        loss = rounded - typed
        record["absolute"] = to_float(loss)
        record["relative"] = to_float(loss / abs(typed)) if typed else 0.0
        record["ulps"] = to_float(abs(loss) / form.spacing(abs(typed)))
    return record


def outcome(form: Facts, exact: Number, value: np.floating[Any]) -> str:
    """Describe the result of rounding a number to a format in one to three words."""
    typed = finite(exact)
    if typed is None:
        return happened(exact, value, kind(form, value))
    if not form.has_zero and 0 < typed < Fraction(form.smallest_subnormal):
        return "below the range"
    lacks = "zero" if not typed else "sign" if typed < 0 and not form.signed else ""
    greatest = Fraction(form.max)
    return happened(
        exact,
        value,
        kind(form, value),
        beyond=is_beyond(abs(typed), greatest, form.spacing(greatest)),
        why_nan=f"no {lacks}" if lacks else "",
    )


def happened(
    exact: Number,
    value: np.floating[Any],
    became: str,
    beyond: bool = False,
    why_nan: str = "",
) -> str:
    """Describe the result of rounding a number to a format or to a block format.

    `became` is the kind of the result. `beyond` says whether the number is too large
    for the format. `why_nan` is the reason if a finite number became NaN without
    overflow.
    """
    typed = finite(exact)
    if typed is None:
        given = "NaN" if math.isnan(exact) else "infinity"
        if given == "infinity" and math.isfinite(value) and value:
            return "saturated"
        return became if became == given else f"{given} became {became}"
    if became == "NaN" and why_nan:
        return f"NaN: {why_nan}"
    if became == "zero" and typed:
        return "underflow to zero"
    if beyond:
        return "saturated" if math.isfinite(value) else f"overflow to {became}"
    change = "exact" if finite(exact_value(value)) == typed else "rounded"
    return f"{change}, subnormal" if became == "subnormal" else change


def is_beyond(size: Fraction, greatest: Fraction, spacing: Fraction) -> bool:
    """Return whether a magnitude rounds above the largest number, ties to even."""
    past = 2 * (size - greatest) - spacing
    return past > 0 or (past == 0 < spacing and greatest / spacing % 2 == 1)


def kind(form: Facts, value: np.floating[Any]) -> str:
    """Normal, subnormal, zero, infinity or NaN."""
    magnitude = abs(float(value))
    if math.isnan(magnitude):
        return "NaN"
    if math.isinf(magnitude):
        return "infinity"
    if magnitude == 0:
        return "zero"
    return "subnormal" if magnitude < form.smallest_normal else "normal"


def painted(record: dict[str, Any], gap: str = " ") -> Painted:
    """Return the fields of a code, each in its color."""
    pieces: list[tuple[str, str]] = []
    for name, style in FIELDS.items():
        digits = record[name]
        if len(digits) > _LONGEST_FIELD:
            digits = digits[: _LONGEST_FIELD - 3] + "..."
        if digits:
            pieces += [(gap, "")] * bool(pieces) + [(digits, style)]
    return Painted(*pieces)


def table(title: str, key: str, rows: list[tuple[str, dict[str, Any]]]) -> Table:
    """Return a table of codes: a name per row, and the facts that `coded` returns."""
    return Table(
        title,
        [key, "bits", "value", "exact value", "kind"],
        [
            [
                name,
                painted(each),
                str(each["value"]),
                each["integer_times_power"] or "-",
                each["kind"],
            ]
            for name, each in rows
        ],
    )


def _code_and_fields(form: Facts, code: int) -> dict[str, str]:
    fields = code >> form.unused_low_bits
    digits = f"{fields:0{form.bits}b}"
    sign_end = int(form.signed)
    exponent_end = sign_end + form.exponent_bits
    return {
        "code": f"0x{fields << form.unused_low_bits:0{2 * form.dtype.itemsize}X}",
        "sign": digits[:sign_end],
        "exponent": digits[sign_end:exponent_end],
        "mantissa": digits[exponent_end:],
    }
