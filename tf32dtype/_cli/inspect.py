"""Show the bits and rounding errors of numbers, or summarize the tensors of a file.

Example: the bits of a number in tf32, and its error in every format

  $ tf32dtype inspect 3.14159
  input        3.14159 = 314159/100000
  tf32         0    | 10000000 | 1001001000
               sign | exponent | mantissa
  code         0x40490000
  value        3.140625 (normal)
  exact value  201 * 2^-6
  decimal      3.140625
  hex          0x1.92p+1
  next below   3.138671875
  next above   3.142578125

  Nearest value in every format (ulps: error divided by the spacing)
  format                            code              value  rel. error    ulps
  ------------------  ------------------  -----------------  ----------  ------
  tf32                        0x40490000           3.140625   -0.000307   0.494
  ...

Example: several numbers in one format

  $ tf32dtype inspect 0.1 1e-8 1e6 --format fp16
  Nearest value in float16 (ulps: error divided by the spacing)
  number    code                bits            value  rel. error   ulps  ...
  ------  ------  ------------------  ---------------  ----------  -----  ...
  0.1     0x2E66  0 01011 1001100110  0.0999755859375   -0.000244    0.4  ...
  1e-8    0x0000  0 00000 0000000000              0.0          -1  0.168  ...
  1e6     0x7C00  0 11111 0000000000              inf           -      -  ...

A number is a decimal (3.14159, 1e-40), a fraction (1/3), a hexadecimal float
(0x1.8p-3), inf or nan. Each format rounds the exact number once. With --format,
hexadecimal digits without a point or an exponent (0x3FC0) are a code: the bits in
memory, which for tf32 are those of a float32. With --all and without --format, a code
is shown in each format that has it. Several numbers get one row each. - reads numbers
from standard input.

In a block format (--format mxfp4) the numbers are one block. The first table shows the
scale by each rule, the second the codes under one rule. A scale of the whole tensor
(nvfp4, tcfp) is that of these numbers.

Example: the tensors of a file

  $ tf32dtype inspect model.safetensors
  model.safetensors: safetensors, 32.25 KiB in 3 tensors
  tensor           format    shape   bytes    min   max  ...
  --------------  -------  -------  ------  -----  ----  ...
  layer.0.bias    float32       64   256 B  -2.68     3  ...
  layer.0.weight  float32  64 x 64  16 KiB  -3.52  3.44  ...
  lm_head         float32  64 x 64  16 KiB  -3.52  3.44  ...

A file is .npy, .npz, safetensors (a file, or a folder with an index), GGUF, HDF5, Zarr
or ONNX. If the name of a file is a number, write ./1. The table shows format, shape,
bytes and range of the finite values of each tensor; the share of zeros, subnormals, Inf
and NaN; and how many values have each exponent, as bars that grow with the logarithm of
the count. Blocks count as the values that they represent; their scales have a row of
their own.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from .._base.errors import UserError
from .._base.text import Painted, Table, print_json, say
from .._measures.format_facts import Facts, facts, known, meant
from ..blocks.formats import BLOCK_SIZES, RULES
from ..blocks.formats import formats as block_formats
from . import (
    add_options,
    add_output,
    codes,
    inspect_all,
    inspect_blocks,
    inspect_files,
)
from .exact import is_code, parse, shown
from .operands import parted

_FORMAT = "tf32"  # that is drawn where none is named


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype inspect`."""
    given = parser.add_argument_group("Input")
    options = {
        "what NUMBER|FILE": "show numbers, a code such as 0x3FC0, or the tensors of a"
        " file: FILE, FILE:NAME for one of them; - reads numbers from standard input",
    }
    add_options(given, options, nargs="+")
    options = {
        "--tensor NAME": "show only the tensors of a file with this name, or a name"
        " that matches a pattern such as '*.weight' (repeatable; default: all)",
    }
    add_options(given, options, action="append")
    options = {
        "--format NAMES": "show numbers in these formats or block formats, separated by"
        f" commas (default: {_FORMAT})",
        "--scale RULE": "show the codes of a block under this rule for its scale:"
        f" {', '.join(RULES)} (default: the block format's)",
        "--block-size N": f"use blocks of {', '.join(map(str, BLOCK_SIZES))} values"
        " (default: the block format's)",
    }
    add_options(parser.add_argument_group("Precision"), options)
    options = {
        "--all": "show the bits of a number in every format, and a number line around"
        " it in those of --format (default: one format, and the errors in all)",
    }
    add_options(add_output(parser), options)


def run(arguments: Namespace) -> None:
    """Print the report."""
    paths = [path for word in arguments.what if (path := _file_of(word))]
    if paths and len(arguments.what) > 1:
        raise UserError(
            f"{paths[0]} must be the only argument, because it is a file; got"
            f" {len(arguments.what)} arguments. Use --tensor to name tensors"
        )
    if paths:
        _run_file(arguments, paths[0])
        return
    typed = _numbers(arguments.what)
    if arguments.tensor:
        raise UserError(f"--tensor must only be given with a file; got {typed[0]!r}")
    if arguments.all and arguments.format is None and is_code(typed[0]):
        _only_one(typed)
        reports: list[Any] = [inspect_all.code_report(typed[0])]
    else:
        names = meant(_FORMAT if arguments.format is None else arguments.format)
        in_blocks = [name for name in names if name in block_formats]
        if in_blocks and (others := [x for x in names if x not in block_formats]):
            raise UserError(
                "--format must name only block formats or only other formats; got"
                f" {in_blocks[0]} and {others[0]}"
            )
        _check_options(arguments, bool(in_blocks))
        if in_blocks:
            reports = inspect_blocks.reports(in_blocks, typed, arguments)
        else:
            forms = [facts(name) for name in names]
            reports = _of_formats(forms, typed, arguments)
    if arguments.json:
        records = [record for record, _ in reports]
        print_json(records if len(records) > 1 else records[0])
        return
    for i, (_, print_report) in enumerate(reports):
        if i:
            print()
        print_report()


