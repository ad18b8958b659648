"""Find the lowest precision of each call site that keeps a program's result.

Example: with a file that the script writes

  $ tf32dtype tune script.py --check file:out.npy --tolerance 1e-6

Example: with a number that the script prints, and arguments for the script

  $ tf32dtype tune script.py --check 'regex:E = (\\S+)' --tolerance 1e-5 -- arguments

The program runs many times: first unchanged, then with lower precisions for single call
sites, until none can be lowered further. The result is a plan for
`tf32dtype run --plan plan.toml script.py` and td.matmul_precision(plan="plan.toml").

--check reads the numbers to compare:
  file:PATH             from a file that the program writes: .npy, .npz, or text
  regex:PATTERN         from its output; each group is a number
  python:FILE:FUNCTION  from a function(folder, output)

Example: the formats of NumPy's other operations, line by line

  $ tf32dtype tune script.py --arithmetic bf16,f16 --check file:out.npy --tolerance 1e-2

Exit code 4: the time limit or Ctrl-C ended the search; the plan is the best so far.
"""

import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace

from .._base.errors import UserError
from .._base.text import progress
from .._matmul.precisions import find_precision
from .._measures.format_facts import facts
from .._measures.ways import select
from .._programs.plan_lines import search_first
from .._programs.plans import Plan
from .._programs.program import add_program
from .._programs.report.options import arithmetic_format
from .._programs.report.output import check_folder
from .._programs.streams import say
from .._programs.tune.checks import Check
from .._programs.tune.subjects import CallSites, Layers, Subject
from .._programs.tune.summary import print_layers, print_summary
from .._programs.tune.trials import OutOfTime, Program
from .._programs.tune.tune import TuneOptions, Tuner
from . import add_options
from .torch_program import torch_formats

