"""Report how much precision each matrix multiplication of a program needs.

Example:

  $ tf32dtype report script.py

The program runs once, unchanged, as `python script.py ...` or `python -m module ...`
runs it. Arguments after its name go to the program, and its exit code is kept. Matrix
multiplications by NumPy, SciPy and any other caller of BLAS are counted by call site.
When the program has ended, samples of the operands are multiplied in each precision and
compared with the float64 product. Then the program runs once more in the advised
precisions, to compare what it prints and writes: see --no-trial. A program that ends by
os._exit or a signal leaves no report. `tf32dtype report --explain` explains columns and
verdicts.
"""

import os
import sys
from argparse import Action, ArgumentParser, Namespace
from inspect import signature
from typing import Any, NoReturn, TextIO

from .._base.errors import UserError
from .._base.text import import_all, progress
from .._matmul.precisions import PRECISIONS
from .._programs.program import Failed, add_program, add_regions, end_of_program
from .._programs.report import collect
from .._programs.report.culprits import MOST_RUNS
from .._programs.report.legend import explanation
from .._programs.report.naming import kind_and_message
from .._programs.report.options import BY, TARGET_DB, options
from .._programs.report.output import check_folder
from .._programs.report.program_runs import ProgramRuns
from .._programs.report.report import Report, count
from .._programs.report.rounded import rounded
from .._programs.streams import complain, flush_own, is_open, keep, say, tell
from . import add_options
from .torch_report import report_torch


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype report`."""
    add_program(parser)
    shorts = ", ".join(row.short for row in PRECISIONS)
    group = parser.add_argument_group("Precision")
    wanted = {
        "--precision NAMES": "measure these precisions and f32, separated by commas"
        f" (default: all): {shorts}, block formats",
    }
    add_options(group, wanted)
    wanted = {
        "--device NAME": "measure the tensor core of a device too, such as H100 or"
        " H100:mma.sync (default: none; repeatable)",
    }
    add_options(group, wanted, action="append", default=[])
    wanted = {"--target-db DB": f"set the required SNR in dB (default: {TARGET_DB:g})"}
    add_options(group, wanted, type=float, default=TARGET_DB)
    wanted = {
        "--exact": "measure all operands, however long it takes (default: samples)",
        "--arithmetic FORMAT": "run the program with NumPy's float32 arithmetic rounded"
        " to a format, and report the effects (default: not rounded)",
    }
    add_options(group, wanted)
    wanted = {
        "--no-trial": "leave out the program's second run, in the advised precisions"
        " and in a copy of the folder (default: run it, and compare the results)",
        "--check CHECK": "compare only these numbers, as `tf32dtype tune` reads them"
        " (default: all that the program prints, and .npy, .npz and text files that it"
        " writes)",
    }
    add_options(parser.add_argument_group("Result"), wanted)
    group = parser.add_argument_group("Scope")
    group.add_argument(
        "--by",
        choices=BY,
        default=BY[0],
        help="list a line once per constant matrix that it multiplies by, or only once"
        " (default: operand)",
    )
    add_regions(group)
    wanted = {
        "--stop-at PACKAGE": "show a package's lines as your code (default: none;"
        " repeatable)",
    }
    add_options(group, wanted, action="append", default=[])
    wanted = {
        "--dots": "measure dot products and norms, too (default: no)",
        "--lapack": "measure matrix multiplications inside LAPACK, too (default: no)",
        "--float64": "round float64 arithmetic too, with --arithmetic (default: no)",
    }
    add_options(group, wanted)
    wanted = {
        "--torch": "report the layers of PyTorch models, in formats of --precision that"
        " may be block formats (default: NumPy's and BLAS's multiplications)",
    }
    add_options(parser.add_argument_group("PyTorch"), wanted)
    group = parser.add_argument_group("Output")
    wanted = {
        "--html FILE": "write a page with plots (default: none)",
        "--json FILE": "write all measurements as JSON (default: none)",
        "--quiet": "print no table and no progress bar (default: print both)",
    }
    add_options(group, wanted)
    group.add_argument(
        "--explain",
        action=_Explain,
        nargs=0,
        help="print the meaning of columns and verdicts (default: run the program)",
    )


class _Explain(Action):
    """Prints the meaning of the report's words, as --help prints the options."""

    def __call__(self, parser: ArgumentParser, *others: Any) -> NoReturn:
        print(explanation(TARGET_DB), end="")
        parser.exit()


def run(arguments: Namespace) -> NoReturn:
    """Run the program, report, and exit as the program does."""
    if arguments.torch:
        report_torch(arguments, TARGET_DB)
    names = signature(options).parameters
    chosen = options(**{name: getattr(arguments, name) for name in names})
    html, json = map(_checked_path, (arguments.html, arguments.json))
    if html and html == json:
        raise UserError(
            f"--html and --json must be different files; got {html} for both"
        )
    argv = (arguments.program, *arguments.arguments)
    trial = _trial(arguments)
    import_all()
    collector = collect.Collector(chosen.collector, argv)
    collector.start()
    if trial:
        trial.start()
    try:
        with rounded(chosen):
            ending = end_of_program(arguments)
    except UserError:  # none of it has run
        collector.stop()
        raise
    seen = collector.stop()
    if trial:
        trial.stop()
    quiet = arguments.quiet
    stream = sys.__stderr__
    with progress(
        not quiet and is_open(stream), "Measuring", count(seen), stream
    ) as advance:
        report = Report(seen, chosen, _how(ending), advance)
    if trial and (not report.ending or report.arithmetic):
        tell_trial = _tell_on_terminal if not quiet else lambda line: None
        is_long = not quiet and report.arithmetic is not None and is_open(stream)
        with progress(is_long, "Trying lines", MOST_RUNS, stream) as advance:
            report.try_program(trial, tell_trial, advance)
    whole = keep("report", html, report.to_html)
    whole &= keep("report", json, report.to_json)
    if not quiet:
        whole &= _print(report)
    if not whole and ending.code in (None, 0):
        raise SystemExit(1)
    raise ending


def _trial(arguments: Namespace) -> ProgramRuns | None:
    """Return the program's later runs, before it runs."""
    if arguments.no_trial:
        if arguments.check is not None:
            raise UserError("--check cannot be combined with --no-trial")
        return None
    program = arguments.program
    if not arguments.is_module:
        # A relative path makes a trial run the script in its copy of the folder.
        here = os.path.join(os.path.realpath(os.getcwd()), "")
        program = program if program == "-" else os.path.realpath(program)
        program = program.removeprefix(here)
    words = (*["-m"] * arguments.is_module, program, *arguments.arguments)
    return ProgramRuns(words, arguments.check)


def _tell_on_terminal(line: str) -> None:
    if is_open(sys.__stderr__) and sys.__stderr__ and sys.__stderr__.isatty():
        say("report", line, sys.__stderr__)


def _checked_path(path: str | None) -> str | None:
    """Return the absolute path of a file to write, checked before the program runs."""
    if path is None:
        return None
    check_folder(path)
    return os.path.abspath(path)


def _how(ending: SystemExit) -> str:
    """Return how the program ended; "" after success."""
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
