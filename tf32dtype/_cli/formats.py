"""List the range and precision of every format, and of NumPy's floats.

Example:

  $ tf32dtype formats
  Formats (s-e-m: bits of sign, exponent, mantissa; [1,2): spacing in this interval)
  format              bits    s-e-m  bias          max  min normal  smallest  ...
  ------------------  ----  -------  ----  -----------  ----------  --------  ...
  tf32                  19   1-8-10   127   3.4012e+38      2^-126    2^-136  ...
  bfloat16              16    1-8-7   127   3.3895e+38      2^-126    2^-133  ...
  float8_e5m2            8    1-5-2    15        57344       2^-14     2^-16  ...
  ...

max            the largest finite value
min normal     the smallest positive normal value
smallest       the smallest positive value
eps            distance from 1 to the next larger value
digits         decimal digits that survive the conversion from decimal and back
[1,2) ...      distance of neighboring values in this interval
"""

from argparse import ArgumentParser, Namespace
from fractions import Fraction
from typing import Any

from .._base.text import Table, number, power_of_two, print_json
from .._measures.format_facts import Facts, facts, known
from . import add_output

_OCTAVES = {"[0.5,1)": Fraction(1, 2), "[1,2)": Fraction(1), "[2,4)": Fraction(2)}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype formats`."""
    add_output(parser)


def run(arguments: Namespace) -> None:
    """Print the table."""
    all_facts = [facts(name) for name in known()]
    if arguments.json:
        print_json([_record(f) for f in all_facts])
    else:
        table(all_facts).print()


def table(all_facts: list[Facts]) -> Table:
    """Return the facts as text."""
    header = ["format", "bits", "s-e-m", "bias", "max", "min normal", "smallest", "eps"]
    return Table(
        "Formats (s-e-m: bits of sign, exponent, mantissa; [1,2): spacing in this"
        " interval)",
        [*header, "digits", *_OCTAVES, "Inf", "NaN"],
        [_row(f) for f in all_facts],
    )


def _row(f: Facts) -> list[str]:
    return [
        f.name,
        str(f.bits),
        f"{int(f.signed)}-{f.exponent_bits}-{f.mantissa_bits}",
        str(f.bias),
        number(f.max, 5),
        power_of_two(f.smallest_normal),
        power_of_two(f.smallest_subnormal),
        power_of_two(f.eps),
        str(f.decimal_digits),
        *[power_of_two(spacing) for spacing in _spacings(f).values()],
        "yes" if f.has_infinity else "no",
        "yes" if f.has_nan else "no",
    ]


def _record(f: Facts) -> dict[str, Any]:
    return {
        "name": f.name,
        "bits": f.bits,
        "itemsize": f.dtype.itemsize,
        "signed": f.signed,
        "exponent_bits": f.exponent_bits,
        "mantissa_bits": f.mantissa_bits,
        "bias": f.bias,
        "min": f.min,
        "max": f.max,
        "smallest_normal": f.smallest_normal,
        "smallest_subnormal": f.smallest_subnormal,
        "eps": f.eps,
        "decimal_digits": f.decimal_digits,
        "spacing": _spacings(f),
        "has_infinity": f.has_infinity,
        "has_nan": f.has_nan,
    }


def _spacings(f: Facts) -> dict[str, float]:
    return {name: float(f.spacing(start)) for name, start in _OCTAVES.items()}
