"""A program, unchanged, with its matrix products in a chosen precision.

It runs as `python script.py ...` or `python -m module ...` runs it: all words after its
name are its own, and so are its exit code and its traceback. The precision is that of
the whole process, as td.set_matmul_precision sets it: of NumPy's products, and of all
that a library has BLAS make. At the end standard error tells how many products obeyed,
and what would reach the others.

--only, --except    where products obey: in code of a file, or of a function in it, and
                    in what that calls (repeatable); programs that it starts are left
                    alone then
--plan FILE         a precision for each call site, as `tf32dtype tune` writes it,
                    instead of one for all
--no-blas           NumPy's functions alone: no other library's, none of its methods
--no-children       programs that it starts are left alone; else their products obey too
--strict            exit code 3 if no product obeyed
Exit code 3 also means that memory was too short for the precision of some products.
"""

import os
import warnings
from argparse import ArgumentParser, Namespace
from contextlib import nullcontext, suppress
from typing import NoReturn

from .. import _core
from .._arithmetic import arithmetic
from .._matmul.context import set_matmul_precision
from .._matmul.plan_lines import search_first
from .._matmul.precisions import Settings, find_precision, precision_of_format
from .._report.not_reached import Counts, watch_loops
from .._report.options import arithmetic_format
from .._report.output import check_folder
from .._report.regions import find_region
from .._source_folders import set_folders
from .._text import strict_json
from . import CommandError, preload
from .precision_options import add_precision, settings_of
from .program import add_program, end_of_program
from .reached import print_reached, reached
from .streams import keep, say


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype run`."""
    add_precision(parser)
    parser.add_argument(
        "--plan",
        metavar="FILE",
        help="a precision for each call site, instead of --precision",
    )
    parser.add_argument("--device", metavar="NAME", help="with this one's tensor core")
    parser.add_argument(
        "--instruction", metavar="NAME", help="mma.sync, wgmma or tcgen05"
    )
    for name, where in (("only", "here"), ("except", "elsewhere than here")):
        parser.add_argument(
            f"--{name}",
            dest={"except": "but"}.get(name, name),
            action="append",
            default=[],
            metavar="FILE[:FUNCTION]",
            help=f"products obey {where}",
        )
    parser.add_argument(
        "--arithmetic",
        metavar="FORMAT",
        help="NumPy's float32 arithmetic is in this format too, and float64 with"
        " --float64; by itself with the precision of that name",
    )
    parser.add_argument(
        "--no-blas", action="store_true", help="NumPy's functions alone"
    )
    parser.add_argument("--no-children", action="store_true", help="this process alone")
    parser.add_argument(
        "--strict", action="store_true", help="exit code 3 if none obeyed"
    )
    parser.add_argument("--quiet", action="store_true", help="no summary at the end")
    parser.add_argument("--json", metavar="FILE", help="write the summary as JSON")
    add_program(parser)


def run(arguments: Namespace) -> NoReturn:
    """Run the program, tell what obeyed, and exit as the program does."""
    format = arithmetic_format(arguments.arithmetic)
    planned = arguments.plan is not None
    if arguments.precision is None and format is not None and not planned:
        arguments.precision = precision_of_format(format)
        if arguments.precision is None:
            raise CommandError(
                f"no precision is named {format}: add --precision NAME for the matrix"
                " products, f32 for those of float32"
            )
    if arguments.precision is None and not planned:
        raise CommandError(
            "--precision is needed, before the program, as all words after that are its"
            f" own: tf32dtype run --precision NAME {arguments.program}"
        )
    if planned and (arguments.precision or arguments.no_blas):
        other = "--precision" if arguments.precision else "--no-blas"
        raise CommandError(f"--plan says what obeys: leave out {other}")
    if arguments.lapack and arguments.no_blas:
        raise CommandError("--lapack is for products of BLAS: leave out --no-blas")
    blas = not arguments.no_blas and _core.blas_available()
    settings = settings_of(arguments, blas and not planned)
    only, but = (
        [find_region(text) for text in x] for x in (arguments.only, arguments.but)
    )
    if (only or but) and not _core.frames_are_known():
        raise CommandError("--only and --except need CPython 3.11, 3.12 or 3.13")
    if arguments.json is not None:
        check_folder(arguments.json)
    path = arguments.json and os.path.abspath(arguments.json)
    _set_precision(settings, arguments)
    pairs = [[(r.file, r.function or "") for r in regions] for regions in (only, but)]
    _core.set_regions(*pairs)
    _core.set_outer_precision(True)
    _core.blas_begin()
    watch_loops()
    set_folders()
    counts = Counts()
    if blas and not (arguments.no_children or only or but or planned):
        preload.for_children(settings, arguments.quiet)
    with arithmetic(format, float64=arguments.float64) if format else nullcontext():
        ending = end_of_program(arguments)
    with suppress(RuntimeError):  # memory was short, as the summary says
        set_matmul_precision(None)  # what ends after the program is no part of it
    _core.set_outer_precision(False)
    label = (
        "the plan's precisions"
        if planned
        else find_precision(arguments.precision).short
    )
    summary = reached(label, settings, counts, format is not None)
    whole = keep("run", path, lambda: strict_json(summary.record()) + "\n")
    if not arguments.quiet:
        print_reached(summary)
    failed = summary.out_of_memory or (arguments.strict and not summary.calls)
    if failed and ending.code in (None, 0):
        raise SystemExit(3)
    if not whole and ending.code in (None, 0):
        raise SystemExit(1)
    raise ending


def _set_precision(settings: Settings, arguments: Namespace) -> None:
    """What is not found in the source of a plan is a line on standard error."""
    if not arguments.is_module:
        search_first(os.path.dirname(os.path.realpath(arguments.program)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            set_matmul_precision(**settings._asdict())
        except ValueError as error:
            raise CommandError(str(error)) from None
    for warning in caught:
        say("run", str(warning.message))