PRECISIONS = "bf16,tf32,bf16x3,bf16x9"
TORCH_PRECISIONS = "nvfp4,mxfp8,fp8_e4m3:row,bf16"
NOT_FINAL = 4


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype tune`."""
    add_program(parser)
    _add_options(parser)
    parser.set_defaults(parser=parser)


def _add_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("Result")
    options = {"--check CHECK": "read the numbers to compare from here (required)"}
    add_options(group, options)
    options = {
        "--tolerance T": "allow differences from the unchanged program of up to T times"
        " the largest number of the same array or column, or the number itself"
        " (required)",
    }
    add_options(group, options, type=float)
    options = {
        "--absolute": "allow absolute differences of up to T (default: relative)",
    }
    add_options(group, options)
    options = {
        "--precisions NAMES": "try these precisions, separated by commas (default:"
        f" {PRECISIONS})",
        "--arithmetic FORMATS": "choose formats of NumPy's ufuncs, not precisions of"
        " multiplications: among these, separated by commas (default: multiplications)",
        "--float64": "include float64 multiplications or ufuncs (default: no)",
        "--complex64": "include complex64 multiplications, with --float64 also"
        " complex128 (default: no)",
        "--dots": "include dot products and norms (default: no)",
        "--torch": "choose formats of the layers of PyTorch models, among --precisions"
        f" (then by default: {TORCH_PRECISIONS}), which may be block formats (default:"
        " call sites)",
        "--device NAME": "add as the tensor core of a device does, with --torch"
        " (default: none)",
    }
    add_options(parser.add_argument_group("Precision"), options)
    group = parser.add_argument_group("Search")
    options = {"--jobs N": "run N trials at a time (default: 1)"}
    add_options(group, options, type=int, default=1)
    options = {"--time-limit S": "stop the search after S seconds (default: no limit)"}
    add_options(group, options, type=float, default=float("inf"))
    options = {
        "--resume": "resume an interrupted search from its journal (default: start"
        " again)",
    }
    add_options(group, options)
    group = parser.add_argument_group("Output")
    options = {"--out FILE": "write the plan to FILE (default: plan.toml)"}
    add_options(group, options, default="plan.toml")
    options = {"--quiet": "print no table and no progress bar (default: print both)"}
    add_options(group, options)


def run(arguments: Namespace) -> int:
    """Tune, write the plan, and print the summary."""
    options = _options(_all_arguments(arguments))
    total = 4 + 2 * len(options.subject.precisions) ** 2  # a guess
    try:
        with progress(not arguments.quiet, "Tuning", total, sys.stderr) as advance:
            tuned = Tuner(options, advance, _tell).run()
    except (OutOfTime, KeyboardInterrupt) as error:
        ended = "interrupted" if isinstance(error, KeyboardInterrupt) else "time is up"
        _tell(f"{ended} before any trial: no plan")
        return NOT_FINAL
    if not arguments.quiet:
        show = print_layers if arguments.torch else print_summary
        show(tuned, options.tolerance)
    if not tuned.final:
        _tell(
            f"{options.out} is not final, but the best so far; use --resume to continue"
        )
        return NOT_FINAL
    return 0


def _all_arguments(arguments: Namespace) -> Namespace:
    """Return the arguments with the options that follow the program.

    Arguments after -- go to the program. If --check comes before the program, all
    arguments after the program go to it.
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
        raise UserError("--check and --tolerance must be given; use --help to see how")
    if not 0 <= arguments.tolerance < float("inf"):
        raise UserError(f"--tolerance must be 0 or more; got {arguments.tolerance:g}")
    if not arguments.time_limit > 0:
        raise UserError(
            f"--time-limit must be more than 0 seconds; got {arguments.time_limit:g}"
        )
    if arguments.jobs < 1:
        raise UserError(f"--jobs must be 1 or more; got {arguments.jobs}")
    check_folder(arguments.out)
    program = arguments.program
    script: str | None = None
    if not arguments.is_module:
        if program == "-":
            raise UserError(
                "the program must be a file, since it runs many times; got -"
            )
        if not os.path.isfile(program):
            raise UserError(f"the program must be an existing file; got {program}")
        script = os.path.realpath(program)
        search_first(os.path.dirname(script))
        # A relative path makes a trial run the script in its copy of the folder.
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
        _subject(arguments),
        arguments.jobs,
        arguments.time_limit,
        arguments.resume,
    )


def _subject(arguments: Namespace) -> Subject:
    """Return what is tuned."""
    if arguments.torch:
        return _layers(arguments)
    return CallSites(
        _formats(arguments) or _precisions(arguments.precisions or PRECISIONS),
        Plan(
            float64=arguments.float64,
            complex64=arguments.complex64,
            dots=arguments.dots,
        ),
        arguments.arithmetic is not None,
    )


def _layers(arguments: Namespace) -> Layers:
    """Return the layers of PyTorch models, with formats from the cheapest on."""
    for name in ("float64", "complex64", "dots", "arithmetic"):
        if getattr(arguments, name):
            raise UserError(f"--{name} cannot be combined with --torch")
    device = arguments.device
    return Layers(torch_formats(arguments.precisions, TORCH_PRECISIONS, device), device)


def _formats(arguments: Namespace) -> tuple[str, ...]:
    """Return the names of formats of ufuncs, the cheapest first."""
    if arguments.arithmetic is None:
        return ()
    others = {
        "--precisions": arguments.precisions,
        "--complex64": arguments.complex64,
        "--dots": arguments.dots,
    }
    for option, given in others.items():
        if given:
            raise UserError(f"{option} cannot be combined with --arithmetic")
    words = arguments.arithmetic.replace(",", " ").split()
    names = dict.fromkeys(arithmetic_format(word) for word in words)
    if not names:
        raise UserError("--arithmetic must name at least one format; got none")
    found = [name for name in names if name is not None]
    return tuple(sorted(found, key=lambda name: facts(name).bits))


def _precisions(text: str) -> tuple[str, ...]:
    """Return the names of precisions, the cheapest first."""
    try:
        names = {find_precision(word).short for word in text.replace(",", " ").split()}
    except ValueError as error:
        raise UserError(str(error)) from None
    if not names:
        raise UserError("--precisions must name at least one precision; got none")
    ways = sorted(select(sorted(names)), key=lambda way: (way.name == "f32", way.bits))
    return tuple(way.name for way in ways)


def _tell(line: str) -> None:
    say("tune", line)