def _numbers(words: list[str]) -> list[str]:
    """Return the numbers that the user typed, with the input in place of "-"."""
    found: list[str] = []
    for word in words:
        if word.strip() == "-":
            found += sys.stdin.read().replace(",", " ").split()
        else:
            found.append(word.strip())
    if not found:
        raise UserError("standard input must have at least one number; got none")
    return found


def _check_options(arguments: Namespace, in_blocks: bool) -> None:
    if in_blocks and arguments.all:
        raise UserError("--all must not be given with a block format")
    for option in ("scale", "block_size"):
        if getattr(arguments, option) and not in_blocks:
            raise UserError(
                f"--{option.replace('_', '-')} must only be given with a block format;"
                f" use --format with one of {', '.join(block_formats)}"
            )


def _of_formats(forms: list[Facts], typed: list[str], arguments: Namespace) -> Any:
    if arguments.format is None and (first := [x for x in typed if is_code(x)]):
        raise UserError(
            f"{first[0]} is a code and not a number; use --format to name its format"
        )
    if arguments.all:
        _only_one(typed)
        return [inspect_all.report(forms, typed[0])]
    if len(typed) > 1:
        return [inspect_all.several(form, typed) for form in forms]
    # Show the errors in other formats once, unless the number is a code.
    last = forms[-1]
    word = typed[0]
    return [_one(form, word, form is last or is_code(word)) for form in forms]


def _only_one(typed: list[str]) -> None:
    if len(typed) > 1:
        raise UserError(f"--all must be given with one number; got {len(typed)}")


def _file_of(text: str) -> str:
    """Return the path of a file, of `FILE` or `FILE:NAME`; empty for a number."""
    path = text if is_code(text.strip()) else parted(text)[0]
    if not os.path.exists(path) or is_code(path.strip()):
        return ""
    try:
        parse(path.strip())
    except UserError:
        return path
    return ""


def _run_file(arguments: Namespace, path: str) -> None:
    if name := arguments.what[0][len(path) + 1 :]:
        arguments.tensor = [*(arguments.tensor or []), name]
    for option in ("format", "all", "scale", "block_size"):
        if getattr(arguments, option):
            name = option.replace("_", "-")
            raise UserError(
                f"--{name} must only be given with numbers; got the file {path}"
            )
    report, table = inspect_files.report(path, arguments.tensor)
    if arguments.json:
        print_json(report)
        return
    table.print()
    for tensor in report["tensors"]:
        if "error" in tensor:
            print(tensor["error"])


def _one(form: Facts, typed: str, with_errors: bool) -> inspect_all.Report:
    """Return a number in a format, and its error in every format."""
    exact = codes.read(typed, form)
    code = codes.code(typed, form) if is_code(typed) else None
    report = {
        "input": typed,
        "exact": shown(exact),
        "format": form.name,
        **codes.describe(form, codes.round_to(form, exact), code),
        "errors": [codes.error(facts(name), exact) for name in known()],
    }

    def write() -> None:
        _draw(form, report)
        if with_errors:
            print()
            _print_errors(report)

    return report, write


def _draw(form: Facts, report: dict[str, Any]) -> None:
    # A field of no bits (the sign of float8_e8m0fnu) is left out.
    names = [name for name in codes.FIELDS if report[name]]
    widths = {name: max(len(name), len(report[name])) for name in names}
    lines = {
        "input": f"{report['input']} = {report['exact']}",
        form.name: [report[name].ljust(widths[name]) for name in names],
        "": [name.ljust(widths[name]) for name in names],
        "code": report["code"],
        "value": f"{report['value']!r} ({report['kind']})",
        "exact value": report["integer_times_power"],
        "decimal": report["decimal"],
        "hex": report["hex"],
        "next below": report["below"],
        "next above": report["above"],
    }
    width = max(map(len, lines)) + 2
    for name, line in lines.items():
        start = f"{name:{width}}"
        if isinstance(line, list):
            say(_in_colors(start, dict(zip(names, line, strict=True))))
        elif line is not None:
            print(f"{start}{line}".rstrip())


def _print_errors(report: dict[str, Any]) -> None:
    Table(
        "Nearest value in every format (ulps: error divided by the spacing)",
        ["format", "code", "value", "rel. error", "ulps"],
        [
            [
                record["format"],
                record["code"],
                str(record["value"]),
                inspect_all.measure(record["relative"]),
                inspect_all.measure(record["ulps"]),
            ]
            for record in report["errors"]
        ],
    ).print()


def _in_colors(start: str, fields: dict[str, str]) -> Painted:
    pieces = [(start, "")]
    for i, (name, text) in enumerate(fields.items()):
        last = i == len(fields) - 1
        pieces.append((text.rstrip() if last else text, codes.FIELDS[name]))
        if not last:
            pieces.append((" | ", ""))
    return Painted(*pieces)
