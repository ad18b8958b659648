"""Compare two files or folders of tensors, tensor by tensor.

Example:

  $ tf32dtype diff model.safetensors other.safetensors
  A: model.safetensors (safetensors), B: other.safetensors (safetensors)
  tensor             result        A         B    shape  differing  ...
  --------------  ---------  -------  --------  -------  ---------  ...
  layer.0.bias    only in A  float32         -       64          -  ...
  layer.0.weight    differs  float32  bfloat16  64 x 64       4096  ...
  lm_head             equal  float32   float32  64 x 64          0  ...
  3 tensors: 1 only in A, 1 differs, 1 equal

Example: differences of one ulp, and a loss of less than 40 dB, are allowed

  $ tf32dtype diff model.safetensors other.safetensors --ulps 1 --db 40

A and B are .npy, .npz, safetensors, GGUF, HDF5, Zarr or ONNX files, or folders of them.
FILE:NAME compares one tensor. Tensors of equal names are compared, and two arrays of
.npy files whatever their names. Quantized tensors count as the values that they
represent, in float32. The tensors that differ most come first. Nothing is multiplied:
`tf32dtype compare A B` measures the error of A @ B.

Columns of the table:

result        equal; differs; format differs: the values are equal; within limits: see
              --ulps and --db; shape differs; only in A; only in B; unreadable
differing     values that are not equal. 0 and -0 are equal, and NaN and NaN
median, max   steps of the coarser of the two formats, after rounding the values of the
ulps          other format to it; inf if one of two values is NaN
SNR dB        -20 log10 of the relative error ||B - A|| / ||A||; -inf if only one of two
              values is Inf or NaN

Without --ulps and --db, the exit code is 1 if anything differs: a value, a format, a
shape, or a name. With one of them, formats may differ, and values within the limit.
With both, values must be within both limits. Integers and strings have no ulps: with
--ulps they must be equal. The exit code is 2 if a file cannot be read.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from html import escape
from math import isnan

from .. import __version__
from .._base.errors import UserError
from .._base.text import (
    Table,
    counted,
    decibels,
    number,
    print_json,
    printable,
    progress,
)
from .._files.convert.options import patterns
from .._files.readers import Tensor
from .._programs.report.html import text_table, whole_page
from .._programs.report.output import check_folder
from .._programs.streams import keep
from . import add_options, add_output, add_patterns
from .diff_tensors import Limits, Report, Row, compare, pairs, steps
from .operands import opened, parted

_HEADER = (
    "tensor",
    "result",
    "A",
    "B",
    "shape",
    "differing",
    "ulps of",
    "median ulps",
    "max ulps",
    "SNR dB",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype diff`."""
    files = parser.add_argument_group("Input")
    options = {
        "a A": "read a file, a folder, or FILE:NAME",
        "b B": "compare with this file, or FILE:NAME",
    }
    add_options(files, options)
    add_patterns(
        files,
        "compare only tensors whose names match (default: all)",
        "leave out tensors whose names match (default: none)",
    )
    precision = parser.add_argument_group("Precision")
    options = {"--ulps N": "allow distances of up to N ulps (default: no difference)"}
    add_options(precision, options, type=int)
    options = {
        "--db DB": "allow differences with at least this SNR (default: no difference)",
    }
    add_options(precision, options, type=float)
    options = {"--html FILE": "write a page with the table (default: none)"}
    add_options(add_output(parser), options)


def run(arguments: Namespace) -> int:
    """Print the report; 1 if something differs, or the page cannot be written."""
    limits = Limits(arguments.ulps, arguments.db)
    if limits.ulps is not None and limits.ulps < 0:
        raise UserError(f"--ulps must be 0 or more; got {limits.ulps}")
    if limits.db is not None and isnan(limits.db):
        raise UserError("--db must be a number of dB; got nan")
    if arguments.html is not None:
        check_folder(arguments.html)
    found, kinds = report(
        (arguments.a, arguments.b), limits, arguments.include, arguments.exclude
    )
    show(found, kinds, json=arguments.json)
    is_written = keep("diff", arguments.html, lambda: _page(found, kinds))
    return int(found.differs or not is_written)


