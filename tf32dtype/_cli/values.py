"""List all values of a format, or count them per binade.

Example:

  $ tf32dtype values fp4
  float4_e2m1fn: all 16 codes (bits: sign-exponent-mantissa)
  code    bits  value  exact value       kind
  ----  ------  -----  -----------  ---------
  0x00  0 00 0    0.0      0 * 2^0       zero
  0x01  0 00 1    0.5     1 * 2^-1  subnormal
  0x02  0 01 0    1.0      1 * 2^0     normal
  ...
  0x0F  1 11 1   -6.0     -3 * 2^1     normal

  Finite values of float4_e2m1fn
          |---------|----|-----|-|--|~|~~|~~|~|--|-|-----|----|---------|
         -6             -3               0               3              6
  (|: one value; 2 to 9: this many values; +: more; ~: between subnormals)

  Positive values of float4_e2m1fn per binade, and as many negative values
  binade                spacing  values
  --------------------  -------  ------
  subnormal, below 2^0     2^-1       1
  2^0                      2^-1       2
  2^1                       2^0       2
  2^2                       2^1       2
  16 codes: 14 nonzero numbers, 2 zeros

A format of at most 8 bits gets one row per code: its bits (sign, exponent and mantissa
apart), its value, the exact value as an integer times a power of two, and its kind. A
number line follows. Every format gets a table of its binades: how many values each has,
and their spacing. A binade reaches from a power of two to the next. If there are very
many, a run of binades is one row.

A name of two formats (fp6) shows both. A block format (mxfp8) shows the values of its
elements.
"""

from argparse import ArgumentParser, Namespace
from fractions import Fraction
from typing import Any

from .._base.errors import UserError
from .._base.text import Table, number, print_json
from .._measures.format_facts import Facts, facts, floor_log2, meant
from ..blocks.formats import elements
from ..blocks.formats import formats as block_formats
from . import add_options, add_output, number_line
from .codes import coded
from .codes import table as codes_table
from .exact import to_float

