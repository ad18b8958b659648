"""The bits of numbers, and what rounding them loses in every format; or what numbers
the tensors of a file are.

A number is a decimal (3.14159, 1e-40), a fraction (1/3), a hexadecimal float
(0x1.8p-3), inf or nan, and is taken exactly: each format rounds it once. With
--format, 0x... without a point or exponent is a code: the bits as they lie in
memory, which for tf32 are those of a float32. With --all and no --format it is taken
as a code of each format that has such. Several numbers have a row each; - reads them
from standard input.

In a block format (--format mxfp4) the numbers are one block: the scale that each rule
finds, and what each number becomes under one of them, by default the format's. Where
blocks have scales that the whole tensor multiplies (nvfp4, tcfp), it is these numbers.

A file is .npy, .npz, safetensors (one, or a folder of them with its index), GGUF, HDF5,
Zarr or ONNX, and what is a number is none: write ./1 for a file of that name. Of each
tensor: format, shape, bytes, the range of its finite numbers, the share of zeros,
subnormals, Inf and NaN, and how many numbers have each exponent, the bars growing with
the logarithm of the count. Blocks are taken as the numbers they stand for, and their
scales have a line of their own.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from .._measures.format_facts import Facts, facts, known, meant
from .._text import Painted, Table, print_json, say
from ..blocks.formats import BLOCK_SIZES, RULES
from ..blocks.formats import formats as block_formats
from . import CommandError, codes, inspect_all, inspect_blocks, inspect_files
from .exact import is_code, parse, shown
from .operands import parted

_FORMAT = "tf32"  # that is drawn where none is named


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype inspect`."""
    parser.add_argument(
        "what",
        nargs="+",
        metavar="NUMBER|FILE",
        help="numbers, a code such as 0x3FC0, - for numbers of standard input, or a"
        " file of tensors, FILE:NAME for one of them",
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        help=f"the format to draw ({_FORMAT}), or several with commas between them",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="the bits of a number in every format, and a number line around it in"
        " those of --format",
    )
    parser.add_argument(
        "--scale", metavar="RULE", help=f"of a block: {', '.join(RULES)}"
    )
    parser.add_argument(
        "--block-size",
        metavar="N",
        help=f"of a block: {', '.join(map(str, BLOCK_SIZES))}",
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
    paths = [path for word in arguments.what if (path := _file_of(word))]
    if paths and len(arguments.what) > 1:
        raise CommandError(
            f"{paths[0]} must be the only argument, because it is a file; got"
            f" {len(arguments.what)} arguments. Use --tensor to name tensors"
        )
    if paths:
        _run_file(arguments, paths[0])
        return
    typed = _numbers(arguments.what)
    if arguments.tensor:
        raise CommandError(f"--tensor must only be given with a file; got {typed[0]!r}")
    if arguments.all and arguments.format is None and is_code(typed[0]):
        _only_one(typed)
        reports: list[Any] = [inspect_all.code_report(typed[0])]
    else:
        names = meant(_FORMAT if arguments.format is None else arguments.format)
        in_blocks = [name for name in names if name in block_formats]
        if in_blocks and (others := [x for x in names if x not in block_formats]):
            raise CommandError(
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
    """What is typed, and read in place of "-"."""
    found: list[str] = []
    for word in words:
        if word.strip() == "-":
            found += sys.stdin.read().replace(",", " ").split()
        else:
            found.append(word.strip())
    if not found:
        raise CommandError("standard input must have at least one number; got none")
    return found


def _check_options(arguments: Namespace, in_blocks: bool) -> None:
    if in_blocks and arguments.all:
        raise CommandError("--all must not be given with a block format")
    for option in ("scale", "block_size"):
        if getattr(arguments, option) and not in_blocks:
            raise CommandError(
                f"--{option.replace('_', '-')} must only be given with a block format;"
                f" use --format with one of {', '.join(block_formats)}"
            )


def _of_formats(forms: list[Facts], typed: list[str], arguments: Namespace) -> Any:
    if arguments.format is None and (first := [x for x in typed if is_code(x)]):
        raise CommandError(
            f"{first[0]} is a code and not a number; use --format to name its format"
        )
    if arguments.all:
        _only_one(typed)
        return [inspect_all.report(forms, typed[0])]
    if len(typed) > 1:
        return [inspect_all.several(form, typed) for form in forms]
    # What a number loses in other formats is told once.
    last = forms[-1]
    word = typed[0]
    return [_one(form, word, form is last or is_code(word)) for form in forms]


def _only_one(typed: list[str]) -> None:
    if len(typed) > 1:
        raise CommandError(f"--all must be given with one number; got {len(typed)}")


def _file_of(text: str) -> str:
    """The path of a file, of `FILE` or `FILE:NAME`; empty for a number."""
    path = text if is_code(text.strip()) else parted(text)[0]
    if not os.path.exists(path) or is_code(path.strip()):
        return ""
    try:
        parse(path.strip())
    except CommandError:
        return path
    return ""


def _run_file(arguments: Namespace, path: str) -> None:
    if name := arguments.what[0][len(path) + 1 :]:
        arguments.tensor = [*(arguments.tensor or []), name]
    for option in ("format", "all", "scale", "block_size"):
        if getattr(arguments, option):
            name = option.replace("_", "-")
            raise CommandError(
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
    """A number in a format, and its error in every format."""
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
        "exactly": report["integer_times_power"],
        "decimal": report["decimal"],
        "hex": report["hex"],
        "below": report["below"],
        "above": report["above"],
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
        "Nearest in every format and its error (ulps: in spacings)",
        ["format", "code", "value", "relative", "ulps"],
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
