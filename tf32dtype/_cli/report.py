"""What a program would lose in other precisions, and at which line.

It runs once, as it is, as `python script.py ...` or `python -m module ...` runs it:
all words after its name are its own, and so is its exit code. Its matrix products, of
NumPy, SciPy and whatever calls BLAS, are counted by call site; samples of their
operands are multiplied in each precision when it has ended, and compared with
the float64 product. What os._exit or a signal ends leaves no report.

SNR           -20 log10 of the relative error, in dB, over all samples of a call site
bears NAME    the cheapest precision (the fewest bits to multiply) whose SNR reaches
              --target-db, and none of whose errors is more than 10^(-target/20) of
              |A||B|, the sum of the magnitudes of its row's and column's products
needs NAME    the same, where it takes several products of parts (bf16x3), or f32
needs float64 float32 is not enough
loses range   numbers became Inf or NaN, or vanished and that shows in an error
digits        that cancel: log10 of how far the median condition |A||B| / |AB| is
              beyond sqrt(k), which sums of k products with random signs have
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import NoReturn, TextIO

from .._matmul.precisions import PRECISIONS
from .._measures import UserError
from .._report import collect
from .._report.context import kind_and_message
from .._report.options import TARGET_DB, options
from .._report.output import check_folder
from .._report.report import Report, count
from .._report.rounded import rounded
from .._text import import_all, progress
from . import CommandError
from .program import Failed, add_program, end_of_program
from .streams import complain, flush_own, is_open, keep, tell


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype report`."""
    parser.add_argument("--html", metavar="FILE", help="write a page, with plots")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON")
    parser.add_argument(
        "--quiet", action="store_true", help="no table, no progress; files alone"
    )
    shorts = ", ".join(row.short for row in PRECISIONS)
    parser.add_argument(
        "--precision",
        metavar="NAMES",
        help=f"what to measure besides f32: {shorts}, block formats; all by default",
    )
    parser.add_argument(
        "--target-db",
        type=float,
        default=TARGET_DB,
        metavar="DB",
        help=f"the SNR that a call site needs ({TARGET_DB:g})",
    )
    parser.add_argument(
        "--exact", action="store_true", help="all operands, however long it takes"
    )
    for name, metavar, what in (
        ("--device", "NAME", "measure its tensor core too: H100, H100:mma.sync"),
        ("--stop-at", "PACKAGE", "show the lines inside of a library as if yours"),
        ("--only", "FILE[:FUNCTION]", "products of this region"),
        ("--except", "FILE[:FUNCTION]", "no products of this region"),
    ):
        parser.add_argument(
            name,
            dest=name.strip("-").replace("-", "_").replace("except", "excepted"),
            action="append",
            default=[],
            metavar=metavar,
            help=f"{what}; may be repeated",
        )
    parser.add_argument(
        "--arithmetic",
        metavar="FORMAT",
        help="run it with NumPy's arithmetic in this format, and tell what that did",
    )
    parser.add_argument(
        "--float64", action="store_true", help="float64 arithmetic is rounded too"
    )
    parser.add_argument("--dots", action="store_true", help="dots and norms too")
    parser.add_argument(
        "--lapack", action="store_true", help="the products inside LAPACK too"
    )
    add_program(parser)


def run(arguments: Namespace) -> NoReturn:
    """Run the program, report, and exit as the program does."""
    chosen = options(
        precision=arguments.precision,
        device=arguments.device,
        target_db=arguments.target_db,
        exact=arguments.exact,
        dots=arguments.dots,
        lapack=arguments.lapack,
        stop_at=arguments.stop_at,
        only=arguments.only,
        excepted=arguments.excepted,
        arithmetic=arguments.arithmetic,
        float64=arguments.float64,
    )
    html, json = map(_checked_path, (arguments.html, arguments.json))
    if html and html == json:
        raise CommandError(f"--html and --json are the same file: {html}")
    argv = (arguments.program, *arguments.arguments)
    import_all()
    collector = collect.Collector(chosen.collector, argv)
    collector.start()
    try:
        with rounded(chosen):
            ending = end_of_program(arguments)
    except (CommandError, UserError):  # none of it has run
        collector.stop()
        raise
    seen = collector.stop()
    quiet = arguments.quiet
    stream = sys.__stderr__
    with progress(
        not quiet and is_open(stream), "Measuring", count(seen), stream
    ) as advance:
        report = Report(seen, chosen, _how(ending), advance)
    whole = keep("report", html, report.to_html)
    whole &= keep("report", json, report.to_json)
    if not quiet:
        whole &= _print(report)
    if not whole and ending.code in (None, 0):
        raise SystemExit(1)
    raise ending


def _checked_path(path: str | None) -> str | None:
    """Of a file to write, wherever the program goes."""
    if path is None:
        return None
    check_folder(path)
    return os.path.abspath(path)


def _how(ending: SystemExit) -> str:
    """How it ended, where that is not well."""
    if isinstance(ending, Failed):
        return f"raised {kind_and_message(ending.error)}"
    if ending.code in (None, 0):
        return ""
    if isinstance(ending.code, int):
        return f"ended with exit code {ending.code}"
    first, *_ = str(ending.code).splitlines() or [""]
    return f"ended with the message {first!r}"


def _print(report: Report) -> bool:
    """Print to standard output; if the program has closed it, to standard error.

    Returns whether the report could be written.
    """
    stream = sys.__stdout__
    flush_own()
    if not is_open(stream):
        stream = sys.__stderr__

    def write(stream: TextIO) -> None:
        print(file=stream)
        report.print(stream)

    if error := tell(stream, write):
        complain("report", "standard output", error)
    return error is None
