"""Compute the bytes of a number of parameters in every format.

Example:

  $ tf32dtype sizes 7B
  7,000,000,000 parameters in each format
  format              block size  bits per value        bytes   GiB  % of float32
  ------------------  ----------  --------------  -----------  ----  ------------
  tf32                         -              32  28000000000  26.1         100.0
  bfloat16                     -              16  14000000000  13.0          50.0
  float8_e5m2                  -               8   7000000000   6.5          25.0
  ...
  mxfp6_e2m3                  32            6.25   5468750000   5.1          19.5
  mxfp6_e3m2                  32            6.25   5468750000   5.1          19.5
  mxfp4                       32            4.25   3718750000   3.5          13.3
  ...

bits per value  in an array of the format, scales of blocks included. A tf32 value takes
                4 bytes; FP6 and FP4 values take 1 byte each, except in blocks
bytes           bytes of all values in one row; the last block is filled up. Block
                formats with a scale of the whole tensor take 4 more bytes per tensor
GiB             2^30 bytes
"""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from .._base.errors import UserError
from .._base.text import Table, print_json
from .._measures.format_facts import facts, known
from ..blocks.formats import BLOCK_SIZES, BlockSize
from ..blocks.formats import formats as block_formats

#: The units in names of models: thousands, millions, billions, trillions.
from . import add_options, add_output

_UNITS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype sizes`."""
    given = parser.add_argument_group("Input")
    count = "count this many parameters: 7B, 124M, 7e9 (default: use --parameters)"
    add_options(given, {"count COUNT": count}, nargs="?")
    options = {
        "--parameters COUNT": "count this many parameters (default: COUNT)",
        "--block-size N": f"use blocks of {_choices()} values (default: each block"
        " format's own)",
    }
    add_options(given, options)
    add_output(parser)


def run(arguments: Namespace) -> None:
    """Print the table."""
    given = [x for x in (arguments.count, arguments.parameters) if x is not None]
    if len(given) != 1:
        raise UserError(
            f"COUNT must be given once; got {len(given)}. Use: tf32dtype sizes 7B"
        )
    count = _count(given[0])
    sizes = [_of_array(name, count) for name in known()]
    sizes += [
        _of_blocks(f, count, checked_block_size(arguments.block_size))
        for f in block_formats
    ]
    if arguments.json:
        print_json({"parameters": count, "formats": [size.record() for size in sizes]})
    else:
        _table(sizes, count).print()


@dataclass(frozen=True)
class Size:
    """The size of numbers in a format."""

    name: str
    block: int | None  # None: each number by itself
    bits: float  # of a number
    bytes: int  # of all

    @property
    def gib(self) -> float:
        """The bytes in units of 2^30."""
        return self.bytes / 2**30

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "format": self.name,
            "block_size": self.block,
            "bits_per_value": self.bits,
            "bytes": self.bytes,
            "gib": self.gib,
        }


def _of_array(name: str, count: int) -> Size:
    itemsize = facts(name).dtype.itemsize
    return Size(name, None, 8.0 * itemsize, itemsize * count)


def _of_blocks(name: str, count: int, size: int | None) -> Size:
    form = block_formats[name]
    block = size or form.block_size
    bits = form.bits(block)
    return Size(name, block, bits, -(-count // block) * int(bits * block) // 8)


def _count(text: str) -> int:
    word = text.strip()
    unit = _UNITS.get(word[-1:].upper(), 1)
    try:
        number = Decimal(word if unit == 1 else word[:-1]) * unit
        if number.is_finite() and 1 <= number <= 10**18 and number == int(number):
            return int(number)
    except InvalidOperation:
        pass
    raise UserError(
        "COUNT must be an integer from 1 to 1e18, such as 7e9 or 7B (units:"
        f" {', '.join(_UNITS)}); got {word}"
    )


def checked_block_size(text: str | None) -> BlockSize | None:
    """Return the size that an option names; None: the format's own."""
    if text is None:
        return None
    for size in BLOCK_SIZES:
        if text == str(size):
            return size
    raise UserError(f"--block-size must be one of {_choices()}; got {text.strip()}")


def _choices() -> str:
    return ", ".join(map(str, BLOCK_SIZES))


def _table(sizes: list[Size], count: int) -> Table:
    single = next(size for size in sizes if size.name == "float32")
    return Table(
        f"{count:,} parameters in each format",
        ["format", "block size", "bits per value", "bytes", "GiB", "% of float32"],
        [
            [
                size.name,
                str(size.block or "-"),
                f"{size.bits:g}",
                str(size.bytes),
                f"{size.gib:.1f}",
                f"{100 * size.bytes / single.bytes:.1f}",
            ]
            for size in sizes
        ],
    )
