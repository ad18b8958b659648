"""The bits of a number, and what rounding it loses in every format; or what numbers the
tensors of a file are.

A number is a decimal (3.14159, 1e-40), a fraction (1/3), a hexadecimal float
(0x1.8p-3), inf or nan, and is taken exactly: each format rounds it once. With
--format, 0x... without a point or exponent is a code: the bits as they lie in
memory, which for tf32 are those of a float32.

A file is .npy, .npz, safetensors (one, or a folder of them with its index), GGUF, HDF5,
Zarr or ONNX, and what is a number is none: write ./1 for a file of that name. Of each
tensor: format, shape, bytes, the range of its finite numbers, the share of zeros,
subnormals, Inf and NaN, and how many numbers have each exponent, the bars growing with
the logarithm of the count. Blocks are taken as the numbers they stand for, and their
scales have a line of their own.
"""

import math
import os
import re
from argparse import ArgumentParser, Namespace
from fractions import Fraction
from typing import Any

import numpy as np

from .._measures.format_facts import Facts, facts, floor_log2, known
from .._text import Table, number, print_json
from . import CommandError, inspect_files

_HEX_FLOAT = re.compile(r"([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)p([+-]?\d+)", re.IGNORECASE)
_CODE = re.compile(r"0x[0-9a-f_]+", re.IGNORECASE)
_DECIMAL_EXPONENT = re.compile(r"e([+-]?\d+)\s*\Z", re.IGNORECASE)
_LONGEST_INPUT = 1_000  # this and the next keep the exact integers small
_LARGEST_EXPONENT = 10_000
_LONGEST_DECIMAL = 60

