"""The cheapest precision of each call site that keeps a program's answer.

It runs the program again and again: unchanged, watched, and then with a precision for
each line that multiplies matrices, until none can be lowered further. The result is a
plan, which `tf32dtype run --plan plan.toml script.py` and
td.matmul_precision(plan="plan.toml") obey.

  tf32dtype tune script.py --check file:out.npy --tolerance 1e-6
  tf32dtype tune script.py --check 'regex:energy = (\\S+)' --tolerance 1e-5 -- its words

--check       file:PATH             numbers that the program writes: .npy, .npz, or text
              regex:PATTERN         in its output; the groups are numbers
              python:FILE:FUNCTION  a function(folder, output) that returns numbers
--tolerance   how far a number may be from the unchanged program's, as a share of the
              greatest one; with --absolute as it is

Exit code 4: time was up, or Ctrl-C; the plan is the best so far.
"""

import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace

from .._matmul.plan_lines import search_first
from .._matmul.plans import Plan
from .._matmul.precisions import find_precision
from .._measures.ways import select
from .._report.output import check_folder
from .._text import progress
from .._tune.checks import Check
from .._tune.summary import print_summary
from .._tune.trials import OutOfTime, Program
from .._tune.tune import TuneOptions, Tuner
from . import CommandError
from .program import add_program
from .streams import say

PRECISIONS = "bf16,tf32,bf16x3,bf16x9"
NOT_FINAL = 4


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype tune`."""
    _add_options(parser)
    parser.set_defaults(parser=parser)
    add_program(parser)


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--check", metavar="CHECK", help="what the answer is")
    parser.add_argument(
        "--tolerance", type=float, metavar="T", help="how far it may move"
    )
    parser.add_argument(
        "--absolute", action="store_true", help="T is no share of the greatest number"
    )
    parser.add_argument("--out", default="plan.toml", metavar="FILE", help="plan.toml")
    parser.add_argument(
        "--precisions",
        default=PRECISIONS,
        metavar="NAMES",
        help=f"what to try ({PRECISIONS})",
    )
    parser.add_argument("--float64", action="store_true", help="float64 products too")
    parser.add_argument(
        "--complex64", action="store_true", help="complex64 too; with both complex128"
    )
    parser.add_argument("--dots", action="store_true", help="dots and norms too")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="runs at a time (1)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=float("inf"), metavar="S", help="seconds"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with what the journal has"
    )
    parser.add_argument("--quiet", action="store_true", help="no table, no progress")


def run(arguments: Namespace) -> int:
    """Tune, write the plan, and tell."""
    options = _options(_all_arguments(arguments))
    total = 4 + 2 * len(options.precisions) ** 2  # a guess
    try:
        with progress(not arguments.quiet, "Tuning", total, sys.stderr) as advance:
            tuned = Tuner(options, advance, _tell).run()
    except (OutOfTime, KeyboardInterrupt) as error:
        ended = "interrupted" if isinstance(error, KeyboardInterrupt) else "time is up"
        _tell(f"{ended} before any trial: no plan")
        return NOT_FINAL
    if not arguments.quiet:
        print_summary(tuned, options.tolerance)
    if not tuned.final:
        _tell(f"{options.out} is not final, but the best so far; go on with --resume")
        return NOT_FINAL
    return 0


def _all_arguments(arguments: Namespace) -> Namespace:
    """Add the options that follow the program.

    The arguments after -- are the program's own. If --check precedes the program, all
    arguments that follow are.
    """
    words: list[str] = arguments.arguments
    if arguments.check is not None:
        arguments.arguments = words[words[:1] == ["--"] :]
        return arguments
    at = words.index("--") if "--" in words else len(words)
    outer: ArgumentParser = arguments.parser
    parser = type(outer)(prog=outer.prog, add_help=False, argument_default=SUPPRESS)
    _add_options(parser)
    parser.parse_args(words[:at], arguments)
    arguments.arguments = words[at + 1 :]
    return arguments


def _options(arguments: Namespace) -> TuneOptions:
    if arguments.check is None or arguments.tolerance is None:
        raise CommandError(
            "--check and --tolerance are needed: --help tells what they are"
        )
    if not 0 <= arguments.tolerance < float("inf"):
        raise CommandError(f"--tolerance {arguments.tolerance:g}: 0 or more is needed")
    if not arguments.time_limit > 0:
        raise CommandError(f"--time-limit {arguments.time_limit:g}: seconds are needed")
    if arguments.jobs < 1:
        raise CommandError(f"--jobs {arguments.jobs}: 1 or more is needed")
    check_folder(arguments.out)
    program = arguments.program
    script: str | None = None
    if not arguments.is_module:
        if program == "-":
            raise CommandError("-: tune runs the program many times: name a file")
        if not os.path.isfile(program):
            raise CommandError(f"{program}: no such file")
        script = os.path.realpath(program)
        search_first(os.path.dirname(script))
        # In a copy of this folder it is the copy's.
        here = os.path.join(os.path.realpath(os.getcwd()), "")
        program = script.removeprefix(here)
    return TuneOptions(
        Program(
            (*["-m"] * arguments.is_module, program, *arguments.arguments),
            os.path.realpath(os.getcwd()),
        ),
        script,
        Check(arguments.check),
        arguments.tolerance,
        arguments.absolute,
        os.path.abspath(arguments.out),
        _precisions(arguments.precisions),
        arguments.jobs,
        arguments.time_limit,
        Plan(
            float64=arguments.float64,
            complex64=arguments.complex64,
            dots=arguments.dots,
        ),
        arguments.resume,
    )


def _precisions(text: str) -> tuple[str, ...]:
    """The cheapest first."""
    try:
        names = {find_precision(word).short for word in text.replace(",", " ").split()}
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not names:
        raise CommandError("no precision is named")
    ways = sorted(select(sorted(names)), key=lambda way: (way.name == "f32", way.bits))
    return tuple(way.name for way in ways)


def _tell(line: str) -> None:
    say("tune", line)
