"""Run an unmodified program with its matrix multiplications in a lower precision.

Example:

  $ tf32dtype run --precision bf16 script.py

The program runs as `python script.py ...` or `python -m module ...` runs it: arguments
after its name go to the program, and its exit code and traceback are kept. The
precision applies to the whole process: to NumPy's multiplications and to those that any
library computes by BLAS. At the end, a summary on standard error says how many
multiplications used the precision, and how to include the others.

Regions (--only, --except) include the code that they call, not child processes.
Exit code 3: some multiplications had too little memory for the precision; with
--strict also if neither a multiplication nor, with --arithmetic, a ufunc was rounded.
"""

import os
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import NoReturn

from .. import _core
from .._base.errors import UserError
from .._base.text import strict_json
from .._matmul.precisions import (
    find_precision,
    has_blas,
    precision_of_format,
    whole_name,
)
from .._programs import preload
from .._programs.arithmetic import arithmetic
from .._programs.context import set_matmul_precision
from .._programs.plan_lines import search_first
from .._programs.plans import read_plan
from .._programs.program import Failed, add_program, add_regions, end_of_program
from .._programs.reached import print_reached, reached
from .._programs.report.naming import kind_and_message
from .._programs.report.not_reached import Counts, watch_loops
from .._programs.report.options import arithmetic_format
from .._programs.report.output import check_folder
from .._programs.report.regions import find_region
from .._programs.source_folders import set_folders
from .._programs.streams import keep, say
from . import add_options
from .precision_options import add_precision, settings_of
from .torch_program import add_torch, refuse_torch_options, run_torch


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype run`."""
    add_program(parser)
    group, scope = add_precision(parser)
    options = {
        "--plan FILE": "use a plan of `tf32dtype tune`, with a precision for each call"
        " site, instead of --precision (default: none)",
        "--device NAME": "add as the tensor core of a device does, such as H100"
        " (default: none)",
        "--instruction NAME": "use this instruction of the device: mma.sync, wgmma or"
        " tcgen05 (default: that of its libraries)",
        "--arithmetic FORMAT": "round NumPy's float32 arithmetic to this format too;"
        " without --precision use the precision of that name (default: not rounded)",
    }
    add_options(group, options)
    add_regions(scope)
    options = {
        "--no-blas": "change only NumPy's functions, not its methods or other libraries"
        " (default: all callers of BLAS)",
        "--no-children": "exclude child processes (default: included; with exact, crtN,"
        " int8xN or --device, their multiplications are only counted as unchanged)",
    }
    add_options(scope, options)
    add_torch(parser)
    options = {
        "--strict": "exit with code 3 if nothing used the precision (default: no)",
        "--quiet": "print no summary (default: print it at the end)",
        "--json FILE": "write the summary as JSON (default: none)",
    }
    add_options(parser.add_argument_group("Output"), options)


def run(arguments: Namespace) -> NoReturn:
    """Run the program, print the summary, and exit as the program does."""
    if arguments.torch:
        run_torch(arguments)
    refuse_torch_options(arguments)
    format = arithmetic_format(arguments.arithmetic)
    planned = arguments.plan is not None
    if arguments.precision is None and format is not None and not planned:
        arguments.precision = precision_of_format(format)
        if arguments.precision is None:
            raise UserError(
                f"--arithmetic must be a format with a precision of that name; got"
                f" {format}. Use --precision to name one, such as f32"
            )
    if arguments.precision is None and not planned:
        raise UserError(
            "--precision or --plan must be given before the program, since later"
            " arguments go to the program. Use tf32dtype run --precision NAME"
            f" {arguments.program}"
        )
    if planned and (arguments.precision or arguments.no_blas):
        other = "--precision" if arguments.precision else "--no-blas"
        raise UserError(
            f"{other} cannot be combined with --plan, which names the precisions"
        )
    if arguments.lapack and arguments.no_blas:
        raise UserError(
            "--lapack cannot be combined with --no-blas, since LAPACK uses BLAS"
        )
    own = whole_name(arguments.precision)
    blas = not arguments.no_blas and has_blas(own) and _core.blas_available()
    settings = settings_of(arguments, blas and not planned)
    only, but = (
        [find_region(text) for text in x] for x in (arguments.only, arguments.excepted)
    )
    if (only or but) and not _core.frames_are_known():
        raise UserError("--only and --except must run on CPython 3.11 to 3.14")
    if arguments.json is not None:
        check_folder(arguments.json)
    path = arguments.json and os.path.abspath(arguments.json)
    scope: AbstractContextManager[object] = nullcontext()
    formats: str | None = format
    with _said(arguments):
        set_matmul_precision(**settings._asdict())
        if format is not None:
            scope = arithmetic(format, float64=arguments.float64)
        elif planned and read_plan(arguments.plan).rounds_ufuncs:
            scope, formats = arithmetic(plan=arguments.plan), "the plan's formats"
    pairs = [[(r.file, r.function or "") for r in regions] for regions in (only, but)]
    _core.set_regions(*pairs)
    _core.set_outer_precision(True)
    _core.blas_begin()
    watch_loops()
    set_folders()
    counts = Counts()
    counts_children = (
        _core.blas_available()
        and not (arguments.no_blas or arguments.no_children or only or but or planned)
        and preload.for_children(settings, arguments.quiet)
    )
    with scope:
        ending = end_of_program(arguments)
    with suppress(RuntimeError):  # memory was short, as the summary says
        set_matmul_precision(None)  # later work is not part of the program
    _core.set_outer_precision(False)
    label = (
        "the plan's precisions"
        if planned
        else own
        if own
        else find_precision(arguments.precision).short
    )
    failure = (
        f"raised {kind_and_message(ending.error)}" if isinstance(ending, Failed) else ""
    )
    summary = reached(label, settings, counts, formats, failure, counts_children)
    whole = keep("run", path, lambda: strict_json(summary.record()) + "\n")
    if not arguments.quiet:
        print_reached(summary)
    used = summary.calls or summary.rounded
    failed = summary.out_of_memory or (arguments.strict and not used)
    if failed and ending.code in (None, 0):
        raise SystemExit(3)
    if not whole and ending.code in (None, 0):
        raise SystemExit(1)
    raise ending


@contextmanager
def _said(arguments: Namespace) -> Iterator[None]:
    """Print call sites of a plan that are not found; turn ValueError into UserError."""
    if not arguments.is_module:
        search_first(os.path.dirname(os.path.realpath(arguments.program)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as error:
            raise UserError(str(error)) from None
    for warning in caught:
        say("run", str(warning.message))