def report(
    files: tuple[str, str],
    limits: Limits,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
) -> tuple[Report, tuple[str, str]]:
    """Compare two files, and show how far that is.

    Returns
    -------
    Report, (str, str)
        And the kinds of both files.

    Raises
    ------
    UserError
        If a file cannot be read or has no such tensor, or an expression is wrong.
    """
    wanted, unwanted = patterns(tuple(include or ()), tuple(exclude or ()))
    names = [parted(text) for text in files]
    with opened(names[0][0]) as a, opened(names[1][0]) as b:
        found = [
            pair
            for pair in pairs(a, b, names)
            if not (wanted and not any(x.search(pair[0]) for x in wanted))
            and not any(x.search(pair[0]) for x in unwanted)
        ]
        if not found and (include or exclude):
            raise UserError(
                "--include and --exclude must leave a tensor to compare; got none of"
                f" {len({*a, *b})}"
            )
        total = sum(map(steps, found))
        with progress(True, "comparing", total, sys.stderr) as advance:
            return compare(found, files, limits, advance), (a.kind, b.kind)


def show(found: Report, kinds: tuple[str, str], *, json: bool) -> None:
    """Print a report."""
    if json:
        print_json(found.record())
        return
    _table(found, kinds).print()
    print(_summary(found))
    for row in found.rows:
        if row.note:
            print(f"{printable(row.name)}: {row.note}")


def _table(found: Report, kinds: tuple[str, str]) -> Table:
    sides = zip("AB", found.files, kinds, strict=True)
    title = ", ".join(f"{side}: {path} ({kind})" for side, path, kind in sides)
    return Table(title, _HEADER, [_cells(row) for row in found.rows])


def _cells(row: Row) -> list[str]:
    start = [
        printable(row.name),
        row.result,
        "-" if row.a is None else row.a.label,
        "-" if row.b is None else row.b.label,
        _shape(row.a, row.b),
    ]
    found = row.found
    if found is None:
        return [*start, *["-"] * 5]
    ulps = ["-"] * 3
    if found.form is not None:
        ulps = [
            found.form.name,
            number(found.median_ulps, 4),
            number(found.largest_ulps, 4),
        ]
    return [
        *start,
        str(found.differing),
        *ulps,
        decibels(found.snr) if found.is_numeric else "-",
    ]


def _shape(*tensors: Tensor | None) -> str:
    shapes = dict.fromkeys(
        " x ".join(map(str, x.shape)) or "number" for x in tensors if x is not None
    )
    return ", ".join(shapes)


def _summary(found: Report) -> str:
    total = counted(len(found.rows), "tensor")
    parts = [
        f"{count} {'differ' if result == 'differs' and count > 1 else result}"
        for result, count in found.counts.items()
    ]
    return f"{total}: {', '.join(parts)}" if parts else total


# -- the page --------------------------------------------------------------------------


def _page(found: Report, kinds: tuple[str, str]) -> str:
    return whole_page(" and ".join(found.files) + ": differences", _body(found, kinds))


def _body(found: Report, kinds: tuple[str, str]) -> Iterator[str]:
    table = _table(found, kinds)
    yield "<h1>Differences of tensors</h1>"
    yield f"<p>{escape(table.title)}</p>"
    color = "bad" if found.differs else "good"
    yield f'<p class="{color}">{escape(_summary(found))}</p>'
    given = found.limits._asdict().items()
    limits = [f"--{name} {value:g}" for name, value in given if value is not None]
    allowed = f"; limits: {' '.join(limits)}" if limits else ""
    yield f'<p class="dim">tf32dtype {escape(__version__)}{escape(allowed)}</p>'
    yield from text_table(table, 'class="wide"', '<th data-sort="">')
    for row in found.rows:
        if row.note:
            yield f"<p>{escape(printable(row.name))}: {escape(row.note)}</p>"