# What is not a fraction: NaN, the infinities and -0, as floats.
Number = Fraction | float


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype inspect`."""
    parser.add_argument(
        "what",
        metavar="NUMBER|FILE",
        help="a number, a code such as 0x3FC0, or a file of tensors",
    )
    parser.add_argument(
        "--format", default=None, metavar="NAME", help="the format to draw (tf32)"
    )
    parser.add_argument(
        "--tensor",
        action="append",
        metavar="NAME",
        help="of a file these alone: a name, or a pattern such as '*.weight' "
        "(repeatable)",
    )


def run(arguments: Namespace) -> None:
    """Print the report."""
    if _is_file(arguments.what):
        _run_file(arguments)
        return
    text = arguments.what.strip()
    if arguments.tensor:
        raise CommandError(f"--tensor is of files, and {text!r} is none")
    form = facts(arguments.format or "tf32")
    if _CODE.fullmatch(text):
        if arguments.format is None:
            raise CommandError(f"{text} is a code: say of which format with --format")
        value = form.from_code(_code(text, form))
        exact = _exact(value)
    else:
        exact = parse(text)
        value = round_to(form, exact)
    report = {
        "input": text,
        "exact": _show_exact(exact),
        "format": form.name,
        **describe(form, value),
        "errors": [error(facts(name), exact) for name in known()],
    }
    if arguments.json:
        print_json(report)
    else:
        _print(form, report)


def _is_file(text: str) -> bool:
    """Whether it is a path of something, and no number."""
    if not os.path.exists(text):
        return False
    if _CODE.fullmatch(text.strip()):
        return False
    try:
        parse(text.strip())
    except CommandError:
        return True
    return False


def _run_file(arguments: Namespace) -> None:
    if arguments.format:
        raise CommandError(f"--format is of numbers, and {arguments.what} is a file")
    report, table = inspect_files.report(arguments.what, arguments.tensor)
    if arguments.json:
        print_json(report)
        return
    table.print()
    for tensor in report["tensors"]:
        if "error" in tensor:
            print(tensor["error"])


def parse(text: str) -> Number:
    """The exact value of what was typed.

    Raises
    ------
    CommandError
        If it is no number, or too long to be kept exactly.
    """
    if len(text) > _LONGEST_INPUT:
        raise CommandError(f"the number has more than {_LONGEST_INPUT} characters")
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", text, re.IGNORECASE):
        return float(text)
    hexadecimal = _HEX_FLOAT.fullmatch(text)
    exponent = hexadecimal[4] if hexadecimal else ""
    if decimal := _DECIMAL_EXPONENT.search(text):
        exponent = decimal[1]
    if len(exponent) > 6 or abs(int(exponent or 0)) > _LARGEST_EXPONENT:
        raise CommandError(f"the exponent of {text} is beyond {_LARGEST_EXPONENT}")
    try:
        if hexadecimal:
            sign, whole, part, exponent = hexadecimal.groups()
            mantissa = Fraction(int(whole + part, 16), 16 ** len(part))
            return (-1 if sign == "-" else 1) * mantissa * Fraction(2) ** int(exponent)
        value = Fraction(text)
        return -0.0 if value == 0 and text.startswith("-") else value
    except ZeroDivisionError:
        raise CommandError(f"{text} divides by zero") from None
    except ValueError:
        if os.sep in text or os.path.splitext(text.partition(":")[0])[1]:
            raise CommandError(
                f"{text}: no such file, and no number"
                + (" (of a file's tensors choose by --tensor)" if ":" in text else "")
            ) from None
        raise CommandError(
            f"{text!r} is no number and no file; write 3.14159, 1e-40, 1/3, 0x1.8p-3,"
            " inf or nan"
        ) from None


def round_to(form: Facts, exact: Number) -> np.floating[Any]:
    """The number of a format nearest to an exact value, NaN and Inf included."""
    if isinstance(exact, Fraction):
        return form.round(exact)
    with np.errstate(all="ignore"):
        return form.dtype.type(exact)  # type: ignore[no-any-return]


def describe(form: Facts, value: np.floating[Any]) -> dict[str, Any]:
    """Code, fields, exact value and neighbours of a number."""
    code = form.code(value)
    below, above = neighbours(form, value)
    return {
        "value": float(value),
        "code": f"0x{code:0{2 * form.dtype.itemsize}X}",
        **_fields(form, code),
        "kind": _kind(form, value),
        **_spellings(_exact(value)),
        "hex": _hex(float(value)),
        "below": below,
        "above": above,
    }


def neighbours(
    form: Facts, value: np.floating[Any]
) -> tuple[float | None, float | None]:
    """The finite numbers next to a finite one; None where there is none."""
    if not math.isfinite(value):
        return None, None
    to = form.dtype.type
    below = np.nextafter(value, to(form.min)) if value > form.min else None
    above = np.nextafter(value, to(form.max)) if value < form.max else None
    return (
        None if below is None else float(below),
        None if above is None else float(above),
    )


def error(form: Facts, exact: Number) -> dict[str, Any]:
    """What rounding to a format loses.

    `ulps` counts spacings of the format at the exact value; None where there is no
    finite error.
    """
    value = round_to(form, exact)
    rounded = _exact(value)
    record: dict[str, Any] = {
        "format": form.name,
        "code": f"0x{form.code(value):0{2 * form.dtype.itemsize}X}",
        "value": float(value),
        "absolute": None,
        "relative": None,
        "ulps": None,
    }
    if exact == 0:
        exact = Fraction(0)
    if isinstance(exact, Fraction) and isinstance(rounded, Fraction):
        loss = rounded - exact
        record["absolute"] = _to_float(loss)
        record["relative"] = _to_float(loss / abs(exact)) if exact else 0.0
        record["ulps"] = _to_float(abs(loss) / form.spacing(abs(exact)))
    return record


def _code(text: str, form: Facts) -> int:
    code = int(text, 16)
    # The codes of fp6 and fp4 are shorter than their byte.
    width = form.bits + form.unused_low_bits
    if code >> width:
        raise CommandError(f"{text} has more than the {width} bits of {form.name}")
    return code


def _exact(value: np.floating[Any]) -> Number:
    as_float = float(value)  # exact: every format here is part of float64
    return Fraction(as_float) if math.isfinite(as_float) else as_float


def _to_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return -math.inf if x < 0 else math.inf


def _fields(form: Facts, code: int) -> dict[str, str]:
    digits = f"{code >> form.unused_low_bits:0{form.bits}b}"
    sign_end = int(form.signed)
    exponent_end = sign_end + form.exponent_bits
    return {
        "sign": digits[:sign_end],
        "exponent": digits[sign_end:exponent_end],
        "mantissa": digits[exponent_end:],
    }


def _kind(form: Facts, value: np.floating[Any]) -> str:
    magnitude = abs(float(value))
    if math.isnan(magnitude):
        return "NaN"
    if math.isinf(magnitude):
        return "infinity"
    if magnitude == 0:
        return "zero"
    return "subnormal" if magnitude < form.smallest_normal else "normal"


def _spellings(exact: Number) -> dict[str, str | None]:
    """An exact value as an integer times a power of two, and in decimals."""
    if not isinstance(exact, Fraction):
        return {"integer_times_power": None, "decimal": None}
    exponent = 1 - exact.denominator.bit_length()
    integer = exact.numerator
    while exact and integer % 2 == 0:
        integer, exponent = integer // 2, exponent + 1
    return {
        "integer_times_power": f"{integer} * 2^{exponent}",
        "decimal": _decimal(exact),
    }


def _hex(value: float) -> str | None:
    return re.sub(r"\.?0+p", "p", value.hex()) if math.isfinite(value) else None


def _decimal(exact: Fraction) -> str | None:
    """All decimals of a binary fraction; None if they are very many."""
    places = exact.denominator.bit_length() - 1
    digits = str(abs(exact.numerator) * 5**places).rjust(places + 1, "0")
    if len(digits) > _LONGEST_DECIMAL:
        return None
    sign = "-" if exact < 0 else ""
    if places == 0:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _show_exact(exact: Number) -> str:
    if not isinstance(exact, Fraction):
        return str(exact)
    if exact.numerator.bit_length() + exact.denominator.bit_length() < 200:
        return str(exact)
    return f"about {'-' if exact < 0 else ''}2^{floor_log2(abs(exact))}"


def _print(form: Facts, report: dict[str, Any]) -> None:
    # A field of no bits (the sign of float8_e8m0fnu) is left out.
    names = [name for name in ("sign", "exponent", "mantissa") if report[name]]
    widths = {name: max(len(name), len(report[name])) for name in names}
    lines = {
        "input": f"{report['input']} = {report['exact']}",
        form.name: " | ".join(report[name].ljust(widths[name]) for name in names),
        "": " | ".join(name.ljust(widths[name]) for name in names),
        "code": report["code"],
        "value": f"{report['value']!r} ({report['kind']})",
        "exactly": report["integer_times_power"],
        "decimal": report["decimal"],
        "hex": report["hex"],
        "below": report["below"],
        "above": report["above"],
    }
    width = max(map(len, lines)) + 2
    for name, line in lines.items():
        if line is not None:
            print(f"{name:{width}}{line}".rstrip())
    print()
    Table(
        "Nearest in every format and its error (ulps: in spacings)",
        ["format", "code", "value", "relative", "ulps"],
        [
            [
                record["format"],
                record["code"],
                str(record["value"]),
                _measure(record["relative"]),
                _measure(record["ulps"]),
            ]
            for record in report["errors"]
        ],
    ).print()


def _measure(x: float | None) -> str:
    return "-" if x is None else number(x)