_SMALL = 8  # bits of a format whose codes are listed
_MOST_ROWS = 32  # of binades that are listed one by one
_NEAR_ONE = range(-3, 4)  # exponents of those that are, of very many
_WIDE = 16  # columns of a grid


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype values`."""
    given = parser.add_argument_group("Input")
    options = {"formats FORMAT": "list the values of this format, such as fp4 or bf16"}
    add_options(given, options, nargs="+")
    output = add_output(parser)
    output.add_argument(
        "--sort",
        choices=["code", "value"],
        default="code",
        help="sort the list by code or by value, with NaN last (default: code)",
    )
    options = {
        "--grid": f"list only values, {_WIDE} in a row, to four digits (default: a row"
        " per code)",
    }
    add_options(output, options)


def run(arguments: Namespace) -> None:
    """Print the tables."""
    named = meant(",".join(arguments.formats))
    forms = [*dict.fromkeys(map(_of_numbers, named))]
    if arguments.grid and (large := [form for form in forms if form.bits > _SMALL]):
        raise UserError(
            f"--grid must only be given for formats of at most {_SMALL} bits; got"
            f" {large[0].name}, which has {large[0].bits}"
        )
    reports = [record(form, arguments.sort) for form in forms]
    if arguments.json:
        print_json(reports)
        return
    for i, (form, report) in enumerate(zip(forms, reports, strict=True)):
        if i:
            print()
        _print(form, report, arguments.grid)


def _of_numbers(name: str) -> Facts:
    """Return the format of this name, or that of a block format's elements."""
    if name not in block_formats:
        return facts(name)
    element = elements[block_formats[name].element]
    if element.is_integer:
        most = (1 << element.width - 1) - 1
        unit = f", each times 2^-{element.fraction_bits}" * bool(element.fraction_bits)
        raise UserError(
            f"elements of {name} are not in a format: they are the integers from"
            f" {-most} to {most}{unit}"
        )
    return facts(element.name)


def record(form: Facts, order: str = "code") -> dict[str, Any]:
    """Return all that is printed of a format, for JSON."""
    zeros = form.has_zero + form.has_negative_zero
    infinities = form.has_infinity * (1 + form.signed)
    above = _subnormals(form) + sum(each["numbers"] for each in binades(form))
    numbers = above * (1 + form.signed)
    return {
        "format": form.name,
        "bits": form.bits,
        "signed": form.signed,
        "numbers": numbers,
        "zeros": zeros,
        "infinities": infinities,
        "nans": (1 << form.bits) - numbers - zeros - infinities,
        "subnormals": {
            "least": form.smallest_subnormal,
            "below": form.smallest_normal,
            "spacing": to_float(form.spacing(Fraction(0))),
            "numbers": _subnormals(form),
        },
        "binades": binades(form),
        "values": _codes(form, order) if form.bits <= _SMALL else None,
    }


def binades(form: Facts) -> list[dict[str, Any]]:
    """List the binades above zero with normal numbers.

    Each extends from 2^exponent to the next power of two. The entry has the spacing of
    its numbers and their count.
    """
    last = floor_log2(Fraction(form.max))
    found = []
    for exponent in range(floor_log2(Fraction(form.smallest_normal)), last + 1):
        start = Fraction(2) ** exponent
        spacing = form.spacing(start)
        top = Fraction(form.max) if exponent == last else 2 * start - spacing
        if not form.mantissa_bits:
            top = start
        found.append(
            {
                "exponent": exponent,
                "spacing": float(spacing),
                "numbers": int((top - start) / spacing) + 1,
            }
        )
    return found


def _subnormals(form: Facts) -> int:
    """How many there are above zero."""
    return int(form.smallest_normal / form.smallest_subnormal) - 1


def _codes(form: Facts, order: str) -> list[dict[str, Any]]:
    found = [coded(form, form.from_code(x), x) for x in range(1 << form.bits)]
    if order == "value":
        # -0 is in front of 0, and NaN behind all.
        found.sort(key=lambda x: (x["kind"] == "NaN", x["value"], x["sign"] != "1"))
    return found


# -- text -----------------------------------------------------------------------


def _print(form: Facts, report: dict[str, Any], grid: bool) -> None:
    if report["values"] is not None:
        (_grid if grid else _list)(form, report["values"]).print()
        finite = [
            each["value"]
            for each in report["values"]
            if each["kind"] not in ("NaN", "infinity")
        ]
        print(f"\nFinite values of {form.name}")
        print("\n".join(number_line.whole(form, finite)))
        print(f"{number_line.WHOLE_LEGEND}\n")
    _binade_table(form, report).print()
    print(_specials(report))


def _list(form: Facts, values: list[dict[str, Any]]) -> Table:
    fields = "-".join(
        name
        for name, bits in {
            "sign": form.signed,
            "exponent": form.exponent_bits,
            "mantissa": form.mantissa_bits,
        }.items()
        if bits
    )
    title = f"{form.name}: all {len(values)} codes (bits: {fields})"
    return codes_table(title, "code", [(each["code"], each) for each in values])


def _grid(form: Facts, values: list[dict[str, Any]]) -> Table:
    rows = [values[start : start + _WIDE] for start in range(0, len(values), _WIDE)]
    return Table(
        f"{form.name}: all {len(values)} values",
        ["code", *(f"+{i:X}" for i in range(_WIDE))],
        [[row[0]["code"], *(number(each["value"], 4) for each in row)] for row in rows],
    )


def _binade_table(form: Facts, report: dict[str, Any]) -> Table:
    rows = []
    subnormals = report["subnormals"]
    if subnormals["numbers"]:
        normal = floor_log2(Fraction(form.smallest_normal))
        rows.append(
            [
                f"subnormal, below 2^{normal}",
                _power(subnormals["spacing"]),
                str(subnormals["numbers"]),
            ]
        )
    rows += [_run(run) for run in _runs(report["binades"])]
    negative = ", and as many negative values" if form.signed else ""
    return Table(
        f"Positive values of {form.name} per binade{negative}",
        ["binade", "spacing", "values"],
        rows,
    )


def _runs(found: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Binades one by one, or of many those at the ends and near 1, others in runs."""
    if len(found) <= _MOST_ROWS:
        return [[each] for each in found]
    ends = (*found[:2], *found[-2:])
    runs: list[list[dict[str, Any]]] = []
    alone = True
    for each in found:
        before, alone = alone, each in ends or each["exponent"] in _NEAR_ONE
        if before or alone:
            runs.append([])
        runs[-1].append(each)
    return runs


def _run(run: list[dict[str, Any]]) -> list[str]:
    first, last = run[0], run[-1]
    start = f"2^{first['exponent']}"
    spacing = _power(first["spacing"])
    numbers = str(first["numbers"])
    if len(run) > 1:
        start += f" to below 2^{last['exponent'] + 1}"
        spacing += f" to {_power(last['spacing'])}"
        numbers = f"{len(run)} x {numbers}"
    return [start, spacing, numbers]


def _power(x: float) -> str:
    return f"2^{floor_log2(Fraction(x))}"


def _specials(report: dict[str, Any]) -> str:
    """Describe how many codes are numbers, zeros, Inf and NaN."""
    counts = {
        "nonzero numbers": report["numbers"],
        "zeros": report["zeros"],
        "Inf": report["infinities"],
        "NaN": report["nans"],
    }
    listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{1 << report['bits']} codes: {listed}"
